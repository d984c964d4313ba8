-- nn.attention: which ways scaled_dot_product_attention may take; attention whose scores and masks a program computes.
--
-- Idea: the ways are switches of the whole process, as tycho.backends.cuda has them; sdpa_kernel sets them for the length of a call. A
-- program's function gets all scores at once, and their places as tensors that broadcast: no op has to know such functions.
local core = require "tycho.core"
local modes = require "tycho.modes"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local fail = options.fail
local ops, T = core.ops, core.methods

local M = {}
-- The ways. FLASH_ATTENTION and EFFICIENT_ATTENTION are both the library's own fused op, which is the CPU's too; CUDNN_ATTENTION is
-- cuDNN's, which takes what it can on a GPU; MATH is written out in plain ops: its memory grows with the number of scores, and it has
-- derivatives of any order, with dropout too.
M.SDPBackend = options.told({FLASH_ATTENTION = "flash", EFFICIENT_ATTENTION = "mem_efficient", CUDNN_ATTENTION = "cudnn", MATH = "math"},
  "SDPBackend")

-- sdpa_kernel(backends, fn, ...): calls fn(...) with these ways of attention alone, and gives its results. backends: one of SDPBackend, or
-- a list. What cuDNN doesn't take goes by the library's own op, so CUDNN_ATTENTION alone allows that too; with MATH, all goes by MATH.
function M.sdpa_kernel(backends, fn, ...)
  local list = type(backends) == "table" and backends or {backends}
  if not modes.callable(fn) then fail("sdpa_kernel: argument 2 must be a function, got %s", options.shown(fn)) end
  local allowed, before = {}, {}
  for _, way in pairs(M.SDPBackend) do allowed[way], before[way] = false, core.gpu.flag(way .. "_sdp") end
  for i = 1, math.max(#list, 1) do
    if allowed[list[i]] == nil then
      fail("sdpa_kernel: argument 1 must be one of SDPBackend, or a list of these, got %s", options.shown(list[i]))
    end
    allowed[list[i]] = true
  end
  allowed.flash = allowed.flash or (allowed.cudnn and not allowed.math)
  return options.meanwhile(function(ways) for way, on in pairs(ways) do core.gpu.flag(way .. "_sdp", on) end end, allowed, before, fn, ...)
end

---- scores and masks by a program's functions ----
-- The numbers 1..n along a dim that `after` others follow.
local function places(n, after, device)
  local shape = {n}
  for i = 1, after do shape[i + 1] = 1 end
  return T.view(ops.range(1, n, 1, {dtype = "int64", device = device}), shape)
end
local function all_places(B, H, Q, K, device)
  return places(B, 3, device), places(H, 2, device), places(Q, 1, device), places(K, 0, device)
end
-- fn's result for all places, at full size. fits: whether its dtype is right; words: what it must be.
local function over_places(who, what, fn, shape, device, fits, words, ...)
  local given, n = {...}, select("#", ...)
  given[n + 1], given[n + 2], given[n + 3], given[n + 4] = all_places(shape[1], shape[2], shape[3], shape[4], device)
  local y = fn(unpack(given, 1, n + 4))
  if not core.is_tensor(y) or not fits(y) then
    fail("%s: %s must give %s, got %s", who, what, words, core.is_tensor(y) and "a tensor of " .. y.dtype or options.shown(y))
  end
  local ok, full = pcall(ops.expand, y, shape)
  if not ok then
    fail("%s: %s gave shape %s; it must broadcast to %s", who, what, tostring(y.shape), table.concat(shape, "x"))
  end
  return full
end

-- create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device="cpu"), create_mask: a bool mask (B, H, Q_LEN, KV_LEN) for flex_attention or
-- scaled_dot_product_attention, true where to attend. mask_mod(b, h, q, k) gives it from the places, from 1: int64 tensors of shapes
-- (B, 1, 1, 1), (H, 1, 1), (Q_LEN, 1) and (KV_LEN), as function(b, h, q, k) return q:ge(k) end. B, H: nil if it is the same for all.
function M.create_block_mask(mask_mod, B, H, Q, K, device)
  local who = "create_block_mask"
  if not modes.callable(mask_mod) then fail("%s: argument 1 (mask_mod) must be a function, got %s", who, options.shown(mask_mod)) end
  local shape = {B or 1, H or 1, Q, K}
  for i, name in ipairs {"B", "H", "Q_LEN", "KV_LEN"} do options.whole(who, name, shape[i], 0) end
  if type(device) == "table" then device = options.fill(who, device, {device = options.none}).device end
  local function fits(y) return y.dtype == "bool" end
  return T.contiguous(over_places(who, "mask_mod", mask_mod, shape, device or "cpu", fits, "a bool tensor"))
end
M.create_mask = M.create_block_mask

-- Joins mask functions by an op.
local function joined(who, op, ...)
  local mods = {...}
  for i = 1, math.max(select("#", ...), 1) do
    if not modes.callable(mods[i]) then fail("%s: argument %d must be a function, got %s", who, i, options.shown(mods[i])) end
  end
  return function(b, h, q, k)
    local all = mods[1](b, h, q, k)
    for i = 2, #mods do all = op(all, mods[i](b, h, q, k)) end
    return all
  end
end
-- and_masks(mask_mod, ...): a mask function that is true where all are.
function M.and_masks(...) return joined("and_masks", ops.logical_and, ...) end
-- or_masks(mask_mod, ...): one that is true where any is.
function M.or_masks(...) return joined("or_masks", ops.logical_or, ...) end

-- flex_attention(query, key, value, score_mod=nil, block_mask=nil, scale=nil, enable_gqa=false, return_lse=false): attention of
-- (B, H, Q, D), (B, H, K, D) and (B, H, K, E), whose scores score_mod(score, b, h, q, k) changes before the softmax: score is (B, H, Q, K),
-- float32 or float64, and the places are as create_block_mask's, so that function(s, b, h, q, k) return s + bias[{h, q - k + n}] end adds
-- a learnt bias. It may use tensors that require gradients. block_mask: a bool mask that broadcasts to the scores. return_lse: also gives
-- the scores' log-sum-exp (B, H, Q). With score_mod its memory grows with the number of scores.
M.flex_attention = core.define("flex_attention",
  "query, key, value, score_mod:any?, block_mask:tensor?, scale:number?, enable_gqa:bool=false, return_lse:bool=false",
  function(q, k, v, score_mod, mask, scale, gqa, return_lse)
    local who = "flex_attention"
    for i, x in ipairs {q, k, v} do
      if T.dim(x) ~= 4 then fail("%s: argument %d must have 4 dims, got shape %s", who, i, tostring(x.shape)) end
    end
    if mask and mask.dtype ~= "bool" then fail("%s: block_mask must be bool, got %s", who, mask.dtype) end
    if score_mod == nil and not return_lse then
      return T.scaled_dot_product_attention(q, k, v, mask, {scale = scale, enable_gqa = gqa})
    end
    if score_mod ~= nil and not modes.callable(score_mod) then
      fail("%s: argument 4 (score_mod) must be a function, got %s", who, options.shown(score_mod))
    end
    local H = q.shape[2]
    if gqa and k.shape[2] ~= H then
      if H % k.shape[2] ~= 0 then fail("%s: %d query heads must be a multiple of the %d key heads", who, H, k.shape[2]) end
      k, v = T.repeat_interleave(k, H / k.shape[2], 2), T.repeat_interleave(v, H / k.shape[2], 2)
    end
    local wide = q.dtype == "float64" and "float64" or "float32"
    local s = modes.autocasting({cpu = false, cuda = false}, ops.matmul, T.to(q, wide) * (scale or 1 / math.sqrt(q.shape[4])),
      T.transpose(T.to(k, wide), 3, 4))
    if score_mod then
      s = over_places(who, "score_mod", score_mod, {unpack(s.shape)}, q.device, T.is_floating_point, "a floating tensor", s)
    end
    if mask then s = ops.masked_fill(s, ops.logical_not(mask), -math.huge) end
    local y = ops.matmul(T.to(lib.attention_weights(s), v.dtype), v)
    if return_lse then return y, T.logsumexp(s, -1) end
    return y
  end)

return options.told(M, "nn.attention")
