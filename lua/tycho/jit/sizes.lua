-- The sizes that a trace takes (jit/trace.lua): which dims of the inputs may have other sizes than the example's. (From where to where:
-- jit/bounds.lua.)
--
-- Idea: the model runs again with other sizes. Where it calls the very same ops, with numbers that stay the same or follow the sizes, the
-- trace is right for them. Invariant: what a run changes in a module is put back: tensors, and fields with the plain tables in them; so
-- that a trace leaves it as one run does. (Not a function's upvalues.)
local core = require "tycho.core"
local modes = require "tycho.modes"
local recompute = require "tycho.recompute"
local pack = require("tycho.options").pack
local tree = require "tycho.tree"
local P = require "tycho.jit.program"
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

-- x with `size` elements along d: its own, repeated in turn. varied: each repetition begins one further on, and floating numbers grow, so
-- that results over a part aren't those over all.
local function resized(x, d, size, varied)
  local n = x.shape[d]
  local place = ops.range(0, size - 1, 1, {dtype = "int64", device = x.device})
  local turn = M.floor_divide(place, math.max(n, 1))
  local y = ops.index(x, {ops.remainder(varied and place + turn or place, n) + 1}, d)
  if not varied or size <= n or not M.is_floating_point(x) then return y end
  local shape = {}
  for e = 1, M.dim(x) do shape[e] = e == d and size or 1 end
  return y * M.view(M.to(M.float(turn) / 64 + 1, x.dtype), shape)
end

---- variables ----
-- A variable is {id =, members = {{input, dim}, ...}, n = the example's size in steps, step =, grown = the numbers that follow it}: dims
-- that have one size, or sizes in proportion, which may differ. Its id is its first member's place (P.place); the batch's is 0.

-- The inputs with other sizes: sizes[variable] = elements of its first member. nil: another member's size would be a fraction, or there is
-- too little memory.
local function with_sizes(copies, sizes, varied)
  local other = {unpack(copies)}
  for v, size in pairs(sizes) do
    local own = copies[v.members[1][1]].shape[v.members[1][2]]
    for _, m in ipairs(v.members) do
      local n = size * copies[m[1]].shape[m[2]] / own
      if n % 1 ~= 0 then return nil end
      local ok, x = pcall(resized, other[m[1]], m[2], n, varied)
      if not ok then return nil end
      other[m[1]] = x
    end
  end
  return other
end

-- The variables that dim d of input i may belong to, most likely first: with the same dim of later inputs of that size; with all their dims
-- of that size, as a square matrix has; alone; with all dims of that size of later inputs; with the same dim of later inputs whose size is
-- a multiple or a fraction, as that of a picture at another scale. claimed[place]: the dim belongs to another one.
local function candidates(copies, i, d, claimed)
  local n, list, seen = copies[i].shape[d], {}, {}
  local function add(takes)
    local members, text = {}, ""
    for j = i, #copies do
      for e = 1, M.dim(copies[j]) do
        if not claimed[P.place(j, e)] and takes(j, e, copies[j].shape[e]) then
          members[#members + 1], text = {j, e}, text .. " " .. P.place(j, e)
        end
      end
    end
    for k, m in ipairs(members) do if m[1] == i and m[2] == d then table.insert(members, 1, table.remove(members, k)) end end
    if not seen[text] then seen[text], list[#list + 1] = true, {id = P.place(i, d), members = members, n = n, step = 1, grown = {}} end
  end
  add(function(_, e, m) return m == n and e == d end)
  add(function(_, _, m) return m == n end)
  if i > 1 then add(function(j, e) return j == i and e == d end) end
  add(function(j, e, m) return m == n and (j > i or e == d) end)
  add(function(j, e, m) return e == d and m > 1 and (m % n == 0 or n % m == 0) and (j > i or m == n) end)
  return list
end
local function claim(claimed, v) for _, m in ipairs(v.members) do claimed[P.place(m[1], m[2])] = true end end

---- trials ----
-- A function that puts back the modules' fields, and what plain tables in these hold.
local function restoring(modules)
  local was = {}
  local function keep(t)
    if was[t] then return end
    was[t] = {}
    for k, v in next, t do
      was[t][k] = v
      if tree.is_plain(v) then keep(v) end
    end
  end
  for _, m in ipairs(modules) do keep(m) end
  return function()
    for t, fields in pairs(was) do
      for k in next, t do rawset(t, k, fields[k]) end
      for k, v in pairs(fields) do rawset(t, k, v) end
    end
  end
end
-- A function that puts back tensors' elements, where these have been changed in place.
local function recopying(tensors)
  local kept, versions = {}, {}
  for i, t in ipairs(tensors) do kept[i], versions[i] = ops.clone(t), M._version(t) end
  return function()
    for i, t in ipairs(tensors) do
      if M._version(t) ~= versions[i] then
        modes.no_grad(M.copy_, t, kept[i])
        versions[i] = M._version(t)
      end
    end
  end
end

-- attempt(fn, inputs): fn(unpack(inputs)), which may fail, as pcall's outcome in a list with n. A GPU's error may come after the
-- call at fault, so the GPU is waited for. What the call changes is put back: generators; tensors, buffers too, and, where the
-- recorded run changed any, parameters, of which there may be too many to keep a copy for nothing; and what modules hold beside
-- these, which the call finds as the recorded run did (begin), such as a cache that isn't made yet. a: the record of that run.
local function attempts_of(a, modules, state, begin)
  local _, _, _, changed = P.changed(a.events)
  local values = {}
  for i, v in ipairs(changed) do values[i] = program.value(a.p, v) end
  for _, s in ipairs(state) do
    if s.kind == "buffer" or #changed > 0 then values[#values + 1] = s.tensor:detach() end
  end
  local restore_fields = restoring(modules)
  local restore_values = recopying(values)
  return function(fn, inputs)
    local generators = recompute.generators(false, unpack(inputs))
    begin()
    local r = pack(pcall(fn, unpack(inputs)))
    for _, x in ipairs(inputs) do
      if x.device ~= "cpu" then r[1] = pcall(core.gpu.synchronize, x.device) and r[1] end
    end
    restore_fields()
    restore_values()
    recompute.restore(generators)
    return r
  end
end

-- Sizes to try instead of n: a larger one and a smaller one (1 for 1), of the other parity.
local function larger(n) return n < 4 and 4 * n + 1 or 2 * n + 1 end
local function smaller(n) return math.max(math.floor(n / 2) + (math.floor(n / 2) % 2 == n % 2 and 1 or 0), 1) end

-- The variables of input 1's dims whose size affects no number in the model: with a larger and a smaller size, both of the other parity,
-- and with all of them changed at once, the model calls the very same ops with the same numbers.
local function free_dims(try, copies, a)
  local function same(sizes)
    local ok, b = try(with_sizes(copies, sizes))
    return ok and same_calls(a, b, equal)
  end
  local free, at_once = {}, {}
  for d, n in ipairs(copies[1].shape) do
    local v = candidates(copies, 1, d, {})[1]
    if n > 0 and same({[v] = larger(n)}) and (smaller(n) == n or same({[v] = smaller(n)})) then
      free[#free + 1] = v
      at_once[v] = (#free + 1) * n + 1
    end
  end
  return (#free == 1 or #free > 1 and same(at_once)) and free or {}
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

-- The batch, a variable: with a larger size there, twice the size and a smaller one, the model calls the same ops, with
-- numbers that stay the same or change in proportion. It is dim 1 or 2 of the first input: 2 where dim 1 is free anyway, as a sequence's
-- length is. It has at most one dim of each input; one of another input only where the model needs that, since sizes may be equal by
-- chance. nil: none was found in TRIALS runs.
local TRIALS = 16
local function batch_of(try, copies, a, free)
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
  for _, first in ipairs(free[1] and free[1].id == 1 and {2, 1} or {1, 2}) do
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
  if not found then return nil end
  local members = {}
  for i, d in ipairs(found) do if d > 0 then members[#members + 1] = {i, d} end end
  return {id = 0, members = members, n = copies[1].shape[found[1]], step = 1, grown = follows}
end

-- Notes the numbers that follow variable v: places[holder][key] lists {id, times, plus}.
local function note(places, v)
  for _, g in ipairs(v.grown) do
    local of = places[g[1]] or {}
    places[g[1]] = of
    of[g[2]] = of[g[2]] or {}
    table.insert(of[g[2]], {v.id, g[3], g[4]})
  end
end

-- The form of such a number x in a program: the product of the sizes, times a factor, plus a number, where that number is the same
-- whichever size differs; else the sum of the sizes, each times a factor, plus a number. nil: neither. sizes: by id, in steps.
local function following(x, list, sizes)
  local ids, plus, times, rest = {}, list[1][3], x - list[1][3], x
  for k, f in ipairs(list) do
    ids[k], times, rest = f[1], times / sizes[f[1]], rest - f[2] * sizes[f[1]]
    if f[3] ~= plus then plus = nil end
  end
  if plus then return times % 1 == 0 and times >= 1 and {size = times, of = ids, plus = plus ~= 0 and plus or nil} or nil end
  local sum
  for k = #list, 1, -1 do sum = {size = list[k][2], of = {list[k][1]}, more = sum} end
  sum.plus = rest ~= 0 and rest or nil
  return sum
end

-- A second size below n, for n >= 4, where sizes above n are refused, as by a table of positions that ends there.
local function less(n) return n - 1 ~= smaller(n) and n - 1 or n - 2 end

-- Whether the numbers that follow a variable are right for it: sets v.grown, v.step, v.n (in steps) and v.ended (larger sizes are refused).
-- The step is the least divisor of the size whose multiples the model takes: 4 where it halves a picture twice and puts the parts together
-- again; one step may be a case of its own (jit/bounds.lua). steps: whether other ones than 1 are tried.
local function grows(try, copies, a, v, steps)
  local whole = v.n
  -- The numbers that follow v, of n steps, if it gets `size` steps, or false; and whether the model runs then.
  local function grown_to(step, size)
    local ok, b = try(with_sizes(copies, {[v] = size * step}))
    return ok and generalise(a, b, whole / step, size), ok
  end
  local function alike(grown, other)
    local same = grown and other and #grown == #other
    for k, g in ipairs(same and grown or {}) do
      for f = 1, 4 do same = same and g[f] == other[k][f] end
    end
    return same
  end
  local function by(step)
    local n, ended = whole / step, false
    local grown, fits = grown_to(step, step == 1 and larger(n) or 2 * n + 1)
    if not fits and n > 3 then grown, ended = grown_to(step, less(n)), true end
    local few, many = smaller(n), 3 * n + 2
    if grown and few ~= n then
      local other, runs = grown_to(step, few == 1 and step > 1 and not ended and many or few)
      -- the example's values may need that size, as indices do: then a larger one decides
      if not runs and not ended and step == 1 then other = grown_to(step, many) end
      if not alike(grown, other) then grown = false end
    end
    if not grown then return false end
    v.grown, v.step, v.n, v.ended = grown, step, n, ended
    return true
  end
  -- Whether the model takes multiples of the size, with numbers that follow; or a half, where sizes above it are refused.
  local function multiplies()
    local twice = grown_to(whole, 2)
    if twice then return alike(twice, (grown_to(whole, 3))) end
    return whole % 2 == 0 and grown_to(whole / 2, 1)
  end
  if by(1) then return true end
  for step = 2, steps and multiplies() and whole or 1 do
    if whole % step == 0 and by(step) then return true end
  end
  return false
end

-- Those of the variables that may change together, with the `fixed` ones; and the places of the numbers that follow any of them.
local function together(try, copies, a, fixed, variables)
  local function at_once(list)
    local places, sizes, counts, old = {}, {}, {}, {}
    for _, vs in ipairs {fixed, list} do
      for _, v in ipairs(vs) do
        note(places, v)
        old[v.id], counts[v.id] = v.n, v.id == 0 and larger(v.n) or v.ended and less(v.n) or 2 * v.n + v.id
        sizes[v] = counts[v.id] * v.step
      end
    end
    local ok, b = try(with_sizes(copies, sizes))
    return ok and same_calls(a, b, function(x, y, holder, key)
      local p = places[holder] and places[holder][key]
      local now = p and following(x, p, old)
      if not p then return equal(x, y) end
      return now ~= nil and P.sized(now, counts) == y
    end) and places
  end
  local places = at_once(variables)
  if places then return variables, places end
  local found = {}
  for _, with_steps in ipairs {false, true} do           -- one by one
    for _, v in ipairs(variables) do
      if (v.step > 1) == with_steps then
        found[#found + 1] = v
        local more = at_once(found)
        if more then places = more else found[#found] = nil end
      end
    end
  end
  return found, places
end

-- The free dims as p has them: ids, steps and members, the latter two only where they aren't the usual ones.
local function note_variables(p, list)
  if #list == 0 then return end
  table.sort(list, function(v, w) return v.id < w.id end)
  local steps, members, stepped = {}, {}, false
  p.free = {}
  for k, v in ipairs(list) do
    p.free[k], steps[k], members[k], stepped = v.id, v.step, {}, stepped or v.step > 1
    for j, m in ipairs(v.members) do members[k][j] = P.place(m[1], m[2]) end
    table.sort(members[k])
  end
  p.steps = stepped and steps or nil
  for k in ipairs(list) do
    if table.concat(P.members(p, k), " ") ~= table.concat(members[k], " ") then
      p.members = members
      return
    end
  end
end

-- Sets p.batch, p.free, p.steps and p.members, and puts numbers that follow sizes into the record. try(inputs): a run's success, and its
-- record. Gives the variables.
local function note_free_sizes(p, try, copies, a)
  local fixed, claimed, variables, sizes = free_dims(try, copies, a), {}, {}, {}
  local batch = batch_of(try, copies, a, fixed)
  if batch then
    claim(claimed, batch)
    p.batch = {}
    for i in ipairs(copies) do p.batch[i] = 0 end
    for _, m in ipairs(batch.members) do p.batch[m[1]] = m[2] end
    local plain = true
    for _, d in ipairs(p.batch) do plain = plain and d == 1 end
    if plain then p.batch = true end
  end
  for k = #fixed, 1, -1 do                               -- the batch's dims are its own
    local v = fixed[k]
    if claimed[v.id] then table.remove(fixed, k)
    else
      for j = #v.members, 1, -1 do
        if claimed[P.place(unpack(v.members[j]))] then table.remove(v.members, j) end
      end
    end
  end
  for _, v in ipairs(fixed) do claim(claimed, v) end
  local constant = {unpack(fixed)}
  if batch then fixed[#fixed + 1] = batch end
  for i, x in ipairs(copies) do
    for d, n in ipairs(x.shape) do
      local open = n > 1 and not claimed[P.place(i, d)]
      for k, v in ipairs(open and candidates(copies, i, d, claimed) or {}) do
        local last = v.members[#v.members]
        local in_proportion = copies[last[1]].shape[last[2]] ~= n
        if grows(try, copies, a, v, k == 1 or in_proportion) then
          variables[#variables + 1] = v
          claim(claimed, v)
          break
        end
      end
    end
  end
  local places
  if #variables > 0 then variables, places = together(try, copies, a, fixed, variables) end
  if not places then
    variables, places = {}, {}
    if batch then note(places, batch) end
  end
  local of = {}
  for _, list in ipairs {fixed, variables} do
    for _, v in ipairs(list) do sizes[v.id], of[v.id] = v.n, v end
  end
  for holder, keys in pairs(places) do
    for key, at in pairs(keys) do
      local number = holder[key]
      local now = following(number, at, sizes)
      if number > 0 and now.plus and now.plus < 0 and #at == 1 then        -- 0 and below mean something else, as positions from the end
        local v = of[at[1][1]]
        v.least = math.max(v.least or 0, math.ceil((1 - now.plus) / now.size) * v.step)
      end
      holder[key] = now
    end
  end
  local all = {}
  for _, list in ipairs {constant, variables} do
    for _, v in ipairs(list) do all[#all + 1] = v end
  end
  note_variables(p, all)
  all[#all + 1] = batch
  return all
end

return {attempts_of = attempts_of, restoring = restoring, note_free_sizes = note_free_sizes, with_sizes = with_sizes, recopying = recopying,
  larger = larger}
