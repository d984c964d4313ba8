-- How items become a batch: a list of items (each a list of fields) becomes the fields of the batch. Tensors are stacked, numbers and
-- booleans become tensors (int64 if all are whole, else float32), tables, lists or with names, are collated field by field, and anything
-- else (strings) stays a list. Items must be alike; an item that differs is an error that names it.
local core = require "tycho.core"
local options = require "tycho.options"
local ops, M = core.ops, core.methods

local function kind(v)
  if core.is_tensor(v) then return "tensor" end
  if type(v) == "table" and v[1] == nil and getmetatable(v) == nil then return "table with names" end
  return type(v)
end

-- names[i]: the number of the i-th item in its dataset; dtype: for numbers, if known
local function values(list, where, names, device, dtype)
  local first = kind(list[1])
  local function differ(i, text) error(("%s: item %d %s"):format(where, names[i], text), 0) end
  for i, v in ipairs(list) do
    if kind(v) ~= first then differ(i, ("is a %s, item %d is a %s"):format(kind(v), names[1], first)) end
  end
  if first == "tensor" then
    local ok, whole = pcall(ops.stack, list, 1)
    if ok then return whole end
    for i, x in ipairs(list) do
      if x.shape ~= list[1].shape then
        differ(i, ("has shape %s, item %d has %s"):format(tostring(x.shape), names[1], tostring(list[1].shape)))
      end
    end
    error(whole, 0)
  elseif first == "number" then
    local whole = true
    for _, n in ipairs(list) do whole = whole and n % 1 == 0 and math.abs(n) < 2 ^ 63 end
    if not whole and dtype and not dtype:find "float" then dtype = nil end
    return M.to(core.from_value(list, dtype or (whole and "int64" or "float32")), device)
  elseif first == "boolean" then return M.to(core.from_value(list), device)
  elseif first == "table" and getmetatable(list[1]) == nil then              -- a list: a batch for each place
    local out = {}
    for i, item in ipairs(list) do
      for k in pairs(item) do
        if type(k) ~= "number" then
          differ(i, ("is a list that also has the field '%s': use either a list or a table with names"):format(tostring(k)))
        end
      end
    end
    for k = 1, #list[1] do
      local field = {}
      for i, item in ipairs(list) do
        if #item ~= #list[1] then differ(i, ("is a list of %d, item %d is a list of %d"):format(#item, names[1], #list[1])) end
        field[i] = item[k]
      end
      out[k] = values(field, ("%s.%d"):format(where, k), names, device)
    end
    return out
  elseif first == "table with names" then
    local out = {}
    for k in pairs(list[1]) do
      local field = {}
      for i, item in ipairs(list) do
        field[i] = item[k]
        if field[i] == nil then differ(i, ("has no '%s', but item %d has one"):format(tostring(k), names[1])) end
      end
      out[k] = values(field, ("%s.%s"):format(where, tostring(k)), names, device)
    end
    for i, item in ipairs(list) do
      for k in pairs(item) do
        if list[1][k] == nil then differ(i, ("has '%s', but item %d has not"):format(tostring(k), names[1])) end
      end
    end
    return out
  end
  return list
end

-- device: for tensors made of numbers; nil: the default one. names: the items' numbers, for errors; nil: their places. dtypes: by field, of
-- fields that are numbers, if known.
return function(items, device, names, dtypes)
  local function list(v) return type(v) == "table" and not core.is_tensor(v) end
  if not list(items) or not list(items[1]) then error("collate: a list of items is needed, each a list of fields", 0) end
  local out, n = {}, table.maxn(items[1])
  if n == 0 and next(items[1]) ~= nil then                     -- items are tables with names: one field each
    local all = {}
    for i, item in ipairs(items) do all[i] = {item} end
    items, n = all, 1
  end
  device = device or core.gpu.default_device()
  if not names then
    names = {}
    for i = 1, #items do names[i] = i end
  end
  for i = 1, #items do
    if type(names[i]) ~= "number" then
      error(("collate: argument 3 must list the items' numbers; entry %d is %s"):format(i, options.shown(names[i])), 0)
    end
  end
  for i, item in ipairs(items) do
    if table.maxn(item) ~= n then error(("item %d has %d fields, item %d has %d"):format(names[i], table.maxn(item), names[1], n), 0) end
  end
  for k = 1, n do
    local field = {}
    for i, item in ipairs(items) do
      field[i] = item[k]
      if field[i] == nil then error(("field %d: item %d has no value"):format(k, names[i]), 0) end
    end
    out[k] = values(field, "field " .. k, names, device, dtypes and dtypes[k])
  end
  return unpack(out, 1, n)
end
