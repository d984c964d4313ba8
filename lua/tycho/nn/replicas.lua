-- Modules of which each process has one, that begin equal: what DistributedDataParallel and fully_shard do first.
local core = require "tycho.core"
local no_grad = require("tycho.modes").no_grad
local flat = require "tycho.nn.flat"
local distributed = require "tycho.distributed"
local options = require "tycho.options"
local fail, shown = options.fail, options.shown
local module = require "tycho.nn.module"
local ops, M = core.ops, core.methods
local replicas = {}

-- Tensors become those of a process of the group (from: its position there, 0 unless given), those of a dtype and device at once. plain: in
-- the current stream, as a record of a compiled step can hold it.
function replicas.share(tensors, group, plain, from)
  from = from or 0
  local kinds, order = {}, {}
  for _, t in ipairs(tensors) do
    local key = t.dtype .. " " .. t.device
    if not kinds[key] then
      kinds[key] = {}
      order[#order + 1] = key
    end
    table.insert(kinds[key], t:detach())
  end
  no_grad(function()
    for _, key in ipairs(order) do
      local list = kinds[key]
      local whole = flat.join(list)
      if plain then ops.collective_(whole, "broadcast", "sum", from, 0, group.id)
      else distributed.broadcast(whole, group.ranks[from + 1], group) end
      if group.rank ~= from then flat.each(whole, list, function(i, part) M.copy_(list[i], part) end) end
    end
  end)
end

function replicas.need_parameters(who, net)
  if not module.is_module(net) then fail("%s: argument 1 must be a module, got %s", who, shown(net)) end
  local lazy = module.incomplete[net:parameters()]
  if lazy then fail("%s: %s has no parameters yet: call the module with an input before it is wrapped", who, lazy) end
end

-- What copies one process's parameters to the others would take their parts from them.
function replicas.refuse_parts(who, params)
  for _, p in ipairs(params) do
    if module.sharded[p] then fail("%s: the parameters are parts of what fully_shard has spread, which does what is needed", who) end
  end
end

-- Before anything is exchanged: the modules must have the same structure, but for the parameters that skip has.
function replicas.compare(who, net, group, skip)
  local mine = {}
  for name, p in net:named_parameters() do
    if not (skip and skip[p]) then
      mine[#mine + 1] = ("%s: %s %s%s"):format(name, p.dtype, tostring(p.shape), p.requires_grad and "" or ", frozen")
    end
  end
  local theirs = {mine}
  distributed.broadcast_object_list(theirs, group.ranks[1], group)
  for i = 1, math.max(#mine, #theirs[1]) do
    if mine[i] ~= theirs[1][i] then
      fail("%s: parameter %d is %s here and %s in process %d", who, i, mine[i] or "missing", theirs[1][i] or "missing", group.ranks[1])
    end
  end
end

return replicas
