-- Bugs that were, of files and checkpoints.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local fails, write, folder = helper.fails, helper.write_file, helper.folder

describe("regressions of checkpoints", function()
  local dir
  before_each(function() dir = folder() end)
  after_each(function() os.execute("rm -rf " .. dir) end)

  it("go on from what was saved last, also after a step back", function()
    local m = tycho.checkpoint.Manager {dir = dir, keep = 4, async = false}
    for step = 10, 100, 30 do m:save(step, {n = step}) end
    m:restore(40)
    m:save(41, {n = 41})
    assert.equal(41, (m:restore_latest()))
    assert.same({41, 40, 10, 100}, m:steps())
    m:save(42, {n = 42})
    assert.same({42, 41, 40, 10}, m:steps())
    write(dir .. "/step-0300.safetensors", "x")
    write(dir .. "/step- 400.safetensors", "x")
    assert.same({42, 41, 40, 10}, m:steps())
  end)

  it("leave no rests, take lists and tensors", function()
    write(dir .. "/step-7.safetensors.999999999.3.tmp", "x")
    write(dir .. "/latest.999999999.3.tmp", "x")
    write(dir .. "/mine.999999999.3.tmp", "x")
    local m = tycho.checkpoint.Manager {dir = dir}
    assert.same({"mine.999999999.3.tmp"}, core.list_folder(dir))
    local losses = {}
    for i = 1, 5000 do losses[i] = i % 7 == 0 and math.huge or math.sin(i) end
    m:save(1, {losses = losses, w = tycho.range(1, 3), short = {1, 2}})
    m:wait()
    local w = tycho.zeros(3)
    local _, values = m:restore_latest {w = w}
    assert.same(losses, values.losses)
    assert.same({1, 2}, values.short)
    assert.same({1, 2, 3}, w:totable())
    fails("got one of them", m.restore_latest, m, tycho.nn.Linear(1, 1))
    fails("step) must be a whole number", m.restore, m, "x")
    fails("has no tensor 'v'", m.restore_latest, m, {v = w})
  end)

  it("under way are finished by os.exit, and by two managers of one folder", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end
    local script = os.tmpname()
    write(script, ([[local tycho = require "tycho"
      local m = tycho.checkpoint.Manager {dir = %q}
      m:save(5, {x = tycho.ones(3000000)})
      os.exit(0)]]):format(dir))
    assert.equal(0, os.execute("TYCHO_TEST_DEVICE= luajit " .. script))
    local m = tycho.checkpoint.Manager {dir = dir}
    local step, values = m:restore_latest()
    assert.equal(5, step)
    assert.equal(3000000, values.x:sum():item())
    assert.equal(0, #(function()
      local out = {}
      for _, n in ipairs(core.list_folder(dir)) do if n:find "tmp$" then out[#out + 1] = n end end
      return out
    end)())
    local a, b = tycho.checkpoint.Manager {dir = dir}, tycho.checkpoint.Manager {dir = dir}
    for k = 1, 5 do
      a:save(9, {x = tycho.full({200000}, k)})
      b:save(9, {x = tycho.full({100000}, -k)})
      a:wait()
      b:wait()
      local x = select(2, a:restore_latest()).x
      assert.is_true(x:eq(x[1]):all():item())
    end
    os.remove(script)
  end)
end)

describe("regressions of random states", function()
  it("other processes' math.random after a restore follows from the checkpoint and the rank alone", function()
    local dir = helper.folder()
    local m = tycho.checkpoint.Manager {dir = dir, async = false}
    math.randomseed(7)
    m:save(1, {best = 1})
    local before = package.loaded["tycho.distributed"]
    local seen = {}
    for rank = 1, 2 do
      package.loaded["tycho.distributed"] = {is_initialized = function() return true end, get_rank = function() return rank end}
      for k = 1, 2 do
        math.randomseed(100 * k)
        m:restore_latest()
        seen[#seen + 1] = math.random(2 ^ 30)
      end
    end
    package.loaded["tycho.distributed"] = before
    assert.equal(seen[1], seen[2])
    assert.equal(seen[3], seen[4])
    assert.not_equal(seen[1], seen[3])
  end)
end)

describe("regressions of files", function()
  it("what can't be read again isn't written, and what was there stays", function()
    local at = folder()
    local text = ("x"):rep(5.1e7)                          -- plain values stand in the header
    fails("which can have 100000000", tycho.save, at .. "/a.safetensors", {text = text})
    local m = tycho.checkpoint.Manager {dir = at .. "/c", keep = 1}
    m:save(1, {w = tycho.ones(3, {device = "cpu"})})
    m:wait()
    local ok = pcall(function()
      m:save(2, {w = tycho.zeros(3, {device = "cpu"}), text = text})
      m:wait()
    end)
    assert.is_false(ok)
    local step, values = tycho.checkpoint.Manager({dir = at .. "/c", keep = 1}):restore_latest()
    assert.equal(1, step)
    assert.same({1, 1, 1}, values.w:totable())
  end)

  it("files of one model are replaced together", function()
    local path, cpu = folder() .. "/m.safetensors", {device = "cpu"}
    tycho.save(path, {a = tycho.ones(100, cpu), b = tycho.ones(100, cpu)}, {max_shard_size = 400})
    local bad = {a = tycho.full({100}, 2, cpu), ["b\255"] = tycho.full({100}, 2, cpu)}       -- the second one can't be written
    fails("UTF-8", tycho.save, path, bad, {max_shard_size = 400})
    local back = tycho.load(path .. ".index.json", cpu)
    assert.equal(1, back.a:max():item())
    assert.equal(1, back.b:max():item())
    tycho.save(path, {a = tycho.full({100}, 3, cpu), b = tycho.full({100}, 3, cpu)}, {max_shard_size = 400})
    assert.equal(3, tycho.load(path .. ".index.json", cpu).b:max():item())
  end)

  it("a tensor without a name is saved beside one named as it would be", function()
    local path = helper.folder() .. "/unnamed"
    tycho.save(path, {[""] = tycho.ones(1), tensor = tycho.zeros(2)})
    local back = tycho.load(path)
    assert.same({1}, back[""]:totable())
    assert.same({0, 0}, back.tensor:totable())
  end)

  it("files never get names they can't hold", function()
    fails("zero byte", tycho.save, os.tmpname(), {["a\0b"] = tycho.ones(1)})
  end)

  it("a traced module's file is told from others", function()
    local path = folder() .. "/t.safetensors"
    tycho.jit.trace(tycho.nn.Linear(2, 2), tycho.ones(1, 2)):save(path)
    fails("this is a traced module's file: read it with tycho.jit.load", tycho.load, path)
  end)
end)
