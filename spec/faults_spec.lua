-- Failures of the CUDA runtime: whichever call of a training step fails, there is an error or (an allocation was tried again) the right
-- result, nothing leaks, and the next step is right. On the simulated GPU.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn = tycho.nn

local path = os.getenv("TYCHO_CUDA_LIBRARY")
local ffi = require "ffi"
pcall(ffi.cdef, "void sim_fail(long n, int error); bool sim_failing(void); long sim_calls(void);")
local sim = path and helper.device ~= "cpu" and ffi.load(path)
local simulated = sim and pcall(function() return sim.sim_calls end)

if simulated then
  describe("failing calls of the runtime", function()
    it("end in an error or in the right result, and leave all as it was", function()
      tycho.manual_seed(5)
      local net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.3), nn.Linear(36, 8), nn.GELU(), nn.Linear(8, 5))
      local opt = tycho.optim.AdamW(net:parameters(), {lr = 0.01})
      local x, y = tycho.randn(6, 1, 8, 8), tycho.randint(1, 5, {6})
      local side = tycho.cuda.Stream()
      local function step()
        opt:zero_grad()
        side:wait_stream(tycho.cuda.current_stream())
        local z = tycho.cuda.stream(side, function() return x * 1 end)
        tycho.cuda.current_stream():wait_stream(side)
        local loss = tycho.cross_entropy(net(z), y)
        loss:backward()
        nn.utils.clip_grad_norm_(net:parameters(), 1)
        opt:step()
        return loss:item()
      end
      step()
      local start = {}
      for k, v in pairs(net:state_dict()) do start[k] = v:cpu():clone() end
      local copy = require("tycho.saving").copied
      local state = copy(opt:state_dict())
      local function again()
        net:load_state_dict(start)
        opt:load_state_dict(copy(state))
        tycho.manual_seed(9)
      end
      local function settled()
        opt:zero_grad()
        local now, equal = nil, 0
        jit.flush()                                                -- a compiled trace keeps what other specs have left
        -- which may take several collections, some of which free no device memory
        repeat
          collectgarbage() collectgarbage()
          tycho.cuda.synchronize()
          local bytes = tycho.cuda.memory_allocated()
          equal, now = bytes == now and equal + 1 or 0, bytes
        until equal == 5
        return now
      end
      again()
      local want = step()
      local weights = {}
      for k, v in pairs(net:state_dict()) do weights[k] = v:cpu():clone() end
      local held = settled()
      local n, errors, right = 1, 0, 0
      while true do
        again()
        if n % 3 == 0 then tycho.cuda.empty_cache() end            -- else few calls allocate
        sim.sim_fail(n, 2)
        local ok, loss = pcall(step)
        local done = sim.sim_failing()
        sim.sim_fail(0, 0)
        if ok then
          right = right + 1
          assert.is_true(math.abs(loss - want) < 1e-6, ("call %d fails, nothing is said, and the loss is %g, not %g"):format(n, loss, want))
          for k, v in pairs(net:state_dict()) do helper.close(v, weights[k], ("call %d fails, nothing is said: %s"):format(n, k), 1e-6) end
        else
          errors = errors + 1
          assert.equal("string", type(loss))
          assert.is_truthy(loss:find("failed on cuda", 1, true) or loss:find("out of memory", 1, true), loss)
        end
        if done then break end
        again()
        assert.is_true(math.abs(step() - want) < 1e-6, "the step after call " .. n .. " failed")
        assert.equal(held, settled(), "bytes held after call " .. n .. " failed")
        n = n + 1
      end
      assert.is_true(n > 40 and errors > 35, ("%d calls, %d errors, %d right"):format(n, errors, right))
    end)

    it("while a stream is made leave no half-made one behind", function()
      local ones, failed = tycho.ones(200000), 0
      for n = 1, 5 do
        local held = {}
        collectgarbage()
        collectgarbage "stop"
        repeat                                                     -- until none is left from before
          local calls = sim.sim_calls()
          held[#held + 1] = tycho.cuda.Stream()
        until sim.sim_calls() > calls
        sim.sim_fail(n, 2)
        local ok = pcall(tycho.cuda.Stream)
        sim.sim_fail(0, 0)
        collectgarbage "restart"
        failed = failed + (ok and 0 or 1)
        local s = tycho.cuda.Stream()
        s:wait_stream(tycho.cuda.current_stream())
        assert.equal(200000, tycho.cuda.stream(s, function() return ones:sum():item() end), "call " .. n)
      end
      assert.is_true(failed > 1, failed .. " failed")
    end)

    it("that end the device's use are not taken for a lack of memory", function()
      tycho.cuda.empty_cache()
      sim.sim_fail(-1, 700)
      local ok, err = pcall(tycho.zeros, 3000, 3000)
      sim.sim_fail(0, 0)
      assert.is_false(ok)
      assert.is_truthy(err:find("but the device fails", 1, true) and err:find("must restart", 1, true), err)
      assert.equal(9000000, tycho.ones(3000, 3000):sum():item())
    end)

    -- without a cache a tensor's memory is the first call
    if os.getenv "TYCHO_CUDA_CACHE" ~= "0" then
      it("that end the device's use say so, and leave the CPU's tensors usable", function()
        local x, y = tycho.ones(4), tycho.ones(4, {device = "cpu"})
        sim.sim_fail(1, 700)                                         -- cudaErrorIllegalAddress
        local ok, err = pcall(function() return x * 2 end)
        sim.sim_fail(0, 0)
        assert.is_false(ok)
        assert.is_truthy(err:find("mul failed on cuda:0", 1, true))
        assert.is_truthy(err:find("this process can't use the device any more and must restart; tensors on the cpu stay usable", 1, true))
        helper.close(y * 2, tycho.full({4}, 2, {device = "cpu"}))
      end)
    end
  end)
end
