-- Steps that a backend does at once: the bits of single ops, and one by one where someone holds what lies between them.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F = tycho.nn, tycho.nn.functional
local exact = helper.exact

-- What n calls of the function that make() gives return, compiled or not, then the state it gives; and the report of what was compiled.
local function results(make, n, compiled)
  tycho.manual_seed(11)
  local fn, state = make()
  local f, out = compiled and tycho.compile(fn) or fn, {}
  for _ = 1, n do
    local x = tycho.randn(6, 3, 11, 12)
    for _, t in ipairs {f(x)} do out[#out + 1] = t:detach():clone() end
  end
  for _, t in ipairs(state and state() or {}) do out[#out + 1] = t end
  return out, compiled and f:report()[1]
end

-- The kernels by their ops' names, and the report.
local function same(make, message)
  local want, got, report = (results(make, 4, false)), results(make, 4, true)
  assert.equal(#want, #got, message)
  assert.is_true(report.compiled, message .. ": " .. tostring(report.why))
  for i = 1, #want do exact(got[i], want[i], message .. ": value " .. i) end
  local kernels = {}
  for _, k in ipairs(report.kernels) do if k.fused then kernels[table.concat(k.ops, " ")] = k end end
  return kernels, report
end

local function find(kernels, pattern)
  for ops, k in pairs(kernels) do if ops:find(pattern) then return k end end
end

describe("steps done at once", function()
  local on_gpu = helper.device ~= "cpu"
  if on_gpu then                           -- cuDNN's float64 convolutions add up in no fixed order otherwise
    setup(function() tycho.backends.cudnn.deterministic = true end)
    teardown(function() tycho.backends.cudnn.deterministic = false end)
  end

  local pools = {
    {2}, {3, {stride = 2, padding = 1}}, {3, {stride = 1}}, {2, {stride = 3}},
    {{2, 3}, {stride = {2, 1}, padding = {1, 1}}}, {2, {stride = 2, dilation = 2}}, {3, {stride = 2, ceil_mode = true}},
  }

  -- A step of conv, batch_norm, relu, pooling, a linear layer.
  local function step_of(options)
    return function()
      local d = options.dtype or "float32"
      local conv, norm, pool = nn.Conv2d(3, options.channels or 4, 3),
        nn.BatchNorm2d(options.channels or 4, {affine = options.affine}), options.pool or {2}
      nn.init.normal_(conv.weight)
      conv:to(d)
      if options.half_norm then norm:to(d) end
      if norm.weight then norm.weight:detach():uniform_(-1, 2) norm.bias:detach():normal_() end
      if options.eval then norm:eval() end
      local kept
      local function fn(x)
        for _, m in ipairs {conv, norm} do m:zero_grad() end
        local y = norm(conv(x:to(d)))
        if options.relu ~= false then y = y:relu() end
        if options.keep then kept = tycho.keep(y) end
        local z = F.max_pool2d(y, pool[1], pool[2])
        local flat = options.flat and z:flatten(2) or z
        if options.eval then return flat:detach() end
        local loss = (flat:float() * flat:float() * 0.5 + flat:float()):sum()
        loss:backward()
        if options.returns then return loss:detach(), y:detach() end
        return loss:detach(), conv.weight.grad
      end
      return fn, function()
        local s = {norm.running_mean, norm.running_var}
        for _, p in ipairs(norm:parameters()) do s[#s + 1] = p.grad end
        s[#s + 1] = kept and kept:detach()
        return s
      end
    end
  end

  it("pools what batch_norm and relu make where it reads it, and spreads gradients where they are read", function()
    for i, pool in ipairs(pools) do
      for _, d in ipairs {"float32", "float16", "float64"} do
        local kernels = same(step_of {pool = pool, dtype = d, channels = i % 2 == 0 and 5 or 8}, ("pooling %d in %s"):format(i, d))
        if on_gpu then
          assert.is_truthy(find(kernels, "batch_norm_apply relu max_pool2d_indices"), i .. d)
          assert.is_truthy(find(kernels, "relu_backward max_pool2d_backward batch_norm_backward"), i .. d)
        end
      end
    end
  end)

  it("does so with what is flattened, without weights, with 16-bit ones, and in evaluation", function()
    local one = "^batch_norm_apply relu max_pool2d_indices"
    local clone = find(same(step_of {flat = true, dtype = "float16", channels = 8}, "flattened"), one .. " clone$")
    local plain = find(same(step_of {affine = false}, "no weights"), one)
    local half = find(same(step_of {half_norm = true, dtype = "bfloat16"}, "16-bit weights"), one)
    local without = find(same(step_of {relu = false}, "no relu"), "^batch_norm_apply max_pool2d_indices$")
    local eval = find(same(step_of {eval = true, flat = true, dtype = "float16", channels = 8}, "evaluation"), one .. " clone$")
    if on_gpu then assert.is_true(clone and plain and half and without and eval and true) end
  end)

  it("does so with relu alone", function()
    for i, pool in ipairs(pools) do
      for _, d in ipairs {"float32", "bfloat16", "float64"} do
        local kernels = same(function()
          local conv = nn.Conv2d(3, i % 2 == 0 and 5 or 8, 3):to(d)
          return function(x)
            conv:zero_grad()
            local y = F.max_pool2d(conv(x:to(d)):relu(), pool[1], pool[2]):float()
            local loss = (y * y * 0.5 + y):sum()
            loss:backward()
            return loss:detach(), conv.weight.grad
          end
        end, ("pooling %d in %s"):format(i, d))
        if on_gpu then
          assert.is_truthy(find(kernels, "^relu max_pool2d_indices$"), i .. d)
          assert.is_truthy(find(kernels, "^relu_backward max_pool2d_backward$"), i .. d)
        end
      end
    end
  end)

  it("stores what someone holds or asks for", function()
    local _, report = same(step_of {keep = true}, "held")
    local why
    for _, k in ipairs(report.kernels) do
      why = table.concat(k.ops, " "):find("^batch_norm_apply relu max_pool2d_indices") and k.why or why
    end
    if on_gpu then assert.equal("an intermediate result is still held", why) end
    same(step_of {keep = true, dtype = "float16"}, "held in float16")
    local kernels = same(step_of {returns = true}, "returned")
    assert.is_nil(find(kernels, "relu max_pool2d_indices"))
  end)

  it("looks for infinities where gradients are cast, and moves the scale on with the optimizer's last block", function()
    local function step(optimizer, big, unscaled)
      return function()
        local net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(360, 8),
          nn.Tanh(), nn.Linear(8, 4))
        local opt = optimizer(net:parameters())
        local scaler = tycho.amp.GradScaler{init_scale = big and 2 ^ 22 or 64, growth_interval = 2}
        return function(x)
          opt:zero_grad()
          local loss = tycho.amp.autocast({dtype = "float16"}, net, x):float():pow(2):mean()
          scaler:scale(loss):backward()
          if unscaled then
            scaler:unscale_(opt)
            nn.utils.clip_grad_norm_(net:parameters(), 1)
          end
          scaler:step(opt)
          scaler:update()
          return loss:detach()
        end, function()
          local s = {tycho.tensor(scaler:get_scale())}
          assert.is_true(big and scaler:get_scale() < 2 ^ 22 or not big and scaler:get_scale() > 64,
            "steps were skipped where gradients overflow")
          for _, p in ipairs(net:parameters()) do s[#s + 1] = p:detach() end
          return s
        end
      end
    end
    for name, optimizer in pairs {
      adamw = function(p) return tycho.optim.AdamW(p, {lr = 0.01}) end,
      sgd = function(p) return tycho.optim.SGD(p, {lr = 0.01, momentum = 0.9}) end,
      adagrad = function(p) return tycho.optim.Adagrad(p, {lr = 0.01}) end,
      groups = function(p) return tycho.optim.AdamW({{params = {p[1], p[2]}, lr = 0.1}, {params = {unpack(p, 3)}}}, {lr = 0.01}) end,
    } do
      for _, big in ipairs {false, true} do
        local kernels = same(step(optimizer, big), name)
        if on_gpu then
          assert.is_truthy(find(kernels, "^cast cast.* multi_found$"), name)
          assert.is_truthy(find(kernels, "_step amp_update$"), name)
        end
      end
    end
    same(step(function(p) return tycho.optim.AdamW(p, {lr = 0.01}) end, false, true), "unscaled before")
  end)

  it("takes a loss and its gradient in one go over the rows, of many rows too, and keeps the loss apart where backward \z
    asks for it", function()
    local function step(options)
      return function()
        local d = options.dtype or "float32"
        local linear = nn.Linear(396, options.classes or 10)
        local weight = options.weighted and tycho.rand(options.classes or 10) + 0.1 or nil
        local y = tycho.randint(1, options.classes or 10, {6 * (options.times or 1)})
        if options.ignored then y[2] = -100 end
        return function(x)
          linear:zero_grad()
          local out = linear(x:flatten(2))
          local logits = out:to(d)
          if options.times then logits = logits["repeat"](logits, options.times, 1) end
          local loss = F.cross_entropy(logits, y, {weight = weight and weight:to(logits.dtype), label_smoothing = options.smoothing})
          local up = options.squared and loss * loss or options.scaled and loss * 3 or loss
          up:backward()
          return loss:detach(), linear.weight.grad
        end
      end
    end
    for name, o in pairs {
      plain = {}, half = {dtype = "float16"}, double = {dtype = "float64"}, ignored = {ignored = true},
      scaled = {scaled = true}, weighted = {weighted = true, smoothing = 0.1}, wide = {classes = 5000},
      many = {times = 200}, ["many, weighted"] = {times = 200, weighted = true, ignored = true},
    } do
      local kernels = same(step(o), name)
      if on_gpu then assert.is_truthy(find(kernels, "^cross_entropy_mean cross_entropy_mean_backward$"), name) end
    end
    assert.is_nil(find(same(step {squared = true}, "squared"), "^cross_entropy_mean cross"))
  end)

  -- A step of residual blocks: x + linear(norm(x)), or post-norm. options: width, norm, autocast, dtype, post, keep
  local function residual(options)
    return function()
      local w = options.width or 64
      local norms = {}
      for i = 1, 3 do norms[i] = options.norm and options.norm(w) or nn.LayerNorm(w) end
      local function thin() return nn.Sequential(nn.Linear(w, 8), nn.Linear(8, w)) end
      local head, a, b = nn.Linear(396, w), thin(), thin()
      local net = nn.ModuleList {head, a, b, unpack(norms)}
      for _, n in ipairs(norms) do if n.weight then n.weight:detach():uniform_(0.5, 2) end end
      local d, kept = options.dtype or "float32", nil
      net:to(d)
      local function forward(x)
        local h = head(x)
        if options.autocast then h = h:float() end
        local first = options.post and norms[1](h + a(h)) or h + a(norms[1](h))
        if options.keep then first:register_hook(function(g) kept = g end) end
        return norms[3](options.post and norms[2](first + b(first)) or first + b(norms[2](first)))
      end
      return function(x)
        net:zero_grad()
        x = x:flatten(2):to(d)
        local y = options.autocast and tycho.amp.autocast({dtype = options.autocast}, forward, x) or forward(x)
        local loss = (y:float() * y:float():detach():cos()):sum()
        loss:backward()
        return loss:detach(), head.weight.grad
      end, function()
        local s = {kept}
        for _, p in ipairs(net:parameters()) do s[#s + 1] = p.grad end
        return s
      end
    end
  end

  it("takes a norm's gradient in 16 bits, adds what went past the norm, and leaves the sum in 16 bits, too", function()
    local rms = function(w) return nn.RMSNorm(w) end
    local plain = function(w) return nn.LayerNorm(w, {elementwise_affine = false}) end
    for name, o in pairs {
      half = {autocast = "float16", found = "cast layer_norm_backward add cast"},
      brain = {autocast = "bfloat16", found = "cast layer_norm_backward add cast"},
      rms = {autocast = "float16", norm = rms, found = "cast rms_norm_backward add cast"},
      plain = {autocast = "float16", norm = plain, found = "cast layer_norm_backward add cast"},
      odd = {autocast = "float16", width = 37, found = "cast layer_norm_backward add cast"},
      long = {autocast = "bfloat16", width = 4099, found = "cast layer_norm_backward add cast"},
      post = {autocast = "float16", post = true, found = "layer_norm_backward cast"},
      single = {found = "^layer_norm_backward add$"},
      double = {dtype = "float64", found = "^layer_norm_backward add$"},
      ["all in half"] = {dtype = "float16", found = "^layer_norm_backward add$"},
    } do
      local kernels = same(residual(o), name)
      if on_gpu then assert.is_truthy(find(kernels, o.found), name) end
    end
  end)

  it("makes attention's gradients in the places of a projection's parts", function()
    for name, o in pairs {
      ["three parts"] = {}, half = {dtype = "float16"}, ["two parts"] = {two = true}, ["parts within heads"] = {within = true},
      ["with a part that goes elsewhere, too"] = {more = true}, double = {dtype = "float64", causal = true},
      ["rows that aren't aligned"] = {heads = 1, width = 6, copied = true},
    } do
      local _, report = same(function()
        local heads, width, d = o.heads or 2, o.width or 8, o.dtype or "float32"
        local lin, out = nn.Linear(33, 3 * heads * width):to(d), nn.Linear(heads * width, 5):to(d)
        return function(x)
          lin:zero_grad()
          local parts = lin(x:reshape(6, 12, 33):to(d))
          local q, k, v
          local function split(t) return t:reshape(6, 12, heads, width):transpose(2, 3) end
          if o.within then
            local p = parts:reshape(6, 12, heads, 3 * width):transpose(2, 3)
            q, k, v = unpack(p:chunk(3, -1))
          else
            q, k, v = unpack(parts:chunk(3, -1))
            if o.two then q = q * 2 end
            q, k, v = split(q), split(k), split(v)
          end
          local y = F.scaled_dot_product_attention(q, k, v, {is_causal = o.causal})
          if o.more then y = y + v end
          local loss = out(y:transpose(2, 3):reshape(6, 12, -1)):float():pow(2):sum()
          loss:backward()
          return loss:detach(), lin.weight.grad, lin.bias.grad
        end
      end, name)
      local copies = 0
      for _, k in ipairs(report.kernels) do
        for _, op in ipairs(k.ops) do copies = copies + (op == "copy" and 1 or 0) end
      end
      if not (o.two or o.more or o.copied) then assert.equal(0, copies, name) end
    end
  end)

  it("gives cross-entropy's mean as its rows' losses, weights and ignored labels make it", function()
    for _, d in ipairs {"float32", "float64", "float16"} do
      local x, y, w = tycho.randn(7, 5):to(d), tycho.tensor({1, 5, 2, -100, 3, 3, 1}, {dtype = "int64"}), tycho.rand(5):to(d) + 0.1
      local rows, counts = F.cross_entropy(x, y, {weight = w, reduction = "none"}), tycho.zeros(7)
      for i = 1, 7 do counts[i] = i == 4 and 0 or w[y[i]] end
      helper.close(F.cross_entropy(x, y, {weight = w}):double(), (rows:sum() / counts:sum()):double(), d, d == "float64" and 1e-6 or 1e-5)
      helper.close(F.cross_entropy(x, y):double(), (F.cross_entropy(x, y, {reduction = "sum"}) / 6):double(), d, 1e-5)
    end
    assert.is_true(F.cross_entropy(tycho.zeros(0, 3), tycho.zeros(0):long()):isnan():item())
    assert.is_true(F.cross_entropy(tycho.zeros(2, 3), tycho.full({2}, -100):long()):isnan():item())
  end)

  it("takes each step but once, in whatever order others stand around it", function()
    local function linear_step(body)
      return function()
        local lin, y = nn.Linear(396, 5), tycho.randint(1, 5, {6})
        return function(x)
          lin:zero_grad()
          return body(lin, x:flatten(2), y)
        end, function() return {lin.weight.grad, lin.bias.grad} end
      end
    end
    same(linear_step(function(lin, x, y)                  -- two backward passes of one loss
      local loss = F.cross_entropy(lin(x), y)
      loss:backward {retain_graph = true}
      local b = loss * 3
      b:backward()
      return loss:detach(), lin.weight.grad
    end), "backward twice")
    same(linear_step(function(lin, x, y)
      local loss = F.cross_entropy(lin(x), y)
      local g = tycho.grad(loss, {lin.weight}, {retain_graph = true})
      loss:backward()
      return loss:detach(), g[1]
    end), "grad, then backward")
    for steps = 1, 2 do                                   -- casts that have nothing to do with those before what looks for infinities
      same(function()
        local lin = nn.Sequential(nn.Linear(396, 8), nn.Tanh(), nn.Linear(8, 4))
        local opt, scaler, z = tycho.optim.SGD(lin:parameters(), {lr = 0.1}), tycho.amp.GradScaler {init_scale = 64}, tycho.randn(30)
        return function(x)
          local loss
          for _ = 1, steps do
            opt:zero_grad()
            loss = tycho.amp.autocast({dtype = "float16"}, lin, x:flatten(2)):float():pow(2):mean()
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
          end
          return loss:detach(), z:half()
        end, function() return lin:parameters() end
      end, steps .. " steps in one")
    end
  end)

  it("reads a value that backward begins with before it is written over", function()
    same(function()
      local w, buf = tycho.tensor(2.0):requires_grad_(), tycho.range(1, 5000)
      return function()
        w.grad = nil
        local loss = w * buf:select(1, 3)
        loss:backward()
        buf:add_(w.grad)
        return loss:detach(), buf
      end
    end, "an element of what is written")
  end)

  it("does not compute what nobody reads, unless someone holds it", function()
    for _, keep in ipairs {false, true} do
      local seen = {}
      same(function()
        local w = tycho.randn(5):requires_grad_()
        return function(x)
          w.grad = nil
          local loss = (w * x:mean()):sum()
          local unread = loss * 7
          if keep then seen[#seen + 1] = tycho.keep(unread) end
          loss:backward()
          return loss:detach(), w.grad
        end
      end, "unread")
      for i = 1, keep and 4 or 0 do helper.close(seen[i + 4]:detach(), seen[i]:detach(), "kept " .. i, 0) end
    end
  end)
end)
