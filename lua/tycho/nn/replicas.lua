-- Modules of which each process has a copy, equal at the start: for DistributedDataParallel and fully_shard.
local core = require "tycho.core"
local no_grad = require("tycho.modes").no_grad
local flat = require "tycho.nn.flat"
local distributed = require "tycho.distributed"
local options = require "tycho.options"
local fail, shown = options.fail, options.shown
local module = require "tycho.nn.module"
local ops, M = core.ops, core.methods
local replicas = {}

-- Sets tensors to those of one process of the group (from: its position there, by default 0); one exchange for each dtype and device.
-- plain: in the current stream, so that a compiled step can record it.
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

-- Refuses sharded parameters, which copying from one process would overwrite.
function replicas.refuse_parts(who, params)
  for _, p in ipairs(params) do
    if module.sharded[p] then fail("%s: isn't needed, as fully_shard has sharded the parameters", who) end
  end
end

-- Before any exchange: raises unless the processes' modules have the same structure, except for parameters in skip.
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
