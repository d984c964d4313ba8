-- Swin transformers (Liu et al. 2021) and their second version (Liu et al. 2022): attention within windows, which every second block
-- shifts.
--
-- Idea: features are (N, H, W, C) throughout. Invariant: the buffer relative_position_index counts from 0, as files have it.
local options = require "tycho.options"
local tycho = require "tycho"
local nn = tycho.nn
local V = require("tycho.vision").ops
local family = require "tycho.vision.models.family"
local ops = require("tycho.core").ops
local models = family.models
local F = nn.functional

-- For each pair of a window's places, which of the (2h - 1) * (2w - 1) differences between places it has, from 0.
local function differences(h, w)
  local at = {}
  for i = 0, h - 1 do for j = 0, w - 1 do
    for k = 0, h - 1 do for l = 0, w - 1 do at[#at + 1] = (i - k + h - 1) * (2 * w - 1) + j - l + w - 1 end end
  end end
  return tycho.tensor(at, {dtype = "int64"})
end

local Attention = nn.Module:extend("ShiftedWindowAttention")
function Attention:init(n, heads, window, shifts, o)
  self.window, self.shifts, self.heads = window, shifts, heads
  self.dropout, self.attention_dropout = o.dropout, o.attention_dropout
  self:make_members(n, heads, window)
  self:register_buffer("relative_position_index", differences(window[1], window[2]))
end
function Attention:make_members(n, heads, window)
  local count = (2 * window[1] - 1) * (2 * window[2] - 1)
  self.relative_position_bias_table = nn.Parameter(nn.init.trunc_normal_(ops.zeros {count, heads}, {std = 0.02}))
  self.qkv = nn.Linear(n, 3 * n)
  self.proj = nn.Linear(n, n)
end
-- The bias of each difference between places, for each head.
function Attention:bias_table() return self.relative_position_bias_table end
-- The logits of attention, before biases: q and k are (windows, heads, places, C / heads).
function Attention:logits(q, k) return ops.matmul(q * q.shape[4] ^ -0.5, k:transpose(3, 4)) end
function Attention:qkv_bias() return self.qkv.bias end

-- (N, H, W, C), H and W multiples of the window's h and w, as windows (N * count, h * w, C); and back.
local function windows(x, h, w)
  local n, H, W, c = unpack(x.shape)
  return x:reshape(n, H / h, h, W / w, w, c):permute(1, 2, 4, 3, 5, 6):reshape(n * H / h * W / w, h * w, c)
end
local function whole(x, n, H, W, h, w)
  return x:reshape(n, H / h, W / w, h, w, -1):permute(1, 2, 4, 3, 5, 6):reshape(n, H, W, -1)
end
-- Of places that came into one window from opposite borders -100, else 0: (windows, h * w, h * w).
local function apart(H, W, h, w, down, right, x)
  local function parts(size, window, shift)
    local at = ops.range(1, size, 1, {device = x.device})
    return ops.gt(at, size - window):float() + ops.gt(at, size - shift):float()
  end
  local region = parts(H, h, down):unsqueeze(2) * 3 + parts(W, w, right)
  region = windows(region:view(1, H, W, 1), h, w):squeeze(3)
  return ops.ne(region:unsqueeze(2), region:unsqueeze(3)):to(x.dtype) * -100
end

function Attention:forward(input)
  local n, H0, W0, c = unpack(input.shape)
  local h, w, heads = self.window[1], self.window[2], self.heads
  local x = F.pad(input, {0, 0, 0, -W0 % w, 0, -H0 % h})
  local H, W = x.shape[2], x.shape[3]
  local down, right = h < H and self.shifts[1] or 0, w < W and self.shifts[2] or 0   -- one window has nothing to shift
  if down + right > 0 then x = x:roll({-down, -right}, {2, 3}) end
  x = windows(x, h, w)
  local places, count = h * w, x.shape[1]
  local qkv = F.linear(x, self.qkv.weight, self:qkv_bias()):reshape(count, places, 3, heads, c / heads):permute(3, 1, 4, 2, 5)
  local at = self.relative_position_index + 1
  local bias = self:bias_table():index_select(1, at):view(places, places, heads):permute(3, 1, 2)
  local logits = self:logits(qkv[1], qkv[2]) + bias
  if down + right > 0 then
    local mask = apart(H, W, h, w, down, right, logits):unsqueeze(2)
    logits = (logits:view(n, count / n, heads, places, places) + mask):view(count, heads, places, places)
  end
  local weights = F.dropout(logits:softmax(4), self.attention_dropout, self.training)
  x = ops.matmul(weights, qkv[3]):transpose(2, 3):reshape(count, places, c)
  x = whole(F.dropout(self.proj(x), self.dropout, self.training), n, H, W, h, w)
  if down + right > 0 then x = x:roll({down, right}, {2, 3}) end
  return x:slice(2, 1, H0):slice(3, 1, W0):contiguous()
end

-- Version 2: logits are cosines with a learned scale; biases come from a network that reads the logarithms of differences; keys have no
-- bias.
local Attention2 = Attention:extend("ShiftedWindowAttentionV2")
function Attention2:make_members(n, heads, window)
  self.logit_scale = nn.Parameter(ops.full({heads, 1, 1}, math.log(10)))
  self.qkv = nn.Linear(n, 3 * n)
  nn.init.zeros_(self.qkv.bias:detach():narrow(1, n + 1, n))
  self.proj = nn.Linear(n, n)
  local list = {}
  local function log(d, size)
    local v = 8 * d / (size - 1)
    return (v < 0 and -1 or 1) * math.log(math.abs(v) + 1) / math.log(2) / 3
  end
  for i = 1 - window[1], window[1] - 1 do
    list[#list + 1] = {}
    for j = 1 - window[2], window[2] - 1 do table.insert(list[#list], {log(i, window[1]), log(j, window[2])}) end
  end
  self:register_buffer("relative_coords_table", tycho.tensor {list})
  self.cpb_mlp = nn.Sequential(nn.Linear(2, 512), nn.ReLU(), nn.Linear(512, heads, {bias = false}))
end
function Attention2:bias_table() return self.cpb_mlp(self.relative_coords_table):view(-1, self.heads):sigmoid() * 16 end
function Attention2:logits(q, k)
  return ops.matmul(F.normalize(q, {dim = -1}), F.normalize(k, {dim = -1}):transpose(3, 4)) *
    self.logit_scale:clamp(nil, math.log(100)):exp()
end
function Attention2:qkv_bias()
  local parts = self.qkv.bias:chunk(3)
  return ops.cat {parts[1], ops.fill(parts[2], 0), parts[3]}
end

local Block = nn.Module:extend("SwinTransformerBlock")
function Block:init(n, heads, window, shifts, drop, o)
  self.norm1 = nn.LayerNorm(n)
  self.attn = (o.version == 2 and Attention2 or Attention)(n, heads, window, shifts, o)
  self.stochastic_depth = V.StochasticDepth(drop, "row")
  self.norm2 = nn.LayerNorm(n)
  self.mlp = V.MLP(n, {n * o.mlp_ratio, n}, {activation_layer = nn.GELU, dropout = o.dropout})
  self.norms_last = o.version == 2
end
function Block:forward(x)
  local function branch(norm, f, y)
    if self.norms_last then y = norm(f(y)) else y = f(norm(y)) end
    return self.stochastic_depth(y)
  end
  x = x + branch(self.norm1, self.attn, x)
  return x + branch(self.norm2, self.mlp, x)
end

local Merging = nn.Module:extend("PatchMerging")
-- Half the size, twice the channels: four pixels become one.
function Merging:init(n, norms_last)
  self.norms_last = norms_last
  self.reduction = nn.Linear(4 * n, 2 * n, {bias = false})
  self.norm = nn.LayerNorm(norms_last and 2 * n or 4 * n)
end
function Merging:forward(x)
  x = F.pad(x, {0, 0, 0, x.shape[3] % 2, 0, x.shape[2] % 2})
  local n, H, W, c = unpack(x.shape)
  x = x:view(n, H / 2, 2, W / 2, 2, c):permute(1, 2, 4, 5, 3, 6):reshape(n, H / 2, W / 2, 4 * c)
  if self.norms_last then return self.norm(self.reduction(x)) end
  return self.reduction(self.norm(x))
end

local SwinTransformer = nn.Module:extend("SwinTransformer")
models.SwinTransformer = SwinTransformer
-- SwinTransformer(patch_size, embed_dim, depths, num_heads, window_size, mlp_ratio=4, dropout=0, attention_dropout=0,
-- stochastic_depth_prob=0.1, num_classes=1000, version=1): pictures (N, 3, H, W) give (N, num_classes). patch_size and window_size are
-- {height, width}, of pixels and of patches; depths, num_heads: the blocks and the heads of each stage, between which sizes are halved.
-- stochastic_depth_prob: that of the last block's being left out.
function SwinTransformer:init(...)
  local o = options.arguments("SwinTransformer", "patch_size, embed_dim, depths, num_heads, window_size, mlp_ratio=4, dropout=0, \z
    attention_dropout=0, stochastic_depth_prob=0.1, num_classes=1000, version=1", ...)
  local n, window, total, done = o.embed_dim, o.window_size, 0, 0
  local features = {nn.Sequential(nn.Conv2d(3, n, o.patch_size, {stride = o.patch_size}), V.Permute {1, 3, 4, 2}, nn.LayerNorm(n))}
  for _, depth in ipairs(o.depths) do total = total + depth end
  for stage, depth in ipairs(o.depths) do
    local blocks = {}
    for i = 1, depth do
      local shifts = i % 2 == 1 and {0, 0} or {math.floor(window[1] / 2), math.floor(window[2] / 2)}
      blocks[i] = Block(n, o.num_heads[stage], window, shifts, o.stochastic_depth_prob * done / math.max(1, total - 1), o)
      done = done + 1
    end
    features[#features + 1] = nn.Sequential(blocks)
    if stage < #o.depths then
      features[#features + 1] = Merging(n, o.version == 2)
      n = 2 * n
    end
  end
  self.features = nn.Sequential(features)
  self.norm = nn.LayerNorm(n)
  self.head = nn.Linear(n, o.num_classes)
  family.first_values(self, {Linear = family.truncated(0.02)})
end
function SwinTransformer:forward(x) return self.head(self.norm(self.features(x)):mean({2, 3})) end

for name, s in pairs {t = {96, 6, {3, 6, 12, 24}, 0.2}, s = {96, 18, {3, 6, 12, 24}, 0.3}, b = {128, 18, {4, 8, 16, 32}, 0.5}} do
  for version = 1, 2 do
    local side = 6 + version
    family.network((version == 2 and "swin_v2_" or "swin_") .. name, SwinTransformer, {patch_size = {4, 4}, embed_dim = s[1],
      depths = {2, 2, s[2], 2}, num_heads = s[3], window_size = {side, side}, stochastic_depth_prob = s[4], version = version})
  end
end
