-- Samples pictures and volumes at the points of a grid, and puts values back where max pooling found them.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, need, NN = lib.def, lib.fail, lib.need, lib.NN

---- volumes, and bicubic: made of gathers, one for each element that a place reads ----
-- p within low..high; a point outside has no gradient
local function within(p, low, high)
  return ops.where(ops.logical_and(ops.gt(p, low), ops.lt(p, high)), p, ops.clamp(M.detach(p), low, high))
end
-- The points of grid, -1..1, as positions from 0 in a dim of n elements; NaN counts as -1, as in core/grid_points.h.
local function unscaled(g, n, align)
  g = ops.where(ops.isnan(g), -1, g)
  return align and (g + 1) * ((n - 1) / 2) or ((g + 1) * n - 1) / 2
end
-- Positions brought back into the dim, if padding requires that.
local function inside(p, n, padding, align)
  if padding == "zeros" then return within(p, -2, n + 1) end
  if padding == "reflection" then
    local low, span = align and 0 or -0.5, align and n - 1 or n
    if span == 0 then return p * 0 end
    local d = ops.abs(p - low)
    local turns = ops.floor(d / span)
    local rest = d - turns * span
    p = ops.where(ops.eq(ops.remainder(turns, 2), 0), rest, span - rest) + low
  end
  return within(p, 0, n - 1)
end
-- Keys' kernel with a = -3/4 for distances t in 0..1, and in 1..2.
local function near(t) return (t * 1.25 - 2.25) * t * t + 1 end
local function far(t) return ((t * -0.75 + 3.75) * t - 6) * t + 3 end
-- The elements that points g read along a dim of n: a list of {element from 0, weight}.
local function reads(g, n, mode, padding, align)
  local p = unscaled(g, n, align)
  if mode ~= "bicubic" then p = inside(p, n, padding, align) end
  if mode == "nearest" then return {{M.detach(ops.round(p)), ops.sign(p) * 0 + 1}} end        -- gives points a gradient, of 0
  local first = M.detach(ops.floor(p))
  local f = p - first
  if mode == "bilinear" then return {{first, 1 - f}, {first + 1, f}} end
  local out = {}
  for k, w in ipairs {far(f + 1), near(f), near(1 - f), far(2 - f)} do out[k] = {inside(first + (k - 2), n, padding, align), w} end
  return out
end
local function gathered(x, grid, mode, padding, align)
  local n, c, dims = x.shape[1], x.shape[2], M.dim(x) - 2
  local along, stride = {}, 1
  for i = dims, 1, -1 do                   -- grid's last dim lists coordinates in reverse order of x's dims
    local size = x.shape[i + 2]
    along[i] = {reads = reads(ops.select(grid, -1, dims + 1 - i), size, mode, padding, align), stride = stride, size = size}
    stride = stride * size
  end
  local flat, places, sum = M.reshape(x, n, c, -1), M.numel(grid) / n / dims, nil
  local function add(i, at, weight, there)
    if i > dims then
      local v = ops.gather(flat, 3, ops.expand(M.reshape(at + 1, n, 1, places), n, c, places))
      if there then v = ops.where(M.reshape(there, n, 1, places), v, 0) end
      if weight then v = v * M.reshape(weight, n, 1, places) end
      sum = sum and sum + v or v
      return
    end
    local d = along[i]
    for _, r in ipairs(d.reads) do
      local k = ops.clamp(r[1], 0, d.size - 1)
      local is = padding == "zeros" and ops.eq(k, r[1]) or nil
      local step = M.long(k) * d.stride
      add(i + 1, at and at + step or step, weight and r[2] and weight * r[2] or r[2] or weight,
        there and is and ops.logical_and(there, is) or is or there)
    end
  end
  add(1, nil, nil, nil)
  local shape = grid.shape
  shape[#shape] = nil
  table.insert(shape, 2, c)
  return M.reshape(sum, setmetatable(shape, nil))
end

def("grid_sample",
  "x, grid, mode:enum(bilinear,nearest,bicubic)=bilinear, padding_mode:enum(zeros,border,reflection)=zeros, \z
    align_corners:bool=false",
  "x (N,C,H,W) read at the places (x, y) of grid (N,Ho,Wo,2), where -1 and 1 are its borders; or (N,C,D,H,W) at the places (x, y, z) of \z
    (N,Do,Ho,Wo,3)", function(x, grid, mode, padding, align)
  if M.dim(x) == 5 or mode == "bicubic" then
    local dims = M.dim(x) - 2
    local fits = M.dim(grid) == dims + 2 and grid.shape[1] == x.shape[1] and grid.shape[dims + 2] == dims
    if mode == "bicubic" and dims ~= 2 then fail("grid_sample", "mode 'bicubic' is for x of 4 dims, got shape %s", tostring(x.shape)) end
    if not fits then
      fail("grid_sample", "argument 2 (grid) has shape %s; for argument 1 of shape %s it must have %d dims, the first of size %d, \z
        the last %d", tostring(grid.shape), tostring(x.shape), dims + 2, x.shape[1], dims)
    end
    if x.shape[1] == 0 then                -- no elements, but of x and grid, which get their gradients
      local shape = {0, x.shape[2], unpack(grid.shape, 2, dims + 1)}
      return M.reshape(x, shape) + M.reshape(M.to(grid, x.dtype), shape)
    end
    if M.numel(x) == 0 then fail("grid_sample", "argument 1 of shape %s has no elements to sample", tostring(x.shape)) end
    if not M.is_floating_point(x) then x = M.to(x, lib.promote_types(x.dtype, grid.dtype)) end
    return lib.widened(x, function(wide) return gathered(wide, M.to(grid, wide.dtype), mode, padding, align) end)
  end
  if x.dtype ~= grid.dtype then
    local dtype = lib.promote_types(x.dtype, grid.dtype)
    x, grid = M.to(x, dtype), M.to(grid, dtype)
  end
  return ops.grid_sample_take(x, grid, mode, padding, align)
end, NN)

def("affine_grid",
  "theta, size:ints, align_corners:bool=false",
  "the grid for grid_sample that affine maps theta (N,2,3) make for pictures of size {N, C, H, W}, or (N,3,4) for volumes {N, C, D, H, W}",
  function(theta, size, align)
    need("affine_grid", 1, theta, 3)
    if not M.is_floating_point(theta) then fail("affine_grid", "argument 1 must have a floating dtype, got %s", theta.dtype) end
    local dims = #size - 2
    if dims ~= 2 and dims ~= 3 or theta.shape[1] ~= size[1] or theta.shape[2] ~= dims or theta.shape[3] ~= dims + 1 then
      fail("affine_grid", "theta has shape %s; it must be (N, 2, 3) for a size {N, C, H, W}, (N, 3, 4) for {N, C, D, H, W}",
        tostring(theta.shape))
    end
    local o = {dtype = theta.dtype, device = theta.device}
    local function line(k)                 -- rounded as in PyTorch: the identity map's points lie on pixels, where slopes jump
      if k < 2 then return ops.zeros({k}, o) end
      local x = ops.linspace(-1, 1, k, o)
      return align and x or x * (k - 1) / k
    end
    local whole, count, parts = {unpack(size, 3)}, 1, {}
    for i = dims, 1, -1 do                 -- x coordinate first
      local shape = {}
      for k = 1, dims do shape[k] = k == i and -1 or 1 end
      parts[#parts + 1] = ops.expand(M.view(line(whole[i]), shape), whole)
      count = count * whole[i]
    end
    parts[#parts + 1] = ops.ones(whole, o)
    local places = ops.expand(M.reshape(ops.stack(parts, -1), 1, count, dims + 1), size[1], count, dims + 1)
    whole[#whole + 1] = dims
    return M.reshape(ops.matmul(places, M.transpose(theta, 2, 3)), size[1], unpack(whole))
  end, NN)

local function each(v, i) return type(v) == "table" and v[i] or v end
for dims, size_type in ipairs {"single", "pair", "triple"} do
  local name = ("max_unpool%dd"):format(dims)
  def(name,
    ("x, indices, kernel_size:%s, stride:%s?, padding:%s=0, output_size:any?"):format(size_type, size_type, size_type),
    ("x where max_pool%dd(..., {return_indices=true}) found its maxima, zeros elsewhere"):format(dims),
    function(x, indices, kernel, stride, padding, size)
      if indices.shape ~= x.shape then
        fail(name, "argument 2 has shape %s; it must be argument 1's, %s", tostring(indices.shape), tostring(x.shape))
      end
      stride = stride or kernel
      return lib.batched(name, x, dims + 2, function(y)
        local n, c, area = y.shape[1], y.shape[2], 1
        local out = {n, c}
        for i = 1, dims do
          local step = each(stride, i)
          local usual = (y.shape[i + 2] - 1) * step - 2 * each(padding, i) + each(kernel, i)
          local want = type(size) == "table" and size[#size - dims + i] or size or usual
          if type(want) ~= "number" or want <= usual - step or want >= usual + step then
            fail(name, "output_size must be less than a stride away from %d along dim %d, got %s", usual, i + 2, tostring(want))
          end
          out[i + 2], area = want, area * want
        end
        local zeros, flat = ops.zeros({n, c, area}, {dtype = y.dtype, device = y.device}), M.flatten(y, 3)
        return M.reshape(ops.scatter(zeros, 3, M.reshape(indices, flat.shape), flat), out)
      end)
    end, NN)
end
