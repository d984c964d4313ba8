-- Fourier transforms: what PyTorch gives is in golden_spec; here sizes against plain sums, and what is refused.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local fft = tycho.fft
local fails, close = helper.fails, helper.close

-- Plain sums over the second dim of pairs (rows, n, 2).
local function sums(z, n, sign)
  local k = tycho.range(0, n - 1, 1, {dtype = "int64", device = z.device})
  local angle = ((k:unsqueeze(2) * k:unsqueeze(1)) % n):double() * (sign * 2 * math.pi / n)
  local re, im, c, s = z:select(-1, 1), z:select(-1, 2), angle:cos(), angle:sin()
  return fft.complex(re:matmul(c) - im:matmul(s), re:matmul(s) + im:matmul(c))
end

describe("fourier transforms", function()
  it("are the sums of all sizes, and of many or few lines", function()
    local sizes = helper.simulated and {1, 2, 3, 5, 7, 12, 34, 35, 37, 64, 289} or {}
    for n = 1, #sizes == 0 and 70 or 0 do sizes[n] = n end
    local large = {128, 210, 254, 323, 343, 512, 143, 1009, 1024, 1031, 1050}
    for _, n in ipairs(helper.simulated and {} or large) do sizes[#sizes + 1] = n end
    for _, n in ipairs(sizes) do
      for _, lines in ipairs {1, 4, 37} do
        for _, dtype in ipairs {"float64", "float32"} do
          local z, what = tycho.randn(lines, n, 2, {dtype = "float64"}), ("%d lines of %d, %s"):format(lines, n, dtype)
          local tolerance = dtype == "float32" and 3e-6 * n ^ 0.5 or 1e-13 * n
          local half, x = math.floor(n / 2) + 1, z:select(-1, 1):contiguous()
          close(fft.fft(z:to(dtype)):double(), sums(z, n, -1), what, tolerance)
          close(fft.ifft(z:to(dtype), {norm = "forward"}):double(), sums(z, n, 1), what, tolerance)
          local whole = sums(fft.complex(x), n, -1)
          close(fft.rfft(x:to(dtype)):double(), whole:narrow(2, 1, half), what, tolerance)
          close(fft.irfft(whole:narrow(2, 1, half):to(dtype), n):double(), x, what, tolerance)
        end
      end
    end
  end)

  it("are a line's alone, whatever lies beside it and wherever it begins", function()
    for _, dtype in ipairs {"float32", "float64"} do
      for _, n in ipairs(helper.simulated and {60, 512} or {60, 77, 512, 4096, 8192, 32768}) do
        local x = tycho.randn(18, n + 2, 2, {dtype = dtype})
        local part = x[{ {1, 18}, {2, n + 1} }]                  -- lines evenly apart, with others' elements between
        local y = fft.fft(part:contiguous())
        helper.exact(fft.fft(part), y)
        for _, count in ipairs {1, 3, 9, 17} do helper.exact(fft.fft(part:narrow(1, 2, count)), y:narrow(1, 2, count)) end
      end
    end
    for _, size in ipairs {1, 3, 5, 8, 16, 37} do              -- the lines between which others lie: alone, in rows, with some to fill up
      for _, n in ipairs {1, 6, 7, 17, 64} do
        local x, z = tycho.randn(2, n, size), tycho.randn(2, n, size, 2)
        local function moved(v) return v:movedim(2, 3):contiguous() end
        helper.exact(moved(fft.fft(z, nil, 2)), fft.fft(moved(z)))
        helper.exact(moved(fft.ifft(z, nil, 2)), fft.ifft(moved(z)))
        helper.exact(moved(fft.rfft(x, nil, 2)), fft.rfft(moved(x)))
        local m = math.floor(n / 2) + 1
        helper.exact(moved(fft.irfft(z:narrow(2, 1, m), n, 2)), fft.irfft(moved(z):narrow(3, 1, m), n))
      end
    end
    local x = tycho.randn(3, 40)
    helper.exact(fft.rfft(x:unfold(2, 16, 3)), fft.rfft(x:unfold(2, 16, 3):contiguous()))
    helper.exact(fft.rfft(x:t()), fft.rfft(x:t():contiguous()))
    helper.exact(fft.rfft(x[{ {1}, {1, 16} }]:expand(5, 16)), fft.rfft(x[{ {1}, {1, 16} }]:tile(5, 1)))
  end)

  it("have gradients that are transforms too, to second order", function()
    for _, kind in ipairs {"forward", "inverse", "real", "real_twice", "half", "half_once"} do
      for _, n in ipairs {1, 5, 6} do
        local shape = kind:find "real" and {2, n} or {2, kind:find "half" and math.floor(n / 2) + 1 or n, 2}
        local x = tycho.randn(shape, {dtype = "float64", requires_grad = true})
        local rows = x:detach():unsqueeze(2):tile(1, 3, 1):transpose(2, 3):contiguous()
        if not kind:find "real" then rows = x:detach():unsqueeze(3):tile(1, 1, 3, 1) end
        for inner, v in ipairs {rows:requires_grad_(true), [0] = x} do
          local function fn(w) return core.ops.fourier(w, n, kind, 0.7, inner) end
          assert.is_true(tycho.autograd.gradcheck(fn, {v}))
          assert.is_true(tycho.autograd.gradgradcheck(fn, {v}))
        end
      end
    end
    local z = tycho.zeros(3, 2, {requires_grad = true})
    fft.abs(z):sum():backward()
    assert.same({{0, 0}, {0, 0}, {0, 0}}, z.grad:totable())
  end)

  it("compute in float32 what is whole or 16-bit, and under autocast", function()
    local x = tycho.randint(0, 9, {3, 8})
    close(fft.rfft(x), fft.rfft(x:float()))
    local h = x:half()
    close(fft.rfft(h), fft.rfft(h:float()):half())
    local y = tycho.autocast({dtype = "bfloat16", device = helper.device}, fft.rfft, h:float())
    assert.equal("float32", y.dtype)
  end)

  it("run compiled and traced as they are", function()
    local filter = tycho.randn(5, 2)
    local function smooth(x) return fft.irfft(fft.mul(fft.rfft(x), filter), 8) end
    local step = tycho.compile(smooth)
    for _ = 1, 4 do
      local x = tycho.randn(3, 8)
      close(step(x), smooth(x))
    end
    local Net = tycho.nn.Module:extend("Spectral")
    function Net:forward(x) return fft.abs(tycho.stft(x, 16, {window = tycho.hann_window(16)})) end
    local x = tycho.randn(2, 64)
    close(tycho.jit.trace(Net(), x)(x), Net()(x))
  end)

  it("are traced for other batches", function()
    local traced = tycho.jit.trace(function(z) return fft.fft(z, nil, 1) end, tycho.randn(16, 3, 2))
    local z = tycho.randn(16, 9, 2)
    close(traced(z), fft.fft(z, nil, 1))
  end)

  it("are mapped by vmap along any dim", function()
    local z = tycho.randn(3, 6, 4, 5, 2)
    for mapped = 1, 4 do
      for dim = 1, 3 do
        for _, name in ipairs {"fft", "ifft", "irfft"} do
          local function fn(v) return fft[name](v, 7, dim) end
          local want = {}
          for i, v in ipairs(z:unbind(mapped)) do want[i] = fn(v) end
          close(tycho.vmap(fn, mapped)(z), tycho.stack(want), name)
        end
        local x = z:select(-1, 1)
        local want = {}
        for i, v in ipairs(x:unbind(mapped)) do want[i] = fft.rfft(v, nil, dim) end
        close(tycho.vmap(function(v) return fft.rfft(v, nil, dim) end, mapped)(x), tycho.stack(want), "rfft")
      end
    end
    local a, b = tycho.randn(3, 4, 2), tycho.randn(4, 2)
    close(tycho.vmap(fft.mul, {1, false})(a, b), fft.mul(a, b))
    close(tycho.vmap(fft.mul, {false, 1})(b, a), fft.mul(b, a))
  end)

  it("multiply pairs of any layout", function()
    for _, dtype in ipairs {"float64", "float32"} do
      local function R(...) return tycho.randn(..., {dtype = dtype}) end
      local a = R {3, 4, 5, 2}
      local parts = {R {3, 5, 4, 2}:transpose(2, 3), R {3, 4, 5, 3}[{ {}, {}, {}, {2, 3} }], R {2, 5}:t()}
      for _, b in ipairs {a, R {5, 2}, R {4, 1, 2}, R {2}, unpack(parts)} do
        local re, im, br, bi = a:select(-1, 1), a:select(-1, 2), b:select(-1, 1), b:select(-1, 2)
        local want = fft.complex(re * br - im * bi, re * bi + im * br)
        close(fft.mul(a, b), want)
        close(fft.mul(b, a), want)
        close(core.ops.pairs_product(a, b, true), fft.mul(a, fft.conj(b)))
      end
      close(fft.mul(a[{ {}, {1, 0} }], a[{ {}, {1, 0} }]), a[{ {}, {1, 0} }])
    end
    local a = tycho.randn(3, 4, 2, {dtype = "float64", requires_grad = true})
    local b = tycho.randn(4, 2, {dtype = "float64", requires_grad = true})
    for _, conjugate in ipairs {false, true} do
      local function fn(x, y) return core.ops.pairs_product(x, y, conjugate) end
      assert.is_true(tycho.autograd.gradcheck(fn, {a, b}))
      assert.is_true(tycho.autograd.gradgradcheck(fn, {a, b}))
    end
    local h = tycho.randn(3, 2):half()
    assert.equal("float16", fft.mul(h, h).dtype)
    assert.equal("int64", fft.mul(tycho.ones(2, 2, {dtype = "int64"}), tycho.ones(2, 2, {dtype = "int64"})).dtype)
    fails("argument 1 has shape 3; complex numbers are pairs", fft.mul, tycho.ones(3), tycho.ones(2))
    fails("don't broadcast", fft.mul, tycho.ones(3, 2), tycho.ones(4, 2))
  end)

  it("take any dim of many, cut and filled up", function()
    local x = tycho.randn(3, 2, 1, 2, 2, 2, 2)
    local y = fft.rfft(x, 5, 1)
    assert.same({3, 2, 1, 2, 2, 2, 2, 2}, {unpack(y.shape)})
    close(fft.irfft(y, 5, 1)[{ {1, 3} }], x)
    close(fft.ifft(fft.fft(x, 4, 1), 4, 1)[{ {1, 3} }], x)
  end)

  it("give a signal back from its pieces' spectra", function()
    local x, window = tycho.randn(2, 1000), tycho.hann_window(64)
    local z = tycho.stft(x, 64, 16, {window = window})
    assert.same({2, 33, 63, 2}, {unpack(z.shape)})
    close(tycho.istft(z, 64, 16, {window = window, length = 1000}), x)
    close(tycho.istft(z[1], 64, 16, {window = window, length = 1000}), x[1])
  end)

  it("refuse what they can't take", function()
    fails("fft.fft: argument 1 has shape 3; complex numbers are pairs", fft.fft, tycho.ones(3))
    fails("fft.irfft: argument 1 has shape 3; complex numbers are pairs", fft.irfft, tycho.ones(3))
    fails("dim 3 is out of range", fft.rfft, tycho.ones(2, 3), {dim = 3})
    fails("dim 2 is out of range for 1 dims", fft.fft, tycho.ones(3, 2), {dim = 2})
    fails("at least 1 element", fft.rfft, tycho.ones(2, 3), 0)
    fails("at least 1 element", fft.irfft, tycho.ones(2, 1, 2))
    fails("must have a dim to transform", fft.rfft, tycho.tensor(1))
    fails("dim -1 is named twice", fft.rfft2, tycho.ones(2, 3), {dim = {2, -1}})
    fails("s has 1 sizes for 2 dims", fft.rfft2, tycho.ones(2, 3), {4})
    fails("norm", fft.rfft, tycho.ones(2, 3), {norm = "none"})
    fails("argument 2 has shape 2", fft.complex, tycho.ones(3), tycho.ones(2))
    fails("win_length must be from 1 to n_fft, 8, got 9", tycho.stft, tycho.ones(20), 8, {window = tycho.ones(9)})
    fails("window has shape 7", tycho.stft, tycho.ones(20), 8, {win_length = 8, window = tycho.ones(7)})
    fails("hop_length must be at least 1", tycho.stft, tycho.ones(20), 8, 0)
    fails("is shorter than n_fft, 32", tycho.stft, tycho.ones(20), 32, {center = false})
    fails("it must be (N, 5, pieces, 2)", tycho.istft, tycho.ones(4, 3, 2), 8)
    if helper.device == "cpu" then
      fails("don't cover all elements", tycho.istft, tycho.ones(5, 3, 2), 8, 8, {window = tycho.hann_window(8), center = false})
    end
    fails("did you mean 'rfft'", function() return fft.rff end)
    assert.same({0, 3, 2}, {unpack(fft.rfft(tycho.ones(0, 4)).shape)})
  end)
end)
