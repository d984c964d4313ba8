-- What a convolution gives lies as suits the next one; whoever sees it in other shapes sees the same elements, as elsewhere.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F = tycho.nn, tycho.nn.functional

describe("results that lie channels-last", function()
  local function conv() return F.conv2d(tycho.randn(2, 3, 6, 6), tycho.randn(4, 3, 3, 3)) end

  it("are seen through view() and flatten(): changes come through, both ways", function()
    for _, see in ipairs {function(y) return y:view(2, -1) end, function(y) return y:flatten(2) end, function(y) return y:view(-1) end} do
      local y = conv()
      local want, v = y:clone(), see(y)
      helper.close(y, want)
      helper.close(v:view(-1), want:contiguous():view(-1))
      v:mul_(2)
      helper.close(y, want * 2)
      y:add_(1)
      helper.close(v:view(-1), (want * 2 + 1):contiguous():view(-1))
      see(y):fill_(7)
      assert.equal(7, y:mean():item())
      v[1] = 5
      assert.equal(5, (y:select(1, 1):min():item()))
    end
  end)

  it("have gradients of their layout: what is made like them lies as they do", function()
    local y = conv()
    for i, like in ipairs {tycho.ones_like(y), tycho.zeros_like(y), tycho.full_like(y, 3)} do
      assert.same(y:stride(), like:stride())
      helper.close(like:view(-1), tycho.full({y:numel()}, ({1, 0, 3})[i]))           -- which a view may change
    end
    assert.is_true(tycho.ones_like(y, {dtype = "float64"}):is_contiguous())
    assert.is_false(tycho.ones_like(y:clone():requires_grad_()).requires_grad)
  end)

  it("have the gradients of what was changed through a view", function()
    local x, w = tycho.randn(2, 3, 5, 5, {dtype = "float64"}), tycho.randn(4, 3, 3, 3, {dtype = "float64", requires_grad = true})
    assert.is_true(tycho.autograd.gradcheck(function(k)
      local y = F.conv2d(x, k)
      y:view(2, -1):mul_(2)
      y:flatten(3)[{ {}, {1, 2} }] = 0
      return y:pow(2)
    end, {w}))
  end)

  it("whose memory others have are copied, and the copy says so when it is changed", function()
    local w = tycho.randn(4, 3, 3, 3, {requires_grad = true})
    local y = F.relu(F.conv2d(tycho.randn(2, 3, 6, 6), w))                   -- relu keeps it for backward
    if y:is_contiguous() then return end                                    -- a device whose convolutions give rows
    local v = y:view(2, -1)
    helper.close(v:view(-1), y:contiguous():view(-1))
    helper.fails("mul_: view() or reshape() made this copy", v.mul_, v, 2)
    helper.fails("view() or reshape() made this copy", function() v[1] = 0 end)
    tycho.no_grad(function() helper.fails("fill_: view() or reshape() made this copy", function() v[1]:fill_(0) end) end)
    local own = y:contiguous()
    own:view(2, -1):mul_(2)
    helper.close(own, y * 2)
    local kept = conv()
    local other = kept:detach()
    helper.fails("view() or reshape() made this copy", function() other:view(2, -1):fill_(0) end)
    helper.close(kept, other)
  end)

  it("come in parts that can be seen in other shapes", function()
    local y = conv()
    local c = y:contiguous()
    helper.close(y[1]:view(-1), c[1]:view(-1))
    helper.close(y[{ {}, {3, 4} }]:view(2, -1), c[{ {}, {3, 4} }]:reshape(2, -1))
    helper.close(y:split(2, 2)[2]:view(2, -1), c:split(2, 2)[2]:reshape(2, -1))
    helper.close(y:roll(1, 1):view(2, -1), c:roll(1, 1):view(2, -1))
  end)

  it("come in parts that outlive them", function()
    tycho.no_grad(function()
      for _ = 1, 20 do
        local part = F.conv2d(tycho.randn(2, 3, 34, 34), tycho.randn(8, 3, 3, 3))[{ {}, {1, 2} }]
        collectgarbage()
        local want = part:clone():contiguous()
        helper.close(part:view(2, -1), want:view(2, -1))
        assert.equal(want:sum():item(), part:contiguous():sum():item())
      end
    end)
  end)

  it("have the means of their planes, and these gradients", function()
    for _, dtype in ipairs {"float32", "float16"} do
      local x = tycho.randn(2, 5, 5, 8, {dtype = dtype}):permute(1, 4, 2, 3):to(dtype, {memory_format = "channels_last"}):requires_grad_()
      local y = F.adaptive_avg_pool2d(x, 1)
      helper.close(y:flatten(2):float(), x:detach():float():contiguous():flatten(3):mean(3), dtype, dtype == "float16" and 1e-3 or 1e-6)
      assert.equal(dtype, y.dtype)
      y:sum():backward()
      helper.close(x.grad:float(), tycho.full({2, 8, 5, 5}, 1 / 25), dtype, 1e-3)
    end
  end)

  it("of sequences too: parts, what is made of them, joins, padding, and the gradients of parts", function()
    local function innermost(x) return x:stride(2) < x:stride(3) end
    local net = nn.Conv1d(3, 8, 3, {padding = 1})
    local y = net(tycho.randn(2, 3, 10))
    local a, b = unpack(y:chunk(2, 2))
    local last, slope = innermost(y), nil
    for name, v in pairs {tanh = a:tanh(), joined = tycho.cat({a, b}, 2), padded = F.pad(y, {4, 0}), viewed = y:unsqueeze(3):squeeze(3)} do
      assert.equal(last, innermost(v), name)
    end
    y:register_hook(function(g) slope = g end)
    local weights = tycho.randn(2, 4, 10)
    nn.Conv1d(4, 2, 1)(a:tanh() * b:sigmoid()):mul(weights[{ {}, {1, 2} }]):sum():backward()
    assert.equal(last, innermost(slope))
    local c = y:detach():contiguous():requires_grad_()
    local given = tycho.randn(2, 8, 10)
    a, b = unpack(c:chunk(2, 2))
    helper.close(tycho.grad(tycho.cat({b, a}, 2), c, {grad_outputs = given}), tycho.cat({given[{ {}, {5, 8} }], given[{ {}, {1, 4} }]}, 2))
    helper.close(y:view(2, 4, 2, 10):view(2, -1), c:view(2, -1))         -- a view of a view, as of what is in order
  end)

  it("don't make others' gradients lie so: that of a part, seen turned, is in order", function()
    local h = tycho.randn(4, 3, {requires_grad = true}) * 1
    assert.is_true(tycho.grad((h:narrow(1, 1, 2):t() * 2):sum(), h):is_contiguous())
  end)

  it("are the same in compiled functions", function()
    local net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    local function step(x)
      local y = net(x)
      return y:view(x:size(1), -1):sum(2), y:flatten(2):mean(), y[1]:view(-1) * 2
    end
    local compiled = tycho.compile(step)
    for _ = 1, 5 do
      local x = tycho.randn(2, 3, 6, 6)
      net:eval()
      local want, got = {step(x)}, {compiled(x)}
      for i = 1, 3 do helper.close(got[i], want[i]) end
    end
  end)
end)

describe("what PyTorch copies", function()
  it("shares nothing with what it was made of, even where nothing changes", function()
    local x, v, img = tycho.randn(1, 3), tycho.randn(4), tycho.randn(1, 4, 5, 5)
    for name, y in pairs {tile = x:tile(1, 1), expanded = x:tile(4, 1), ["repeat"] = x["repeat"](x, 1, 1), tile5 = x:tile(1, 1, 1, 1, 1),
        interleaved = x:repeat_interleave(3, 1), once = v:repeat_interleave(1), diag = tycho.randn(3, 3):diag(), roll = x:roll(0),
        rolled = x:roll(0, 1), shuffled = F.pixel_shuffle(img, 1), unshuffled = F.pixel_unshuffle(img, 1),
        channels = F.channel_shuffle(img, 1)} do
      local from, was = {x:clone(), v:clone(), img:clone()}, y:clone()
      y:select(1, 1):fill_(5)
      if y:size(1) > 1 then helper.close(y:select(1, 2), was:select(1, 2), name) end
      for i, t in ipairs {x, v, img} do helper.close(t, from[i], name) end
    end
    local m = tycho.eye(3)
    m:diag():fill_(9)
    helper.close(m, tycho.eye(3))
    m:diagonal():fill_(9)
    helper.close(m, tycho.eye(3) * 9)
  end)
end)

describe("cat and stack", function()
  it("of few and of many parts, of any dtype and layout, have each where it belongs", function()
    tycho.manual_seed(4)
    for _, dtype in ipairs {"float32", "float16", "float64", "uint8", "int64"} do
      for _, case in ipairs {{{2, 3, 4, 5}, 2, 3}, {{2, 3, 4, 5}, 1, 70}, {{2, 8, 3, 4}, 2, 2, true}, {{2, 8, 3, 4}, 3, 3, true},
          {{1, 16, 2, 2}, 1, 2, true}, {{3, 4}, 2, 130}, {{16}, 1, 5}, {{2, 3, 32}, 3, 4}, {{4, 6}, 2, 9}, {{4, 6}, 2, 64}} do
        local shape, dim, n, last = unpack(case)
        local parts, first = {}, {}
        for i = 1, n do
          local size = {unpack(shape)}
          size[dim] = i % 5 == 4 and 0 or shape[dim] * (1 + i % 3)
          parts[i] = tycho.randint(0, 100, size):to(dtype)
          if last then parts[i] = parts[i]:contiguous("channels_last") end
          first[i] = (first[i - 1] or 1) + (parts[i - 1] and parts[i - 1]:size(dim) or 0)
        end
        if n == 5 then parts[2] = parts[2]:float() end           -- another dtype
        if n == 4 then parts[3] = parts[3]:expand(2, 3, parts[3]:size(3)):transpose(1, 2):contiguous():transpose(1, 2) end
        local y = tycho.cat(parts, dim)
        if last and n > 1 then assert.is_true(y:is_contiguous("channels_last")) end
        for i = 1, n do
          assert.is_true(y:narrow(dim, first[i], parts[i]:size(dim)):equal(parts[i]:to(y.dtype)), ("part %d of %d, %s"):format(i, n, dtype))
        end
        local alike = {}
        for i = 1, n do alike[i] = tycho.randint(0, 100, shape):to(dtype) end
        for at = 1, #shape + 1 do
          local z = tycho.stack(alike, at)
          for i = 1, n do assert.is_true(z:select(at, i):equal(alike[i])) end
        end
      end
    end
  end)

  it("a result in order of its dims is as any: its views don't copy", function()
    local x, y = tycho.randn(1, 2, 3, 4), tycho.randn(1, 2, 3, 4):contiguous({memory_format = "channels_last"})
    local conv = F.conv2d(tycho.randn(1, 2, 3, 4):half(), tycho.randn(2, 2, 1, 1):half()):to(x.dtype)
    for _, first in ipairs {y, conv} do
      helper.fails("without a copy", function() return tycho.cat({first, x}, 3):narrow(4, 1, 2):view(2, -1) end)
    end
  end)

  it("keep their layout in parts of them, through softmax and resizing, with the same values and gradients", function()
    local ways = {
      part = function(x) return x[{{}, {}, {}, {2, -1}}] * 2 end,
      difference = function(x) return (x[{{}, {}, {2, -1}}] - x[{{}, {}, {1, -2}}]):abs() end,
      channels = function(x) return x[{{}, {1, 3}}]:exp() end,
      ["channels by half"] = function(x) return F.glu(x[{{}, {1, 4}}], 2) end,
      joined = function(x) return tycho.cat({x[{{}, {1, 2}}], x[{{}, {3, 5}}]}, 2) end,
      padded = function(x) return F.pad(x[{{}, {1, 3}}], {1, 2, 0, 1}) end,
      softmax = function(x) return x:softmax(2) end,
      log_softmax = function(x) return x:log_softmax(2) end,
      ["softmax of rows"] = function(x) return x:softmax(4) end,
      ["softmax of a part"] = function(x) return x[{{}, {2, 4}}]:log_softmax(2) end,
      nearest = function(x) return F.interpolate(x, {scale_factor = 2}) end,
      bilinear = function(x) return F.interpolate(x, {size = {9, 5}, mode = "bilinear"}) end,
      bicubic = function(x) return F.interpolate(x, {size = {9, 5}, mode = "bicubic"}) end}
    for _, batch in ipairs {1, 3} do
      local given = tycho.randn(batch, 2, 6, 7)
      local w = tycho.randn(5, 2, 1, 1, {requires_grad = true})
      for name, f in pairs(ways) do
        local x = F.conv2d(given, w)
        local y, want = f(x), f(F.conv2d(given, w):contiguous())
        local g = tycho.randn(unpack(want.shape))
        helper.close(y:detach(), want:detach(), name, 0)
        if x:stride(2) == 1 then assert.equal(1, y:stride(2), name) end          -- a backend's convolution may lie in order
        helper.close(y:view(-1):detach(), want:reshape(-1):detach(), name .. ", seen as a vector", 0)
        helper.close(tycho.grad(y, w, {grad_outputs = g}), tycho.grad(want, w, {grad_outputs = g}), name .. ", gradient", 1e-4)
        local twin = y:detach():clone()
        assert.same(y:stride(), twin:stride(), name)
      end
    end
  end)

  it("are made so where the program asks for it", function()
    local x, last = tycho.randn(2, 3, 4, 5), {memory_format = "channels_last"}
    local made = {tycho.empty(2, 3, 4, 5, last), tycho.zeros_like(x, last), tycho.full_like(x, 3, last), tycho.rand_like(x, last),
      tycho.randint_like(x, 1, 9, last)}
    for i, y in ipairs(made) do
      assert.same({60, 1, 15, 3}, y:stride(), i)
      assert.same({60, 20, 5, 1}, tycho.ones_like(y, {memory_format = "contiguous"}):stride(), i)
    end
    assert.equal(180, made[3]:int()[1]:sum():item())
    helper.close(made[1]:copy_(x), x)
    helper.fails("empty: channels_last needs 4 sizes, got shape 2x3", tycho.empty, {2, 3}, last)
    helper.fails("zeros_like: channels_last: 4 dims are needed, got shape 3", tycho.zeros_like, tycho.ones(3), last)
  end)

  it("are resized as channels-last pictures of the program's own are", function()
    local x = tycho.randn(2, 6, 5, 20)
    local seen = x:permute(1, 4, 2, 3)
    for _, how in ipairs {{scale_factor = 2}, {scale_factor = 2, mode = "bilinear"}, {size = {4, 9}, mode = "bicubic"}} do
      helper.close(F.interpolate(seen, how), F.interpolate(seen:contiguous(), how), how.mode, 0)
      local a, b = x:clone():requires_grad_(), x:clone():requires_grad_()
      local y = F.interpolate(a:permute(1, 4, 2, 3), how)
      local g = tycho.randn(unpack(y.shape))
      y:backward(g)
      F.interpolate(b:permute(1, 4, 2, 3):contiguous(), how):backward(g)
      helper.close(a.grad, b.grad, how.mode, 1e-6)
    end
    helper.close(F.max_pool2d(seen, 2), F.max_pool2d(seen:contiguous(), 2), "max_pool2d", 0)
  end)

  if helper.device == "cpu" then it("have their elements in order where their memory is asked for", function()
    local function conv_of() return tycho.no_grad(function() return F.conv2d(tycho.randn(1, 2, 3, 4), tycho.randn(5, 2, 1, 1)) end) end
    for _, f in ipairs {function(x) return x end, function(x) return x:softmax(2) end, function(x) return x[{{}, {1, 3}}] * 2 end} do
      local y = f(conv_of())
      local want = y:contiguous():view(-1):totable()
      local p = y:data()
      for k = 1, #want do assert.equal(want[k], p[k - 1]) end
      assert.is_true(y:is_contiguous())
    end
    local y = conv_of()
    local part = y[1]                                      -- whose elements lie as they do
    helper.fails("is not contiguous: call contiguous() first", y.data, y)
    assert.same({5, 3, 4}, part.shape)
  end) end
end)

describe("convolutions and products", function()
  it("are right where oneDNN has AVX2's kernels, which take blocks of channels #cpu", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- the stock luajit can't open that build
    local p = io.popen "ONEDNN_MAX_CPU_ISA=AVX2 DNNL_MAX_CPU_ISA=AVX2 luajit spec/fixtures/avx2.lua 2>&1"
    assert.equal("ended after 91\n", p:read "*a")
    p:close()
  end)

  it("convolutions of any geometry are the sums of their shifted products", function()
    local function sizes(lo, hi) return {math.random(lo, hi), math.random(lo, hi)} end
    math.randomseed(7)
    for trial = 1, 60 do
      local groups, batch = math.random(3), math.random(5)
      local cg, og = math.random(3), math.random(4)
      local n, k, s, p, d = sizes(8, 24), sizes(1, 17), sizes(1, 3), sizes(0, 5), sizes(1, 2)
      local out = {}
      for i = 1, 2 do out[i] = math.floor((n[i] + 2 * p[i] - d[i] * (k[i] - 1) - 1) / s[i]) + 1 end
      if out[1] > 0 and out[2] > 0 then
        local o = {dtype = trial % 2 == 0 and "float64" or "float32"}
        local x = tycho.randn(batch, groups * cg, n[1], n[2], o):requires_grad_()
        local w, b = tycho.randn(groups * og, cg, k[1], k[2], o):requires_grad_(), tycho.randn(groups * og, o)
        local padded, want = F.pad(x, {p[2], p[2], p[1], p[1]}), b:view(1, -1, 1, 1)
        for i = 0, k[1] - 1 do
          for j = 0, k[2] - 1 do
            local u, v = 1 + i * d[1], 1 + j * d[2]
            local part = padded[{ {}, {}, {u, u + (out[1] - 1) * s[1], s[1]}, {v, v + (out[2] - 1) * s[2], s[2]} }]
            want = want + tycho.einsum("bgchw,goc->bgohw", part:reshape(batch, groups, cg, out[1], out[2]),
              w[{ {}, {}, i + 1, j + 1}]:reshape(groups, og, cg)):reshape(batch, groups * og, out[1], out[2])
          end
        end
        local y = F.conv2d(x, w, b, {stride = s, padding = p, dilation = d, groups = groups})
        local g = tycho.randn(y.shape, o)
        local grads, wanted = tycho.grad(y, {x, w}, {grad_outputs = g}), tycho.grad(want, {x, w}, {grad_outputs = g})
        for i, pair in ipairs {{y, want}, {grads[1], wanted[1]}, {grads[2], wanted[2]}} do
          helper.close(pair[1] / pair[2]:abs():max(), pair[2] / pair[2]:abs():max(), "trial " .. trial .. ", " .. i,
            o.dtype == "float64" and 1e-12 or 1e-5)
        end
      end
    end
  end)
end)
