-- tycho.distributions beside torch.distributions: densities, entropies, divergences and their gradients; draws by their moments.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local D = tycho.distributions

describe("distributions", function()
  local tensors, json = helper.read "spec/golden/distributions.safetensors"
  local golden = core.json_decode(json)
  local cases = golden.cases
  for i, case in ipairs(cases) do
    local key = "d" .. i .. "."
    local function made(change)
      local ps = {}
      for k = 1, case.params do ps[k] = change(tensors[key .. "p" .. k]) end
      return assert(loadstring("local D, p, q, r = ... return " .. case.make))(D, unpack(ps)), ps
    end
    it(case.make, function()
      local d, ps = made(function(p) return p:clone():requires_grad_() end)
      local x = tensors[key .. "x"]
      local got, wanted = {log_prob = d:log_prob(x)}, {}
      for _, name in ipairs(case.names) do wanted[name] = true end
      if wanted.entropy then got.entropy = d:entropy() end
      if wanted.cdf then got.cdf = d:cdf(x) end
      if wanted.icdf then got.icdf = d:icdf(tensors.inside) end
      if wanted.kl then
        got.kl = D.kl_divergence(d,
          (made(function(p)
            local matrix = p:dim() >= 2 and (case.make:find "Multivariate" or case.make:find "Wishart")
            return p * 0.9 + (matrix and 0 or 0.05)
          end)))
      end
      for _, name in ipairs(case.names) do helper.close(got[name] or d[name], tensors[key .. name], name, 1e-9) end
      local grads = tycho.grad(got.log_prob:masked_fill(got.log_prob:isinf(), 0):sum(), ps)
      for k, g in ipairs(grads) do helper.close(g, tensors[key .. "grad" .. k], "gradient of parameter " .. k, 1e-9) end
      assert.equal(case.event, #d.event_shape)
    end)
    it(case.make .. " draws", function()
      tycho.manual_seed(i)
      local d = made(function(p) return p end)
      local has = {}
      for _, name in ipairs(case.names) do has[name] = true end
      local n = helper.simulated and 4000 or 40000           -- the same numbers as the CPU's, ten times fewer: bounds are wider
      local wider = math.sqrt(40000 / n)
      local x = d:sample({n})
      assert.is_false(x.requires_grad)
      assert.equal(n, #x)
      if x.dtype == "int64" then                             -- how often each category comes
        for k = 1, d.n do helper.close(x:eq(k):double():mean(1), d.probs:select(-1, k), "category " .. k, 0.03 * wider) end
      elseif case.make:find "Cauchy" then                    -- without moments: by its median, and quartiles a scale away
        local loc = case.params == 2 and d.loc or d.scale
        helper.close(x:double():median(1), loc, "median", 0.06 * wider)
      elseif has.mean and has.variance and not case.make:find "VonMises" then
        local off = (x:double():mean(1) - d.mean):abs() / (d.variance / n):sqrt()
        assert.is_true(off:amax():item() < 5, "mean is off by " .. off:amax():item() .. " deviations")
        local ratio = x:double():var(1) / d.variance         -- of a long tail few draws tell little
        assert.is_true(wider > 1 or ratio:amin():item() > 0.8 and ratio:amax():item() < 1.25, "variance: " .. tostring(ratio))
      end
      assert.is_true(d:log_prob(x):isfinite():all():item())
      assert.same({2, unpack(d:sample().shape)}, {unpack(d:sample({2}).shape)})
    end)
  end

  it("draw with the history of their parameters where they can", function()
    local mean, scale = tycho.zeros(3, {requires_grad = true}), tycho.ones(3, {requires_grad = true})
    local d = D.Normal(mean, scale)
    local x = d:rsample({5})
    x:sum():backward()
    helper.close(mean.grad, tycho.full({3}, 5))
    helper.close(scale.grad, x:detach():sum(1))
    helper.fails("Bernoulli: there is no rsample", function() D.Bernoulli(0.5):rsample() end)
    helper.close(D.Normal(tensors.a, tensors.b):cdf(tensors.reals), tensors.cdf, "cdf", 1e-7)
    helper.close(D.Normal(tensors.a, tensors.b):icdf(tensors.unit), tensors.icdf, "icdf", 1e-6)
  end)

  it("draw gamma's family with the gradients of its moments", function()
    tycho.manual_seed(1)
    local n = helper.simulated and 10000 or 100000
    for _, a in ipairs {0.1, 0.5, 3, 300, 20000} do          -- E[x^2] is a (a + 1)
      local alpha = tycho.tensor(a, {dtype = "float64", requires_grad = true})
      local x = D.Gamma(alpha, 1):rsample({n})
      local slope = tycho.grad((x * x):mean(), alpha):item()
      assert.is_true(math.abs(slope / (2 * a + 1) - 1) < (helper.simulated and 0.15 or 0.05), a .. ": " .. slope)
    end
    local c = tycho.tensor({0.5, 2, 3}, {dtype = "float64", requires_grad = true})
    local got = tycho.grad(D.Dirichlet(c):rsample({n}):select(2, 1):square():mean(), c)
    local first, total = c:select(1, 1), c:sum()
    local want = tycho.grad(first * (first + 1) / (total * (total + 1)), c)
    helper.close(got, want, "Dirichlet", helper.simulated and 0.1 or 0.03)           -- as n draws have it
    assert.is_false(D.Gamma(c, 1):sample().requires_grad)
    assert.is_true(D.StudentT(5, 0, c):rsample({2}).requires_grad)
  end)

  it("take numbers, whole parameters, parameters that are tiny, and transforms of many", function()
    assert.is_true(math.abs(D.Poisson(2):log_prob(1):item() - math.log(2) + 2) < 1e-6)
    assert.equal("0", tostring(D.Poisson(3):sample({0}).shape))
    tycho.manual_seed(3)
    assert.is_true(D.Chi2(tycho.tensor({3}, {dtype = "int64"})):sample({100}):isfinite():all():item())
    local shares = D.Dirichlet(tycho.full({3}, 1e-3)):sample({200})
    assert.is_true(shares:amax(2):gt(0.99):float():mean():item() > 0.95)
    assert.is_true(math.abs(D.Beta(0.01, 0.01):sample({2000}):mean():item() - 0.5) < 0.06)
    local counts = D.Poisson(tycho.full({50000}, 9, {dtype = "bfloat16"})):sample():float()
    assert.is_true(counts:amax():item() < 32 and math.abs(counts:var():item() - 9) < 0.4)
    local moved = D.TransformedDistribution(D.Normal(0, 1), D.transforms.AffineTransform(tycho.zeros(3), 1))
    assert.equal("3 2x3", tostring(moved.batch_shape) .. " " .. tostring(moved:sample({2}).shape))
    local one = D.MultivariateNormal(tycho.zeros(2), {covariance_matrix = tycho.eye(2)})
    local two = D.MultivariateNormal(tycho.zeros(2, 2), {covariance_matrix = tycho.eye(2)})
    helper.close(D.kl_divergence(one, two), tycho.zeros(2))
  end)

  it("refuse parameters that aren't any", function()
    local cpu = {device = "cpu"}
    helper.fails("Normal: scale must be above 0", D.Normal, tycho.zeros(1, cpu), tycho.zeros(1, cpu))
    helper.fails("Uniform: low must be below high", D.Uniform, tycho.ones(1, cpu), tycho.zeros(1, cpu))
    helper.fails("Bernoulli: probs must lie in 0..1", D.Bernoulli, tycho.full({1}, 1.5, cpu))
    helper.fails("Categorical: one of probs and logits", D.Categorical)
    helper.fails("Categorical: probs must not be negative", D.Categorical, tycho.tensor({-1, 2}, cpu))
    helper.fails("Independent: argument 2", D.Independent, D.Normal(0, 1), 1)
    helper.fails("no formula is known for Normal and Bernoulli", D.kl_divergence, D.Normal(0, 1), D.Bernoulli(0.5))
    assert.equal("Normal(batch 2x3, event ())", tostring(D.Normal(tycho.zeros(2, 3), 1)))
  end)

  it("transforms have inverses, and compose", function()             -- PyTorch's numbers
    local T, cpu = D.transforms, {device = "cpu"}
    local x = tycho.tensor({0.3}, cpu)
    local c = T.ComposeTransform {T.AffineTransform(1, 2), T.ExpTransform()}
    assert.near(2.2931, c:log_abs_det_jacobian(x, c(x)):item(), 1e-4)
    assert.near(0.3, c.inv(c(x)):item(), 1e-6)
    assert.near(-2.2931, c.inv:log_abs_det_jacobian(c(x)):item(), 1e-4)
    assert.equal(c, c.inv.inv)
    local d = D.TransformedDistribution(D.Normal(tycho.zeros(1, cpu), tycho.ones(1, cpu)), {T.ExpTransform(), c.inv})
    assert.near(-1.2058, d:log_prob(tycho.tensor({0.2}, cpu)):item(), 1e-4)
    helper.fails("ExpTransform.inv has no 'inverted'", function() return T.ExpTransform().inv.inverted end)
    helper.fails("TanhTransform has no 'inverted'", function() return T.TanhTransform().inverted end)
    helper.fails("item 1 of the list of transforms is nil", D.TransformedDistribution, D.Normal(0, 1), {nil, T.ExpTransform()})
  end)

  it("made once of a parameter take part in backward each time", function()
    local mu = tycho.zeros(3, {requires_grad = true})
    local d = D.Normal(mu, 1)
    for i = 1, 3 do
      (d:log_prob(tycho.ones(3)):sum() + d:rsample():sum()):backward()
      assert.same({2 * i, 2 * i, 2 * i}, mu.grad:totable())
    end
    tycho.no_grad(function() mu:add_(1) end)
    assert.same({1, 1, 1}, d.mean:totable())
  end)

  it("of what a transform has given know what it came of", function()
    local mu = tycho.tensor({20}, {requires_grad = true})
    local d = D.TransformedDistribution(D.Normal(mu, tycho.ones(1) * 0.1),
      {D.transforms.TanhTransform {cache_size = 1}, D.transforms.AffineTransform(1, 2, 0, 1)})
    local y = d:rsample()
    local p = d:log_prob(y)
    assert.is_true(p:isfinite():item())    -- a tanh of 20 is 1, which nothing leads back from
    p:backward()
    assert.is_true(mu.grad:isfinite():item())
    local small = D.TransformedDistribution(D.Normal(tycho.zeros(3), tycho.ones(3)), {D.TanhTransform(1)})
    y = small:rsample()
    helper.close(small:log_prob(y), small:log_prob(y:clone()), "as by the way back", 1e-4)
    y:mul_(0.5)
    helper.close(small:log_prob(y), small:log_prob(y:clone()), "after a change")
    local loc = tycho.zeros(3, {requires_grad = true})
    local moved = D.TransformedDistribution(D.Normal(loc, tycho.ones(3)), {D.transforms.TanhTransform {cache_size = 1}})
    y = moved:rsample()
    tycho.no_grad(function() loc:add_(1) end)
    helper.close(moved:log_prob(y), moved:log_prob(y:clone()), "after a step", 1e-4)
    local function made() return D.TransformedDistribution(D.Normal(loc, tycho.ones(3)), {D.transforms.TanhTransform {cache_size = 1}}) end
    local one, other = made(), made()
    y = tycho.no_grad(function() return one:rsample() end)
    helper.close(tycho.grad(one:log_prob(y):sum(), loc), tycho.grad(other:log_prob(y):sum(), loc), "a draw without history", 1e-4)
    helper.fails("TanhTransform: cache_size must be 0 or 1, got 2", D.TanhTransform, 2)
  end)

  it("of a transform's draws are functions of the draw, unless it is remembered", function()
    for _, d in ipairs {D.LogisticNormal(tycho.zeros(2, {requires_grad = true}), tycho.ones(2)),
        D.TransformedDistribution(D.Normal(tycho.zeros(2, {requires_grad = true}), 1), D.ExpTransform()),
        D.TransformedDistribution(D.Normal(tycho.zeros(2, {requires_grad = true}), 1), {D.TanhTransform(1), D.AffineTransform(1, 2)})} do
      local y = d:rsample()
      local leaf = y:detach():requires_grad_(true)
      helper.close(tycho.grad(d:log_prob(y):sum(), y), tycho.grad(d:log_prob(leaf):sum(), leaf))
    end
  end)

  it("say what they say at the edges of what is possible", function()
    local inf, f64 = math.huge, {dtype = "float64"}
    local T = tycho.tensor
    local function is(want, got, tolerance) helper.close(got, T(want), nil, tolerance or 1e-4) end
    -- PyTorch's values
    is({0}, D.Geometric {probs = T {1.0}}:log_prob(T {0}))
    is({0}, D.NegativeBinomial(0, {probs = 0.5}):log_prob(T {0}):view(1))
    local d = D.ContinuousBernoulli {probs = T {0, 1}}
    is({2.7691, 2.7691}, d:log_prob(T {0, 1}))
    is({-1.769, -1.769}, d:entropy(), 1e-3)
    assert.is_true(d:sample():isfinite():all():item())
    is({-7.231}, D.ContinuousBernoulli {logits = T {20}}:log_prob(T {0.5}), 1e-3)
    for _, kind in ipairs {"float16", "bfloat16"} do
      is({0.5825}, D.Categorical {logits = T({1, 2, -inf}, {dtype = kind})}:entropy():float():view(1), 4e-3)
    end
    local p = T({0, 0.5, 1}, {requires_grad = true})
    is({-0.3567, 0.8473, 1.2040}, tycho.grad(D.kl_divergence(D.Bernoulli {probs = p}, D.Bernoulli {probs = 0.3}):sum(), p), 2e-4)
    is({6.3069, 7.3069}, D.kl_divergence(D.Bernoulli {logits = T {0, 0}}, D.Bernoulli {logits = T {14, 16}}))
    is({-inf}, D.TransformedDistribution(D.Normal(0, 1), D.AffineTransform(0, 2)):log_prob(T {inf}))
    -- numbers are taken as the parameters are
    is({-9.2367}, D.Poisson(T({2 ^ 24 + 1}, f64)):log_prob(2 ^ 24 + 1):float())
    is({0.3567}, D.Pareto(T({0.7}, f64), 1):log_prob(0.7):float())
    assert.equal("float16", D.StudentT(T({3}, {dtype = "float16"})):log_prob(0.5).dtype)
    local peaked = tycho.zeros(300, {dtype = "bfloat16"})
    peaked[257] = 5
    is({-1.10}, D.Categorical {logits = peaked}:log_prob(257):float():view(1), 2e-2)
    is({5e-5}, D.VonMises(0, T {1e4}).variance, 1e-2)
    is({8.2914}, D.VonMises(0, T {1e8}):log_prob(0))
    is({inf, inf}, tycho.special.erfcx(T({-1e9 + 0.3, -inf}, f64)):float())
    assert.is_true(D.VonMises(0, T({1e160}, f64)):sample({9}):isfinite():all():item())
    for _, k in ipairs {1e16, 1e20, 1e-300} do
      local x = D.VonMises(0, T({k}, f64)):sample {1000}
      local want = k > 1 and math.sqrt(2 / math.pi / k) or math.pi / 2
      assert.is_true(math.abs(x:abs():mean():item() / want - 1) < 0.1, tostring(k))
    end
    for _, c in ipairs {{1e15, 0.3}, {1e14, 2e-13}} do
      local x = (D.Binomial(c[1], {probs = T({c[2]}, f64)}):sample {40000} - c[1] * c[2]) / math.sqrt(c[1] * c[2] * (1 - c[2]))
      assert.is_true(math.abs(x:mean():item()) < 0.03 and math.abs(x:var():item() - 1) < 0.05)
    end
    for _, temperature in ipairs {0.5, 0.1, 0.03} do
      local r = D.RelaxedBernoulli(temperature, {logits = T {-5, 0, 5}})
      assert.is_true(r:log_prob(r:rsample {1000}):isfinite():all():item())
    end
    assert.is_true(D.SigmoidTransform().inv(T {0, 1}):isfinite():all():item())
    helper.fails("Independent: argument 2 must be", D.Independent, D.Normal(tycho.zeros(2, 3), 1), 0.5)
  end)

  it("draw counts as often as their probabilities say", function()
    tycho.manual_seed(11)
    local n = 20000
    local function fits(name, d, last)
      local x = d:sample({n}):cpu()
      assert.is_true(x:eq(x:floor()):all():item(), name)
      local mean, sd = d.mean:item(), math.sqrt(d.variance:item())
      local least, most = math.max(math.floor(mean - 3 * sd), 0), math.min(math.ceil(mean + 3 * sd), last or math.huge)
      local sum, seen, cells = 0, 0, 0
      for k = least, most do
        local want = n * math.exp(d:log_prob(k):item())
        local got = x:eq(k):sum():item()
        if want > 8 then sum, cells = sum + (got - want) ^ 2 / want, cells + 1 end
        seen = seen + got
      end
      assert.is_true(seen > 0.99 * n, name)
      assert.is_true(sum < cells + 5 * math.sqrt(2 * cells) + 5, ("%s: chi square %g of %d"):format(name, sum, cells))
    end
    local f64 = {dtype = "float64"}
    for _, rate in ipairs {0.4, 9.9, 10.5, 40, 300} do fits("Poisson " .. rate, D.Poisson(tycho.tensor(rate, f64))) end
    for _, c in ipairs {{1, 0.3}, {12, 0.95}, {25, 0.39}, {25, 0.41}, {60, 0.8}, {2000, 0.1}} do
      fits(("Binomial %g %g"):format(c[1], c[2]), D.Binomial(c[1], {probs = tycho.tensor(c[2], f64)}), c[1])
    end
    fits("NegativeBinomial", D.NegativeBinomial(3.5, {probs = tycho.tensor(0.7, f64)}))
    assert.same({0, 0, 7}, D.Binomial(tycho.tensor {0, 7, 7}, {probs = tycho.tensor {0.5, 0, 1}}):sample():totable())
    assert.same({0}, D.Poisson(tycho.zeros(1)):sample():totable())
    assert.same({5, 0}, tycho.binomial(tycho.tensor {5, 5}, tycho.tensor {1, 0}):totable())
  end)

  it("draw numbers as their distribution functions say", function()
    tycho.manual_seed(12)
    local n = 20000
    for _, a in ipairs {0.05, 0.7, 1, 3, 80} do
      local d = D.Gamma(tycho.tensor(a, {dtype = "float64"}), 2)
      local u = d:cdf(d:sample({n})):sort()
      local far = (u - tycho.range(1, n, 1, {dtype = "float64"}) / n):abs():max():item()
      assert.is_true(far < 2 / math.sqrt(n), ("Gamma %g: %g"):format(a, far))
    end
    for _, k in ipairs {1e-6, 0.3, 4, 500} do
      local d = D.VonMises(tycho.tensor(0.5, {dtype = "float64"}), k)
      local x = d:sample({n}) - 0.5
      local far = math.abs(1 - x:cos():mean():item() - d.variance:item())
      assert.is_true(far < 5 * math.max(x:cos():std():item(), 1e-9) / math.sqrt(n), ("VonMises %g: %g"):format(k, far))
      assert.is_true(math.abs(x:sin():mean():item()) < 5 / math.sqrt(n))
    end
  end)

  it("know transforms to where constraints hold", function()
    local C = D.constraints
    local x = tycho.randn(5, 6)
    for _, c in ipairs {C.real, C.positive, C.nonnegative, C.greater_than(2), C.less_than(-1), C.unit_interval, C.interval(-1, 3),
        C.simplex, C.real_vector, C.corr_cholesky, C.independent(C.positive, 1)} do
      for _, to in ipairs {D.biject_to, D.transform_to} do
        local t = to(c)
        local y = t(x)
        assert.is_true(c:check(y):all():item(), tostring(c))
        if to == D.biject_to then helper.close(t.inv(y), x, tostring(c), 1e-3) end
      end
    end
    assert.is_true(C.positive_definite:check(D.transform_to(C.positive_definite)(tycho.randn(3, 3) / 2)):item())
    helper.fails("biject_to: no transform is known to the constraint boolean", D.biject_to, C.boolean)
    helper.fails("transform_to: argument 1 must be a constraint, got 'positive'", D.transform_to, "positive")
  end)
end)
