-- PyTorch's files (torch.save: a zip archive with a pickle and the tensors' bytes), read as data.
--
-- Idea: a pickle is a program for a stack machine that may call anything. This machine knows the few instructions that state dicts are made
-- of, and the only things it "calls" build a tensor, a storage's name, an ordered dict, a size or another plain value. Anything else is
-- an error that names it.
-- Invariant: sizes and strides are checked against the storage before a tensor is made.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local pickle = {}

local storages = {FloatStorage = "<f4", DoubleStorage = "<f8", HalfStorage = "<f2", BFloat16Storage = "bf16",
  LongStorage = "<i8", IntStorage = "<i4", ShortStorage = "<i2", CharStorage = "|i1", ByteStorage = "|u1", BoolStorage = "|b1"}
local width = {["<f4"] = 4, ["<f8"] = 8, ["<f2"] = 2, bf16 = 2, ["<i8"] = 8, ["<i4"] = 4, ["<i2"] = 2, ["|i1"] = 1,
  ["|u1"] = 1, ["|b1"] = 1}

local dtypes = {}          -- as values: strings
for name in ("float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool"):gmatch "%S+" do dtypes[name] = true end

local function fail(...) error(string.format(...), 0) end
local function whole(v, least) return type(v) == "number" and v % 1 == 0 and v >= least and v <= 2 ^ 48 end

-- Python's None, and dicts and lists while they are built; a mark.
local NONE, MARK = {}, {}
local Dict, List = {}, {}

-- What `read(key)` gives is the blob of a storage.
local function machine(text, read)
  local at, stack, memo, marks = 1, {}, {}, {}
  local function bytes(n)
    if n < 0 or at + n - 1 > #text then fail "truncated: its pickle" end
    at = at + n
    return text:sub(at - n, at - 1)
  end
  local function unsigned(n)
    local v, s = 0, bytes(n)
    for i = n, 1, -1 do v = v * 256 + s:byte(i) end
    return v
  end
  local function signed(n)
    local v = unsigned(n)
    return v >= 2 ^ (8 * n - 1) and v - 2 ^ (8 * n) or v
  end
  local function line()
    local stop = text:find("\n", at, true) or fail "truncated: its pickle"
    local s = text:sub(at, stop - 1)
    at = stop + 1
    return s
  end
  local function push(v) if #stack >= 1e6 then fail "its pickle is nested too deeply" end stack[#stack + 1] = v end
  local function pop()
    local v = stack[#stack]
    if v == nil or v == MARK then fail "its pickle is damaged: nothing to take from the stack" end
    stack[#stack] = nil
    return v
  end
  local function since_mark()
    local m = table.remove(marks)
    if not m then fail "its pickle is damaged: no mark" end
    local out = {}
    for i = m + 1, #stack do out[i - m] = stack[i] end
    for i = #stack, m, -1 do stack[i] = nil end
    return out
  end
  local function top(class)
    local v = stack[#stack]
    if type(v) ~= "table" or getmetatable(v) ~= class then fail "its pickle is damaged: an item for something that takes none" end
    return v
  end
  local function list(values) return setmetatable({values = values, n = #values}, List) end
  local function set(d, k, v)
    if k == NONE or type(k) == "table" then fail "its pickle has a key that is neither a string nor a number" end
    d.values[k] = v
  end
  local function numbers(v, what)
    if type(v) ~= "table" or getmetatable(v) ~= List then fail("its pickle is damaged: a tensor's %s", what) end
    if #v.values > 8 then fail "a tensor of more than 8 dims" end
    for i = 1, #v.values do if not whole(v.values[i], 0) then fail("its pickle is damaged: a tensor's %s", what) end end
    return v.values
  end

  local blobs = {}
  local function tensor(args)
    local a = args.values
    local storage, offset = a[1], a[2]
    if type(storage) ~= "table" or not storage.storage or not whole(offset, 0) then
      fail "its pickle is damaged: a tensor without a storage"
    end
    local sizes, strides = numbers(a[3], "sizes"), numbers(a[4], "strides")
    if #sizes ~= #strides then fail "its pickle is damaged: a tensor's strides" end
    local last, n, dense = offset, 1, 1
    local contiguous = true
    for i = #sizes, 1, -1 do
      if sizes[i] > 1 then
        contiguous = contiguous and strides[i] == dense
        last = last + (sizes[i] - 1) * strides[i]
      end
      dense, n = dense * sizes[i], n * sizes[i]
    end
    if n > 0 and last >= storage.count then
      fail("its pickle is damaged: a tensor of %d elements outside its storage of %d", n, storage.count)
    end
    local blob = blobs[storage.key]
    if not blob then
      blob = {read(storage.key)}
      blobs[storage.key] = blob
    end
    if storage.count * width[storage.descr] > blob[2] then
      fail("truncated: storage '%s' has %d bytes for %d elements", storage.key, blob[2], storage.count)
    end
    if n == 0 or contiguous then return core.blob_array(blob[1], n == 0 and 0 or offset * width[storage.descr], storage.descr, sizes) end
    -- any other strides: the elements' positions, as an index
    local flat = core.blob_array(blob[1], 0, storage.descr, {storage.count})
    local index = ops.full({1}, offset + 1, {dtype = "int64", device = "cpu"})
    for i, d in ipairs(sizes) do
      index = M.unsqueeze(index, -1) + ops.range(0, d - 1, 1, {dtype = "int64", device = "cpu"}) * strides[i]
    end
    return M.view(ops.index(flat, {M.flatten(index)}, 1), sizes)
  end

  local calls = {
    ["collections.OrderedDict"] = function() return setmetatable({values = {}}, Dict) end,
    ["torch._utils._rebuild_tensor_v2"] = tensor,
    ["torch._utils._rebuild_parameter"] = function(args) return core.is_tensor(args.values[1]) and args.values[1] or
    fail "its pickle is damaged: a parameter" end,
    ["torch.Size"] = function(args) return args.values[1] end,
    -- of settings that are saved beside: a device as its name, a set as a list, a Counter as a table
    ["torch.device"] = function(args)
      local kind, index = args.values[1], args.values[2]
      if type(kind) ~= "string" or not (index == nil or whole(index, 0)) then fail "its pickle is damaged: a device" end
      return index and ("%s:%d"):format(kind, index) or kind
    end,
    ["__builtin__.set"] = function(args)
      return getmetatable(args.values[1]) == List and args.values[1] or fail "its pickle is damaged: a set"
    end,
    ["collections.Counter"] = function(args)
      return getmetatable(args.values[1]) == Dict and args.values[1] or fail "its pickle is damaged: a Counter"
    end,
  }
  local function global(module, name)
    local full = module .. "." .. name
    if module == "torch" and storages[name] then return {class = storages[name]} end
    if calls[full] then return {call = calls[full]} end
    if module == "torch" and dtypes[name] then return name end
    fail("it would call '%s'; only tensors, tables, numbers and strings are read", full:sub(1, 80))
  end
  local function reduce()
    local args, f = pop(), pop()
    if type(f) ~= "table" or not f.call or getmetatable(args) ~= List then fail "its pickle is damaged: a call of what can't be called" end
    push(f.call(args))
  end
  local function persistent(id)
    local v = type(id) == "table" and getmetatable(id) == List and id.values or {}
    if v[1] ~= "storage" or type(v[2]) ~= "table" or not v[2].class or type(v[3]) ~= "string" or not whole(v[5], 0) then
      fail "its pickle is damaged: a storage"
    end
    push {storage = true, descr = v[2].class, key = v[3], count = v[5]}
  end
  local function double(s)       -- big-endian
    local sign, e = s:byte(1) > 127 and -1 or 1, s:byte(1) % 128 * 16 + math.floor(s:byte(2) / 16)
    local m = s:byte(2) % 16
    for i = 3, 8 do m = m * 256 + s:byte(i) end
    if e == 2047 then return m == 0 and sign * math.huge or 0 / 0 end
    if e == 0 then return sign * m * 2 ^ -1074 end
    return sign * (m + 2 ^ 52) * 2 ^ (e - 1075)
  end
  local function long(n)         -- little-endian, two's complement; exact to 2^53
    if n == 0 then return 0 end
    if n > 8 then fail "a whole number of more than 64 bits" end
    return signed(n)
  end

  local run = {
    ["\128"] = function() local p = bytes(1):byte(); if p > 5 then fail("a pickle of protocol %d", p) end end,
    ["\149"] = function() bytes(8) end,                                     -- FRAME
    ["("] = function() marks[#marks + 1] = #stack + 1; push(MARK) end,
    ["}"] = function() push(setmetatable({values = {}}, Dict)) end,
    ["]"] = function() push(list {}) end,
    [")"] = function() push(list {}) end,
    ["t"] = function() push(list(since_mark())) end,
    ["l"] = function() push(list(since_mark())) end,
    ["\133"] = function() push(list {pop()}) end,
    ["\134"] = function() local b, a = pop(), pop(); push(list {a, b}) end,
    ["\135"] = function() local c, b, a = pop(), pop(), pop(); push(list {a, b, c}) end,
    ["N"] = function() push(NONE) end,
    ["\136"] = function() push(true) end,
    ["\137"] = function() push(false) end,
    ["J"] = function() push(signed(4)) end,
    ["K"] = function() push(unsigned(1)) end,
    ["M"] = function() push(unsigned(2)) end,
    ["\138"] = function() push(long(unsigned(1))) end,
    ["G"] = function() push(double(bytes(8))) end,
    ["X"] = function() push(bytes(unsigned(4))) end,
    ["\140"] = function() push(bytes(unsigned(1))) end,
    ["U"] = function() push(bytes(unsigned(1))) end,
    ["c"] = function() local module = line(); push(global(module, line())) end,
    ["\147"] = function() local name, module = pop(), pop(); push(global(tostring(module), tostring(name))) end,
    ["R"] = reduce,
    ["Q"] = function() persistent(pop()) end,
    ["q"] = function() memo[unsigned(1)] = stack[#stack] end,
    ["r"] = function() memo[unsigned(4)] = stack[#stack] end,
    ["\148"] = function() memo[#memo + (memo[0] ~= nil and 1 or 0)] = stack[#stack] end,
    ["h"] = function() local v = memo[unsigned(1)]; push(v == nil and fail "its pickle is damaged: nothing remembered there" or v) end,
    ["j"] = function() local v = memo[unsigned(4)]; push(v == nil and fail "its pickle is damaged: nothing remembered there" or v) end,
    ["s"] = function() local v, k = pop(), pop(); set(top(Dict), k, v) end,
    ["u"] = function()
      local items = since_mark()
      local d = top(Dict)
      if #items % 2 == 1 then fail "its pickle is damaged: a key without a value" end
      for i = 1, #items, 2 do set(d, items[i], items[i + 1]) end
    end,
    ["a"] = function() local v = pop(); local l = top(List); l.n = l.n + 1; l.values[l.n] = v end,
    ["e"] = function()
      local items = since_mark()
      local l = top(List)
      for _, v in ipairs(items) do l.n = l.n + 1; l.values[l.n] = v end
    end,
    ["b"] = function() pop(); top(Dict) end,                                -- an OrderedDict's attributes: a state dict's versions
    ["0"] = function() pop() end,
  }
  for _ = 1, 1e8 do
    local code = bytes(1)
    if code == "." then return pop() end
    local f = run[code]
    if not f then fail("its pickle has instruction %d, which state dicts don't need", code:byte()) end
    f()
  end
  fail "its pickle doesn't end"
end

-- Tables of what the machine built: dicts by key, lists from 1; None is left out.
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

-- What torch.save wrote: state dicts, tensors, tables of them, numbers, strings. None is nil.
function pickle.load(path, device)
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
  local value = machine(core.blob_text(blob, 0, n), function(key)
    local i = at[root .. "data/" .. key] or fail("storage '%s' is missing", key:sub(1, 40))
    return core.zip_member(archive, i)
  end)
  value = plain(value, {})
  if not device or device == "cpu" then return value end
  local function move(v)
    if core.is_tensor(v) then return M.to(v, device) end
    if type(v) ~= "table" then return v end
    for k, x in pairs(v) do v[k] = move(x) end
    return v
  end
  return move(value)
end

-- Whether a file begins as a zip archive does.
function pickle.is(path)
  return core.file_head(path, 4) == "PK\3\4"
end

return pickle
