-- Compiled functions beside other streams: what a stream has been given to read stays as it is until it has read it, as without compile.
-- On a CPU there are no streams.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn = tycho.nn
if helper.device == "cpu" then return end

describe("compile, beside another stream,", function()
  local N = helper.simulated and 40000 or 4000000
  -- A step that leaves 3 x in w.grad for each element; reads what a side stream makes of the gradient, which it gets by `order`.
  local function run(compile, order)
    local w, side, main = nn.Parameter(tycho.zeros(N)), tycho.cuda.Stream(), tycho.cuda.current_stream()
    local step = function(x)
      w.grad = nil
      ((w + 1) * x * 3):sum():backward()
    end
    local f, sums = compile and tycho.compile(step) or step, {}
    for k = 1, 6 do
      f(tycho.full({N}, k))
      local g = w.grad
      if order == "before" then                          -- the side stream has waited when the next call moves the gradient
        side:wait_stream(main)
        f(tycho.full({N}, 100 + k))
      else side:wait_stream(main) end
      local sum = tycho.cuda.stream(side, function()
        local slow = g
        for _ = 1, 8 do slow = slow + g end
        return (slow / 9):mean()
      end)
      if order == "after" then g = nil f(tycho.full({N}, 100 + k)) end
      main:wait_stream(side)
      sums[k] = sum:item()
    end
    return sums
  end
  for _, order in ipairs {"before", "after"} do
    it("gives it the gradient that it was to read: the next call comes " .. order, function()
      local want = {}
      for k = 1, 6 do want[k] = 3 * k end
      for _, compile in ipairs {false, true} do
        for k, sum in ipairs(run(compile, order)) do assert.is_true(math.abs(sum - want[k]) < 1e-3, ("call %d: %g"):format(k, sum)) end
      end
    end)
  end
end)

describe("a compiled function", function()
  it("may be called on two streams by turns, without a wait between the calls", function()
    local N = helper.simulated and 40000 or 2000000
    local f = tycho.compile(function(x)
      for _ = 1, 6 do x = x:sort(1) + 1 end
      return x:mean(), x * 2
    end)
    local streams, main, given, means, doubles = {tycho.cuda.Stream(), tycho.cuda.Stream()}, tycho.cuda.current_stream(), {}, {}, {}
    for k = 1, 12 do given[k] = tycho.full({N}, k) end
    for k = 1, 12 do
      local s = streams[k % 2 + 1]
      if k < 3 then s:wait_stream(main) end
      tycho.cuda.stream(s, function() means[k], doubles[k] = f(given[k]) end)
    end
    for i = 1, 2 do main:wait_stream(streams[i]) end
    assert.is_true(helper.compiled(f))
    for k = 1, 12 do
      assert.equal(k + 6, means[k]:item(), "call " .. k)
      assert.equal(2 * (k + 6), doubles[k]:min():item(), "call " .. k)
    end
  end)
end)
