-- Divergences of two kinds and transforms beside PyTorch's; supports, expand, enumerate_support, register_kl; draws of angles and
-- matrices by what is known of them otherwise.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local D = tycho.distributions
local T, C = D.transforms, D.constraints

describe("distributions", function()
  local tensors, json = helper.read "spec/golden/distributions.safetensors"
  local golden = core.json_decode(json)
  local double, cpu = {dtype = "float64"}, {device = "cpu"}
  local n = helper.simulated and 4000 or 40000
  local wider = math.sqrt(40000 / n)
  local function leaf(t) return t:clone():requires_grad_() end

  ---- divergences ----
  local function made(kind, ps) return kind == "Binomial" and D.Binomial(ps[1], {probs = ps[2]}) or D[kind](unpack(ps)) end
  for i, case in ipairs(golden.divergences) do
    it(("lose as PyTorch's where %s stands for %s"):format(case.q, case.p), function()
      local key, ps, qs, all = "k" .. i .. ".", {}, {}, {}
      for k = 1, case.params do
        all[k] = leaf(tensors[key .. "p" .. k])
        table.insert(k <= case.first and ps or qs, all[k])
      end
      local kl = D.kl_divergence(made(case.p, ps), made(case.q, qs))
      helper.close(kl, tensors[key .. "kl"], "kl", 1e-9)
      if case.grads then
        for k, g in ipairs(tycho.grad(kl:sum(), all)) do helper.close(g, tensors[key .. "grad" .. k], "gradient " .. k, 1e-8) end
      end
    end)
  end

  it("lose nothing infinite where the supports only touch, which PyTorch takes for beyond", function()
    local p = D.ContinuousBernoulli(tycho.tensor({0.2, 0.9}, double))
    helper.close(D.kl_divergence(p, D.Uniform(0, 1)), -p:entropy(), "within 0..1")
    local u = D.Uniform(tycho.tensor({0, 0.25}, double), 1)       -- against the mean of the log-densities over a fine grid
    local x = (tycho.range(1, 4000, 1, double) - 0.5) / 4000
    for i = 1, 2 do
      local low = i == 1 and 0 or 0.25
      local q = D.ContinuousBernoulli(tycho.tensor(0.3, double))
      local wanted = -u:entropy():select(1, i) - q:log_prob(x * (1 - low) + low):mean()
      helper.close(D.kl_divergence(u, q):select(1, i), wanted, "uniform " .. i, 1e-7)
    end
  end)

  it("have gradients of parameters that finite and infinite losses share", function()
    local function shared(kl_of)                             -- of the first alone, and of the first among others
      local first
      for _, rest in ipairs {{}, {0.5, 0.9}} do
        local s = leaf(tycho.tensor(0.6, double))
        local kl = kl_of(s, tycho.tensor({2.5, unpack(rest)}, double))
        assert.is_true(kl:select(1, 1):isfinite():item() and (#rest == 0 or not kl:select(1, 3):isfinite():item()))
        local g = tycho.grad(kl:masked_fill(kl:isinf(), 0):sum(), s)
        first = first or g
        helper.close(g, first, "gradient", 1e-9)
      end
    end
    shared(function(s, alpha) return D.kl_divergence(D.Pareto(s, alpha), D.Normal(0, 2)) end)
    shared(function(s, alpha) return D.kl_divergence(D.Pareto(s, alpha), D.Exponential(s)) end)
    shared(function(s, low) return D.kl_divergence(D.Uniform(s - (3 - low), 9), D.Gamma(s * 0 + 2, s)) end)
    shared(function(s, low) return D.kl_divergence(D.Uniform(s - (3 - low), 0.9), D.Beta(s, s)) end)
  end)

  it("lose what draws say is lost", function()                    -- Monte Carlo: independent of the formulas
    tycho.manual_seed(11)
    local m = tycho.tensor({{2, 0.4}, {0.4, 1}}, double)
    for _, pair in ipairs {
      {D.Wishart(5, m), D.Wishart(7, m * 0.8)}, {D.Gamma(tycho.tensor(3, double), 2), D.Normal(1, 2)},
      {D.Pareto(tycho.tensor(1, double), 5), D.Gamma(2, 1)}, {D.Normal(tycho.tensor(0.5, double), 1), D.Laplace(0, 2)},
      {D.LowRankMultivariateNormal(tycho.zeros(2, double), tycho.tensor({{1}, {0.5}}, double), tycho.ones(2, double)),
        D.MultivariateNormal(tycho.ones(2, double), m)},
      {D.LogisticNormal(tycho.tensor({0.2, -0.3}, double), 0.5), D.LogisticNormal(tycho.tensor({0, 0.1}, double), 0.7)},
    } do
      local p, q = unpack(pair)
      local x = p:sample({n})
      local each = p:log_prob(x) - q:log_prob(x)
      local off = (each:mean() - D.kl_divergence(p, q)):abs() / (each:std() / math.sqrt(n))
      assert.is_true(off:item() < 4.5, tostring(p) .. ": off by " .. off:item() .. " deviations")
    end
  end)

  it("batches of matrices lose what each loses", function()
    local df, m = tycho.tensor({4, 6.5}, double), tycho.tensor({{2, 0.4}, {0.4, 1}}, double)
    local q = D.Wishart(5, m * 0.7)
    local kl = D.kl_divergence(D.Wishart(df, m), q)
    for i = 1, 2 do helper.close(kl:select(1, i), D.kl_divergence(D.Wishart(df:select(1, i), m), q), "df " .. i) end
  end)

  it("learn to compare what is registered, and kinds of it", function()
    local calls = 0
    local function half(p) calls = calls + 1; return p.concentration * 0 + 0.5 end
    assert.equal(half, D.register_kl(D.Gamma, D.HalfNormal, half))
    helper.close(D.kl_divergence(D.Gamma(tycho.ones(2), 1), D.HalfNormal(1)), tycho.full({2}, 0.5))
    helper.close(D.kl_divergence(D.Chi2(tycho.ones(3)), D.HalfNormal(1)), tycho.full({3}, 0.5))       -- a Chi2 is a Gamma
    assert.equal(2, calls)
    D.register_kl(D.Chi2, D.HalfNormal)(function(p) return p.df * 0 + 0.25 end)
    helper.close(D.kl_divergence(D.Chi2(tycho.ones(3)), D.HalfNormal(1)), tycho.full({3}, 0.25))      -- the nearest counts
    helper.close(D.kl_divergence(D.Gamma(tycho.ones(2), 1), D.HalfNormal(1)), tycho.full({2}, 0.5))
    helper.fails("register_kl: argument 1 must be a class of distributions", D.register_kl, "Gamma", D.Normal, half)
    helper.fails("register_kl: argument 2 must be a class of distributions", D.register_kl, D.Gamma, D.Normal(0, 1), half)
    helper.fails("register_kl: argument 3 must be a function, got 1", D.register_kl, D.Gamma, D.Normal, 1)
    helper.fails("kl_divergence: argument 2 must be a distribution, got a tensor", D.kl_divergence, D.Normal(0, 1), tycho.ones(1))
    helper.fails("kl_divergence: argument 1 must be a distribution, got nil", D.kl_divergence, nil, D.Normal(0, 1))
    helper.fails("no formula is known for Poisson and Normal; add one with register_kl", D.kl_divergence, D.Poisson(1), D.Normal(0, 1))
    helper.fails("the first's total_count must be at least", D.kl_divergence, D.Binomial(3, {probs = tycho.tensor({0.5}, cpu)}),
      D.Binomial(4, {probs = tycho.tensor({0.5}, cpu)}))
    assert.equal(math.huge, D.kl_divergence(D.Binomial(5, {probs = 0.5}), D.Binomial(4, {probs = 0.5})):item())
    local function with(t) return D.TransformedDistribution(D.Normal(0, 1), t) end
    helper.fails("must have the same transforms", D.kl_divergence, with(T.AffineTransform(0, 2)), with(T.AffineTransform(0, 3)))
    helper.fails("must have the same transforms", D.kl_divergence, with(T.ExpTransform()), with(T.TanhTransform()))
  end)

  ---- transforms ----
  for i, case in ipairs(golden.transforms) do
    it("transform as " .. case.make, function()
      local key = "t" .. i .. "."
      local t = assert(loadstring("local D, T, half = ... return " .. case.make))(D, T, tycho.tensor(0.5, double))
      local x = leaf(tensors[key .. "x"])
      local y = t(x)
      helper.close(y, tensors[key .. "y"], "forward", 1e-9)
      helper.close(t.inv(tensors[key .. "y"]), tensors[key .. "back"], "inverse", 1e-9)
      assert.equal(case.into, t.domain.event_dim)
      assert.equal(case.out, t.codomain.event_dim)
      assert.equal(case.bijective, t.bijective)
      assert.equal(t, t.inv.inv)
      if not case.make:find "Cat" then assert.is_true(t.codomain:check(y):all():item(), "codomain") end
      assert.same({unpack(y.shape)}, {unpack(t:forward_shape(x.shape))})
      assert.same({unpack(x.shape)}, {unpack(t:inverse_shape(y.shape))})
      local total = (y * tycho.cos(tycho.range(0, y:numel() - 1, 1, double)):view(y.shape)):sum()
      if case.bijective then
        helper.close(t.inv(y), x, "there and back", 1e-9)
        local slope = t:log_abs_det_jacobian(x, y)
        helper.close(slope, tensors[key .. "slope"], "log_abs_det_jacobian", 1e-9)
        helper.close(t:log_abs_det_jacobian(x), slope, "without y", 1e-9)
        helper.close(t.inv:log_abs_det_jacobian(y, x), -slope, "of the way back", 1e-9)
        total = total + slope:sum()
      else
        helper.fails("it isn't bijective", t.log_abs_det_jacobian, t, x, y)
      end
      helper.close(tycho.grad(total, x), tensors[key .. "grad"], "gradient", 1e-8)
    end)
  end

  it("say what transforms can't be", function()
    helper.fails("ReshapeTransform: in_shape and out_shape must have the same number of elements", T.ReshapeTransform, {2, 3}, {5})
    helper.fails("ReshapeTransform: the last dims must be 2x3, got shape 3x2", T.ReshapeTransform({2, 3}, {6}), tycho.ones(3, 2))
    helper.fails("ReshapeTransform: in_shape must be a list", T.ReshapeTransform, 2, {2})
    helper.fails("StackTransform: dim 1 must have 2 elements, got shape 3",
      T.StackTransform {tseq = {T.ExpTransform(), T.ExpTransform()}}, tycho.ones(3))
    helper.fails("StackTransform: item 2 of the list is 1, not a transform", T.StackTransform, {T.ExpTransform(), 1})
    helper.fails("CatTransform: lengths must be a list of 2 numbers", T.CatTransform, {T.ExpTransform(), T.ExpTransform()}, {lengths = {1}})
    helper.fails("CatTransform: dim must be a whole number other than 0", T.CatTransform, {T.ExpTransform()}, 0)
    helper.fails("CorrCholeskyTransform: the last dim must have n (n - 1) / 2", T.CorrCholeskyTransform(), tycho.ones(2, 4))
    helper.fails("CorrCholeskyTransform: square matrices", T.CorrCholeskyTransform().inv, tycho.ones(2, 3))
    helper.fails("StickBreakingTransform: forward needs a tensor or a number, got nil", T.StickBreakingTransform())
    helper.fails("CorrCholeskyTransform: slope needs a tensor or a number, got 'x'", function()
      T.CorrCholeskyTransform():log_abs_det_jacobian("x")
    end)
    helper.fails("ReshapeTransform: forward_shape needs a list of sizes, got 2",
      function() T.ReshapeTransform({1}, {1}):forward_shape(2) end)
    helper.fails("ExpTransform: inverse_shape: size 1 must be a whole number", function() T.ExpTransform():inverse_shape({"x"}) end)
    helper.fails("stack: dim must be a whole number other than 0, got 'x'", C.stack, {C.real}, "x")
    helper.fails("cat: lengths must be a list of 1 numbers", C.cat, {C.real}, 1, {1, 2})
    helper.fails("cat: item 1 of the list is 1, not a constraint", C.cat, {1})
    assert.near(7, T.AffineTransform(1, 2)(3):item(), 1e-6)  -- a number is taken as a distribution takes it
    helper.fails("StickBreakingTransform: values must be vectors", T.StickBreakingTransform(), tycho.ones(1):sum())
    helper.fails("IndependentTransform: argument 1 must be a transform, got 1", T.IndependentTransform, 1, 1)
    helper.fails("IndependentTransform: values must have at least 2 dims", T.IndependentTransform(T.ExpTransform(), 2), tycho.ones(2))
    helper.fails("CumulativeDistributionTransform: argument 1 must be a distribution", T.CumulativeDistributionTransform, 1)
    helper.fails("event shape 2", T.CumulativeDistributionTransform, D.Dirichlet(tycho.ones(2)))
    helper.fails("ComposeTransform: argument 1 must be a list of transforms, got a transform", T.ComposeTransform, T.ExpTransform())
    helper.fails("StickBreakingTransform has no 'sign'", function() return T.StickBreakingTransform().sign end)
    helper.fails("it maps events of 1 dims to events of 2", function() return T.CorrCholeskyTransform().event_dim end)
    helper.fails("the transforms need a base of 1 dims or more", D.TransformedDistribution, D.Normal(0, 1), T.StickBreakingTransform())
    local folded = D.TransformedDistribution(D.Normal(tycho.zeros(2), 1), T.AbsTransform())
    helper.fails("AbsTransform: this transform has no log_abs_det_jacobian", folded.log_prob, folded, tycho.ones(2))
    helper.fails("this distribution has no cdf: AbsTransform", folded.cdf, folded, tycho.ones(2))
    local logistic = D.LogisticNormal(tycho.zeros(2), 1)
    helper.fails("LogisticNormal: this distribution has no icdf", logistic.icdf, logistic, 0.5)
    helper.fails("LogisticNormal: log_prob: a value must be from 0 and add up to 1", logistic.log_prob, logistic, tycho.ones(3, cpu))
  end)

  it("give cdf and icdf that undo each other through transforms, those that turn around too", function()
    local p = tycho.tensor({0.1, 0.5, 0.95}, double)
    for _, list in ipairs {{T.ExpTransform()}, {T.AffineTransform(1, -2)}, {T.ExpTransform(), T.PowerTransform(-0.5)},
      {T.AffineTransform(0, tycho.tensor({-1, 2, 3}, double)), T.SigmoidTransform()}} do
      local d = D.TransformedDistribution(D.Normal(tycho.zeros(3, double), 1), list)
      helper.close(d:cdf(d:icdf(p)), p, "there and back", 1e-9)
      local x = d:sample({n})
      local share = x:le(d:icdf(p)):double():mean(1)         -- draws are below the quantile as often as it says
      assert.is_true((share - p):abs():amax():item() < 0.015 * wider, tostring(share))
    end
  end)

  ---- what all distributions have ----
  local three, mat = tycho.tensor({0.5, 1.5, 2}, double), tycho.tensor({{2, 0.3}, {0.3, 1}}, double)
  local shares = tycho.tensor({0.2, 0.3, 0.5}, double)
  local of_three = {                                         -- of batch 3, and one of none
    {"Normal", D.Normal(three, 1)}, {"LogNormal", D.LogNormal(three, 0.5)}, {"Beta", D.Beta(three, 2)}, {"Gamma", D.Gamma(three, 2)},
    {"Chi2", D.Chi2(three)}, {"HalfCauchy", D.HalfCauchy(three)}, {"Bernoulli", D.Bernoulli(shares)}, {"Binomial", D.Binomial(4, shares)},
    {"Geometric", D.Geometric {logits = three}}, {"RelaxedBernoulli", D.RelaxedBernoulli(0.5, shares)}, {"VonMises", D.VonMises(0, three)},
    {"GeneralizedPareto", D.GeneralizedPareto(0, three, 0.1)}, {"LKJCholesky", D.LKJCholesky(3, three)},
    {"Wishart", D.Wishart(three + 2, mat)},
    {"StudentT", D.StudentT(three)}, {"NegativeBinomial", D.NegativeBinomial(three, shares)}, {"InverseGamma", D.InverseGamma(three, 1)},
    {"Categorical", D.Categorical(mat:abs():unsqueeze(1):tile(3, 1, 1):select(2, 1))},
    {"Dirichlet", D.Dirichlet(mat:abs()[{ {1, 1} }]:tile(3, 1))},
    {"Multinomial", D.Multinomial(4, {probs = mat:abs()[{ {1, 1} }]:tile(3, 1)})}, {"Uniform", D.Uniform(-three, 1)},
    {"ContinuousBernoulli", D.ContinuousBernoulli(shares)}, {"Poisson", D.Poisson(three)}, {"FisherSnedecor", D.FisherSnedecor(three, 9)},
    {"MultivariateNormal", D.MultivariateNormal(three:unsqueeze(2):tile(1, 2), mat)},
    {"LowRankMultivariateNormal", D.LowRankMultivariateNormal(three:unsqueeze(2):tile(1, 2), mat, mat:select(1, 1))},
    {"LogisticNormal", D.LogisticNormal(three:unsqueeze(2):tile(1, 2), 1)},
    {"Independent", D.Independent(D.Normal(three:unsqueeze(2):tile(1, 2), 1), 1)},
    {"MixtureSameFamily", D.MixtureSameFamily(D.Categorical(shares), D.Normal(three:unsqueeze(2):tile(1, 3), 1))},
    {"TransformedDistribution", D.TransformedDistribution(D.Normal(three, 1), {T.ExpTransform(), T.AffineTransform(1, three)})},
    {"RelaxedOneHotCategorical", D.RelaxedOneHotCategorical(0.5, {logits = three:unsqueeze(2):tile(1, 2)})},
    {"OneHotCategoricalStraightThrough", D.OneHotCategoricalStraightThrough {logits = three:unsqueeze(2):tile(1, 2)}},
  }
  for _, one in ipairs(of_three) do
    it(one[1] .. " expands, and its draws are where it says", function()
      tycho.manual_seed(2)
      local d = one[2]
      assert.equal("3", tostring(d.batch_shape))
      local e = d:expand({2, 3})
      assert.equal("2x3", tostring(e.batch_shape))
      assert.same({unpack(d.event_shape)}, {unpack(e.event_shape)})
      assert.equal("3", tostring(d.batch_shape))             -- it itself stays
      local x = e:sample({5})
      assert.same({5, 2, 3, unpack(d.event_shape)}, {unpack(x.shape)})
      helper.close(e:log_prob(x), d:log_prob(x), "log_prob", 1e-9)
      assert.same({2, 3}, {unpack(e:log_prob(x:select(1, 1):select(1, 1)).shape)})
      assert.is_false(x:select(2, 1):equal(x:select(2, 2)))  -- draws of their own
      local inside = d.support:check(x)
      assert.same({5, 2, 3}, {unpack(inside.shape)})
      assert.is_true(inside:all():item(), tostring(d.support))
      assert.is_false(d.support:check(x * (0 / 0)):any():item())
      helper.fails(one[1] .. ": expand: batch shape 3 doesn't broadcast to 4", d.expand, d, {4})
      helper.fails("expand: batch shape 3 doesn't broadcast", d.expand, d, {})
      helper.fails("expand: size 1 must be a whole number from 0", d.expand, d, {-1, 3})
      assert.equal("table", type(d.arg_constraints))
      for name, constraint in pairs(d.arg_constraints) do
        local ok, v = pcall(function() return d[name] end)
        if ok and tycho.is_tensor(v) then assert.is_true(constraint:check(v):all():item(), name) end
      end
    end)
  end

  it("expand by sizes of 1, by names, from numbers, and keep the history of their parameters", function()
    local mu = tycho.zeros(1, {requires_grad = true})
    local d = D.Normal(mu, 1):expand({2, 4})
    d:log_prob(tycho.ones(2, 4)):sum():backward()
    assert.equal(8, mu.grad:item())
    assert.equal("7", tostring(D.Normal(0, 1):expand(7).batch_shape))
    assert.equal("7", tostring(D.Gamma(2, 1):expand {batch_shape = {7}}:sample().shape))
    assert.equal("5x2x3", tostring(D.LKJCholesky(3):expand {5, 2}:log_prob(tycho.eye(3):tile(3, 1, 1):unsqueeze(2):unsqueeze(2)).shape)
      :gsub("^3", "5"):gsub("x5x2$", "x2x3"))
    local warmth = tycho.full({2}, 0.5)                      -- a temperature is of no batch
    assert.equal(warmth, D.RelaxedBernoulli(warmth, tycho.full({2}, 0.3)):expand({3, 2}).temperature)
    helper.fails("Normal: a shape must be one list of sizes, such as expand({2, 3})", function() D.Normal(0, 1):expand(2, 3) end)
    helper.fails("unknown option 'batch_shap'", function() D.Normal(0, 1):expand {batch_shap = {2}} end)
  end)

  it("list the values that there are", function()
    assert.same({0, 1}, D.Bernoulli(0.3):enumerate_support():totable())
    assert.same({{1, 1}, {2, 2}, {3, 3}}, D.Categorical(tycho.ones(2, 3)):enumerate_support():totable())
    assert.same({{1}, {2}, {3}}, D.Categorical(tycho.ones(2, 3)):enumerate_support(false):totable())
    assert.same({{0, 0}, {1, 1}, {2, 2}}, D.Binomial(2, tycho.tensor({0.5, 0.1})):enumerate_support {expand = true}:totable())
    assert.same({{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, D.OneHotCategorical(tycho.ones(3)):enumerate_support():totable())
    assert.same({{0, 0}, {1, 1}}, D.Independent(D.Bernoulli(tycho.tensor({0.5, 0.1})), 0):enumerate_support():totable())
    for _, d in ipairs {D.Bernoulli(shares), D.Categorical(mat), D.Binomial(5, shares), D.OneHotCategorical(mat)} do
      local total = d:log_prob(d:enumerate_support()):exp():sum(1)
      helper.close(total, tycho.ones_like(total), "probabilities add up", 1e-9)
      assert.is_true(d.has_enumerate_support)
    end
    assert.is_false(D.Poisson(1).has_enumerate_support)
    helper.fails("Poisson: this distribution has no enumerate_support", function() D.Poisson(1):enumerate_support() end)
    helper.fails("this distribution has no enumerate_support", function() D.Independent(D.Bernoulli(shares), 1):enumerate_support() end)
    helper.fails("need the same total_count everywhere, got values from 2 to 3", function()
      D.Binomial(tycho.tensor({2, 3}), shares[{ {1, 2} }]):enumerate_support()
    end)
    helper.fails("call it with a colon", D.Bernoulli(0.5).enumerate_support)
  end)

  it("have constraints that say what holds", function()
    local function holds(c, list) return c:check(tycho.tensor(list, double)):totable() end
    assert.same({false, false, true}, holds(C.positive, {-1, 0, 1}))
    assert.same({false, true, true}, holds(C.nonnegative, {-1, 0, 1}))
    assert.same({true, true, false}, holds(C.unit_interval, {0, 1, 1.5}))
    assert.same({true, false}, holds(C.half_open_interval(1, 2), {1, 2}))
    assert.same({false, true, true}, holds(C.less_than(2), {2, 1, -1}))
    assert.same({false, true, false}, holds(C.integer_interval(1, 3), {0, 2, 2.5}))
    assert.same({false, true, false}, holds(C.positive_integer, {0, 2, 2.5}))
    assert.same({true, false}, holds(C.real, {1, 0 / 0}))
    assert.same({true, false, false}, holds(C.simplex, {{0.5, 0.5}, {0.5, 0.6}, {-0.5, 1.5}}))
    assert.same({true, false, false}, holds(C.one_hot, {{0, 1}, {1, 1}, {0.5, 0.5}}))
    assert.same({true, false, false}, holds(C.multinomial(3), {{1, 2}, {2, 2}, {-1, 1}}))
    assert.same({true, false}, holds(C.independent(C.positive, 1), {{1, 2}, {1, -2}}))
    assert.same({true, false}, holds(C.lower_triangular, {{{1, 0}, {1, -1}}, {{1, 1}, {0, 1}}}))
    assert.same({true, false}, holds(C.lower_cholesky, {{{1, 0}, {1, 1}}, {{1, 0}, {1, -1}}}))
    assert.same({true, false}, holds(C.corr_cholesky, {{{1, 0}, {0.6, 0.8}}, {{1, 0}, {0.6, 0.7}}}))
    assert.same({true, false}, holds(C.symmetric, {{{1, 2}, {2, 1}}, {{1, 2}, {3, 1}}}))
    assert.same({true, false, false}, holds(C.positive_definite, {{{1, 0}, {0, 1}}, {{1, 2}, {2, 1}}, {{0, 0}, {0, 1}}}))
    assert.same({true, false, true}, holds(C.positive_semidefinite, {{{1, 0}, {0, 1}}, {{1, 2}, {2, 1}}, {{0, 0}, {0, 1}}}))
    assert.same({{true, true}, {false, true}}, holds(C.cat({C.positive, C.real}, 2), {{1, -1}, {-1, 1}}))
    assert.same({{true, true}, {false, true}}, holds(C.stack({C.positive, C.real}, 2), {{1, -1}, {-1, 1}}))
    assert.equal(2, C.corr_cholesky.event_dim)
    assert.equal("positive interval(1, 2) independent(real, 2)",
      tostring(C.positive) .. " " .. tostring(C.interval(1, 2)) .. " " .. tostring(C.independent(C.real, 2)))
    assert.is_true(D.Categorical(shares).support.is_discrete)
    assert.equal(3, D.Categorical(shares).support.upper_bound)
    assert.is_true(D.Normal(0, 1).has_rsample and not D.VonMises(0, 1).has_rsample)
    assert.same({C.real, C.positive}, {D.Normal.arg_constraints.loc, D.Normal.arg_constraints.scale})
    helper.fails("distributions.constraints has no 'positiv'; did you mean 'positive'?", function() return C.positiv end)
    helper.fails("positive: check needs a tensor, got 1", C.positive.check, C.positive, 1)
    helper.fails("simplex: check: a value must have at least 1 dims", C.simplex.check, C.simplex, tycho.ones(1):sum())
    helper.fails("greater_than: lower_bound must be a number or a tensor", C.greater_than, "0")
  end)

  ---- draws that have no mean and variance to be held against ----
  it("draw angles that follow the density", function()
    tycho.manual_seed(5)
    for _, k in ipairs {1e-9, 1e-6, 0.3, 2, 50, 1e4} do
      local d = D.VonMises(tycho.tensor(3, double), k)       -- near pi: draws wrap around
      local x = d:sample({n})
      assert.is_true(x:ge(-math.pi):logical_and(x:lt(math.pi)):all():item())
      -- the mean of cos is the Bessel functions' ratio, here by plain sums over the circle
      local norm, first, second = 0, 0, 0
      for i = 1, 20000 do
        local a = (i - 0.5) / 20000 * 2 * math.pi - math.pi
        local w = math.exp(k * (math.cos(a) - 1))
        norm, first, second = norm + w, first + w * math.cos(a), second + w * math.cos(a) ^ 2
      end
      local mean, var = first / norm, second / norm - (first / norm) ^ 2
      local off = (x - 3):cos()
      assert.is_true(math.abs(off:mean():item() - mean) < 4.5 * math.sqrt(var / n), k .. ": " .. off:mean():item() .. ", not " .. mean)
      assert.is_true(math.abs((x - 3):sin():mean():item()) < 4.5 * math.sqrt((1 - second / norm) / n))
      assert.near(1 - mean, d.variance:item(), 1e-6)
      assert.near(k - math.log(norm / 20000 * 2 * math.pi) - k, d:log_prob(3):item(), 1e-6)
    end
  end)

  it("draw correlation matrices by their determinant", function()
    tycho.manual_seed(6)
    local eta = tycho.tensor({0.7, 1, 4}, double)
    for _, dim in ipairs {2, 3, 5} do
      local l = D.LKJCholesky(dim, eta):sample({n})
      local m = l:matmul(l:transpose(-2, -1))
      helper.close(m:diagonal(0, -2, -1), tycho.ones(n, 3, dim, double), "diagonal", 1e-9)
      -- each correlation r: (r + 1) / 2 is Beta(a, a) with a = eta - 1 + dim / 2: mean 0, variance 1 / (2 a + 1)
      local v = 1 / ((eta - 1 + dim / 2) * 2 + 1)
      for i = 2, dim do
        for k = 1, i - 1 do
          local r = m:select(-2, i):select(-1, k)
          assert.is_true((r:mean(1):abs() / (v / n):sqrt()):amax():item() < 4.5, ("mean of %d, %d of %d"):format(i, k, dim))
          assert.is_true((r:var(1) / v - 1):abs():amax():item() < 0.05 * wider, ("variance of %d, %d of %d"):format(i, k, dim))
        end
      end
    end
    -- the density of 2 x 2: over r = sin(t), of the row (sin t, cos t), it adds up to 1
    local t = (tycho.range(1, 4000, 1, double) - 0.5) / 4000 * math.pi - math.pi / 2
    local l = tycho.stack({tycho.ones_like(t), tycho.zeros_like(t), t:sin(), t:cos()}, -1):view(4000, 2, 2)
    local p = D.LKJCholesky(2, tycho.tensor(1.5, double)):log_prob(l):exp() * t:cos()      -- dr = cos t dt
    assert.near(1, p:mean():item() * math.pi, 1e-4)
  end)

  it("draw with the gradients of their moments", function()
    tycho.manual_seed(7)
    local df, tril = leaf(tycho.tensor(5, double)), leaf(tycho.tensor({{1.2, 0}, {0.4, 0.8}}, double))
    local w = D.Wishart {df = df, scale_tril = tril}
    local got = tycho.grad(w:rsample({n}):mean(1):sum(), {df, tril}, {retain_graph = true})
    local wanted = tycho.grad(w.mean:sum(), {df, tril})
    helper.close(got[1], wanted[1], "df", 0.03 * wider)
    helper.close(got[2]:tril(), wanted[2]:tril(), "scale_tril", 0.03 * wider)
    local loc, factor, diag = leaf(tycho.zeros(3, double)), leaf(tensors.reals:t()), leaf(three)
    local low = D.LowRankMultivariateNormal(loc, factor, diag)
    local x = low:rsample({n})
    got = tycho.grad(x:square():mean(1):sum() + x:mean(1):sum(), {loc, factor, diag}, {retain_graph = true})
    wanted = tycho.grad(low.variance:sum() + (low.mean * low.mean):sum() + low.mean:sum(), {loc, factor, diag})
    for i = 1, 3 do helper.close(got[i], wanted[i], "parameter " .. i, 0.06 * wider) end
    helper.close(low.covariance_matrix:matmul(low.precision_matrix), tycho.eye(3, double), "precision", 1e-9)
    helper.close(low.scale_tril:matmul(low.scale_tril:t()), low.covariance_matrix, "scale_tril", 1e-9)
    local c = leaf(tycho.tensor({-0.3, 0, 0.2}, double))
    local g = D.GeneralizedPareto(0, 1, c)
    got, wanted = tycho.grad(g:rsample({n}):mean(1):sum(), c), 1 / (1 - c):square()
    wanted = tycho.where(c:eq(0), 0, wanted)                 -- at 0 it is Exponential's, as in PyTorch
    helper.close(got, wanted:detach(), "concentration", 0.04 * wider)
    local mu = leaf(tycho.tensor({0.2, -0.4}, double))
    assert.is_true(D.LogisticNormal(mu, 1):rsample({3}).requires_grad)
    helper.fails("VonMises: there is no rsample", function() D.VonMises(0, 1):rsample() end)
    helper.fails("LKJCholesky: there is no rsample", function() D.LKJCholesky(3):rsample() end)
  end)

  it("hold under tycho.compile", function()
    helper.compiled_same(function()
      local loc, conc = tycho.tensor({0.1, 0.4, -0.3}, {requires_grad = true}), tycho.tensor({0.8, 1.5, 5})
      local function fn(x)
        local shares_of = T.StickBreakingTransform()(x + loc)
        local corr = T.CorrCholeskyTransform()
        local l = corr(x * loc)
        local loss = D.LKJCholesky(3, 2):log_prob(l):sum() + D.VonMises(loc, conc):log_prob(x):sum() +
          D.GeneralizedPareto(0, conc, loc):cdf(x:exp()):sum() +
          D.LogisticNormal(loc, conc):log_prob(shares_of):sum() + D.kl_divergence(D.Normal(loc, conc), D.Laplace(x, 1)):sum() +
          D.kl_divergence(D.Beta(conc, 2), D.Normal(loc, 1)):sum() + corr:log_abs_det_jacobian(x, corr(x)):sum() +
          D.LowRankMultivariateNormal(loc, x:view(3, 1), conc):log_prob(x):sum() +
          D.Wishart(6, {covariance_matrix = l:matmul(l:t()) + tycho.eye(3)}):entropy():sum()
        loc.grad = nil
        loss:backward()
        return loss, loc.grad
      end
      return fn, nil, function(i) return {tycho.tensor({0.3 * i, -0.2, 0.1 * i})} end
    end, 5)
  end)

  it("refuse parameters of matrices and angles that aren't any", function()
    local m = tycho.eye(2, cpu)
    helper.fails("Wishart: one of covariance_matrix, precision_matrix and scale_tril is needed, got 0", D.Wishart, 3)
    helper.fails("Wishart: one of covariance_matrix", D.Wishart, 3, {covariance_matrix = m, scale_tril = m})
    helper.fails("Wishart: df must be above 1, as the matrices are 2x2", D.Wishart, 1, m)
    helper.fails("Wishart: covariance_matrix must be a square matrix, or several, got shape 2x3", D.Wishart, 3, tycho.ones(2, 3, cpu))
    helper.fails("Wishart: df must be a number or a tensor, got 'x'", D.Wishart, "x", m)
    helper.fails("MultivariateNormal: covariance_matrix must be 3x3 as loc has 3 elements, got shape 2x2",
      D.MultivariateNormal, tycho.zeros(3, cpu), m)
    helper.fails("Wishart: log_prob: a value must be symmetric positive definite", function() D.Wishart(3, m):log_prob(-m) end)
    helper.fails("LKJCholesky: dim must be a whole number from 2, got 1", D.LKJCholesky, 1)
    helper.fails("LKJCholesky: concentration must be above 0", D.LKJCholesky, 3, tycho.zeros(1, cpu))
    helper.fails("LKJCholesky: log_prob: a value must be Cholesky factors",
      function() D.LKJCholesky(2, tycho.ones(1, cpu)):log_prob(m * 2) end)
    helper.fails("VonMises: concentration must be above 0", D.VonMises, 0, tycho.zeros(1, cpu))
    helper.fails("GeneralizedPareto: scale must be above 0", D.GeneralizedPareto, 0, tycho.zeros(1, cpu), 0)
    helper.fails("GeneralizedPareto: log_prob: a value must be from loc",
      function() D.GeneralizedPareto(tycho.ones(1, cpu), 1, 0):log_prob(0) end)
    helper.fails("LowRankMultivariateNormal: cov_factor must be a tensor whose last two dims are 2 x rank",
      D.LowRankMultivariateNormal, tycho.zeros(2, cpu), tycho.ones(3, 1, cpu), tycho.ones(2, cpu))
    helper.fails("LowRankMultivariateNormal: cov_diag must be a tensor whose last dim has 2 elements",
      D.LowRankMultivariateNormal, tycho.zeros(2, cpu), tycho.ones(2, 1, cpu), tycho.ones(3, cpu))
    helper.fails("LowRankMultivariateNormal: cov_diag must be above 0",
      D.LowRankMultivariateNormal, tycho.zeros(2, cpu), tycho.ones(2, 1, cpu), tycho.zeros(2, cpu))
    helper.fails("events must have the same size, got 2 and 3 elements", D.kl_divergence,
      D.MultivariateNormal(tycho.zeros(2), {scale_tril = tycho.eye(2)}),
      D.LowRankMultivariateNormal(tycho.zeros(3), tycho.ones(3, 1), tycho.ones(3)))
    local mixed = D.MixtureSameFamily(D.Categorical(shares), D.Independent(D.Normal(tycho.zeros(3, 2), 1), 1))
    helper.fails("MixtureSameFamily: this mixture has no cdf", mixed.cdf, mixed, tycho.ones(2))
  end)

  ---- a program's own ----
  local function Kumaraswamy()
    local K = D.Distribution:extend("Own", "a, b=1")
    K.arg_constraints, K.support, K.has_rsample = {a = C.positive, b = C.positive}, C.unit_interval, true
    function K:draw(shape) return (1 - (1 - tycho.rand(shape, double)) ^ (1 / self.b)) ^ (1 / self.a) end
    function K:log_prob(x) return tycho.log(self.a * self.b) + tycho.log(x) * (self.a - 1) + tycho.log1p(-x ^ self.a) * (self.b - 1) end
    K.get.mode = function(self) return ((self.a - 1) / (self.a * self.b - 1)) ^ (1 / self.a) end
    return K
  end
  it("are made by a program", function()
    local K = Kumaraswamy()
    local a, b = leaf(tycho.tensor({2, 3}, double)), tycho.tensor({{1.5}, {4}}, double)
    local own, known = K(a, b), D.Kumaraswamy(a, b)
    assert.same({2, 2}, own.batch_shape)
    helper.close(own:log_prob(0.3), known:log_prob(0.3), "log_prob", 1e-12)
    helper.close(own.mode, known.mode, "mode", 1e-12)
    helper.close(tycho.grad(own:log_prob(0.3):sum(), a), tycho.grad(known:log_prob(0.3):sum(), a), "its gradient", 1e-10)
    helper.close(own:rsample(n):mean(1), known.mean, "draws", 0.02 * wider)
    assert.is_true(own:rsample().requires_grad)
    assert.is_false(own:sample().requires_grad)
    assert.same({3, 2, 2}, own:expand({3, 2, 2}):sample().shape)
    helper.close(D.Independent(own, 1):log_prob(own:expand({2, 2}).mode), own:log_prob(own.mode):sum(-1), "Independent", 1e-12)
    assert.equal("Own(a=2, b=1)", tostring(K(2)))
    D.register_kl(K, K, function(p, q) return p.a - q.a end)
    assert.equal(1, D.kl_divergence(K(3, 1), K(2, 1)):item())
    helper.fails("Own: b must be above 0", K, tycho.ones(1, cpu), -tycho.ones(1, cpu))
    helper.fails("Own: log_prob: a value must be in 0..1", own.log_prob, own, 2)
    helper.fails("Own: this distribution has no mean", function() return own.mean end)
    helper.fails("Own: argument 'a' is missing", K)
    helper.fails("define draw(shape), which sample and rsample call", function() function K:rsample() end end)
    helper.fails("'Normal' is the name of one of the library's", D.Distribution.extend, D.Distribution, "Normal", "a")
    helper.fails("call it with a colon", D.Distribution.extend, "Mine")
    helper.fails("Half: a method draw(shape) is needed", function() D.Distribution:extend("Half", "a")(1):sample() end)
  end)

  it("have what a program's class is a kind of", function()
    local Far = D.Normal:extend("Far")
    function Far:draw(shape) return D.Normal.draw(self, shape) + 1000 end
    local far = Far(tycho.zeros(2), 1)
    assert.is_true(tycho.all(far:sample(5):gt(900)):item())
    assert.same({0, 0}, far.mean:totable())
    helper.close(D.kl_divergence(far, D.Normal(1, 1)), tycho.tensor {0.5, 0.5}, "as its parent's", 1e-6)
    local OnSphere = D.Distribution:extend("OnSphere", "dim")          -- draws with a dim of their own
    OnSphere.support = C.real_vector
    function OnSphere:init(o) self.batch_shape, self.event_shape = {}, {o.dim} end
    function OnSphere:draw(shape) return tycho.nn.functional.normalize(tycho.randn(shape), {dim = -1}) end
    local s = OnSphere(3):sample(7)
    assert.same({7, 3}, s.shape)
    helper.close(s:square():sum(-1), tycho.ones(7), "of length 1", 1e-5)
    local Lost = D.Distribution:extend("Lost")
    function Lost:init() end
    helper.fails("Lost: its init must set self.batch_shape", Lost)
  end)

  it("are transformed by a program's transforms: a flow of coupling layers learns", function()
    local nn = tycho.nn
    local Coupling = T.Transform:extend("Coupling", "net, first")
    Coupling.domain, Coupling.codomain = C.real_vector, C.real_vector
    function Coupling:parts(v)
      local a, b = v:narrow(-1, 1, 1), v:narrow(-1, 2, 1)
      if not self.first then a, b = b, a end
      return a, b, unpack(self.net(a):chunk(2, -1))
    end
    function Coupling:joined(a, b) return tycho.cat(self.first and {a, b} or {b, a}, -1) end
    function Coupling:forward(x)
      local a, b, scale, shift = self:parts(x)
      return self:joined(a, b * scale:exp() + shift)
    end
    function Coupling:inverse(y)
      local a, b, scale, shift = self:parts(y)
      return self:joined(a, (b - shift) * (-scale):exp())
    end
    function Coupling:log_abs_det_jacobian(x)
      local _, _, scale = self:parts(x)
      return scale:sum(-1)
    end
    tycho.manual_seed(3)
    local layers, params = {}, {}
    for i = 1, 4 do
      local net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2))
      layers[i] = Coupling(net, i % 2 == 1)
      for _, p in ipairs(net:parameters()) do params[#params + 1] = p end
    end
    local flow = D.TransformedDistribution(D.MultivariateNormal(tycho.zeros(2), tycho.eye(2)), layers)
    assert.same({2}, flow.event_shape)
    local x = tycho.randn(5, 2)
    local whole = T.ComposeTransform(layers)
    helper.close(whole.inv(whole(x)), x, "there and back", 1e-4)
    local slope = tycho.stack((function()
      local out = {}
      for i = 1, 5 do out[i] = select(2, tycho.linalg.slogdet(tycho.autograd.functional.jacobian(whole, x:select(1, i)))) end
      return out
    end)())
    helper.close(whole:log_abs_det_jacobian(x, whole(x)), slope, "the Jacobian's determinant", 1e-4)
    local u = tycho.randn(256, 1)
    local data = tycho.cat({u, u:square() + tycho.randn(256, 1) * 0.3}, -1)
    local opt, from, loss = tycho.optim.Adam(params, {lr = 0.02}), nil, nil
    for _ = 1, helper.simulated and 15 or 60 do
      opt:zero_grad()
      loss = -flow:log_prob(data):mean()
      loss:backward()
      opt:step()
      from = from or loss:item()
    end
    assert.is_true(loss:item() < from - 0.5, ("%g to %g"):format(from, loss:item()))
    assert.same({9, 2}, flow:sample(9).shape)
  end)

  it("tell what a program's transform lacks", function()
    local Y = T.Transform:extend("Y", "alpha=2")
    helper.fails("Y: a method forward(x) is needed", Y(), 1)
    helper.fails("define forward(x) instead of '_call', which isn't called", function() function Y:_call() end end)
    function Y:forward(x) return x * self.alpha end
    assert.equal(6, Y(3)(2):item())
    helper.fails("Y: a method inverse(y) is needed", Y().inv, 1)
    helper.fails("Y: forward needs a tensor or a number", Y(), "x")
    helper.fails("Y: unknown option 'alpa'", Y, {alpa = 2})
    assert.equal(2, T.Transform:extend("Short", "a, n=2")(1).n)
    helper.fails("an argument can't be named 'event_dim'", T.Transform.extend, T.Transform, "Z", "event_dim")
    helper.fails("an argument can't be named 'slope'", T.Transform.extend, T.Transform, "Z", "slope")
    helper.fails("'ExpTransform' is the name of one of the library's", T.Transform.extend, T.Transform, "ExpTransform")
  end)

  it("refuse parameters that are NaN, and values whose dims don't fit", function()
    local nan = tycho.tensor({1, 0 / 0}, cpu)
    helper.fails("Normal: loc is or contains NaN", D.Normal, nan, 1)
    helper.fails("Normal: scale", D.Normal, tycho.zeros(2, cpu), nan)
    helper.fails("Categorical: logits is or contains NaN", D.Categorical, {logits = nan})
    helper.fails("Normal: loc is or contains NaN", D.Normal, 0 / 0, 1)
    assert.equal(math.huge, D.HalfNormal(tycho.tensor(math.huge, cpu)).scale:item())
    helper.fails("MultivariateNormal: loc is or contains NaN", D.MultivariateNormal, nan, tycho.eye(2, cpu))
    assert.is_true(D.Normal(nan, 1, {validate_args = false}):sample():isnan()[2])
    local normal = D.Normal(tycho.zeros(2), 1)
    helper.fails("Normal: log_prob: a value of shape 3 doesn't broadcast with the batch and event shape, 2", normal.log_prob, normal,
      tycho.ones(3))
    assert.same({5, 2}, normal:log_prob(tycho.ones(5, 1)).shape)
    helper.fails("MultivariateNormal: log_prob: a value of shape 3", function()
      return D.MultivariateNormal(tycho.zeros(2), tycho.eye(2)):log_prob(tycho.ones(3))
    end)
  end)
end)
