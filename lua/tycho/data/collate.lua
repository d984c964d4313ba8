-- How items become a batch: items (each a list of fields) turn into fields of whole batches. Tensors are stacked, numbers and booleans become
-- tensors (int64 if all are whole, else float32), tables with names are taken apart, and anything else (strings) stays a list.
local core = require "tycho.core"
local ops, M = core.ops, core.methods

local function values(list, device)
  local v = list[1]
  if core.is_tensor(v) then
    local rows = {}
    for i, x in ipairs(list) do rows[i] = M.unsqueeze(x, 1) end
    return ops.cat(rows, 1)
  end
  if type(v) == "number" then
    local whole = true
    for _, n in ipairs(list) do whole = whole and n % 1 == 0 end
    return M.to(core.from_value(list, whole and "int64" or "float32"), device)
  end
  if type(v) == "boolean" then return M.to(core.from_value(list), device) end
  if type(v) == "table" and v[1] == nil then
    local out = {}
    for k in pairs(v) do
      local field = {}
      for i, item in ipairs(list) do field[i] = item[k] end
      out[k] = values(field, device)
    end
    return out
  end
  return list
end

-- device: of what numbers become; nil: the default one
return function(items, device)
  local out, n = {}, table.maxn(items[1])
  device = device or core.gpu.default_device()
  for k = 1, n do
    local field = {}
    for i, item in ipairs(items) do field[i] = item[k] end
    out[k] = values(field, device)
  end
  return unpack(out, 1, n)
end
