-- Every function with golden values, compiled, its gradients taken outside: to the bit what it gives without compile, in the calls that are
-- recorded, replayed, whose results are used in part, and whose gradients have gradients.
local tycho = require "tycho"
local core = require "tycho.core"
local functional = require "tycho.functional"
local helper = require "spec.helper"

-- A round's values: results, gradients, and, where second, the gradients of the sum of their squares.
local function round(fn, name, case, i)
  local inputs, leaves, roots, given, out = {}, {}, {}, {}, {}
  for k = 1, case.tensors do inputs[k] = case.tensor("in", k) end
  for n, k in ipairs(case.grad) do
    inputs[k] = inputs[k]:detach():clone():requires_grad_()
    leaves[n] = inputs[k]
  end
  local function note(list)
    for n = 1, #leaves do out[#out + 1] = list[n] and list[n]:detach() or "none" end
  end
  tycho.manual_seed(i)
  for k, y in ipairs {fn(name, case, inputs)} do
    out[#out + 1] = y:detach()
    local g = case.tensor("gout", k)
    if g and y.requires_grad and y:numel() > 0 and (i ~= 3 or #roots == 0) then
      roots[#roots + 1], given[#given + 1] = y, g:to(y.dtype)
    end
  end
  if #roots == 0 then return out end
  local second = i == 4
  local grads, sum = tycho.grad(roots, leaves, {grad_outputs = given, allow_unused = true, create_graph = second}), nil
  note(grads)
  for n = 1, second and #leaves or 0 do
    if grads[n] and grads[n].requires_grad then sum = (sum or 0) + (grads[n] * grads[n]):sum() end
  end
  if sum then note(tycho.grad({sum}, leaves, {allow_unused = true})) end
  return out
end

local exact = helper.device == "cpu" and 0 or nil        -- a GPU adds up what meets in one place in any order

describe("compile, backward from outside, of golden cases", function()
  local compiled = 0
  local function compare(name, case)
    local function plain(_, _, inputs) return unpack(helper.run(name, case, inputs)) end
    local f = tycho.compile(function(...) return plain(name, case, {...}) end, {fusion = helper.device == "cpu"})
    local function by_compile(_, _, inputs) return f(unpack(inputs, 1, case.tensors)) end
    for i = 1, 4 do
      local what = ("%s, case %d, call %d"):format(name, case.number, i)
      local ok, want = pcall(round, plain, name, case, i)
      local same, got = pcall(round, by_compile, name, case, i)
      assert.equal(ok, same, what .. ": " .. tostring(ok and got or want))
      for k, x in ipairs(ok and want or {}) do
        if core.is_tensor(x) then helper.close(got[k], x, ("%s, value %d"):format(what, k), exact)
        else assert.equal(x, got[k], what) end
      end
    end
    for _, way in ipairs(f:report()) do compiled = compiled + (way.compiled and way.calls or 0) end
  end
  local names = {}
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
