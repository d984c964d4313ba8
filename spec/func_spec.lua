-- tycho.func's derivatives of functions, and pruning. Pruned masks as PyTorch 2.15's torch.nn.utils.prune gives them for these weights.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, func, prune = tycho.nn, tycho.func, tycho.nn.utils.prune
local fails, close = helper.fails, helper.close

describe("func", function()
  it("derives along directions of tables of tensors", function()
    local w, b, x = tycho.tensor {1, 2, 3}, tycho.tensor {0.5}, tycho.tensor {2, 0, 1}
    local function f(p, v) return (p.w * v + p.inner.b):square() end
    local at, along = {w = w, inner = {b = b}}, {w = tycho.tensor {1, 0, 1}, inner = {b = tycho.tensor {2}}}
    local y, slope = func.jvp(f, {at, x}, {along, tycho.zeros(3)})
    local inner = w * x + b
    close(y, inner:square(), "value", 1e-6)
    close(slope, inner * 2 * (along.w * x + along.inner.b), "slope", 1e-6)
    local same, push = func.linearize(f, at, x)
    close(same, y, "linearize's value", 0)
    close(push(along, tycho.zeros(3)), slope, "linearize's slope", 1e-6)
    helper.fails("jvp: argument 3 (tangents) must have a tensor for each tensor of the inputs", func.jvp, f, {at, x}, {{w = w}, x})
    helper.fails("jvp: argument 3 (tangents) must be as many as the 2 inputs, got 3", func.jvp, f, {at, x}, {along, x, x})
    helper.fails("jvp: input 1 must be a floating tensor or a table of floating tensors, got 3", func.jvp, f, {{w = 3}}, {{w = w}})
  end)

  local x = tycho.tensor {1, 2, 3}
  local function cube(t) return (t * t * t):sum() end

  it("takes arguments by name, several of them, and tables", function()
    local a, b = tycho.tensor {1, 2}, tycho.tensor {3, 4}
    local function f(u, v) return (u * u * v):sum() end
    close(func.grad(f, {argnums = 2})(a, b), tycho.tensor {1, 4}, "by name", 0)
    local function product(u, v) return u * v end
    close(func.jacrev(product, {argnums = 2})(a, b), tycho.tensor {{1, 0}, {0, 2}}, "by name", 0)
    local slope, sum, what = func.jacrev(function(v) return v * v, v:sum(), "more" end, 1, {has_aux = true, chunk_size = 1})(b)
    close(slope, (2 * b):diag(), "with results that have none", 0)
    close(sum, b:sum(), "such a one", 0)
    assert.equal("more", what)
    local first, second = func.jacfwd(product, {1, 2})(a, b)
    close(first, tycho.tensor {{3, 0}, {0, 4}}, "first", 0)
    close(second, tycho.tensor {{1, 0}, {0, 2}}, "second", 0)
    local j = func.jacrev(function(p) return p.w * 2 + p.b end)({w = a, b = b})
    close(j.w, tycho.eye(2) * 2, "table", 0)
    close(j.b, tycho.eye(2), "table", 0)
    local h = func.hessian(function(p) return f(p.w, p.b) end)({w = a, b = b})
    close(h.w.w, tycho.tensor {{6, 0}, {0, 8}}, "table of tables", 0)
    close(h.b.w, tycho.tensor {{2, 0}, {0, 4}}, "table of tables", 0)
    local top = {func.hessian(f, {1, 2})(a, b)}
    close(top[2][1], tycho.tensor {{2, 0}, {0, 4}}, "list of lists", 0)
    fails("jacrev: argument 1 must be a floating tensor or a table of floating tensors, got 3", func.jacrev(f), 3, 4)
  end)

  it("gives gradients, values, Jacobians and second derivatives", function()
    close(func.grad(cube)(x), tycho.tensor {3, 12, 27}, "gradient", 1e-6)
    close(func.grad(function(t) return func.grad(cube)(t):sum() end)(x), tycho.tensor {6, 12, 18}, "twice", 1e-6)
    local g, v = func.grad_and_value(cube)(x)
    close(g, tycho.tensor {3, 12, 27}, "gradient", 1e-6)
    assert.equal(36, v:item())
    close(func.hessian(cube)(x), tycho.diag(tycho.tensor {6, 12, 18}), "hessian", 1e-6)
    close(func.jacrev(function(a, b) return a * b end, 2)(x, x + 1), tycho.diag(x), "jacobian", 1e-6)
    local a, b = func.grad(function(s, t) return (s * t):sum() end, {1, 2})(x, x * 2)
    close(a, x * 2, "first", 1e-6)
    close(b, x, "second", 1e-6)
    local y, pull = func.vjp(function(s, t) return s * t end, x, x + 1)
    assert.is_false(y.requires_grad)
    a, b = pull(tycho.tensor {1, 0, 2})
    close(a, tycho.tensor {2, 0, 8}, "first", 1e-6)
    close(b, tycho.tensor {1, 0, 6}, "second", 1e-6)
  end)

  it("takes tables of parameters, hands on what else the function gives, and keeps a history where there is one", function()
    local net, params = nn.Linear(3, 2), {}
    for n, p in net:named_parameters() do params[n] = p:detach() end
    local function loss(p, t) return (func.functional_call(net, p, t) * 2):sum(), t end
    local g, t = func.grad(loss)(params, tycho.ones(4, 3))
    close(g.weight, tycho.full({2, 3}, 8), "weight", 1e-6)
    close(g.bias, tycho.full({2}, 8), "bias", 1e-6)
    assert.equal("4x3", tostring(t.shape))
    local y = func.functional_call(net, params, tycho.ones(4, 3))
    assert.is_true(y:equal(func.functional_call(net, {{weight = params.weight}, {bias = params.bias}}, tycho.ones(4, 3))))
    fails("'bias' is given twice", func.functional_call, net, {params, {bias = params.bias}}, x)
    local w = tycho.tensor({1.0}):requires_grad_()                 -- through a step of an inner training
    local inner = func.grad(function(s) return ((s - 3) * (s - 3)):sum() end)(w)
    local after = w - inner * 0.1 - 2
    (after * after):sum():backward()
    close(w.grad, tycho.tensor {-0.96}, "through the step", 1e-6)
  end)

  it("linearizes a function at one place, for which it is called once", function()
    local calls = 0
    local function f(a, b)
      calls = calls + 1
      return (a * b):sin(), a:sum()
    end
    local a, b = tycho.randn(3), tycho.randn(3)
    local y, z, push = func.linearize(f, a, b)
    close(y, (a * b):sin())
    close(z, a:sum())
    for _ = 1, 3 do
      local s, t = tycho.randn(3), tycho.randn(3)
      local along, of_sum = push(s, t)
      close(along, (a * b):cos() * (a * t + b * s))
      close(of_sum, s:sum())
      assert.is_false(along.requires_grad)
    end
    assert.equal(1, calls)
    local w = tycho.randn(3):requires_grad_()
    local _, along = func.linearize(function(p) return p * w end, a)
    close(tycho.grad(along(b):sum(), w), b)
  end)

  it("gives what else the function gives, without derivatives, with has_aux", function()
    local function f(s, t) return s * t, s + 1, "more" end
    local a, b = tycho.tensor {1, 2}, tycho.tensor {3, 4}
    local y, pull, plus, text = func.vjp(f, a, b, {has_aux = true})
    assert.same({{3, 8}, {2, 3}, "more", false}, {y:totable(), plus:totable(), text, plus.requires_grad})
    local ga, gb = pull(tycho.tensor {1, 10})
    assert.same({{3, 40}, {1, 20}}, {ga:totable(), gb:totable()})
    local value, along, more, last = func.jvp(f, {a, b}, {tycho.ones(2), tycho.zeros(2)}, {has_aux = true})
    assert.same({{3, 8}, {3, 4}, {2, 3}, "more", false},
      {value:totable(), along:totable(), more:totable(), last, more.requires_grad})
    close((func.vjp(function(t) return t.w * 2 end, {w = a})), a * 2, "a table of tensors is an argument", 0)
    local function holes(t) return t * 2, nil, "x", {k = t * 3} end
    for _, got in ipairs {{func.vjp(holes, a, {has_aux = true})}, {func.jvp(holes, {a}, {b}, {has_aux = true})}} do
      assert.same({"x", false}, {got[4], got[5].k.requires_grad})
    end
    helper.fails("vjp: has_aux must be true or false, got 3", func.vjp, f, a, b, {has_aux = 3})
    helper.fails("jvp: unknown option 'foo'", func.jvp, f, {a, b}, {a, b}, {foo = true})
  end)

  it("maps what vjp and linearize give within the vmap that they were called in, and in vmaps within that", function()
    local vmap = func.vmap
    local rows, w = tycho.randn(3, 2), tycho.randn(2)
    local function f(t) return (t * t * t * w):sum() end
    local hessians = vmap(func.hessian(f))(rows)
    close(vmap(function(t) return vmap((select(2, func.vjp(func.grad(f), t))))(tycho.eye(2)) end)(rows), hessians, "hessians", 1e-6)
    close(vmap(function(t) return vmap((select(2, func.linearize(func.grad(f), t))))(tycho.eye(2)) end)(rows), hessians, "hessians", 1e-6)
    for _, make in ipairs {func.vjp, func.linearize} do  -- of what isn't mapped
      local got = vmap(function(t) return vmap((select(2, make(function(v) return v * t end, w))))(tycho.eye(2)) end)(rows)
      close(got, tycho.eye(2) * rows:unsqueeze(2), "of a product", 0)
    end
    local z, twice = tycho.randn(2, 3, 2), tycho.tensor {{1, 2, 3}, {4, 5, 6}}
    local function sums(t) return (t * t * w):sum(2) end
    local got = vmap(function(t)
      local _, pull = func.vjp(sums, t)
      return vmap(function(k) return vmap(function(j) return pull(k * j) end)(twice) end)(tycho.eye(3))
    end)(z)
    close(got, tycho.einsum("ki,jk,bklm->bijlm", tycho.eye(3), twice, vmap(func.jacrev(sums))(z)), "two levels within one", 1e-5)
  end)

  it("takes derivatives of what vjp gives by its weights", function()
    local a, b, c = tycho.tensor {1, 2}, tycho.tensor {0.3, 0.4}, tycho.tensor {2, 3}
    local _, pull = func.vjp(function(t) return t:sin() * a end, a)
    local _, again = func.vjp(function(t) return pull(t) * t end, b)
    close(again(c), a:cos() * a * b * c * 2)
    local _, of_rows = func.vjp(function(t) return t * 2 end, c)           -- and maps no examples at all
    assert.same({0, 2}, {unpack(func.vmap(of_rows)(tycho.zeros(0, 2)).shape)})
  end)

  it("takes derivatives of what jvp gives, by primals and by tangents", function()
    local p, v = tycho.tensor {1, 2}, tycho.tensor {1, 1}
    local function power(t) return t ^ 3 end
    local function along(t) return (select(2, func.jvp(power, {t}, {v}))) end
    local six = tycho.tensor {6, 12}
    close(func.grad(function(t) return along(t):sum() end)(p), six, "grad of jvp", 0)
    close(select(2, func.jvp(along, {p}, {v})), six, "jvp of jvp", 0)
    close(func.jacfwd(along)(p), six:diag(), "jacfwd of jvp", 0)
    close(func.jacrev(along)(p), six:diag(), "jacrev of jvp", 0)
    close(func.hessian(function(t) return along(t):sum() end)(p), tycho.tensor {{6, 0}, {0, 6}}, "hessian of jvp", 0)
    close(func.grad(function(t) return (func.jvp(power, {t}, {v})):sum() end)(p), tycho.tensor {3, 12}, "grad of jvp's value", 0)
    close(func.grad(function(t) return (select(2, func.jvp(power, {p}, {t}))):sum() end)(v), tycho.tensor {3, 12}, "grad by the tangent", 0)
    local rows = tycho.tensor {{1, 2}, {3, 4}}
    close(func.vmap(func.grad(function(t) return along(t):sum() end))(rows), rows * 6, "vmap of grad of jvp", 0)
    local w, q = tycho.tensor({1, 1}, {requires_grad = true}), tycho.tensor({1, 2}, {requires_grad = true})
    local _, t = func.jvp(function(a) return a ^ 3 * w end, {q}, {q * 1})        -- 3 q^3 w
    local dq, dw = unpack(tycho.grad(t:sum(), {q, w}))
    close(dq, tycho.tensor {9, 36}, "leaf", 0)
    close(dw, tycho.tensor {3, 24}, "captured", 0)
    tycho.no_grad(function() assert.is_false((func.jvp(power, {q}, {v})).requires_grad) end)
    assert.is_false((func.jvp(power, {p}, {v})).requires_grad)
  end)

  it("second derivatives of several results", function()
    local a, b = tycho.tensor({1, 2}, {dtype = "float64"}), tycho.tensor({3, -1, 2}, {dtype = "float64"})
    local function fn(u, v) return tycho.outer(u * u, v * v * v) end                -- y[i][j] = u_i^2 v_j^3
    local h = func.hessian(fn)(a, b)
    assert.equal("2x3x2x2", tostring(h.shape))
    for i = 1, 2 do
      for j = 1, 3 do
        local want = tycho.zeros(2, 2, {dtype = "float64"})
        want[{i, i}] = 2 * b[j] ^ 3
        close(h[i][j], want, "of the first twice", 1e-12)
      end
    end
    local both = func.hessian(fn, {1, 2})
    local of_a = both(a, b)
    assert.equal("2x3x2x3", tostring(of_a[2].shape))
    close(of_a[2][2][3], tycho.tensor({{0, 0, 0}, {0, 0, 2 * 2 * 3 * 2 ^ 2}}, {dtype = "float64"}), "of the one and the other", 1e-12)
  end)

  it("derives functions whose results are tables", function()
    local f64 = {dtype = "float64"}
    local data, params = tycho.randn(4, 3, f64), {w = tycho.randn(3, 2, f64), b = tycho.randn(2, f64)}
    local v = {w = tycho.randn(3, 2, f64), b = tycho.randn(2, f64)}
    local function loss(p) return (data:matmul(p.w) + p.b):tanh():pow(2):sum() end
    -- the Hessian times v, by forward over reverse, and by the gradient of a product
    local g, along = func.jvp(func.grad(loss), {params}, {v})
    local want = func.grad(function(p)
      local own = func.grad(loss)(p)
      return (own.w * v.w):sum() + (own.b * v.b):sum()
    end)(params)
    for k in pairs(params) do
      close(g[k], func.grad(loss)(params)[k], "gradient", 1e-12)
      close(along[k], want[k], "Hessian times v", 1e-10)
    end
    local one, two = tycho.tensor({1, 2}, f64), tycho.tensor({2, 2}, f64)
    local y, pull = func.vjp(function(a) return {a * a, s = a:sin()} end, one)
    close(y.s, one:sin(), "result", 0)
    close(pull({two, s = two * 0}), one * 4, "vjp", 1e-12)
    close(pull({two * 0, s = two}), one:cos() * 2, "vjp", 1e-12)
    fails("vjp: a weight is needed for each tensor of the function's results", pull, {two})
    local values, push = func.linearize(function(a) return {q = a * a} end, one)
    close(values.q, one * one, "result", 0)
    close(push(two).q, one * 4, "linearize", 1e-12)
    for _, jacobian in ipairs {func.jacrev, func.jacfwd} do
      local j, k = jacobian(function(a, b) return {p = a * b, s = {a:sum()}} end, {1, 2})(one, two)
      close(j.p, two:diag(), "wrt 1", 1e-12)
      close(k.p, one:diag(), "wrt 2", 1e-12)
      close(j.s[1], two / 2, "sum", 1e-12)
      close(k.s[1], two * 0, "sum", 0)
    end
    fails("hessian: the function must give one tensor, got 2", func.hessian(function(a) return {a:sum(), a:sum()} end), one)
  end)

  it("tells what can't be derived", function()
    fails("a tensor of one element", func.grad(function(t) return t end), x)
    fails("argument 1 must be a floating tensor", func.grad(cube), 5)
    fails("argument 2 must be a floating tensor", func.grad(cube, 2), x)
    fails("argument 1 must be a function", func.grad, 3)
    fails("argnums must be a whole number from 1", func.grad, cube, 0)
    fails("jacrev: unknown option 'chunksize'; did you mean 'chunk_size'?", func.jacrev, cube, 1, {chunksize = 2})
    fails("chunk_size must be a whole number from 1, got 0", func.jacfwd, cube, 1, {chunk_size = 0})
    fails("grad: argument 'argnums' is given twice", func.grad, cube, {1}, {argnums = 2})
    fails("hessian: unknown option 'has_aux'", func.hessian, cube, {has_aux = true})
    fails("hessian: argument 1 must be a floating tensor", func.hessian(cube), 5)
    fails("jacrev: argument 1 must be a function", func.jacrev, 3)
    local must = "must be a floating tensor or a table of floating tensors, got 5"
    fails("vjp: the function's result 1 " .. must, func.vjp, function() return 5 end, x)
  end)
end)

describe("func", function()
  it("takes running statistics out of batch norms, which can be mapped then", function()
    tycho.manual_seed(2)
    local net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))
    local x = tycho.randn(5, 6, 3)                         -- five batches of six
    local want = tycho.stack({net(x:select(1, 1)), net(x:select(1, 2))}):detach()
    assert.equal(net, func.replace_all_batch_norm_modules_(net))
    assert.is_nil(net:state_dict()["1.running_mean"])
    net:eval()
    close(net(x:select(1, 1)):detach(), want:select(1, 1), "by the batch in evaluation", 1e-6)
    local params = {}
    for name, p in net:named_parameters() do params[name] = p:detach() end
    local out = func.vmap(function(batch) return func.functional_call(net, params, batch) end)(x)
    close(out:narrow(1, 1, 2), want, "mapped", 1e-5)
    local function loss(ps, batch) return func.functional_call(net, ps, batch):square():sum() end
    local grads = func.vmap(func.grad(loss), {false, 1})(params, x)
    assert.same({5, 4, 3}, grads["0.weight"].shape)
    local one = func.grad(loss)(params, x:select(1, 3))
    close(grads["0.weight"]:select(1, 3), one["0.weight"], "its gradient", 1e-4)
    local other = func.replace_all_batch_norm_modules_(nn.InstanceNorm2d(3, {track_running_stats = true}))
    assert.is_not_nil(other.running_mean)
    helper.fails("replace_all_batch_norm_modules_: argument 1 must be a module", func.replace_all_batch_norm_modules_, {})
  end)

  it("trains an ensemble with batch norms, whose stacked running statistics are each model's own", function()
    local models, batches = {}, tycho.randn(3, 7, 4)
    for i = 1, 3 do models[i] = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2)) end
    local params, buffers = func.stack_module_state(models)
    for step = 1, 2 do
      local y = func.vmap(function(p, b, batch) return func.functional_call(models[1], {p, b}, batch) end)(params, buffers, batches)
      y:square():sum():backward()
      for i, model in ipairs(models) do
        local want = model(batches:select(1, i))
        want:square():sum():backward()
        close(y:select(1, i), want, "results")
        for name, b in model:named_buffers() do helper.close(buffers[name]:select(1, i), b, name) end
        -- that of the bias before the norm is 0 but for rounding
        for name, p in model:named_parameters() do helper.close(params[name].grad:select(1, i), p.grad, name, 1e-5, 1) end
      end
      assert.same({step, step, step}, buffers["1.num_batches_tracked"]:totable())
    end
    local same = {}
    for name, t in pairs(buffers) do same[name] = t:select(1, 1):expand(3, unpack(t.shape, 2)) end
    helper.fails("batch_norm changes tensors in place that can't hold different values", function()
      func.vmap(function(p, s, batch) return func.functional_call(models[1], {p, s}, batch) end)(params, same, batches)
    end)
    helper.fails("map its running statistics, or take them out with func.replace_all_batch_norm_modules_", func.vmap(models[1]), batches)
  end)
end)

describe("prune", function()
  local function linear()
    local m = nn.Linear(3, 4)
    tycho.no_grad(function() m.weight:copy_(tycho.tensor {{1, -2, 3}, {-4, 5, -6}, {0.5, -0.25, 0.75}, {7, -8, 9}}) end)
    return m
  end

  it("takes channels by what is left of them", function()
    local function mask_after(first)
      local m = nn.Linear(3, 4)
      tycho.no_grad(function() m.weight:copy_(tycho.sin(tycho.range(1, 12)):view(4, 3)) end)
      first(m)
      prune.ln_structured(m, "weight", 2, {n = 2, dim = 1})
      return m.weight_mask:totable()
    end
    assert.same({{1, 1, 0}, {1, 1, 0}, {0, 0, 0}, {0, 0, 0}}, mask_after(function(m) prune.l1_unstructured(m, "weight", 5) end))
    assert.same({{1, 0, 1}, {1, 0, 1}, {0, 0, 0}, {0, 0, 0}}, mask_after(function(m)
      prune.custom_from_mask(m, "weight", tycho.tensor {{1, 0, 1}, {1, 0, 1}, {1, 0, 1}, {1, 0, 1}})
    end))
  end)

  it("takes elements and channels of least size, and what is pruned stays so", function()
    local m = linear()
    prune.l1_unstructured(m, "weight", 0.25)
    close(m.weight_mask, tycho.tensor {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}}, "a quarter", 0)
    prune.l1_unstructured(m, "weight", 2)
    close(m.weight_mask, tycho.tensor {{0, 0, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}}, "two more", 0)
    prune.ln_structured(m, "weight", 1, 2, 2)
    close(m.weight_mask, tycho.tensor {{0, 0, 1}, {0, 1, 1}, {0, 0, 0}, {0, 1, 1}}, "a column", 0)
    prune.ln_structured(m, "weight", 0.5, 1, 1)
    close(m.weight_mask, tycho.tensor {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 1, 1}}, "half of the rows", 0)
    m(tycho.ones(2, 3)):sum():backward()
    close(m.weight_orig.grad, m.weight_mask * 2, "gradient", 0)
    assert.is_true(prune.is_pruned(nn.Sequential(m)))
    local other = prune.identity(nn.Linear(3, 4), "weight")
    other:load_state_dict(m:state_dict())
    close(other(tycho.ones(1, 3)), m(tycho.ones(1, 3)), "of a state dict", 0)
    local w = m.weight_orig
    prune.remove(m, "weight")
    assert.is_true(rawequal(w, m.weight))
    close(m.weight:detach(), tycho.tensor {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, -8, 9}}, "for good", 0)
    assert.is_false(prune.is_pruned(m))
  end)

  it("goes by a method of one's own", function()
    local Every = prune.BasePruningMethod:extend("Every", "n=2")
    function Every:compute_mask(_, mask)
      mask:view(-1):slice(1, 1, nil, self.n):fill_(0)
      return mask
    end
    local m = linear()
    Every.apply(m, "weight")
    close(m.weight_mask, tycho.tensor {{0, 1, 0}, {1, 0, 1}, {0, 1, 0}, {1, 0, 1}}, "each second", 0)
    Every.apply(m, "weight", {n = 4})          -- of those that are left
    close(m.weight_mask, tycho.tensor {{0, 0, 0}, {1, 0, 1}, {0, 1, 0}, {0, 0, 1}}, "each fourth of the rest", 0)
    local Rows = prune.BasePruningMethod:extend("Rows", "dim=1")
    Rows.PRUNING_TYPE = "structured"
    local seen = {}
    function Rows:compute_mask(t, mask)
      seen[#seen + 1] = t:totable()
      mask:select(1, 1):zero_()
      return mask
    end
    Rows.apply(m, "weight")
    close(m.weight_mask, tycho.tensor {{0, 0, 0}, {0, 0, 0}, {0, 1, 0}, {0, 0, 1}}, "the first row that is left", 0)
    assert.same({{{-4, 0, -6}, {0, -0.25, 0}, {0, 0, 9}}}, seen)       -- with the zeros that there are
    local a, b = linear(), linear()
    prune.global_unstructured({{a, "weight"}, {b, "weight"}}, Every, {n = 5})
    close(a.weight_mask, tycho.tensor {{0, 1, 1}, {1, 1, 0}, {1, 1, 1}, {1, 0, 1}}, "over two: the first", 0)
    close(b.weight_mask, tycho.tensor {{1, 1, 1}, {0, 1, 1}, {1, 1, 0}, {1, 1, 1}}, "over two: the second", 0)
    prune.global_unstructured({{a, "weight"}}, {pruning_method = Every, n = 100})
    assert.equal(0, a.weight_mask[{1, 2}])
    local Scores = prune.BasePruningMethod:extend("Scores", "least")
    function Scores:compute_mask(t) return t:ge(self.least) end
    local c = linear()
    Scores.apply(c, "weight", 3, {importance_scores = c.weight:detach():abs()})
    close(c.weight_mask, tycho.tensor {{0, 0, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}}, "by scores", 0)
    helper.fails("Scores: argument 'least' is missing", Scores.apply, c, "weight")
    helper.fails("the method's arguments must be in a table", prune.global_unstructured, {{a, "weight"}}, prune.L1Unstructured, 3)
    helper.fails("the method's arguments must be in a table", prune.global_unstructured, {{a, "weight"}}, Every, 3)
    helper.fails("extend: argument 2 must be a string, got a table", prune.BasePruningMethod.extend, prune.BasePruningMethod, "G", {1})
    helper.fails("extend: call it with a colon", prune.BasePruningMethod.extend, "X", "n=2")
    for _ = 1, 5 do Rows.apply(b, "weight") end            -- until none is left
    assert.equal(0, b.weight_mask:sum():item())
    helper.fails("the PRUNING_TYPE of pruning_method must be 'unstructured'", prune.global_unstructured, {{a, "weight"}}, Rows)
    local Wrong = prune.BasePruningMethod:extend("Wrong")
    helper.fails("Wrong: a method compute_mask(t, default_mask) is needed", Wrong.apply, c, "bias")
    function Wrong:compute_mask() return 1 end
    helper.fails("Wrong: compute_mask must give a mask of shape 4, got 1", Wrong.apply, c, "bias")
    assert.is_nil(c.bias_mask)
  end)

  it("goes at random, over several modules, by scores and by masks", function()
    local a, b = linear(), linear()
    prune.global_unstructured({{a, "weight"}, {b, "weight"}}, {pruning_method = prune.L1Unstructured, amount = 0.5})
    close(a.weight_mask, tycho.tensor {{0, 0, 0}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}}, "of both", 0)
    close(b.weight_mask, a.weight_mask, "of both", 0)
    prune.random_unstructured(a, "bias", 3)
    assert.equal(1, a.bias_mask:sum():item())
    prune.random_structured(linear(), "weight", 1, 1)
    local c = prune.l1_unstructured(linear(), "weight", {amount = 3, importance_scores = tycho.range(1, 12):reshape(4, 3)})
    close(c.weight_mask, tycho.tensor {{0, 0, 0}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, "scores", 0)
    prune.custom_from_mask(c, "weight", tycho.tensor {{1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}})
    assert.equal(8, c.weight_mask:sum():item())
    fails("amount 100 is more than the 8 that aren't pruned yet", prune.l1_unstructured, c, "weight", 100)
    fails("has no parameter 'wight'", prune.l1_unstructured, c, "wight", 1)
    fails("amount must be a share below 1 or a whole number, got 1.5", prune.l1_unstructured, c, "weight", 1.5)
    fails("must be a tensor of shape 4x3", prune.custom_from_mask, c, "weight", tycho.ones(3))
    fails("'bias' is not computed by prune", prune.remove, c, "bias")
    fails("random_structured: dim must be a whole number", prune.random_structured, c, "weight", 1, "x")
    fails("importance_scores must be a tensor of shape 4x3", prune.global_unstructured, {{c, "weight"}},
      {amount = 1, importance_scores = {tycho.ones(2)}})
  end)
end)
