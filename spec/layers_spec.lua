-- Layers, optimizers and schedules against PyTorch's: same state dict, input and step give the same outputs, gradients, losses and rates.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn, optim, F = tycho.nn, tycho.optim, tycho.nn.functional

local function golden(name)
  local tensors, json = helper.read("spec/golden/" .. name .. ".safetensors")
  return tensors, core.json_decode(json)
end

describe("layers", function()
  local tensors, cases = golden("layers")
  for i, case in ipairs(cases) do
    it(case.layer, function()
      local key = "l" .. i .. "."
      local function get(name) return tensors[key .. name] end
      local net = assert(loadstring("local nn = ... return " .. case.layer))(nn)
      local state = {}
      for name, t in pairs(tensors) do
        local k = name:match("^" .. key:gsub("%.", "%%.") .. "state%.(.+)$")
        if k then state[k] = t end
      end
      net:load_state_dict(state)
      local inputs = {}
      for k = 1, case.inputs do inputs[k] = get("in" .. k):requires_grad_() end
      local out = net(unpack(inputs))
      helper.close(out, get("out"), "output", 1e-4)
      out:backward(get("gout"))
      for k, x in ipairs(inputs) do helper.close(x.grad, get("gin" .. k), "gradient of input " .. k, 1e-3) end
      for name, p in net:named_parameters() do helper.close(p.grad, get("grad." .. name), "gradient of " .. name, 1e-3) end
      for name, b in net:named_buffers() do helper.close(b, get("after." .. name), "buffer " .. name, 1e-4) end
      assert.is_string(tostring(net))
      local copy = net:clone():eval()
      helper.close(copy(unpack(inputs)), net:eval()(unpack(inputs)), "a clone's output", 0)
    end)
  end

  it("pools any number of channels, in either layout, as windows one by one do", function()
    tycho.manual_seed(8)
    local nan = 0 / 0
    -- n, c, h, w, kernel, stride, padding, dilation
    local geometry = {{2, 3, 9, 7, 2, 2, 0, 1}, {3, 16, 8, 8, 3, 2, 1, 1}, {2, 17, 11, 13, 3, 1, 1, 2},
      {1, 64, 6, 5, 2, 3, 1, 1}, {2, 150, 5, 6, 3, 2, 1, 1}, {1, 5, 150, 90, 3, 2, 1, 2}, {1, 1, 12, 12, 2, 1, 1, 3}}
    for _, case in ipairs(geometry) do
      local n, c, h, w, k, s, p, d = unpack(case)
      for _, dtype in ipairs {"float32", "float64"} do
        for _, last in ipairs {false, true} do
          local x = tycho.randint(0, 50, {n, c, h, w}):to(dtype)        -- equals occur
          x[{1, 1, 1, 2}] = nan
          x[{1, 1, 2, 1}] = nan
          if last and dtype == "float32" then
            x = tycho.where(x:isnan(), nan, tycho.conv2d(tycho.where(x:isnan(), 0, x), tycho.eye(c):view(c, c, 1, 1)))
          end
          local y, at = tycho.max_pool2d(x, k, s, p, d, {return_indices = true})
          local mean = d == 1 and tycho.avg_pool2d(x, k, s, p)
          local g = tycho.randint(1, 9, y.shape):to(dtype)
          local leaf = x:detach():requires_grad_()
          local grad = tycho.grad(tycho.max_pool2d(leaf, k, s, p, d), leaf, {grad_outputs = g})
          local slope = mean and tycho.grad(tycho.avg_pool2d(leaf, k, s, p), leaf, {grad_outputs = g})
          local px, py, pat, pg, pgrad = helper.pointer(x:double()), helper.pointer(y:double()), helper.pointer(at),
            helper.pointer(g:double()), helper.pointer(grad:double())
          local pm, ps = mean and helper.pointer(mean:double()), slope and helper.pointer(slope:double())
          local oh, ow, wrong, want, wants = y.shape[3], y.shape[4], 0, {}, {}
          for i = 0, n * c * h * w - 1 do want[i], wants[i] = 0, 0 end
          for plane = 0, n * c - 1 do
            for i = 0, oh - 1 do
              for j = 0, ow - 1 do
                local best, place, sum, o = -math.huge, 0, 0, (plane * oh + i) * ow + j
                for a = i * s - p, i * s - p + d * (k - 1), d do
                  for b = j * s - p, j * s - p + d * (k - 1), d do
                    if a >= 0 and a < h and b >= 0 and b < w then
                      local v = px[plane * h * w + a * w + b]
                      if v > best or v ~= v then best, place = v, a * w + b + 1 end
                      sum = sum + v
                      wants[plane * h * w + a * w + b] = wants[plane * h * w + a * w + b] + pg[o] / (k * k)
                    end
                  end
                end
                if not (py[o] == best or (best ~= best and py[o] ~= py[o])) or pat[o] ~= place then wrong = wrong + 1 end
                if place > 0 then want[plane * h * w + place - 1] = want[plane * h * w + place - 1] + pg[o] end
                if pm and math.abs(pm[o] - sum / (k * k)) > 1e-4 then wrong = wrong + 1 end
              end
            end
          end
          for i = 0, n * c * h * w - 1 do
            if pgrad[i] ~= want[i] or (ps and math.abs(ps[i] - wants[i]) > 1e-4) then wrong = wrong + 1 end
          end
          assert.equal(0, wrong, ("%s, channels-last %s, case %s"):format(dtype, tostring(last), table.concat(case, " ")))
        end
      end
    end
  end)

  it("gives the same maxima with and without their indices", function()
    for _, dtype in ipairs {"float32", "float64", "float16"} do
      for n, size in ipairs {{2, 3, 9, 11}, {1, 1, 5, 40}, {3, 17, 8, 8}, {2, 5, 1, 33}} do
        local x = tycho.randn(size):to(dtype)
        x[{1, 1, 1, 3}], x[{1, 1, 1, 1}] = 0 / 0, -math.huge
        for _, layout in ipairs {"contiguous", "channels_last"} do
          x = x:contiguous {memory_format = layout}
          for _, kernel in ipairs {{1, 1}, {2, 2}, {3, 3}, {2, 3}, {1, 5}, {3, 1}} do
            for k = 0, 11 do
              local o = {stride = k % 4 + 1, padding = k % 2, dilation = math.floor(k / 4) % 2 + 1, ceil_mode = k > 5}
              local ok, got = pcall(F.max_pool2d, x, kernel, o)
              o.return_indices = true
              local also, want = pcall(F.max_pool2d, x, kernel, o)
              assert.equal(also, ok)
              local text = ("%s, size %d, %s, kernel %dx%d, %d"):format(dtype, n, layout, kernel[1], kernel[2], k)
              if ok then
                helper.exact(got, want, text)
                assert.same(want:stride(), got:stride(), text)
              end
            end
          end
        end
      end
    end
  end)

  it("attention heeds masks, and gives its weights", function()
    tycho.manual_seed(5)
    local m = nn.MultiheadAttention(8, 2, {batch_first = true})
    local x = tycho.randn(2, 5, 8)
    local forbidden = tycho.ones(5, 5, {dtype = "bool"}):triu(1)
    local causal = m(x, {is_causal = true})
    helper.close(m(x, {attn_mask = forbidden}), causal, "bool mask")
    helper.close(m(x, {attn_mask = tycho.zeros(5, 5):masked_fill(forbidden, -math.huge)}), causal, "float mask")
    local y, w = m(x, {attn_mask = forbidden, need_weights = true})
    helper.close(y, causal, "with weights", 1e-5)
    helper.close(w:sum(3), tycho.ones(2, 5), "weights add up", 1e-5)
    assert.equal(0, w[{1, 1, 2}])
    -- what is padding has no say
    local padding = tycho.tensor({{false, false, false, true, true}, {false, false, false, false, false}})
    local z = x:clone()
    z[{1, {4, 5}}] = 100
    helper.close(m(x, x, x, {key_padding_mask = padding})[{1, {1, 3}}],
      m(z[{ {1, 1}, {1, 3} }])[1] * 0 + m(x[{ {1, 1}, {1, 3} }])[1], "padding", 1e-5)
    helper.close(m(x, {key_padding_mask = padding, attn_mask = forbidden})[1][1], causal[1][1], "both masks", 1e-5)
    local s = nn.MultiheadAttention(8, 2)                          -- sequences first
    s:load_state_dict(m:state_dict())
    local z2, w2 = s(x:transpose(1, 2), {attn_mask = forbidden})
    helper.close(z2:transpose(1, 2), causal, "sequences first", 1e-5)
    helper.close(w2, w, "its weights", 1e-5)
  end)

  it("group norm of planes and of channels-last, of any dtype, equals its groups written out", function()
    tycho.manual_seed(9)
    for _, case in ipairs {{{3, 8, 5, 6}, 4}, {{2, 6, 3, 3}, 6}, {{2, 40, 4, 4}, 1}, {{1, 4, 60, 50}, 2}, {{4, 6}, 3}, {{2, 4, 7}, 2},
        {{2, 4, 2, 3, 2}, 2}, {{2, 136, 3, 2}, 8}, {{2, 12, 4, 4}, 4}, {{3, 4, 8, 8}, 2}, {{3, 3, 7, 9}, 1}} do
      local shape, groups = unpack(case)
      for _, dtype in ipairs {"float32", "float64", "float16"} do
        for _, last in ipairs(#shape == 4 and {false, true} or {false}) do
          for _, with in ipairs {true, false} do
            local wide = dtype == "float64" and dtype or "float32"
            local tolerance = ({float32 = 1e-4, float64 = 1e-10, float16 = 2e-2})[dtype]
            local x = (tycho.randn(shape) * 2 + 1):to(dtype)
            if last then x = x:contiguous("channels_last") end
            local w, b, seed = tycho.rand(shape[2]):to(wide):add_(0.5), tycho.randn(shape[2]):to(wide), tycho.randn(shape):to(dtype)
            local function run(fn, ...)
              local leaves = {}
              for i, t in ipairs {...} do leaves[i] = t:detach():requires_grad_() end
              local y = fn(unpack(leaves))
              return y, tycho.grad(y, leaves, {grad_outputs = seed:to(y.dtype)})
            end
            local y, got = run(function(t, ...) return F.group_norm(t, groups, ...) end, x, unpack(with and {w, b} or {}))
            if last then assert.is_true(y:is_contiguous("channels_last")) end
            assert.equal(dtype, y.dtype)
            local z, want = run(function(t, scale, shift)
              local rows = t:reshape(shape[1], groups, -1)
              local d = rows - rows:mean(3, {keepdim = true})
              local h = (d / (d:square():mean(3, {keepdim = true}) + 1e-5):sqrt()):view(shape[1], shape[2], -1)
              if scale then h = h * scale:view(1, -1, 1) + shift:view(1, -1, 1) end
              return h:view(t.shape)
            end, x:to(wide), unpack(with and {w, b} or {}))
            local name = ("%s, %d groups, %s%s"):format(tostring(x.shape), groups, dtype, last and ", channels-last" or "")
            helper.close(y:to(wide), z, name, tolerance)
            for i = 1, #want do helper.close(got[i]:to(wide), want[i], name .. ", gradient " .. i, tolerance * (i > 1 and 5 or 1), 1) end
          end
        end
      end
    end
    for _, last in ipairs {false, true} do                         -- one element far off costs no digits
      local x = tycho.randn(1, 4, 40, 40)
      x[{ {}, {}, 1, 1 }] = 300
      if last then x = x:contiguous("channels_last") end
      helper.close(F.group_norm(x, 2):double(), F.group_norm(x:double(), 2), "far off", 2e-5)
    end
    assert.equal(0, F.instance_norm(tycho.zeros(0, 4, 3), tycho.zeros(4), tycho.ones(4)):numel())
    local x, w, b = tycho.randn(2, 4, 3, {dtype = "float64"}), tycho.randn(4, {dtype = "float64"}), tycho.randn(4, {dtype = "float64"})
    for _, t in ipairs {x, w, b} do t:requires_grad_() end
    local none = x:detach()[{ {2, 1} }]:requires_grad_()
    assert.equal("0x4x3", tostring(tycho.grad(F.group_norm(none, 2, w, b):sum(), none, {create_graph = true}).shape))
    assert.is_true(tycho.autograd.gradcheck(function() return F.group_norm(x, 2, w, b) end, {x, w, b}))
    assert.is_true(tycho.autograd.gradgradcheck(function() return F.group_norm(x, 2, w, b) end, {x, w, b}))
    helper.fails("weight has 3 elements", F.group_norm, tycho.ones(2, 4, 3), 2, tycho.ones(3))
    helper.fails("dtype float64", F.group_norm, tycho.ones(2, 4, 3), 2, tycho.ones(4, {dtype = "float64"}))
  end)

  it("pools 16-bit pictures with channels innermost as it pools them widened", function()
    local pools = {
      function(x) return F.max_pool2d(x, 2) end,
      function(x) return F.max_pool2d(x, 3, {stride = 2, padding = 1}) end,
      function(x) return F.max_pool2d(x, 2, {stride = 1, dilation = 2}) end,
      function(x) return F.avg_pool2d(x, 3, {stride = 2, padding = 1, ceil_mode = true}) end,
      function(x) return F.adaptive_avg_pool2d(x, {3, 2}) end,
      function(x) return (F.adaptive_max_pool2d(x, {2, 3})) end,
    }
    -- N, H, W, C; the last in several bands
    for _, shape in ipairs {{3, 11, 13, 5}, {1, 40, 9, 33}, {2, 7, 8, 2}, {5, 64, 64, 20}} do
      for i, pool in ipairs(pools) do
        for _, dtype in ipairs {"bfloat16", "float16"} do
          local x = tycho.randn(shape):to(dtype):permute(1, 4, 2, 3)
          local wide = x:float():contiguous():requires_grad_()
          x:requires_grad_()
          local y, z = pool(x), pool(wide)
          local what = ("pool %d, %s"):format(i, dtype)
          helper.close(y:float(), z:to(dtype):float(), what, 0)
          local g = tycho.randn(z.shape):to(dtype)
          y:backward(g)
          z:backward(g:float())
          helper.close(x.grad:float(), wide.grad:to(dtype):float(), what .. ", gradient", 0)
        end
      end
    end
  end)
end)

describe("models of examples/", function()
  local tensors = helper.read("spec/golden/models.safetensors")
  for name, make in pairs {
    resnet = function() return require("examples.resnet18") {width = 4, classes = 5} end,
    transformer = function() return require("examples.char_gpt") {tokens = 11, width = 16, length = 12} end} do
    it(name .. " loads PyTorch's state dict and gives its outputs and gradients", function()
      local net, state = make(), {}
      for k, t in pairs(tensors) do
        local key = k:match("^" .. name .. "%.state%.(.+)$")
        if key then state[key] = t end
      end
      net:load_state_dict(state)
      local out = net(tensors[name .. ".in"])
      helper.close(out, tensors[name .. ".out"], "output", 1e-4)
      out:backward(tensors[name .. ".gout"])
      for k, p in net:named_parameters() do helper.close(p.grad, tensors[name .. ".grad." .. k], "gradient of " .. k, 1e-3) end
      helper.close(net:eval()(tensors[name .. ".in"]), tensors[name .. ".eval"], "output in eval", 1e-4)
    end)
  end
end)

describe("optimizers", function()
  local tensors, cases = golden("optimizers")
  for i, case in ipairs(cases.optimizers) do
    it(("%d: %s"):format(i, case.name), function()
      local w = tensors.w:clone():requires_grad_()
      local opt = optim[case.name]({w}, case.options)
      local function closure()
        opt:zero_grad()
        local loss = ((tensors.A:matmul(w):tanh() - tensors.b):square()):sum() + (w ^ 4):sum() * 0.1
        loss:backward()
        return loss
      end
      local losses = {}
      for step = 1, 25 do
        losses[step] = opt:step(closure):item()
        if step == 12 then                 -- through a saved state
          local saved = opt:state_dict()
          opt = optim[case.name]({w}, {lr = 7})
          opt:load_state_dict(saved)
        end
      end
      helper.close(tycho.tensor(losses, {dtype = "float64"}), tensors["o" .. i .. ".losses"], "losses", 1e-6)
      helper.close(w:detach(), tensors["o" .. i .. ".w"], "parameters", 1e-6)
    end)
  end
  for i, case in ipairs(cases.matrices) do
    it(("of matrices, %d: %s"):format(i, case.name), function()
      local ws = {tensors["mw.1"]:clone():requires_grad_(), tensors["mw.2"]:clone():requires_grad_()}
      local opt = optim[case.name](ws, case.options)
      for k = 1, 5 do
        for j, w in ipairs(ws) do w.grad = tensors[("mg%d.%d"):format(k, j)]:clone() end
        opt:step()
        if k == 2 then
          local saved = opt:state_dict()
          opt = optim[case.name](ws, {lr = 7})
          opt:load_state_dict(saved)
        end
      end
      for j, w in ipairs(ws) do
        helper.close(w:detach(), tensors[("m%d.%d"):format(i, j)], "parameter " .. j,
          case.name == "Muon" and helper.device ~= "cpu" and 3e-2 or 1e-5)
      end
    end)
  end
  for i, text in ipairs(cases.schedules) do
    it(text, function()
      local opt = optim.SGD({tycho.zeros(1, {requires_grad = true})}, {lr = 0.4})
      local make = assert(loadstring("local s, o = ... return " .. text))
      local schedule, lrs = make(optim.lr_scheduler, opt), {}
      for e = 0, 23 do
        lrs[e + 1] = opt.param_groups[1].lr
        opt:step()
        schedule:step(text:find("Plateau") and 1 / (1 + math.min(e, 5)) or nil)
        if e == 10 then
          local saved = schedule:state_dict()
          local again = optim.SGD({tycho.zeros(1, {requires_grad = true})}, {lr = 0.4})
          schedule = make(optim.lr_scheduler, again)
          again.param_groups[1].lr = opt.param_groups[1].lr
          schedule:load_state_dict(saved)
          opt = again
        end
      end
      helper.close(tycho.tensor(lrs, {dtype = "float64"}), tensors["s" .. i], "learning rates", 1e-9)
    end)
  end

  it("averages parameters", function()
    local net = nn.Linear(2, 1)
    local ema = optim.swa_utils.AveragedModel(net, {decay = 0.9})
    local mean = optim.swa_utils.AveragedModel(net)
    local first = net.weight:detach():clone()
    ema:update_parameters(net)
    mean:update_parameters(net)
    tycho.no_grad(function() net.weight:add_(1) end)
    ema:update_parameters(net)
    mean:update_parameters(net)
    helper.close(ema.module.weight:detach(), first + 0.1, "moving average", 1e-6)
    helper.close(mean.module.weight:detach(), first + 0.5, "mean", 1e-6)
    assert.is_false(ema.module.weight.requires_grad)
    assert.equal(2, ema.n_averaged:item())
    local again = optim.swa_utils.AveragedModel(nn.Linear(2, 1), {decay = 0.9})
    again:load_state_dict(ema:state_dict())
    helper.close(again(tycho.ones(1, 2)), ema(tycho.ones(1, 2)), "from its state", 0)
  end)

  it("limits gradients", function()
    local w = tycho.zeros(3, {requires_grad = true})
    tycho.sum(w * tycho.tensor({5, -5, 0.5})):backward()
    nn.utils.clip_grad_value_({w}, 1)
    assert.same({1, -1, 0.5}, w.grad:totable())
    local v = nn.utils.parameters_to_vector({w, tycho.ones(2, 2)})
    assert.same({0, 0, 0, 1, 1, 1, 1}, v:totable())
    nn.utils.vector_to_parameters(tycho.range(1, 3), {w})
    assert.same({1, 2, 3}, w:totable())
  end)

  it("a state dict's names lose a prefix", function()
    local state = {["module.a"] = 1, ["module.module.b"] = 2, other = 3}
    nn.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert.same({a = 1, ["module.b"] = 2, other = 3}, state)
    helper.fails("argument 2 (prefix) must be a string, got nil", nn.utils.consume_prefix_in_state_dict_if_present, state)
  end)

  it("linear takes one row of weights", function()
    local x, w, b = tycho.randn(4, 2, 3), tycho.randn(3), tycho.tensor(0.5)
    helper.close(F.linear(x, w, b), (x * w):sum(-1) + 0.5)
    helper.close(F.linear(x[1][1], w), (x[1][1] * w):sum())
  end)

  it("batch_norm takes 16-bit data as it takes the same numbers in float32", function()
    for _, dtype in ipairs {"bfloat16", "float16"} do
      for _, shape in ipairs {{3, 5, 4, 6}, {2, 7, 70, 70}, {64, 3}, {3, 5000}, {130, 33, 3}, {2, 4100, 2, 2}} do
        for _, last in ipairs {false, true} do
          local x = tycho.randn(shape):to(dtype)
          if last and #shape == 4 then x = x:permute(1, 3, 4, 2):contiguous():permute(1, 4, 2, 3) end
          local w, b = tycho.rand(shape[2]) + 0.5, tycho.randn(shape[2])
          local g = tycho.randn(shape):to(dtype)
          local function run(to)
            local xs, ws, bs = x:to(to):detach():requires_grad_(true), w:clone():requires_grad_(true), b:clone():requires_grad_(true)
            local mean, var = tycho.zeros(shape[2]), tycho.ones(shape[2])
            local y = tycho.nn.functional.batch_norm(xs, mean, var, ws, bs, {training = true})
            y:backward(g:to(to))
            return {y = y:detach():float(), dx = xs.grad:float(), dw = ws.grad, db = bs.grad, mean = mean, var = var}
          end
          local got, want = run(dtype), run("float32")
          for name, v in pairs(got) do
            local exact = name == "y" or name == "dx"
            helper.close(v, exact and want[name]:to(dtype):float() or want[name],
              ("%s, %s of %dx%d"):format(dtype, name, shape[1], shape[2]),
              exact and (dtype == "bfloat16" and 8e-3 or 1e-3) or 1e-4)
          end
        end
      end
    end
  end)

  it("cross_entropy of 16-bit scores is float32's of the same numbers", function()
    for _, dtype in ipairs {"bfloat16", "float16"} do
      local x, y = tycho.randn(9, 37):to(dtype), tycho.randint(1, 37, {9})
      for _, o in ipairs {{reduction = "none"}, {reduction = "mean", label_smoothing = 0.1}} do
        local a, b = x:detach():requires_grad_(true), x:float():detach():requires_grad_(true)
        local got, want = tycho.cross_entropy(a, y, o), tycho.cross_entropy(b, y, o)
        assert.equal("float32", got.dtype)
        helper.close(got, want, dtype, 1e-6)
        got:sum():backward()
        want:sum():backward()
        assert.equal(dtype, a.grad.dtype)
        helper.close(a.grad:float(), b.grad:to(dtype):float(), dtype .. ", gradient", dtype == "bfloat16" and 8e-3 or 1e-3)
      end
    end
  end)

end)

describe("what PyTorch users write", function()
  it("LBFGS searches lines as PyTorch's does", function()      -- 2.15's results on Rosenbrock's valley
    for _, want in ipairs {{0.591571477453122, 0.343888334106431},
        {0.315084937209887, 0.0980820075264111, 0.00884427622086564, -0.00183471395231346},
        {0.711261535662287, 0.508791157189237, 0.217193980221139, 0.0352984037823686, 0.00700730259554129, -0.00200093871601754}} do
      local n = #want
      local p = tycho.linspace(-1.2, 1, n, {dtype = "float64"}):requires_grad_()
      local o = optim.LBFGS({p}, {lr = 0.1, max_iter = 4, line_search_fn = "strong_wolfe"})
      for _ = 1, 12 do
        o:step(function()
          o:zero_grad()
          local a, b = p[{{2, n}}], p[{{1, n - 1}}]
          local loss = (100 * (b:square() - a):square() + (1 - b):square()):sum()
          loss:backward()
          return loss
        end)
      end
      helper.close(p:detach(), tycho.tensor(want, {dtype = "float64"}), n .. " numbers", 1e-8)
    end
  end)

  it("attention gives each head's weights", function()
    local m, x = nn.MultiheadAttention(8, 2, {batch_first = true}), tycho.randn(3, 5, 8)
    local y, mean = m(x)
    local z, each = m(x, {average_attn_weights = false})
    helper.close(y, z)
    assert.same({3, 2, 5, 5}, {unpack(each.shape)})
    helper.close(each:mean(2), mean)
    local more = nn.MultiheadAttention(8, 2, {batch_first = true, add_bias_kv = true, add_zero_attn = true})
    local mask = tycho.zeros(3, 5, {dtype = "bool"})
    mask[{1, {3, 5}}] = true
    local slow, weights = more(x, {key_padding_mask = mask})
    helper.close(more(x, {key_padding_mask = mask, need_weights = false}), slow)
    assert.same({3, 5, 7}, {unpack(weights.shape)})
    assert.equal(0, weights[{1, {}, {3, 5}}]:sum():item())
    helper.close(weights:sum(3), tycho.ones(3, 5))
  end)

  it("optimizers and losses take their arguments by name or place", function()
    local net, x, y = nn.Linear(3, 2), tycho.randn(4, 3), tycho.randn(4, 3)
    assert.equal(0.25, optim.SGD {params = net:parameters(), lr = 0.25}.param_groups[1].lr)
    helper.fails("unknown option 'foo'", optim.SGD, {params = net:parameters(), foo = 1})
    helper.close(nn.HuberLoss("sum", 2)(x, y), F.huber_loss(x, y, {reduction = "sum", delta = 2}))
    helper.close(nn.TripletMarginLoss(0.5, 1)(x, y, x), F.triplet_margin_loss(x, y, x, {margin = 0.5, p = 1}))
    local target, weight = tycho.tensor({1, 3, 2, 2}, {dtype = "int64"}), tycho.tensor {1, 2, 3}
    helper.close(F.cross_entropy(x, target, weight), nn.CrossEntropyLoss(weight)(x, target))
    helper.close(F.nll_loss(x, target, weight), nn.NLLLoss({weight = weight})(x, target))
    helper.close(F.softplus(x, 2, 1), F.softplus(x, {beta = 2, threshold = 1}))
    helper.fails("HuberLoss: takes reduction, delta and a table of options, got 3", nn.HuberLoss, "sum", 2, 3)
    assert.equal("mean", nn.MSELoss(nil).reduction)
    helper.close(nn.CrossEntropyLoss(weight, nil)(x, target), F.cross_entropy(x, target, weight))
    helper.fails("reduction must be one of", nn.HuberLoss, "summ")
    local p = tycho.ones(1, {requires_grad = true})
    F.prelu(tycho.tensor {1, -1}, p):backward(tycho.tensor {math.huge, 1})
    assert.equal(-1, p.grad:item())
    helper.fails("output_padding 100", F.conv_transpose2d, tycho.ones(1, 2, 4, 4), tycho.ones(2, 3, 3, 3),
      {stride = 1, padding = 1, dilation = 3, output_padding = {2, 100}})
    helper.fails("MSELoss: takes a table of options, got 'sum'", nn.MSELoss, "sum")
    helper.fails("weight must be a tensor", nn.CrossEntropyLoss, 3)
  end)

  it("parts of a module don't hide its methods", function()
    local net = nn.Module:extend "Net" ()
    helper.fails("a module can't be named 'modules'", function() net.modules = nn.ModuleList {} end)
    helper.fails("a parameter can't be named 'to'", function() net.to = nn.Parameter(tycho.ones(1)) end)
    helper.fails("names can't have dots", function() net["a.b"] = nn.Linear(1, 1) end)
    net.keys, net.half_size = nn.Linear(1, 1), 3
    assert.equal(2, #net:parameters())
  end)

  it("dots for colons, and settings among elements, are told", function()
    local x = tycho.ones(2, 3)
    for _, fn in ipairs {function() x.view(3, 2) end, function() x.sum() end, function() x.add(1) end, function() x.numel() end} do
      helper.fails("a method is called with a colon", fn)
    end
    local _, why = pcall(function() return x:add() end)
    assert.is_nil(tostring(why):find "colon")
    helper.fails("in two tables", function() return tycho.zeros {2, 3, dtype = "float64"} end)
    helper.fails("more indices than the 2 dims of shape 2x3", function() return x[{1, 2, 3}] end)
    helper.fails("must be a tensor or a list of tensors", function() return tycho.grad(x:sum(), {x}, 1) end)
    helper.fails("got bool", function() return tycho.normal(x, x:gt(0)) end)
    helper.fails("lengths are needed", function() return nn.utils.rnn.unpad_sequence(x) end)
    helper.fails("LazyLinear: argument 1 must be a tensor", function() return nn.LazyLinear(3)(5) end)
    assert.equal(1, x:clamp_max(true):max():item())
    if helper.device == "cpu" then
      helper.fails("bernoulli: argument 1 must hold probabilities, from 0 to 1, got 1.5", tycho.bernoulli, tycho.tensor {0.5, 1.5})
    end
  end)

  it("attention says which argument doesn't fit", function()
    local x, fails = tycho.ones(5, 2, 4), helper.fails
    fails("TransformerDecoderLayer: argument 2 (memory) must be a tensor, the encoder's result, got nil",
      nn.TransformerDecoderLayer(4, 2), x)
    fails("argument 2 (memory)", nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2), 1), x)
    fails("query, key and value must have equal batch sizes, got 2, 3, 3", nn.TransformerDecoderLayer(4, 2), x, tycho.ones(5, 3, 4))
    fails("key_padding_mask has shape 5x2; 2x5 is needed", nn.TransformerEncoderLayer(4, 2), x,
      {src_key_padding_mask = tycho.zeros(5, 2):bool()})
    fails("attn_mask has shape 4x5; 5x5 is needed, or 4x5x5", nn.MultiheadAttention(4, 2), x, {attn_mask = tycho.zeros(4, 5):bool()})
    local net = nn.MultiheadAttention(4, 2)
    for _, mask in ipairs {tycho.zeros(5, 5), tycho.zeros(4, 5, 5), tycho.zeros(2, 5, 5):bool()} do net(x, {attn_mask = mask}) end
    net(tycho.ones(5, 4), {key_padding_mask = tycho.zeros(5):bool()})
  end)

  it("a grid that changes nothing is on the pixels", function()
    local theta = tycho.tensor({1, 0, 0, 0, 1, 0}):view(1, 2, 3)
    for _, n in ipairs {7, 28, 100} do
      local line = tycho.linspace(-1, 1, n) * (n - 1) / n                 -- PyTorch's places, rounded as there
      local grid = F.affine_grid(theta, {1, 1, n, n}, {align_corners = false})
      helper.close(grid[{1, 1, {}, 1}], line, nil, 0)
      helper.close(grid[{1, {}, 1, 2}], line, nil, 0)
    end
  end)

  it("Sequential hands on all that a member gives", function()
    local Both = nn.Module:extend("Both")
    function Both.forward(_, x, y) return x * y, y and x + y end
    local function values(n, ...)
      assert.equal(n, select("#", ...))
      local out = {...}
      for i = 1, n do out[i] = out[i]:item() end
      return out
    end
    local x, y = tycho.tensor(3), tycho.tensor(2)
    assert.same({30, 11}, values(2, nn.Sequential(Both(), Both())(x, y)))
    assert.same({30, 11}, values(2, nn.Checkpoint(nn.Sequential(Both(), Both()), {segments = 2})(x, y)))
    local sequence, places = tycho.randn(2, 3, 4), nn.MaxPool1d(2, {return_indices = true})
    assert.equal(3, select("#", nn.Sequential(nn.Identity(), nn.LSTM(4, 5))(sequence)))
    helper.close(select(2, nn.Sequential(nn.ReLU(), places)(sequence)), select(2, places(sequence:relu())), nil, 0)
    helper.close(nn.MaxUnpool1d(2)(places(sequence)):max(), sequence:max(), nil, 0)
    for _, make in ipairs {function() return nn.GRU(4, 4) end, function() return nn.LSTM(4, 4) end} do   -- the next begins anew
      local first, second = make(), make()
      local want = second((first(sequence)))
      for _, net in ipairs {nn.Sequential(first, second), nn.Checkpoint(nn.Sequential(first, second), {segments = 2})} do
        helper.close((net(sequence)), want, nil, 0)
      end
    end
    for _, next in ipairs {nn.Linear(5, 2), nn.Softmax(3), nn.GELU(), nn.Flatten(), nn.Sequential(nn.ReLU())} do
      assert.equal(1, select("#", nn.Sequential(nn.LSTM(4, 5), next)(sequence)))
    end
    helper.fails("relu: at most 1 argument", nn.Sequential(nn.ReLU()), x, y)
  end)

  it("recurrent layers give the states that they have, and no more", function()
    for name, n in pairs {GRU = 2, RNN = 2, LSTM = 3, GRUCell = 1, RNNCell = 1, LSTMCell = 2} do
      local x = name:find "Cell" and {tycho.ones(2, 3), tycho.ones(3)} or {tycho.ones(4, 2, 3), tycho.ones(4, 3)}
      for _, input in ipairs(x) do assert.equal(n, select("#", nn[name](3, 5)(input)), name) end
    end
  end)
end)
