-- Pictures read at places of a grid, and put back where their maxima were.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, need, NN = lib.def, lib.fail, lib.need, lib.NN

def("grid_sample",
  "x, grid, *, mode:enum(bilinear,nearest)=bilinear, padding_mode:enum(zeros,border,reflection)=zeros, \z
    align_corners:bool=false",
  "x (N,C,H,W) read at the places (x, y) of grid (N,Ho,Wo,2), where -1 and 1 are its borders", function(x, grid, mode, padding, align)
  if x.dtype ~= grid.dtype then
    local dtype = lib.promote_types(x.dtype, grid.dtype)
    x, grid = M.to(x, dtype), M.to(grid, dtype)
  end
  return ops.grid_sample_take(x, grid, mode, padding, align)
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
    local places = M.reshape(ops.stack({ops.expand(M.unsqueeze(line(w), 1), h, w),
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
