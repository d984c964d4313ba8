-- Calls from PyTorch's own tests: what its developers thought of for each operator. spec/golden_samples.py says which, and what they give.
local tycho = require "tycho"
local helper = require "spec.helper"

describe("PyTorch's samples", function()
  local by_name, names = {}, {}
  for _, case in ipairs(helper.golden "samples") do
    if not by_name[case.name] then
      names[#names + 1], by_name[case.name] = case.name, {}
    end
    table.insert(by_name[case.name], case)
  end
  for _, name in ipairs(names) do
    it(name, function()
      local fn = helper.named(name)
      for _, case in ipairs(by_name[name]) do
        for layout in pairs {contiguous = 1, transposed = not name:find "view" or nil} do
          local inputs, leaf = {}, {}
          for _, k in ipairs(case.grad or {}) do leaf[k] = true end
          for k = 1, case.tensors do
            local x = case.tensor("in", k)
            x = helper.layouts[layout](x) or x
            inputs[k] = leaf[k] and x:detach():requires_grad_() or x
          end
          local what = ("case %d, %s"):format(case.number, layout)
          local out = helper.run(fn, case, inputs)
          assert.equal(case.outs, #out, what .. ": number of results")
          local roots, gouts, wanted = {}, {}, {}
          for j = 1, case.outs do
            helper.close(out[j], case.tensor("out", j), what)
            local g = case.tensor("gout", j)
            if g then roots[#roots + 1], gouts[#gouts + 1] = out[j], g end
          end
          for i, k in ipairs(case.grad or {}) do wanted[i] = inputs[k] end
          if #wanted > 0 then
            for i, g in ipairs(tycho.grad(roots, wanted, {grad_outputs = gouts, materialize_grads = true})) do
              helper.close(g, case.tensor("grad", case.grad[i]), what .. ", gradient of operand " .. case.grad[i], nil, 1)
            end
          end
        end
      end
    end)
  end
end)
