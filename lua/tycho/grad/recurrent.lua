-- A recurrent layer's gradients made of ordinary ops, so that they can be differentiated again: R.recurrent in layers.lua uses them where a
-- graph is asked for. The fused ops are in src/cpu/recurrent.c and src/cuda/recurrent.c; all follow the formulas of src/core/cells.h.
local core = require "tycho.core"
local ops, M = core.ops, core.methods

-- forward(x, y, h, c): the input's and the hidden state's part of the gates, the previous states -> new h, new c, what backward needs.
-- backward(d, dc, s, h, c): gradients of the new states, s, the previous states -> gradients of x and y, of h except the part through y, of
-- c.
local kinds = {}

for name, slope in pairs {tanh = function(o) return 1 - o * o end, relu = function(o) return M.to(ops.gt(o, 0), o.dtype) end} do
  kinds[name] = {
    forward = function(x, y)
      local h = ops[name](x + y)
      return h, nil, h
    end,
    backward = function(d, _, s)
      local dx = d * slope(s)
      return dx, dx
    end,
  }
end

kinds.lstm = {
  forward = function(x, y, _, c)
    local i, f, g, o = unpack(M.chunk(x + y, 4, 2))
    i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
    local new = f * c + i * g
    local t = ops.tanh(new)
    return o * t, new, {i, f, g, o, t}
  end,
  backward = function(d, dc, s, _, c)
    local i, f, g, o, t = unpack(s)
    dc = dc + d * o * (1 - t * t)
    local dx = ops.cat({dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g * g), d * t * o * (1 - o)}, 2)
    return dx, dx, nil, dc * f
  end,
}

kinds.gru = {
  forward = function(x, y, h)
    local xr, xz, xn = unpack(M.chunk(x, 3, 2))
    local yr, yz, yn = unpack(M.chunk(y, 3, 2))
    local r, z = ops.sigmoid(xr + yr), ops.sigmoid(xz + yz)
    local n = ops.tanh(xn + r * yn)
    return n + z * (h - n), nil, {r, z, n, yn}
  end,
  backward = function(d, _, s, h)
    local r, z, n, yn = unpack(s)
    local dn, dz = d * (1 - z) * (1 - n * n), d * (h - n) * z * (1 - z)
    local dr = dn * yn * r * (1 - r)
    return ops.cat({dr, dz, dn}, 2), ops.cat({dr, dz, dn * r}, 2), d * z
  end,
}

-- g: the gradient of the op's first result. Gives the gradients of x, weight, bias, h0, c0.
return function(g, x, weight, bias, h0, c0, kind, reverse)
  local steps, k = x.shape[1], kinds[kind]
  local h, c, s, dx, dy = {[0] = h0}, {[0] = c0}, {}, {}, {}
  local function place(i) return reverse and steps + 1 - i or i end
  for i = 1, steps do h[i], c[i], s[i] = k.forward(M.select(x, 1, place(i)), ops.linear(h[i - 1], weight, bias), h[i - 1], c[i - 1]) end
  local dh, dc, own
  if c0 then dc = M.select(g, 1, steps + 1) end
  for i = steps, 1, -1 do
    local t, d = place(i), M.select(g, 1, place(i))
    if dh then d = d + dh end
    dx[t], dy[t], own, dc = k.backward(d, dc, s[i], h[i - 1], c[i - 1])
    dh = ops.matmul(dy[t], weight)
    if own then dh = dh + own end
  end
  local before = {}
  for i = 1, steps do before[place(i)] = M.unsqueeze(h[i - 1], 1) end
  local function rows(list) return M.flatten(ops.cat(list, 1), 1, 2) end
  for t = 1, steps do dx[t], dy[t] = M.unsqueeze(dx[t], 1), M.unsqueeze(dy[t], 1) end
  local all = rows(dy)
  return ops.cat(dx, 1), ops.matmul(M.t(all), rows(before)), ops.sum(all, 1), dh, dc
end
