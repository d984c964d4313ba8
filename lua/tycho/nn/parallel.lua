-- Modules that several processes train together, over tycho.distributed: DistributedDataParallel and SyncBatchNorm.
--
-- Idea: each process has the whole model and a share of the batch. Parameters are grouped in buckets, last layers first, in the order in
-- which backward reaches them. As soon as a bucket has its gradients they are joined into one tensor, which is averaged over the processes
-- while backward goes on. Invariant: parameters are equal in all processes, since they begin equal (rank 0's) and get the same gradients.
local core = require "tycho.core"
local modes = require "tycho.modes"
local module = require "tycho.nn.module"
local lib = require "tycho.nn.layer"
local flat = require "tycho.nn.flat"
local replicas = require "tycho.nn.replicas"
local distributed = require "tycho.distributed"
local options = require "tycho.options"
local tree = require "tycho.tree"
local fail, no_grad = options.fail, modes.no_grad
local ops, M = core.ops, core.methods

---- DistributedDataParallel ----
local Parallel = module.Module:extend "DistributedDataParallel"

local FIRST = 2 ^ 20                    -- bytes of the first bucket, so that the first exchange begins early
-- Buckets: lists of parameters of one dtype and device, from the last on, of up to cap bytes. Also gives each parameter's bucket.
local function buckets_of(params, cap)
  local list, open, of = {}, {}, {}
  for i = #params, 1, -1 do
    local p = params[i]
    local key, bytes = p.dtype .. " " .. p.device, M.numel(p) * M.element_size(p)
    local b = open[key]
    if not b or b.bytes + bytes > b.cap then
      b = {params = {}, bytes = 0, cap = #list == 0 and math.min(cap, FIRST) or cap}
      open[key] = b
      list[#list + 1] = b
    end
    table.insert(b.params, p)
    b.bytes = b.bytes + bytes
    of[p] = b
  end
  return list, of
end

-- Begins a pass, in which no gradient has come yet.
local function begin(self)
  self.next, self.came, self.unused = 1, {}, nil
  for _, b in ipairs(self.buckets) do b.left, b.means = #b.params, nil end
end

-- A bucket's gradients as one tensor; zeros where there is none.
local function gathered(b)
  local grads = {}
  for i, p in ipairs(b.params) do grads[i] = core.grad_of(p) or ops.zeros(p.shape, {dtype = p.dtype, device = p.device}) end
  local whole = flat.join(grads)
  for _, g in ipairs(grads) do if not rawequal(g, whole) then core.free(g) end end      -- their memory shouldn't wait for the collector
  return whole
end
-- Writes the means into the parameters' gradients, in place, since others may hold these.
local function spread(b, whole, used)
  flat.each(whole, b.params, function(i, part)
    local p = b.params[i]
    if used and not used[p] then return end
    local own = core.grad_of(p)
    if own then
      core.mark_as(part, own)
      M.copy_(own, part)
      core.mark_as(own, part)              -- it is scaled if it was before
      core.free(own)                       -- the handle shouldn't wait for the collector
    else p.grad = M.copy_(ops.clone(p:detach()), part) end                                     -- laid out as the parameter
  end)
end

-- The parameters that any process has used; nil if all are used. idle: this process has used none.
local function used_by_any(self, idle)
  if not self.finds then return nil end
  local order, flags, used = {}, {}, {}
  for _, b in ipairs(self.buckets) do
    for _, p in ipairs(b.params) do
      order[#order + 1], flags[#flags + 1] = p, not idle and (self.came[p] == "used" or p.grad) and 1 or 0
    end
  end
  local all = core.from_value(flags, "int32")
  distributed.all_reduce(all, "max", self.group)
  for i, v in ipairs(all:totable()) do used[order[i]] = v == 1 end
  return used
end

---- exchanging a bucket ----
local Bucket = {}
Bucket.__index = Bucket
-- All its gradients as one vector.
function Bucket:buffer() return self._whole end
-- Its gradients: views of the buffer, shaped as the parameters.
function Bucket:gradients()
  local out = {}
  flat.each(self._whole, self._params, function(i, part) out[i] = part end)
  return out
end
function Bucket:parameters() return {unpack(self._params)} end
-- Its number, from 1, in the order in which buckets are exchanged.
function Bucket:index() return self._index end
function Bucket:is_last() return self._is_last end

-- Begins to average a bucket's gradients. Gives a function that waits for the means, in a tensor like whole.
local function exchange(self, k, whole, async)
  local hook = self.comm_hook
  if not hook then
    local work = async and distributed.all_reduce(whole, "mean", {group = self.group, async_op = true})
    return function()
      if not work then return ops.collective_(whole, "all_reduce", "mean", 0, 0, self.group.id) end     -- compiled steps may have it
      work:wait()
      return whole
    end
  end
  local given = hook.fn(hook.state, setmetatable({_whole = whole, _params = self.buckets[k].params, _index = k,
    _is_last = k == #self.buckets, group = self.group, async_op = async}, Bucket))
  return function()
    local means = given
    if modes.callable(given) then means = given() end
    if not core.is_tensor(means) or means.shape ~= whole.shape then
      fail("DistributedDataParallel: the communication hook must give a tensor of shape %s, or a function that gives it, got %s",
        tostring(whole.shape), core.is_tensor(means) and "shape " .. tostring(means.shape) or options.shown(means))
    end
    return means
  end
end

---- uneven numbers of batches ----
-- In a join, each forward of a process that has batches begins with an exchange of what the processes do, which those without answer until
-- none has any: so exchanges meet their like. Only the first of those with batches counts where one process's values are taken.
local IDLE, ALONE, SYNCING = 0, 1, 2
-- Tells the others what this process does; gives whether any process syncs, or nil where none has batches.
local function told(self, what)
  local join, first, syncs = self.joining, nil, false
  local all = ops.zeros(#self.group.ranks, {dtype = "int32", device = join.device})
  no_grad(function() all[self.group.rank + 1] = what end)
  distributed.all_reduce(all, "sum", self.group)
  join.active = 0
  for i, v in ipairs(all:totable()) do
    if v ~= IDLE then first, syncs, join.active = first or i - 1, syncs or v == SYNCING, join.active + 1 end
  end
  if not first then return nil end
  if join.early and join.active < #self.group.ranks then fail "join: a process has no more batches" end
  join.first = first
  return syncs
end
-- A bucket's means, over the processes that have batches if the join says so.
local function means_of(self, b)
  local means, join = b.means(), self.joining
  if join and not join.initial then M.mul_(means, #self.group.ranks / join.active) end
  return means
end
local function share_buffers(self)
  replicas.share(self.module:buffers(), self.group, not self.overlaps, self.joining and self.joining.first)
end
-- Answers the exchanges of those that have batches, with gradients of 0, until none has.
local function answer(self)
  local join, syncs = self.joining, told(self, IDLE)
  while syncs ~= nil do
    if syncs then
      if self.broadcasts and self.training then share_buffers(self) end
      for k, b in ipairs(self.buckets) do
        local p = b.params[1]
        b.means = exchange(self, k, ops.zeros(b.bytes / M.element_size(p), {dtype = p.dtype, device = p.device}), true)
      end
      used_by_any(self, true)
      for _, b in ipairs(self.buckets) do b.means() end
      begin(self)
    end
    syncs = told(self, IDLE)
  end
  if not join.first then return end
  replicas.share(self.module:parameters(), self.group, nil, join.first)
  replicas.share(self.module:buffers(), self.group, nil, join.first)
end
-- A hook that exchanges gradients in a 16-bit dtype: half the bytes.
local function compressing(dtype)
  return function(group, bucket)
    local whole = bucket:buffer()
    local small = M.to(whole, dtype)
    local work = distributed.all_reduce(small, "mean", {group = group or bucket.group, async_op = bucket.async_op})
    return function()
      if bucket.async_op then work:wait() end
      return M.to(small, whole.dtype)
    end
  end
end

-- Notes that p's gradient is there, or won't come (how: "unused"; noted in backward, so that exchanges that processes make after forward
-- come first in all of them). Buckets are exchanged in their order, which is the same in all processes.
local function arrived(self, p, how)
  if not self.syncing then return end
  local unused = self.unused
  self.unused = nil
  for _, q in ipairs(unused or {}) do arrived(self, q, "unused") end
  if not how and self.absent[p] then
    fail("DistributedDataParallel: %s got a gradient, though the last forward's results don't depend on it: with \z
      find_unused_parameters, several forwards before one backward need {overlap = false}", self.names[p])
  end
  if self.came[p] then
    fail("DistributedDataParallel: %s got a gradient twice before all others had theirs: several backwards for one step need \z
      {overlap = false}, or no_sync for all but the last", self.names[p])
  end
  self.came[p] = how or "used"
  if how then self.absent[p] = true end
  local b = self.bucket_of[p]
  b.left = b.left - 1
  local ok, err = pcall(no_grad, function()
    while self.buckets[self.next] and self.buckets[self.next].left == 0 do
      local full = self.buckets[self.next]
      full.means = exchange(self, self.next, gathered(full), true)
      self.next = self.next + 1
    end
    if self.next <= #self.buckets then return end
    local used = used_by_any(self)
    for _, full in ipairs(self.buckets) do
      spread(full, means_of(self, full), used)
    end
    begin(self)
  end)
  if ok then return end
  for _, full in ipairs(self.buckets) do if full.means then pcall(no_grad, full.means) end end     -- exchanges that have begun
  begin(self)
  error(err, 0)
end

-- Raises if a backward left parameters without a gradient, so that buckets weren't exchanged.
local function check(self)
  if next(self.came) == nil then return end
  local missing = {}
  for p, name in pairs(self.names) do if not self.came[p] then missing[#missing + 1] = name end end
  table.sort(missing)
  begin(self)
  fail("DistributedDataParallel: the last backward gave no gradient for %s; %s", table.concat(missing, ", "), self.finds
    and "it must start from all results of forward" or "set {find_unused_parameters = true} to allow that")
end

-- The mark of the newest wrapper around a parameter: it alone is told of gradients. A mark refers to nothing, so the table keeps nothing.
local newest = setmetatable({}, {__mode = "k"})
-- Makes buckets of the module's parameters, and hooks that report their gradients.
local function attach(self)
  local params = {}
  for _, p in ipairs(self.module:parameters()) do if self.names[p] then params[#params + 1] = p end end
  self.buckets, self.bucket_of = buckets_of(params, self.cap)
  begin(self)
  self.hooks = {}
  if not self.overlaps then return end
  local mark = {}
  for i, p in ipairs(params) do
    newest[p] = mark
    self.hooks[i] = M.register_post_accumulate_grad_hook(p, function() if newest[p] == mark then arrived(self, p) end end)
  end
end
-- device_ids: the one GPU that the module is on, to which inputs are moved.
local function device_of(ids, params)
  if not ids then return nil end
  local id = type(ids) == "table" and #ids == 1 and ids[1]
  local device = type(id) == "number" and "cuda:" .. id or id
  for _, p in ipairs(params) do
    if p.device ~= device then
      fail("DistributedDataParallel: device_ids must list the one GPU that the module is on, %s, got %s", params[1].device,
        id and tostring(id) or options.shown(ids))
    end
  end
  return device
end

-- DistributedDataParallel(module, {bucket_cap_mb=25, broadcast_buffers=true, find_unused_parameters=false, overlap=true, process_group=}):
-- the module, whose gradients after backward are the means over all processes; each process has its own share of the data.
-- broadcast_buffers: each forward in training begins with rank 0's buffers. find_unused_parameters: for a forward that doesn't use all
-- parameters each time. overlap = false: gradients stay this process's own until reduce_gradients() is called, which a compiled step can
-- do (not with find_unused_parameters, which asks all processes each time). PyTorch's gradient_as_bucket_view and static_graph are
-- taken, and change nothing.
function Parallel:init(net, o)
  replicas.need_parameters("DistributedDataParallel", net)
  replicas.refuse_parts("DistributedDataParallel", net:parameters())
  o = options.fill("DistributedDataParallel", o,
    {bucket_cap_mb = 25, broadcast_buffers = true, find_unused_parameters = false, overlap = true,
      process_group = options.none, device_ids = options.none, output_device = options.none, gradient_as_bucket_view = false,
      static_graph = false})
  options.number("DistributedDataParallel", "bucket_cap_mb", o.bucket_cap_mb, 0)
  self.group = distributed.group_of("DistributedDataParallel", o.process_group or nil)
  self.module = net
  local params, names = {}, {}
  for name, p in net:named_parameters() do
    if p.requires_grad then params[#params + 1], names[p] = p, name end
  end
  if #params == 0 then fail "DistributedDataParallel: the module has no parameter that requires grad" end
  replicas.compare("DistributedDataParallel", net, self.group)
  replicas.share(net:parameters(), self.group)
  replicas.share(net:buffers(), self.group)
  self.names, self.syncing, self.finds, self.broadcasts = names, true, o.find_unused_parameters, o.broadcast_buffers
  self.overlaps, self.absent = o.overlap, {}             -- absent: parameters that the last forward didn't use
  self.cap, self.device = o.bucket_cap_mb * 2 ^ 20, device_of(o.device_ids, params)
  attach(self)
end

-- The copy has parameters of its own, whose gradients it must receive.
function Parallel:clone()
  local copy = module.Module.clone(self)
  copy.group, copy.names, copy.absent = self.group, {}, {}
  for name, p in copy.module:named_parameters() do if p.requires_grad then copy.names[p] = name end end
  attach(copy)
  return copy
end

-- Ends the wrapper, and gives the module: gradients are this process's own from now on. Until then a module that was wrapped exchanges
-- its gradients, also where the wrapper isn't used any more; one that is wrapped again, in the newest wrapper only.
function Parallel:unwrap()
  for _, hook in ipairs(self.hooks) do hook.remove() end
  self.hooks, self.syncing = {}, false
  return self.module
end

-- With overlap = false, after backward: replaces the gradients by their means over all processes.
function Parallel:reduce_gradients()
  no_grad(function()
    local used = used_by_any(self)
    for k, b in ipairs(self.buckets) do spread(b, exchange(self, k, gathered(b), false)(), used) end
  end)
end

-- register_comm_hook(state, fn): fn(state, bucket) exchanges the gradients of each bucket in the place of the mean over all processes. It
-- gives a tensor like bucket:buffer(), or a function that waits for one and gives it. bucket: buffer(), one vector; gradients() and
-- parameters(), lists; index(), from 1; is_last(); group; and async_op, which it hands to all_reduce: true while backward goes on.
-- nn.parallel.fp16_compress_hook and bf16_compress_hook (state: a group, or nil) exchange 16-bit numbers. Errors if there is a hook.
function Parallel:register_comm_hook(state, fn)
  options.expect("register_comm_hook", 2, fn, modes.callable(fn), "a function")
  if self.comm_hook then fail "register_comm_hook: there is a communication hook already" end
  self.comm_hook = {state = state, fn = fn}
end

-- forward, with buffers already equal and inputs on the module's device.
local function run(self, ...)
  if not (self.finds and self.syncing and self.overlaps) then return self.module(...) end
  begin(self)
  self.absent = {}
  local results, outputs, params = {self.module(...)}, {}, {}
  tree.map(results, function(v)
    if core.is_tensor(v) and v.requires_grad then outputs[#outputs + 1] = v end
    return v
  end)
  for p in pairs(self.names) do params[#params + 1] = p end
  local reached = core.reached(outputs, params)
  local unused = {}
  for i, p in ipairs(params) do if not reached[i] then unused[#unused + 1] = p end end
  if #unused < #params then self.unused = unused
  else for _, p in ipairs(unused) do arrived(self, p, "unused") end end                    -- no gradient will come
  return unpack(results, 1, table.maxn(results))
end

local function there(self, ...)
  if not self.device then return ... end
  return unpack(tree.map({...}, function(v)
    return core.is_tensor(v) and M.to(v, self.device, {non_blocking = true}) or v
  end), 1, select("#", ...))
end

function Parallel:forward(...)
  if not core.is_grad_enabled() then return self.module(there(self, ...)) end
  if self.joining then told(self, self.syncing and SYNCING or ALONE) end
  if self.syncing then
    check(self)
    if self.broadcasts and self.training then share_buffers(self) end
  end
  return run(self, there(self, ...))
end

-- Calls fn(...) without exchanging gradients, and gives its results. Gradients add up in this process until a backward outside of it: for
-- gradient accumulation.
function Parallel:no_sync(fn, ...)
  local before = self.syncing
  self.syncing = false
  return options.finally(function() self.syncing = before end, fn, ...)
end

-- join({divide_by_initial_world_size=true, throw_on_early_termination=false}, fn, ...): calls fn(...), a training loop, and gives its
-- results, where processes may have different numbers of batches. A process whose fn has returned takes part in the others' exchanges, with
-- gradients of 0, until all have; then all take the parameters and buffers of one that trained to the end. divide_by_initial_world_size =
-- false: gradients are means over the processes that still have batches. throw_on_early_termination: an error in all processes once one has
-- none. The options may be left out. Each forward with gradients must be followed by one backward; module and optimizer must make no
-- exchanges of their own (SyncBatchNorm, ZeroRedundancyOptimizer).
function Parallel:join(o, fn, ...)
  if modes.callable(o) then return self:join({}, o, fn, ...) end
  o = options.fill("join", o, {divide_by_initial_world_size = true, throw_on_early_termination = false})
  options.expect("join", 2, fn, modes.callable(fn), "a function")
  if not self.overlaps then fail "join: needs overlap = true" end
  if self.joining then fail "join: called within itself" end
  self.joining = {initial = o.divide_by_initial_world_size, early = o.throw_on_early_termination,
    device = self.buckets[1].params[1].device}
  local function loop(...)
    local results = {fn(...)}
    check(self)
    answer(self)
    return unpack(results, 1, table.maxn(results))
  end
  return options.finally(function() self.joining = nil end, loop, ...)
end

---- SyncBatchNorm ----
local Sync = lib.layer "SyncBatchNorm"
-- SyncBatchNorm(num_features, eps=1e-5, momentum=0.1, affine=true, track_running_stats=true, process_group=nil, {bias=true}): batch norm,
-- of x (N, C, *), with the statistics of all processes' batches together.
function Sync:init(...)
  local o = lib.arguments("SyncBatchNorm",
    "num_features, eps=1e-5, momentum=0.1, affine=true, track_running_stats=true, process_group=nil, *, bias=true", ...)
  self.group = o.process_group
  lib.classes.BatchNorm1d.init(self, o.num_features,
    {eps = o.eps, momentum = o.momentum, affine = o.affine, track_running_stats = o.track_running_stats, bias = o.bias})
end
Sync.extra_repr = lib.classes.BatchNorm1d.extra_repr

-- Mean and variance of each channel (dim 2) over all processes' x, in float32 or float64, and the number of elements.
local function moments(x, group)
  local dims, wide = {1}, x.dtype == "float64" and x or M.float(x)
  for d = 3, M.dim(x) do dims[#dims + 1] = d end
  local c = x.shape[2]
  local mean = (M.numel(x) > 0 and ops.mean or ops.sum)(wide, dims, {keepdim = true})           -- 0 of no elements, with count 0
  local around = ops.sum(ops.square(wide - mean), dims)
  local own = ops.cat({M.reshape(mean, -1), around, ops.full({1}, M.numel(x) / c, {dtype = wide.dtype, device = x.device})}, 1)
  local all = ops.collective(M.unsqueeze(own, 1), "all_gather", "sum", 0, 0, group.id)          -- a row for each process
  local means, squares, counts = M.narrow(all, 2, 1, c), M.narrow(all, 2, c + 1, c), M.narrow(all, 2, 2 * c + 1, 1):detach()
  local total = ops.clamp(ops.sum(counts), 1e-30)                                             -- zeros if no process has any
  local whole = ops.sum(means * counts, 1) / total
  return wide, whole, (ops.sum(squares, 1) + ops.sum(ops.square(means - whole) * counts, 1)) / total, total
end

function Sync:forward(x)
  if M.dim(x) < 2 or x.shape[2] ~= self.num_features then
    fail("SyncBatchNorm: the input has shape %s; dim 2 must have %d channels", tostring(x.shape), self.num_features)
  end
  local group = self.training and distributed.is_initialized() and distributed.group_of("SyncBatchNorm", self.group)
  if not group or #group.ranks == 1 then return lib.batch_norm(self, x) end
  local wide, mean, var, total = moments(x, group)
  if self.running_mean then
    modes.once(function()
      M.add_(self.num_batches_tracked, 1)
      local momentum = ops.clamp(total, 0, 1) * (self.momentum or 1 / self.num_batches_tracked:item())      -- 0 where there are no elements
      M.lerp_(self.running_mean, M.to(mean:detach(), self.running_mean.dtype), momentum)
      M.lerp_(self.running_var, M.to(var:detach() * (total / (total - 1)), self.running_var.dtype), momentum)
    end)
  end
  local shape = {1, x.shape[2]}
  for d = 3, M.dim(x) do shape[d] = 1 end
  local function along(t) return t and M.view(t, shape) end
  local y = (wide - along(mean)) * along(ops.rsqrt(var + self.eps))
  if self.weight then y = y * along(self.weight) end
  if self.bias then y = y + along(self.bias) end
  return M.to(y, x.dtype)
end

-- SyncBatchNorm.convert_sync_batchnorm(module, process_group=): replaces each BatchNorm in the module, keeping its parameters and buffers;
-- gives the module.
function Sync.convert_sync_batchnorm(net, group)
  local nn = lib.classes
  local given = net
  net = module.behind(net)
  if nn.isinstance(net, nn.BatchNorm1d) or nn.isinstance(net, nn.BatchNorm2d) or nn.isinstance(net, nn.BatchNorm3d) then
    local new = nn.SyncBatchNorm(net.num_features,
      {eps = net.eps, momentum = net.momentum, affine = net.weight ~= nil, bias = net.bias ~= nil,
        track_running_stats = net.running_mean ~= nil, process_group = group})
    for _, name in ipairs {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"} do
      if net[name] then new[name] = net[name] end
    end
    new:train(net.training)
    return new
  end
  for name, child in net:named_children() do
    local new = Sync.convert_sync_batchnorm(child, group)
    if new ~= child then module.put(net, "module", net._is_list and tonumber(name) and tonumber(name) + 1 or name, new) end
  end
  return given
end

local parallel = {DistributedDataParallel = Parallel}
-- For register_comm_hook(group, fp16_compress_hook): gradients are exchanged as float16.
parallel.fp16_compress_hook = compressing "float16"
-- For register_comm_hook(group, bf16_compress_hook): gradients are exchanged as bfloat16.
parallel.bf16_compress_hook = compressing "bfloat16"
lib.classes.parallel = options.told(parallel, "nn.parallel")
return lib.classes.parallel
