-- tycho.save and tycho.load: a tensor, or nested tables of tensors, numbers, strings and booleans, as one safetensors file.
--
-- Idea: tensors are stored under their path joined by dots, so a state dict has PyTorch's names and any other reader can use it. Anything
-- but a flat table of tensors is described by a tree in the file's metadata, as JSON. Loading only builds data: nothing in a file can name
-- code.
local core = require "tycho.core"
local pickle = require "tycho.pickle"
local options = require "tycho.options"
local fail = options.fail
local bare = options.bare
local M = core.methods
local saving = {}

-- Numbers as text that preserves every bit; JSON has no NaN and no infinities.
local function number_text(v)
  if v ~= v then return "nan" end
  if v == math.huge then return "inf" end
  if v == -math.huge then return "-inf" end
  return ("%.17g"):format(v)
end
local numbers = {nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge}

local function hex(s) return (s:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end
local function unhex(s) return (s:gsub("%x%x", function(h) return string.char(tonumber(h, 16)) end)) end

saving.hex, saving.unhex = hex, unhex

local decode

local LONG = 32
local function is_numbers(v)
  local n = 0
  for k, x in pairs(v) do
    if type(k) ~= "number" or type(x) ~= "number" then return false end
    n = n + 1
  end
  return n == #v
end

-- What errors call the value at path.
local function called(path) return path == "" and "the value" or "'" .. path .. "'" end

local DEEPEST = 100              -- tables within tables; JSON has three levels for each
local function encode(v, path, seen, names, tensors, used, depth)
  local t = type(v)
  depth = (depth or 0) + 1
  if core.is_tensor(v) then
    local name, n = path == "" and "tensor" or path, 1
    while used[name] do n = n + 1; name = path .. "#" .. n end
    used[name] = true
    local ok, own = pcall(M.detach, v)
    if not ok then error((tostring(own):gsub("^.-detach: argument 1", "save: " .. called(path):gsub("%%", "%%%%"))), 0) end
    names[#names + 1], tensors[#tensors + 1] = name, own
    return {t = name}
  elseif t == "number" then return {n = number_text(v)}
  elseif t == "boolean" then return {b = v}
  elseif t == "string" then return {s = hex(v)}
  elseif t ~= "table" then
    error(("save: %s is a %s; tensors, tables, numbers, strings and booleans are saved"):format(called(path), t), 0)
  elseif getmetatable(v) and not getmetatable(v).__eq then    -- shapes are plain lists that compare
    error(("save: %s is an object; save its state_dict()"):format(called(path)), 0)
  end
  if seen[v] then error(("save: '%s' contains itself"):format(path), 0) end
  if depth > DEEPEST then error(("save: tables within tables more than %d deep"):format(DEEPEST), 0) end
  if #v > LONG and is_numbers(v) then      -- such as a curve: as a tensor, not as separate leaves
    local node = encode(core.from_value(v, "float64"), path, seen, names, tensors, used, depth - 1)
    return {l = node.t}
  end
  seen[v] = true
  local keys, out = {}, {}
  for k in pairs(v) do
    local tk = type(k)
    if tk == "string" and k:find("%z") then error(("save: '%s' has a key with a zero byte"):format(path), 0) end
    if tk ~= "string" and tk ~= "number" and tk ~= "boolean" then error(("save: '%s' has a %s as a key"):format(path, tk), 0) end
    keys[#keys + 1] = k
  end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) < type(b) end
    if type(a) == "boolean" then return a and not b end
    return a < b
  end)
  for i, k in ipairs(keys) do
    local within = (path == "" and "" or path .. ".") .. tostring(k)
    out[i] = {encode(k, "", seen, {}, {}, {}), encode(v[k], within, seen, names, tensors, used, depth)}
  end
  seen[v] = nil
  return {m = out}
end

local function is_flat(v)
  if core.is_tensor(v) or type(v) ~= "table" or next(v) == nil then return false end
  for k, x in pairs(v) do
    if type(k) ~= "string" or not core.is_tensor(x) or k == "__metadata__" or k == "" then return false end
  end
  return true
end

-- A value's tree (for JSON), its tensors' names, and the tensors; and the value from the tree and tensors by name.
function saving.tree(value)
  local names, tensors = {}, {}
  return encode(value, "", {}, names, tensors, {__metadata__ = true}), names, tensors
end
function saving.value(tree, tensors) return decode(tree, tensors, "its metadata") end

-- Copies tables and tensors, to a device if given.
function saving.copied(v, device)
  if core.is_tensor(v) then
    local copy = core.ops.clone(v:detach())
    return core.keep(device and M.to(copy, device) or copy)
  end
  if type(v) ~= "table" then return v end
  local out = {}
  for k, w in pairs(v) do out[k] = saving.copied(w, device) end
  return out
end

local function on_host(tensors)
  local out = {}
  for i, t in ipairs(tensors) do out[i] = M.contiguous(M.cpu(t)) end
  return out
end

---- several files and an index, as large models are published ----
-- Writes a flat table of tensors as files of up to `most` bytes (a larger tensor has its own), and path.index.json, which names each one's
-- file. Existing files are replaced only when all new ones have been written.
local function save_shards(path, value, most)
  local names, shards, size, total = {}, {}, math.huge, 0
  for name in pairs(value) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local bytes = M.numel(value[name]) * M.element_size(value[name])
    if size + bytes > most then
      shards[#shards + 1] = {}
      size = 0
    end
    table.insert(shards[#shards], name)
    size, total = size + bytes, total + bytes
  end
  local map, base, written = {}, path:gsub("%.safetensors$", ""), {}
  for k, list in ipairs(shards) do
    local file, tensors = ("%s-%05d-of-%05d.safetensors"):format(base, k, #shards), {}
    for i, name in ipairs(list) do
      tensors[i] = value[name]:detach()
      map[name] = file:match "[^/]*$"
    end
    written[k] = file
    local ok, e = pcall(core.write_safetensors, file .. ".part", list, on_host(tensors))
    if not ok then
      for _, name in ipairs(written) do os.remove(name .. ".part") end
      error(e, 0)
    end
  end
  for _, file in ipairs(written) do
    local ok, e = os.rename(file .. ".part", file)
    if not ok then error("save: " .. e, 0) end
  end
  core.file_write(path .. ".index.json", core.json_encode {metadata = {total_size = total}, weight_map = map},
    core.ops.zeros(0, {device = "cpu"}))
end

local function load_shards(path, device)
  local blob, n = core.blob_read(path)
  local ok, index = pcall(core.json_decode, core.blob_text(blob, 0, n))
  local map = ok and type(index) == "table" and index.weight_map
  if type(map) ~= "table" then error(path .. ": not an index of safetensors files: it has no weight_map", 0) end
  local folder, files, out = path:match "^(.*/)[^/]*$" or "", {}, {}
  for name, file in pairs(map) do
    if type(name) ~= "string" or type(file) ~= "string" or file:find "[/\\%z]" then error(path .. ": its weight_map is damaged", 0) end
    files[file] = files[file] or core.read_safetensors(folder .. file, false, device)
    out[name] = files[file][name] or error(("%s: %s has no tensor '%s'"):format(path, file, name), 0)
  end
  return out
end

-- save(path, value, {max_shard_size=}): writes a tensor, or nested tables of tensors, numbers, strings and booleans, as a safetensors file,
-- whatever its name; an existing file is replaced once the new one is complete. max_shard_size, in bytes: writes a flat table of tensors as
-- several files and path.index.json, which load reads.
function saving.save(path, value, o)
  if type(path) ~= "string" then
    fail("save: argument 1 (path) must be a string, got %s%s", options.shown(path),
      type(value) == "string" and ": the path comes first" or "")
  end
  if value == nil then fail("save: argument 2 (value) is missing") end
  o = options.fill("save", o, {max_shard_size = options.none})
  if o.max_shard_size then
    if type(o.max_shard_size) ~= "number" or not (o.max_shard_size >= 1 and o.max_shard_size < 2 ^ 53) then
      fail("save: max_shard_size must be a number of bytes, got " .. tostring(o.max_shard_size))
    end
    if not is_flat(value) then fail("save: max_shard_size is for a flat table of tensors, such as a state dict") end
    local fine, e = pcall(save_shards, path, value, o.max_shard_size)
    if not fine then fail(bare(e)) end
    return
  end
  local ok, tree, names, tensors = pcall(saving.tree, value)
  if not ok then fail(tree) end
  local fine, e = pcall(core.write_safetensors, path, names, on_host(tensors), not is_flat(value) and core.json_encode(tree) or nil)
  if not fine then fail(bare(e)) end
end

function decode(node, tensors, path)
  local kind, v = next(node)
  if kind == "t" then
    if not tensors[v] then error(("load: %s: the tree names tensor '%s', which is not in the file"):format(path, tostring(v)), 0) end
    return tensors[v]
  elseif kind == "l" then
    if not tensors[v] or core.methods.dim(tensors[v]) ~= 1 then
      error(("load: %s: the tree names list '%s', which is not in the file"):format(path, tostring(v)), 0)
    end
    return tensors[v]:totable()
  elseif kind == "n" then return numbers[v] or tonumber(v)
  elseif kind == "b" then return v
  elseif kind == "s" then return unhex(v) end
  local out = {}
  for _, pair in ipairs(type(v) == "table" and v or {}) do
    if type(pair) ~= "table" then error(("load: %s: its tree is damaged"):format(path), 0) end
    local k = decode(pair[1], tensors, path)
    if k ~= nil and k == k then out[k] = decode(pair[2], tensors, path) end
  end
  return out
end

-- A value as JSON and a list of tensors, and back; for messages between processes. memory: that of the message, which holds the tensors.
function saving.pack(value)
  local about = {}
  local tree, names, tensors = saving.tree(value)
  tensors = on_host(tensors)
  for i, t in ipairs(tensors) do about[i] = {name = names[i], dtype = t.dtype, sizes = t.shape} end
  return core.json_encode {tree = tree, tensors = about}, tensors
end
function saving.unpack(text, memory)
  local at = 64 + #text
  return saving.unpack_from(text, function(t)
    local x
    x, at = core.message_tensor(memory, at, t.dtype, t.sizes)
    return x
  end)
end
-- tensor_of gives the next tensor, of dtype t.dtype and sizes t.sizes.
function saving.unpack_from(text, tensor_of)
  local message, tensors = core.json_decode(text), {}
  for _, t in ipairs(message.tensors) do tensors[t.name] = tensor_of(t) end
  return decode(message.tree, tensors, "a message")
end

local LOAD = "path:string, device:device?, *, map_location:device?, weights_only:bool=true, mmap:bool=true"
-- load(path, device=): the value that save wrote; other safetensors files, also by their .index.json, as a table of tensors; PyTorch's .pt
-- files of tensors and plain data: code in them is never run, whatever weights_only= says. device: for the tensors, by default the default
-- device; map_location is PyTorch's name for it, and its mmap has no effect.
saving.load = core.define("load", LOAD, function(path, device, location)
  device = device or location or core.gpu.default_device()
  if pickle.is(path) then                    -- torch.save's
    local ok, value = pcall(pickle.load, path, device)
    if not ok then
      value = bare(value)
      fail("load: %s%s", value:find(path, 1, true) and "" or path .. ": ", value)
    end
    return value
  end
  local tensors, tree
  if path:find "%.index%.json$" then
    local ok, v = pcall(load_shards, path, device)
    if not ok then fail("load: " .. bare(v):gsub("^load: ", "")) end
    tensors = v
  else
    local ok, a, b = pcall(core.read_safetensors, path, false, device)
    if not ok then fail(bare(a)) end
    tensors, tree = a, b
  end
  if not tree then return tensors end
  local ok, value = pcall(core.json_decode, tree)
  if ok and type(value) == "table" and value.tycho_program then
    fail("load: %s: this is a traced module's file: read it with tycho.jit.load", path)
  end
  if ok then ok, value = pcall(decode, value, tensors, path) end
  if not ok then fail("load: " .. path .. ": its metadata is damaged: " .. tostring(value):gsub("^load: ", "")) end
  return value
end)

return saving
