-- func.vmap: turns a function of one example into a function of many, computed at once (core/vmap.c).
--
-- Idea: the function runs once, with tensors that each stand for one of the examples; ops on them are done for all examples. Invariant:
-- whatever the function does, the vmap has ended when it returns.
local core = require "tycho.core"
local modes = require "tycho.modes"
local options = require "tycho.options"
local tree = require "tycho.tree"
local fail = options.fail
local ops, M = core.ops, core.methods

local plain_table, has_names = tree.is_plain, options.has_names

-- v with fn(tensor, dim) in place of its tensors; dims: a number for all of them, or a table like v. what: names v in errors. without(v,
-- what), if given, is called for parts without dims.
local function each(v, dims, what, fn, without)
  if dims == nil or dims == false then
    if without then without(v, what) end
    return v
  end
  if core.is_tensor(v) then
    if type(dims) ~= "number" then fail("vmap: %s is a tensor; its dim must be a number or false, got %s", what, options.shown(dims)) end
    return fn(v, dims, what)
  end
  if not plain_table(v) then return v end
  local out = {}
  for k, x in pairs(v) do
    local d = dims
    if type(d) == "table" then d = d[k] end
    out[k] = each(x, d, ("%s[%s]"):format(what, tostring(k)), fn, without)
  end
  return out
end

local function check_dim(x, d, what, room)
  local n = M.dim(x) + room
  if d == 0 then fail("vmap: dim 0 for %s: dims begin at 1", what) end
  if d % 1 ~= 0 or d > n or d < -n then
    fail("vmap: dim %s is out of range for %s of shape %s", tostring(d), what, tostring(x.shape))
  end
end

-- Raises if v, a result for which out_dims has no dim, differs from example to example.
local function need_same(v, what)
  if core.is_mapped(v, true) then fail("vmap: %s differs from example to example: out_dims must give the dim for examples", what) end
  if plain_table(v) then for k, x in pairs(v) do need_same(x, ("%s[%s]"):format(what, tostring(k))) end end
end

-- The dims of argument, or result, i.
local function dims_of(dims, i)
  if type(dims) == "table" then return dims[i] or false end
  return dims
end

local function examples(args, in_dims)
  local size, whose
  if type(in_dims) == "table" and #in_dims > args.n then
    fail("vmap: in_dims lists %d arguments, the function is called with %d", #in_dims, args.n)
  end
  for i = 1, args.n do
    each(args[i], dims_of(in_dims, i), "argument " .. i, function(x, d, what)
      check_dim(x, d, what, 0)
      local n = M.size(x, d)
      if size and size ~= n then fail("vmap: %s has %d examples along its dim %d, %s has %d", what, n, d, whose, size) end
      size, whose = n, what
    end)
  end
  if not size then fail("vmap: none of the arguments has a tensor with a dim of examples") end
  return size
end

local function run(fn, in_dims, out_dims, randomness, size, args)
  local function mapped_call()
    local mapped = {}
    for i = 1, args.n do
      mapped[i] = each(args[i], dims_of(in_dims, i), "argument " .. i, function(x, d)
        return core.map_in(d == 1 and ops.expand(x, x.shape) or M.movedim(x, d, 1))        -- a view: x itself stays unmapped
      end)
    end
    local out = {n = 0}
    local function collect(...) out = options.pack(...) end
    collect(fn(unpack(mapped, 1, args.n)))
    for k = 1, out.n do
      out[k] = each(out[k], dims_of(out_dims, k), "result " .. k, function(y, d, what)
        check_dim(y, d, what, 1)
        y = core.map_out(y)
        return d == 1 and y or M.movedim(y, 1, d)
      end, need_same)
    end
    return out
  end
  core.map_begin(size, randomness)
  return options.finally(core.map_end, mapped_call)
end

-- Joins chunks' results along their dims.
local function joined(parts, out_dims, n)
  local out = {n = n}
  local function join(values, dims)
    local first = values[1]
    if not dims or not (core.is_tensor(first) or plain_table(first)) then return first end
    if core.is_tensor(first) then return #values == 1 and first or ops.cat(values, dims) end
    local t = {}
    for k in pairs(first) do
      local of = {}
      for i, v in ipairs(values) do of[i] = v[k] end
      local d = dims
      if type(d) == "table" then d = d[k] end
      t[k] = join(of, d)
    end
    return t
  end
  for k = 1, n do
    local values = {}
    for i, p in ipairs(parts) do values[i] = p[k] end
    out[k] = join(values, dims_of(out_dims, k))
  end
  return out
end

-- vmap(fn, in_dims=1, out_dims=1, {randomness="error", chunk_size}): a function of fn's arguments with an additional dim, that of the
-- examples, which gives fn's results for all of them; fn sees one example's shapes. in_dims: that dim in all tensors of the arguments; or a
-- list with a number for each argument, false for arguments that are the same for all examples, a table of such for a table of tensors.
-- out_dims: that dim in the results; false for results that don't differ. fn can't read values (item, if x[1] > 0), nor write values that
-- differ into tensors from outside. randomness: "different": each example draws its own numbers; "same": all get the same; "error".
-- chunk_size: the number of examples computed at once, to save memory.
return function(fn, in_dims, out_dims, o)
  options.expect("vmap", 1, fn, modes.callable(fn), "a function")
  if has_names(in_dims) then in_dims, o = nil, in_dims
  elseif has_names(out_dims) then out_dims, o = nil, out_dims end
  if in_dims == nil then in_dims = 1 end                 -- false: no argument is mapped
  if out_dims == nil then out_dims = 1 end
  local given = o or {}
  o = options.fill("vmap", o, {in_dims = options.none, out_dims = options.none, randomness = "error", chunk_size = options.none})
  if given.in_dims ~= nil then in_dims = given.in_dims end
  if given.out_dims ~= nil then out_dims = given.out_dims end
  if o.chunk_size then options.whole("vmap", "chunk_size", o.chunk_size, 1) end
  if o.randomness ~= "error" and o.randomness ~= "different" and o.randomness ~= "same" then
    fail("vmap: randomness must be 'error', 'different' or 'same', got %s", options.shown(o.randomness))
  end
  return function(...)
    local args = options.pack(...)
    local size = examples(args, in_dims)
    local at_once = o.chunk_size or size
    if at_once >= size then
      local out = run(fn, in_dims, out_dims, o.randomness, size, args)
      return unpack(out, 1, out.n)
    end
    local parts = {}
    for first = 1, size, at_once do
      local n, some = math.min(at_once, size - first + 1), {n = args.n}
      for i = 1, args.n do
        some[i] = each(args[i], dims_of(in_dims, i), "argument " .. i, function(x, d) return M.narrow(x, d, first, n) end)
      end
      parts[#parts + 1] = run(fn, in_dims, out_dims, o.randomness, n, some)
    end
    local out = joined(parts, out_dims, parts[1].n)
    return unpack(out, 1, out.n)
  end
end
