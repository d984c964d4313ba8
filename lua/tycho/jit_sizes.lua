-- The sizes that a trace takes (jit_trace.lua): which dims of the inputs may have other sizes than the example's, and from where to where.
--
-- Idea: the model runs again with other sizes. Where it calls the very same ops, with numbers that stay the same or follow the sizes, the
-- trace is right for them. Then sizes far from the example's are tried, by results: a model may crop what is long, or treat one item by
-- itself. Invariant: what a run changes is put back, so that a trace leaves the model as one run does.
local core = require "tycho.core"
local modes = require "tycho.modes"
local recompute = require "tycho.recompute"
local pack = require("tycho.options").pack
local P = require "tycho.jit_program"
local ops, M, program = core.ops, core.methods, core.program
local is_value = P.is_value

-- Whether two runs called the same ops on the same values, with numbers that agree(x, y, holder, key) accepts; x is holder[key].
local function same_calls(a, b, agree)
  if #a.events ~= #b.events or a.several ~= b.several then return false end
  local pair = {}                                        -- a's values to b's
  for i, v in ipairs(a.inputs) do pair[v] = b.inputs[i] end
  local function same_value(x, y)
    if pair[x] == nil then                               -- from outside: the same tensor, or one with equal elements
      local s, t = program.value(a.p, x), program.value(b.p, y)
      if not s or not t then return false end
      if not program.same(s, t) and (s.dtype ~= t.dtype or s.shape ~= t.shape or not M.equal(s, t)) then return false end
      pair[x] = y
    end
    return pair[x] == y
  end
  local function same_item(x, y, holder, key)
    if type(x) ~= type(y) then return false end
    if type(x) == "table" then return is_value(x) and is_value(y) and same_value(x.v, y.v) end
    if type(x) == "number" then return agree(x, y, holder, key) end
    return x == y
  end
  for i, e in ipairs(a.events) do
    local f = b.events[i]
    if e.op ~= f.op or (e.inplace or false) ~= (f.inplace or false) then return false end
    for name in pairs(f.args) do if e.args[name] == nil then return false end end
    for name, x in pairs(e.args) do
      local y = f.args[name]
      if type(x) == "table" and not is_value(x) then
        if type(y) ~= "table" or #x ~= #y then return false end
        for k = 1, #x do if not same_item(x[k], y[k], x, k) then return false end end
      elseif not same_item(x, y, e.args, name) then return false end
    end
    for k, v in ipairs(e.out) do pair[v] = f.out[k] end
  end
  local function same_tree(x, y)
    if is_value(x) or is_value(y) then return is_value(x) and is_value(y) and same_value(a.results[x.v], b.results[y.v]) end
    if #x.items ~= #y.items or (x.keys == nil) ~= (y.keys == nil) then return false end
    for k = 1, #x.items do if (x.keys and x.keys[k] ~= y.keys[k]) or not same_tree(x.items[k], y.items[k]) then return false end end
    return true
  end
  return same_tree(a.tree, b.tree)
end
local function equal(x, y) return x == y or (x ~= x and y ~= y) end

-- The numbers that changed from run a, with size n, to run b, with size m: a list of {holder, key, times, plus}, where the number is times
-- * size + plus. False: the second run called other ops. of_batch: plus must be 0.
local function generalise(a, b, n, m, of_batch)
  local grown = {}
  return same_calls(a, b, function(x, y, holder, key)
    if equal(x, y) then return true end
    local times = (y - x) / (m - n)
    local plus = x - times * n
    if times % 1 ~= 0 or times < 1 or plus % 1 ~= 0 or of_batch and plus ~= 0 then return false end
    grown[#grown + 1] = {holder, key, times, plus}
    return true
  end) and grown
end

-- x with `size` elements along d: its own, repeated in turn
local function resized(x, d, size)
  local at = ops.remainder(ops.range(0, size - 1, 1, {dtype = "int64", device = x.device}), x.shape[d]) + 1
  return ops.index(x, {at}, d)
end
-- The inputs with other sizes: sizes[d] for dim d of the first one, and of those that have its size there; batch_size for the batch, if
-- that is given; batch: its dim in each input.
local function with_sizes(copies, sizes, batch, batch_size)
  local other, first = {}, copies[1].shape
  for i, x in ipairs(copies) do
    local own = x
    for d, size in pairs(sizes) do if M.dim(own) >= d and own.shape[d] == first[d] then x = resized(x, d, size) end end
    other[i] = batch_size and batch[i] > 0 and resized(x, batch[i], batch_size) or x
  end
  return other
end

-- attempt(fn, inputs): fn(unpack(inputs)), which may fail, as pcall's outcome in a list with n. A GPU's error may come after the call at
-- fault, so the GPU is waited for. What the call changes is put back: generators; tensors, those of the model's state too, since with
-- other sizes it may change more of them; and what modules hold beside tensors. a: the record of the model's run; whole: the model.
local function attempts_of(a, whole, state)
  local _, _, _, changed = P.changed(a.events)
  local values, kept, fields = {}, {}, {}
  for i, v in ipairs(changed) do values[i] = program.value(a.p, v) end
  for _, s in ipairs(#changed > 0 and state or {}) do values[#values + 1] = s.tensor:detach() end
  for i, t in ipairs(values) do kept[i] = ops.clone(t) end
  for _, m in ipairs(type(whole) == "table" and whole.modules and whole:modules() or {}) do
    local plain, was = rawget(m, "_plain"), {}
    for k, v in pairs(plain) do was[k] = v end
    fields[plain] = was
  end
  return function(fn, inputs)
    local generators = recompute.generators(false, unpack(inputs))
    local r = pack(pcall(fn, unpack(inputs)))
    for _, x in ipairs(inputs) do
      if x.device ~= "cpu" then r[1] = pcall(core.gpu.synchronize, x.device) and r[1] end
    end
    modes.no_grad(function() for i, t in ipairs(values) do M.copy_(t, kept[i]) end end)
    for plain, was in pairs(fields) do
      for k in pairs(plain) do plain[k] = was[k] end
      for k, v in pairs(was) do plain[k] = v end
    end
    recompute.restore(generators)
    return r
  end
end

-- Sizes to try instead of n: a larger one and a smaller one (1 for 1), of the other parity.
local function larger(n) return n < 4 and 4 * n + 1 or 2 * n + 1 end
local function smaller(n) return math.max(math.floor(n / 2) + (math.floor(n / 2) % 2 == n % 2 and 1 or 0), 1) end

-- The dims of input 1 whose size affects no number in the model: with a larger and a smaller size, both of the other parity, and with all
-- such dims changed at once, the model calls the very same ops with the same numbers. Other inputs of that size there change along.
local function free_dims(try, copies, a)
  local first = copies[1].shape
  local function same(sizes)
    local ok, b = try(with_sizes(copies, sizes))
    return ok and same_calls(a, b, equal)
  end
  local free, at_once = {}, {}
  for d = 1, #first do
    local n = first[d]
    if n > 0 and same({[d] = larger(n)}) and (smaller(n) == n or same({[d] = smaller(n)})) then
      free[#free + 1] = d
      at_once[d] = (#free + 1) * n + 1
    end
  end
  return (#free == 1 or #free > 1 and same(at_once)) and free or nil
end

-- Calls fn(n, dims) for every choice of one dim of n elements in each input, 0 (none) last. The first input's dim is `first`; the others
-- try theirs at `first` first.
local function each_way(copies, first, fn)
  local n, dims = copies[1].shape[first], {first}
  local function choose(i)
    if i > #copies then return fn(n, dims) end
    local x = copies[i]
    local has = M.dim(x) >= first and x.shape[first] == n
    if has then
      dims[i] = first
      if choose(i + 1) then return true end
    end
    for d = 1, M.dim(x) do
      dims[i] = d
      if not (has and d == first) and x.shape[d] == n and choose(i + 1) then return true end
    end
    dims[i] = 0
    return choose(i + 1)
  end
  return choose(2)
end

-- The dim of each input that is the batch: with a larger size there, twice the size and a smaller one, the model calls the same ops, with
-- numbers that stay the same or change in proportion. It is dim 1 or 2 of the first input: 2 where dim 1 is free anyway, as a sequence's
-- length is. A dim of another input belongs to the batch only where the model needs that, since sizes may be equal by chance. nil: none was
-- found in TRIALS runs.
local TRIALS = 16
local function batch_dims(try, copies, a, free)
  local function sizes_that_grow(n, dims)
    local function follows(size)
      local other = {}
      for i, x in ipairs(copies) do other[i] = dims[i] > 0 and resized(x, dims[i], size) or x end
      local ok, b = try(other)
      return ok and generalise(a, b, n, size, true)
    end
    if smaller(n) > 1 and not follows(smaller(n)) then return false end        -- some layers have no statistics of one item
    return follows(larger(n)) and follows(2 * n)
  end
  -- Drops from dims those of input i (nil: of all inputs) that aren't `first`, if the model follows without them; gives dims and grown.
  local function without(first, n, dims, grown, i)
    local fewer, changed = {unpack(dims)}, false
    for k, d in ipairs(dims) do
      if d > 0 and d ~= first and (i == nil or i == k) then fewer[k], changed = 0, true end
    end
    local still = changed and sizes_that_grow(n, fewer)
    if still then return fewer, still end
    return dims, grown
  end
  local trials, found, follows = 0, nil, nil
  for _, first in ipairs(free[1] == 1 and {2, 1} or {1, 2}) do
    if not found and first <= M.dim(copies[1]) and copies[1].shape[first] > 0 then
      each_way(copies, first, function(n, dims)
        if trials == TRIALS then return true end
        trials = trials + 1
        local grown = sizes_that_grow(n, dims)
        if not grown then return false end
        found, grown = without(first, n, {unpack(dims)}, grown)
        for i = 2, #copies do found, grown = without(first, n, found, grown, i) end
        follows = grown
        return true
      end)
    end
  end
  return found, follows
end

-- Notes the numbers that follow dim d of input 1 (0: the batch): places[holder][key] is {dims, times, plus}. Such a number is the product
-- of the sizes of dims, times a factor; if it follows one dim only, plus a number.
local function note(places, grown, d)
  for _, g in ipairs(grown) do
    local of = places[g[1]] or {}
    places[g[1]] = of
    local p = of[g[2]] or {dims = {}, times = g[3], plus = 0}
    p.dims[#p.dims + 1], p.plus = d, p.plus + g[4]
    of[g[2]] = p
  end
end

-- The form of such a number in a program, or nil if it isn't of that kind; size(d): the size of dim d.
local function following(x, p, size)
  if p.plus ~= 0 then return #p.dims == 1 and {size = p.times, of = p.dims, plus = p.plus} or nil end
  local times = x
  for _, d in ipairs(p.dims) do times = times / size(d) end
  return times % 1 == 0 and times >= 1 and {size = times, of = p.dims} or nil
end

-- A second size below n, for n >= 4, where sizes above n are refused, as by a table of positions that ends there.
local function less(n) return n - 1 ~= smaller(n) and n - 1 or n - 2 end

-- The other dims of the first input whose sizes numbers follow: a list; each one's step; and the places of these numbers, the batch's among
-- them, if all sizes may change together. batch: the batch dim of each input. A dim's step is the least divisor of its size whose multiples
-- the model takes: 4 where it halves a picture twice and puts the parts together again. Numbers follow a size in steps.
local function growing_dims(try, copies, a, free, batch, follows)
  local first, found, fixed, steps, ends = copies[1].shape, {}, {}, {}, {}
  for _, d in ipairs(free) do fixed[d], steps[d] = true, 1 end
  if batch then fixed[batch[1]] = true end
  -- The numbers that follow dim d, of n steps, if it gets `size` steps, or false; and whether the model runs then.
  local function grown_to(d, step, size)
    local ok, b = try(with_sizes(copies, {[d] = size * step}))
    return ok and generalise(a, b, first[d] / step, size), ok
  end
  local function alike(grown, other)
    local same = grown and other and #grown == #other
    for k, g in ipairs(same and grown or {}) do
      for f = 1, 4 do same = same and g[f] == other[k][f] end
    end
    return same
  end
  -- The numbers that follow dim d in steps, or false; and whether larger sizes are refused. One step is a case of its own in many models.
  local function grown_by(d, step)
    local n, ended = first[d] / step, false
    local grown, fits = grown_to(d, step, step == 1 and larger(n) or 2 * n + 1)
    if not fits and n > 3 then grown, ended = grown_to(d, step, less(n)), true end
    local tries = {smaller(n), step > 1 and smaller(n) > 1 and 1 or nil}
    for _, size in ipairs(tries) do
      if grown and size ~= n and not alike(grown, (grown_to(d, step, size))) then grown = false end
    end
    return grown, ended
  end
  -- Whether the model takes multiples of dim d's size, with numbers that follow; or a half, where sizes above it are refused.
  local function multiplies(d, n)
    local twice = grown_to(d, n, 2)
    if twice then return alike(twice, (grown_to(d, n, 3))) end
    return n % 2 == 0 and grown_to(d, n / 2, 1)
  end
  local grown_of = {}
  for d, n in ipairs(first) do
    local grown, step, ended = false, 1, nil
    if not fixed[d] and n > 1 then
      grown, ended = grown_by(d, 1)
      if not grown and multiplies(d, n) then
        repeat
          step = step + 1
          if n % step == 0 then grown, ended = grown_by(d, step) end
        until grown or step >= n
      end
    end
    if grown then found[#found + 1], grown_of[d], steps[d], ends[d] = d, grown, step, ended end
  end
  -- The places of the numbers that follow the dims of `list` and the batch, if all of these may change together.
  local function together(list)
    local places, sizes, counts, batch_size = {}, {}, {}, batch and larger(first[batch[1]]) or nil
    for _, d in ipairs(list) do note(places, grown_of[d], d) end
    if batch then note(places, follows, 0) end
    for _, dims in ipairs {free, list} do
      for _, d in ipairs(dims) do
        local n = first[d] / steps[d]
        counts[d] = ends[d] and less(n) or 2 * n + d
        sizes[d] = counts[d] * steps[d]
      end
    end
    local ok, b = try(with_sizes(copies, sizes, batch, batch_size))
    local function old(d) return d == 0 and first[batch[1]] or first[d] / steps[d] end
    counts[0] = batch_size
    return ok and same_calls(a, b, function(x, y, holder, key)
      local p = places[holder] and places[holder][key]
      local now = p and following(x, p, old)
      if not p then return equal(x, y) end
      return now ~= nil and P.sized(now, counts) == y
    end) and places
  end
  local places = #found > 0 and together(found)
  if not places then                       -- without the dims that have steps
    local plain = {}
    for _, d in ipairs(found) do if steps[d] == 1 then plain[#plain + 1] = d end end
    places = #plain > 0 and #plain < #found and together(plain)
    found = places and plain or {}
  end
  return found, steps, places or nil
end

-- Sets p.batch, p.free and p.steps, and puts numbers that follow sizes into the record. try(inputs): a run's success, and its record.
local function note_free_sizes(p, try, copies, a)
  local free, first = free_dims(try, copies, a) or {}, copies[1].shape
  local batch, follows = batch_dims(try, copies, a, free)
  local growing, steps, places = growing_dims(try, copies, a, free, batch, follows)
  local function size(d) return d == 0 and first[batch[1]] or first[d] / steps[d] end
  if places then
    for holder, keys in pairs(places) do
      for key, at in pairs(keys) do holder[key] = following(holder[key], at, size) end
    end
  elseif batch then
    for _, g in ipairs(follows) do g[1][g[2]] = {size = g[3], of = {0}} end
  end
  p.batch = batch
  if p.batch then
    local plain = true
    for _, d in ipairs(p.batch) do plain = plain and d == 1 end
    if plain then p.batch = true end
  end
  for _, list in ipairs {free, growing} do
    for _, d in ipairs(list) do
      if d ~= P.batch_dim(p, 1) then p.free = p.free or {}; p.free[#p.free + 1] = d end
    end
  end
  if not p.free then return end
  table.sort(p.free)
  local own, multiples = {}, false
  for i, d in ipairs(p.free) do own[i], multiples = steps[d], multiples or steps[d] > 1 end
  p.steps = multiples and own or nil
end

---- from where to where ----
-- Sizes that are tried, each only where the run before was short enough to expect one of less than PATIENCE seconds.
local FAR, PATIENCE = {100, 300, 1000}, 0.5

-- Whether results are the same but for rounding.
local function alike(x, y)
  if type(x) == "table" then
    if type(y) ~= "table" then return false end
    for k in pairs(y) do if x[k] == nil then return false end end
    for k, v in pairs(x) do if not alike(v, y[k]) then return false end end
    return true
  end
  if not core.is_tensor(x) or not core.is_tensor(y) or x.shape ~= y.shape or x.dtype ~= y.dtype then return x == y end
  if M.numel(x) == 0 then return true end
  local far = x.dtype:find "16" and 0.05 or 1e-3
  x, y = M.double(x), M.double(y)
  local scale = ops.amax(ops.abs(M.nan_to_num(y, 0, 0, 0))):item()
  return M.allclose(x, y, {rtol = far, atol = far * scale, equal_nan = true})
end

-- Sets p.bounds: for dims where the traced model gives other results than the model with sizes far from the example's, the least and the
-- most that are right. (Where both fail, either is right.)
local function note_bounds(p, attempt, model, traced, copies)
  local batch, first = {}, copies[1].shape
  for i in ipairs(copies) do batch[i] = P.batch_dim(p, i) end
  local spent = 0                                        -- by the last run of the model, in seconds
  local function right(d, size)
    local inputs = d == 0 and with_sizes(copies, {}, batch, size) or with_sizes(copies, {[d] = size})
    local function timed(...)
      local start = core.now()
      local r = pack(modes.no_grad(model, ...))
      spent = core.now() - start
      return unpack(r, 1, r.n)
    end
    local want, got = attempt(timed, inputs), attempt(function(...) return modes.no_grad(traced, ...) end, inputs)
    return not want[1] and not got[1] or want[1] and got[1] and alike({unpack(got, 2, got.n)}, {unpack(want, 2, want.n)})
  end
  local function bound(d, n, step)
    local function last_right(good, bad)
      while math.abs(good - bad) > 1 do
        local between = math.floor((good + bad) / 2)
        if right(d, between * step) then good = between else bad = between end
      end
      return good * step
    end
    local own = {dim = d}
    if n > 1 and not right(d, step) then own.least = last_right(n, 1) end
    if not right(d, n * step) then return end            -- such as a model whose results differ in each call
    local reached, time = n, spent
    for _, size in ipairs(FAR) do
      local count = math.floor(size / step)
      if count > 3 * n and time * count / reached < PATIENCE then
        if not right(d, count * step) then
          own.most = last_right(reached, count)
          break
        end
        reached, time = count, spent
      end
    end
    if own.least or own.most then
      p.bounds = p.bounds or {}
      p.bounds[#p.bounds + 1] = own
    end
  end
  if batch[1] > 0 then bound(0, first[batch[1]], 1) end
  for _, d in ipairs(p.free or {}) do
    if first[d] > 0 then bound(d, first[d] / P.step(p, d), P.step(p, d)) end
  end
end

return {attempts_of = attempts_of, note_free_sizes = note_free_sizes, note_bounds = note_bounds}
