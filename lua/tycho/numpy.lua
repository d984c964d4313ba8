-- NumPy's files: .npy (one array) and .npz (a zip archive of them). Data only: arrays of Python objects, which need pickles, are refused.
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local M = core.methods
local numpy = {}

-- The array in a blob of n bytes.
local function parse(blob, n)
  local function need(ok, what) if not ok then error(what, 0) end end
  local head = core.blob_text(blob, 0, 12)
  need(#head >= 10 and head:sub(1, 6) == "\147NUMPY", "not a .npy file")
  local version = head:byte(7)
  need(version >= 1 and version <= 3, "a .npy file of version " .. version .. "; only 1 to 3 can be read")
  local size, at = head:byte(9) + 256 * head:byte(10), 10
  if version > 1 then
    need(#head == 12, "truncated")
    size, at = size + 65536 * (head:byte(11) + 256 * head:byte(12)), 12
  end
  need(at + size <= n and size < 2 ^ 20, "truncated: its header is incomplete")
  local text = core.blob_text(blob, at, size)
  local descr, order, shape = text:match "'descr'%s*:%s*'([^']*)'", text:match "'fortran_order'%s*:%s*(%a+)",
    text:match "'shape'%s*:%s*%(([%d%s,]*)%)"
  need(text:match "'descr'%s*:%s*%[" == nil, "an array of records; only arrays of numbers can be read")
  need(descr and shape and (order == "True" or order == "False"), "its header is damaged")
  local sizes = {}
  for d in shape:gmatch "%d+" do sizes[#sizes + 1] = tonumber(d) end
  return core.blob_array(blob, at + size, descr, sizes, order == "True", true)
end

local function to_device(x, device)
  x = M.contiguous(x)
  device = device or core.gpu.default_device()
  return device ~= "cpu" and M.to(x, device) or x
end

local function header(x)
  local descr = core.array_descr(x.dtype)
  local sizes = {}
  for i, d in ipairs(x.shape) do sizes[i] = ("%d,"):format(d) end
  local text = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }"):format(descr,
    (table.concat(sizes, " "):gsub("^(.+ .+),$", "%1")))
  local size = 10 + #text + 1
  local pad = -size % 64
  size = #text + 1 + pad
  return "\147NUMPY\1\0" .. string.char(size % 256, math.floor(size / 256)) .. text .. (" "):rep(pad) .. "\n"
end

-- A tensor to write: on the host and contiguous; bfloat16, which NumPy lacks, is converted to float32, exactly.
local function writable(who, x, what)
  if not core.is_tensor(x) then fail("%s: %s must be a tensor, got %s", who, what, type(x)) end
  x = M.contiguous(M.cpu(x:detach()))
  return x.dtype == "bfloat16" and M.float(x) or x
end

-- load_npy(path, {device="cpu"}): the tensor in a .npy file. Integer types that Tycho lacks become wider ones; arrays of objects are
-- refused.
function numpy.load_npy(path, o)
  o = options.fill("load_npy", o, {device = options.none})
  return options.file("load_npy", path, function() return to_device(parse(core.blob_read(path)), o.device) end)
end

-- save_npy(path, x): a tensor as a .npy file; bfloat16 becomes float32.
function numpy.save_npy(path, x, more)
  options.no_more("save_npy", more)
  x = writable("save_npy", x, "argument 2")
  options.file("save_npy", path, function() core.file_write(path, header(x), x) end)
end

-- load_npz(path, {device="cpu"}): a table of the tensors in a .npz file by name.
function numpy.load_npz(path, o)
  o = options.fill("load_npz", o, {device = options.none})
  return options.file("load_npz", path, function()
    local archive, names = core.zip_list(path)
    local out = {}
    for i, name in ipairs(names) do
      local key = name:match "^(.*)%.npy$"
      if key then
        local ok, x = pcall(function() return to_device(parse(core.zip_member(archive, i)), o.device) end)
        if not ok then error(("'%s': %s"):format(name, options.bare(x)), 0) end
        out[key] = x
      end
    end
    return out
  end)
end

-- save_npz(path, {name = tensor, ...}): writes a .npz file; a list's names are arr_0, arr_1, ...
function numpy.save_npz(path, tensors, more)
  options.no_more("save_npz", more)
  if type(tensors) ~= "table" or core.is_tensor(tensors) then
    fail("save_npz: argument 2 must be a table of tensors, got " .. options.shown(tensors))
  end
  local names, heads, list, by = {}, {}, {}, {}
  for k, x in pairs(tensors) do
    local name = type(k) == "number" and ("arr_%d"):format(k - 1) or k
    if type(name) ~= "string" or name:find "%z" or name == "" then
      fail("save_npz: names must be strings without zero bytes, got " .. tostring(k))
    end
    if by[name] then fail("save_npz: two arrays would be named " .. name) end
    by[name] = writable("save_npz", x, "'" .. name .. "'")
    names[#names + 1] = name
  end
  if #names == 0 then fail("save_npz: there are no tensors to save") end
  table.sort(names)
  for i, name in ipairs(names) do list[i], heads[i], names[i] = by[name], header(by[name]), name .. ".npy" end
  options.file("save_npz", path, function() core.zip_write(path, names, heads, list) end)
end

return numpy
