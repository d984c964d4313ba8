-- PyTorch's files (torch.save: a zip archive with a pickle and the tensors' bytes; before 1.6 pickles and then the bytes), read as data.
--
-- Idea: a pickle is a program for a stack machine that may call anything. This machine knows only the few instructions that state dicts
-- need, and the only things that it "calls" build a tensor, a storage's name, an ordered dict, a size or another plain value. Anything else
-- is an error that names it.
-- Invariant: sizes and strides are checked against the storage before a tensor is made.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local pickle = {}

local storages = {FloatStorage = "<f4", DoubleStorage = "<f8", HalfStorage = "<f2", BFloat16Storage = "bf16",
  LongStorage = "<i8", IntStorage = "<i4", ShortStorage = "<i2", CharStorage = "|i1", ByteStorage = "|u1", BoolStorage = "|b1"}
-- Complex numbers become pairs along a last dim, as tycho.fft takes them.
local complex = {ComplexFloatStorage = "<f4", ComplexDoubleStorage = "<f8", ComplexHalfStorage = "<f2"}
local width = {["<f4"] = 4, ["<f8"] = 8, ["<f2"] = 2, bf16 = 2, ["<i8"] = 8, ["<i4"] = 4, ["<i2"] = 2, ["|i1"] = 1,
  ["|u1"] = 1, ["|b1"] = 1}

local dtypes = {}          -- dtypes as values are strings
for name in ("float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool"):gmatch "%S+" do dtypes[name] = true end

local function fail(...) error(string.format(...), 0) end
local SHORT = "truncated: its pickle"
local function whole(v, least) return type(v) == "number" and v % 1 == 0 and v >= least and v <= 2 ^ 48 end

-- Python's None; a mark on the stack; dicts and lists under construction.
local NONE, MARK = {}, {}
local Dict, List = {}, {}

local function list(values) return setmetatable({values = values, n = #values}, List) end

---- the machine: text and the place in it, a stack with marks, what is remembered ----
-- read(key): a storage's blob, how many bytes it has there, and where they begin, from 0. noted: the machine makes no tensors, but notes
-- the storages here by their keys.
local Machine = {}
Machine.__index = Machine

function Machine:bytes(n)
  if n < 0 or self.at + n - 1 > #self.text then fail(SHORT) end
  self.at = self.at + n
  return self.text:sub(self.at - n, self.at - 1)
end
function Machine:unsigned(n)
  local v, s = 0, self:bytes(n)
  for i = n, 1, -1 do v = v * 256 + s:byte(i) end
  return v
end
function Machine:signed(n)       -- two's complement; exact as far as doubles are
  local v, s = 0, self:bytes(n)
  local negative = s:byte(n) > 127
  for i = n, 1, -1 do v = v * 256 + (negative and 255 - s:byte(i) or s:byte(i)) end
  return negative and -1 - v or v
end
function Machine:line()
  local stop = self.text:find("\n", self.at, true) or fail(SHORT)
  local s = self.text:sub(self.at, stop - 1)
  self.at = stop + 1
  return s
end
function Machine:double()        -- big-endian
  local s = self:bytes(8)
  local sign, e = s:byte(1) > 127 and -1 or 1, s:byte(1) % 128 * 16 + math.floor(s:byte(2) / 16)
  local m = s:byte(2) % 16
  for i = 3, 8 do m = m * 256 + s:byte(i) end
  if e == 2047 then return m == 0 and sign * math.huge or 0 / 0 end
  if e == 0 then return sign * m * 2 ^ -1074 end
  return sign * (m + 2 ^ 52) * 2 ^ (e - 1075)
end
function Machine:long()          -- little-endian, two's complement; exact to 2^53
  local n = self:unsigned(1)
  if n == 0 then return 0 end
  if n > 8 then fail "a whole number of more than 64 bits" end
  return self:signed(n)
end

function Machine:push(v)
  if #self.stack >= 1e6 then fail "its pickle is nested too deeply" end
  self.stack[#self.stack + 1] = v
end
function Machine:pop()
  local v = self.stack[#self.stack]
  if v == nil or v == MARK then fail "its pickle is damaged: nothing to take from the stack" end
  self.stack[#self.stack] = nil
  return v
end
function Machine:mark()
  self.marks[#self.marks + 1] = #self.stack + 1
  self:push(MARK)
end
function Machine:since_mark()
  local m, stack, out = table.remove(self.marks), self.stack, {}
  if not m then fail "its pickle is damaged: no mark" end
  for i = m + 1, #stack do out[i - m] = stack[i] end
  for i = #stack, m, -1 do stack[i] = nil end
  return out
end
function Machine:top(class)
  local v = self.stack[#self.stack]
  if type(v) ~= "table" or getmetatable(v) ~= class then fail "its pickle is damaged: an item for something that takes none" end
  return v
end
function Machine:remember(k) self.memo[k] = self.stack[#self.stack] end
function Machine:recall(k)
  if self.memo[k] == nil then fail "its pickle is damaged: nothing remembered there" end
  self:push(self.memo[k])
end

---- what it builds ----
local function set(d, k, v)
  if k == NONE or type(k) == "table" then fail "its pickle has a key that is neither a string nor a number" end
  d.values[k] = v
end
local function append(l, v)
  l.n = l.n + 1
  l.values[l.n] = v
end

local function numbers(v, what)
  if type(v) ~= "table" or getmetatable(v) ~= List then fail("its pickle is damaged: a tensor's %s", what) end
  if #v.values > 8 then fail "a tensor of more than 8 dims" end
  for i = 1, #v.values do if not whole(v.values[i], 0) then fail("its pickle is damaged: a tensor's %s", what) end end
  return v.values
end

-- The position of the last element that sizes and strides reach, the number of elements, and whether they are contiguous.
local function extent(offset, sizes, strides)
  local last, n, contiguous = offset, 1, true
  for i = #sizes, 1, -1 do
    if sizes[i] > 1 then
      contiguous = contiguous and strides[i] == n
      last = last + (sizes[i] - 1) * strides[i]
    end
    n = n * sizes[i]
  end
  return last, n, contiguous
end

-- A storage's blob, read once, and checked to be large enough; and where its bytes begin.
local function blob_of(m, storage)
  local blob = m.blobs[storage.key]
  if not blob then
    blob = {m.read(storage.key)}
    m.blobs[storage.key] = blob
  end
  if storage.count * width[storage.descr] > blob[2] then
    fail("truncated: storage '%s' has %d bytes for %d elements", storage.key, blob[2], storage.count)
  end
  return blob[1], blob[3] or 0
end

local function tensor(args, m)
  local storage, offset = args[1], args[2]
  if type(storage) ~= "table" or not storage.storage or not whole(offset, 0) then
    fail "its pickle is damaged: a tensor without a storage"
  end
  if m.noted then return true end
  local about = args[7]                    -- marks of a lazy view
  for name, on in pairs(getmetatable(about) == Dict and about.values or {}) do
    if on == true and (name == "neg" or name == "conj") then fail("a tensor is saved as a %s view; save its clone()", name) end
  end
  local sizes, strides = numbers(args[3], "sizes"), numbers(args[4], "strides")
  if #sizes ~= #strides then fail "its pickle is damaged: a tensor's strides" end
  if storage.complex then
    if #sizes == 8 then fail "a complex tensor of 8 dims, which pairs would make 9" end
    local of, steps = sizes, strides
    sizes, strides, offset = {}, {}, 2 * offset
    for i, n in ipairs(of) do sizes[i], strides[i] = n, 2 * steps[i] end
    sizes[#sizes + 1], strides[#strides + 1] = 2, 1
  end
  local last, n, contiguous = extent(offset, sizes, strides)
  if n > 0 and last >= storage.count then
    fail("its pickle is damaged: a tensor of %d elements outside its storage of %d", n, storage.count)
  end
  local blob, from = blob_of(m, storage)
  if n == 0 then return core.blob_array(blob, 0, storage.descr, sizes) end
  -- of one storage, tensors share memory; one that has all of it, and comes first, is its only owner
  local key = storage.descr .. storage.key
  local known = m.flat[key]
  if contiguous and known then return M.detach(ops.view(ops.slice(known, 1, offset + 1, offset + n), sizes)) end
  if contiguous then
    local alone = known == nil and n == storage.count
    local t = core.blob_array(blob, from + offset * width[storage.descr], storage.descr, sizes, false, alone)
    m.flat[key] = alone and ops.view(t, {n})
    return t
  end
  -- other strides; dims with stride 0 stay expanded
  local some, room = {}, 1
  for i, d in ipairs(sizes) do
    some[i] = strides[i] == 0 and 1 or d
    room = room * some[i]
  end
  if room > math.max(16 * storage.count, 2 ^ 20) then         -- overlapping windows: a small file could ask for endless memory
    fail("a tensor of %.0f elements overlaps itself in a storage of %d: save its clone()", room, storage.count)
  end
  local flat = core.blob_array(blob, from, storage.descr, {storage.count})
  return ops.expand(ops.strided_take(flat, {}, some, strides, offset), sizes)
end

local function parameter(args, m)
  return (core.is_tensor(args[1]) or m.noted) and args[1] or fail "its pickle is damaged: a parameter"
end
-- Text of the characters 0 to 255 as these bytes.
local function latin1(text, encoding)
  if type(text) ~= "string" or encoding ~= "latin1" or text:find "[\196-\255]" then fail "its pickle is damaged: bytes" end
  return (text:gsub("[\194\195][\128-\191]", function(c) return string.char(c:byte(1) % 4 * 64 + c:byte(2) % 64) end))
end

-- The functions that a pickle may call, each with a list of arguments.
local calls = {
  ["collections.OrderedDict"] = function() return setmetatable({values = {}}, Dict) end,
  ["torch._utils._rebuild_tensor_v2"] = tensor,
  ["torch._utils._rebuild_parameter"] = parameter,
  ["torch._utils._rebuild_parameter_with_state"] = parameter,            -- its Python attributes are left out
  ["torch._tensor._rebuild_from_type_v2"] = function(args, m)            -- of a tensor with attributes; without them
    local f, given = args[1], args[3]
    if type(f) ~= "table" or f.call ~= tensor or getmetatable(given) ~= List then fail "a tensor of a Python class of its own" end
    return tensor(given.values, m)
  end,
  ["_codecs.encode"] = function(args) return latin1(args[1], args[2]) end,        -- bytes
  ["__builtin__.bytes"] = function(args) return #args == 0 and "" or fail "its pickle is damaged: bytes" end,
  ["torch.Size"] = function(args) return args[1] end,
  -- settings saved with tensors: a device as its name, a set as a list, a Counter as a table
  ["torch.device"] = function(args)
    local kind, index = args[1], args[2]
    if type(kind) ~= "string" or not (index == nil or whole(index, 0)) then fail "its pickle is damaged: a device" end
    return index and ("%s:%d"):format(kind, index) or kind
  end,
  ["__builtin__.set"] = function(args) return getmetatable(args[1]) == List and args[1] or fail "its pickle is damaged: a set" end,
  ["collections.Counter"] = function(args)
    return getmetatable(args[1]) == Dict and args[1] or fail "its pickle is damaged: a Counter"
  end,
}

-- What else torch.save writes, and how to save it so that it can be read.
local others = {["torch._utils._rebuild_sparse_tensor"] = "it has a sparse tensor: save its to_dense()",
  ["torch._utils._rebuild_tensor_v3"] = "it has a tensor of a dtype that Tycho lacks, such as uint16 or float8: save it as another",
  ["torch._utils._rebuild_qtensor"] = "it has a quantized tensor: save its dequantize()",
  ["torch._utils._rebuild_nested_tensor"] = "it has a nested tensor: save a padded one"}

local function global(module, name)
  local full = module .. "." .. name
  if module == "torch" and storages[name] then return {class = storages[name]} end
  if module == "torch" and complex[name] then return {class = complex[name], complex = true} end
  if calls[full] then return {call = calls[full]} end
  if module == "torch" and (dtypes[name] or name == "Tensor") then return name end
  if others[full] then fail("%s", others[full]) end
  fail("it calls '%s'; only tensors, tables, numbers and strings can be read", full:sub(1, 80))
end

local function storage_of(id, m)
  local v = type(id) == "table" and getmetatable(id) == List and id.values or {}
  if v[1] ~= "storage" or type(v[2]) ~= "table" or not v[2].class or type(v[3]) ~= "string" or not whole(v[5], 0) then
    fail "its pickle is damaged: a storage"
  end
  if v[6] ~= nil and v[6] ~= NONE then fail "a storage within another, as PyTorch wrote before 0.4: save it again" end
  local s = {storage = true, descr = v[2].class, complex = v[2].complex, key = v[3], count = v[2].complex and 2 * v[5] or v[5]}
  if m.noted then m.noted[s.key] = s end
  return s
end

---- its instructions, by their codes ----
local run = {
  ["\128"] = function(m) local p = m:bytes(1):byte(); if p > 5 then fail("a pickle of protocol %d; only up to 5 can be read", p) end end,
  ["\149"] = function(m) m:bytes(8) end,                                    -- FRAME
  ["("] = Machine.mark,
  ["}"] = function(m) m:push(setmetatable({values = {}}, Dict)) end,
  ["]"] = function(m) m:push(list {}) end,
  ["t"] = function(m) m:push(list(m:since_mark())) end,
  ["\133"] = function(m) m:push(list {m:pop()}) end,
  ["\134"] = function(m) local b, a = m:pop(), m:pop(); m:push(list {a, b}) end,
  ["\135"] = function(m) local c, b, a = m:pop(), m:pop(), m:pop(); m:push(list {a, b, c}) end,
  ["N"] = function(m) m:push(NONE) end,
  ["\136"] = function(m) m:push(true) end,
  ["\137"] = function(m) m:push(false) end,
  ["J"] = function(m) m:push(m:signed(4)) end,
  ["K"] = function(m) m:push(m:unsigned(1)) end,
  ["M"] = function(m) m:push(m:unsigned(2)) end,
  ["\138"] = function(m) m:push(m:long()) end,
  ["G"] = function(m) m:push(m:double()) end,
  ["X"] = function(m) m:push(m:bytes(m:unsigned(4))) end,
  ["\140"] = function(m) m:push(m:bytes(m:unsigned(1))) end,
  ["c"] = function(m) local module = m:line(); m:push(global(module, m:line())) end,
  ["\147"] = function(m) local name, module = m:pop(), m:pop(); m:push(global(tostring(module), tostring(name))) end,
  ["R"] = function(m)
    local args, f = m:pop(), m:pop()
    if type(f) ~= "table" or not f.call or getmetatable(args) ~= List then fail "its pickle is damaged: a call of what can't be called" end
    m:push(f.call(args.values, m))
  end,
  ["Q"] = function(m) m:push(storage_of(m:pop(), m)) end,
  ["q"] = function(m) m:remember(m:unsigned(1)) end,
  ["r"] = function(m) m:remember(m:unsigned(4)) end,
  ["\148"] = function(m) m:remember(#m.memo + (m.memo[0] ~= nil and 1 or 0)) end,
  ["h"] = function(m) m:recall(m:unsigned(1)) end,
  ["j"] = function(m) m:recall(m:unsigned(4)) end,
  ["s"] = function(m) local v, k = m:pop(), m:pop(); set(m:top(Dict), k, v) end,
  ["u"] = function(m)
    local items = m:since_mark()
    local d = m:top(Dict)
    if #items % 2 == 1 then fail "its pickle is damaged: a key without a value" end
    for i = 1, #items, 2 do set(d, items[i], items[i + 1]) end
  end,
  ["a"] = function(m) local v = m:pop(); append(m:top(List), v) end,
  ["e"] = function(m)
    local items = m:since_mark()
    local l = m:top(List)
    for _, v in ipairs(items) do append(l, v) end
  end,
  ["b"] = function(m) m:pop(); m:top(Dict) end,  -- an OrderedDict's attributes, such as a state dict's versions, are dropped
  ["0"] = Machine.pop,
}
run[")"], run["l"], run["U"] = run["]"], run["t"], run["\140"]

-- What the pickle at a place of the text builds, and the place behind it.
local function result_of(text, at, read, noted)
  local m = setmetatable({text = text, at = at, stack = {}, memo = {}, marks = {}, blobs = {}, flat = {}, read = read, noted = noted},
    Machine)
  for _ = 1, 1e8 do
    local code = m:bytes(1)
    if code == "." then return m:pop(), m.at end
    local f = run[code] or fail("its pickle has instruction %d, which state dicts don't need", code:byte())
    f(m)
  end
  fail "its pickle doesn't end"
end

-- Converts what the machine built to tables: dicts by key, lists from 1, without None.
local function plain(v, seen)
  if type(v) ~= "table" then return v end
  if v == NONE then return nil end
  local class = getmetatable(v)
  if class ~= Dict and class ~= List then fail "its pickle holds a type where a value should be" end
  if seen[v] then
    if seen[v] == true then fail "its pickle contains itself" end
    return seen[v]
  end
  seen[v] = true
  local out = {}
  for k, x in pairs(v.values) do out[k] = plain(x, seen) end
  seen[v] = out
  return out
end

---- files ----
local function of_zip(path)
  local archive, names = core.zip_list(path)
  local at, root = {}, nil
  for i, name in ipairs(names) do
    at[name] = i
    root = root or name:match "^(.*/?)data%.pkl$"
  end
  if not root then fail "a zip archive without data.pkl: not written by torch.save" end
  if at[root .. "byteorder"] and core.blob_text(core.zip_member(archive, at[root .. "byteorder"]), 0, 10) ~= "little" then
    fail "written on a big-endian machine"
  end
  local blob, n = core.zip_member(archive, at[root .. "data.pkl"])
  return (result_of(core.blob_text(blob, 0, n), 1, function(key)
    local i = at[root .. "data/" .. key] or fail("storage '%s' is missing", key:sub(1, 40))
    return core.zip_member(archive, i)
  end))
end

-- The layout before PyTorch 1.6: pickles of a mark, a version, the writer's habits, the value, the storages' keys; then each storage's
-- number of elements, in 8 bytes, and its bytes. Where these lie is known once the value has been read without tensors.
local MARK_OF_OLD = "\128\2\138\10l\252\156F\249 j\168P\25."
local function heads_of_old(text)
  local version, at = result_of(text, #MARK_OF_OLD + 1)
  if version ~= 1001 then fail("written in version %s of an older format; only 1001 can be read", tostring(version)) end
  local habits, begin = result_of(text, at)
  if getmetatable(habits) ~= Dict or habits.values.little_endian ~= true then fail "written on a big-endian machine" end
  local noted = {}
  local _, behind = result_of(text, begin, nil, noted)
  local keys, data = result_of(text, behind)
  if getmetatable(keys) ~= List then fail "its pickle is damaged: the storages' keys" end
  return begin, noted, keys.values, data - 1
end
local function of_old(path)
  local blob, n = core.blob_read(path)
  local function heads(size)               -- the pickles are a small part of the file
    local text = core.blob_text(blob, 0, size)
    local found = {pcall(heads_of_old, text)}
    if found[1] then return text, unpack(found, 2) end
    if found[2] ~= SHORT or size >= math.min(n, 2 ^ 28) then error(found[2], 0) end
    return heads(4 * size)
  end
  local text, begin, noted, keys, at = heads(2 ^ 16)
  local places = {}
  for _, key in ipairs(keys) do
    local s = noted[key] or fail("storage '%s' is named by no tensor", tostring(key):sub(1, 40))
    local bytes, count = s.count * width[s.descr], 0
    for i, byte in ipairs {core.blob_text(blob, math.min(at, n), 8):byte(1, 8)} do count = count + byte * 256 ^ (i - 1) end
    if at + 8 <= n and count ~= (s.complex and s.count / 2 or s.count) then
      fail("its pickle is damaged: the size of storage '%s'", key)
    end
    places[key] = {at + 8, math.max(math.min(bytes, n - at - 8), 0)}
    at = at + 8 + bytes
  end
  return (result_of(text, begin, function(key)
    local place = places[key] or fail("storage '%s' is missing", key:sub(1, 40))
    return blob, place[2], place[1]
  end))
end

-- A value that torch.save wrote: state dicts, tensors, tables of them, numbers, strings. None becomes nil.
function pickle.load(path, device)
  local value = plain((core.file_head(path, 4) == "PK\3\4" and of_zip or of_old)(path), {})
  if not device or device == "cpu" then return value end
  local function move(v)
    if core.is_tensor(v) then return M.to(v, device) end
    if type(v) ~= "table" then return v end
    for k, x in pairs(v) do v[k] = move(x) end
    return v
  end
  return move(value)
end

-- Whether a file begins as torch.save's do.
function pickle.is(path)
  local head = core.file_head(path, #MARK_OF_OLD)
  return head == MARK_OF_OLD or (head and head:sub(1, 4) == "PK\3\4")
end

return pickle
