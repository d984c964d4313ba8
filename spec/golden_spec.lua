-- Every op against PyTorch: the op table says what there is, spec/make_golden.py what it must give. Each case runs with its
-- operands in every memory layout, expanded ones too; float64 cases are also checked by finite differences, to second order.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local functional = require "tycho.functional"

-- Ops without golden values, each for a reason.
local elsewhere = {
  rand = "random_spec", randn = "random_spec", randint = "random_spec", randperm = "random_spec", uniform = "random_spec", normal = "random_spec",
  bernoulli = "random_spec", exponential = "random_spec", multinomial = "random_spec", randint_like = "random_spec", gumbel_softmax = "random_spec", rand_like = "random_spec", randn_like = "random_spec", empty_like = "its elements are anything",
  svd_lowrank = "linalg_spec", pca_lowrank = "linalg_spec", copy = "tensor_spec", fill = "tensor_spec", ["linalg.cross"] = "samples_spec",
  as_strided_scatter = "users_tensors_spec", feature_alpha_dropout = "users_modules_spec", nonzero_static = "users_tensors_spec",
}
-- Internal ops that users reach by another name.
local also = {"index", "max_dim", "min_dim"}

local compared = 0
local function close(...)
  compared = compared + 1
  return helper.close(...)
end

local names = {}
functional.all()
for _, op in ipairs(core.op_table()) do if op.domain ~= "internal" then names[#names + 1] = op.name end end
for _, f in ipairs(functional.signatures) do names[#names + 1] = f.name end
for _, n in ipairs(also) do names[#names + 1] = n end

local function laid_out(name, case, layout)
  if (name == "view" or name == "view_as") and (layout == "transposed" or layout == "strided") then return nil end   -- refused: tensor_spec
  local inputs, changed = {}, false
  for k = 1, case.tensors do
    local x = case.tensor("in", k)
    local y = helper.layouts[layout](x)
    changed = changed or (y and y ~= x)
    inputs[k] = y or x
  end
  return (changed or layout == "contiguous") and inputs or nil
end

describe("golden", function()
  for _, name in ipairs(names) do
    if not elsewhere[name] then
      it(name, function()
        local cases = helper.golden(name)
        assert.is_truthy(cases, name .. " has no golden file: run make golden")
        for _, case in ipairs(cases) do
          for layout in pairs(helper.layouts) do
            local inputs = laid_out(name, case, layout)
            if inputs then
              local what = ("%s, case %d, %s"):format(name, case.number, layout)
              local leaves = {}
              for k, x in ipairs(inputs) do
                if case.grad then
                  if x.dtype == "float64" or x.dtype == "float32" then x = x:detach():requires_grad_() end
                end
                leaves[k] = x
              end
              local out = helper.run(name, case, leaves)
              assert.equal(case.outs, #out, what .. ": number of results")
              local roots, gouts = {}, {}
              for j = 1, case.outs do
                local expected = case.tensor("out", j)
                if expected.dtype ~= out[j].dtype and (name == "empty") then expected = out[j] end
                -- on a GPU, whose sums are of float32 to the end: of many numbers whose sum is small, the largest partial sum says what rounding may do
                local least = nil
                if helper.device ~= "cpu" and (name == "sum" or name == "mean") and expected.dtype == "float32" and leaves[1]:numel() > 0 then
                  local count = name == "mean" and leaves[1]:numel() / math.max(expected:numel(), 1) or 1
                  least = 2 ^ -22 / 2e-5 * leaves[1]:detach():double():norm():item() / count
                end
                -- PyTorch's CPU rounds a number to 16 bits before it subtracts it from such
                if name == "sub" and expected.dtype == "float16" then least = 1 end
                close(out[j], expected, what, nil, least)
                if case.tensor("gout", j) and expected:numel() > 0 then roots[#roots + 1], gouts[#gouts + 1] = out[j], case.tensor("gout", j) end
              end
              if case.grad and #roots > 0 then
                local wanted = {}
                for i, k in ipairs(case.grad) do wanted[i] = leaves[k] end
                if #wanted > 0 then
                  local grads = tycho.grad(roots, wanted, {grad_outputs = gouts, allow_unused = true})
                  for i, k in ipairs(case.grad) do
                    assert.is_truthy(grads[i], what .. ": no gradient for operand " .. k)
                    close(grads[i], case.tensor("grad", k), what .. ", gradient of operand " .. k, grads[i].dtype == "float32" and 1e-4 or nil)
                  end
                end
              end
            end
          end
        end
      end)
      local expandable, checkable = {}, {}             -- cases that the next two have something to say about
      for _, case in ipairs(helper.golden(name) or {}) do
        for k = 1, case.tensors do
          local x = case.tensor("in", k)
          if x:dim() > 0 and x:size(1) > 1 and name ~= "view" and name ~= "view_as" and expandable[#expandable] ~= case then
            expandable[#expandable + 1] = case
          end
        end
        local n = case.check and case.grad and #case.grad > 0 and case.tensor("in", case.grad[1]):numel() or 0
        if n > 0 and n <= 130 then checkable[#checkable + 1] = case end
      end
      if #expandable > 0 then it(name .. " of expanded operands", function()   -- must give what it gives for their copies
        for _, case in ipairs(expandable) do
          local expanded, copies = {}, {}
          for k = 1, case.tensors do
            local x = case.tensor("in", k)
            if x:dim() > 0 and x:size(1) > 1 then x = x:narrow(1, 1, 1):expand(x.shape) end
            expanded[k], copies[k] = x, x:clone({memory_format = "contiguous"})
          end
          local ok, got = pcall(helper.run, name, case, expanded)
          local ok2, want = pcall(helper.run, name, case, copies)
          assert.equal(ok2, ok, tostring(got))
          if not ok then assert.equal(want, got) end
          for j = 1, ok and #want or 0 do close(got[j], want[j], name .. ", case " .. case.number) end
        end
      end) end
      if #checkable > 0 then it(name .. " by differences", function()
        for _, case in ipairs(checkable) do
          local inputs, free, elements = {}, {}, 0
          for k = 1, case.tensors do inputs[k] = case.tensor("in", k):detach() end
          for _, k in ipairs(case.grad) do
            inputs[k] = inputs[k]:clone():requires_grad_()
            free[#free + 1], elements = inputs[k], elements + inputs[k]:numel()
          end
          local function fn() return unpack(helper.run(name, case, inputs)) end
          assert.is_true(tycho.autograd.gradcheck(fn, free))
          -- on the simulated GPU differences of many elements are the CPU's to take
          if not helper.simulated or elements <= 40 then assert.is_true(tycho.autograd.gradgradcheck(fn, free)) end
        end
      end) end
    end
  end
  if helper.device == "cpu" then it("has made thousands of comparisons", function() assert.is_true(compared > 4000, compared .. " comparisons") end) end
end)
