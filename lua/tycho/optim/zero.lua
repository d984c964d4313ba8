-- tycho.distributed.optim: ZeroRedundancyOptimizer, an optimizer whose state is spread over the processes that train one model.
--
-- Idea: it is an optimizer of the requested class that sees only the gradients of this process's share of the parameters, so that it makes
-- state for these only; after each step the processes exchange the new values of their shares. Invariant: gradients are equal in all
-- processes (DistributedDataParallel ensures that), and so parameters stay equal.
local core = require "tycho.core"
local options = require "tycho.options"
local replicas = require "tycho.nn.replicas"
local distributed = require "tycho.distributed"
local fail = options.fail
local ops, M = core.ops, core.methods
local zero = {}

-- Assigns parameters to processes, largest first, each to the one with the least so far. Gives the owner by parameter, and the list by
-- process.
local function shares(opt, size)
  local list, at, load, owner, of = {}, {}, {}, {}, {}
  for _, group in ipairs(opt.param_groups) do
    for _, p in ipairs(group.params) do
      list[#list + 1] = p
      at[p] = #list
    end
  end
  table.sort(list, function(a, b)
    local x, y = M.numel(a), M.numel(b)
    if x ~= y then return x > y end
    return at[a] < at[b]
  end)
  for r = 0, size - 1 do load[r], of[r] = 0, {} end
  for _, p in ipairs(list) do
    local least = 0
    for r = 1, size - 1 do if load[r] < load[least] then least = r end end
    owner[p], load[least] = least, load[least] + M.numel(p)
    table.insert(of[least], p)
  end
  return owner, of
end

-- ZeroRedundancyOptimizer(params, {optimizer_class=, process_group=, ...}): an optimizer of that class, with its options, whose
-- state for each parameter is kept in one process only; all processes need the same gradients, as DistributedDataParallel gives them. Each
-- step ends with an exchange of the changed parameters. Schedulers and GradScaler accept it as any optimizer. state_dict() has this
-- process's share, until consolidate_state_dict(to) has collected all shares in one process; load_state_dict takes a whole state and keeps
-- the share.
function zero.ZeroRedundancyOptimizer(params, o)
  local who = "ZeroRedundancyOptimizer"
  if type(o) ~= "table" or o.optimizer_class == nil then fail(who .. ": an option optimizer_class is needed, such as optim.AdamW") end
  local given = {}
  for k, v in pairs(o) do given[k] = v end
  local group, class = distributed.group_of(who, o.process_group), o.optimizer_class
  given.optimizer_class, given.process_group, given.parameters_as_bucket_view, given.overlap_with_ddp = nil, nil, nil, nil
  if type(class) ~= "table" or not (getmetatable(class) or {}).__call then
    fail("%s: optimizer_class must be an optimizer's class, got %s", who, options.shown(class))
  end
  local opt = class(params, given)
  for _, g in ipairs(opt.param_groups) do replicas.refuse_parts(who, g.params) end
  if not opt.apply_gradients then fail("%s: can't be used with %s, which needs all gradients together", who, opt._name) end
  local owner, of = shares(opt, #group.ranks)
  local apply, state_dict, load = opt.apply_gradients, opt.state_dict, opt.load_state_dict
  local whole                              -- the whole state, which consolidate_state_dict has collected here

  function opt.apply_gradients(self, scaling)
    whole = nil
    local hidden = {}
    for p, rank in pairs(owner) do
      if rank ~= group.rank and p.grad then hidden[p], p.grad = p.grad, nil end
    end
    options.finally(function() for p, g in pairs(hidden) do p.grad = g end end, apply, self, scaling)
    for rank = 0, #group.ranks - 1 do replicas.share(of[rank], group, true, rank) end
  end
  function opt.add_param_group() fail(who .. ": parameters can't be added: they are already divided among the processes") end

  -- consolidate_state_dict(to): the process of that rank, by default the group's first, gets all states; all processes must call it.
  function opt.consolidate_state_dict(self, to)
    to = distributed.within("consolidate_state_dict", to or group.ranks[1], group)
    local mine = state_dict(self)
    local all = {state = {}, param_groups = mine.param_groups}
    local n = 0
    for _, g in ipairs(self.param_groups) do
      for _, p in ipairs(g.params) do
        n = n + 1
        local from, s = owner[p], {}
        local what = {}
        for name, v in pairs(from == group.rank and mine.state[n] or {}) do
          what[#what + 1] = core.is_tensor(v) and {name = name, shape = {unpack(v.shape)}, dtype = v.dtype} or {name = name, value = v}
        end
        local told = {what}
        distributed.broadcast_object_list(told, group.ranks[from + 1], group)
        for _, w in ipairs(told[1]) do
          if not w.dtype then s[w.name] = w.value
          else
            local v = from == group.rank and mine.state[n][w.name]
              or group.rank == to and ops.empty(w.shape, {dtype = w.dtype, device = p.device})
            if from ~= to then
              if group.rank == from then distributed.send(v, group.ranks[to + 1], group)
              elseif group.rank == to then distributed.recv(v, group.ranks[from + 1], group) end
            end
            if group.rank == to then s[w.name] = core.keep(v) end
          end
        end
        if next(s) then all.state[n] = s end
      end
    end
    if group.rank == to then whole = all end
  end
  function opt.state_dict(self) return whole or state_dict(self) end
  function opt.load_state_dict(self, state)
    whole = nil
    load(self, state)
    for p in pairs(owner) do if owner[p] ~= group.rank then self.state[p] = nil end end
  end
  return opt
end

return options.told(zero, "distributed.optim")
