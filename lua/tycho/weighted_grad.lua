-- Gradients for derivatives of functions (autograd/functional.lua, func.lua): one for each tensor, zeros where the tape has none.
local core = require "tycho.core"
local autograd = require "tycho.autograd"
local modes = require "tycho.modes"
local options = require "tycho.options"

local M = core.methods
local weighted = {}

-- x as a variable to differentiate by: a new leaf, or, if it requires grad and keeps its history, a tensor that leads to x. Within vmap
-- each example has its own.
function weighted.leaf(x, keeps)
  if core.is_mapping() then x = core.map_in_all(core.map_out_all(x)) end
  if keeps and x.requires_grad then return core.ops.view(x, x.shape) end
  if modes.now.first_run and x.requires_grad then core.list_read {x} end         -- a checkpoint's function reads it
  local leaf, made = M.detach(x):requires_grad_(), modes.now.made_leaves
  if made then made[#made + 1] = core.keep(core.same(core.is_mapping() and core.map_out_all(leaf) or leaf)) end  -- outlives scopes
  return leaf
end

-- fn(...)'s results, as a list with n, and the leaves that derivatives within it made.
function weighted.watched(fn, ...)
  local made, around = {}, modes.now.made_leaves
  local out = options.pack(modes.during({made_leaves = made}, fn, ...))
  for _, leaf in ipairs(around and made or {}) do around[#around + 1] = leaf end
  return out, made
end

-- The tape needs the tensors of all of vmap's examples. level: only of the vmaps within the level-th.
local function of_all(list, level)
  if not core.is_mapping() then return list end
  local out = {}
  for i, x in pairs(list) do out[i] = core.map_out_all(x, level) end
  return out
end

-- Whether the outputs' history leads to leaves other than xs and those in made, such as parameters that a function has captured.
function weighted.captured(outputs, xs, made)
  local roots, known = {}, {}
  for _, y in ipairs(outputs) do if core.is_tensor(y) and y.requires_grad then roots[#roots + 1] = y end end
  for k, x in ipairs(of_all(xs)) do known[k] = x end
  for _, x in ipairs(made) do known[#known + 1] = x end
  return #roots > 0 and select(2, core.reached(of_all(roots), known))
end

-- The level of the innermost vmap that maps one of these tensors; 0 outside of all.
local function level_of(list, least)
  for _, x in pairs(list) do least = math.max(least, core.map_level(x)) end
  return least
end

-- weighted.grad where roots and xs are of the vmaps up to the level-th, as they were when their function was called, and weights may be
-- mapped by others within these: one pass for each example of those.
local function each_weighted(level, roots, xs, weights, create)
  if level_of(weights, level) == level then return modes.at_level(level, weighted.grad, roots, xs, weights, create) end
  local all, parts, lead, n = of_all(weights, level), {}, nil, nil
  for i, w in pairs(all) do
    lead, n = {unpack(w.shape, 1, M.dim(w) - M.dim(roots[i]))}, 1
    for _, size in ipairs(lead) do n = n * size end
    all[i] = M.reshape(w, n, unpack(roots[i].shape))
  end
  for b = 1, n do
    local some = {}
    for i, w in pairs(all) do some[i] = core.ops.select(w, 1, b) end
    for k, g in ipairs(modes.at_level(level, weighted.grad, roots, xs, some, create)) do
      parts[k] = parts[k] or {}
      parts[k][b] = g
    end
  end
  for k, x in ipairs(xs) do
    local shape = {unpack(lead)}
    for _, size in ipairs(x.shape) do shape[#shape + 1] = size end
    local made = n > 0 and M.reshape(core.ops.stack(parts[k]), shape) or core.ops.zeros(shape, {dtype = x.dtype, device = x.device})
    parts[k] = core.map_in_all(made, level)
  end
  return parts
end

-- Gradients of outputs, weighted by weights (nil: for one number), for xs. create: with a history.
function weighted.grad(outputs, xs, weights, create)
  local roots, w = {}, {}
  for i, y in ipairs(outputs) do
    if y.requires_grad then roots[#roots + 1], w[#roots + 1] = y, weights[i] end
  end
  local mapping = core.is_mapping()
  local level = mapping and level_of(xs, level_of(roots, 0))
  if mapping and level < core.map_level() then return each_weighted(level, roots, xs, w, create) end
  local given = xs
  if mapping then
    for i, y in ipairs(roots) do w[i] = w[i] or core.ops.ones(y.shape, {dtype = y.dtype, device = y.device}) end
    roots, given, w = of_all(roots), of_all(xs), of_all(w)
  end
  local g = #roots > 0 and
    autograd.grad(roots, given, {grad_outputs = w, retain_graph = true, create_graph = create, allow_unused = true}) or {}
  local out = {}
  for i, x in ipairs(xs) do
    out[i] = g[i] and mapping and core.map_in_all(g[i]) or g[i] or core.ops.zeros(x.shape, {dtype = x.dtype, device = x.device})
  end
  return out
end

return weighted
