-- Draws a curve as a PNG picture: axes, grid, values at the axes' ends, and a line. Enough to see how a training went.
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local plot = {}
local W, H, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 64, 16, 16, 32

-- Digits as 3x5 dots, row by row.
local glyphs = {["0"] = "111101101101111", ["1"] = "010110010010111", ["2"] = "111001111100111",
  ["3"] = "111001111001111", ["4"] = "101101111001001",
  ["5"] = "111100111001111", ["6"] = "111100111101111", ["7"] = "111001001010010", ["8"] = "111101111101111", ["9"] = "111101111001111",
  ["."] = "000000000000010", ["-"] = "000000111000000", ["e"] = "011101111100011", ["+"] = "000010111010000"}

-- save_curve(path, ys, {xs=}): draws a list of numbers as a curve, a PNG file; xs: their positions, by default 1, 2, ...
function plot.save_curve(path, ys, o)
  local xs = options.fill("save_curve", o, {xs = options.none}).xs or {}
  for _, list in ipairs {ys or false, xs} do
    local ok = type(list) == "table" and not core.is_tensor(list) and (#list > 0 or list == xs)
    for _, y in ipairs(ok and list or {}) do ok = ok and type(y) == "number" and (list == ys or math.abs(y) < math.huge) end
    if not ok then
      fail("save_curve: %s must be a list of numbers, got %s", list == xs and "xs" or "argument 2", options.shown(list or nil))
    elseif list == xs and #xs > 0 and #xs < #ys then
      fail("save_curve: xs has %d numbers, argument 2 has %d", #xs, #ys)
    end
  end
  local image = core.ops.full({H, W, 3}, 255, {dtype = "uint8", device = "cpu"})
  local px = image:data()
  local function dot(x, y, r, g, b)
    x, y = math.floor(x + 0.5), math.floor(y + 0.5)
    if not (x >= 0 and x < W and y >= 0 and y < H) then return end
    local i = (y * W + x) * 3
    px[i], px[i + 1], px[i + 2] = r, g, b
  end
  local function line(x0, y0, x1, y1, r, g, b)
    local n = math.max(math.abs(x1 - x0), math.abs(y1 - y0), 1)
    for i = 0, n do dot(x0 + (x1 - x0) * i / n, y0 + (y1 - y0) * i / n, r, g, b) end
  end
  local function text(s, x, y)
    for c in s:gmatch(".") do
      for i = 1, 15 do
        if glyphs[c] and glyphs[c]:sub(i, i) == "1" then
          local cx, cy = x + (i - 1) % 3 * 2, y + math.floor((i - 1) / 3) * 2
          dot(cx, cy, 64, 64, 64); dot(cx + 1, cy, 64, 64, 64); dot(cx, cy + 1, 64, 64, 64); dot(cx + 1, cy + 1, 64, 64, 64)
        end
      end
      x = x + 8
    end
  end
  local lo, hi, x0, x1 = math.huge, -math.huge, math.huge, -math.huge
  for i in ipairs(ys) do x0, x1 = math.min(x0, xs[i] or i), math.max(x1, xs[i] or i) end
  for _, y in ipairs(ys) do
    if y == y and math.abs(y) < math.huge then lo, hi = math.min(lo, y), math.max(hi, y) end
  end
  if lo > hi then lo, hi = 0, 1 end
  if lo == hi then
    local half = math.max(0.5, math.abs(lo) * 1e-3)
    lo, hi = lo - half, hi + half
  end
  local function share(v, from, to)        -- in halves, since to - from may overflow
    return to > from and (v / 2 - from / 2) / (to / 2 - from / 2) or 0.5
  end
  local function at(i)
    return LEFT + share(xs[i] or i, x0, x1) * (W - LEFT - RIGHT), H - BOTTOM - share(ys[i], lo, hi) * (H - TOP - BOTTOM)
  end
  for k = 0, 4 do
    local y = TOP + k * (H - TOP - BOTTOM) / 4
    line(LEFT, y, W - RIGHT, y, 224, 224, 224)
    text(("%.3g"):format(hi * (1 - k / 4) + lo * (k / 4)), 8, y - 5)
  end
  line(LEFT, TOP, LEFT, H - BOTTOM, 96, 96, 96)
  line(LEFT, H - BOTTOM, W - RIGHT, H - BOTTOM, 96, 96, 96)
  text(("%g"):format(x0), LEFT, H - BOTTOM + 10)
  local last = ("%g"):format(x1)
  text(last, W - RIGHT - 8 * #last, H - BOTTOM + 10)
  local px0, py0
  for i, v in ipairs(ys) do
    if v == v and math.abs(v) < math.huge then
      local x, y = at(i)
      if px0 then line(px0, py0, x, y, 32, 96, 192); line(px0, py0 + 1, x, y + 1, 32, 96, 192) end
      px0, py0 = x, y
    else px0 = nil end
  end
  options.file("save_curve", path, core.write_png, path, image)
end

return plot
