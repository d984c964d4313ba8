-- Fourier transforms: torch.fft's functions, in tycho.fft, and stft and istft. There is no complex dtype: complex numbers are pairs (real,
-- imaginary) in a last dim of size 2, as in torch.view_as_real; the argument dim doesn't count that dim.
--
-- The op handles sizes without a prime factor above 1024, on a GPU 64 (core/fourier.h); others become a convolution of a suitable size
-- (Bluestein).
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local modes = require "tycho.modes"
local def, fail, wrap = lib.def, lib.fail, lib.wrap
local F = lib.functions

local SPECTRAL = {method = false, float32 = true}
local NORM = "norm:enum(backward,ortho,forward)=backward"

---- complex numbers ----
local function pairs_of(re, im) return ops.stack({re, im}, -1) end
local function parts(z) return ops.select(z, -1, 1), ops.select(z, -1, 2) end
local function need_pairs(name, position, z)
  if M.dim(z) == 0 or z.shape[M.dim(z)] ~= 2 then
    fail(name, "argument %d has shape %s; complex numbers are pairs, in a last dim of size 2 (fft.complex makes them)", position,
      tostring(z.shape))
  end
end
local TAKEN = {float32 = true, float64 = true}
local function product(a, b)
  if a.dtype == b.dtype and TAKEN[a.dtype] then return ops.pairs_product(a, b) end
  local ar, ai = parts(a)
  local br, bi = parts(b)
  return pairs_of(ar * br - ai * bi, ar * bi + ai * br)
end

def("fft.complex", "real, imag?", "pairs of a real part and an imaginary one (0 where nil)", function(re, im)
  if not im then im = F.zeros_like(re) end
  if re.shape ~= im.shape then
    fail("fft.complex", "argument 2 has shape %s; it must be argument 1's, %s", tostring(im.shape), tostring(re.shape))
  end
  return pairs_of(re, im)
end, SPECTRAL)
def("fft.polar", "abs, angle", "pairs of these absolute values and angles (radians)", function(abs, angle)
  return pairs_of(abs * ops.cos(angle), abs * ops.sin(angle))
end, SPECTRAL)
def("fft.abs", "z", "absolute values of pairs; the gradient at 0 is 0", function(z)
  need_pairs("fft.abs", 1, z)
  return M.norm(z, 2, -1)
end, SPECTRAL)
def("fft.angle", "z", "angles of pairs, in radians", function(z)
  need_pairs("fft.angle", 1, z)
  local re, im = parts(z)
  return ops.atan2(im, re)
end, SPECTRAL)
def("fft.conj", "z", "pairs with the other sign of the imaginary part", function(z)
  need_pairs("fft.conj", 1, z)
  local re, im = parts(z)
  return pairs_of(re, -im)
end, SPECTRAL)
def("fft.mul", "a, b", "products of pairs, with broadcasting", function(a, b)
  need_pairs("fft.mul", 1, a)
  need_pairs("fft.mul", 2, b)
  return product(a, b)
end, SPECTRAL)

---- one dim: x's signals lie in the last dim (of pairs in the one before the last), or before `inner` others ----
-- Transforms of n elements, where n has a factor that the op doesn't take. With jk = (j^2 + k^2 - (j - k)^2) / 2 they are a convolution
-- with e^(i pi k^2 / n).
local function convolved(z, n, kind, scale)
  local at, size = M.dim(z) - 1, 1
  while size < 2 * n - 1 do size = 2 * size end
  local k = ops.range(0, n - 1, 1, {dtype = "int64", device = z.device})
  local angle = M.double(ops.remainder(k * k, 2 * n)) * (math.pi / n * (kind == "inverse" and -1 or 1))
  local chirp = M.to(pairs_of(ops.cos(angle), ops.sin(angle)), z.dtype)
  local back = F["fft.conj"](chirp)
  -- the chirp in both directions around a ring, with zeros between
  local ring = ops.cat({ops.pad_constant(chirp, {0, 0, 0, size - 2 * n + 1}), ops.slice(ops.flip(chirp, 1), 1, 1, n - 1)}, 1)
  local x = ops.pad_constant(product(z, back), {0, 0, 0, size - n})
  local y = product(ops.fourier(x, size, "forward"), ops.fourier(ring, size, "forward"))
  return product(ops.slice(ops.fourier(y, size, "inverse", scale / size), at, 1, n), back)
end
local function sums(z, n, kind, scale, inner)
  return core.fourier_takes(z, n) and ops.fourier(z, n, kind, scale, inner) or convolved(z, n, kind, scale)
end

local function half_of(x, n, scale, inner)
  if core.fourier_takes(x, n, true) then return ops.fourier(x, n, "real", scale, inner) end
  return ops.slice(sums(pairs_of(x, F.zeros_like(x)), n, "forward", scale), M.dim(x), 1, math.floor(n / 2) + 1)
end
local function whole_of(z, n, scale, inner)
  if core.fourier_takes(z, n, true) then return ops.fourier(z, n, "half", scale, inner) end
  -- the missing elements are conjugates of the given ones
  local at = M.dim(z) - 1
  local rest = F["fft.conj"](ops.flip(ops.slice(z, at, 2, n - math.floor(n / 2)), at))
  local first, between = ops.slice(z, at, 1, 1), ops.slice(z, at, 2)
  first = pairs_of((parts(first)), F.zeros_like((parts(first))))
  return (parts(sums(ops.cat({first, between, rest}, at), n, "inverse", scale)))
end

local function scale_of(norm, n, back)
  if norm == "ortho" then return n ^ -0.5 end
  return (norm == "forward") ~= back and 1 / n or 1
end

-- x cut or padded with zeros to n elements of dim.
local function resized(x, n, dim)
  local have, last, pad = x.shape[dim], M.dim(x), {}
  if n == have then return x elseif n < have then return ops.slice(x, dim, 1, n) end
  if last - dim > 3 then return M.movedim(resized(M.movedim(x, dim, last), n, last), last, dim) end      -- more than pad takes
  for i = 1, 2 * (last - dim) + 1 do pad[i] = 0 end
  pad[#pad + 1] = n - have
  return ops.pad_constant(x, pad)
end

-- How the functions differ: whether x is pairs, whether the result is, whether they are inverse.
local KINDS = {
  fft = {from_pairs = true, to_pairs = true, back = false},
  ifft = {from_pairs = true, to_pairs = true, back = true},
  rfft = {from_pairs = false, to_pairs = true, back = false},
  irfft = {from_pairs = true, to_pairs = false, back = true},
}

local LONG = 16384          -- elements of a line, above which few lie side by side in a cache
-- Transforms one dim of x; n: the signal's size, nil for x's size there.
local function along(name, which, x, n, dim, norm)
  local kind = KINDS[which]
  local from_pairs, to_pairs = kind.from_pairs, kind.to_pairs
  if from_pairs then need_pairs(name, 1, x) end
  local dims = M.dim(x) - (from_pairs and 1 or 0)
  if dims == 0 then fail(name, "argument 1 must have a dim to transform, got shape %s", tostring(x.shape)) end
  dim = wrap(name, dim, dims)
  local have = x.shape[dim]
  n = n or which == "irfft" and 2 * (have - 1) or have
  if n < 1 then fail(name, "a transform needs at least 1 element, got %d", n) end
  x = resized(x, which == "irfft" and math.floor(n / 2) + 1 or n, dim)
  local beside = 1                                       -- lines that lie side by side
  for d = dim + 1, dims do beside = beside * x.shape[d] end
  local apart = (beside < 4 or n > LONG) and not modes.now.tracing           -- a trace takes other sizes
  local moved = dim ~= dims and (apart or not core.fourier_takes(x, n, from_pairs ~= to_pairs))
  if moved then x = M.movedim(x, dim, dims) end
  local inner = moved and 0 or dims - dim
  local y
  local scale = scale_of(norm, n, kind.back)
  if which == "rfft" then y = half_of(x, n, scale, inner) elseif which == "irfft" then y = whole_of(x, n, scale, inner)
  else y = sums(x, n, which == "fft" and "forward" or "inverse", scale, inner) end
  return moved and M.movedim(y, M.dim(y) - (to_pairs and 1 or 0), dim) or y
end

-- Computes in float32 or float64: other dtypes are converted to float32 (16-bit results are converted back).
local function floating(x, fn)
  if not M.is_floating_point(x) then return fn(M.float(x)) end
  return lib.widened(x, fn)
end

local function define(which, doc)
  local name = "fft." .. which
  def(name, "x, n:int?, dim:int=-1, " .. NORM, doc, function(x, n, dim, norm)
    return floating(x, function(v) return along(name, which, v, n, dim, norm) end)
  end, SPECTRAL)
end
define("fft", "Fourier transform of pairs along dim, which counts the dims before the pairs'; n: elements, cut or filled up with zeros")
define("ifft", "the inverse of fft.fft: pairs from pairs")
define("rfft", "Fourier transform of real elements along dim: the first n / 2 + 1 pairs, of which the others are conjugates")
define("irfft", "the inverse of fft.rfft: n real elements (2 (m - 1) where nil) of a dim from m pairs")

-- The first half of a signal whose transform is real; and the inverse. The normalization is that of the other direction.
local OTHER = {backward = "forward", forward = "backward", ortho = "ortho"}
def("fft.hfft", "x, n:int?, dim:int=-1, " .. NORM,
  "n real sums (2 (m - 1) where nil) of the m pairs that a signal with conjugates begins with",
  function(x, n, dim, norm)
    need_pairs("fft.hfft", 1, x)
    return floating(x, function(v) return along("fft.hfft", "irfft", F["fft.conj"](v), n, dim, OTHER[norm]) end)
  end, SPECTRAL)
def("fft.ihfft", "x, n:int?, dim:int=-1, " .. NORM, "the inverse of fft.hfft: the first n / 2 + 1 pairs from n real elements",
  function(x, n, dim, norm)
    return floating(x, function(v) return F["fft.conj"](along("fft.ihfft", "rfft", v, n, dim, OTHER[norm])) end)
  end, SPECTRAL)

---- several dims ----
-- The last of dims holds real or half data; it is transformed first in forward direction, and last in inverse direction.
local function over(name, which, x, s, dims, norm)
  local from_pairs = KINDS[which].from_pairs
  if from_pairs then need_pairs(name, 1, x) end
  local count = M.dim(x) - (from_pairs and 1 or 0)
  if s and #s > count then fail(name, "s has %d sizes; argument 1 has %d dims", #s, count) end
  if not dims then
    dims = {}
    for d = s and count - #s + 1 or 1, count do dims[#dims + 1] = d end
  end
  if s and #s ~= #dims then fail(name, "s has %d sizes for %d dims", #s, #dims) end
  local seen = {}
  for i, d in ipairs(dims) do
    dims[i] = wrap(name, d, count)
    if seen[dims[i]] then fail(name, "dim %d is named twice", d) end
    seen[dims[i]] = true
  end
  local last = #dims
  if last == 0 then fail(name, "dims must not be empty") end
  local others = which:find "^i" and "ifft" or "fft"
  local function size(i) return s and s[i] ~= -1 and s[i] or nil end
  if which == "rfft" then x = along(name, "rfft", x, size(last), dims[last], norm) end
  for i = 1, others == which and last or last - 1 do x = along(name, others, x, size(i), dims[i], norm) end
  return which == "irfft" and along(name, "irfft", x, size(last), dims[last], norm) or x
end
for _, which in ipairs {"fft", "ifft", "rfft", "irfft"} do
  local function several(suffix, default, doc)
    local name = "fft." .. which .. suffix
    def(name, "x, s:ints?, dim:ints?, " .. NORM, ("fft.%s over %s, or those named; s: their sizes"):format(which, doc),
      function(x, s, dim, norm)
        return floating(x, function(v) return over(name, which, v, s, dim or default and {unpack(default)}, norm) end)
      end, SPECTRAL)
  end
  several("2", {-2, -1}, "the last two dims")
  several("n", nil, "all dims")
end

for _, suffix in ipairs {"2", "n"} do
  local default, doc = suffix == "2" and {-2, -1} or nil, suffix == "2" and "the last two dims" or "all dims"
  local signature = "x, s:ints?, dim:ints?, " .. NORM
  def("fft.hfft" .. suffix, signature,
    ("fft.hfft over the last of %s, or those named, after fft.fft over the others; s: their sizes"):format(doc),
    function(x, s, dim, norm)
      local name = "fft.hfft" .. suffix
      need_pairs(name, 1, x)
      return floating(x, function(v)
        return over(name, "irfft", F["fft.conj"](v), s, dim or default and {unpack(default)}, OTHER[norm])
      end)
    end, SPECTRAL)
  def("fft.ihfft" .. suffix, signature, ("the inverse of fft.hfft%s"):format(suffix), function(x, s, dim, norm)
    return floating(x, function(v)
      return F["fft.conj"](over("fft.ihfft" .. suffix, "rfft", v, s, dim or default and {unpack(default)}, OTHER[norm]))
    end)
  end, SPECTRAL)
end

---- frequencies ----
local MAKES = "n:int, d:number=1, *, dtype:dtype?, device:device?"
local function frequencies(name, n, d, half, dtype, device)
  if n < 1 then fail(name, "argument 1 must be at least 1, got %d", n) end
  local o = {dtype = "float64", device = device or core.gpu.default_device()}
  local up = ops.range(0, half and math.floor(n / 2) or math.ceil(n / 2) - 1, 1, o)
  if not half and n > 1 then up = ops.cat({up, ops.range(-math.floor(n / 2), -1, 1, o)}, 1) end
  return M.to(up / (n * d), dtype or "float32")
end
def("fft.fftfreq", MAKES, "the frequencies of fft.fft's n results, with d between samples", function(n, d, dtype, device)
  return frequencies("fft.fftfreq", n, d, false, dtype, device)
end, lib.MAKES)
def("fft.rfftfreq", MAKES, "the frequencies of fft.rfft's n / 2 + 1 results, with d between samples", function(n, d, dtype, device)
  return frequencies("fft.rfftfreq", n, d, true, dtype, device)
end, lib.MAKES)
-- The dims to shift must be named for pairs, whose last dim must not be shifted.
local function shifted(name, x, dims, forward)
  local by = {}
  if not dims then
    dims = {}
    for d = 1, M.dim(x) do dims[d] = d end
  end
  for i, d in ipairs(dims) do
    local n = x.shape[wrap(name, d, M.dim(x))]
    by[i] = forward and math.floor(n / 2) or math.ceil(n / 2)
  end
  return M.roll(x, by, dims)
end
def("fft.fftshift", "x, dim:ints?", "frequency 0 in the middle of the dims named, of all where dim is nil", function(x, dim)
  return shifted("fft.fftshift", x, dim, true)
end, SPECTRAL)
def("fft.ifftshift", "x, dim:ints?", "the inverse of fft.fftshift", function(x, dim)
  return shifted("fft.ifftshift", x, dim, false)
end, SPECTRAL)

---- spectra of pieces ----
-- The window, centred in n_fft elements.
local function window_of(name, window, win_length, n_fft, like)
  win_length = win_length or window and M.numel(window) or n_fft
  if win_length < 1 or win_length > n_fft then fail(name, "win_length must be from 1 to n_fft, %d, got %d", n_fft, win_length) end
  if window and (M.dim(window) ~= 1 or M.numel(window) ~= win_length) then
    fail(name, "window has shape %s; it must be a vector of win_length = %d elements", tostring(window.shape), win_length)
  end
  if not window then
    if win_length == n_fft then return nil end
    window = ops.ones({win_length}, {dtype = like.dtype, device = like.device})
  end
  local left = math.floor((n_fft - win_length) / 2)
  return ops.pad_constant(M.to(window, like.dtype), {left, n_fft - win_length - left})
end
local PIECES = "x, n_fft:int, hop_length:int?, win_length:int?, window?, center:bool=true, "
local function steps_of(name, n_fft, hop)
  if n_fft < 1 then fail(name, "n_fft must be at least 1, got %d", n_fft) end
  hop = hop or math.floor(n_fft / 4)
  if hop < 1 then fail(name, "hop_length must be at least 1, got %d", hop) end
  return hop
end

def("stft", PIECES .. "pad_mode:enum(constant,reflect,replicate,circular)=reflect, normalized:bool=false, onesided:bool=true, \z
  return_complex:bool=true",
  "spectra of pieces of n_fft elements, hop_length (n_fft / 4) apart: of (L) or (N, L) real elements pairs (N, n_fft / 2 + 1, pieces, 2)",
  function(x, n_fft, hop, win_length, window, center, pad_mode, normalized, onesided)
    hop = steps_of("stft", n_fft, hop)
    if M.dim(x) ~= 1 and M.dim(x) ~= 2 then fail("stft", "argument 1 must have 1 or 2 dims, got shape %s", tostring(x.shape)) end
    return floating(x, function(v)
      local half = math.floor(n_fft / 2)
      if center then v = M.pad(v, {half, half}, pad_mode) end
      if v.shape[M.dim(v)] < n_fft then fail("stft", "argument 1 of shape %s is shorter than n_fft, %d", tostring(x.shape), n_fft) end
      local pieces = ops.unfold(v, -1, n_fft, hop)
      local w = window_of("stft", window, win_length, n_fft, v)
      if w then pieces = pieces * w end
      local scale = normalized and n_fft ^ -0.5 or 1
      local y = onesided and half_of(pieces, n_fft, scale) or sums(pairs_of(pieces, F.zeros_like(pieces)), n_fft, "forward", scale)
      return M.transpose(y, -3, -2)
    end)
  end, {float32 = true})

def("istft", PIECES .. "normalized:bool=false, onesided:bool=true, length:int?",
  "the elements whose stft is x, pairs (N, n_fft / 2 + 1, pieces, 2), nearest by least squares; length: how many (what the pieces hold)",
  function(x, n_fft, hop, win_length, window, center, normalized, onesided, length)
    hop = steps_of("istft", n_fft, hop)
    need_pairs("istft", 1, x)
    local bins = onesided and math.floor(n_fft / 2) + 1 or n_fft
    if (M.dim(x) ~= 3 and M.dim(x) ~= 4) or x.shape[M.dim(x) - 2] ~= bins or x.shape[M.dim(x) - 1] < 1 then
      fail("istft", "argument 1 has shape %s; it must be (N, %d, pieces, 2), N if several", tostring(x.shape), bins)
    end
    return floating(x, function(z)
      z = ops.slice(M.transpose(z, -3, -2), -2, 1, math.floor(n_fft / 2) + 1)      -- the others are taken to be conjugates
      local y = whole_of(z, n_fft, normalized and n_fft ^ -0.5 or 1 / n_fft)
      local w = window_of("istft", window, win_length, n_fft, y) or ops.ones({n_fft}, {dtype = y.dtype, device = y.device})
      local count = y.shape[M.dim(y) - 1]
      local whole = n_fft + hop * (count - 1)
      local sum = ops.overlap_add(y * w, -1, whole, hop)
      local weight = ops.overlap_add(ops.expand(w * w, {count, n_fft}), -1, whole, hop)
      local first = center and math.floor(n_fft / 2) + 1 or 1
      local last = length and first + length - 1 or center and whole - math.floor(n_fft / 2) or whole
      local there = math.min(last, whole)
      sum, weight = ops.slice(sum, -1, first, there), ops.slice(weight, 1, first, there)
      if lib.looks(weight) and M.numel(weight) > 0 and M.item(ops.amin(weight)) < 1e-11 then
        fail("istft", "the windows don't cover all elements: the sum of their squares is 0 somewhere")
      end
      return ops.pad_constant(sum / weight, {0, last - there})
    end)
  end, {float32 = true})
