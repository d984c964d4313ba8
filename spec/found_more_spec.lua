-- Bugs that were, as in found_spec.lua: numbers at the edges of functions, by comparing tens of thousands of random calls with PyTorch's,
-- whose the values are.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F, optim, linalg = tycho.nn, tycho.nn.functional, tycho.optim, tycho.linalg
local T = tycho.tensor
local f64 = {dtype = "float64"}
local inf = math.huge

describe("found at the edges", function()
  local function is(want, got, tolerance) helper.close(got, T(want, {dtype = got.dtype}), nil, tolerance) end
  local function leaf(list, dtype) return T(list, {dtype = dtype or "float64", requires_grad = true}) end

  it("names and arguments that PyTorch has beside others", function()
    assert.equal(tycho.nn.utils.fuse_conv_bn_eval, tycho.nn.utils.fusion.fuse_conv_bn_eval)
    local rows = tycho.randn(3, 2)
    helper.exact(tycho.cdist(rows, rows, {compute_mode = "donot_use_mm_for_euclid_dist"}), tycho.cdist(rows, rows))
  end)

  it("singular values of 0 of matrices that aren't square have gradients", function()
    local x = leaf({{1, 0, 0}, {0, 0, 0}}, "float32")
    is({{1, 0, 0}, {0, 0, 0}}, tycho.grad(linalg.matrix_norm(x, 2), x))
    local rows = leaf {{3, 4, 0}, {3, 4, 0}, {0, 0, 0}, {0, 0, 0}}
    local slope = tycho.grad(linalg.svdvals(rows):narrow(1, 1, 1):sum(), rows)
    is({{0.6 / 2 ^ 0.5, 0.8 / 2 ^ 0.5, 0}, {0.6 / 2 ^ 0.5, 0.8 / 2 ^ 0.5, 0}, {0, 0, 0}, {0, 0, 0}}, slope, 1e-12)
  end)

  it("ldexp by the dtype of its result", function()
    assert.equal(2 ^ 46, tycho.ldexp(tycho.ones(1, {dtype = "float16"}), T {46}):item())
    is({2 ^ 400}, tycho.ldexp(tycho.ones(1), T({400}, f64)))
    is({-inf, 0}, tycho.ldexp(T {-3, -3}, T({inf, -inf}, f64)))
  end)

  it("determinants of singular matrices have second derivatives, and their logarithms gradients that aren't numbers", function()
    local a = leaf {{1, 2}, {2, 4}}
    local g = tycho.grad(linalg.det(a), a, {create_graph = true})
    is({{4, -2}, {-2, 1}}, g, 1e-12)
    is({{0, 0}, {0, 1}}, tycho.grad(g[1]:select(1, 1), a), 1e-12)
    local batch = leaf {{{1, 2}, {2, 4}}, {{1, 0}, {0, 2}}}
    local sign, log = linalg.slogdet(batch)
    is({0, 1}, sign)
    is({-inf, math.log(2)}, log)
    local slope = tycho.grad(log:sum(), batch)
    assert.is_true(slope[1]:isnan():all():item())
    is({{1, 0}, {0, 0.5}}, slope[2])
    tycho.manual_seed(2)
    local many = tycho.randn(20, 3, 3, f64)
    many[{ {}, 3 }] = many[{ {}, 1 }] * 2 + many[{ {}, 2 }] * 0.37
    assert.is_true(tycho.autograd.gradcheck(linalg.det, {many:clone():requires_grad_()}))
    local exactly = leaf {{{1, 2, 0}, {3, 5, 0}, {5, 6, 0}}, {{2, 1, 0}, {1, 3, 1}, {0, 1, 4}}, {{1, 2, 3}, {0, 0, 0}, {4, 1, 6}}}
    assert.is_true(tycho.autograd.gradgradcheck(linalg.det, {exactly}))
  end)

  it("powers of 0 have slopes to any order", function()
    local x = leaf {0, 2}
    local g = tycho.grad(linalg.vander(x, 4):sum(), x, {create_graph = true})
    is({1, 17}, g)
    is({2, 14}, tycho.grad(g:sum(), x))
    is({{8, 4, 2, 1}}, tycho.vander(T {2}, 4))
    is({{1, 3, 9}}, tycho.vander(T({3}, {dtype = "int32"}), 3, {increasing = true}))
  end)

  it("counts of 0 have their slope in a multinomial distribution", function()
    local v = leaf {1, 0, 0}
    local d = tycho.distributions.Multinomial {total_count = 1, probs = T({0.5, 0.25, 0.25}, f64)}
    is({-0.69314718, -0.38629436, -0.38629436}, tycho.grad(d:log_prob(v), v), 1e-7)
    local never = tycho.distributions.Multinomial {total_count = 1, probs = T({0.5, 0.5, 0}, f64)}
    is(math.log(0.5), never:log_prob(T({1, 0, 0}, f64)), 1e-12)
  end)

  it("histc takes the elements' own range where both ends are the same", function()
    is({0, 0, 1, 0, 0}, tycho.histc(T {2}, 5, 0.5, 0.5))
    is({1, 0, 0, 0, 1}, tycho.histc(T {2, 3}, 5, 0.5, 0.5))
  end)

  it("gelu by tanh keeps its digits far below 0", function()
    local x = tycho.linspace(-6, -1, 101)
    local want, got = F.gelu(x:double(), {approximate = "tanh"}), F.gelu(x, {approximate = "tanh"})
    assert.is_true(((got:double() - want) / want):abs():max():item() < 5e-6)
  end)

  if helper.device ~= "cpu" then it("an optimizer whose state was left on another device says so", function()
    local net = nn.Linear(2, 2):to "cpu"
    local opt = optim.Adam(net:parameters())
    net(tycho.ones(1, 2, {device = "cpu"})):sum():backward()
    opt:step()
    net:to(helper.device)
    opt:zero_grad()
    net(tycho.ones(1, 2)):sum():backward()
    helper.fails("Adam: the state of a parameter of shape 2x2 is on cpu, the parameter on cuda:0", opt.step, opt)
  end) end

  it("an optimizer of one's own may begin as PyTorch's do", function()
    local Own = optim.Optimizer:extend("Own", {factor = 3})
    local given
    function Own:init(params, o)
      optim.Optimizer.init(self, params, o)
      given = o.factor * #params
    end
    Own({nn.Parameter(tycho.ones(2))}, {factor = 5})
    assert.equal(5, given)
  end)

  it("a state that doesn't fit leaves lazy layers as they were", function()
    local net = nn.Sequential(nn.LazyLinear(10), nn.Linear(10, 5))
    local state = nn.Sequential(nn.Linear(7, 10), nn.Linear(10, 5)):state_dict()
    helper.fails("missing '1.weight'", net.load_state_dict, net, {["0.weight"] = tycho.ones(10, 784)})
    assert.equal(5, net(tycho.ones(2, 3)):size(2))
    net = nn.Sequential(nn.LazyLinear(10), nn.Linear(10, 5))
    net:check_state_dict(state)
    assert.truthy(tostring(net):find "LazyLinear")
    net:load_state_dict(state)
    assert.is_true(net[1].weight:equal(state["0.weight"]))
  end)

  it("unscale_ looks at all gradients before it changes one", function()
    local a, b = nn.Parameter(tycho.ones(2):half()), nn.Parameter(tycho.ones(2):half())
    local opt = optim.SGD({{params = {a}, master_weights = true}, {params = {b}}}, {lr = 0.1})
    local scaler = tycho.amp.GradScaler {init_scale = 4}
    scaler:scale((a:float() + b:float()):sum()):backward()
    helper.fails("the gradient of a float16 parameter can't be unscaled", scaler.unscale_, scaler, opt)
    assert.equal("float16", a.grad.dtype)
    is({4, 4}, a.grad)
  end)

  it("sizes beside a size of 0 have the limit that others have", function()
    helper.fails("too large", tycho.zeros, 0, 2 ^ 40, 2 ^ 40)
    assert.equal(2 ^ 40, tycho.zeros(0, 2 ^ 40):size(2))
  end)

  it("lines of a file of numbers are counted within quotes, too", function()
    local path = os.tmpname()
    local file = io.open(path, "w")
    file:write '"a\nname",b\n1,2\n3,x\n'
    file:close()
    helper.fails("line 4, field 2", tycho.data.read_csv, path, {header = true})
    os.remove(path)
  end)

  it("coroutines that take turns have cached parametrized tensors of their own, and end their own ranges of a profile", function()
    local parametrize = nn.utils.parametrize
    local net = nn.Linear(2, 2)
    local Twice = nn.Module:extend "Twice"
    function Twice:forward(x) return x * 2 end
    parametrize.register_parametrization(net, "weight", Twice())
    local first = coroutine.wrap(function()
      parametrize.cached(function()
        local seen = net.weight
        coroutine.yield()
        assert.is_true(tycho.equal(seen, net.weight))                        -- still of what it was
      end)
    end)
    first()
    tycho.no_grad(function() net.parametrizations.weight.original:fill_(3) end)
    helper.close(net.weight, tycho.full({2, 2}, 6))
    first()
    local hooked = 0                                                         -- and a checkpoint's function may have some
    tycho.utils.checkpoint(function(x)
      local y = x * 2
      coroutine.wrap(function() y:register_hook(function() hooked = hooked + 1 end) end)()
      return y
    end, tycho.ones(2, {requires_grad = true})):sum():backward()
    assert.equal(1, hooked)
    local names = {}
    local p = tycho.profiler.profile(function()
      local one = coroutine.wrap(function() tycho.profiler.record_function("one", coroutine.yield) end)
      one()
      local two = coroutine.wrap(function()
        tycho.profiler.record_function("two", function()
          coroutine.yield()
          tycho.zeros(2)
        end)
      end)
      two()
      one()
      two()
    end)
    for _, e in ipairs(p.events) do names[e.name] = e end
    assert.is_true(names.two.begin + names.two.time >= names.one.begin + names.one.time)
  end)

  it("tensors that are called, put into lists of numbers or of modules", function()
    helper.fails("for i, row in x:iter() do", function() for _ in tycho.ones(2) do end end)
    helper.fails("numbers or booleans are needed: use stack(list) to join tensors", T, {tycho.ones(2), tycho.ones(2)})
    for _, wrong in ipairs {3, tycho.ones(2)} do
      local list = nn.ModuleList()
      helper.fails("ModuleList: position 1 must hold a module or a Parameter", function() list[1] = wrong end)
    end
    helper.fails("get_device_name", tycho.cuda.get_device_name, 77)
  end)

  it("a sum of what index_select took has a gradient that counts, along each dim", function()
    local index = tycho.tensor({2, 3, 2, 1}, {dtype = "int64"})
    for dim = 1, 4 do
      local x = tycho.randn(3, 3, 3, 3, {requires_grad = true})
      x:index_select(dim, index):sum():backward()
      local shape = {1, 1, 1, 1}
      shape[dim] = 3
      helper.close(x.grad, T({1, 2, 1}):view(shape):expand(3, 3, 3, 3), "dim " .. dim, 0)
    end
  end)

  it("utils.checkpoint takes PyTorch's options, and tells the program's own tables from them", function()
    local checkpoint, y = tycho.utils.checkpoint, tycho.ones(2, {requires_grad = true})
    for _, o in ipairs {{early_stop = false}, {use_reentrant = false, determinism_check = "none", debug = true}} do
      assert.equal(0, select(2, checkpoint(function(v, ...) return v, select("#", ...) end, tycho.ones(1), o)))
    end
    local own = {debug = true, mask = 1}                  -- an argument, whose names are the program's
    assert.same(own, (select(2, checkpoint(function(v, o) return v, o end, tycho.ones(1), own))))
    helper.fails("checkpoint: unknown option 'early_stp'; did you mean 'early_stop'?", checkpoint, print, y,
      {use_reentrant = false, early_stp = true})
    helper.fails("checkpoint: context_fn isn't supported", checkpoint, print, y, {use_reentrant = false, context_fn = print})
  end)

  it("gradgradcheck sees a backward whose own derivative is missing, by inputs and by incoming gradients", function()
    local Function, check = tycho.autograd.Function, tycho.autograd.gradgradcheck
    local x = leaf {0.5, 1}
    local function times(backward)
      return Function {forward = function(ctx, v) ctx:save_for_backward(v) return v * v end, backward = function(ctx, g)
        return backward(g, ctx:saved_tensors())
      end}.apply
    end
    assert.is_true(check(times(function(g, v) return g * 2 * v end), {x}))
    local lost, linear = times(function(g, v) return g * 2 * v:detach() end), times(function(g, v) return g:detach() * 2 * v end)
    helper.fails("gradgradcheck: input 1, element 1: the gradient is 0, differences give", check, lost, {x})
    helper.fails("gradgradcheck: the gradient of output 1, element 1: the gradient is 0, differences give", check, linear, {x})
    assert.is_false(check(lost, {x}, {raise_exception = false}))
    assert.is_true(check(lost, {x}, nil, 1e-6, 100))                   -- atol, as in PyTorch's order
    assert.is_true(check(function(v) return v ^ 3 end, x, tycho.ones(2, f64)))
    helper.fails("gradgradcheck: item 1 of argument 3 must be a tensor, got 2", check, lost, {x}, {2})
    helper.fails("gradgradcheck: argument 3 must be a list of one tensor for each float64 output", check, lost, {x}, {x, x})
    helper.fails("gradgradcheck: argument 3 must be a list of one tensor", check, lost, {x}, 1e-6, 1e-5)
    helper.fails("boom", check, function() error "boom" end, {x}, {raise_exception = false})
    local turned, cubes = tycho.rand(2, 3, f64):t():requires_grad_(), function(v) return v ^ 3, nil, v:argmax() end
    local before = turned:clone()
    assert.is_true(tycho.autograd.gradcheck(cubes, turned))
    assert.is_true(check(cubes, turned, tycho.rand(2, 3, f64):t()))
    assert.is_true(turned:equal(before))
    assert.is_true(tycho.autograd.gradcheck(lost, {x}, 1e-6, 1e-4))
  end)

  it("gradients where nothing was read are 0", function()
    local scores = leaf({{1, 2, 3}, {1, 2, 3}}, "float32")
    local loss = F.cross_entropy(scores, T({1, 1}, {dtype = "int64"}), {ignore_index = 1})
    local slope = tycho.grad(loss, scores, {create_graph = true})
    is({{0, 0, 0}, {0, 0, 0}}, slope, 0)
    is({{0, 0, 0}, {0, 0, 0}}, tycho.grad(slope:sum(), scores), 0)
    local a = leaf {{1, inf}, {2, 3}}
    local power = linalg.matrix_power(a, 0)
    is({{1, 0}, {0, 1}}, power, 0)
    is({{0, 0}, {0, 0}}, tycho.grad(power:sum(), a), 0)
    for _, o in ipairs {{{4, 4}, {5, 6, 2}, "bicubic"}, {{3, 3, 3}, {5, 6, 7, 3}, "bilinear"}} do
      local x = tycho.zeros({0, 2, unpack(o[1])}, {requires_grad = true})
      local places = tycho.zeros({0, unpack(o[2])}, {requires_grad = true})
      local y = F.grid_sample(x, places, {mode = o[3]})
      assert.same({0, 2, unpack(o[2], 1, #o[1])}, y.shape)
      y:sum():backward()
      assert.same(x.shape, x.grad.shape)
      assert.same(places.shape, places.grad.shape)
    end
  end)

  it("PyTorch's names: pad of five dims, vander's N, one precision for all, compiler.is_compiling", function()
    local x = tycho.range(1, 2 ^ 5):view(2, 2, 2, 2, 2)
    local y = F.pad(x, {1, 0, 0, 0, 0, 0, 0, 1, 2, 0}, {value = -1})
    assert.same({4, 3, 2, 2, 3}, y.shape)
    assert.equal(x:sum():item() - (y:numel() - 32), y:sum():item())
    assert.equal(17, y[4][1][1][1][2])
    assert.same({2, 2, 2, 2, 1}, F.pad(x, {-1, 0, 0, 0, 0, 0, 0, 0, 0, 0}).shape)
    for _, wrong in ipairs {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 1}} do helper.fails("pad: ", F.pad, x, wrong) end
    is({{1, 2}, {1, 3}}, linalg.vander(T {2, 3}, {N = 2}))
    local b = tycho.backends
    b.fp32_precision = "tf32"
    assert.same({"tf32", "tf32"}, {b.cuda.matmul.fp32_precision, b.cudnn.conv.fp32_precision})
    b.fp32_precision = "ieee"
    assert.same({"ieee", false}, {b.fp32_precision, b.cuda.matmul.allow_fp16_accumulation})
    helper.fails("backends has no 'cudn_'; did you mean 'cudnn'?", function() b.cudn_ = 1 end)
    helper.fails("backends.cudnn can't be set: set its fields", function() b.cudnn = 1 end)
    helper.fails("pad: item 2 of argument 2 (pad) must be a whole number, got 0.5", F.pad, x, {1, 0.5})
    local compiling = {}
    local fn = tycho.compile(function(v) compiling[#compiling + 1] = tycho.compiler.is_compiling() return v * 2 end)
    for _ = 1, 4 do fn(x) end
    assert.is_true(compiling[#compiling])
    assert.is_false(tycho.compiler.is_compiling())
    helper.fails("compiler has no 'disable': a compiled function runs its Lua code", function() return tycho.compiler.disable end)
  end)

  it("what a mask leaves out of xlogy has no gradient; slopes beside infinity; log_ndtr's second derivative", function()
    local a, b = T({1, 2}):requires_grad_(), T {0, 3}
    is({0, math.log(3)}, tycho.grad(tycho.where(b:gt(0), tycho.xlogy(a, b), 0):sum(), a))
    is({0, math.log(3)}, tycho.grad(tycho.where(b:gt(0), tycho.xlog1py(a, b - 1), 0):sum(), a))
    is({1, math.huge, 1, -math.huge, 1.5, 2}, tycho.gradient(T {1, 2, math.huge, 4, 5, 7})[1])
    -- the density over the distribution function and that one's slope, by mpmath
    local x = tycho.tensor({40, 10, 6, 5, 4, -3}, {dtype = "float64", requires_grad = true})
    local g = tycho.grad(tycho.log_ndtr(x):sum(), x, {create_graph = true})
    local want = {0, 7.694598626706419e-23, 6.075882855817676e-9, 1.486719940904906e-6, 1.338344644685751e-4, 3.283098654930437}
    local second = {0, -7.694598626706419e-22, -3.645529717182241e-8, -7.433601914860711e-6, -5.353557695381802e-4, -0.9294408132147319}
    for i = 1, 6 do
      local slope = tycho.grad(g[{{i}}]:sum(), x, {retain_graph = true})[i]
      assert.is_true(math.abs(g[i] - want[i]) <= 1e-12 * math.abs(want[i]), "slope " .. i)
      assert.is_true(math.abs(slope - second[i]) <= 1e-12 * math.abs(second[i]), "second " .. i)
    end
    local far = T({-47725.446, -1e10, 1e10}):requires_grad_()
    local slopes = tycho.grad(tycho.log_ndtr(far):sum(), far, {create_graph = true})
    is({47725.446, 1e10, 0}, slopes, 1e-5)
    assert.is_true(tycho.grad(slopes:sum(), far):isfinite():all():item())
  end)

  it("cross_entropy's gradient is that of the scores' differences, however large the scores are", function()
    tycho.manual_seed(8)
    local function gradient(x, y, o) return tycho.grad(F.cross_entropy(x, y, o), x) end
    for _, shape in ipairs {{12, 100}, {40, 10}, {3, 9, 20}, {2, 300}} do
      local whole = tycho.randint(-3, 3, shape)
      local y = tycho.randint(1, shape[2], #shape == 3 and {shape[1], shape[3]} or {shape[1]})
      local ignored = {ignore_index = y:reshape(-1)[1]}
      for _, o in ipairs {{}, {label_smoothing = 0.1}, {reduction = "sum", weight = tycho.rand(shape[2])}, ignored} do
        local want = gradient(whole:float():requires_grad_(), y, o)
        for _, by in ipairs {1e3, 1e6, -1e6, 2 ^ 24 - 8} do           -- exact in float32
          local what = ("%d dims, scores by %g"):format(#shape, by)
          helper.close(gradient((whole + by):float():requires_grad_(), y, o), want, what, 1e-6, 1e-6)
        end
      end
    end
  end)

  it("a leaf that is frozen before the first backward from outside gets gradients later", function()
    local w = tycho.ones(2, {requires_grad = true})
    local f = tycho.compile(function(x) return (w * x):sum() end)
    for k = 1, 6 do
      w.grad = nil
      w:requires_grad_(true)
      local l = f(tycho.full({2}, k))
      if k == 2 then w:requires_grad_(false) end
      l:backward()
      assert.equal(k ~= 2 and k or nil, w.grad and w.grad[1])
    end
  end)

  it("a leaf that has been frozen since forward gets no gradient", function()
    local w, u = tycho.ones(2, {requires_grad = true}), tycho.ones(2, {requires_grad = true})
    local loss = (w * 2 * u):sum()
    w:requires_grad_(false)
    loss:backward()
    assert.is_nil(w.grad)
    helper.close(u.grad, tycho.full({2}, 2))
    for _, outside in ipairs {false, true} do
      local freeze
      local f = tycho.compile(function(x)
        w.grad = nil
        w:requires_grad_(true)
        local l = (w * x):sum()
        if freeze then w:requires_grad_(false) end
        if outside then return l end
        l:backward()
      end)
      for k = 1, 8 do
        freeze = k % 2 == 0
        local l = f(tycho.full({2}, k))
        if outside then l:backward() end
        assert.equal(not freeze and k or nil, w.grad and w.grad[1])
      end
      freeze = false
      for k = 1, outside and 8 or 0 do                       -- frozen outside, in the call that is recorded too
        w.grad = nil
        w:requires_grad_(true)
        local l = f(tycho.full({2}, k))
        if k % 3 == 2 then w:requires_grad_(false) end
        l:backward()
        assert.equal(k % 3 ~= 2 and k or nil, w.grad and w.grad[1])
      end
    end
  end)
end)
