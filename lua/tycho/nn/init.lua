-- tycho.nn: the layers that have parameters, and lists of modules; the other files of this folder are gathered here too. The functions that
-- fill parameters, tycho.nn.init, are in init_functions.lua.
--
-- Idea: each layer is a class of its own, with its parameters in init and its arithmetic in forward. Invariant: names, defaults, names in
-- state dicts and the distributions that parameters are drawn from are PyTorch's.
local core = require "tycho.core"
local modes = require "tycho.modes"
local no_grad = modes.no_grad
local ops, M = core.ops, core.methods
local module = require "tycho.nn.module"
local hooks = require "tycho.nn.hooks"
local F = require "tycho.nn.functional"
local shapes = require "tycho.functional.lib"
local init = require "tycho.nn.init_functions"
local lib = require "tycho.nn.layer"
local layer, arguments, whole, number, text = lib.layer, lib.arguments, lib.whole, lib.number, lib.text
local Parameter = module.Parameter
local options = require "tycho.options"
local shown, fail = options.shown, options.fail

local nn = lib.classes
nn.Module, nn.Parameter, nn.Buffer = module.Module, Parameter, module.Buffer
nn.is_module, nn.isinstance = module.is_module, module.isinstance
nn.functional, nn.init, nn.utils = F, init, require "tycho.nn.utils"

---- containers ----
local function container(name)
  local class = layer(name)
  class._is_list = true
  class._library = nil
  return class
end

-- Raises if the list has named fields, since a table keeps no order of names.
local function unnamed(name, list, how)
  for k in pairs(list) do
    if type(k) ~= "number" then fail("%s: '%s' is a name, and names have no order in a Lua table: %s", name, tostring(k), how) end
  end
  return list
end
-- The position after the last member; nil if the members must be counted anew.
local function behind(self)
  local n, order = #self, rawget(self, "_order")
  return #order == n and (n == 0 or order[n] == n) and n + 1 or nil
end
-- Appends a member; gives the list.
local function append(self, m)
  if type(m) == "table" and rawget(m, "_super") then
    fail("%s: a module is needed, got the class %s; make a module with %s()", self._name, m._name, m._name)
  end
  if not module.is_module(m) then fail(self._name .. ": a module is needed, got " .. shown(m)) end
  local at = behind(self)
  if at then
    module.put(self, "module", at, m)
    return self
  end
  return self:add_module(tostring(#module.members(self)), m)
end
-- extend{a, b}: appends the members of a list; gives the list. Called on a class, Sequential:extend("Name") makes a subclass, as for any
-- module.
local function extend(self, list)
  if not module.is_module(self) then return module.Module.extend(self, list) end
  if type(list) ~= "table" then fail("%s:extend: a list is needed, got %s", self._name, shown(list)) end
  if getmetatable(list) == nil then options.items(self._name .. ":extend", "the list", list) end
  for _, m in ipairs {unpack(list)} do self:append(m) end      -- a copy: it may be this one
  return self
end
-- Adds a member before the one at a position, which counts from 1; gives the list.
local function insert(self, at, m)
  if #module.members(self) > #self then
    fail("%s:insert: can't insert between members that have names instead of positions", self._name)
  end
  if type(at) ~= "number" or at % 1 ~= 0 or at < 1 or at > #self + 1 then
    fail("%s:insert: argument 1 must be a position from 1 to %d, got %s", self._name, #self + 1, shown(at))
  end
  self:append(m)
  table.insert(self, at, table.remove(self))
  return self
end
-- Removes the member at a position (the last one unless given), and returns it.
local function pop(self, at)
  module.members(self)                     -- closes holes
  at = at or #self
  if type(at) == "number" and at < 0 then at = #self + 1 + at end
  if rawget(self, at) == nil then fail("%s:pop: there are %d members, but none at %s", self._name, #self, shown(at)) end
  return table.remove(self, at)
end

local Sequential = container("Sequential")
-- Sequential(a, b, ...), or Sequential{a, b, ...}: each module's results go to the next one; of several results a built-in layer takes the
-- first, a program's own module all. Sequential{{"conv", a}, {"relu", b}} gives the members names. seq[1] is the first; negative positions
-- count from the end, seq[{ {1, 2} }] is a Sequential of some members.
function Sequential:init(first, ...)
  if type(first) == "table" and not core.is_tensor(first) and (rawget(first, "_super") or not modes.callable(first)) then
    if select("#", ...) > 0 then fail("Sequential: takes no further argument after a list of modules, got %s", shown((select(1, ...)))) end
    if rawget(first, "_super") then append(self, first) end                    -- a class: refused
    local items = unnamed("Sequential", first, "write Sequential{ {'conv', a}, {'relu', b} }")
    for i, item in ipairs(options.items("Sequential", "the list", items)) do
      if module.is_module(item) then append(self, item)
      elseif type(item) == "table" and type(item[1]) == "string" then self:add_module(item[1], item[2])
      else fail("Sequential: item %d must be a module or {name, module}, got %s", i, shown(item)) end
    end
    return
  end
  if first ~= nil then append(self, first) end
  local others = {...}
  for i = 1, select("#", ...) do append(self, others[i]) end
end
-- Gives m's results y, ... for the input x, and before them whether y may be freed after the next layer: only if built-in layers alone have
-- seen it. Frees x if that is so (mine) and m is built in.
local function released(m, x, mine, y, ...)
  local class = getmetatable(m)._class                   -- nil: a stand-in for a module
  local library = not hooks.there and class ~= nil and rawget(class, "_library") == true
  if rawequal(y, x) then return mine and library, y, ... end
  if mine and library then M.free(x) end
  return library and core.is_tensor(y) and select("#", ...) == 0, y, ...
end
local function chain(members, i, mine, x, ...)
  local m = members[i]
  if m == nil then return x, ... end
  if i > 1 and module.takes_one(m) then return chain(members, i + 1, released(m, x, mine, m(x))) end
  return chain(members, i + 1, released(m, x, mine, m(x, ...)))
end
function Sequential:forward(...)
  if not module.is_module(self) then fail("forward: call it with a colon: net:forward(x), or net(x)") end
  local members = {}
  for i = 1, table.maxn(self) do
    local m = rawget(self, i)
    if m ~= nil and not module.is_module(m) then fail("Sequential: member %d must be a module, got %s", i, shown(m)) end
    members[#members + 1] = m
  end
  for _, name in ipairs(self._order) do
    if type(name) == "string" and self._kinds[name] == "module" then members[#members + 1] = self._parts[name] end
  end
  return chain(members, 1, false, ...)
end

local Checkpoint = layer("Checkpoint")
Checkpoint._library = nil                  -- it keeps its input, and its module may be a user's
-- Checkpoint(module, segments=1, save=nil): the values between the module's input and result aren't kept for backward, which recomputes
-- them (utils.checkpoint); a Sequential is split into so many segments, each recomputed by itself; save names ops whose results are kept
-- all the same. Field saved_bytes: the bytes that the last backward recomputed.
function Checkpoint:init(...)
  local o = arguments("Checkpoint", "module, segments=1, save=nil", ...)
  local m = o.module
  if not module.is_module(m) then fail("Checkpoint: argument 1 must be a module, got " .. shown(m)) end
  self.segments = whole("Checkpoint", "segments", o.segments)
  if self.segments > 1 then m = module.behind(m) end
  self.module, self.save = m, o.save and require("tycho.recompute").names(o.save)
  if self.segments > 1 and getmetatable(m)._class ~= Sequential then
    fail("Checkpoint: segments= is for a Sequential, got a " .. m._name)
  end
  self.saved_bytes, self._open = 0, 0
  self._pieces = math.min(self.segments, math.max(1, self.segments > 1 and #module.members(m) or 1))
end
function Checkpoint:forward(...)
  local function report(bytes)
    if self._open == 0 then self.saved_bytes = 0 end               -- backward starts with the last segment
    self._open = (self._open + 1) % self._pieces
    self.saved_bytes = self.saved_bytes + bytes
  end
  local recompute, how = require "tycho.recompute", {report = report, save = self.save}
  if self.segments == 1 then return recompute.run(how, self.module, ...) end
  return recompute.sequence(how, module.members(self.module), self.segments, ...)
end
function Checkpoint:extra_repr() return "segments=" .. self.segments end

local ModuleList = container("ModuleList")
ModuleList._folds = true
-- The argument of a container's constructor: one list, or nothing.
local function only_list(name, list, ...)
  if list ~= nil and (type(list) ~= "table" or core.is_tensor(list) or module.is_module(list) or select("#", ...) > 0) then
    fail("%s: one list is needed, such as %s{a, b}", name, name)
  end
  return list or {}
end
local function without_holes(name, list) return options.items(name, "the list", list) end
local function only_numbered(name, ...)
  return without_holes(name, unnamed(name, only_list(name, ...), (name:gsub("List", "Dict")) .. " has members with names"))
end

-- ModuleList{a, b, ...}: a list of modules that belong to the module it is assigned to: l[i], #l, ipairs(l). It has no forward. l:pop(i)
-- removes one; l[i] = nil does too, but Lua's # counts the hole that it leaves until the list is next traversed.
function ModuleList:init(list, ...)
  for _, m in ipairs(only_numbered("ModuleList", list, ...)) do append(self, m) end
end

local ParameterList = container("ParameterList")
ParameterList._wraps, ParameterList._tells_parameters = true, true
-- ParameterList{parameter or tensor, ...}: a list of parameters that belong to the module it is assigned to: l[i], #l, ipairs(l).
function ParameterList:init(list, ...)
  for _, p in ipairs(only_numbered("ParameterList", list, ...)) do self:append(p) end
end
-- Appends a parameter, or a tensor, which becomes one; gives the list.
function ParameterList:append(p)
  if not core.is_tensor(p) then fail("ParameterList: a tensor is needed, got " .. type(p)) end
  module.put(self, "parameter", behind(self) or #module.members(self) + 1, module.is_parameter(p) and p or Parameter(p))
  return self
end
for _, List in ipairs {Sequential, ModuleList, ParameterList} do
  List.append, List.insert, List.extend, List.pop = List.append or append, insert, extend, pop
  function List:__missing(k)               -- negative positions count from the end; { {first, last} } is a list of those members
    if k == 0 then fail("%s: position 0: members count from 1", self._name) end
    if type(k) == "number" then
      local all = module.members(self)
      if #all > #self then return all[k < 0 and #all + 1 + k or k] end       -- with names: by their order
      return rawget(self, k < 0 and #self + 1 + k or k)
    end
    local range = type(k) == "table" and k[1]
    if type(k) == "table" and type(range) ~= "table" then fail("%s: write { {1, 2} } for members 1 to 2", self._name) end
    if type(range) ~= "table" then return nil end
    local all = module.members(self)
    local n, out = #all, List == Sequential and Sequential() or List {}
    local function from(v, usual) v = v or usual return v < 0 and n + 1 + v or v end
    for i = math.max(from(range[1], 1), 1), math.min(from(range[2], n), n) do out:append(all[i]) end
    return out
  end
end

-- Identity(): returns its input; arguments are accepted without effect.
local Identity = layer("Identity")
function Identity:forward(x) return x end

---- linear ----
local Linear = layer("Linear")
-- Linear(in_features, out_features, bias=true): x W^T + b: x (..., in) -> (..., out). weight: (out, in).
function Linear:init(...)
  local o = arguments("Linear", "in_features, out_features, bias=true", ...)
  local n_in, n_out = lib.count("Linear", "in_features", o.in_features), lib.count("Linear", "out_features", o.out_features)
  self.in_features, self.out_features = n_in, n_out
  local bound = n_in > 0 and 1 / math.sqrt(n_in) or 0
  self.weight = Parameter(init.uniform_(ops.empty(n_out, n_in), -bound, bound))
  if o.bias then self.bias = Parameter(init.uniform_(ops.empty(n_out), -bound, bound)) end
end
function Linear:forward(x) return ops.linear(x, self.weight, self.bias) end
function Linear:extra_repr()
  return ("in_features=%d, out_features=%d, bias=%s"):format(self.in_features, self.out_features, tostring(self.bias ~= nil))
end

local Embedding = layer("Embedding")
-- Embedding(num_embeddings, embedding_dim, padding_idx=, max_norm=, norm_type=2, scale_grad_by_freq=false): int64 ids from 1 to
-- num_embeddings, (...) -> (..., embedding_dim). The row padding_idx is 0 and gets no gradient. Gradients are dense, also with
-- sparse=true.
function Embedding:init(...)
  local o = arguments("Embedding",
    "num_embeddings, embedding_dim, padding_idx=nil, max_norm=nil, norm_type=2, scale_grad_by_freq=false, sparse=false, \z
      *, _weight=nil", ...)
  local count, size = lib.count("Embedding", "num_embeddings", o.num_embeddings), lib.count("Embedding", "embedding_dim", o.embedding_dim)
  self.num_embeddings, self.embedding_dim = count, size
  self.padding_idx = lib.padding_row("Embedding", o.padding_idx, count)
  self.max_norm, self.norm_type = o.max_norm and number("Embedding", "max_norm", o.max_norm) or nil,
    number("Embedding", "norm_type", o.norm_type)
  self.scale_grad_by_freq = o.scale_grad_by_freq
  self.weight = Parameter(o._weight or ops.randn(count, size))
  if self.padding_idx and not o._weight then init.zeros_(ops.select(self.weight:detach(), 1, self.padding_idx)) end
end
-- Embedding.from_pretrained(weight, freeze=true, padding_idx=, max_norm=, norm_type=2, scale_grad_by_freq=false): an Embedding over the
-- memory of weight (num_embeddings, embedding_dim).
function Embedding.from_pretrained(weight, ...)
  local o = arguments("Embedding.from_pretrained", "freeze=true, padding_idx=nil, max_norm=nil, norm_type=2, \z
    scale_grad_by_freq=false, sparse=false", ...)
  if not core.is_tensor(weight) or M.dim(weight) ~= 2 then
    fail("Embedding.from_pretrained: argument 1 must be a tensor of 2 dims, got %s",
      core.is_tensor(weight) and "shape " .. tostring(weight.shape) or type(weight))
  end
  local e = Embedding(weight.shape[1], weight.shape[2], {padding_idx = o.padding_idx, max_norm = o.max_norm, norm_type = o.norm_type,
    scale_grad_by_freq = o.scale_grad_by_freq, _weight = weight:detach()})
  e.weight:requires_grad_(not o.freeze)
  return e
end
function Embedding:forward(ids)
  return F.embedding(ids, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)
end
function Embedding:extra_repr()
  return ("%d, %d%s%s"):format(self.num_embeddings, self.embedding_dim,
    self.padding_idx and ", padding_idx=" .. self.padding_idx or "", self.max_norm and (", max_norm=%g"):format(self.max_norm) or "")
end

---- convolution ----
local FORWARDS = "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=true, padding_mode=zeros"
local TRANSPOSED = "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=true, dilation=1, \z
  padding_mode=zeros"
-- The output_padding that makes x's last dims come out with the sizes of output_size.
local function padding_for(name, self, x, output_size, dims)
  if type(output_size) ~= "table" or core.is_tensor(output_size) or #output_size < dims then
    fail("%s: output_size must be a list of %d sizes, got %s", name, dims, shown(output_size))
  end
  for i = 1, #output_size do options.whole(name, ("argument 2 (output_size), size %d,"):format(i), output_size[i], 0) end
  if not core.is_tensor(x) or M.dim(x) < dims + 1 then
    fail("%s: argument 1 must be a tensor of %d or %d dims, got %s", name, dims + 1, dims + 2,
      core.is_tensor(x) and "shape " .. tostring(x.shape) or shown(x))
  end
  local more = {}
  for i = 1, dims do
    local stride = self.stride[i]
    local least = shapes.transposed_size(x.shape[M.dim(x) - dims + i], self.kernel_size[i], stride, self.padding[i], self.dilation[i])
    more[i] = output_size[#output_size - dims + i] - least
    if more[i] < 0 or more[i] >= stride then
      fail("%s: output_size %d of dim %d must be from %d to %d", name, more[i] + least, i, least, least + stride - 1)
    end
  end
  return more
end
local function conv(name, dims, transposed)
  local Conv = layer(name)
  -- a whole number >= least for each dim
  local function many(what, v, least)
    local out = {}
    if type(v) == "table" and #v ~= dims then
      fail("%s: %s must be a number or a list of %d, got a list of %d", name, what, dims, #v)
    end
    for i = 1, dims do out[i] = options.whole(name, what, type(v) == "table" and v[i] or v, least) end
    return out
  end
  -- Conv2d: (N, in, H, W) -> (N, out, H', W'); Conv1d: (N, in, L); Conv3d: (N, in, D, H, W); also without N. Sizes are a number or a list
  -- of one for each dim; padding may be "same", padding_mode "zeros", "reflect", "replicate", "circular". ConvTranspose2d and the like are
  -- the reverse, have only padding_mode "zeros", and are called as conv(x, output_size).
  function Conv:init(...)
    local o = arguments(name, transposed and TRANSPOSED or FORWARDS, ...)
    local n_in, n_out = whole(name, "in_channels", o.in_channels), whole(name, "out_channels", o.out_channels)
    self.in_channels, self.out_channels, self.groups = n_in, n_out, whole(name, "groups", o.groups)
    if n_in % o.groups ~= 0 or n_out % o.groups ~= 0 then
      fail("%s: groups %d must divide %d and %d channels", name, o.groups, n_in, n_out)
    end
    self.kernel_size, self.stride, self.dilation = many("kernel_size", o.kernel_size, 1), many("stride", o.stride, 1),
      many("dilation", o.dilation, 1)
    self.output_padding, self.padding_mode = o.output_padding, o.padding_mode
    local k, taps = self.kernel_size, 1
    for i = 1, dims do taps = taps * k[i] end
    local borders = {zeros = true, reflect = true, replicate = true, circular = true}
    if transposed and o.padding_mode ~= "zeros" then fail("%s: padding_mode must be zeros, got %s", name, shown(o.padding_mode)) end
    if not transposed and not borders[o.padding_mode] then
      fail("%s: padding_mode must be zeros, reflect, replicate or circular, got %s", name, tostring(o.padding_mode))
    end
    if transposed and type(o.padding) == "string" then fail("%s: padding must be whole numbers, got '%s'", name, o.padding) end
    local more                             -- additional elements at the end of each dim
    self.padding, more = shapes.window_padding(name, o.padding, k, self.stride, self.dilation)
    self.padding_text = o.padding == "same" and "same" or nil
    if math.max(unpack(more)) > 0 then self.uneven = more end
    local size = transposed and {n_in, n_out / o.groups, unpack(k)} or {n_out, n_in / o.groups, unpack(k)}
    local bound = 1 / math.sqrt((transposed and n_out or n_in) / o.groups * taps)
    self.weight = Parameter(init.uniform_(ops.empty(size), -bound, bound))
    if o.bias then self.bias = Parameter(init.uniform_(ops.empty(n_out), -bound, bound)) end
  end
  local function plain(v) return dims > 1 and v or v[1] end
  if transposed then
    local fn = "conv_transpose" .. dims .. "d"
    -- output_size, a list of sizes (or a whole shape, whose last sizes count), replaces output_padding
    function Conv:forward(x, output_size)
      if type(output_size) == "table" and output_size.output_size then output_size = output_size.output_size end
      local more = output_size ~= nil and plain(padding_for(name, self, x, output_size, dims)) or self.output_padding
      return F[fn](x, self.weight, self.bias, plain(self.stride), plain(self.padding), more, self.groups, plain(self.dilation))
    end
  else
    local fn = "conv" .. dims .. "d"
    function Conv:forward(x) return self:_conv_forward(x, self.weight, self.bias) end
    -- forward with another weight and bias, by PyTorch's name, for classes that compute them
    function Conv:_conv_forward(x, weight, bias)
      local padding = self.padding
      if self.padding_mode ~= "zeros" or self.uneven then
        local p = {}
        for i = dims, 1, -1 do p[#p + 1], p[#p + 2] = padding[i], padding[i] + (self.uneven and self.uneven[i] or 0) end
        x, padding = F.pad(x, p, {mode = self.padding_mode == "zeros" and "constant" or self.padding_mode}), many("padding", 0, 0)
      end
      return F[fn](x, weight, bias, plain(self.stride), plain(padding), plain(self.dilation), self.groups)
    end
  end
  function Conv:extra_repr()
    local function unless(plainly, key, value)             -- default values aren't shown
      for i = 1, dims do if type(value) == "table" and value[i] ~= plainly then return (", %s=%s"):format(key, text(value)) end end
      return type(value) ~= "table" and value ~= plainly and (", %s=%s"):format(key, tostring(value)) or ""
    end
    return ("%d, %d, kernel_size=%s, stride=%s, padding=%s%s%s%s%s%s"):format(self.in_channels, self.out_channels,
      text(self.kernel_size), text(self.stride), self.padding_text or text(self.padding),
      transposed and unless(0, "output_padding", self.output_padding) or "", unless(1, "dilation", self.dilation),
      unless(1, "groups", self.groups), self.bias and "" or ", bias=false", unless("zeros", "padding_mode", self.padding_mode))
  end
end
for dims = 1, 3 do
  lib.declare(("Conv%dd"):format(dims), conv, dims)
  lib.declare(("ConvTranspose%dd"):format(dims), conv, dims, true)
end

---- normalisation, dropout ----
local function scale_and_shift(self, size, scale, shift)
  if scale then self.weight = Parameter(ops.ones(size)) end
  if shift then self.bias = Parameter(ops.zeros(size)) end
end
local function running_stats(self, n)
  self:register_buffer("running_mean", ops.zeros(n))
  self:register_buffer("running_var", ops.ones(n))
  self:register_buffer("num_batches_tracked", ops.zeros({}, {dtype = "int64"}))
end
-- Resets the running statistics: mean 0, variance 1.
local function reset_running_stats(self)
  if not self.running_mean then return end
  no_grad(function()
    M.zero_(self.running_mean)
    M.fill_(self.running_var, 1)
    M.zero_(self.num_batches_tracked)
  end)
end
-- A batch norm's forward: with the batch's statistics in training, else with the running ones.
function lib.batch_norm(self, x)
  local momentum = self.momentum
  if self.training and not self.track_running_stats then
    return F.batch_norm(x, nil, nil, self.weight, self.bias, {training = true, eps = self.eps})
  end
  if self.training and not momentum then momentum = self.num_batches_tracked and 1 / (self.num_batches_tracked:item() + 1) or 0 end
  if self.training and self.num_batches_tracked and not modes.now.recomputing then      -- the op increments the count itself
    return (ops.batch_norm_stats(x, self.running_mean, self.running_var, self.weight, self.bias,
      self.num_batches_tracked, {training = true, momentum = momentum, eps = self.eps}))
  end
  return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
    {training = self.training or self.running_mean == nil, momentum = momentum or 0, eps = self.eps})
end
-- Initializes BatchNorm and InstanceNorm. momentum = false: the mean of all batches so far; for an InstanceNorm 0.
local function norm_init(self, name, defaults, ...)
  local o = arguments(name, "num_features, eps=1e-5, momentum=0.1, " .. defaults .. ", *, bias=true", ...)
  local n = whole(name, "num_features", o.num_features)
  self.num_features, self.eps, self.momentum = n, number(name, "eps", o.eps), o.momentum and number(name, "momentum", o.momentum)
  self.affine, self.track_running_stats = o.affine, o.track_running_stats
  scale_and_shift(self, n, o.affine, o.affine and o.bias)
  if o.track_running_stats then running_stats(self, n) end
end
local function norm_repr(self)
  return ("%d, eps=%g, momentum=%s, affine=%s, track_running_stats=%s%s"):format(self.num_features, self.eps, tostring(self.momentum),
    tostring(self.affine), tostring(self.track_running_stats), self.weight and not self.bias and ", bias=false" or "")
end
local function batch_norm(name, least, most)
  local Norm = layer(name)
  -- Batch norm over all dims except 2, the channels: BatchNorm1d (N, C) or (N, C, L), BatchNorm2d (N, C, H, W), BatchNorm3d (N, C, D, H,
  -- W). Training uses the batch's statistics, which running_mean and running_var follow; evaluation uses those. momentum = false: they are
  -- the means over all batches so far.
  function Norm:init(...) norm_init(self, name, "affine=true, track_running_stats=true", ...) end
  Norm.reset_running_stats, Norm.extra_repr = reset_running_stats, norm_repr
  function Norm:forward(x)
    local d = M.dim(x)
    if d < least or d > most then
      fail("%s: the input has shape %s; %s dims are needed", name, tostring(x.shape), least == most and most or least .. " to " .. most)
    end
    return lib.batch_norm(self, x)
  end
end
lib.declare("BatchNorm1d", batch_norm, 2, 3)
lib.declare("BatchNorm2d", batch_norm, 4, 4)
lib.declare("BatchNorm3d", batch_norm, 5, 5)

local function sizes_of(name, v)
  local out = {}
  for i, n in ipairs(type(v) == "table" and v or {v}) do out[i] = whole(name, "normalized_shape", n) end
  return out
end

local LayerNorm = layer("LayerNorm")
-- LayerNorm(normalized_shape, eps=1e-5, elementwise_affine=true, bias=true): over the last dims, which have these sizes (a number: the last
-- dim).
function LayerNorm:init(...)
  local o = arguments("LayerNorm", "normalized_shape, eps=1e-5, elementwise_affine=true, bias=true", ...)
  self.normalized_shape, self.eps = sizes_of("LayerNorm", o.normalized_shape), number("LayerNorm", "eps", o.eps)
  scale_and_shift(self, self.normalized_shape, o.elementwise_affine, o.elementwise_affine and o.bias)
end
function LayerNorm:forward(x) return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, {eps = self.eps}) end
function LayerNorm:extra_repr()
  return ("%s, eps=%g, elementwise_affine=%s"):format(text(self.normalized_shape), self.eps, tostring(self.weight ~= nil)) ..
    (self.weight and not self.bias and ", bias=false" or "")
end

local GroupNorm = layer("GroupNorm")
-- GroupNorm(num_groups, num_channels, eps=1e-5, affine=true, {bias=true}): x (N, num_channels, *), with each group of channels normalised
-- separately.
function GroupNorm:init(...)
  local o = arguments("GroupNorm", "num_groups, num_channels, eps=1e-5, affine=true, *, bias=true", ...)
  local groups, n = whole("GroupNorm", "num_groups", o.num_groups), whole("GroupNorm", "num_channels", o.num_channels)
  self.num_groups, self.num_channels, self.eps = groups, n, number("GroupNorm", "eps", o.eps)
  if n % groups ~= 0 then fail("GroupNorm: num_groups %d must divide num_channels %d", groups, n) end
  scale_and_shift(self, n, o.affine, o.affine and o.bias)
end
function GroupNorm:forward(x) return F.group_norm(x, self.num_groups, self.weight, self.bias, {eps = self.eps}) end
function GroupNorm:extra_repr()
  return ("%d, %d, eps=%g, affine=%s"):format(self.num_groups, self.num_channels, self.eps, tostring(self.weight ~= nil))
end

local RMSNorm = layer("RMSNorm")
-- RMSNorm(normalized_shape, eps=, elementwise_affine=true): divides by the root of the mean of squares over the last dims, which have these
-- sizes. eps: by default the distance from 1 to the next float32 (for float64 elements, float64).
function RMSNorm:init(...)
  local o = arguments("RMSNorm", "normalized_shape, eps=nil, elementwise_affine=true", ...)
  self.normalized_shape, self.eps = sizes_of("RMSNorm", o.normalized_shape), o.eps and number("RMSNorm", "eps", o.eps) or nil
  scale_and_shift(self, self.normalized_shape, o.elementwise_affine, false)
end
function RMSNorm:forward(x) return F.rms_norm(x, self.normalized_shape, self.weight, {eps = self.eps}) end
function RMSNorm:extra_repr()
  return ("%s%s, elementwise_affine=%s"):format(text(self.normalized_shape), self.eps and (", eps=%g"):format(self.eps) or "",
    tostring(self.weight ~= nil))
end

local function instance_norm(name, dims)
  local Norm = layer(name)
  -- Normalises each channel of each item separately: InstanceNorm1d (N, C, L), InstanceNorm2d (N, C, H, W), InstanceNorm3d (N, C, D, H, W);
  -- also without N.
  function Norm:init(...) norm_init(self, name, "affine=false, track_running_stats=false", ...) end
  Norm.reset_running_stats, Norm.extra_repr = reset_running_stats, norm_repr
  function Norm:forward(x)
    local own, n = self.training or self.running_mean == nil, M.dim(x)
    if n ~= dims + 1 and n ~= dims + 2 then
      fail("%s: the input has shape %s; %d or %d dims are needed", name, tostring(x.shape), dims + 1, dims + 2)
    end
    if n == dims + 1 then return M.squeeze(self:forward(M.unsqueeze(x, 1)), 1) end
    if x.shape[2] ~= self.num_features then
      fail("%s: the input has shape %s; dim 2 must be %d", name, tostring(x.shape), self.num_features)
    end
    return F.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
      {use_input_stats = own, momentum = self.momentum or 0, eps = self.eps})
  end
end

for dims = 1, 3 do lib.declare(("InstanceNorm%dd"):format(dims), instance_norm, dims) end

local function dropout(name, fn)
  local Drop = layer(name)
  -- In training each element, or for Dropout1d to 3d each channel, is set to 0 with probability p, and the others are scaled by 1 / (1 -
  -- p). AlphaDropout keeps the mean and variance of SELU's results.
  function Drop:init(...)
    self.p = arguments(name, "p=0.5, inplace=false", ...).p
    if type(self.p) ~= "number" or not (self.p >= 0 and self.p <= 1) then fail(name .. ": p must be in 0..1, got " .. shown(self.p)) end
  end
  function Drop:forward(x) return F[fn](x, self.p, {training = self.training}) end
  function Drop:extra_repr() return ("p=%g"):format(self.p) end
end
for name, fn in pairs {Dropout = "dropout", Dropout1d = "dropout1d", Dropout2d = "dropout2d", Dropout3d = "dropout3d",
    AlphaDropout = "alpha_dropout", FeatureAlphaDropout = "feature_alpha_dropout"} do
  lib.declare(name, dropout, fn)
end

---- what other files have ----
lib.others = require("tycho.later").files {
  {"tycho.nn.plain", [[
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d AvgPool2d
    AvgPool3d Bilinear CELU ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d
    CosineSimilarity ELU EmbeddingBag Flatten Fold GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LPPool1d LPPool2d LPPool3d
    LeakyReLU LocalResponseNorm LogSigmoid LogSoftmax MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Mish PReLU
    PairwiseDistance PixelShuffle PixelUnshuffle RReLU ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d
    ReplicationPad2d ReplicationPad3d SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink
    Threshold Unflatten Unfold Upsample UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d]]},
  {"tycho.nn.losses", [[
    BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss
    L1Loss LinearCrossEntropyLoss MSELoss MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss
    PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss]]},
  {"tycho.nn.dicts", "ModuleDict ParameterDict"},
  {"tycho.nn.adaptive_softmax", "AdaptiveLogSoftmaxWithLoss"},
  {"tycho.nn.lazy", [[
    LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d
    LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear]]},
  {"tycho.nn.transformer",
    "MultiheadAttention Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer"},
  {"tycho.nn.rnn", "GRU GRUCell LSTM LSTMCell RNN RNNCell"},
  {"tycho.nn.parallel", "SyncBatchNorm parallel"}}
local function find(_, name)
  if not lib.declared[name] then lib.others:read(name) end
  local class = lib.class(name)
  if class == nil then lib.all() end                                         -- for the suggestion in the error
  return class
end

for name, fn in pairs(hooks) do if name:find "^register_module" then nn[name] = fn end end

---- summary ----
-- summary(model, sizes, {dtype=}): a text table of the layers that forward runs, with the shapes of their results and their parameters.
-- sizes: a list of a batch's sizes, as {1, 3, 32, 32}, or an input; or a list of these, one for each of forward's arguments. dtype: the
-- inputs', by default the first parameter's: "int64" for ids.
function nn.summary(...) return require("tycho.nn.summary")(...) end

options.told(init, "nn.init")
return options.told(nn, "nn", "tycho.nn.functional", {
  DataParallel = "use nn.parallel.DistributedDataParallel, with one process for each GPU"},
  {grad = "tycho.nn.grad", attention = "tycho.nn.attention"}, find)
