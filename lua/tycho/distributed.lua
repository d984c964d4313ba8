-- tycho.distributed: several processes train one model, with a GPU or some cores each. Names are torch.distributed's.
--
-- Idea: `mpirun -n 4 luajit train.lua` starts the processes, and init_process_group() connects them. Exchanges are the op `collective`: it
-- uses MPI for host memory, and NCCL for GPUs, in a stream beside the current one. Ranks count from 0, as mpirun's and the driver's numbers
-- do.
-- Invariant: every process of a group calls the same functions in the same order, with tensors of the same shapes and dtypes.
local core = require "tycho.core"
local options = require "tycho.options"
local no_grad = require("tycho.modes").no_grad
local saving = require "tycho.saving"
local fail, shown = options.fail, options.shown
local ops, M = core.ops, core.methods
local distributed = {}

---- groups ----
local Group = {}
Group.__index = Group
Group.__tostring = function(g) return ("process group of ranks %s"):format(table.concat(g.ranks, ", ")) end

local world                             -- the group of all processes, or nil
local local_rank

-- A group, given as such or as {group = one}, or nil.
local function given_group(who, v)
  if type(v) ~= "table" or getmetatable(v) ~= nil then return v end
  return options.fill(who, v, {group = options.none}).group or nil
end
local function group_of(who, group)
  if not world then fail(who .. ": call init_process_group() first") end
  group = given_group(who, group)
  if group == nil then return world end
  if getmetatable(group) ~= Group then fail("%s: group must come from new_group(), got %s", who, shown(group)) end
  if not group.rank then fail(who .. ": this process isn't in the group") end
  return group
end
distributed.group_of = group_of
-- The position, from 0, of a global rank in the group.
function distributed.within(who, rank, group)
  if type(rank) ~= "number" or rank % 1 ~= 0 then fail("%s: a rank must be a whole number from 0, got %s", who, shown(rank)) end
  for i, r in ipairs(group.ranks) do if r == rank then return i - 1 end end
  fail("%s: rank %d isn't in the %s", who, rank, tostring(group))
end

local within = distributed.within
local function numbered(n)
  local ranks = {}
  for i = 1, n do ranks[i] = i - 1 end
  return ranks
end

-- Whether tycho was built with MPI; if not, false and the reason. Starts nothing.
function distributed.is_available()
  if package.searchpath("tycho.mpi", package.cpath) then return true end
  return false, "tycho was built without MPI: there is no tycho/mpi.so on package.cpath"
end
-- Whether init_process_group has been called, and destroy_process_group hasn't.
function distributed.is_initialized() return world ~= nil end

-- init_process_group(backend=, {timeout=1800}): connects the processes that mpirun has started; without mpirun there is only this one.
-- timeout: seconds that a call may wait for the others. backend is PyTorch's argument, without effect: the tensors' devices decide between
-- MPI and NCCL. With TYCHO_DEBUG=distributed in the environment the processes compare their next exchange before each one, so that a
-- difference is an error rather than a hang.
function distributed.init_process_group(backend, o)
  if type(backend) == "table" then backend, o = nil, backend end
  o = options.fill("init_process_group", o, {backend = backend or options.none, timeout = 1800})
  options.number("init_process_group", "timeout", o.timeout, 0)
  if o.backend and o.backend ~= "mpi" and o.backend ~= "nccl" and o.backend ~= "gloo" then
    fail("init_process_group: the backend must be 'mpi', 'nccl' or 'gloo', got %s", shown(o.backend))
  end
  if world then fail("init_process_group: already called") end
  local rank, size, on_machine = core.group_open(o.timeout, (os.getenv "TYCHO_DEBUG" or ""):find "distributed" ~= nil)
  if not rank then fail("init_process_group: %s", size) end
  world, local_rank = setmetatable({id = 0, rank = rank, ranks = numbered(size)}, Group), on_machine
end
-- Forgets the group of all. Connections stay open until the processes end, each waiting for the others.
function distributed.destroy_process_group(group)
  if group == nil or group == world then world = nil
  elseif getmetatable(group) ~= Group then fail("destroy_process_group: argument 1 must come from new_group(), got %s", shown(group)) end
end

-- new_group(ranks): a group of the processes with these ranks, a list; all processes must call it, in the same order.
function distributed.new_group(ranks, o)
  group_of("new_group")
  options.fill("new_group", o, {backend = options.none})        -- without effect: the tensors' devices decide
  ranks = ranks or world.ranks
  if type(ranks) ~= "table" or #ranks == 0 then fail("new_group: argument 1 must be a list of ranks, got %s", shown(ranks)) end
  local seen = {}
  for _, r in ipairs(ranks) do
    within("new_group", r, world)
    if seen[r] then fail("new_group: rank %d is in the list twice", r) end
    seen[r] = true
  end
  local list = {unpack(ranks)}
  table.sort(list)
  local id, rank = core.group_new(list)
  return setmetatable({id = id, rank = rank, ranks = list}, Group)
end

local function any_group(who, group)
  group = given_group(who, group)
  if group == nil then return group_of(who) end
  return options.expect(who, 1, group, getmetatable(group) == Group, "a group from new_group()")
end
-- This process's number, from 0, in a group or among all processes; nil if it isn't in the group.
function distributed.get_rank(group) return any_group("get_rank", group).rank end
-- The number of processes in a group, or in all.
function distributed.get_world_size(group) return #any_group("get_world_size", group).ranks end
-- This process's number on its machine, from 0: the GPU it should take.
function distributed.get_local_rank()
  group_of "get_local_rank"
  return local_rank
end
-- Always "mpi".
function distributed.get_backend() return group_of "get_backend" and "mpi" end

---- exchanges ----
-- An exchange in progress.
local Work = {}
Work.__index = Work
-- Waits until the exchange is done; for tensors on a GPU, only makes the current stream wait.
function Work:wait()
  if self.event then self.event:wait() elseif self.pending then core.group_test(self.pending, true) end
  return true
end
-- Whether the exchange is done.
function Work:is_completed()
  if self.event then return self.event:query() end
  return not self.pending or core.group_test(self.pending, false)
end

local streams = {}                      -- by device: the stream of its exchanges
-- Runs fn in that stream, after the current stream's present work; gives both streams.
function distributed.beside(device, fn)
  local cuda = require "tycho.cuda"
  local index = tonumber(device:match "%d+$") or cuda.current_device()
  return cuda.device(index, function()
    local s = streams[device] or cuda.Stream(index)
    streams[device] = s
    s:wait_stream(cuda.current_stream())
    cuda.stream(s, fn)
    return s, cuda.current_stream()
  end)
end

-- Exchanges x, in place or into another tensor; async: gives a Work.
local function exchange(who, kind, x, into, async, group, reduction, peer, tag)
  if not core.is_tensor(x) then fail("%s: a tensor is needed, got %s", who, shown(x)) end
  reduction, peer, tag = reduction or "sum", peer or 0, tag or 0
  local function run()
    if into == x then ops.collective_(x, kind, reduction, peer, tag, group.id)
    elseif not into then ops.collective(x, kind, reduction, peer, tag, group.id)
    else
      local y = ops.collective(x, kind, reduction, peer, tag, group.id)
      if into.shape ~= y.shape or into.dtype ~= y.dtype then
        fail("%s: the result must be %s of shape %s, got %s of shape %s", who, y.dtype, tostring(y.shape), into.dtype, tostring(into.shape))
      end
      M.copy_(into, y)
    end
  end
  if x.device ~= "cpu" then
    local s, current = no_grad(distributed.beside, x.device, run)
    if async then return setmetatable({event = s:record_event()}, Work) end
    current:wait_stream(s)
    return
  end
  if not async then return no_grad(run) end
  return setmetatable({pending = core.group_start(into or x, x, kind, reduction, peer, tag, group.id)}, Work)
end

local REDUCTIONS = {sum = "sum", mean = "mean", avg = "mean", product = "product", min = "min", max = "max"}
distributed.ReduceOp = {SUM = "sum", AVG = "mean", PRODUCT = "product", MIN = "min", MAX = "max"}
local function reduction_of(who, op)
  if op == nil or (type(op) == "table" and next(op) == nil) then return "sum" end
  return REDUCTIONS[type(op) == "string" and op:lower()] or
    fail("%s: op must be 'sum', 'mean', 'product', 'min' or 'max', got %s", who, shown(op))
end

-- Sets x to the sum of all processes' x; op: "sum", "mean", "product", "min", "max", or distributed.ReduceOp.SUM and so on. For NaN and a
-- number, min and max give NaN on the CPU, and the number on GPUs, as NCCL does.
-- async_op: returns at once, with a Work to wait() for.
distributed.all_reduce = core.define("distributed.all_reduce", "x, op:any?, group:any?, async_op:bool=false", function(x, op, group, async)
  return exchange("all_reduce", "all_reduce", x, x, async, group_of("all_reduce", group), reduction_of("all_reduce", op))
end)
-- As all_reduce, but only the process of rank dst gets the result.
distributed.reduce = core.define("distributed.reduce",
  "x, dst:int, op:any?, group:any?, async_op:bool=false",
  function(x, dst, op, group, async)
    local g = group_of("reduce", group)
    return exchange("reduce", "reduce", x, x, async, g, reduction_of("reduce", op), within("reduce", dst, g))
  end)
-- Sets x to the x of the process of rank src.
distributed.broadcast = core.define("distributed.broadcast", "x, src:int, group:any?, async_op:bool=false", function(x, src, group, async)
  local g = group_of("broadcast", group)
  return exchange("broadcast", "broadcast", x, x, async, g, nil, within("broadcast", src, g))
end)

-- Sets out, whose dim 1 is x's times the number of processes, to all processes' x, in the order of ranks.
distributed.all_gather_into_tensor = core.define("distributed.all_gather_into_tensor",
  "out, x, group:any?, async_op:bool=false",
  function(out, x, group, async)
    return exchange("all_gather_into_tensor", "all_gather", x, out, async, group_of("all_gather_into_tensor", group))
  end)
-- Sets out to this process's part, along dim 1, of the sum of all processes' x.
distributed.reduce_scatter_tensor = core.define("distributed.reduce_scatter_tensor",
  "out, x, op:any?, group:any?, async_op:bool=false",
  function(out, x, op, group, async)
    return exchange("reduce_scatter_tensor", "reduce_scatter", x, out, async, group_of("reduce_scatter_tensor", group),
      reduction_of("reduce_scatter_tensor", op))
  end)
-- Sends part i of x, along dim 1, to process i; out receives the parts for this one, in the order of ranks.
distributed.all_to_all_single = core.define("distributed.all_to_all_single",
  "out, x, group:any?, async_op:bool=false",
  function(out, x, group, async)
    return exchange("all_to_all_single", "all_to_all", x, out, async, group_of("all_to_all_single", group))
  end)

-- Checks, before any exchange, that list has n tensors, and that they are like `like`, if given.
local function check_list(who, list, n, like)
  if type(list) ~= "table" or core.is_tensor(list) or #list ~= n then
    fail("%s: a list of %d tensors is needed, one for each process, got %s", who, n,
      core.is_tensor(list) and "a tensor" or type(list) == "table" and #list .. " of them" or shown(list))
  end
  for i, x in ipairs(list) do
    if not core.is_tensor(x) then fail("%s: item %d of the list must be a tensor, got %s", who, i, shown(x)) end
    if like and (x.shape ~= like.shape or x.dtype ~= like.dtype) then
      fail("%s: tensor %d of the list is %s of shape %s; it must be %s of shape %s", who, i, x.dtype, tostring(x.shape),
        like.dtype, tostring(like.shape))
    end
  end
end
local function fill_list(list, parts)
  for i, part in ipairs(parts) do no_grad(M.copy_, list[i], part) end
end
local function joined(list)
  local rows = {}
  for i, x in ipairs(list) do rows[i] = M.unsqueeze(x:detach(), 1) end
  return ops.cat(rows, 1)
end

-- Sets the tensors of list, one for each process, to the processes' x.
distributed.all_gather = core.define("distributed.all_gather", "list:any, x, group:any?", function(list, x, group)
  local g = group_of("all_gather", group)
  check_list("all_gather", list, #g.ranks, x)
  fill_list(list, M.unbind(no_grad(ops.collective, M.unsqueeze(x:detach(), 1), "all_gather", "sum", 0, 0, g.id), 1))
end)
-- Sets out to the sum of all processes' list items for this process.
distributed.reduce_scatter = core.define("distributed.reduce_scatter", "out, list:any, op:any?, group:any?", function(out, list, op, group)
  local g = group_of("reduce_scatter", group)
  check_list("reduce_scatter", list, #g.ranks, out)
  exchange("reduce_scatter", "reduce_scatter", joined(list), M.unsqueeze(out, 1), false, g, reduction_of("reduce_scatter", op))
end)
-- Sends inputs[i] to process i, counted from 1; outputs receive the tensors for this process.
distributed.all_to_all = core.define("distributed.all_to_all", "outputs:any, inputs:any, group:any?", function(outputs, inputs, group)
  local g = group_of("all_to_all", group)
  check_list("all_to_all", inputs, #g.ranks, type(inputs) == "table" and core.is_tensor(inputs[1]) and inputs[1] or nil)
  check_list("all_to_all", outputs, #g.ranks, inputs[1])
  fill_list(outputs, M.unbind(no_grad(ops.collective, joined(inputs), "all_to_all", "sum", 0, 0, g.id), 1))
end)

-- Sends x to the process of rank dst; gives a Work. tag: tells messages between two processes apart (CPU). A GPU's stream does one exchange
-- after the other: if two processes send to each other, one must call irecv first, or both use batch_isend_irecv.
distributed.isend = core.define("distributed.isend", "x, dst:int, group:any?, tag:int=0", function(x, dst, group, tag)
  local g = group_of("isend", group)
  return exchange("isend", "send", x, nil, true, g, nil, within("isend", dst, g), tag)
end)
-- Sets x to what the process of rank src sends; gives a Work.
distributed.irecv = core.define("distributed.irecv", "x, src:int, group:any?, tag:int=0", function(x, src, group, tag)
  local g = group_of("irecv", group)
  return exchange("irecv", "recv", x, x, true, g, nil, within("irecv", src, g), tag)
end)
local Exchange = {}                        -- the class of P2POp's results
-- An exchange for batch_isend_irecv: op is distributed.isend or distributed.irecv.
function distributed.P2POp(op, x, peer, group, tag)
  if op ~= distributed.isend and op ~= distributed.irecv then
    fail("P2POp: argument 1 (op) must be distributed.isend or distributed.irecv, got %s", shown(op))
  end
  if type(group) == "number" then group, tag = nil, group end
  if not core.is_tensor(x) then fail("P2POp: argument 2 must be a tensor, got %s", shown(x)) end
  local g = group_of("P2POp", group)
  if within("P2POp", peer, g) == g.rank then fail("P2POp: rank %d is this process itself; give another one's rank", peer) end
  return setmetatable({op = op, tensor = x, peer = peer, group = g, tag = tag or 0}, Exchange)
end
-- Begins the exchanges of a list of P2POp; gives their Works. The list's order doesn't matter: each process takes them in the same order,
-- by the two ranks and the direction, so that on GPUs, where a stream does one exchange after the other, processes can't wait in a ring.
function distributed.batch_isend_irecv(list)
  if type(list) ~= "table" or #list == 0 then fail("batch_isend_irecv: a list of P2POp is needed, got %s", shown(list)) end
  local order, works, me = {}, {}, group_of("batch_isend_irecv").rank
  for i, p in ipairs(list) do
    if getmetatable(p) ~= Exchange then fail("batch_isend_irecv: item %d must be a P2POp, got %s", i, shown(p)) end
    local from, to = me, p.peer
    if p.op == distributed.irecv then from, to = to, from end
    order[i] = {math.min(from, to), math.max(from, to), from, i}
  end
  table.sort(order, function(a, b)
    for k = 1, 4 do if a[k] ~= b[k] then return a[k] < b[k] end end
    return false
  end)
  for _, o in ipairs(order) do
    local p = list[o[4]]
    works[o[4]] = p.op(p.tensor, p.peer, {group = p.group, tag = p.tag})
  end
  return works
end
-- As isend, but waits until it is done.
distributed.send = core.define("distributed.send",
  "x, dst:int, group:any?, tag:int=0",
  function(x, dst, group, tag) distributed.isend(x, dst, group, tag):wait() end)
-- As irecv, but waits until it is done.
distributed.recv = core.define("distributed.recv",
  "x, src:int, group:any?, tag:int=0",
  function(x, src, group, tag) distributed.irecv(x, src, group, tag):wait() end)

-- Sets the tensors of list, at the process of rank dst, to all processes' x; the others pass no list.
distributed.gather = core.define("distributed.gather", "x, list:any?, dst:int=0, group:any?", function(x, list, dst, group)
  local g = group_of("gather", group)
  if g.rank ~= within("gather", dst, g) then return distributed.send(x, dst, group) end
  check_list("gather", list, #g.ranks, x)
  for i, r in ipairs(g.ranks) do
    if r == dst then no_grad(M.copy_, list[i], x) else distributed.recv(list[i], r, group) end
  end
end)
-- Sets x to the list item that the process of rank src has for this one; the others pass no list.
distributed.scatter = core.define("distributed.scatter", "x, list:any?, src:int=0, group:any?", function(x, list, src, group)
  local g = group_of("scatter", group)
  if g.rank ~= within("scatter", src, g) then return distributed.recv(x, src, group) end
  check_list("scatter", list, #g.ranks, x)
  for i, r in ipairs(g.ranks) do
    if r == src then no_grad(M.copy_, x, list[i]) else distributed.send(list[i], r, group) end
  end
end)

-- Waits until all processes call it, and this one's GPUs have done their work.
function distributed.barrier(group)
  group = group_of("barrier", group)
  for device in pairs(streams) do require("tycho.cuda").synchronize(device) end
  exchange("barrier", "all_reduce", ops.zeros(1, {device = "cpu"}), nil, false, group)
end

---- values: what tycho.save takes ----
local function text_tensor(text)
  local x = ops.zeros(#text, {dtype = "uint8", device = "cpu"})
  require("ffi").copy(x:data(), text, #text)
  return x
end

-- The value of the process of rank src, in all processes. text, tensors: this process's packed value.
local function share(src, group, text, tensors)
  local mine = group.ranks[group.rank + 1] == src
  if not mine then text, tensors = "", {} end
  local length = ops.full({1}, #text, {dtype = "int64", device = "cpu"})
  distributed.broadcast(length, src, group)
  local bytes = mine and text_tensor(text) or ops.zeros(length:item(), {dtype = "uint8", device = "cpu"})
  distributed.broadcast(bytes, src, group)
  local at = 0
  return saving.unpack_from(require("ffi").string(bytes:data(), bytes:numel()), function(t)
    at = at + 1
    local x = mine and ops.clone(tensors[at]) or ops.empty(t.sizes, {dtype = t.dtype, device = "cpu"})      -- memory of its own
    distributed.broadcast(x, src, group)
    return x
  end)
end

-- broadcast_object_list(list, src=0, group=): sets the values of list to those of the process of rank src: any that tycho.save takes, and
-- tensors on the CPU.
function distributed.broadcast_object_list(list, src, group)
  local o = options.fill("broadcast_object_list", type(src) == "table" and src or nil,
    {src = type(src) == "number" and src or 0, group = group or options.none})
  src, group = o.src, group_of("broadcast_object_list", o.group or nil)
  within("broadcast_object_list", src, group)
  if type(list) ~= "table" or core.is_tensor(list) then fail("broadcast_object_list: argument 1 must be a list, got %s", shown(list)) end
  local mine = group.ranks[group.rank + 1] == src
  local text, tensors
  if mine then text, tensors = saving.pack(list) end
  local values = share(src, group, text, tensors)
  for i, v in pairs(mine and {} or values) do list[i] = v end
end
-- Sets list to the values of all processes, in the order of ranks.
function distributed.all_gather_object(list, value, group)
  group = group_of("all_gather_object", group)
  if type(list) ~= "table" or core.is_tensor(list) then fail("all_gather_object: argument 1 must be a list, got %s", shown(list)) end
  local text, tensors = saving.pack(value)               -- raises for an unsuitable value before any exchange
  for i, r in ipairs(group.ranks) do list[i] = share(r, group, text, tensors) end
end

---- with gradients ----
-- Exchanges that return a new tensor, through which gradients flow back to the processes that passed x.
distributed.functional = options.told({
  -- all_reduce(x, op="sum", group=): the sum of all processes' x, a new tensor through which gradients flow back to all; so too the
  -- following.
  all_reduce = core.define("distributed.functional.all_reduce", "x, op:any?, group:any?", function(x, op, group)
    return ops.collective(x, "all_reduce", reduction_of("all_reduce", op), 0, 0, group_of("all_reduce", group).id)
  end),
  -- all_gather(x, group=): all processes' x one after another along dim 1.
  all_gather = core.define("distributed.functional.all_gather",
    "x, group:any?",
    function(x, group) return ops.collective(x, "all_gather", "sum", 0, 0, group_of("all_gather", group).id) end),
  -- reduce_scatter(x, op="sum", group=): this process's part, along dim 1, of the sum of all x.
  reduce_scatter = core.define("distributed.functional.reduce_scatter", "x, op:any?, group:any?", function(x, op, group)
    return ops.collective(x, "reduce_scatter", reduction_of("reduce_scatter", op), 0, 0, group_of("reduce_scatter", group).id)
  end),
  -- all_to_all(x, group=): sends part i of x, along dim 1, to process i; gives the parts for this one.
  all_to_all = core.define("distributed.functional.all_to_all",
    "x, group:any?",
    function(x, group) return ops.collective(x, "all_to_all", "sum", 0, 0, group_of("all_to_all", group).id) end),
}, "distributed.functional")

-- loaded late: these build on modules and optimizers
return options.told(distributed, "distributed", nil, nil, {fsdp = "tycho.nn.sharded", optim = "tycho.optim.zero"})
