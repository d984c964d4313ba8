-- Trains a GPT on a text, character by character, and lets it write some text: nanoGPT's small setting for Shakespeare's plays.
--
--   luajit examples/char_gpt.lua --data FILE [--steps 2000] [--batch 12] [--block 64] [--layers 4] [--heads 4] [--width 128]
--                                [--dropout 0] [--lr 1e-3] [--seed 1337] [--write 500] [--save FILE] [--threads N]
--                                [--device cpu|cuda|cuda:N] [--precision float32|bfloat16|float16|half] [--compile 0|1]
--
-- --device: where to train; by default the GPU, if there is one. --precision: bfloat16 and float16 by autocast, float16 with a
-- GradScaler; half: weights in float16, with float32 masters.
-- The first 90 % of the file are for training; every 500 steps the loss on the rest, in blocks, is printed. As a module:
--   local model = require "examples.char_gpt" {tokens = 65, width = 128, heads = 4, layers = 4, length = 64}
-- Parameters have the names of PyTorch's nn.TransformerEncoder, between two nn.Embedding and an nn.Linear.
local tycho = require "tycho"
local nn, data = tycho.nn, tycho.data

local Model = nn.Module:extend("GPT")
function Model:init(o)
  local w, bias, layers = o.width, o.bias ~= false, o.layers or 4
  self.length = o.length
  self.token, self.position = nn.Embedding(o.tokens, w), nn.Embedding(o.length, w)
  self.dropout = nn.Dropout(o.dropout or 0)
  local layer = nn.TransformerEncoderLayer(w, o.heads or 4,
    {dim_feedforward = 4 * w, dropout = o.dropout or 0, activation = "gelu", norm_first = true, bias = bias,
      batch_first = true})
  self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(w, {bias = bias}))
  self.head = nn.Linear(w, o.tokens, {bias = bias})
  -- GPT-2's initialization: a small deviation, smaller still where a layer adds to the residual stream
  for name, p in self:named_parameters() do
    if p:dim() == 2 then
      local adds = name:match("out_proj") or name:match("linear2")
      nn.init.normal_(p, 0, adds and 0.02 / math.sqrt(2 * layers) or 0.02)
    elseif name:match("bias$") then nn.init.zeros_(p) end
  end
end
-- ids (N, L), L up to length -> scores of the next token (N, L, tokens)
function Model:forward(ids)
  local x = self.token(ids) + self.position(tycho.range(1, ids:size(2), 1, {dtype = "int64", device = ids.device}))
  return self.head(self.encoder(self.dropout(x), {is_causal = true}))
end

-- ids (N, L) with n more tokens, drawn from the model's probabilities.
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

if not (arg and arg[0] and arg[0]:match("char_gpt%.lua$")) then return function(o) return Model(o) end end

local function stop(message) io.stderr:write(message, "\n"); os.exit(2) end
local options = dofile((arg[0]:match "^.*/" or "") .. "arguments.lua") {data = "", steps = 2000, batch = 12, block = 64,
  layers = 4, heads = 4, width = 128, dropout = 0, lr = 1e-3, seed = 1337, write = 500, save = "",
  threads = 0, precision = "float32", compile = 0, device = tycho.cuda.is_available() and "cuda" or "cpu"}
local precisions = {float32 = true, bfloat16 = true, float16 = true, half = true}
if not precisions[options.precision] then stop("--precision must be float32, bfloat16, float16 or half") end
if options.data == "" then
  stop [[--data names a text to learn from; Shakespeare's plays in one file are at
https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt; --help lists the arguments]]
end
for name, least in pairs {steps = 0, batch = 1, block = 1, layers = 1, heads = 1, width = 1, write = 0, threads = 0, seed = 0} do
  if options[name] < least or options[name] % 1 ~= 0 then stop(("--%s must be a whole number, at least %d"):format(name, least)) end
end
if not (options.dropout >= 0 and options.dropout < 1) then stop("--dropout must be in 0..1 (1 excluded)") end
if options.width % options.heads ~= 0 then stop("--heads must divide --width") end
-- The text's characters as ids; an item is a stretch of `block` ids, and the ids one further; stretches begin `stride` apart.
local block = options.block
local function read(train, stride)
  local ok, set = pcall(data.datasets.TextFile, {root = options.data, train = train, block_size = block, stride = stride})
  if not ok then stop("--data: " .. set:gsub("^.-TextFile: ", "")) end
  return set
end
local train, test = read(true, 1), read(false, block)
local test_loader = data.DataLoader(test, {batch_size = 64, seed = 0})      -- a seed of its own: the program's generator isn't drawn from
if options.save ~= "" then
  local file, why = io.open(options.save, "ab")        -- an error is better told before the training
  if not file then stop(why) end
  file:close()
end
if options.threads > 0 then tycho.set_num_threads(options.threads) end

tycho.manual_seed(options.seed)
local model = Model {tokens = #train.vocab, width = options.width, heads = options.heads, layers = options.layers,
  length = block, dropout = options.dropout, bias = false}:to(options.device)
local half, autocast = options.precision == "half", options.precision:match("float16$") and options.precision
if half then model:half() end
local function to_device(x) return x:to(options.device, {non_blocking = true}) end
local function loss_of(x, y) return tycho.cross_entropy(model(x):flatten(1, 2):float(), y:flatten()) end
if autocast then
  local plain = loss_of
  function loss_of(x, y) return tycho.amp.autocast({dtype = autocast}, plain, x, y) end
end
local function test_loss()
  model:eval()
  local sum = 0
  tycho.no_grad(function()
    for x, y in test_loader:iter() do sum = sum + loss_of(to_device(x), to_device(y)):item() * #x end
  end)
  model:train()
  return sum / test:size()
end

-- only matrices have weight decay; the learning rate rises for 100 steps, then falls along half a cosine to a tenth
local decayed, rest = {}, {}
for _, p in ipairs(model:parameters()) do table.insert(p:dim() > 1 and decayed or rest, p) end
local optimizer = tycho.optim.AdamW({{params = decayed, weight_decay = 0.1}, {params = rest, weight_decay = 0}},
  {lr = options.lr, betas = {0.9, 0.99}, master_weights = half})
local scaler = tycho.amp.GradScaler{enabled = half or autocast == "float16"}
local warm = math.min(100, options.steps / 10)
local schedule = tycho.optim.lr_scheduler.LambdaLR(optimizer, {lr_lambda = function(step)
  if step < warm then return (step + 1) / (warm + 1) end
  return 0.55 + 0.45 * math.cos(math.pi * math.min(1, (step - warm) / math.max(1, options.steps - warm)))
end})

local function train_step(x, y)
  local loss = loss_of(x, y)
  optimizer:zero_grad()
  scaler:scale(loss):backward()
  scaler:unscale_(optimizer)
  nn.utils.clip_grad_norm_(model:parameters(), 1)
  scaler:step(optimizer)
  scaler:update()
  schedule:step()
  return loss:detach()
end
if options.compile == 1 then train_step = tycho.compile(train_step) end

-- a batch of random stretches
local function batch()
  local x, y = {}, {}
  for k, i in ipairs(tycho.randint(1, train:size(), {options.batch}):totable()) do x[k], y[k] = train:get(i) end
  return to_device(tycho.stack(x)), to_device(tycho.stack(y))
end

local step = 0
local function next_step()
  step = step + 1
  return step <= options.steps and step or nil
end
local bar = tycho.utils.progress(next_step, {total = options.steps, count = options.batch * block, unit = "characters"})
local validation
for _ in bar do
  local loss = train_step(batch())
  if step % 10 == 0 then bar:set {loss = loss:item()} end
  if step % 500 == 0 or step == options.steps then
    validation = test_loss()
    bar:set {validation = validation}
  end
end
print(("validation loss: %.4f"):format(validation or test_loss()))
if options.save ~= "" then tycho.save(options.save, model:state_dict()) end

model:eval()
local start = tycho.tensor({{train.id_of["\n"] or 1}}, {dtype = "int64", device = options.device})
print(train:decode(model:write(start, options.write)[1]:cpu()))
