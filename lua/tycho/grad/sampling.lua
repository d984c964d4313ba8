-- Gradients of grid_sample. Where a graph is asked for they are made of other ops, each of which has its own rule.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local recording = core.is_grad_enabled
local R = {}

-- The positions that points read along a dim, in pixels from 0, and their derivatives with respect to the grid; must agree with
-- core/grid_points.h.
local function place(g, size, padding, align)
  local span, low = align and size - 1 or size, align and 0 or -0.5
  g = ops.where(ops.isnan(g), -1, g)
  local at = g:detach()
  local p = align and (at + 1) * (span / 2) or ((at + 1) * span - 1) / 2
  local slope = ops.fill(p, span / 2)
  if padding == "reflection" and span == 0 then p = p * 0
  elseif padding == "reflection" then
    local v = ops.abs(p - low)
    local turns = ops.floor(v / span)
    local rest, odd = v - turns * span, ops.ne(ops.remainder(turns, 2), 0)
    slope = ops.where(ops.ne(ops.lt(p, low), odd), -slope, slope)
    p = ops.where(odd, span - rest, rest) + low
  end
  if padding ~= "zeros" then
    slope = ops.where(ops.logical_and(ops.gt(p, 0), ops.lt(p, size - 1)), slope, 0)
    p = ops.clamp(p, 0, size - 1)
  end
  return p + (g - at) * slope, slope
end

-- The four pixels that each point reads: rows among the pixels of all pictures (an extra one stands for the outside), weights, and their
-- derivatives with respect to x and y.
local function four(grid, shape, mode, padding, align)
  local n, h, w = shape[1], shape[3], shape[4]
  local x, sx = place(ops.select(grid, 4, 1), w, padding, align)
  local y, sy = place(ops.select(grid, 4, 2), h, padding, align)
  local nearest = mode == "nearest"
  local x0, y0 = ops[nearest and "round" or "floor"](x:detach()), ops[nearest and "round" or "floor"](y:detach())
  local first = ops.range(0, n - 1, 1, {dtype = "int64", device = grid.device}):view(n, 1, 1) * (h * w) + 1
  local out = {}
  for i = 0, nearest and 0 or 3 do
    local right, down = i % 2 == 1, i > 1
    local col, row = right and x0 + 1 or x0, down and y0 + 1 or y0
    local c, r = ops.clamp(col, 0, w - 1), ops.clamp(row, 0, h - 1)
    local inside = ops.logical_and(ops.eq(c, col), ops.eq(r, row))
    local wx, wy = right and x - x0 or 1 - (x - x0), down and y - y0 or 1 - (y - y0)
    out[#out + 1] = {at = M.flatten(ops.where(inside, M.long(r) * w + M.long(c) + first, n * h * w + 1)),
      k = nearest and ops.fill(x0, 1) or wx * wy, kx = (right and sx or -sx) * wy, ky = (down and sy or -sy) * wx}
  end
  return out
end
-- (N, C, h, w) as a row of channels for each position
local function rows(x) return M.reshape(ops.permute(x, {1, 3, 4, 2}), x.shape[1] * x.shape[3] * x.shape[4], x.shape[2]) end

-- Computes 16-bit floats in float32, as the op does; fn's result is converted to g's dtype.
local function in_float32(fn)
  return function(g, x, grid, ...)
    local dtype = g.dtype
    if dtype == "float64" or dtype == "float32" then return fn(g, x, grid, ...) end
    return M.to(fn(M.float(g), core.is_tensor(x) and M.float(x) or x, M.float(grid), ...), dtype)
  end
end
local to_x = in_float32(function(g, shape, grid, mode, padding, align)
  if not recording() then return ops.grid_sample_backward_x(g, grid, shape, mode, padding, align) end
  local n, c, h, w = unpack(shape)
  local flat, sum = rows(g), ops.zeros({n * h * w + 1, c}, {dtype = g.dtype, device = g.device})
  for _, f in ipairs(four(grid, shape, mode, padding, align)) do
    sum = ops.index_put(sum, flat * M.reshape(f.k, -1, 1), {f.at}, 1, {accumulate = true})
  end
  return ops.permute(M.view(ops.slice(sum, 1, 1, n * h * w), n, h, w, c), {1, 4, 2, 3})
end)
local to_grid = in_float32(function(g, x, grid, padding, align)
  if not recording() then return ops.grid_sample_backward_grid(g, x, grid, padding, align) end
  local flat, pixels, dx, dy = rows(g), ops.pad_constant(rows(x), {0, 0, 0, 1}), 0, 0
  for _, f in ipairs(four(grid, x.shape, "bilinear", padding, align)) do
    local dot = M.view(ops.sum(flat * ops.index(pixels, {f.at}, 1), 2), f.kx.shape)
    dx, dy = dx + dot * f.kx, dy + dot * f.ky
  end
  return ops.cat({M.unsqueeze(dx, 4), M.unsqueeze(dy, 4)}, 4)
end)

R.grid_sample_take = {
  x = function(g, x_shape, grid, mode, padding_mode, align_corners) return to_x(g, x_shape, grid, mode, padding_mode, align_corners) end,
  grid = function(g, x, grid, mode, padding_mode, align_corners)
    if mode == "nearest" then return ops.zeros(grid.shape, {dtype = grid.dtype, device = grid.device}) end
    return to_grid(g, x, grid, padding_mode, align_corners)
  end}

return R
