-- Vision transformers (Dosovitskiy et al. 2020): patches of pictures as a sequence.
local options = require "tycho.options"
local nn = require "tycho.nn"
local V = require("tycho.vision").ops
local family = require "tycho.vision.models.family"
local ops = require("tycho.core").ops
local models = family.models
local fail = options.fail

local norm = family.with(nn.LayerNorm, {eps = 1e-6})

local Block = nn.Module:extend("EncoderBlock")
function Block:init(o)
  local n = o.hidden_dim
  self.ln_1 = norm(n)
  self.self_attention = nn.MultiheadAttention(n, o.num_heads, {dropout = o.attention_dropout, batch_first = true})
  self.dropout = nn.Dropout(o.dropout)
  self.ln_2 = norm(n)
  self.mlp = V.MLP(n, {o.mlp_dim, n}, {activation_layer = nn.GELU, dropout = o.dropout})
  family.first_values(self.mlp, {Linear = function(m)
    nn.init.xavier_uniform_(m.weight)
    nn.init.normal_(m.bias, 0, 1e-6)
  end})
  self.mlp:register_load_state_dict_pre_hook(function(_, state, prefix)        -- older files: mlp.linear_1.weight
    for old, new in pairs {linear_1 = "0", linear_2 = "3"} do
      for _, kind in ipairs {".weight", ".bias"} do
        local from = prefix .. old .. kind
        if state[from] then state[prefix .. new .. kind], state[from] = state[from], nil end
      end
    end
  end)
end
function Block:forward(x)
  local y = self.ln_1(x)
  x = x + self.dropout((self.self_attention(y, y, y, {need_weights = false})))
  return x + self.mlp(self.ln_2(x))
end

local Encoder = nn.Module:extend("Encoder")
function Encoder:init(o, length)
  self.pos_embedding = nn.Parameter(nn.init.normal_(ops.empty {1, length, o.hidden_dim}, 0, 0.02))
  self.dropout = nn.Dropout(o.dropout)
  local layers = {}
  for i = 1, o.num_layers do layers[i] = {"encoder_layer_" .. i - 1, Block(o)} end
  self.layers = nn.Sequential(layers)
  self.ln = norm(o.hidden_dim)
end
function Encoder:forward(x) return self.ln(self.layers(self.dropout(x + self.pos_embedding))) end

local VisionTransformer = nn.Module:extend("VisionTransformer")
models.VisionTransformer = VisionTransformer
-- VisionTransformer(image_size, patch_size, num_layers, num_heads, hidden_dim, mlp_dim, dropout=0, attention_dropout=0, num_classes=1000,
-- representation_size=nil): pictures (N, 3, image_size, image_size) give (N, num_classes). representation_size: the width of a layer with
-- tanh before the last.
function VisionTransformer:init(...)
  local o = options.arguments("VisionTransformer", "image_size, patch_size, num_layers, num_heads, hidden_dim, mlp_dim, dropout=0, \z
    attention_dropout=0, num_classes=1000, representation_size=nil", ...)
  if o.image_size % o.patch_size ~= 0 then
    fail("VisionTransformer: image_size (%d) must be a multiple of patch_size (%d)", o.image_size, o.patch_size)
  end
  local n, patch = o.hidden_dim, o.patch_size
  self.image_size = o.image_size
  self.class_token = nn.Parameter(ops.zeros {1, 1, n})
  self.conv_proj = nn.Conv2d(3, n, patch, {stride = patch})
  self.encoder = Encoder(o, (o.image_size / patch) ^ 2 + 1)
  local width = o.representation_size
  local heads = {{"head", nn.Linear(width or n, o.num_classes)}}
  if width then heads = {{"pre_logits", nn.Linear(n, width)}, {"act", nn.Tanh()}, heads[1]} end
  self.heads = nn.Sequential(heads)
  family.truncated(math.sqrt(1 / (3 * patch * patch)))(self.conv_proj)
  if width then family.truncated(math.sqrt(1 / n))(self.heads.pre_logits) end
  nn.init.zeros_(self.heads.head.weight)
  nn.init.zeros_(self.heads.head.bias)
end
function VisionTransformer:forward(x)
  if x:dim() ~= 4 or x.shape[3] ~= self.image_size or x.shape[4] ~= self.image_size then
    fail("VisionTransformer: argument 1 must have shape (N, 3, %d, %d), got %s", self.image_size, self.image_size, tostring(x.shape))
  end
  x = self.conv_proj(x):flatten(3):transpose(2, 3)
  x = self.encoder(ops.cat({self.class_token:expand(x.shape[1], -1, -1), x}, 2))
  return self.heads(x:select(2, 1))
end

for name, s in pairs {vit_b_16 = {16, 12, 12, 768}, vit_b_32 = {32, 12, 12, 768}, vit_l_16 = {16, 24, 16, 1024},
    vit_l_32 = {32, 24, 16, 1024}, vit_h_14 = {14, 32, 16, 1280}} do
  family.network(name, VisionTransformer, {image_size = 224, patch_size = s[1], num_layers = s[2], num_heads = s[3], hidden_dim = s[4],
    mlp_dim = 4 * s[4]})
end
