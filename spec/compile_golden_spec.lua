-- Every function with golden values, compiled, of parameters that it finds, its gradients taken outside: to the bit what it gives without
-- compile, in the calls that are recorded, replayed, and whose results are used in part.
local tycho = require "tycho"
local core = require "tycho.core"
local functional = require "tycho.functional"
local helper = require "spec.helper"

-- A round's values: results and gradients of the inputs.
local function round(fn, case, inputs, i)
  local leaves, roots, given, out = {}, {}, {}, {}
  for n, k in ipairs(case.grad) do leaves[n] = inputs[k] end
  tycho.manual_seed(i)
  for k, y in ipairs {fn()} do
    out[#out + 1] = y:detach()
    local g = case.tensor("gout", k)
    if g and y.requires_grad and y:numel() > 0 and (i ~= 3 or #roots == 0) then
      roots[#roots + 1], given[#given + 1] = y, g:to(y.dtype)
    end
  end
  local grads = #roots > 0 and tycho.grad(roots, leaves, {grad_outputs = given, allow_unused = true}) or {}
  for n = 1, #leaves do out[#out + 1] = grads[n] or "none" end
  return out
end

local exact = helper.device == "cpu" and 0 or nil        -- a GPU adds up what meets in one place in any order

describe("compile, backward from outside, of golden cases", function()
  local compiled = 0
  local function compare(name, case)
    local inputs = {}
    for k = 1, case.tensors do inputs[k] = case.tensor("in", k) end
    for _, k in ipairs(case.grad) do inputs[k] = inputs[k]:detach():clone():requires_grad_() end
    local function plain() return unpack(helper.run(name, case, inputs)) end
    local f = tycho.compile(plain, {fusion = helper.device == "cpu"})
    for i = 1, 4 do
      local what = ("%s, case %d, call %d"):format(name, case.number, i)
      local ok, want = pcall(round, plain, case, inputs, i)
      local same, got = pcall(round, f, case, inputs, i)
      assert.equal(ok, same, what .. ": " .. tostring(ok and got or want))
      for k, x in ipairs(ok and want or {}) do
        if core.is_tensor(x) then helper.close(got[k], x, ("%s, value %d"):format(what, k), exact)
        else assert.equal(x, got[k], what) end
      end
    end
    for _, way in ipairs(f:report()) do compiled = compiled + (way.compiled and way.calls or 0) end
  end
  local names = {}
  functional.all()
  for _, op in ipairs(core.op_table()) do if op.domain ~= "internal" then names[#names + 1] = op.name end end
  for _, of in ipairs(functional.signatures) do names[#names + 1] = of.name end
  for _, name in ipairs(names) do
    it(name, function()
      for _, case in ipairs(helper.golden(name) or {}) do
        if case.grad and #case.grad > 0 then compare(name, case) end
      end
    end)
  end
  it("are compiled, nearly all of them", function() assert.is_true(compiled > 4000, compiled .. " compiled calls") end)
end)
