-- The bounds of what a trace takes: sizes (jit/sizes.lua), dtypes, layouts.
--
-- Idea: the traced model is run beside the model, with sizes near the example's and far from it, and with two of them at once: a model may
-- crop what is long, treat one item by itself, or ask which of two sizes is larger. Where results differ, the sizes from there on are
-- refused; so are other dtypes, where results differ in one. Invariant: a bound excludes only what the model itself runs with, or what
-- lies beyond a size that was seen to differ.
local core = require "tycho.core"
local modes = require "tycho.modes"
local module = require "tycho.nn.module"
local P = require "tycho.jit.program"
local sizes_of = require "tycho.jit.sizes"
local ops, M = core.ops, core.methods

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
  local sizes = ops.abs(M.nan_to_num(y, 0, 0, 0))
  local usual = M.median(sizes):item()                   -- the largest may be a mask's -1e9
  return M.allclose(x, y, {rtol = far, atol = far * (usual > 0 and usual or ops.amax(sizes):item()), equal_nan = true})
end
-- The elements of all tensors in a list of results.
local function elements(list)
  local n = 0
  for _, x in pairs(list) do n = n + (core.is_tensor(x) and M.numel(x) or type(x) == "table" and elements(x) or 0) end
  return n
end

-- A comparison is tried only where it is expected to take fewer seconds, and to have fewer elements. far: the largest size; state: elements
-- of a model that is copied in another dtype.
local limits = {far = 1000, seconds = 0.1, elements = 2 ^ 23, state = 2 ^ 23}

-- Comparisons of the traced model with the model, for inputs like copies. seconds, elements: what the last one took, and the most elements
-- that its inputs or results had; own_seconds, own_elements: with the example's sizes.
local Trial = {}
Trial.__index = Trial

-- Whether both give the same for these inputs. Where the model itself fails, any result is right.
function Trial:same_results(inputs)
  local want = self.attempt(function(...) return modes.no_grad(self.model, ...) end, inputs)
  if not want[1] then return true end
  want = {unpack(want, 2, want.n)}
  self.elements = math.max(elements(want), elements(inputs))
  local got = self.attempt(function(...) return modes.no_grad(self.traced, ...) end, inputs)
  self.restore()
  local ok, same = pcall(alike, {unpack(got, 2, got.n)}, want)       -- not ok: out of memory
  return not ok or got[1] and same
end
-- The same for inputs of these sizes, elements by variable.
function Trial:right(sizes)
  local start = core.now()
  local inputs = sizes_of.with_sizes(self.copies, sizes, true)
  local same = not inputs or self:same_results(inputs)
  self.seconds = core.now() - start
  return same
end
-- Whether a run may be expected to be short where costs grow by so much.
function Trial:is_short(times)
  return self.own_seconds * times < limits.seconds and self.own_elements * times < limits.elements
end

-- Sets v.least or v.most by the counts, in their order, from the example's on: the first wrong one, or one between, is past the bound.
local function bound(trial, v, counts, name)
  local function is_right(count) return trial:right {[v] = count * v.step} end
  local good = v.n
  for _, count in ipairs(counts) do
    if count >= 0 and count ~= good and not is_right(count) then
      local bad = count
      while math.abs(good - bad) > 1 do
        local between = math.floor((good + bad) / 2)
        if is_right(between) then good = between else bad = between end
      end
      v[name] = math.max(good * v.step, name == "least" and v.least or 0)
      return
    end
    good = count
  end
end

-- Tries sizes near the example's, and 1 and 0. Gives the largest that was tried.
local function try_near(trial, v)
  local few, below, above = trial:is_short(8) and 3 or 0, {}, {}
  for k = 1, few do
    if v.n - k > 1 then below[#below + 1] = v.n - k end
    above[#above + 1] = v.n + k
  end
  if v.n > 1 then below[#below + 1] = 1 end
  below[#below + 1] = 0
  bound(trial, v, below, "least")
  bound(trial, v, above, "most")
  return v.n + few
end

-- Tries larger and larger sizes, as long as time and memory allow: the last step tells how they grow.
local function try_far(trial, v, reached)
  local time, size, time_power, size_power = trial.own_seconds, trial.own_elements, 3, 3
  while not v.most and reached * v.step < limits.far do
    local count = math.min(4 * reached, math.floor(limits.far / v.step))
    local times = count / reached
    if count <= reached or time * times ^ time_power > limits.seconds or size * times ^ size_power > limits.elements then return end
    bound(trial, v, {count}, "most")
    local function power(growth) return math.max(math.log(math.max(growth, 1)) / math.log(times), 1) end
    time_power, size_power = power(trial.seconds / math.max(time, 1e-7)), power(trial.elements / math.max(size, 1))
    reached, time, size = count, trial.seconds, trial.elements
  end
end

-- Tries two sizes at once: a model may ask which is larger, or whether both are equal. Where it does, w's stays as it is.
local function try_pair(trial, v, w)
  local function count_of(u, size)                       -- within u's bounds
    return math.ceil(math.min(math.max(size, u.least or 0), u.most or math.huge) / u.step)
  end
  local size_v, size_w = v.n * v.step, w.n * w.step
  for _, sizes in ipairs {{size_w, size_w}, {size_v, size_v}, {sizes_of.larger(size_w), 1}, {1, sizes_of.larger(size_v)}} do
    local a, b = count_of(v, sizes[1]), count_of(w, sizes[2])
    if trial:is_short(math.max(a / v.n, 1) ^ 2 * math.max(b / w.n, 1) ^ 2) and not trial:right {[v] = a * v.step, [w] = b * w.step} then
      w.least, w.most = size_w, size_w
      return
    end
  end
end

-- A call of root, a module or a function, whose parameters and buffers have the dtype `to` where they are floating; nil: they are large.
local function in_dtype(root, to)
  if not module.is_module(root) then return root end
  local state, n = {}, 0
  for _, named in ipairs {"named_parameters", "named_buffers"} do
    for name, t in root[named](root) do
      n = n + M.numel(t)
      if M.is_floating_point(t) then state[name] = t end
    end
  end
  if n > limits.state then return nil end
  for name, t in pairs(state) do state[name] = ops.cast(M.detach(t), to) end
  return function(...) return require("tycho.func").functional_call(root, state, ...) end
end

-- Sets p.one_dtype if the model asks for dtypes, which the trace has as the example's.
local function note_dtype(p, trial, whole, traced, of_tensors)
  local floating = false
  for _, x in ipairs(trial.copies) do floating = floating or M.is_floating_point(x) end
  if not floating then return end
  local function same_in(to)
    local inputs = {}
    for i, x in ipairs(trial.copies) do
      if x.dtype == to then return true end
      inputs[i] = M.is_floating_point(x) and ops.cast(x, to) or x
    end
    local one, other = in_dtype(whole, to), in_dtype(traced, to)
    if not one or not other then return true end
    local pair = setmetatable({model = of_tensors(one), traced = of_tensors(other)}, {__index = trial, __newindex = trial})
    return Trial.same_results(pair, inputs)
  end
  p.one_dtype = not (same_in "float64" and same_in "float32") or nil
end

-- Sets p.contiguous if the model makes contiguous what it is given, of which the trace knows nothing where the example was so; p.one_layout
-- if it does other things with other layouts, or writes to its inputs. writes: whether the trace does.
local function note_layout(p, trial, writes)
  local function same()
    local inputs = {unpack(trial.copies)}
    for i, x in ipairs(inputs) do
      if M.dim(x) > 1 and M.is_contiguous(x) then inputs[i] = M.transpose(M.contiguous(M.transpose(x, 1, -1)), 1, -1) end
    end
    return trial:same_results(inputs)
  end
  if same() then return end
  p.contiguous = not writes or nil
  if p.contiguous and same() then return end
  p.contiguous, p.one_layout = nil, true
end

-- Sets p.bounds: for variables where the traced model gives other results than the model with some sizes, the least and the most that are
-- right, as far as they were tried; p.one_dtype, p.contiguous, p.one_layout. whole, traced: the model and its trace; of_tensors(fn): fn,
-- called with copies; changed: the trace's own tensors that it changes.
local function note_bounds(p, attempt, whole, traced, of_tensors, copies, variables, changed)
  local trial = setmetatable({attempt = attempt, model = of_tensors(whole), traced = of_tensors(traced), copies = copies,
    restore = sizes_of.recopying(changed), seconds = 0, elements = 0}, Trial)
  if not trial:right {} then return end                  -- such as a model whose results differ in each call
  if trial.seconds < limits.seconds then trial:right {} end          -- without what is loaded or compiled at the first time
  trial.own_seconds, trial.own_elements = trial.seconds, trial.elements
  if trial:is_short(2) then
    note_dtype(p, trial, whole, traced, of_tensors)
    note_layout(p, trial, (P.changed(p.nodes)))
  end
  for _, v in ipairs(variables) do try_far(trial, v, try_near(trial, v)) end
  for i, v in ipairs(variables) do
    for k = i + 1, #variables do try_pair(trial, v, variables[k]) end
  end
  for _, v in ipairs(variables) do
    if v.least or v.most then
      p.bounds = p.bounds or {}
      p.bounds[#p.bounds + 1] = {dim = v.id, least = v.least, most = v.most}
    end
  end
end

return {note_bounds = note_bounds, limits = limits}
