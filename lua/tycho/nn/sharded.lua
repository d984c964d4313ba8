-- tycho.distributed.fsdp: fully sharded data parallel. Of each parameter a process holds a part, its gradient and its optimizer's state.
--
-- Idea: fully_shard(net) makes one unit of net's parameters; each becomes the process's rows of it. While net's forward runs, the whole
-- parameters stand in their places: a unit's are brought together by one exchange, and their gradients, by another, come back as the
-- processes' mean, each to where its rows are. What ops save of whole parameters is no more than a note of which part it was: backward
-- brings the unit together again. On a GPU exchanges have a stream of their own, and the next unit's begins while this one computes.
-- Invariant: outside of a unit's forward the module's parameters are the parts; all processes go through the units in the same order.
local core = require "tycho.core"
local modes = require "tycho.modes"
local module = require "tycho.nn.module"
local replicas = require "tycho.nn.replicas"
local autograd = require "tycho.autograd"
local distributed = require "tycho.distributed"
local options = require "tycho.options"
local tree = require "tycho.tree"
local fail, no_grad, scope, finally = options.fail, modes.no_grad, modes.scope, options.finally
local ops, M = core.ops, core.methods
local fsdp = {}

local unit_of = setmetatable({}, {__mode = "k"})         -- by module
local part_of = setmetatable({}, {__mode = "k"})         -- by parameter: {piece, its position there}

---- rows ----
-- x's rows r * rows + 1 to (r + 1) * rows; as many as there are.
local function rows_of(x, rank, rows)
  local d = x.shape[1]
  return M.slice(x, 1, math.min(rank * rows, d) + 1, math.min((rank + 1) * rows, d))
end
-- x with rows of zeros below, so that there are n.
local function padded(x, n)
  local d = x.shape[1]
  if d == n then return x end
  local shape = {unpack(x.shape)}
  shape[1] = n - d
  return ops.cat({x, ops.zeros(shape, {dtype = x.dtype, device = x.device})}, 1)
end

---- units ----
-- A unit's parameters of one dtype: what is exchanged at once. Of each: p, the part; the whole's shape; rows a process; elements a row.
local function new_piece(unit, dtype, device) return {unit = unit, dtype = dtype, device = device, list = {}, width = 0} end

local function add(piece, p, size, rank)
  local shape = {unpack(p.shape)}
  if #shape == 0 then fail "fully_shard: a parameter without dims can't be sharded: make it one of shape 1" end
  local e = {p = p, shape = shape, rows = math.ceil(shape[1] / size), at = piece.width + 1}
  e.n = e.rows * (M.numel(p) / math.max(shape[1], 1))
  piece.width = piece.width + e.n
  piece.list[#piece.list + 1], e.i = e, #piece.list + 1
  part_of[p] = {piece, e}
  core.set_data(p, core.keep(ops.clone(rows_of(p:detach(), rank, e.rows))))
  p.grad = nil
end

-- All processes' parts: a row for each process. No gradient.
local function exchanged(piece, tensors)
  local parts = {}
  for i, e in ipairs(piece.list) do parts[i] = M.reshape(padded(tensors[i], e.rows), -1) end
  local own = #parts == 1 and parts[1] or ops.cat(parts, 1)
  return ops.collective(M.unsqueeze(own, 1), "all_gather", "sum", 0, 0, piece.unit.group.id)
end
-- The whole parameters out of such a tensor.
local function wholes(piece, all)
  local size, out = #piece.unit.group.ranks, {}
  for i, e in ipairs(piece.list) do
    local shape = {unpack(e.shape)}
    shape[1] = size * e.rows
    out[i] = ops.slice(M.reshape(M.narrow(all, 2, e.at, e.n), shape), 1, 1, e.shape[1])
  end
  return out
end
-- The mean of all processes' gradients of whole parameters, this one's rows of each; nil where none was asked for.
local function scattered(piece, grads)
  local unit, parts, out = piece.unit, {}, {}
  local size, dtype = #unit.group.ranks, unit.policy.reduce_dtype or piece.dtype
  for i, e in ipairs(piece.list) do
    local g = e.p.requires_grad and grads[i]
    if g then parts[i] = M.reshape(padded(M.to(g, dtype), size * e.rows), size, -1)
    else parts[i] = ops.zeros({size, e.n}, {dtype = dtype, device = piece.device}) end
  end
  local mean = ops.collective(#parts == 1 and parts[1] or ops.cat(parts, 2), "reduce_scatter", "mean", 0, 0, unit.group.id)
  for i, e in ipairs(piece.list) do
    local p = e.p
    if p.requires_grad then
      local rows = M.numel(p) > 0 and M.narrow(mean, 2, e.at, M.numel(p)) or ops.zeros({0}, {dtype = dtype, device = piece.device})
      out[i] = M.to(M.reshape(rows, p.shape), p.dtype)
    end
  end
  return out
end

-- Runs fn where a unit's exchanges go, which is waited for in the stream.
local function in_turn(piece, fn)
  if piece.device == "cpu" then return fn() end
  local result
  local s, current = distributed.beside(piece.device, function() result = fn() end)
  current:wait_stream(s)
  return result
end

local function as_exchanged(piece)
  local out = {}
  for i, e in ipairs(piece.list) do out[i] = M.to(e.p:detach(), piece.dtype) end
  return out
end
local function versions(piece)
  local v = 0
  for _, e in ipairs(piece.list) do v = v + M._version(e.p) end
  return v
end

-- Begins to bring the next unit's parameters together, on a GPU, while this one's are computed with.
local function ahead(unit)
  for _, piece in ipairs(unit and unit.pieces or {}) do
    if piece.device ~= "cpu" and not (piece.ahead or piece.again or piece.now) then
      no_grad(distributed.beside, piece.device, function()
        piece.ahead = {all = core.keep(scope(function() return exchanged(piece, as_exchanged(piece)) end)), version = versions(piece)}
      end)
    end
  end
end
-- The whole parameters, of what was begun ahead or of tensors(). Their memory is what this file is about: none waits for the collector.
local function brought_together(piece, tensors)
  local a = piece.ahead
  piece.ahead = nil
  local list = {scope(function()
    return unpack(wholes(piece, a and a.version == versions(piece) and a.all or exchanged(piece, tensors())))
  end)}
  if a then core.free(a.all) end
  return list
end
local function free_all(list) for _, x in pairs(list) do core.free(x) end end
local handed = {}                          -- handles of gradients that backward has taken
local function forget_handed()
  free_all(handed)
  handed = {}
end

-- From the parts to the whole parameters; its gradient goes the way back.
local Whole = autograd.Function {
  forward = function(ctx, piece, ...)
    ctx.piece, ctx.n = piece, select("#", ...)
    ctx:set_materialize_grads(false)
    local out, frozen = brought_together(piece, function() return as_exchanged(piece) end), {}
    for i, e in ipairs(piece.list) do if not e.p.requires_grad then frozen[#frozen + 1] = out[i] end end
    ctx:mark_non_differentiable(unpack(frozen))
    return unpack(out)
  end,
  backward = function(ctx, ...)
    local piece, grads = ctx.piece, {...}
    forget_handed()
    if piece.again then free_all(piece.again.list) end     -- all that needed them has been
    piece.again = nil
    local out = {scope(function() return unpack(scattered(piece, grads), 1, ctx.n) end)}
    free_all(grads)
    handed = out
    return nil, unpack(out, 1, ctx.n)
  end}

-- The whole parameters, brought together again for backward.
local function again(piece)
  if not piece.again or piece.again.version ~= versions(piece) then
    piece.again = {version = versions(piece), list = no_grad(in_turn, piece, function()
      return brought_together(piece, function() return as_exchanged(piece) end)
    end)}
    for _, w in ipairs(piece.again.list) do core.keep(w) end
    ahead(piece.unit.before)
  end
  return piece.again.list
end

-- What ops save of whole parameters, as a note of where it is; other tensors as they are.
local function pack(unit, x)
  for _, piece in ipairs(unit.pieces) do
    for i, w in ipairs(piece.now or {}) do
      local offset = core.view_of(x, w)
      if offset and offset >= 0 then
        local note = {piece = piece, i = i, size = {unpack(x.shape)}, stride = {unpack(x:stride())}, offset = offset,
          same = offset == 0 and x.shape == w.shape and M.is_contiguous(x) and M.is_contiguous(w), version = versions(piece)}
        core.free(x)
        return note
      end
    end
  end
  return x
end
local function unpacked(v)
  if core.is_tensor(v) then return v end
  if v.version ~= versions(v.piece) then fail "fully_shard: a parameter was changed in place between forward and backward" end
  local w = again(v.piece)[v.i]
  if v.same then return w end
  return ops.strided_take(M.contiguous(w), {}, v.size, v.stride, v.offset)
end

---- forward ----
local last                                 -- the unit whose forward has begun last in this pass
local depth = 0

-- The whole parameters stand where the parts were, while fn runs.
local function within(unit, fn, ...)
  local recorded = core.is_grad_enabled()
  forget_handed()
  for _, piece in ipairs(unit.pieces) do
    local parts = {}
    for i, e in ipairs(piece.list) do parts[i] = e.p end
    piece.now = in_turn(piece, function() return {Whole(piece, unpack(parts))} end)
  end
  ahead(unit.after)
  for _, place in ipairs(unit.places) do
    place.module._parts[place.name] = place.piece.now[place.i]
  end
  local function restore()
    for _, place in ipairs(unit.places) do place.module._parts[place.name] = place.p end
    for _, piece in ipairs(unit.pieces) do
      free_all(piece.now)
      piece.now = nil
    end
  end
  if not (recorded and unit.reshards) then return finally(restore, fn, ...) end
  return finally(restore, autograd.graph.saved_tensors_hooks, function(x) return pack(unit, x) end, unpacked, fn, ...)
end

-- Floating tensors of arguments or results, in a dtype.
local function cast(dtype, ...)
  if not dtype then return ... end
  local n = select("#", ...)
  return unpack(tree.map({...}, function(v)
    return core.is_tensor(v) and M.is_floating_point(v) and M.to(v, dtype) or v
  end), 1, n)
end

local function forward(unit, inner, ...)
  if depth == 0 then last = nil end
  if last and last ~= unit then last.after, unit.before = unit, last end
  last = unit
  depth = depth + 1
  return cast(unit.policy.output_dtype, finally(function() depth = depth - 1 end, within, unit, inner,
    cast(unit.policy.cast_forward_inputs and unit.policy.param_dtype or nil, ...)))
end

---- fully_shard ----
local POLICY = {param_dtype = false, reduce_dtype = false, output_dtype = false, cast_forward_inputs = true}

-- Whole tensors for parts that lie as parameter e's rows do, as its optimizer's state does; all processes call it.
local function whole_of(piece, e, x)
  local all = ops.collective(M.unsqueeze(padded(x:detach(), e.rows), 1), "all_gather", "sum", 0, 0, piece.unit.group.id)
  local shape = {unpack(e.shape)}
  shape[1] = #piece.unit.group.ranks * e.rows
  return core.keep(ops.clone(ops.slice(M.reshape(all, shape), 1, 1, e.shape[1])))
end
local function own_rows(piece, e, x) return rows_of(x:detach(), piece.unit.group.rank, e.rows) end

-- State dicts have whole parameters.
local function hook_states(net, unit)
  net:register_state_dict_post_hook(function(_, state, prefix)
    no_grad(function()
      for _, place in ipairs(unit.places) do
        local name = prefix .. place.path
        if state[name] then state[name] = whole_of(place.piece, place.piece.list[place.i], place.p) end
      end
    end)
  end)
  net:register_load_state_dict_pre_hook(function(_, state, prefix)
    for _, place in ipairs(unit.places) do
      local name, e = prefix .. place.path, place.piece.list[place.i]
      local x = state[name]
      if core.is_tensor(x) then
        local fits = M.dim(x) == #e.shape
        for d = 1, #e.shape do fits = fits and x.shape[d] == e.shape[d] end
        if not fits then
          fail("load_state_dict: '%s' has shape %s, the whole parameter's is %s", name, tostring(x.shape), table.concat(e.shape, "x"))
        end
        state[name] = own_rows(place.piece, e, x)
      end
    end
  end)
end

-- fully_shard(net, {process_group=, reshard_after_forward=true, mp_policy={param_dtype=, reduce_dtype=, output_dtype=}}): from now on each
-- process holds its rows of net's parameters, of their gradients and of what an optimizer made after it keeps of them; forward brings the
-- whole ones together, and drops them when it ends, unless reshard_after_forward = false; backward does so again. Gradients are the means
-- of all processes'. First the blocks of a model, one by one, then the model: for _, b in ipairs(net.blocks) do fully_shard(b) end
-- fully_shard(net). mp_policy: the dtypes in which parameters are exchanged and computed with, gradients are reduced, and results given;
-- floating arguments become param_dtype too, unless cast_forward_inputs = false. State dicts have whole parameters, in all processes, which
-- must all call state_dict(). Gives net.
function fsdp.fully_shard(net, o)
  replicas.need_parameters("fully_shard", net)
  o = options.fill("fully_shard", o, {process_group = false, mesh = false, reshard_after_forward = true, mp_policy = {}})
  if unit_of[net] then fail "fully_shard: this module is sharded already" end
  local group = distributed.group_of("fully_shard", o.process_group or o.mesh or nil)
  local unit = {group = group, pieces = {}, places = {}, reshards = o.reshard_after_forward,
    policy = options.fill("fully_shard: mp_policy", o.mp_policy, POLICY)}
  for _, k in ipairs {"param_dtype", "reduce_dtype", "output_dtype"} do unit.policy[k] = unit.policy[k] or nil end
  module.walk(net, "parameter", "", nil, function(path, p, owner, name)
    local known = not part_of[p]
    for _, place in ipairs(known and {} or part_of[p][1].unit.places) do
      known = known or rawequal(place.module, owner) and place.name == name
    end
    if not known then fail("fully_shard: '%s' is also a part of a module that is sharded by itself: both must be of one unit", path) end
  end)
  replicas.compare("fully_shard", net, group, part_of)
  local fresh, by_dtype = {}, {}
  for _, p in ipairs(net:parameters()) do if not part_of[p] then fresh[#fresh + 1] = p end end
  replicas.share(fresh, group)
  replicas.share(net:buffers(), group)
  for _, p in ipairs(fresh) do
    local dtype = M.is_floating_point(p) and unit.policy.param_dtype or p.dtype
    local key = dtype .. " " .. p.device
    if not by_dtype[key] then
      by_dtype[key] = new_piece(unit, dtype, p.device)
      unit.pieces[#unit.pieces + 1] = by_dtype[key]
    end
    add(by_dtype[key], p, #group.ranks, group.rank)
    module.sharded[p] = group
  end
  module.walk(net, "parameter", "", nil, function(path, p, owner, name)  -- tied ones stand in several places
    local piece, e = unpack(part_of[p])
    if piece.unit == unit then
      unit.places[#unit.places + 1] = {module = owner, name = name, path = path, p = p, piece = piece, i = e.i}
    end
  end)
  unit_of[net] = unit
  local inner = net.forward
  net.forward = function(self, ...)
    if self ~= net then fail "fully_shard: a copy of a sharded module can't run: copy it before" end
    return forward(unit, inner, self, ...)
  end
  hook_states(net, unit)
  return net
end

-- MixedPrecisionPolicy{param_dtype=, reduce_dtype=, output_dtype=, cast_forward_inputs=true}: fully_shard's mp_policy.
function fsdp.MixedPrecisionPolicy(o) return options.fill("MixedPrecisionPolicy", o, POLICY) end

-- By the optimizer's numbers: its parameters.
local function numbered(opt)
  local list = {}
  for _, group in ipairs(opt.param_groups) do for _, p in ipairs(group.params) do list[#list + 1] = p end end
  return list
end
local function each_part(opt, state, fn)
  local list = numbered(opt)
  for n, s in pairs(state.state) do
    local at = part_of[list[n]]
    if at then
      local names = {}
      for name, v in pairs(s) do if core.is_tensor(v) and M.dim(v) > 0 then names[#names + 1] = name end end
      table.sort(names)                    -- all processes in one order
      for _, name in ipairs(names) do s[name] = fn(at[1], at[2], s[name]) end
    end
  end
end
-- optim_state_dict(opt): the optimizer's state_dict() with whole tensors; all processes call it, and get it.
function fsdp.optim_state_dict(opt)
  local state = opt:state_dict()
  no_grad(function() each_part(opt, state, whole_of) end)
  return state
end
-- load_optim_state_dict(opt, state): from such a state, or one of an optimizer of the whole model.
function fsdp.load_optim_state_dict(opt, state)
  local copy = {state = {}, param_groups = state.param_groups}
  for n, s in pairs(state.state) do
    copy.state[n] = {}
    for k, v in pairs(s) do copy.state[n][k] = v end
  end
  each_part(opt, copy, own_rows)
  opt:load_state_dict(copy)
end

return options.told(fsdp, "distributed.fsdp")
