-- The bounds of the sizes that a trace takes (jit/sizes.lua).
--
-- Idea: the traced model is run beside the model, with sizes near the example's and far from it, and with two of them at once: a model may
-- crop what is long, treat one item by itself, or ask which of two sizes is larger. Where results differ, the sizes from there on are
-- refused. Invariant: a bound excludes only sizes where the model itself runs, or what lies beyond one that was seen to differ.
local core = require "tycho.core"
local modes = require "tycho.modes"
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

-- A comparison is tried only where it is expected to take fewer seconds, and to have fewer elements. far: the largest size.
local limits = {far = 1000, seconds = 0.1, elements = 2 ^ 23}

-- Sets p.bounds: for variables where the traced model gives other results than the model with some sizes, the least and the most that are
-- right, as far as they were tried. Where the model itself fails, any result is. changed: the traced model's own tensors that it changes.
local function note_bounds(p, attempt, model, traced, copies, variables, changed)
  local restore = sizes_of.recopying(changed)
  local seconds, most = 0, 0                             -- that the last comparison took; most: elements of its inputs or results
  local function same_results(inputs)
    local want = attempt(function(...) return modes.no_grad(model, ...) end, inputs)
    if not want[1] then return true end
    want = {unpack(want, 2, want.n)}
    most = math.max(elements(want), elements(inputs))
    local got = attempt(function(...) return modes.no_grad(traced, ...) end, inputs)
    restore()
    local ok, same = pcall(alike, {unpack(got, 2, got.n)}, want)       -- not ok: out of memory
    return not ok or got[1] and same
  end
  local function right(sizes)
    local start = core.now()
    local inputs = sizes_of.with_sizes(copies, sizes, true)
    local same = not inputs or same_results(inputs)
    seconds = core.now() - start
    return same
  end
  local function is_right(v, count) return right {[v] = count * v.step} end
  if not right {} then return end                        -- such as a model whose results differ in each call
  if seconds < limits.seconds then right {} end          -- without what is loaded or compiled at the first time
  local own, own_elements = seconds, most
  -- Whether a run may be expected to be short where costs grow by so much.
  local function is_short(times) return own * times < limits.seconds and own_elements * times < limits.elements end
  -- Sets v.least or v.most by the counts, in their order, from the example's on: the first wrong one, or one between, is past the bound.
  local function bound(v, counts, name)
    local good = v.n
    for _, count in ipairs(counts) do
      if count >= 0 and count ~= good and not is_right(v, count) then
        local bad = count
        while math.abs(good - bad) > 1 do
          local between = math.floor((good + bad) / 2)
          if is_right(v, between) then good = between else bad = between end
        end
        v[name] = math.max(good * v.step, name == "least" and v.least or 0)
        return
      end
      good = count
    end
  end
  for _, v in ipairs(variables) do
    local few = is_short(8) and 3 or 0
    local below, above = {}, {}
    for k = 1, few do
      if v.n - k > 1 then below[#below + 1] = v.n - k end
      above[#above + 1] = v.n + k
    end
    if v.n > 1 then below[#below + 1] = 1 end
    below[#below + 1] = 0
    bound(v, below, "least")
    bound(v, above, "most")
    -- further and further, as long as time and memory allow: the last step tells how they grow
    local reached, time, size, time_power, size_power = v.n + few, own, own_elements, 3, 3
    while not v.most and reached * v.step < limits.far do
      local count = math.min(4 * reached, math.floor(limits.far / v.step))
      local times = count / reached
      if count <= reached or time * times ^ time_power > limits.seconds or size * times ^ size_power > limits.elements then break end
      bound(v, {count}, "most")
      local function power(growth) return math.max(math.log(math.max(growth, 1)) / math.log(times), 1) end
      time_power, size_power = power(seconds / math.max(time, 1e-7)), power(most / math.max(size, 1))
      reached, time, size = count, seconds, most
    end
  end
  -- what depends on two sizes: which is larger, or whether both are equal
  local function count_of(v, size)                       -- within v's bounds
    return math.ceil(math.min(math.max(size, v.least or 0), v.most or math.huge) / v.step)
  end
  for i, v in ipairs(variables) do
    for k = i + 1, #variables do
      local w, fixed = variables[k], false
      local size_v, size_w = v.n * v.step, w.n * w.step
      for _, sizes in ipairs {{size_w, size_w}, {size_v, size_v}, {sizes_of.larger(size_w), 1}, {1, sizes_of.larger(size_v)}} do
        local a, b = count_of(v, sizes[1]), count_of(w, sizes[2])
        if not fixed and is_short(math.max(a / v.n, 1) ^ 2 * math.max(b / w.n, 1) ^ 2)
          and not right {[v] = a * v.step, [w] = b * w.step} then
          fixed, w.least, w.most = true, size_w, size_w
        end
      end
    end
  end
  for _, v in ipairs(variables) do
    if v.least or v.most then
      p.bounds = p.bounds or {}
      p.bounds[#p.bounds + 1] = {dim = v.id, least = v.least, most = v.most}
    end
  end
end

return {note_bounds = note_bounds, limits = limits}
