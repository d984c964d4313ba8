-- Attention written out in plain ops is what every way of computing it must equal: few queries, tiles, products, a library's kernels;
-- any dtype, mask and dropout. Beside PyTorch's own values: layers_spec (MultiheadAttention, transformers) and golden_spec.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local F = tycho.nn.functional

describe("attention", function()
  it("by tiles of any size equals it written out", function()
    tycho.manual_seed(6)
    for _, case in ipairs {{64, 50, true}, {70, 70, true}, helper.simulated and {300, 300, true} or {600, 600, true},
        helper.simulated and {3, 2100, false} or {2100, 2100, true}, {40, 530, false}, {2050, 3, true}, {130, 700, false, -0.3}} do
      local lq, lk, causal, scale = unpack(case)
      local function leaf(...) return tycho.randn(1, ..., 2, 4):transpose(2, 3):detach():requires_grad_() end
      local q, k, v, seed = leaf(lq), leaf(lk), leaf(lk), tycho.randn(1, 2, lq, 4)
      local y = tycho.scaled_dot_product_attention(q, k, v, nil, 0, causal, {scale = scale})
      local s = q:matmul(k:transpose(3, 4)) * (scale or 0.5)
      if causal then s = s:masked_fill(tycho.ones(lq, lk, {dtype = "bool"}):triu(1), -math.huge) end
      local z = s:softmax(4):matmul(v)
      helper.close(y, z, "output", 1e-5)
      local got, expected = tycho.grad(y, {q, k, v}, {grad_outputs = seed}), tycho.grad(z, {q, k, v}, {grad_outputs = seed})
      for i = 1, 3 do helper.close(got[i], expected[i], ("gradient %d of %d queries, %d keys"):format(i, lq, lk), 1e-4) end
    end
  end)

  it("with masks of any kind equals it written out, also in 16 bits", function()
    tycho.manual_seed(7)
    local n, h, lq, lk, d, e = 2, 3, 67, 130, 8, 4
    local forbidden = tycho.rand(n, 1, lq, lk):lt(0.3)
    forbidden[{1, 1, 5}] = true                                    -- a query that sees nothing
    local bias = tycho.randn(h, lq, lk):masked_fill(tycho.rand(h, lq, lk):lt(0.2), -math.huge)
    for _, dtype in ipairs {"float32", "float64", "float16", "bfloat16"} do
      local tolerance = ({float32 = 1e-4, float64 = 1e-10, float16 = 1e-2, bfloat16 = 5e-2})[dtype]
      local wide = dtype == "float64" and dtype or "float32"
      local function leaf(...) return tycho.randn(...):transpose(2, 3):to(dtype):requires_grad_() end
      local q, k, v, seed = leaf(n, lq, h, d), leaf(n, lk, h, d), leaf(n, lk, h, e), tycho.randn(n, h, lq, e):to(dtype)
      for name, mask in pairs {bool = forbidden:logical_not(), bias = bias:to(dtype)} do
        local y = tycho.scaled_dot_product_attention(q, k, v, mask)
        local got = tycho.grad(y, {q, k, v}, {grad_outputs = seed})
        local Q, K, V = q:detach():to(wide):requires_grad_(), k:detach():to(wide):requires_grad_(), v:detach():to(wide):requires_grad_()
        local s = Q:matmul(K:transpose(3, 4)) * d ^ -0.5
        s = name == "bool" and s:masked_fill(forbidden, -1e30) or s + mask:to(wide)
        local p = s:softmax(4)
        if name == "bool" then p = p:masked_fill(forbidden, 0) end
        local z = p:matmul(V)
        helper.close(y:to(wide), z, dtype .. " " .. name, tolerance)
        local expected = tycho.grad(z, {Q, K, V}, {grad_outputs = seed:to(wide)})
        for i = 1, 3 do helper.close(got[i]:to(wide), expected[i], ("%s %s, gradient %d"):format(dtype, name, i), tolerance) end
      end
    end
  end)

  it("lets query heads share keys as if these were repeated, with few queries too, to the same dropout", function()
    for _, queries in ipairs {1, 3, 9} do
      for _, masked in ipairs {false, true} do
        local function R(...) return tycho.randn({...}, {dtype = "float64"}):requires_grad_() end
        local q, k, v = R(2, queries, 8, 16), R(2, 2, 9, 16), R(2, 2, 9, 5)
        local mask = masked and tycho.rand(2, 1, queries, 9):gt(0.3) or nil
        local up = tycho.randn({2, 8, queries, 5}, {dtype = "float64"})
        for _, p in ipairs {0, 0.4} do
          local function run(keys, values, o)
            o.dropout_p = p
            tycho.manual_seed(5)
            local y = F.scaled_dot_product_attention(q:transpose(2, 3), keys, values, mask, o)
            return y, tycho.grad((y * up):sum(), {q, k, v})
          end
          local got, gradients = run(k, v, {enable_gqa = true, scale = 0.3})
          local want, expected = run(k:repeat_interleave(4, 2), v:repeat_interleave(4, 2), {scale = 0.3})
          helper.close(got, want, "result", 1e-12)
          for i = 1, 3 do helper.close(gradients[i], expected[i], "gradient " .. i, 1e-12) end
        end
      end
    end
    local q, k = tycho.randn(3, 4, 1, 8), tycho.randn(1, 2, 9, 8)        -- batches that broadcast
    helper.close(F.scaled_dot_product_attention(q, k, k, {enable_gqa = true}),
      F.scaled_dot_product_attention(q, k:repeat_interleave(2, 2), k:repeat_interleave(2, 2)), "broadcast", 1e-6)
  end)

  it("in 16 bits equals that of the same numbers in float32, with masks that broadcast and dropout", function()
    tycho.manual_seed(11)
    local n, h, lq, lk, d = 3, 2, 70, 75, 8
    local padding = tycho.range(1, lk):view(1, 1, 1, lk):le(tycho.tensor({40, 75, 3}):view(n, 1, 1, 1))
    local forbidden = tycho.rand(1, h, lq, lk):gt(0.3)
    forbidden[{1, 2, 5}] = false                                   -- a query that sees nothing
    local masks = {
      padding = padding, forbidden = forbidden, row = tycho.rand(lk):gt(0.5),
      bias = tycho.randn(n, 1, lq, lk):masked_fill(tycho.rand(n, 1, lq, lk):lt(0.2), -math.huge),
      nothing = tycho.full({lq, lk}, -math.huge),
      least = tycho.full({1, 1, lk}, -65504),                      -- far below, but seen: the mean of all values
    }
    for _, dtype in ipairs {"float16", "bfloat16"} do
      local tolerance = dtype == "float16" and 1e-2 or 5e-2
      for name, mask in pairs(masks) do
        for _, p in ipairs {0, 0.3} do
          local q, k, v, seed = tycho.randn(n, lq, h, d), tycho.randn(n, lk, h, d), tycho.randn(n, lk, h, d), tycho.randn(n, h, lq, d)
          local function run(type)
            local leaves, at = {}, mask.dtype == "bool" and mask or mask:to(dtype):to(type)
            for i, x in ipairs {q, k, v} do leaves[i] = x:to(dtype):to(type):transpose(2, 3):requires_grad_() end
            tycho.manual_seed(3)
            local y = tycho.scaled_dot_product_attention(leaves[1], leaves[2], leaves[3], at, p)
            return y, unpack(tycho.grad(y, leaves, {grad_outputs = seed:to(dtype):to(type)}))
          end
          local got, want = {run(dtype)}, {run("float32")}
          for i = 1, 4 do
            helper.close(got[i]:float(), want[i], ("%s, %s, dropout %g, %d"):format(dtype, name, p, i), tolerance)
          end
          if name == "nothing" then assert.equal(0, got[1]:abs():max():item()) end
        end
      end
    end
  end)

  it("in 16 bits with dropout equals that of the same numbers in float32, over many tiles and heads of any width", function()
    tycho.manual_seed(13)
    for _, case in ipairs {{70, 132, 64, 64}, {150, 200, 128, 72, "causal"}, {65, 64, 96, 128, "mask"}, {200, 77, 40, 16, "causal"},
        {20, 260, 24, 64, "bias"}} do
      local lq, lk, d, e, kind = unpack(case)
      local mask = kind == "mask" and tycho.rand(1, 2, lq, lk):gt(0.3) or kind == "bias" and tycho.randn(lk):to("float16") or nil
      for _, dtype in ipairs {"float16", "bfloat16"} do
        local tolerance = dtype == "float16" and 1e-2 or 5e-2
        local function heads(l, width) return tycho.randn(2, l, 2, width):to(dtype) end
        local given, seed = {heads(lq, d), heads(lk, d), heads(lk, e)}, tycho.randn(2, 2, lq, e):to(dtype)
        local function run(type)
          local leaves = {}
          for i, x in ipairs(given) do leaves[i] = x:to(type):transpose(2, 3):requires_grad_() end
          tycho.manual_seed(3)
          local at = mask and (kind == "mask" and mask or mask:to(dtype):to(type)) or nil
          local y = tycho.scaled_dot_product_attention(leaves[1], leaves[2], leaves[3], at, 0.3, kind == "causal")
          return y, unpack(tycho.grad(y, leaves, {grad_outputs = seed:to(type)}))
        end
        local got, want = {run(dtype)}, {run("float32")}
        for i = 1, 4 do
          helper.close(got[i]:float(), want[i], ("%s, %d queries, %d keys, %s, %d"):format(dtype, lq, lk, kind or "", i), tolerance)
        end
      end
    end
  end)

  it("of bfloat16 by the processor's own products is that by float32's #cpu", function()
    if not core.native_bf16() then return end
    tycho.manual_seed(14)
    for _, case in ipairs {{1, 2, 64, 64, 64, 64}, {2, 3, 70, 300, 40, 72}, {1, 2, 200, 33, 128, 50, "causal"},
        {2, 1, 130, 520, 64, 64, "mask"}, {1, 1, 16, 700, 96, 32, "bias"}, {1, 2, 300, 300, 64, 64, "causal", 0.2}} do
      local n, h, lq, lk, d, e, kind, dropout = unpack(case)
      local function heads(l, width) return tycho.randn(n, l, h, width):bfloat16():transpose(2, 3) end
      local q, k, v, up = heads(lq, d), heads(lk, d), heads(lk, e), heads(lq, e)
      local mask = kind == "mask" and tycho.rand(lq, lk):gt(0.4) or kind == "bias" and tycho.randn(n, 1, lq, lk):bfloat16() or nil
      local function run(native)
        core.native_bf16(native)
        tycho.manual_seed(3)
        local at = {q:detach():requires_grad_(), k:detach():requires_grad_(), v:detach():requires_grad_()}
        local y = tycho.scaled_dot_product_attention(at[1], at[2], at[3], mask, dropout or 0, kind == "causal")
        return {y:detach(), unpack(tycho.grad(y, at, up))}
      end
      local want, got = run(false), run(true)
      for i = 1, 4 do
        helper.close(got[i]:float(), want[i]:float(), ("%d queries, %d keys, %s, %d"):format(lq, lk, kind or "", i), 2e-2, 1)
        assert.is_false(got[i]:equal(want[i]))             -- probabilities were rounded, so the processor's products were taken
      end
    end
  end)

  it("in 16 bits has gradients beside scores that are all far below 0, whatever is left of the last tile", function()
    tycho.manual_seed(12)
    for _, case in ipairs {{70, 64}, {70, 192}, {64, 64, true}, {1, 128}, {1, 1}, {30, 1}, {65, 128}} do
      local lq, lk, causal = unpack(case)
      for _, dtype in ipairs {"float16", "bfloat16"} do
        for _, mask in ipairs(causal and {false} or {false, tycho.ones(1, 1, lq, lk, {dtype = "bool"}), tycho.full({1, 1, lk}, -120)}) do
          local q, k, v, seed = tycho.randn(2, 3, lq, 8), tycho.randn(2, 3, lk, 8), tycho.randn(2, 3, lk, 8), tycho.randn(2, 3, lq, 8)
          q[{"...", 1}], k[{"...", 1}] = 1, -120 * 8 ^ 0.5
          local function run(type)
            local leaves, at = {}, mask and (mask.dtype == "bool" and mask or mask:to(type)) or nil
            for i, x in ipairs {q, k, v} do leaves[i] = x:to(dtype):to(type):requires_grad_() end
            local y = tycho.scaled_dot_product_attention(leaves[1], leaves[2], leaves[3], at, 0, causal)
            return tycho.grad(y, leaves, {grad_outputs = seed:to(dtype):to(type)})
          end
          local got, want = run(dtype), run("float32")
          -- of q and k but for the first elements, which the large ones make
          for i, t in ipairs(got) do
            helper.close(t:float()[{"...", {2, 8}}], want[i][{"...", {2, 8}}], ("%s, %d queries, %d keys, %d"):format(dtype, lq, lk, i),
              dtype == "float16" and 2e-2 or 1e-1, 1)
            assert.is_true(t:isfinite():all():item())
          end
        end
      end
    end
  end)

  it("of few queries equals it written out, however many keys", function()
    tycho.manual_seed(8)
    for _, case in ipairs {{1, 700, 64, 64}, {1, 3, 8, 8}, {5, 300, 24, 40}, {16, 130, 128, 256}, {3, 17, 6, 6}, {4, 9, 16, 8},
        {4, 200, 128, 128}, {12, 70, 128, 96}} do
      local lq, lk, d, e = unpack(case)
      for _, dtype in ipairs {"float32", "float64", "float16", "bfloat16"} do
        local tolerance = ({float32 = 1e-5, float64 = 1e-10, float16 = 1e-2, bfloat16 = 5e-2})[dtype]
        local wide = dtype == "float64" and dtype or "float32"
        local function heads(l, width) return tycho.randn(2, l, 3, width, {dtype = "float64"}):transpose(2, 3):to(dtype) end
        local q, k, v = heads(lq, d), heads(lk, d), heads(lk, e)
        local scores = q:to(wide):matmul(k:to(wide):transpose(3, 4)) * d ^ -0.5
        local sees, bias = tycho.rand(2, 1, lq, lk):gt(0.3), tycho.randn(3, lq, lk):to(dtype)
        sees[{1, 1, 1}] = false                                    -- a query that sees nothing
        for name, mask in pairs {none = false, causal = tycho.ones(lq, lk, {dtype = "bool"}):tril(), bool = sees, bias = bias} do
          local causal = name == "causal"
          local y = tycho.scaled_dot_product_attention(q, k, v, not causal and mask or nil, 0, causal)
          local s = name == "bias" and scores + mask:to(wide) or mask and scores:masked_fill(mask:logical_not(), -1e30) or scores
          local p = s:softmax(4)
          if name == "bool" then p = p:masked_fill(mask:logical_not(), 0) end
          helper.close(y:to(wide), p:matmul(v:to(wide)), ("%s, mask: %s, %d queries, %d keys"):format(dtype, name, lq, lk), tolerance)
        end
      end
    end
    for _, dtype in ipairs {"float16", "bfloat16"} do              -- the same random numbers in every dtype
      local q, k = tycho.randn(2, 2, 5, 16):to(dtype), tycho.randn(2, 2, 90, 16):to(dtype)
      local function run(type)
        tycho.manual_seed(4)
        return tycho.scaled_dot_product_attention(q:to(type), k:to(type), k:to(type), nil, 0.3)
      end
      helper.close(run(dtype):float(), run("float32"), dtype .. ", dropout", dtype == "float16" and 1e-2 or 5e-2)
    end
    local q = tycho.ones(1, 1, 1, 8)
    assert.is_true(tycho.scaled_dot_product_attention(q, q * (0 / 0), q):isnan():all():item())
  end)

  it("in 16 bits has equal weights of equal scores, however large, and of the lowest masks, whatever the dropout", function()
    tycho.manual_seed(15)
    local lq, lk, d = 20, 70, 8
    for _, dtype in ipairs {"float16", "bfloat16"} do
      local v, seed = tycho.randn(1, 1, lk, d):to(dtype), tycho.randn(1, 1, lq, d):to(dtype)
      local function compare(what, q, k, mask, p, scale, which)
        local function run(type)
          local leaves, list = {}, {}
          for i, x in ipairs {q, k, v} do leaves[i] = x:to(dtype):to(type):requires_grad_() end
          for i, n in ipairs(which) do list[i] = leaves[n] end
          tycho.manual_seed(3)
          local bias = mask and mask:to(dtype):to(type)
          local y = tycho.scaled_dot_product_attention(leaves[1], leaves[2], leaves[3], bias, p, {scale = scale})
          if #list == 0 then return y end
          return y, unpack(tycho.grad(y, list, {grad_outputs = seed:to(type)}))
        end
        local got, want = {run(dtype)}, {run("float32")}
        for i, y in ipairs(got) do
          helper.close(y:float(), want[i], ("%s, %s, %d"):format(dtype, what, i), dtype == "float16" and 1e-2 or 5e-2)
        end
      end
      for _, large in ipairs {60.3, 300.7, 4000.3, 30001} do         -- scores of 1e4 to 2.7e9, the same for each key
        local x = tycho.full({1, 1, lk, d}, large)
        -- a gradient's weights come of log-sum-exp in float32: near as scores times 2^-24
        for _, p in ipairs {0, 0.3} do compare("of " .. large, x:narrow(3, 1, lq), x, nil, p, 0.37, large < 100 and {3} or {}) end
      end
      local q, k = tycho.randn(1, 1, lq, d), tycho.randn(1, 1, lk, d)
      local lowest = tycho.zeros(lq, lk)
      lowest[1] = tycho.finfo(dtype).min
      for _, p in ipairs {0, 0.3} do compare("lowest mask", q, k, lowest, p, 0.35, {3}) end
      compare("no scale in float32", q, k, nil, 0.3, 1e-50, {1, 2, 3})
    end
  end)

  it("keeps the largest of huge scores", function()
    for _, s in ipairs {3.7e9, 7e10, 1e20} do
      for _, scale in ipairs {0.7, 0.9, 1.1} do
        local k = tycho.tensor({{{{s}, {s / 2}, {1}}}})
        local y = tycho.scaled_dot_product_attention(tycho.ones(1, 1, 1, 1), k, tycho.tensor({{{{1}, {2}, {3}}}}), nil,
          0, false, {scale = scale})
        assert.equal(1, y:item())
        y = tycho.scaled_dot_product_attention(tycho.ones(1, 1, 1, 1), -k, tycho.tensor({{{{1}, {2}, {3}}}}), nil, 0,
          false, {scale = scale})
        assert.equal(3, y:item())
      end
    end
  end)

  it("gives a learnt mask its gradient, in 16 bits too, where scores are rounded to nothing coarser", function()
    tycho.manual_seed(9)
    local function compare(dtype, shapes, what)
      local leaves, wide = {}, {}
      for i, shape in ipairs(shapes) do
        local x = (tycho.randn(shape) * (i < 3 and 3 or 1)):to(dtype)                 -- scores of some tens
        if i == 4 and #shape == 2 then x = x:masked_fill(tycho.rand(shape):lt(0.3), -math.huge) end
        leaves[i], wide[i] = x:clone():requires_grad_(), x:double():requires_grad_()
      end
      local q, k, v, mask = unpack(wide)
      local s = q:matmul(k:transpose(-2, -1)) * q.shape[q.ndim] ^ -0.5 + mask
      local none = s:amax(-1, {keepdim = true}):eq(-math.huge)                       -- a query that sees no key
      local z = s:masked_fill(none, 0):softmax(-1):masked_fill(none, 0):matmul(v)
      local y = F.scaled_dot_product_attention(unpack(leaves))
      local seed = tycho.randn(y.shape):to(dtype)
      local got, want = tycho.grad(y, leaves, {grad_outputs = seed}), tycho.grad(z, wide, {grad_outputs = seed:double()})
      local tolerance = ({float64 = 1e-12, float32 = 1e-5, float16 = 2e-3, bfloat16 = 1.6e-2})[dtype]
      for i = 1, 4 do
        assert.same({dtype, shapes[i]}, {got[i].dtype, setmetatable(got[i].shape, nil)})
        local most = math.max(1, want[i]:abs():max():item())
        local off = ((got[i]:double() - want[i]):abs():max() / most):item()
        assert.is_true(off <= tolerance, ("%s %s, gradient %d is off by %g"):format(dtype, what, i, off))
      end
    end
    for _, dtype in ipairs {"float64", "float32", "float16", "bfloat16"} do
      for _, mask in ipairs {{2, 3, 70, 40}, {3, 70, 40}, {70, 40}, {2, 1, 1, 40}} do
        compare(dtype, {{2, 3, 70, 16}, {2, 3, 40, 16}, {2, 3, 40, 8}, mask}, "mask of " .. table.concat(mask, "x"))
      end
      compare(dtype, {{3, 1, 8}, {3, 9, 8}, {3, 9, 8}, {3, 1, 9}}, "one query")
      compare(dtype, {{5, 8}, {9, 8}, {9, 4}, {5, 9}}, "matrices")
    end
    local function leaf(...) return tycho.randn({...}, {dtype = "float64"}):requires_grad_() end
    local q, k, v, mask = leaf(1, 4, 2, 3), leaf(1, 2, 5, 3), leaf(1, 2, 5, 2), leaf(2, 5)
    local function shared(a, b, c, m) return F.scaled_dot_product_attention(a, b, c, m, {enable_gqa = true}) end
    assert.is_true(tycho.autograd.gradcheck(shared, {q, k, v, mask}))
    assert.is_true(tycho.autograd.gradgradcheck(shared, {q, k, v, mask}))
    assert.is_true(tycho.autograd.gradcheck(function(m)
      tycho.manual_seed(3)
      return F.scaled_dot_product_attention(k, k, k, m, {dropout_p = 0.4})
    end, {leaf(5, 5)}))
    for _, sizes in ipairs {{0, 5, 3, 2}, {4, 0, 3, 2}, {4, 5, 0, 2}, {4, 5, 3, 0}} do
      local lq, lk, d, e = unpack(sizes)
      local list = {leaf(2, lq, d), leaf(2, lk, d), leaf(2, lk, e), leaf(lq, lk)}
      local function slope() return tycho.grad(F.scaled_dot_product_attention(unpack(list)):square():sum(), list[4]) end
      helper.close(slope(), tycho.nn.attention.sdpa_kernel("math", slope), table.concat(sizes, " "), 1e-12)
    end
  end)

  it("drops the same probabilities forward and backward", function()
    tycho.manual_seed(8)
    local q, k, v = tycho.randn(1, 2, 7, 4, {dtype = "float64"}), tycho.randn(1, 2, 9, 4, {dtype = "float64"}),
      tycho.randn(1, 2, 9, 3, {dtype = "float64"})
    for _, x in ipairs {q, k, v} do x:requires_grad_() end
    assert.is_true(tycho.autograd.gradcheck(function()
      tycho.manual_seed(3)
      return tycho.scaled_dot_product_attention(q, k, v, nil, 0.4)
    end, {q, k, v}))
    for _, keys in ipairs {72, 70} do                                          -- whole blocks of random words to a row, and parts
      local many = tycho.randn(1, 2, keys, 4, {dtype = "float64"}):requires_grad_()
      assert.is_true(tycho.autograd.gradcheck(function()
        tycho.manual_seed(3)
        return tycho.scaled_dot_product_attention(q[{ {}, {}, {1, 2} }], many, many, nil, 0.4)
      end, {many}))
    end
    -- on average nothing changes
    local sum, plain = nil, tycho.scaled_dot_product_attention(q, k, v)
    for _ = 1, 3000 do
      local y = tycho.scaled_dot_product_attention(q:detach(), k:detach(), v:detach(), nil, 0.4)
      sum = sum and sum:add_(y) or y
    end
    assert.is_true((sum / 3000 - plain):abs():max():item() < 0.08)
  end)

  it("goes the ways that are allowed, which agree", function()
    local SDP, sdpa_kernel, cuda = tycho.nn.attention.SDPBackend, tycho.nn.attention.sdpa_kernel, tycho.backends.cuda
    local q, k, v = tycho.randn(2, 4, 5, 8):double(), tycho.randn(2, 2, 7, 8):double(), tycho.randn(2, 2, 7, 8):double()
    local keep, bias = tycho.rand(2, 1, 5, 7):gt(0.3), tycho.randn(5, 7):double()
    for _, o in ipairs {{}, {is_causal = true}, {attn_mask = keep}, {attn_mask = bias}, {scale = -0.5}} do
      o.enable_gqa = true
      local function run(way)
        local list = {q:clone():requires_grad_(), k:clone():requires_grad_(), v:clone():requires_grad_()}
        local y = sdpa_kernel(way, function(...) return F.scaled_dot_product_attention(list[1], list[2], list[3], ...) end, o)
        return y, tycho.grad((y * y):sum(), list)
      end
      local want, grads = run {SDP.FLASH_ATTENTION, SDP.CUDNN_ATTENTION}
      for _, way in ipairs {SDP.MATH, SDP.EFFICIENT_ATTENTION, SDP.CUDNN_ATTENTION} do
        local y, g = run(way)
        helper.close(y, want, way, 1e-12)
        for i = 1, 3 do helper.close(g[i], grads[i], way, 1e-11) end
      end
    end
    -- derivatives of any order, with dropout too
    local function dropped(a)
      tycho.manual_seed(3)
      return F.scaled_dot_product_attention(a, k, k, {dropout_p = 0.3, enable_gqa = true}):sum()
    end
    local a = q:clone():requires_grad_()
    local function twice() return tycho.grad(dropped(a), a, {create_graph = true}):pow(2):sum():backward() end
    helper.fails("sdpa_kernel('math', fn) has one", twice)
    assert.is_true(sdpa_kernel("math", tycho.autograd.gradgradcheck, dropped, {a}))
    -- switches
    cuda.enable_math_sdp(false)
    assert.is_true(cuda.flash_sdp_enabled() and not cuda.math_sdp_enabled())
    sdpa_kernel({"math", "cudnn"}, function()
      assert.is_true(cuda.math_sdp_enabled() and cuda.cudnn_sdp_enabled() and not cuda.mem_efficient_sdp_enabled())
    end)
    assert.is_true(cuda.flash_sdp_enabled() and cuda.mem_efficient_sdp_enabled() and not cuda.math_sdp_enabled())
    cuda.enable_flash_sdp(false)
    cuda.enable_mem_efficient_sdp(false)
    if helper.device ~= "cpu" then                       -- cuDNN, or what stands in for it
      helper.close(F.scaled_dot_product_attention(q, q, q), sdpa_kernel("math", F.scaled_dot_product_attention, q, q, q), nil, 1e-12)
    end
    cuda.enable_cudnn_sdp(false)
    helper.fails("are all switched off", F.scaled_dot_product_attention, q, q, q)
    for _, way in ipairs {"flash", "mem_efficient", "cudnn", "math"} do cuda["enable_" .. way .. "_sdp"](true) end
    helper.fails("sdpa_kernel: argument 1 must be one of SDPBackend, or a list", sdpa_kernel, "fast", print)
    helper.fails("sdpa_kernel: argument 1", sdpa_kernel, {}, print)
    helper.fails("sdpa_kernel: argument 2 must be a function", sdpa_kernel, SDP.MATH)
    helper.fails("no 'FAST_ATTENTION'", function() return SDP.FAST_ATTENTION end)
    helper.fails("argument 1 must be a boolean", cuda.enable_flash_sdp, 1)
    assert.is_true(pcall(sdpa_kernel, "math", error) == false and cuda.flash_sdp_enabled())
  end)

  it("by a program's functions of scores and places (PyTorch's flex_attention)", function()
    local A, G = tycho.nn.attention, helper.read "spec/golden/flex_attention.safetensors"
    local function leaf(name) return G[name]:clone():requires_grad_() end
    local q, k, v, bias = leaf "q", leaf "k", leaf "v", leaf "bias"
    local function score(s, _, h, i, j) return (s / 1.5):tanh() * 1.5 + bias[{h, i - j + 8}] end
    local y = A.flex_attention(q, k, v, score, nil, 0.7, true)
    helper.close(y, G.y, "result", 1e-12)
    y:backward(tycho.range(0, y:numel() - 1, 1, {dtype = "float64"}):cos():view(y.shape))
    for name, t in pairs {q = q, k = k, v = v, bias = bias} do helper.close(t.grad, G[name .. ".grad"], "gradient of " .. name, 1e-11) end
    local function near(b, _, i, j) return (i + b):ge(j) end
    local function some(_, h, _, j) return ((j + h - 2) % 5):ne(0) end
    local mask = A.create_block_mask(A.and_masks(near, some), 2, 4, 5, 7, {device = q.device})
    helper.exact(mask, G.mask)
    local masked, lse = A.flex_attention(q, k, v, score, mask, {scale = 0.7, enable_gqa = true, return_lse = true})
    helper.close(masked, G.masked, "masked", 1e-12)
    helper.close(lse, G.lse, "log-sum-exp", 1e-12)
    -- without a score function: the fused op
    local plainly = A.flex_attention(q, k, v, nil, mask, {enable_gqa = true})
    helper.close(plainly, A.flex_attention(q, k, v, function(s) return s end, mask, {enable_gqa = true}), "fused", 1e-12)
    local either = A.create_mask(A.or_masks(near, some), nil, nil, 3, 4, q.device)
    assert.same({1, 1, 3, 4}, {unpack(either.shape)})
    -- 16 bits: scores in float32
    local half = A.flex_attention(q:half(), k:half(), v:half(), function(s)
      assert.equal("float32", s.dtype)
      return s
    end, nil, {enable_gqa = true})
    assert.equal("float16", half.dtype)
    helper.close(half:double(), A.flex_attention(q, k, v, nil, nil, {enable_gqa = true}), "half", 5e-3)
    helper.fails("create_block_mask: mask_mod must give a bool tensor, got a tensor of int64", A.create_block_mask,
      function(_, _, i, j) return i - j end, 1, 1, 2, 2, q.device)
    helper.fails("mask_mod gave shape 3; it must broadcast to 1x1x2x2", A.create_block_mask,
      function() return tycho.ones(3, {dtype = "bool"}) end, 1, 1, 2, 2, q.device)
    helper.fails("create_block_mask: Q_LEN must be a whole number from 0, got nil", A.create_block_mask, near, 1, 1)
    helper.fails("and_masks: argument 2 must be a function, got nil", A.and_masks, near, nil)
    helper.fails("flex_attention: score_mod must give a floating tensor, got a tensor of bool", A.flex_attention, q, k, v,
      function(s) return s:gt(0) end, {enable_gqa = true})
    helper.fails("flex_attention: block_mask must be bool, got float32", A.flex_attention, q, k, v, nil, tycho.zeros(5, 7))
    helper.fails("flex_attention: argument 4 (score_mod) must be a function, got 3", A.flex_attention, q, k, v, 3)
    helper.fails("4 query heads must be a multiple of the 3 key heads", A.flex_attention, q, tycho.zeros(2, 3, 7, 3, {dtype = "float64"}),
      tycho.zeros(2, 3, 7, 2, {dtype = "float64"}), score, {enable_gqa = true})
  end)
end)
