-- A language model of characters: a transformer of four layers that reads a text file and then writes some of its own.
--
--   luajit examples/transformer.lua FILE [--steps 300] [--batch 16] [--length 64] [--width 96] [--write 200] [--threads N]
--
-- or, as a module: local model = require "examples.transformer" {tokens = 65, width = 96, heads = 4, layers = 4, length = 64}
-- Names are those of PyTorch's nn.TransformerEncoder between two nn.Embedding and an nn.Linear.
local tycho = require "tycho"
local nn = tycho.nn

local Model = nn.Module:extend("Transformer")
function Model:init(o)
  local w = o.width
  self.length = o.length
  self.token, self.position = nn.Embedding(o.tokens, w), nn.Embedding(o.length, w)
  local layer = nn.TransformerEncoderLayer(w, o.heads or 4, {dim_feedforward = 4 * w, dropout = o.dropout or 0, activation = "gelu", norm_first = true})
  self.encoder = nn.TransformerEncoder(layer, o.layers or 4, nn.LayerNorm(w))
  self.head = nn.Linear(w, o.tokens)
end
-- ids (N, L) -> scores of the next token (N, L, tokens)
function Model:forward(ids)
  local x = self.token(ids) + self.position(tycho.range(1, ids:size(2), 1, {dtype = "int64"}))
  return self.head(self.encoder(x, {is_causal = true}))
end

-- n tokens more, drawn from the model's probabilities.
function Model:write(ids, n)
  return tycho.no_grad(function()
    for _ = 1, n do
      local last = ids[{ {}, {-self.length, -1} }]
      local p = self(last):select(2, -1):softmax(2)
      ids = tycho.cat({ids, p:multinomial(1)}, 2)
    end
    return ids
  end)
end

local function new(o) return Model(o) end
if not (arg and arg[0] and arg[0]:match("transformer%.lua$")) then return new end

local options, file = {steps = 300, batch = 16, length = 64, width = 96, write = 200, threads = 0}, nil
local i = 1
while arg[i] do
  local name = arg[i]:match("^%-%-(.+)$")
  if name then
    local value = tonumber(arg[i + 1])
    if options[name] == nil or not value then io.stderr:write("unknown argument or no number: " .. arg[i] .. "\n"); os.exit(2) end
    options[name], i = value, i + 2
  else file, i = arg[i], i + 1 end
end
local source = file and io.open(file, "rb")
if not source then io.stderr:write("usage: luajit examples/transformer.lua FILE [--steps 300] ...\n"); os.exit(2) end
local text = source:read("*a")
source:close()
if options.threads > 0 then tycho.set_num_threads(options.threads) end

-- characters as ids from 1
local ids, characters, data = {}, {}, {}
for c in text:gmatch(".") do
  if not ids[c] then
    characters[#characters + 1] = c
    ids[c] = #characters
  end
  data[#data + 1] = ids[c]
end
if #data < 2 * options.length then io.stderr:write("the file is too short\n"); os.exit(2) end
data = tycho.tensor(data, {dtype = "int64"})

tycho.manual_seed(1)
local model = new {tokens = #characters, width = options.width, length = options.length}
local optimizer = tycho.optim.AdamW(model:parameters(), {lr = 3e-3, weight_decay = 0.1})
local schedule = tycho.optim.lr_scheduler.OneCycleLR(optimizer, {max_lr = 3e-3, total_steps = options.steps, pct_start = 0.1})
local windows = data:unfold(1, options.length + 1, 1)      -- every stretch of length + 1 characters, without a copy
local begin, mean = os.time(), nil
for step = 1, options.steps do
  local batch = windows[tycho.randint(1, windows:size(1), {options.batch})]
  local out = model(batch[{ {}, {1, -2} }])
  local loss = tycho.cross_entropy(out:flatten(1, 2), batch[{ {}, {2, -1} }]:flatten())
  optimizer:zero_grad()
  loss:backward()
  nn.utils.clip_grad_norm_(model:parameters(), 1)
  optimizer:step()
  schedule:step()
  mean = mean and mean * 0.95 + loss:item() * 0.05 or loss:item()
  if step % 50 == 0 or step == options.steps then
    io.stderr:write(("step %d: loss %.3f, %d characters/s\n"):format(step, mean, step * options.batch * options.length / math.max(os.time() - begin, 1)))
  end
end
model:eval()
local written = {}
for k, id in ipairs(model:write(data[{ {1, 8} }]:unsqueeze(1), options.write)[1]:totable()) do written[k] = characters[id] end
print(table.concat(written))
