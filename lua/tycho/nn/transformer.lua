-- Attention layers: PyTorch's, whose state dicts they load. Sequences are (L, N, E) or, with batch_first, (N, L, E). Masks follow PyTorch:
-- a bool mask is true where attention is forbidden, a float mask is added to the scores.
local core = require "tycho.core"
local fail = require("tycho.options").fail
local ops, M = core.ops, core.methods
local F = require "tycho.nn.functional"
local functional = require "tycho.functional"
local init = require "tycho.nn.init_functions"
local modes = require "tycho.modes"
local module = require "tycho.nn.module"
local attention_weights = require("tycho.functional.lib").attention_weights
local lib = require "tycho.nn.layer"
local layer, arguments, whole = lib.layer, lib.arguments, lib.whole
local nn = lib.classes

-- One mask for the attention op (true: attend), from a PyTorch mask (L,S), (N,L,S) or (N h,L,S) and a padding mask (N,S).
local function joined(attn_mask, padding, n, heads, dtype, device, causal, rows, cols)
  local mask = attn_mask
  if mask and mask.dtype == "bool" then mask = ops.logical_not(mask) end
  if causal and not mask then mask = ops.tril(ops.ones(rows, cols, {dtype = "bool", device = device})) end
  if mask and M.dim(mask) == 3 then
    mask = mask.shape[1] == n and n ~= n * heads and M.unsqueeze(mask, 2) or
      M.view(mask, n, heads, mask.shape[2], mask.shape[3])
  end
  if not padding then return mask end
  if M.dim(padding) == 1 then padding = M.unsqueeze(padding, 1) end
  local p = padding.dtype == "bool" and ops.logical_not(padding) or padding
  p = M.view(p, p.shape[1], 1, 1, p.shape[2])
  if not mask then return p end
  if mask.dtype == "bool" and p.dtype == "bool" then return ops.logical_and(mask, p) end
  local function added(x) return x.dtype == "bool" and ops.where(x, ops.zeros({}, {dtype = dtype, device = device}), -math.huge) or x end
  return added(mask) + added(p)
end

-- Checks masks' shapes here, where errors can name them, before they are joined for the ops.
local function check_masks(attn_mask, padding, alone, n, heads, rows, cols)
  for name, mask in pairs {attn_mask = attn_mask, key_padding_mask = padding} do
    if mask.dtype ~= "bool" and not M.is_floating_point(mask) then
      fail("MultiheadAttention: %s must be bool or floating, got %s: bool() makes it bool", name, mask.dtype)
    end
  end
  if attn_mask then
    local d = M.dim(attn_mask)
    local most = d == 3 and attn_mask.shape[1]
    if d < 2 or d > 3 or attn_mask.shape[d - 1] ~= rows or attn_mask.shape[d] ~= cols or (most and most ~= n and most ~= n * heads) then
      fail("MultiheadAttention: attn_mask has shape %s; %dx%d is needed, or %dx%dx%d", tostring(attn_mask.shape), rows, cols, n * heads,
        rows, cols)
    end
  end
  if padding and not (padding.shape[M.dim(padding)] == cols and M.dim(padding) <= 2 and M.numel(padding) == n * cols) then
    fail("MultiheadAttention: key_padding_mask has shape %s; %s%d is needed", tostring(padding.shape), alone and "" or n .. "x", cols)
  end
end

local MHA = layer("MultiheadAttention")
-- MultiheadAttention(embed_dim, num_heads, dropout=0, bias=true, add_bias_kv=false, add_zero_attn=false, {kdim=, vdim=,
-- batch_first=false}): mha(query, key=query, value=query, key_padding_mask=, need_weights=true, attn_mask=, average_attn_weights=true,
-- is_causal=false), by place or by name in a last table, gives the output (L, N, E), or (N, L, E) with batch_first, and the weights:
-- (N, L, S), the mean over heads, or (N, heads, L, S). need_weights = false is faster, and gives no weights. add_bias_kv: one
-- additional key and value, learned; add_zero_attn: one additional pair, of zeros. A bool mask is true where attention is forbidden,
-- a float mask is added to the scores.
function MHA:init(...)
  local o = arguments("MultiheadAttention",
    "embed_dim, num_heads, dropout=0, bias=true, add_bias_kv=false, add_zero_attn=false, kdim=nil, vdim=nil, batch_first=false", ...)
  local embed_dim, heads = whole("MultiheadAttention", "embed_dim", o.embed_dim), whole("MultiheadAttention", "num_heads", o.num_heads)
  self.batch_first = o.batch_first
  self.embed_dim, self.num_heads, self.head_dim = embed_dim, heads, embed_dim / heads
  self.dropout = lib.number("MultiheadAttention", "dropout", o.dropout, 0)
  if embed_dim % heads ~= 0 then fail("MultiheadAttention: num_heads %d must divide embed_dim %d", heads, embed_dim) end
  local kdim, vdim = o.kdim or embed_dim, o.vdim or embed_dim
  self._same = kdim == embed_dim and vdim == embed_dim
  local function matrix(rows, cols) return module.Parameter(init.xavier_uniform_(ops.empty(rows, cols))) end
  if self._same then self.in_proj_weight = matrix(3 * embed_dim, embed_dim)
  else
    self.q_proj_weight = matrix(embed_dim, embed_dim)
    self.k_proj_weight = matrix(embed_dim, kdim)
    self.v_proj_weight = matrix(embed_dim, vdim)
  end
  if o.bias then self.in_proj_bias = module.Parameter(ops.zeros(3 * embed_dim)) end
  if o.add_bias_kv then                      -- before out_proj: optimizers' states go by PyTorch's order
    self.bias_k = module.Parameter(init.xavier_normal_(ops.empty(1, 1, embed_dim)))
    self.bias_v = module.Parameter(init.xavier_normal_(ops.empty(1, 1, embed_dim)))
  end
  self.out_proj = nn.Linear(embed_dim, embed_dim, {bias = o.bias})
  if o.bias then init.zeros_(self.out_proj.bias) end
  self.add_zero_attn = o.add_zero_attn
end
-- query, key and value in (N, L, E), projected.
local function projected(self, query, key, value)
  local b = self.in_proj_bias
  if self._same and rawequal(query, key) and rawequal(key, value) then
    return unpack(M.chunk(ops.linear(query, self.in_proj_weight, b), 3, -1))
  end
  local w = self._same and M.chunk(self.in_proj_weight, 3, 1) or {self.q_proj_weight, self.k_proj_weight, self.v_proj_weight}
  local c = b and M.chunk(b, 3, 1) or {}
  return ops.linear(query, w[1], c[1]), ops.linear(key, w[2], c[2]), ops.linear(value, w[3], c[3])
end
function MHA:forward(...)
  local o = arguments("MultiheadAttention", "query, key=nil, value=nil, key_padding_mask=nil, need_weights=true, attn_mask=nil, \z
    average_attn_weights=true, is_causal=false", ...)
  if type(o.query) == "table" and o.query.query then     -- arguments by name are the only one
    fail("MultiheadAttention: argument 1 is a table with names; no other argument may follow it, got %s", lib.shown((select(-1, ...))))
  end
  for _, name in ipairs {"query", "key", "value", "key_padding_mask", "attn_mask"} do
    if o[name] and not core.is_tensor(o[name]) then fail("MultiheadAttention: %s must be a tensor, got %s", name, lib.shown(o[name])) end
  end
  local query = o.query
  local key = o.key or query
  local value = o.value or key
  local alone = M.dim(query) == 2
  local swapped = not alone and not self.batch_first
  if not alone and (M.dim(query) ~= 3 or query.shape[3] ~= self.embed_dim) then
    fail("MultiheadAttention: the query has shape %s; (%s, %d) is needed", tostring(query.shape),
      swapped and "L, N" or "N, L", self.embed_dim)
  end
  if alone or swapped then               -- to (N, L, E); arguments that are one tensor stay one
    local function turned(x) return alone and M.unsqueeze(x, 1) or M.transpose(x, 1, 2) end
    local k_is_q, v_is_k = rawequal(key, query), rawequal(value, key)
    query = turned(query)
    key = k_is_q and query or turned(key)
    value = v_is_k and key or turned(value)
  end
  local n, E, h = query.shape[1], self.embed_dim, self.num_heads
  if key.shape[1] ~= n or value.shape[1] ~= n or value.shape[2] ~= key.shape[2] then
    fail("MultiheadAttention: query, key and value must have equal batch sizes, got %d, %d, %d, and as many keys as values, got %d, %d", n,
      key.shape[1], value.shape[1], key.shape[2], value.shape[2])
  end
  local q, k, v = projected(self, query, key, value)
  local S = k.shape[2]
  check_masks(o.attn_mask or nil, o.key_padding_mask or nil, alone, n, h, query.shape[2], S)
  if self.bias_k then
    k = ops.cat({k, M.to(ops.expand(self.bias_k, n, 1, E), k.dtype)}, 2)
    v = ops.cat({v, M.to(ops.expand(self.bias_v, n, 1, E), v.dtype)}, 2)
  end
  if self.add_zero_attn then k, v = ops.pad_constant(k, {0, 0, 0, 1}), ops.pad_constant(v, {0, 0, 0, 1}) end
  local more = k.shape[2] - S                                 -- additional keys, which all positions attend to
  local function heads(x) return ops.permute(M.view(x, n, x.shape[2], h, E / h), {1, 3, 2, 4}) end
  q, k, v = heads(q), heads(k), heads(v)
  -- is_causal by itself needs no mask in memory
  local causal = o.is_causal and not o.attn_mask and not o.key_padding_mask and not o.need_weights and more == 0
  local mask = joined(o.attn_mask or nil, o.key_padding_mask or nil, n, h, q.dtype, q.device,
    o.is_causal and not causal, q.shape[3], S)
  if mask and more > 0 then mask = ops.pad_constant(mask, {0, more}, {value = mask.dtype == "bool" and 1 or 0}) end
  local y, weights
  if o.need_weights then
    local s = ops.matmul(q, M.transpose(k, -2, -1)) * (1 / math.sqrt(E / h))
    if mask then s = mask.dtype == "bool" and ops.masked_fill(s, ops.logical_not(mask), -math.huge) or s + mask end
    local p = F.dropout(attention_weights(s), self.dropout, {training = self.training})
    weights = o.average_attn_weights and ops.mean(p, 2) or p
    y = ops.matmul(p, v)
  else
    y = F.scaled_dot_product_attention(q, k, v, mask, self.training and self.dropout or 0, causal)
  end
  y = self.out_proj(M.reshape(ops.permute(y, {1, 3, 2, 4}), n, q.shape[3], E))
  if alone then y, weights = M.squeeze(y, 1), weights and M.squeeze(weights, 1)
  elseif swapped then y = M.transpose(y, 1, 2) end
  return y, weights
end
function MHA:extra_repr() return ("embed_dim=%d, num_heads=%d"):format(self.embed_dim, self.num_heads) end

local LAYER = "d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=relu, layer_norm_eps=1e-5, \z
  batch_first=false, norm_first=false, bias=true"
local function feed_forward(self, o, norms)
  local d = o.d_model
  whole(self._name, "dim_feedforward", o.dim_feedforward)
  self.linear1 = nn.Linear(d, o.dim_feedforward, {bias = o.bias})
  self.dropout = nn.Dropout(o.dropout)
  self.linear2 = nn.Linear(o.dim_feedforward, d, {bias = o.bias})
  for i = 1, norms do self["norm" .. i] = nn.LayerNorm(d, {eps = o.layer_norm_eps, bias = o.bias}) end
  for i = 1, norms do self["dropout" .. i] = nn.Dropout(o.dropout) end
  self.norm_first = o.norm_first
  self.activation = modes.callable(o.activation) and o.activation or type(o.activation) == "string" and
    (rawget(F, o.activation) or functional.find(o.activation) and functional.nn[o.activation] and F[o.activation])
  if not self.activation then lib.fail("%s: there is no activation %s", self._name, lib.shown(o.activation)) end
end
local function fed(self, x) return self.linear2(self.dropout(self.activation(self.linear1(x)))) end

local EncoderLayer = layer("TransformerEncoderLayer")
-- TransformerEncoderLayer(d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5, batch_first=false,
-- norm_first=false, bias=true): layer(x, src_mask=, src_key_padding_mask=, is_causal=false).
function EncoderLayer:init(...)
  local o = arguments("TransformerEncoderLayer", LAYER, ...)
  self.self_attn = nn.MultiheadAttention(o.d_model, o.nhead, {dropout = o.dropout, bias = o.bias, batch_first = o.batch_first})
  feed_forward(self, o, 2)
end
function EncoderLayer:forward(x, ...)
  local o = arguments("TransformerEncoderLayer", "src_mask=nil, src_key_padding_mask=nil, is_causal=false", ...)
  local function attend(y)
    return self.dropout1((self.self_attn(y, {attn_mask = o.src_mask, key_padding_mask = o.src_key_padding_mask,
      is_causal = o.is_causal, need_weights = false})))
  end
  if self.norm_first then
    x = x + attend(self.norm1(x))
    return x + self.dropout2(fed(self, self.norm2(x)))
  end
  x = self.norm1(x + attend(x))
  return self.norm2(x + self.dropout2(fed(self, x)))
end

local DecoderLayer = layer("TransformerDecoderLayer")
-- TransformerDecoderLayer(d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5, batch_first=false,
-- norm_first=false, bias=true): layer(x, memory, tgt_mask=, memory_mask=, tgt_key_padding_mask=, memory_key_padding_mask=,
-- tgt_is_causal=false, memory_is_causal=false).
function DecoderLayer:init(...)
  local o = arguments("TransformerDecoderLayer", LAYER, ...)
  self.self_attn = nn.MultiheadAttention(o.d_model, o.nhead, {dropout = o.dropout, bias = o.bias, batch_first = o.batch_first})
  self.multihead_attn = nn.MultiheadAttention(o.d_model, o.nhead, {dropout = o.dropout, bias = o.bias, batch_first = o.batch_first})
  feed_forward(self, o, 3)
end
local TARGET = "tgt_mask=nil, memory_mask=nil, tgt_key_padding_mask=nil, memory_key_padding_mask=nil, \z
  tgt_is_causal=false, memory_is_causal=false"
function DecoderLayer:forward(x, memory, ...)
  local o = arguments("TransformerDecoderLayer", TARGET, ...)
  if not core.is_tensor(memory) then
    fail("TransformerDecoderLayer: argument 2 (memory) must be a tensor, the encoder's result, got %s", lib.shown(memory))
  end
  local function attend(y)
    return self.dropout1((self.self_attn(y, {attn_mask = o.tgt_mask, key_padding_mask = o.tgt_key_padding_mask,
      is_causal = o.tgt_is_causal, need_weights = false})))
  end
  local function cross(y)
    return self.dropout2((self.multihead_attn(y, memory, memory,
      {attn_mask = o.memory_mask, key_padding_mask = o.memory_key_padding_mask, is_causal = o.memory_is_causal, need_weights = false})))
  end
  if self.norm_first then
    x = x + attend(self.norm1(x))
    x = x + cross(self.norm2(x))
    return x + self.dropout3(fed(self, self.norm3(x)))
  end
  x = self.norm1(x + attend(x))
  x = self.norm2(x + cross(x))
  return self.norm3(x + self.dropout3(fed(self, x)))
end

for _, name in ipairs {"TransformerEncoder", "TransformerDecoder"} do
  local Stack = layer(name)
  Stack._library = nil                     -- its layer may be a program's own
  local one = name == "TransformerEncoder" and "encoder_layer" or "decoder_layer"
  -- Copies of a layer one after another, then norm, if given. It is called as the layer is. The options enable_nested_tensor and mask_check
  -- are accepted without effect.
  function Stack:init(...)
    -- the encoder's last two are about PyTorch's skipping of padding
    local theirs = one == "encoder_layer" and ", enable_nested_tensor=true, mask_check=true" or ""
    local o = arguments(name, one .. ", num_layers, norm=nil" .. theirs, ...)
    if not module.is_module(o[one]) then fail(name .. ": argument 1 must be a layer") end
    if o.norm and not module.is_module(o.norm) then fail(name .. ": norm must be a module, got " .. type(o.norm)) end
    self.layers = nn.ModuleList()
    for _ = 1, whole(name, "num_layers", o.num_layers) do self.layers:append(o[one]:clone()) end
    if o.norm then self.norm = o.norm end
  end
  function Stack:forward(x, ...)
    local n = select("#", ...)
    local last = n > 0 and select(n, ...)
    if type(last) == "table" and not core.is_tensor(last) and last.mask ~= nil and self.layers[1]._name == "TransformerEncoderLayer" then
      if last.src_mask ~= nil then lib.fail("%s: argument 'mask' is given twice, as src_mask too", name) end
      local o = {src_mask = last.mask}
      for k, v in pairs(last) do if k ~= "mask" then o[k] = v end end
      for _, l in ipairs(self.layers) do x = l(x, o) end
    else
      for _, l in ipairs(self.layers) do x = l(x, ...) end
    end
    return self.norm and self.norm(x) or x
  end
end

local Transformer = layer("Transformer")
Transformer._library = nil                 -- as these
-- Transformer(d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation="relu",
-- custom_encoder=, custom_decoder=, layer_norm_eps=1e-5, batch_first=false, norm_first=false, bias=true): model(src, tgt, {src_mask=,
-- tgt_mask=, memory_mask=, src_key_padding_mask=, tgt_key_padding_mask=, memory_key_padding_mask=, src_is_causal=, tgt_is_causal=,
-- memory_is_causal=}).
function Transformer:init(...)
  local o = arguments("Transformer", "d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, \z
    dim_feedforward=2048, dropout=0.1, activation=relu, custom_encoder=nil, custom_decoder=nil, " ..
    "layer_norm_eps=1e-5, batch_first=false, norm_first=false, bias=true", ...)
  local shared = {dim_feedforward = o.dim_feedforward, dropout = o.dropout, activation = o.activation,
    layer_norm_eps = o.layer_norm_eps, batch_first = o.batch_first, norm_first = o.norm_first, bias = o.bias}
  local function norm() return nn.LayerNorm(o.d_model, {eps = o.layer_norm_eps, bias = o.bias}) end
  for _, k in ipairs {"custom_encoder", "custom_decoder"} do
    if o[k] ~= nil and not modes.callable(o[k]) then lib.fail("Transformer: %s must be a module, got %s", k, lib.shown(o[k])) end
  end
  self.encoder = o.custom_encoder or
    nn.TransformerEncoder(nn.TransformerEncoderLayer(o.d_model, o.nhead, shared), o.num_encoder_layers, norm())
  self.decoder = o.custom_decoder or
    nn.TransformerDecoder(nn.TransformerDecoderLayer(o.d_model, o.nhead, shared), o.num_decoder_layers, norm())
  self.d_model, self.nhead, self.batch_first = o.d_model, o.nhead, o.batch_first
  for _, p in ipairs(self:parameters()) do
    if M.dim(p) > 1 then init.xavier_uniform_(p) end
  end
end
function Transformer:forward(src, tgt, ...)
  local o = arguments("Transformer", "src_mask=nil, tgt_mask=nil, memory_mask=nil, src_key_padding_mask=nil, \z
    tgt_key_padding_mask=nil, memory_key_padding_mask=nil, src_is_causal=false, tgt_is_causal=false, memory_is_causal=false", ...)
  for name, x in pairs {src = src or false, tgt = tgt or false} do
    if not core.is_tensor(x) then lib.fail("Transformer: %s must be a tensor, got %s", name, x and lib.shown(x) or "nil") end
  end
  local n, batch = M.dim(src), self.batch_first and 1 or 2
  if n < 2 or n > 3 or M.dim(tgt) ~= n or src.shape[n] ~= self.d_model or tgt.shape[n] ~= self.d_model then
    lib.fail("Transformer: src and tgt have shapes %s and %s; both need 2 dims, or 3 with batches, of which the last is %d",
      tostring(src.shape), tostring(tgt.shape), self.d_model)
  end
  if n == 3 and src.shape[batch] ~= tgt.shape[batch] then
    lib.fail("Transformer: src and tgt have shapes %s and %s; dim %d, the batch, must be equal", tostring(src.shape),
      tostring(tgt.shape), batch)
  end
  local memory = self.encoder(src, {src_mask = o.src_mask, src_key_padding_mask = o.src_key_padding_mask, is_causal = o.src_is_causal})
  return self.decoder(tgt, memory, {tgt_mask = o.tgt_mask, memory_mask = o.memory_mask, tgt_key_padding_mask = o.tgt_key_padding_mask,
    memory_key_padding_mask = o.memory_key_padding_mask, tgt_is_causal = o.tgt_is_causal,
    memory_is_causal = o.memory_is_causal})
end
-- Transformer.generate_square_subsequent_mask(n, {dtype=, device=}): n x n, 0 and above the diagonal -inf: each position sees itself and
-- those before it. Called on the class, or on a model.
function Transformer.generate_square_subsequent_mask(model, n, o)
  if not module.is_module(model) then n, o = model, n end
  n = whole("generate_square_subsequent_mask", "the size", n)
  return ops.triu(ops.full({n, n}, -math.huge,
    lib.options("generate_square_subsequent_mask", o, {dtype = "float32", device = core.gpu.default_device()})), 1)
end
