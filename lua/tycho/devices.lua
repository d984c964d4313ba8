-- Devices: names and the presence of GPUs; moving a tensor to another device, and splitting a list by device.
local core = require "tycho.core"
local options = require "tycho.options"
local M = core.methods
local devices = {}

-- Raises the reason, after the caller's name, where there is no GPU.
function devices.need(who)
  local there, why = core.gpu.is_available()
  if not there then options.fail("%s: %s", who, why) end
end

-- The name of the GPU that who is given by its number or name, by default of the current one.
function devices.gpu(who, device)
  if device ~= nil and type(device) ~= "string" and type(device) ~= "number" then
    options.fail("%s: the device must be a GPU's number or its name, such as 'cuda:0', got %s", who, options.shown(device))
  end
  return type(device) == "string" and device or "cuda:" .. (device or core.gpu.current_device())
end

-- x on a device; x itself if it is there already. Doesn't wait for a GPU, unless the values go to the host.
function devices.on(x, device) return x.device == device and x or M.to(x, device, {non_blocking = device ~= "cpu"}) end

-- Iterates over devices in the order of their first tensor: the device, and the list's tensors there.
function devices.each(list)
  local lists, order = {}, {}
  for _, x in ipairs(list) do
    local device = x.device
    if not lists[device] then
      lists[device] = {}
      order[#order + 1] = device
    end
    table.insert(lists[device], x)
  end
  local i = 0
  return function()
    i = i + 1
    return order[i], lists[order[i]]
  end
end

return devices
