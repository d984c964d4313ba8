-- What PyTorch's own tests expect (its test_autograd, test_nn, test_torch, test_dataloader, its tables of modules and optimizers) and this
-- library once did otherwise; values are PyTorch's.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F, optim, data = tycho.nn, tycho.nn.functional, tycho.optim, tycho.data
local T = tycho.tensor
local i64, RG = {dtype = "int64"}, {requires_grad = true}
local Function = tycho.autograd.Function

describe("PyTorch's tests:", function()
  local function is(want, got, tolerance) helper.close(got, T(want, {dtype = got.dtype}), nil, tolerance) end

  describe("autograd", function()
    it("func's derivatives keep the history of what a function captures", function()
      local w = T(3, RG)
      local function fn(y) return w * y * y end
      for _, name in ipairs {"grad", "jacrev", "jacfwd", "hessian"} do
        assert.is_true((tycho.func[name](fn)(T(2))).requires_grad, name)
        assert.is_false((tycho.func[name](function(y) return y * y end)(T(2))).requires_grad, name)
        tycho.no_grad(function() assert.is_false((tycho.func[name](fn)(T(2))).requires_grad, name) end)
      end
      is(4, tycho.grad(tycho.func.grad(fn)(T(2)), w))
      is(2, tycho.grad(tycho.func.hessian(fn)(T(2)), w))
      local value, along = tycho.func.jvp(fn, {T(2)}, {T(1)})
      is({4, 4}, tycho.stack {tycho.grad(value, w, {retain_graph = true}), tycho.grad(along, w)})
      local out, pull = tycho.func.vjp(fn, T(2))
      is({4, 4}, tycho.stack {tycho.grad(out, w, {retain_graph = true}), tycho.grad((pull(T(1))), w)})
      local compiled = tycho.compile(function(x) return (tycho.func.grad(function(y) return y * y * y end)(x)) end)
      for _ = 1, 4 do assert.is_false(compiled(T(2)).requires_grad) end
      local net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
      local x = tycho.randn(5, 1)
      local function residual(slope) return (slope - net(x)):square():mean() end
      local through = x:clone():requires_grad_()
      local want = tycho.grad(residual(tycho.grad(net(through):sum(), through, {create_graph = true})), net[1].weight)
      helper.close(tycho.grad(residual(tycho.func.grad(function(v) return net(v):sum() end)(x)), net[1].weight), want)
    end)

    it("a second backward may go by what keeps nothing", function()
      local w = T({1, 2}, RG)
      local y = w:view(2, 1):t():expand(3, 2) + 1
      ;(y * 2):sum():backward();
      (y * 3):sum():backward()
      is({15, 15}, w.grad)
      local z = w * w
      z:sum():backward()
      helper.fails("used by an earlier backward and freed", z.backward, z:sum())
    end)

    it("backward of several outputs for some inputs; zeros of grad are as other gradients", function()
      local w, v = tycho.ones(2, RG), tycho.ones(2, RG)
      tycho.autograd.backward({(w * v):sum(), (w * 2):sum()}, nil, {inputs = w})
      is({3, 3}, w.grad)
      assert.is_nil(v.grad)
      local l = (w * v):sum()
      helper.fails("inputs must be a tensor or a list of tensors, got none", l.backward, l, {inputs = {}})
      helper.fails("input 1 must be a tensor, got 3", l.backward, l, {inputs = {3}})
      local unused = tycho.ones(2, RG)
      assert.is_true(tycho.grad(l, unused, {materialize_grads = true, create_graph = true}).requires_grad)
    end)

    it("a Function's gradients belong to its tensors alone", function()
      local misplaced = Function {forward = function(_, k, x) return x * k end, backward = function(_, g) return g end}
      helper.fails("a gradient for argument 1, which was no tensor: return nil there", function()
        misplaced(3, tycho.ones(3, RG)):sum():backward()
      end)
      helper.fails("a gradient for argument 1, which was no tensor: return nil there", function()
        tycho.vmap(function(x) return misplaced(3, x) end)(tycho.ones(3, RG)):sum():backward()
      end)
    end)

    it("arguments that a Function hands on are not changed unseen", function()
      local same = Function {forward = function(_, x) return x end, backward = function(_, g) return g end}
      local y = tycho.ones(3, RG) * 1
      local z = same(y)
      helper.fails("can't be changed in place: clone it", z.mul_, z, 3)
      helper.fails("can't be changed in place: clone it", function() z[1] = 3 end)
      tycho.no_grad(z.mul_, z, 3)
      local dirty = Function {forward = function(ctx, x) ctx:mark_dirty(x) return x:mul_(5) end, backward = function(_, g) return g * 5 end}
      local x = tycho.ones(3, RG)
      y = x * 1
      assert.is_true(dirty(y) == y)
      is({5, 5, 5}, tycho.grad(y:sum(), x))
      y = x * 1
      local before = y:view(3)
      dirty(y)
      is({5, 5, 5}, tycho.grad(before:sum(), x))
      same(x * 1):detach():add_(1)
      helper.fails("a leaf that requires grad can't be changed in place", dirty, x)
      helper.fails("can't change a view in place", dirty, (x * 1)[{ {1, 2} }])
      local Relu = nn.Module:extend("Relu")
      function Relu.forward(_, v) return v:relu_() end
      local m = Relu()
      m:register_full_backward_hook(function() end)
      helper.fails("can't be changed in place: clone it", m, x * 1)
    end)

    it("a Function's other results", function()
      local seen = {}
      local f = Function {forward = function(ctx, x, k)
        local positive = x:gt(0):float()
        ctx:mark_non_differentiable(positive)
        return x * k, k, positive
      end, backward = function(_, g, none, of_positive)
        seen = {none, tostring(of_positive.shape)}
        return g * 3
      end}
      local x = T({{1, -1}}, RG)
      local y, k, positive = f(x, 3)
      assert.same({3, false}, {k, positive.requires_grad})
      is({{3, 3}}, tycho.grad(y:sum(), x))
      assert.same({[2] = "1x2"}, seen)
    end)

    it("what is overwritten keeps a gradient, of 0", function()
      for _, change in ipairs {function(h) h:copy_(tycho.zeros(3)) end, function(h) h:normal_() end, function(h) h:uniform_() end,
                               function(h) h[{"..."}] = 3 end, function(h) h:bernoulli_(0.5) end, function(h) h:zero_() end} do
        local w = nn.Parameter(tycho.ones(3))
        local h = w * 2
        change(h)
        assert.is_true(h.requires_grad)
        is({0, 0, 0}, tycho.grad(h:sum(), w))
        h = w * 2
        change(h[{ {1, 3} }])
        is({0, 0, 0}, tycho.grad(h:sum(), w))
      end
      for _, dtype in ipairs {"int64", "uint8", "bool"} do
        local x, a = tycho.full({3}, 1.7, RG), tycho.zeros(3, {dtype = dtype})
        a:copy_(x)
        a[{ {1, 2} }] = x[{ {1, 2} }]
        assert.is_false(a.requires_grad)
        assert.is_false(a:float().requires_grad)
      end
    end)

    it("a result takes another shape in place, with its history", function()
      local w = T({{1, 2, 3}}, RG)
      local x = w * 2
      x:squeeze_(1)
      x:mul_(3)
      assert.equal("3", tostring(x.shape))
      is({{72, 144, 216}}, tycho.grad((x * x):sum(), w))
      local y = w * 1
      y:t_():unsqueeze_(1)
      assert.equal("1x3x1", tostring(y.shape))
      is({{1, 1, 1}}, tycho.grad(y:sum(), w))
      local z = w * 1
      tycho.no_grad(z.squeeze_, z, 1)
      assert.equal("3", tostring(z.shape))
      helper.fails("the shape of a leaf that requires grad can't be changed in place", w.squeeze_, w, 1)
      helper.fails("dim 2 is out of range", tycho.transpose, T(1), 1, 2)
    end)

    it("determinants of singular matrices have a gradient; a norm of order 0 has one of 0", function()
      local x = T({{{1, 2}, {2, 4}}, {{1, 2}, {3, 4}}}, {dtype = "float64", requires_grad = true})
      is({{{4, -2}, {-2, 1}}, {{4, -3}, {-2, 1}}}, tycho.grad(tycho.linalg.det(x):sum(), x))
      x = T({{0}}, {dtype = "float64", requires_grad = true})
      is({{1}}, tycho.grad(x:det(), x))
      local v = T({3, 0, 5}, RG)
      is({0, 0, 0}, tycho.grad(v:norm(0), v))
    end)
  end)

  describe("modules", function()
    it("members with names have positions too", function()
      local s = nn.Sequential {{"a", nn.ReLU()}, {"b", nn.ReLU()}}
      for i = 1, 2 do s[i] = nn.GELU() end
      s[-1] = nn.Tanh()
      local shown = {}
      for name, m in s:named_children() do shown[#shown + 1] = name .. " " .. m._name end
      assert.same({"a GELU", "b Tanh"}, shown)
      helper.fails("position 3 is out of range 1 to 2", function() s[3] = nn.ReLU() end)
      s = nn.Sequential(nn.ReLU())
      s.foo = nn.Tanh()
      s[#s + 1] = nn.GELU()
      assert.same({"GELU", "Tanh"}, {s[2]._name, s.foo._name})
    end)

    it("a buffer stays one", function()
      local m = nn.Module()
      m:register_buffer("b", tycho.ones(1), {persistent = false})
      m.b = nil
      assert.is_nil(m.b)
      m.b = tycho.ones(2)
      assert.same({1, nil}, {#m:buffers(), next(m:state_dict())})
    end)

    it("options follow arguments", function()
      local l = nn.Linear(2, 2)
      local state = {weight = tycho.ones(2, 2), bias = tycho.ones(2)}
      l:load_state_dict(state, true, {assign = true})
      assert.is_true(l.weight:shares_memory(state.weight))
      local twice, n = nn.Sequential(l, l), 0
      for _ in twice:named_parameters("", true, {remove_duplicate = false}) do n = n + 1 end
      for _ in twice:named_modules("", {remove_duplicate = false}) do n = n + 1 end
      assert.equal(7, n)
    end)

    it("a hook for backward is called when backward comes by the results", function()
      local m, n = nn.Sigmoid(), 0
      m:register_full_backward_hook(function(_, grads) n = n + 1 return {grads[1] * 2} end)
      local x = T({0.5, -1, 2}, RG)
      local g = tycho.grad(m(x):sum(), x, {create_graph = true})
      is({-0.1151, 0.1817, -0.1599}, tycho.grad(g:sum(), x), 1e-3)
      assert.equal(1, n)
    end)

    it("lazy layers keep what to() has made of them, until a state dict tells their size", function()
      local m = nn.LazyLinear(3)
      m:to("float64")
      m:load_state_dict {weight = tycho.rand(3, 4), bias = tycho.rand(3)}
      assert.equal("float64", m.weight.dtype)
      assert.equal(0, #m:buffers())
    end)

    it("norms of weights: by any dim, of vectors", function()
      for _, norm in ipairs {nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm} do
        local m = norm(nn.Conv2d(2, 2, 2, {bias = false}), {dim = 3}):eval()
        local state = m:state_dict()
        local prefix = state.weight_orig and "weight_" or "parametrizations.weight.0._"
        state[state.weight_orig and "weight_orig" or "parametrizations.weight.original"] = tycho.range(1, 16):view(2, 2, 2, 2)
        state[prefix .. "u"], state[prefix .. "v"] = T {1, 0}, T {0, 0, 1, 0, 0, 0, 0, 0}
        m:load_state_dict(state)
        m(tycho.ones(1, 2, 2, 2))
        is(0.2, m.weight[{1, 1, 1, {1}}][{ {1} }]:view({}), 1e-4)
        helper.fails("spectral_norm: n_power_iterations must be", norm, nn.Linear(2, 2), {n_power_iterations = 0})
      end
      assert.equal("4", tostring(nn.utils.weight_norm(nn.Linear(3, 4), "bias").bias_g.shape))
      local Nothing = nn.Module:extend("Nothing")
      function Nothing.forward(_, x) return x end
      function Nothing.right_inverse() end
      local l = nn.Linear(2, 2)
      helper.fails("a module whose right_inverse gives tensors", nn.utils.parametrize.register_parametrization, l, "weight", Nothing())
      assert.equal(2, #l:parameters())
      local Skew, Twice = nn.Module:extend "Skew", nn.Module:extend "Twice"
      function Skew.forward(_, x) return x:triu(1) - x:triu(1):t() end
      function Twice.forward(_, x) return x * 2 end
      function Twice.right_inverse(_, x) return x / 2 end
      l.weight = nn.Parameter(T {{1, 2}, {3, 4}})
      nn.utils.parametrize.register_parametrization(l, "weight", Skew())
      nn.utils.parametrize.register_parametrization(l, "weight", Twice())            -- a further one leaves the original
      assert.same({{{1, 2}, {3, 4}}, {{0, 4}, {-4, 0}}}, {l.parametrizations.weight.original:totable(), l.weight:totable()})
    end)

    it("gradients of convolutions as functions", function()
      for n = 1, 3 do
        local name, size, of_weight = ("conv%dd"):format(n), {2, 4}, {6, 2}
        for i = 1, n do size[2 + i], of_weight[2 + i] = 7 + i, 3 end
        local x, w = tycho.randn(size):requires_grad_(), tycho.randn(of_weight):requires_grad_()
        local y = nn.functional[name](x, w, nil, {stride = 2, padding = 1, groups = 2})
        local g = tycho.randn_like(y)
        local want = tycho.grad(y, {x, w}, {grad_outputs = g})
        local by_input, by_weight = nn.grad[name .. "_input"], nn.grad[name .. "_weight"]
        helper.close(by_input(x.shape, w, g, {stride = 2, padding = 1, groups = 2}):detach(), want[1])
        helper.close(by_weight(x, of_weight, g, 2, 1, 1, 2):detach(), want[2])
        helper.close(by_input(x[1].shape, w, g[1]:detach(), 2, 1, 1, 2):detach(), want[1][1])       -- of one example
        local v = tycho.randn_like(x)                                    -- and have gradients themselves
        helper.close(tycho.grad(by_input(x.shape, w, g, 2, 1, 1, 2), w, {grad_outputs = v}),
          by_weight(v, of_weight, g, 2, 1, 1, 2), name, 1e-4)
        assert.is_false(tycho.no_grad(by_weight, x, of_weight, g, 2, 1, 1, 2).requires_grad)
        helper.fails("argument 2 must be a list of sizes, got 3", by_weight, x, 3, g)
        helper.fails("argument 3 must be a tensor, got 3", by_input, x.shape, w, 3)
        helper.fails(n == 2 and "a gradient of shape" or "the gradient has shape", by_weight, x, of_weight, g, 1, 1, 1, 2)
      end
    end)

    it("sizes may be 0", function()
      assert.equal("2x3", tostring(nn.Linear(0, 3)(tycho.zeros(2, 0)).shape))
      assert.equal("2x0", tostring(nn.Linear(2, 0)(tycho.zeros(2, 2)).shape))
      assert.equal("1x0", tostring(nn.Embedding(3, 0)(T({1}, i64)).shape))
      nn.init.kaiming_uniform_(tycho.zeros(0, 3))
      assert.equal("1x2x3x4x5", tostring(nn.AdaptiveMaxPool3d {3, false, 5}(tycho.rand(1, 2, 6, 4, 7)).shape))
    end)

    it("padding that crops at one side comes after that at the other, but around", function()
      local x = T {{{1, 2, 3, 4}}}
      is({{{3, 4, 3, 2, 1}}}, F.pad(x, {-2, 3}, "reflect"))
      is({{{4, 4, 4, 4, 4}}}, F.pad(x, {-4, 5}, "replicate"))
      is({{{2, 3, 1, 2, 3}}}, F.pad(x, {2, -1}, "circular"))
    end)
  end)

  describe("optimizers and schedules", function()
    it("a closure has gradients; a rate may be a tensor", function()
      local p = T({1, 2}, RG)
      for _, o in ipairs {optim.SGD({p}, {lr = 0.1}), optim.LBFGS({p}, {lr = T(0.1)})} do
        local before = p:clone()
        tycho.no_grad(o.step, o, function()
          o:zero_grad()
          local loss = p:square():sum()
          loss:backward()
          return loss
        end)
        assert.is_false(p:equal(before))
      end
      optim.Muon({tycho.ones(2, 2, RG)}, {momentum = 0})
      local o = optim.SGD({p}, {lr = 0.1})
      local s = optim.lr_scheduler.StepLR(o, {step_size = 2})
      local state = s:state_dict()
      state.base_lrs = {T(0.5)}
      s:load_state_dict(state)
      assert.equal(0.5, s.base_lrs[1])
    end)

    it("settings beyond their range are refused", function()
      local p, s = {tycho.ones(1, RG)}, optim.lr_scheduler
      helper.fails("lambd must not be negative", optim.ASGD, p, {lambd = -0.5})
      helper.fails("etas must be a number in 0..1 and one above 1", optim.Rprop, p, {etas = {0.5, 0.9}})
      local o = optim.SGD(p, {lr = 1})
      helper.fails("factor must be in 0..1", s.ConstantLR, o, {factor = 2})
      helper.fails("pct_start must be in 0..1", s.OneCycleLR, o, {max_lr = 1, total_steps = 5, pct_start = 1.5})
      helper.fails("takes one loss", function() tycho.amp.GradScaler():scale(T(1), T(2)) end)
      helper.fails("Exponential: cdf: a value must be", function() tycho.distributions.Exponential(1):cdf(-1) end)
    end)

    it("losses with names are scaled", function()
      is(2, tycho.amp.GradScaler({init_scale = 2, device = helper.device}):scale({loss = T(1)}).loss)
    end)
  end)

  describe("data", function()
    it("a sampler by itself, or within another, is in another order each time", function()
      tycho.manual_seed(1)
      local function orders(s)
        local out = {}
        for i = 1, 6 do
          local list = {}
          for k in s:iter() do list[#list + 1] = k end
          out[i] = table.concat(list, " ")
        end
        return out
      end
      local first = orders(data.RandomSampler(6))
      assert.is_false(first[1] == first[2] and first[2] == first[3])
      tycho.manual_seed(1)
      assert.same(first, orders(data.RandomSampler(6)))
      local wrapped = {size = function() return 6 end, iter = function() return data.RandomSampler(6):iter() end}
      local loader = data.DataLoader(data.TensorDataset(tycho.range(1, 6)), {batch_size = 6, sampler = wrapped})
      local seen, different = {}, 0
      for _ = 1, 4 do
        for x in loader:iter() do
          local order = table.concat(x:totable(), " ")
          if not seen[order] then seen[order], different = true, different + 1 end
        end
      end
      assert.is_true(different > 1)
    end)

    it("items with names collate; fractions may be 0", function()
      local all = data.default_collate {{a = 1}, {a = 2}}
      assert.same({1, 2}, all.a:totable())
      local parts = data.random_split(data.TensorDataset(tycho.range(1, 6)), {1, 0})
      assert.same({6, 0}, {parts[1]:size(), parts[2]:size()})
    end)
  end)

  it("float64's random numbers have its digits, and float32's before them", function()
    local n = helper.simulated and 20000 or 1000000
    for _, draw in ipairs {function(o) return tycho.rand(n, o) end, function(o) return tycho.randn(n, o) end,
                           function(o) return tycho.zeros(n, o):exponential_() end} do
      tycho.manual_seed(5)
      local x = draw {dtype = "float64"}
      assert.equal(n, x:unique():size(1))
      tycho.manual_seed(5)
      helper.close(x:float(), draw {}, nil, 1e-2)
    end
  end)

  it("cross takes the first dim of 3 elements, linalg.cross the last", function()
    local x = tycho.range(1, 9):view(3, 3)
    is({{0, -8, 6}, {7, 0, -3}, {-4, 2, 0}}, tycho.cross(x, tycho.eye(3)))
    is({{0, 3, -2}, {-6, 0, 4}, {8, -7, 0}}, tycho.linalg.cross(x, tycho.eye(3)))
    helper.fails("can't be split into 3 equal parts", tycho.zeros(3, 4).hsplit, tycho.zeros(3, 4), 3)
  end)
end)
