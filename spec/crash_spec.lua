-- What a crash or a failing disk may do to checkpoints: nothing. TYCHO_KILLS: how often a run is killed (make test-crash: 500).
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"

local folder = helper.folder
local function output(command)
  local p = assert(io.popen(command))
  local s = p:read "*a"
  p:close()
  return s
end

describe("checkpoints #cpu", function()
  if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- its processes are run by the stock luajit
  local dir
  before_each(function() dir = folder() end)
  after_each(function() os.execute("rm -rf " .. dir) end)

  it("survive kill -9 at any instant, and the run goes on as if nothing had been", function()
    local kills, steps = tonumber(os.getenv "TYCHO_KILLS") or 12, 60
    local train = "luajit spec/crash/train.lua "
    local start = core.now()
    assert.equal(0, os.execute(("%s %s/whole %d %s/whole.safetensors"):format(train, dir, steps, dir)))
    local whole, span = tycho.load(dir .. "/whole.safetensors"), core.now() - start
    local done, runs, killed, seed = 0, 0, 0, 1
    while done < kills do
      runs = runs + 1
      local run = dir .. "/run"
      repeat                                       -- one run, killed until it ends; each time later than the last, so that it does
        seed = (seed * 1103515245 + 12345) % 2 ^ 31
        local after = (seed / 2 ^ 31) * span * (1 + killed / 4)
        local code = os.execute(("%s %s %d %s.safetensors 2>%s.err & p=$!; sleep %.3f; \z
          kill -9 $p 2>/dev/null && wait $p 2>/dev/null; test -e %s.safetensors"):format(train, run, steps, run, run, after, run))
        if code ~= 0 then
          done, killed = done + 1, killed + 1
          local manager = tycho.checkpoint.Manager {dir = run}
          local real, said = io.stderr, {}
          io.stderr = {write = function(_, ...) said[#said + 1] = table.concat {...} end} -- luacheck: ignore 122
          local ok, step, values = pcall(manager.restore_latest, manager)
          io.stderr = real -- luacheck: ignore 122
          assert.is_true(ok, tostring(step))
          assert.same({}, said)
          if step then assert.equal(step, #values.losses) end
        end
      until code == 0
      local got = tycho.load(run .. ".safetensors")
      assert.same(whole.losses, got.losses)
      assert.same(whole.order, got.order)
      for name, t in pairs(whole.model) do assert.is_true(t:equal(got.model[name]), name) end
      os.execute(("rm -rf %s %s.safetensors"):format(run, run))
      killed = 0
    end
    if os.getenv "TYCHO_KILLS" then print(("\n%d kills, %d runs ended as the one that wasn't killed"):format(done, runs)) end
  end)

  -- Small files go through the page cache, large ones past it.
  for what, size in pairs {small = 1000, large = 9000001} do
    it("outlast any call to the system that fails: " .. what, function()
      local library = dir .. "/iofail.so"
      assert.equal(0, os.execute("gcc -shared -fPIC -o " .. library .. " spec/crash/iofail.c -ldl"))
      local one = dir .. "/first"
      tycho.checkpoint.Manager({dir = one, async = false}):save(1, {x = tycho.full({1000}, 1, {device = "cpu"})})
      local failed, most = 0, 0
      for _, how in ipairs {"IOFAIL_ERRNO=28", "IOFAIL_ERRNO=5", "IOFAIL_ERRNO=28 IOFAIL_SHORT=1"} do
        local n, step, values, reached = 0
        repeat
          n = n + 1
          os.execute(("rm -rf %s/run; cp -r %s %s/run"):format(dir, one, dir))
          local said = output(("LD_PRELOAD=%s IOFAIL_AT=%d %s luajit spec/crash/save.lua %s/run %d 2>&1"):format(library,
            n, how, dir, size))
          local manager = tycho.checkpoint.Manager {dir = dir .. "/run"}
          step, values = manager:restore_latest()
          assert.is_true(step == 1 or step == 2)
          assert.equal(step, values.x:mean():item())
          assert.equal(step == 1 and 1000 or size, values.x:numel())
          reached = said:find("[failed]", 1, true)
          if said:find "saved\n$" and not said:find "not saved" then assert.equal(2, step)
          else
            failed = failed + 1
            assert.truthy(reached and said:find("step 2 was not saved: " .. dir .. "/run/", 1, true), said)
          end
          assert.equal("", output(("ls %s/run | grep tmp"):format(dir)))
          local latest = io.open(dir .. "/run/latest"):read "*a"
          assert.truthy(latest == "step-1.safetensors" or step == 2)
        until not reached
        assert.is_true(n > 10 and failed > 8 and step == 2)
        most = math.max(most, n)
      end
      assert.is_true(failed >= 20 and (size == 1000 or most > 16), failed)
    end)
  end
end)
