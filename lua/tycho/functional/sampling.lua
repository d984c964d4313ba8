-- Pictures read at places of a grid, and put back where their maxima were.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, need, NN = lib.def, lib.fail, lib.need, lib.NN

-- -1 .. 1 as pixels from 0: of their centres (align), or of their outer borders
local function pixel_of(g, size, align) return align and (g + 1) * ((size - 1) / 2) or ((g + 1) * size - 1) / 2 end

-- Mirrored at the first and the last pixel's centre (align), or at their outer borders.
local function mirrored(v, size, align)
  local lo, span = align and 0 or -0.5, align and size - 1 or size
  if span == 0 then return v * 0 end
  v = ops.abs(v - lo)
  local turns = ops.floor(v / span)
  local rest = v - turns * span
  return ops.where(ops.eq(ops.remainder(turns, 2), 0), rest, span - rest) + lo
end

def("grid_sample",
  "x, grid, *, mode:enum(bilinear,nearest)=bilinear, padding_mode:enum(zeros,border,reflection)=zeros, \z
    align_corners:bool=false",
  "x (N,C,H,W) read at the places (x, y) of grid (N,Ho,Wo,2), where -1 and 1 are its borders", function(x, grid, mode, padding, align)
  need("grid_sample", 1, x, 4)
  need("grid_sample", 2, grid, 4)
  local n, c, h, w = x.shape[1], x.shape[2], x.shape[3], x.shape[4]
  if grid.shape[1] ~= n or grid.shape[4] ~= 2 then
    fail("grid_sample", "argument 2 has shape %s; it must be (%d, height, width, 2) to match argument 1 of shape %s",
      tostring(grid.shape), n, tostring(x.shape))
  end
  if h < 1 or w < 1 then fail("grid_sample", "argument 1 of shape %s has no pixels", tostring(x.shape)) end
  local tall, wide = grid.shape[2], grid.shape[3]
  grid = ops.where(ops.isnan(grid), -1, grid)
  local px, py = pixel_of(ops.select(grid, 4, 1), w, align), pixel_of(ops.select(grid, 4, 2), h, align)
  if padding == "reflection" then px, py = mirrored(px, w, align), mirrored(py, h, align) end
  if padding ~= "zeros" then px, py = ops.clamp(px, 0, w - 1), ops.clamp(py, 0, h - 1) end
  -- a pixel's channels as a row; beyond the borders there is one more, of zeros
  local many = tall * wide
  local rows = M.reshape(ops.permute(x, {1, 3, 4, 2}), n * h * w, c)
  if padding == "zeros" then rows = ops.pad_constant(rows, {0, 0, 0, 1}) end
  local first = ops.range(0, n - 1, 1, {dtype = "int64", device = x.device}):view(n, 1, 1) * (h * w) + 1
  local function read(iy, ix)
    local y, z = ops.clamp(iy, 0, h - 1), ops.clamp(ix, 0, w - 1)
    local at = M.long(y) * w + M.long(z) + first
    if padding == "zeros" then at = ops.where(ops.logical_and(ops.eq(y, iy), ops.eq(z, ix)), at, n * h * w + 1) end
    return ops.index(rows, {M.reshape(at, n * many)}, 1)
  end
  local function picture(v) return ops.permute(M.reshape(v, n, tall, wide, c), {1, 4, 2, 3}) end
  if mode == "nearest" then return picture(read(M.detach(ops.round(py)), M.detach(ops.round(px)))) end
  local x0, y0 = M.detach(ops.floor(px)), M.detach(ops.floor(py))
  local function column(v) return M.reshape(v, n * many, 1) end
  local right, down = px - x0, py - y0
  local left, up = 1 - right, 1 - down
  local v = read(y0, x0) * column(left * up)
  v = ops.addcmul(v, read(y0, x0 + 1), column(right * up))
  v = ops.addcmul(v, read(y0 + 1, x0), column(left * down))
  return picture(ops.addcmul(v, read(y0 + 1, x0 + 1), column(right * down)))
end, NN)

def("affine_grid",
  "theta, size:ints, *, align_corners:bool=false",
  "the grid for grid_sample that affine maps theta (N,2,3) make for pictures of size {N, C, H, W}",
  function(theta, size, align)
    need("affine_grid", 1, theta, 3)
    if #size ~= 4 or theta.shape[1] ~= size[1] or theta.shape[2] ~= 2 or theta.shape[3] ~= 3 then
      fail("affine_grid", "theta has shape %s; it must be (N, 2, 3) for a size {N, C, H, W}", tostring(theta.shape))
    end
    local h, w = size[3], size[4]
    local o = {dtype = theta.dtype, device = theta.device}
    local function line(k) return k > 1 and ops.linspace(-1, 1, k, o) * (align and 1 or (k - 1) / k) or ops.zeros({k}, o) end
    local places = M.reshape(lib.functions.stack({ops.expand(M.unsqueeze(line(w), 1), h, w),
      ops.expand(M.unsqueeze(line(h), 2), h, w), ops.ones({h, w}, o)}, 3), 1, h * w, 3)
    return M.reshape(ops.matmul(ops.expand(places, size[1], h * w, 3), M.transpose(theta, 2, 3)), size[1], h, w, 2)
  end, NN)

local function each(v, i) return type(v) == "table" and v[i] or v end
for dims, size_type in ipairs {"int", "pair", "triple"} do
  local name = ("max_unpool%dd"):format(dims)
  def(name,
    ("x, indices, kernel_size:%s, stride:%s?, padding:%s=0, *, output_size:any?"):format(size_type, size_type, size_type),
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
            fail(name, "output_size must be within a stride of %d along dim %d, got %s", usual, i + 2, tostring(want))
          end
          out[i + 2], area = want, area * want
        end
        local zeros = ops.zeros({n, c, area}, {dtype = y.dtype, device = y.device})
        return M.reshape(ops.scatter(zeros, 3, M.reshape(indices, n, c, -1), M.flatten(y, 3)), out)
      end)
    end, NN)
end
