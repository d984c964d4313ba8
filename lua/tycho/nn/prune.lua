-- tycho.nn.utils.prune: parameters with a share of their elements held at 0.
--
-- Idea: m.weight is computed from weight_orig, the parameter, and weight_mask, a buffer of ones and zeros, before each forward; names in
-- state dicts are those of PyTorch's torch.nn.utils.prune. amount: a share, below 1, of the elements (or channels) not yet pruned, or their
-- number.
-- Invariant: pruned elements stay pruned: a mask only loses ones.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local module = require "tycho.nn.module"
local made = require "tycho.nn.made"
local no_grad = require("tycho.modes").no_grad
local fail = options.fail
local ops, M = core.ops, core.methods
local prune = {}

local function count_of(who, amount, left)
  local share = type(amount) == "number" and amount >= 0 and amount < 1
  if not share and not (type(amount) == "number" and amount >= 1 and amount % 1 == 0) then
    fail("%s: amount must be a share below 1 or a whole number, got %s", who, options.shown(amount))
  end
  if not share and amount > left then fail("%s: amount %.0f is more than the %.0f that aren't pruned yet", who, amount, left) end
  local n = share and amount * left or amount
  return math.floor(n) + ((n % 1 > 0.5 or (n % 1 == 0.5 and n % 2 > 1)) and 1 or 0)      -- halves to even, as Python rounds
end

-- The mask with zeros at the n places of least score; places that are 0 already don't count.
local function without_least(mask, scores, n)
  if n == 0 then return mask end
  local flat = M.reshape(mask, -1)
  local _, at = ops.topk(ops.where(ops.ne(flat, 0), M.float(M.reshape(scores, -1)), math.huge), n, 1, false, false)
  return M.reshape(M.index_fill(flat, 1, at, 0), unpack(mask.shape))
end

local function is_made(m, name)
  local e = m[name .. "_made"]
  return type(e) == "table" and e.kind == "prune"
end
-- m[name] with its present zeros, and its mask; without history.
local function parts_of(who, m, name)
  if not module.is_module(m) then fail("%s: argument 1 must be a module, got %s", who, options.shown(m)) end
  if type(name) ~= "string" then fail("%s: argument 2 (name) must be a string, got %s", who, options.shown(name)) end
  if is_made(m, name) then
    local mask = m[name .. "_mask"]
    return m[name .. "_orig"]:detach() * mask, mask
  end
  local w = made.begin(who, m, name):detach()
  return w, no_grad(ops.fill, w, 1)
end
-- Makes m[name] be computed with this mask from now on.
local function apply(m, name, mask)
  if is_made(m, name) then
    no_grad(M.copy_, m[name .. "_mask"], mask)
    m[name] = m[name .. "_made"].compute(m)
    return m
  end
  m:register_parameter(name .. "_orig", m[name])
  m:register_buffer(name .. "_mask", mask)
  return made.install(m, name, "prune", function(self) return self[name .. "_orig"] * self[name .. "_mask"] end)
end

local function scores_for(who, given, w, own)
  if given == nil then given = w end
  if not core.is_tensor(given) or given.shape ~= w.shape then
    fail("%s: importance_scores must be a tensor of shape %s, got %s", who, tostring(w.shape),
      core.is_tensor(given) and "shape " .. tostring(given.shape) or options.shown(given))
  end
  return own and given:detach() or ops.abs(given:detach())
end

-- prune.identity(module, name): holds nothing at 0 yet: module[name] is computed from name_orig and a mask of ones, name_mask. This
-- function and those that follow give the module; amount is a share, below 1, of what isn't held at 0 yet, or a number of elements or
-- slices.
function prune.identity(m, name)
  local _, mask = parts_of("identity", m, name)
  return apply(m, name, mask)
end
-- prune.custom_from_mask(module, name, mask): holds the elements at 0 where the mask is 0.
function prune.custom_from_mask(m, ...)
  local o = options.arguments("custom_from_mask", "name, mask", ...)
  local name, mask = o.name, o.mask
  local w, was = parts_of("custom_from_mask", m, name)
  if not core.is_tensor(mask) or mask.shape ~= w.shape then
    fail("custom_from_mask: argument 3 (mask) must be a tensor of shape %s, got %s", tostring(w.shape),
      core.is_tensor(mask) and "shape " .. tostring(mask.shape) or options.shown(mask))
  end
  return apply(m, name, no_grad(function() return was * M.to(ops.ne(mask, 0), w.device, w.dtype) end))
end
-- prune.random_unstructured(module, name, amount): holds randomly drawn elements at 0.
function prune.random_unstructured(m, ...)
  local o = options.arguments("random_unstructured", "name, amount", ...)
  local name, amount = o.name, o.amount
  local w, mask = parts_of("random_unstructured", m, name)
  return apply(m, name, no_grad(function()
    return without_least(mask, ops.rand(w.shape, {device = w.device}), count_of("random_unstructured", amount, ops.sum(mask):item()))
  end))
end
-- prune.l1_unstructured(module, name, amount, importance_scores=): holds the smallest elements, or those of the smallest scores, at 0.
function prune.l1_unstructured(m, ...)
  local o = options.arguments("l1_unstructured", "name, amount, importance_scores=nil", ...)
  local name = o.name
  local w, mask = parts_of("l1_unstructured", m, name)
  return apply(m, name, no_grad(function()
    return without_least(mask, scores_for("l1_unstructured", o.importance_scores, w),
      count_of("l1_unstructured", o.amount, ops.sum(mask):item()))
  end))
end

-- The mask without the channels along dim that have the least scores; scores(other dims, number of channels): a score for each channel.
local function without_channels(who, w, mask, amount, dim, scores)
  dim = lib.wrap(who, options.whole(who, "dim", dim, -M.dim(w)), M.dim(w))
  return no_grad(function()
    local others, wide = {}, {}
    for d = 1, M.dim(w) do
      if d ~= dim then others[#others + 1] = d end
      wide[d] = d == dim and w.shape[d] or 1
    end
    local left = #others > 0 and ops.amax(mask, others) or mask
    local keep = without_least(left, scores(others, w.shape[dim]), count_of(who, amount, ops.sum(left):item()))
    return mask * M.reshape(keep, unpack(wide))
  end)
end
-- prune.random_structured(module, name, amount, dim): holds randomly drawn slices along dim at 0.
function prune.random_structured(m, ...)
  local o = options.arguments("random_structured", "name, amount, dim=-1", ...)
  local name = o.name
  local w, mask = parts_of("random_structured", m, name)
  return apply(m, name, without_channels("random_structured", w, mask, o.amount, o.dim, function(_, channels)
    return ops.rand({channels}, {device = w.device})
  end))
end
-- prune.ln_structured(module, name, amount, n, dim, importance_scores=): holds the slices along dim that have the smallest n-norm at 0.
function prune.ln_structured(m, ...)
  local o = options.arguments("ln_structured", "name, amount, n, dim=-1, importance_scores=nil", ...)
  local name = o.name
  local w, mask = parts_of("ln_structured", m, name)
  options.number("ln_structured", "n", o.n)
  local scores = scores_for("ln_structured", o.importance_scores, w)
  return apply(m, name, without_channels("ln_structured", w, mask, o.amount, o.dim, function(others)
    return #others > 0 and M.norm(scores, o.n, others) or scores
  end))
end

prune.L1Unstructured, prune.RandomUnstructured = "L1Unstructured", "RandomUnstructured"

---- methods of a program's own ----
local Method, KINDS = {PRUNING_TYPE = "unstructured"}, {unstructured = true, structured = true, global = true}
local function is_method(c) return type(c) == "table" and getmetatable(c) and getmetatable(c).is_pruning_method == true end
-- A method's new mask: it only sees the elements that aren't held at 0 yet, unless it is global.
local function asked(method, name, t, mask)
  local function ask(scores, default)
    local new = method:compute_mask(scores, M.clone(default))
    if not core.is_tensor(new) or new.shape ~= default.shape then
      fail("%s: compute_mask must give a mask of shape %s, got %s", name, tostring(default.shape),
        core.is_tensor(new) and "shape " .. tostring(new.shape) or options.shown(new))
    end
    return M.to(ops.ne(new, 0), mask.device, mask.dtype)
  end
  local kind, left = method.PRUNING_TYPE, ops.ne(mask, 0)
  if not KINDS[kind] then fail("%s: PRUNING_TYPE must be 'unstructured', 'structured' or 'global', got %s", name, options.shown(kind)) end
  if kind == "global" or ops.all(left):item() then return mask * ask(t, mask) end
  if kind == "unstructured" then
    return M.masked_scatter(mask, left, ask(M.masked_select(t, left), M.masked_select(mask, left)))
  end
  local dim, others = lib.wrap(name, options.whole(name, "dim", method.dim or -1, -M.dim(mask)), M.dim(mask)), {}
  for d = 1, M.dim(mask) do if d ~= dim then others[#others + 1] = d end end
  local kept = M.squeeze(M.nonzero(#others > 0 and ops.any(left, others) or left), 2)
  if M.numel(kept) == 0 then return mask end
  return M.index_copy(mask, dim, kept, M.index_select(mask, dim, kept) * ask(M.index_select(t, dim, kept), M.index_select(mask, dim, kept)))
end
prune.BasePruningMethod = {}
-- A user's own method: local Every = BasePruningMethod:extend("Every", "n=2"), whose second argument lists the arguments' names in order,
-- with defaults; they are self's fields in Every:compute_mask(t, default_mask), which returns the mask: t has the scores (the parameter,
-- unless others are given), default_mask, a copy, ones. Then Every.apply(module, name, {n = 3}), also with importance_scores=, or as
-- global_unstructured's pruning_method. Where elements are held at 0 already, t and default_mask are vectors of the others;
-- Every.PRUNING_TYPE = "structured": of the slices along self.dim that aren't 0, "global": of all elements.
function prune.BasePruningMethod:extend(name, signature)
  if self ~= prune.BasePruningMethod then fail("extend: call it with a colon: BasePruningMethod:extend(\"Name\", \"amount\")") end
  for i, v in pairs {name or false, signature} do
    if type(v) ~= "string" then fail("extend: argument %d must be a string, got %s", i, options.shown(v)) end
  end
  local class = setmetatable({}, {__index = Method})
  function class:compute_mask() fail("%s: a method compute_mask(t, default_mask) is needed", name) end
  signature = signature or ""
  local made_of = "module, name" .. (signature == "" and "" or ", " .. signature) .. (signature:find("*", 1, true) and "" or ", *")
  function class.apply(m, ...)
    local given = setmetatable(options.arguments(name, made_of .. ", importance_scores=nil", m, ...), {__index = class})
    local w, mask = parts_of(name, m, given.name)
    return apply(m, given.name, no_grad(asked, given, name, scores_for(name, given.importance_scores, w, true), mask))
  end
  return setmetatable(class, {__index = Method, is_pruning_method = true, __tostring = function() return "class " .. name end,
    __call = function(_, ...) return setmetatable(options.arguments(name, signature, ...), {__index = class}) end})
end

-- prune.global_unstructured(parameters, pruning_method=prune.L1Unstructured, amount=, importance_scores=): holds the smallest elements of
-- all parameters in a list of {module, name} together at 0 (prune.RandomUnstructured: randomly drawn elements; a class made by
-- BasePruningMethod:extend: those that it selects, with its arguments in the table of options). importance_scores: a list with a tensor for
-- each parameter, or false where its own values count.
function prune.global_unstructured(parameters, method, named)
  local who, own, o = "global_unstructured", nil, nil
  if named == nil and type(method) == "table" and not is_method(method) then method, named = method.pruning_method, method end
  if named ~= nil and (type(named) ~= "table" or core.is_tensor(named)) then
    fail("%s: the method's arguments must be in a table, such as {amount = 0.2}, got %s", who, options.shown(named))
  end
  local rest, given = {}, named and named.importance_scores or {}
  for k, v in pairs(named or {}) do if k ~= "pruning_method" and k ~= "importance_scores" then rest[k] = v end end
  if is_method(method) then
    own = method(rest)
    if own.PRUNING_TYPE ~= "unstructured" then
      fail("%s: the PRUNING_TYPE of pruning_method must be 'unstructured', got %s", who, options.shown(own.PRUNING_TYPE))
    end
  else
    o = options.arguments(who, "pruning_method=L1Unstructured, *, amount", method, rest)
    if o.pruning_method ~= prune.L1Unstructured and o.pruning_method ~= prune.RandomUnstructured then
      fail("%s: pruning_method must be prune.L1Unstructured, prune.RandomUnstructured or a class of your own, got %s", who,
        options.shown(o.pruning_method))
    end
  end
  if type(parameters) ~= "table" or #parameters == 0 then fail("global_unstructured: argument 1 must be a list of {module, name}") end
  if type(given) ~= "table" or core.is_tensor(given) then
    fail("%s: importance_scores must be a list with a tensor for each parameter, got %s", who, options.shown(given))
  end
  local masks, scores = {}, {}
  no_grad(function()
    for i, p in ipairs(parameters) do
      if type(p) ~= "table" then fail("global_unstructured: item %d of argument 1 must be {module, name}, got %s", i, options.shown(p)) end
      local w, mask = parts_of("global_unstructured", p[1], p[2])
      masks[i] = mask
      local score = not own and o.pruning_method == "RandomUnstructured" and ops.rand(w.shape, {device = w.device}) or
        scores_for("global_unstructured", given[i] or nil, w, own)
      scores[i] = M.reshape(score, -1)
    end
    local flat = {}
    for i, mask in ipairs(masks) do flat[i] = M.reshape(mask, -1) end
    local all = ops.cat(flat, 1)
    if own then all = asked(own, "global_unstructured", ops.cat(scores, 1), all)
    else all = without_least(all, ops.cat(scores, 1), count_of("global_unstructured", o.amount, ops.sum(all):item())) end
    local from = 0
    for i, mask in ipairs(masks) do
      local count = M.numel(mask)
      masks[i] = M.reshape(M.clone(ops.slice(all, 1, from + 1, from + count)), unpack(mask.shape))
      from = from + count
    end
  end)
  for i, p in ipairs(parameters) do apply(p[1], p[2], masks[i]) end
end

-- prune.remove(module, name): makes module[name] a parameter again; pruned elements are 0, and may change.
function prune.remove(m, ...)
  local name = options.arguments("remove", "name", ...).name
  local w = module.is_module(m) and type(name) == "string" and m[name .. "_orig"] or nil
  return made.remove("remove", "prune", m, name, {"_orig", "_mask"}, w)
end
-- prune.is_pruned(module): whether it, or a module within it, has a pruned parameter.
function prune.is_pruned(m)
  if not module.is_module(m) then fail("is_pruned: argument 1 must be a module, got %s", options.shown(m)) end
  for _, part in m:named_modules() do
    for own in pairs(part._parts) do if is_made(part, tostring(own):match "^(.*)_mask$" or "") then return true end end
  end
  return false
end

return options.told(prune, "nn.utils.prune")
