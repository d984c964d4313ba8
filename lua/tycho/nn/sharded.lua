-- tycho.distributed.fsdp: fully sharded data parallel. Each process holds a shard of each parameter, its gradient and its optimizer state.
--
-- Idea: fully_shard(net) makes one unit of net's parameters; each parameter becomes this process's rows of it (its part). While net's
-- forward runs, whole parameters take the parts' places: one exchange gathers a unit's parameters (unshard), and another returns the
-- processes' mean gradients, to each process for its rows. When an op saves a whole parameter, only a note of which part it came from is
-- kept: backward unshards again. On a GPU exchanges have a stream of their own, and the next unit's begins while this one computes
-- (prefetch).
-- Invariants: outside of a unit's forward the module's parameters are the parts; all processes visit the units in the same order; no whole
-- parameter's memory waits for the collector.
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

-- A module's unit, and a parameter's entry in a piece. The module's forward holds both: if only the keys were weak, a value that leads to
-- its key would never be freed.
local unit_of = setmetatable({}, {__mode = "kv"})
local entry_of = setmetatable({}, {__mode = "kv"})

---- rows ----
-- x's rows r * rows + 1 to (r + 1) * rows, as far as they exist.
local function rows_of(x, rank, rows)
  local d = x.shape[1]
  return M.slice(x, 1, math.min(rank * rows, d) + 1, math.min((rank + 1) * rows, d))
end
-- x with rows of zeros appended, to n rows.
local function padded(x, n)
  local d = x.shape[1]
  if d == n then return x end
  local shape = {unpack(x.shape)}
  shape[1] = n - d
  return ops.cat({x, ops.zeros(shape, {dtype = x.dtype, device = x.device})}, 1)
end

---- pieces ----
-- A piece: a unit's parameters of one dtype and device, which are exchanged together. An entry of its list: p: the part; shape: the
-- whole's; rows: rows for each process; n: their elements; at: the position of the first.
local function add(piece, p, size, rank)
  local shape = {unpack(p.shape)}
  local e = {p = p, piece = piece, shape = shape, rows = math.ceil(shape[1] / size), at = piece.width + 1, i = #piece.list + 1}
  e.n = e.rows * (M.numel(p) / math.max(shape[1], 1))
  piece.width = piece.width + e.n
  piece.list[e.i], entry_of[p] = e, e
  core.set_data(p, core.keep(ops.clone(rows_of(p:detach(), rank, e.rows))))
  p.grad = nil
end
-- The dtype in which a piece is exchanged and used. The module may have been converted, or moved, since.
local function dtype_of(piece)
  local p = piece.list[1].p
  return M.is_floating_point(p) and piece.unit.policy.param_dtype or p.dtype
end
local function device_of(piece) return piece.list[1].p.device end
-- A number that changes when any part changes.
local function version_of(piece)
  local v = 0
  for _, e in ipairs(piece.list) do v = v + M._version(e.p) end
  return v
end

-- All processes' parts, one row for each process.
local function gathered(piece)
  local parts, dtype = {}, dtype_of(piece)
  for i, e in ipairs(piece.list) do parts[i] = M.reshape(padded(M.to(e.p:detach(), dtype), e.rows), -1) end
  local own = #parts == 1 and parts[1] or ops.cat(parts, 1)
  return ops.collective(M.unsqueeze(own, 1), "all_gather", "sum", 0, 0, piece.unit.group.id)
end
-- The whole parameters from the gathered tensor, each in memory of its own.
local function wholes(piece, all)
  local size, out = #piece.unit.group.ranks, {}
  for i, e in ipairs(piece.list) do
    local shape = {unpack(e.shape)}
    shape[1] = size * e.rows
    local w = ops.slice(M.reshape(M.narrow(all, 2, e.at, e.n), shape), 1, 1, e.shape[1])
    out[i] = core.view_of(w, all) and ops.clone(w) or w
  end
  return out
end
-- The mean of all processes' gradients of whole parameters, this process's rows of each; nil for frozen ones.
local function scattered(piece, grads)
  local unit, parts, out = piece.unit, {}, {}
  local size, dtype, device = #unit.group.ranks, unit.policy.reduce_dtype or dtype_of(piece), device_of(piece)
  for i, e in ipairs(piece.list) do
    local g = e.p.requires_grad and grads[i]
    if g then parts[i] = M.reshape(padded(M.to(g, dtype), size * e.rows), size, -1)
    else parts[i] = ops.zeros({size, e.n}, {dtype = dtype, device = device}) end
  end
  local mean = ops.collective(#parts == 1 and parts[1] or ops.cat(parts, 2), "reduce_scatter", "mean", 0, 0, unit.group.id)
  for i, e in ipairs(piece.list) do
    local p = e.p
    if p.requires_grad then
      local rows = M.numel(p) > 0 and M.narrow(mean, 2, e.at, M.numel(p)) or ops.zeros({0}, {dtype = dtype, device = device})
      out[i] = M.to(M.reshape(rows, p.shape), p.dtype)
    end
  end
  return out
end

---- unshard, reshard ----
local function free_all(list) for _, x in pairs(list) do core.free(x) end end

-- Runs fn on the exchange stream, and makes the current stream wait for it.
local function exchanging(piece, fn)
  if device_of(piece) == "cpu" then return fn() end
  local result
  local s, current = distributed.beside(device_of(piece), function() result = fn() end)
  current:wait_stream(s)
  return result
end

-- Starts gathering a unit's parameters, on a GPU, while another unit computes.
local function prefetch(unit)
  for _, piece in ipairs(unit and unit.pieces or {}) do
    if device_of(piece) ~= "cpu" and not (piece.ahead or piece.again or piece.now) then
      no_grad(distributed.beside, device_of(piece), function()
        piece.ahead = {all = core.keep(scope(gathered, piece)), version = version_of(piece)}
      end)
    end
  end
end
-- The whole parameters: prefetched ones, if the parts haven't changed since, else gathered now.
local function unshard(piece)
  local a = piece.ahead
  piece.ahead = nil
  local list = {scope(function() return unpack(wholes(piece, a and a.version == version_of(piece) and a.all or gathered(piece))) end)}
  if a then core.free(a.all) end
  return list
end

-- Gradients passed on to backward, which holds them itself; these handles can go when the next unit's come.
local handed = {}
local function forget_handed()
  free_all(handed)
  handed = {}
end
-- Frees what backward has unsharded: it is no longer needed, or not known to be; then it is unsharded once more.
local function reshard_again(unit)
  for _, piece in ipairs(unit.pieces) do
    if piece.again then free_all(piece.again.list) end
    piece.again = nil
  end
end
local function forget(unit)
  reshard_again(unit)
  for _, piece in ipairs(unit.pieces) do
    if piece.ahead then core.free(piece.ahead.all) end
    piece.ahead = nil
  end
end

-- From a piece's parts to its whole parameters; in backward from whole gradients to the parts' gradients.
local Whole = autograd.Function {
  forward = function(ctx, piece, ...)
    ctx.piece, ctx.n = piece, select("#", ...)
    ctx:set_materialize_grads(false)
    local out, frozen = unshard(piece), {}
    for i, e in ipairs(piece.list) do if not e.p.requires_grad then frozen[#frozen + 1] = out[i] end end
    ctx:mark_non_differentiable(unpack(frozen))
    return unpack(out)
  end,
  backward = function(ctx, ...)
    local piece, grads = ctx.piece, {...}
    forget_handed()
    if piece.again then free_all(piece.again.list) end     -- all that needed them has run
    piece.again = nil
    local added = piece.added or {}
    for i, w in pairs(added) do
      local g = grads[i]
      grads[i] = core.keep(g and w + g or w)
      if g then free_all {w, g} end
    end
    piece.added = nil
    if piece.unit.accumulates then
      piece.added = grads
      for _, g in pairs(grads) do core.keep(g) end
      return
    end
    local out = {scope(function() return unpack(scattered(piece, grads), 1, ctx.n) end)}
    free_all(grads)
    handed = out
    return nil, unpack(out, 1, ctx.n)
  end}
-- Marks the end of backward for a unit without trained parameters: the gradients of its inputs.
local Inputs = autograd.Function {
  forward = function(ctx, unit, ...)
    ctx.unit = unit
    return ...
  end,
  backward = function(ctx, ...)
    reshard_again(ctx.unit)
    return nil, ...
  end}

-- The whole parameters, for backward.
local function unsharded_again(piece)
  if not piece.again or piece.again.version ~= version_of(piece) then
    if piece.again then free_all(piece.again.list) end
    piece.again = {version = version_of(piece), list = no_grad(exchanging, piece, function() return unshard(piece) end)}
    for _, w in ipairs(piece.again.list) do core.keep(w) end
    prefetch(piece.unit.before)
  end
  return piece.again.list
end

---- what ops save ----
-- Packs a whole parameter, or a view of one, as a note of which it is; other tensors as they are.
local function pack(unit, x)
  for _, piece in ipairs(unit.pieces) do
    for i, w in ipairs(piece.now or {}) do
      local offset = core.view_of(x, w)
      if offset then
        local note = {piece = piece, i = i, size = {unpack(x.shape)}, stride = {unpack(x:stride())}, offset = offset,
          same = offset == 0 and x.shape == w.shape and M.is_contiguous(x), version = version_of(piece)}
        core.free(x)                       -- our own handle shouldn't hold the memory
        return note
      end
    end
  end
  return x
end
local function unpacked(v)
  if core.is_tensor(v) then return v end
  if v.version ~= version_of(v.piece) then
    fail("fully_shard: '%s', or a parameter sharded with it, was changed in place between forward and backward",
      v.piece.list[v.i].name)
  end
  local w = unsharded_again(v.piece)[v.i]
  if v.same then return w end
  return ops.strided_take(w, {}, v.size, v.stride, v.offset)
end

---- forward ----
local last                                 -- the unit whose forward began last in this pass
local depth = 0

-- fn's results, after the whole parameters are freed, except those among the results.
local function resharded(nows, ...)
  local given = {}
  tree.map({...}, function(v) if core.is_tensor(v) then given[v] = true end return v end)
  for piece, now in pairs(nows) do
    for i, w in ipairs(now.list) do
      if M._version(w) ~= now.versions[i] then
        fail("fully_shard: '%s' was changed in place in forward, where it is a temporary copy", piece.list[i].name)
      end
      if not given[w] then core.free(w) end
    end
    nows[piece] = nil
  end
  return ...
end

-- Puts the whole parameters in the parts' places while fn runs.
local function unsharded(unit, fn, ...)
  if unit.active then return fn(...) end                   -- a call within its own forward
  local recorded, nows = core.is_grad_enabled(), {}
  local function restore()
    unit.active = nil
    for _, place in ipairs(unit.places) do place.module._parts[place.name] = place.entry.p end
    for _, piece in ipairs(unit.pieces) do piece.now = nil end
  end
  local function packed(x) return pack(unit, x) end
  return resharded(nows, finally(restore, function(...)
    forget_handed()
    reshard_again(unit)
    for _, piece in ipairs(unit.pieces) do
      local parts, now = {}, {versions = {}}
      for i, e in ipairs(piece.list) do parts[i] = e.p end
      now.list = exchanging(piece, function() return {Whole(piece, unpack(parts))} end)
      for i, w in ipairs(now.list) do now.versions[i] = M._version(w) end
      piece.now, nows[piece] = now.list, now
    end
    unit.active = true
    prefetch(unit.after)
    for _, place in ipairs(unit.places) do place.module._parts[place.name] = place.entry.piece.now[place.entry.i] end
    if not (recorded and unit.reshards) then return fn(...) end
    return autograd.graph.saved_tensors_hooks(packed, unpacked, fn, ...)
  end, ...))
end

-- Arguments or results, with floating tensors converted to a dtype.
local function cast(dtype, ...)
  if not dtype then return ... end
  return unpack(tree.map({...}, function(v)
    return core.is_tensor(v) and M.is_floating_point(v) and M.to(v, dtype) or v
  end), 1, select("#", ...))
end

-- Arguments, with the tensors that require grad passed through Inputs, if the unit has no trained parameters.
local function watched(unit, ...)
  for _, piece in ipairs(unit.pieces) do
    for _, e in ipairs(piece.list) do if e.p.requires_grad then return ... end end
  end
  if not core.is_grad_enabled() then return ... end
  return unpack(tree.map({...}, function(v)
    return core.is_tensor(v) and v.requires_grad and Inputs(unit, v) or v
  end), 1, select("#", ...))
end

local function run(unit, method, self, ...)
  if depth == 0 then last = nil end
  if last and last ~= unit then last.after, unit.before = unit, last end
  last = unit
  depth = depth + 1
  local function ended()
    depth = depth - 1
    if depth == 0 then last = nil end
  end
  return cast(unit.policy.output_dtype, finally(ended, function(...)
    return unsharded(unit, method, self, watched(unit, cast(unit.policy.cast_forward_inputs and unit.policy.param_dtype or nil, ...)))
  end, ...))
end

-- net:set_requires_gradient_sync(on): whether backward exchanges the gradients of net and the sharded modules in it; if off, each process
-- adds up its own gradients of whole parameters, until a backward with it on. For gradient accumulation: fewer exchanges, more memory.
local function set_requires_gradient_sync(self, on)
  options.expect("set_requires_gradient_sync", 1, on, type(on) == "boolean", "a boolean")
  for _, m in ipairs(self:modules()) do if unit_of[m] then unit_of[m].accumulates = not on end end
end

-- Makes net[name], a method of a unit's module, run with whole parameters.
local function wrap(net, unit, name)
  local method = net[name]
  net[name] = function(self, ...)
    if self ~= net then fail "fully_shard: a copy of a sharded module can't run: copy the module before it is sharded" end
    return run(unit, method, self, ...)
  end
end
-- A module inside a unit has only parts when it is called by itself, so that raises.
local function guard(m, unit)
  local method = m.forward
  m.forward = function(self, ...)
    if not unit.active then
      fail("%s: its parameters are parts of what fully_shard spread over processes; it can run within the sharded module's forward, or by \z
        itself where it is sharded by itself", m._name)
    end
    return method(self, ...)
  end
end

---- state dicts: of whole parameters ----
-- The whole tensor of which x, a parameter's or optimizer state's tensor, is this process's rows; all processes must call it.
local function whole_of(e, x)
  local group = e.piece.unit.group
  local all = ops.collective(M.unsqueeze(padded(x:detach(), e.rows), 1), "all_gather", "sum", 0, 0, group.id)
  local shape = {unpack(e.shape)}
  shape[1] = #group.ranks * e.rows
  return core.keep(ops.clone(ops.slice(M.reshape(all, shape), 1, 1, e.shape[1])))
end
local function own_rows(e, x) return rows_of(x:detach(), e.piece.unit.group.rank, e.rows) end

local function hook_states(m, places)
  m:register_state_dict_post_hook(function(_, state, prefix)
    no_grad(function()
      for _, place in ipairs(places) do
        local name = prefix .. place.shown
        if state[name] then state[name] = whole_of(place.entry, place.entry.p) end
      end
    end)
  end)
  m:register_load_state_dict_pre_hook(function(_, state, prefix)
    for _, place in ipairs(places) do
      local name, e = prefix .. place.shown, place.entry
      local x = state[name]
      if core.is_tensor(x) then
        local fits = M.dim(x) == #e.shape
        for d = 1, #e.shape do fits = fits and x.shape[d] == e.shape[d] end
        if not fits then
          fail("load_state_dict: '%s' has shape %s, the whole parameter's is %s", name, tostring(x.shape), table.concat(e.shape, "x"))
        end
        state[name] = own_rows(e, x)
      end
    end
  end)
  m:register_load_state_dict_post_hook(function() for _, place in ipairs(places) do forget(place.entry.piece.unit) end end)
end

---- fully_shard ----
local POLICY = {param_dtype = options.none, reduce_dtype = options.none, output_dtype = options.none, cast_forward_inputs = true}
local FLOATING = {float16 = true, bfloat16 = true, float32 = true, float64 = true}
local function policy_of(who, o)
  o = options.fill(who, o, POLICY)
  for _, k in ipairs {"param_dtype", "reduce_dtype", "output_dtype"} do
    if o[k] and not FLOATING[o[k]] then fail("%s: %s must be a floating dtype, got %s", who, k, options.shown(o[k])) end
  end
  return o
end

-- Checks, before anything changes, and gives a list of net's parameters that aren't sharded yet.
local function fresh_of(net)
  local fresh = {}
  for name, p in net:named_parameters() do
    if not entry_of[p] then
      if M.dim(p) == 0 then fail("fully_shard: '%s' has no dims and can't be split into rows: give it the shape 1", name) end
      fresh[#fresh + 1] = p
    end
  end
  module.walk(net, "parameter", "", nil, function(path, p, owner, name)
    local known = not entry_of[p]
    for _, place in ipairs(known and {} or entry_of[p].piece.unit.places) do
      known = known or rawequal(place.module, owner) and place.name == name
    end
    if not known then fail("fully_shard: '%s' also belongs to a module that is sharded separately: shard both modules as one", path) end
  end)
  return fresh
end

-- fully_shard(net, {process_group=, reshard_after_forward=true, mp_policy={param_dtype=, reduce_dtype=, output_dtype=}}): from now on each
-- process holds only its rows of net's parameters, of their gradients and of the state of an optimizer made afterwards. forward gathers the
-- whole parameters, and drops them when it ends, unless reshard_after_forward = false; backward gathers them again. Gradients are the means
-- over all processes. Shard the blocks of a model first, one by one, then the model: for _, b in ipairs(net.blocks) do fully_shard(b) end
-- fully_shard(net). mp_policy: the dtypes in which parameters are exchanged and used, gradients reduced, and results returned; floating
-- arguments are converted to param_dtype too, unless cast_forward_inputs = false. State dicts have whole parameters, in all processes,
-- which must all call state_dict(). clip_grad_norm_ and GradScaler support shards; get_total_norm, of a list of gradients, gives only this
-- process's norm. net:set_requires_gradient_sync(false) lets gradients add up without exchanges, until it is true again. Gives net.
function fsdp.fully_shard(net, o)
  replicas.need_parameters("fully_shard", net)
  o = options.fill("fully_shard", o, {process_group = options.none, mesh = options.none, reshard_after_forward = true, mp_policy = {}})
  if unit_of[net] then fail "fully_shard: this module is sharded already" end
  local group = distributed.group_of("fully_shard", o.process_group or o.mesh or nil)
  local unit = {group = group, pieces = {}, places = {}, reshards = o.reshard_after_forward,
    policy = policy_of("fully_shard: mp_policy", o.mp_policy)}
  for _, k in ipairs {"param_dtype", "reduce_dtype", "output_dtype"} do unit.policy[k] = unit.policy[k] or nil end
  local fresh, kinds = fresh_of(net), {}
  replicas.compare("fully_shard", net, group, entry_of)
  replicas.share(fresh, group)
  replicas.share(net:buffers(), group)
  for _, p in ipairs(fresh) do
    local key = p.dtype .. " " .. p.device
    if not kinds[key] then
      kinds[key] = {unit = unit, list = {}, width = 0}
      unit.pieces[#unit.pieces + 1] = kinds[key]
    end
    add(kinds[key], p, #group.ranks, group.rank)
    module.sharded[p] = group
  end
  local owners, order = {}, {}
  module.walk(net, "parameter", "", nil, function(path, p, owner, name)  -- tied parameters have several places
    local e = entry_of[p]
    if e.piece.unit ~= unit then return end
    e.name = e.name or path
    if not owners[owner] then
      owners[owner] = {}
      order[#order + 1] = owner
    end
    if owners[owner][name] then return end -- a module in several places
    local place = {module = owner, name = name, shown = path:match "[^.]*$", entry = e}
    owners[owner][name] = true
    table.insert(owners[owner], place)
    unit.places[#unit.places + 1] = place
  end)
  unit_of[net] = unit
  for _, owner in ipairs(order) do
    hook_states(owner, owners[owner])
    if owner ~= net then guard(owner, unit) end
  end
  wrap(net, unit, "forward")
  net.set_requires_gradient_sync = set_requires_gradient_sync
  return net
end

-- register_fsdp_forward_method(net, name): makes net[name], a user's method such as "generate", run with whole parameters, as forward does.
function fsdp.register_fsdp_forward_method(net, name)
  local unit = unit_of[net]
  if not unit then
    fail("register_fsdp_forward_method: argument 1 must be a module that was passed to fully_shard, got %s", module.is_module(net) and
      "a " .. net._name or options.shown(net))
  end
  if type(net[name]) ~= "function" then fail("register_fsdp_forward_method: the %s has no method '%s'", net._name, tostring(name)) end
  wrap(net, unit, name)
end

-- MixedPrecisionPolicy{param_dtype=, reduce_dtype=, output_dtype=, cast_forward_inputs=true}: fully_shard's mp_policy.
function fsdp.MixedPrecisionPolicy(o) return policy_of("MixedPrecisionPolicy", o) end

---- optimizers' states ----
-- Calls fn(entry, tensor) for each tensor of the state of a part, in the same order in all processes; its result replaces the tensor.
local function each_part(opt, state, fn)
  local n = 0
  for _, group in ipairs(opt.param_groups) do
    for _, p in ipairs(group.params) do
      n = n + 1
      local e, s, names = entry_of[p], state.state[n], {}
      for name, v in pairs(e and s or {}) do if core.is_tensor(v) and M.dim(v) > 0 then names[#names + 1] = name end end
      table.sort(names)
      for _, name in ipairs(names) do s[name] = fn(e, s[name]) end
    end
  end
end
local function need_optimizer(who, opt)
  options.expect(who, 1, opt, type(opt) == "table" and type(opt.param_groups) == "table", "an optimizer")
end
-- optim_state_dict(opt): the optimizer's state_dict() with whole tensors; all processes must call it, and get it.
function fsdp.optim_state_dict(opt)
  need_optimizer("optim_state_dict", opt)
  local state = opt:state_dict()
  no_grad(each_part, opt, state, whole_of)
  return state
end
-- load_optim_state_dict(opt, state): loads such a state, or one of an optimizer of the whole model.
function fsdp.load_optim_state_dict(opt, state)
  need_optimizer("load_optim_state_dict", opt)
  options.expect("load_optim_state_dict", 2, state, type(state) == "table" and type(state.state) == "table" and
    type(state.param_groups) == "table", "an optimizer's state dict")
  local copy = {state = {}, param_groups = state.param_groups}
  for n, s in pairs(state.state) do
    copy.state[n] = {}
    for k, v in pairs(s) do copy.state[n][k] = v end
  end
  each_part(opt, copy, own_rows)
  opt:load_state_dict(copy)
end

return options.told(fsdp, "distributed.fsdp")
