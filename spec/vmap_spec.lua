-- func.vmap beside a loop over the examples: PyTorch's own sample calls (samples_spec.lua) with their operands mapped, and what it is for.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local func, nn, vmap = tycho.func, tycho.nn, tycho.func.vmap
local D = helper.device

-- What they do depends on values, or they have a backward of their own.
local UNMAPPED = {masked_scatter = true, equal = true, allclose = true, nonzero = true, unique_consecutive = true, argwhere = true,
  masked_select = true, histogram = true, histc = true, quantile = "tensor", nanquantile = "tensor", unique = true,
  repeat_interleave = "tensor", index_put = "mask", ["nn.functional.one_hot"] = "sized", ["linalg.pinv"] = true, pinverse = true,
  ["nn.functional.batch_norm"] = "statistics", ["nn.functional.instance_norm"] = "statistics"}
local REFUSALS = {"is mapped by vmap", "the size of the result depends", "can't hold different values"}

-- fn(...) for each of the three examples in the mapped tensors among xs, stacked.
local function one_by_one(fn, xs, mapped)
  local outs = {}
  for b = 1, 3 do
    local args = {}
    for k, x in ipairs(xs) do args[k] = mapped[k] and x:select(1, b) or x end
    for j, y in ipairs {fn(unpack(args))} do
      outs[j] = outs[j] or {}
      outs[j][b] = y
    end
  end
  for j, list in ipairs(outs) do outs[j] = core.is_tensor(list[1]) and tycho.stack(list, 1) or list[1] end
  return outs
end

local function gradients(outs, weights, leaves)
  local roots, w = {}, {}
  for j, y in ipairs(outs) do
    if core.is_tensor(y) and y.requires_grad then roots[#roots + 1], w[#w + 1] = y, weights[j] end
  end
  if #roots == 0 or #leaves == 0 then return {} end
  return tycho.grad(roots, leaves, {grad_outputs = w, materialize_grads = true})
end

describe("vmap of PyTorch's samples", function()
  local by_name, names = {}, {}
  for _, case in ipairs(helper.golden "samples") do
    if case.tensors > 0 then
      if not by_name[case.name] then names[#names + 1], by_name[case.name] = case.name, {} end
      table.insert(by_name[case.name], case)
    end
  end
  for _, name in ipairs(names) do
    it(name, function()
      for _, case in ipairs(by_name[name]) do
        local function fn(...) return unpack(helper.run(helper.named(name), case, {...})) end
        for way, is_mapped in pairs {all = function() return true end, first = function(k) return k == 1 end,
          rest = function(k) return k > 1 end} do
          local xs, mapped, dims, leaves, any = {}, {}, {}, {}, false
          for k = 1, case.tensors do
            local x = case.tensor("in", k)
            mapped[k], dims[k] = is_mapped(k), false
            any = any or mapped[k]
            if mapped[k] then
              x, dims[k] = tycho.stack({x, x:dim() > 0 and x:flip(1) or x, x}, 1), 1
              if x:is_floating_point() then
                x = x:detach():requires_grad_()
                leaves[#leaves + 1] = x
              end
            end
            xs[k] = x
          end
          local what = ("case %d, mapped: %s"):format(case.number, way)
          local possible, wanted = pcall(one_by_one, fn, xs, mapped)
          -- of a place that several elements are written to, one of them stays: indices of other elements make such
          if any and possible and (way == "all" or not name:find "max_unpool") then
            local ok, got = pcall(function() return {vmap(fn, dims)(unpack(xs))} end)
            if not ok then
              local refused = false
              for _, text in ipairs(REFUSALS) do refused = refused or tostring(got):find(text, 1, true) end
              assert.is_truthy(refused and UNMAPPED[name], what .. ": " .. tostring(got))
            else
              local weights = {}
              for j, y in ipairs(wanted) do
                if core.is_tensor(y) then
                  helper.close(got[j], y, ("%s, result %d"):format(what, j))
                  assert.equal(y.requires_grad, got[j].requires_grad, what)
                  if y:is_floating_point() then weights[j] = tycho.randn_like(y) end
                end
              end
              local derived, expected = pcall(gradients, wanted, weights, leaves)
              local g = derived and gradients(got, weights, leaves)
              for i, w in ipairs(derived and expected or {}) do helper.close(g[i], w, ("%s, gradient %d"):format(what, i), nil, 10) end
            end
          end
        end
      end
    end)
  end
end)

describe("vmap", function()
  local x, y
  before_each(function()
    tycho.manual_seed(1)
    x, y = tycho.randn(5, 3, {device = D}), tycho.randn(5, 3, {device = D})
  end)

  it("says which result differs from example to example where out_dims leave it out", function()
    local function two(a) return a + 1, {a * 2, y} end
    local why = "result 2%[1%] differs from example to example: out_dims must give the dim for examples"
    for _, dims in ipairs {{1}, {1, false}, {1, {false, 1}}} do
      assert.error_matches(function() tycho.func.vmap(two, 1, dims)(x) end, why)
    end
    local _, list = tycho.func.vmap(two, 1, {1, {1, false}})(x)
    assert.same({{5, 3}, {5, 3}}, {list[1]:size(), list[2]:size()})
    _, list = tycho.func.vmap(two, {in_dims = 1, out_dims = {1, {1, false}}, chunk_size = 2})(x)
    assert.same({{5, 3}, {5, 3}}, {list[1]:size(), list[2]:size()})
    assert.equal(y, tycho.func.vmap(function() return y end, 1, false)(x))
    local outer = tycho.func.vmap(function(a) return (tycho.func.vmap(function() return a end, 1, false)(y)) end)
    helper.close(outer(x), x, "the outer vmap's example is the same for all of the inner one")
  end)
  local function rows(fn, n)
    local list = {}
    for i = 1, n or 5 do list[i] = fn(i) end
    return tycho.stack(list)
  end

  it("takes and gives the examples along any dim, of tables too", function()
    helper.close(vmap(tycho.dot)(x, y), (x * y):sum(2))
    helper.close(vmap(tycho.dot, 2)(x, y), (x * y):sum(1))
    helper.close(vmap(tycho.mul, {1, false}, -1)(x, y[1]), (x * y[1]):t())
    local out = vmap(function(t, k) return {sum = t.a + t.b[1], k = k} end, {{a = 1, b = {2}}, false}, {{sum = 2}})({a = x, b = {y:t()}}, 7)
    helper.close(out.sum, (x + y):t())
    assert.equal(7, out.k)
    helper.close(vmap(function() return y end)(x), y:expand(5, 5, 3))
    assert.same({0, 3}, {unpack(vmap(function(a) return a * 2 end)(tycho.zeros(0, 3, {device = D})).shape)})
  end)

  it("sets parts of what was made like an example", function()
    local pair = tycho.range(1, 8):view(2, 4)
    for _, make in ipairs {tycho.zeros_like, function(t) return t:new_zeros(4) end, function(t) return t:new_full({4}, 0) end,
        function(t) return tycho.full_like(t, 0) end, function(t) return tycho.empty_like(t):zero_() end} do
      local function parts(t)
        local made = make(t)
        made[{{1, 2}}] = t[{{3, 4}}]
        made[4] = t:sum()
        return made
      end
      assert.same({{3, 4, 0, 10}, {7, 8, 0, 26}}, vmap(parts)(pair):totable())
      assert.same({{1, 1, 2, 2}, {1, 1, 2, 2}}, vmap(tycho.func.grad(function(t) return parts(t):sum() end))(pair):totable())
    end
  end)

  it("makes tensors like an outer example that inner ones can set", function()
    local outer, inner = tycho.randn(2, 4), tycho.randn(3, 3)
    local got = vmap(function(a) return vmap(function(b)
      local made = a:new_zeros(3)
      made:copy_(b)
      return made
    end)(inner) end)(outer)
    helper.close(got, inner:expand(2, 3, 3))
  end)

  it("goes through an autograd.Function's own backward, as through the ops that it stands for", function()
    local Exp = tycho.autograd.Function {
      forward = function(ctx, t)
        local e = t:exp()
        ctx:save_for_backward(e)
        return e
      end,
      backward = function(ctx, g) return g * ctx:saved_tensors() end}
    local Times = tycho.autograd.Function {
      forward = function(a, b, k) return a * b * k, a end,
      setup_context = function(ctx, inputs)
        ctx:save_for_backward(inputs[1], inputs[2])
        ctx.k = inputs[3]
      end,
      backward = function(ctx, g, h)
        local a, b = ctx:saved_tensors()
        return g * b * ctx.k + h, g * a * ctx.k
      end}
    local z, w = tycho.randn(3, 2, {dtype = "float64"}), tycho.randn(2, {dtype = "float64"})
    local function by_functions(t)
      local product, same = Times(Exp(t * t), w, 3)
      return (product * same):sum()
    end
    local function by_ops(t) return ((t * t):exp() ^ 2 * w * 3):sum() end
    for _, take in ipairs {func.grad, func.hessian, function(f) return function(t) return (func.jacrev(func.grad(f))(t)) end end} do
      helper.close(vmap(take(by_functions))(z), vmap(take(by_ops))(z))
      helper.close(vmap(vmap(take(function(t) return by_functions(t * tycho.ones(2, {dtype = "float64"})) end)))(z:unsqueeze(2)),
        vmap(take(by_ops))(z):unsqueeze(2))
    end
    local a, b = z:clone():requires_grad_(), z:clone():requires_grad_()
    local of_w = {}
    for i, f in ipairs {by_functions, by_ops} do     -- backward outside of the vmap, by a tensor that isn't mapped as well
      local leaf = ({a, b})[i]
      w.grad = nil
      w:requires_grad_()
      local sums = vmap(f)(leaf)
      collectgarbage() collectgarbage()
      sums:sum():backward()
      of_w[i] = w.grad
    end
    helper.close(a.grad, b.grad)
    helper.close(of_w[1], of_w[2])
    local Scaled = tycho.autograd.Function {             -- it saves what isn't mapped, and holds an example in a field
      forward = function(ctx, t)
        local k = tycho.tensor({1, 10}, {dtype = "float64"})
        ctx:save_for_backward(k)
        ctx.t = t
        return t * t * k
      end,
      backward = function(ctx, g) return (g * ctx:saved_tensors() * ctx.t * 2):sum() end}
    local slopes = vmap(func.grad(function(t) return Scaled(t):sum() end))(tycho.tensor({1, 2, 3}, {dtype = "float64"}))
    assert.same({22, 44, 66}, slopes:totable())
    local Item = tycho.autograd.Function {
      forward = function(ctx, t, k)
        ctx.k = k:item()
        return t * ctx.k
      end,
      backward = function(ctx, g) return g * ctx.k, g:sum() * 0 + 1 end}
    local k = tycho.tensor(4, {dtype = "float64", requires_grad = true})
    vmap(function(t) return Item(t, k) end)(tycho.ones(3, {dtype = "float64"})):sum():backward()
    assert.equal(3, k.grad:item())                       -- the sum over the examples
    helper.fails("backward returned 2 gradients, forward got 1 argument", function()
      local Two = tycho.autograd.Function {forward = function(_, t) return t * 2 end, backward = function(_, g) return g, g end}
      vmap(Two)(tycho.ones(2):requires_grad_()):sum():backward()
    end)
    helper.fails("gave a gradient of shape 2 for argument 1 of shape ()", function()
      vmap(function(t) return (Times(t, w, 1)) end)(tycho.ones(3, {dtype = "float64"})):sum():backward()
    end)
    local Changes = tycho.autograd.Function {
      forward = function(ctx, t) ctx:mark_dirty(t) return t:add_(1) end, backward = function(_, g) return g end}
    helper.fails("mark_dirty: within vmap", vmap(function(t) return Changes(t * w) end), z)
    assert.same({2, 2, 2}, vmap(function(t) return Exp(t * 0):sum() end)(z):totable())
  end)

  it("nests", function()
    helper.close(vmap(vmap(tycho.mul, {false, 1}), {1, false})(x, y), x:unsqueeze(2) * y)
    helper.close(vmap(vmap(tycho.dot, {1, false}), {false, 1})(x, y), y:matmul(x:t()))
    helper.close(vmap(func.grad(function(a) return vmap(function(e) return e ^ 3 end)(a):sum() end))(x), 3 * x ^ 2)
  end)

  it("gives each example's gradients, also by what isn't mapped", function()
    local w = tycho.randn(3, {device = D})
    local function loss(a, b) return (a * b):tanh():sum() end
    for n = 1, 2 do
      local one = func.grad(loss, n)
      helper.close(vmap(one, {1, false})(x, w), rows(function(i) return one(x[i], w) end))
    end
    local both, value = vmap(func.grad_and_value(loss), {1, false})(x, w)
    helper.close(both, rows(function(i) return func.grad(loss)(x[i], w) end))
    helper.close(value, rows(function(i) return loss(x[i], w) end))
    local function f(a) return (a ^ 3):sum() + a:prod() end
    helper.close(vmap(func.hessian(f))(x), rows(function(i) return func.hessian(f)(x[i]) end))
    helper.close(vmap(func.jacrev(tycho.sin))(x), tycho.diag_embed(x:cos()))
    local _, along = vmap(function(a, v) return func.jvp(tycho.sin, {a}, {v}) end)(x, y)
    helper.close(along, x:cos() * y)
    local _, pull = func.vjp(tycho.sin, x)
    helper.close(vmap(pull)(y:unsqueeze(2):expand(5, 5, 3)), rows(function(i) return pull(y[i]:expand(5, 3)) end))
  end)

  it("lets gradients through to what it takes and to what fn captures", function()
    local a, w = x:clone():requires_grad_(), tycho.randn(3, {device = D, requires_grad = true})
    vmap(function(e) return (e * w):exp():sum() end)(a):sum():backward()
    helper.close(a.grad, (x * w:detach()):exp() * w:detach())
    helper.close(w.grad, ((x * w:detach()):exp() * x):sum(1))
  end)

  it("gives a network's gradients for each sample, and runs an ensemble", function()
    local net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10)):to(D)
    local params, images, labels = {}, tycho.randn(6, 1, 8, 8, {device = D}), tycho.randint(1, 10, {6}, {device = D})
    for name, p in net:named_parameters() do params[name] = p:detach() end
    local function loss(p, a, b) return tycho.cross_entropy(func.functional_call(net, p, a:unsqueeze(1)), b:unsqueeze(1)) end
    local each = vmap(func.grad(loss), {false, 1, 1})(params, images, labels)
    for name in pairs(params) do
      helper.close(each[name], rows(function(i) return func.grad(loss)(params, images[i], labels:select(1, i))[name] end, 6), name, nil, 10)
    end
    local nets = {}
    for i = 1, 3 do nets[i] = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)):to(D):eval() end
    local stacked, buffers = func.stack_module_state(nets)
    local out = vmap(function(p, b) return func.functional_call(nets[1], {p, b}, x) end)(stacked, buffers)
    helper.close(out, rows(function(i) return nets[i](x) end, 3))
    out:sum():backward()
    nets[2](x):sum():backward()
    helper.close(stacked["0.weight"].grad[2], nets[2][1].weight.grad)
    helper.fails("item 2 must be a module", func.stack_module_state, {nets[1], 3})
    helper.fails("module 2 lacks 'bias', which module 1 has", func.stack_module_state, {nn.Linear(1, 1), nn.Linear(1, 1, false)})
    helper.fails("'bias' of module 2 has shape 1", func.stack_module_state, {nn.Linear(1, 1, false), nn.Linear(1, 1)})
    helper.fails("module 1 has 2x1 and float32", func.stack_module_state, {nn.Linear(1, 2), nn.Linear(1, 3)})
  end)

  it("draws as it is told to", function()
    local function noisy(a) return a * 0 + tycho.randn(3, {device = D}) end
    helper.fails("randn draws random numbers", function() vmap(noisy)(x) end)
    assert.is_false(core.is_mapping())
    local different, same = vmap(noisy, {randomness = "different"})(x), vmap(noisy, 1, 1, {randomness = "same"})(x)
    assert.is_false(tycho.equal(different[1], different[2]))
    helper.close(same, same[1]:expand(5, 3))
    local function drop(a) return tycho.dropout(a, {p = 0.5, training = true}) end
    local dropped = vmap(drop, {randomness = "different"})(tycho.ones(4, 100, {device = D}))
    assert.is_false(tycho.equal(dropped[1], dropped[2]))
    helper.fails("for draws that depend on mapped", function() vmap(tycho.bernoulli, {randomness = "same"})(x) end)
    for name, f in pairs {dropout = function(a) return nn.functional.dropout(a * 0 + 1) end,
        gumbel_softmax = function(a) return nn.functional.gumbel_softmax(a * 0) end} do         -- these draw for a shape, not for values
      local one = vmap(f, {randomness = "same"})(tycho.ones(3, 40, {device = D}))
      assert.is_true(one[1]:equal(one[2]) and one[1]:equal(one[3]) and one[1]:min():item() < one[1]:max():item(), name)
      local each = vmap(f, {randomness = "different"})(tycho.ones(3, 40, {device = D}))
      assert.is_false(each[1]:equal(each[2]), name)
    end
    local orders = vmap(function(a) return tycho.randperm(3, {device = D}) + a:long() * 0 end, {randomness = "different"})(x)
    helper.close((orders:sort(2)):cpu(), tycho.tensor({1, 2, 3}, {dtype = "int64", device = "cpu"}):expand(5, 3))
    local o = {randomness = "different"}
    local deep = vmap(vmap(function(a) return a + tycho.rand({}, {device = D}) end, o), o)(x * 0)
    assert.equal(15, (tycho.unique(deep)):numel())
  end)

  it("takes some examples at a time", function()
    local seen = {}
    local out, twice = vmap(function(a) seen[#seen + 1] = 1; return a:sum(), a * 2 end, 1, {1, 2}, {chunk_size = 2})(x)
    assert.equal(3, #seen)
    helper.close(out, x:sum(2))
    helper.close(twice, (x * 2):t())
  end)

  it("changes in place what is mapped, and what fn has made", function()
    local a = x:clone()
    helper.close(vmap(function(e) e:mul_(2); e[1] = 0; return e + 1 end)(a)[{ {}, 2 }], x[{ {}, 2 }] * 2 + 1)
    helper.close(a[{ {}, {2, 3} }], x[{ {}, {2, 3} }] * 2)
    helper.close(a[{ {}, 1 }], x[{ {}, 1 }] * 0)
    helper.close(vmap(function(e) local sum = tycho.zeros(3, {device = D}); for _ = 1, 3 do sum:add_(e) end return sum end)(x), x * 3)
    local outside = tycho.zeros(3, {device = D})
    helper.fails("a tensor from outside", function() vmap(function(e) return outside:add_(e) end)(x) end)
    helper.close(outside, tycho.zeros(3, {device = D}))
  end)

  it("changes what inner functions have made, by examples of all vmaps around", function()
    local ids = tycho.tensor({{1, 2}, {3, 1}}, {dtype = "int64"})
    assert.is_true(vmap(vmap(function(i) return tycho.one_hot(i, 3) end))(ids):equal(tycho.one_hot(ids, 3)))
    local a = tycho.randn(2, 2, 3, 3)
    local p, l, u = vmap(vmap(tycho.linalg.lu))(a)
    helper.close(p:matmul(l):matmul(u), a, "LU", 1e-6)
    local v, w = tycho.randn(2, 3), tycho.randn(2, 3)
    helper.close(vmap(vmap(function(a1, b1)
      local z = tycho.ones(4)
      z:add_(a1)
      z:mul_(b1)
      return z
    end))(v, w), ((v + 1) * w):unsqueeze(3):expand(2, 3, 4))
    local deep = tycho.randn(2, 3, 2)
    helper.close(vmap(vmap(vmap(function(e) return tycho.zeros(2):add_(e) end)))(deep), deep:unsqueeze(4):expand(2, 3, 2, 2))
    local o = {randomness = "different"}
    local drawn = vmap(vmap(function(e) return tycho.zeros(2):normal_() + e end, o), o)(tycho.zeros(2, 3)):flatten()
    assert.equal(12, drawn:unique():numel())
  end)

  it("leaves modules whose weights are computed before each forward as they were", function()
    local utils = nn.utils
    for _, wrap in ipairs {utils.weight_norm, utils.spectral_norm, function(m) return utils.prune.l1_unstructured(m, "weight", 0.5) end} do
      local m = wrap(nn.Linear(3, 4)):eval()
      local w = m.weight:clone()
      local params = {}
      for name, p in m:named_parameters() do params[name] = tycho.stack({p:detach(), p:detach() * 2}) end
      vmap(function(p, e) return func.functional_call(m, p, e) end, {1, false})(params, x)
      assert.is_true(m.weight:equal(w))
      m:clone()
      pcall(vmap(function(p) return func.functional_call(m, p, tycho.ones(1, 5)) end), params)        -- errs
      m(x)
      helper.close(m.weight, w, "computed again")
    end
  end)

  it("has examples without dims count as numbers", function()
    local function both(fn, a, b)
      helper.close(vmap(fn, {false, 1})(a, b), rows(function(i) return fn(a, b:select(1, i)) end, b:size(1)))
    end
    local half, big = tycho.tensor({0.001, 2}, {dtype = "float16", device = D}), tycho.tensor({1e5, 3}, {device = D})
    both(tycho.mul, half, big)
    local bytes, whole = tycho.tensor({250, 3}, {dtype = "uint8", device = D}), tycho.tensor({300, 2}, {dtype = "int64", device = D})
    both(tycho.lt, bytes, whole)
    both(tycho.add, tycho.tensor({1, 2}, {dtype = "int64", device = D}), big)
    both(function(a, b) return a:clone():add_(b) end, half, big)
    both(function(a, b) return a:masked_fill(a:gt(1), b) end, half, tycho.tensor({5, 3}, {device = D}))
  end)

  it("copies what has more leading dims of 1, and flips examples without dims, as without it", function()
    local u, z = tycho.zeros(3, 2, 4), tycho.randn(3, 1, 2, 4)
    assert.is_true(vmap(function(a, b) return a:copy_(b) end)(u:clone(), z):equal(z:squeeze(2)))
    assert.is_true(vmap(function(a, b)
      local c = a * 1
      c[{ {1, 2} }] = b
      return c
    end)(u, z):equal(z:squeeze(2)))
    assert.is_true(vmap(function(a) return (a * 1):copy_(z[1]) end)(u):equal(z[1]:expand(3, 2, 4)))
    local v = tycho.randn(3)
    assert.is_true(vmap(function(a) return a:flip(1) end)(v):equal(v))
  end)

  it("leaves its arguments as they are", function()
    local a = tycho.ones(2, 3, {device = D})
    vmap(function(e) return e:requires_grad_() * 2 end)(a)
    assert.is_false(a.requires_grad)
  end)

  it("goes with autocast, compile and traces", function()
    local w = tycho.randn(3, 4, {device = D})
    local function f(e) return (e:unsqueeze(1):matmul(w)):relu():sum() end
    local half = tycho.autocast({device = D, dtype = "bfloat16"}, vmap(function(e) return e:unsqueeze(1):matmul(w) end), x)
    assert.equal("bfloat16", half.dtype)
    local step = tycho.compile(vmap(f))
    for _ = 1, 4 do
      x = x + 1
      helper.close(step(x), vmap(f)(x))
    end
    helper.close(vmap(tycho.compile(f))(x), vmap(f)(x))
    local traced = tycho.jit.trace(vmap(f), x)
    helper.close(traced(x * 2), vmap(f)(x * 2))
  end)

  it("says what can't be", function()
    for text, f in pairs {
      ["values to be read"] = function() vmap(function(a) return a:sum():item() end)(x) end,
      ["history of its own"] = function() vmap(function(a) a:sum():backward() end)(x) end,
      ["depends on the values"] = function() vmap(function(a) return a[a:gt(0)] end)(x) end,
      ["argument 2 has 4 examples along its dim 1, argument 1 has 5"] = function() vmap(tycho.add)(x, tycho.zeros(4, {device = D})) end,
      ["dim 3 is out of range for argument 1 of shape 5x3"] = function() vmap(tycho.abs, 3)(x) end,
      ["none of the arguments"] = function() vmap(tycho.abs)(3) end,
      ["randomness must be"] = function() vmap(tycho.abs, {randomness = "some"}) end,
      ["argument 1 must be a function"] = function() vmap(3) end,
      ["chunk_size must be a whole number from 1, got 0"] = function() vmap(tycho.abs, {chunk_size = 0}) end,
      ["in_dims lists 2 arguments, the function is called with 1"] = function() vmap(tycho.abs, {1, 1})(x) end,
      ["argument 1 of shape 3"] = function() vmap(function(a) return a:matmul(tycho.zeros(2, 2, {device = D})) end)(x) end} do
      helper.fails(text, f)
    end
    local kept
    vmap(function(a) kept = a; return a end)(x)
    assert.equal("[float32 tensor of size 3: one of vmap's examples]", tostring(kept))
    helper.fails("outside of it", function() return kept + 1 end)
    helper.fails("mapped by vmap", function() return kept:totable() end)
    vmap(function(a) kept = coroutine.wrap(function() return pcall(tycho.add, a, 1) end)(); return a end)(x)
    assert.is_false(kept)                                  -- another coroutine isn't within it
    assert.is_false(core.is_mapping())
  end)

  it("sees each example's elements by as_strided", function()
    local given = tycho.randn(4, 6, {device = D})
    local function f(a) return a:as_strided({2, 3}, {2, 1}, 1):clone(), a:view(2, 3):as_strided({4}, {1}) * 2 end
    local function g(a) return (a:as_strided({2, 3}, {2, 1}, 1) ^ 2):sum() end
    local p, q = vmap(f)(given)
    for i = 1, 4 do
      local a, b = f(given[i])
      helper.close(p[i], a)
      helper.close(q[i], b)
      helper.close(vmap(func.grad(g))(given)[i], func.grad(g)(given[i]))
    end
    helper.fails("the examples must lie one after another", vmap(g), tycho.randn(4, 9, {device = D})[{{}, {1, 6}}])
    vmap(function(a) a:as_strided({3}, {2}):zero_() return a end)(given)
    assert.equal(0, given[{{}, {1, 5, 2}}]:abs():max():item())
  end)

  it("changes tensors that the function makes of nothing in compiled calls as in others", function()
    local function accumulated(row)
      local z, sum = tycho.zeros(3, {device = D}), tycho.zeros({}, {device = D})
      z:add_(row)
      for i = 1, 3 do sum:add_(row:select(1, i) * z:select(1, i)) end
      return z:clone():mul_(2), sum
    end
    local f, compiled = vmap(accumulated), tycho.compile(vmap(accumulated))
    for _ = 1, 5 do
      local given = tycho.randn(2, 3, {device = D})
      local a, b = f(given)
      local p, q = compiled(given)
      helper.close(p, a)
      helper.close(q, b)
    end
    local bias = 1                                       -- what the function does afterwards may differ from call to call
    local differing = tycho.compile(function(v) local z = f(v) return z:sum():item() > 1e9 and z or z + bias end)
    for k = 1, 5 do
      bias = k % 2
      local some = tycho.randn(2, 3, {device = D})
      helper.close(differing(some), (f(some)) + bias)
    end
    local outside = tycho.zeros(3, {device = D})
    local wrong = tycho.compile(vmap(function(row) return outside:add_(row) end))
    for _ = 1, 4 do helper.fails("a tensor from outside", wrong, tycho.randn(2, 3, {device = D})) end
  end)
end)
