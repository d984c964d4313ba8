-- Depthwise convolutions, whose weight gradient the CPU computes in a way of its own: beside float64, which goes as products of matrices.
local tycho = require "tycho"
local F = tycho.nn.functional

-- {images, channels, height, width, {kernel}, options}
local CASES = {
  {2, 16, 9, 11, {5, 5}, {padding = 2}}, {3, 5, 7, 8, {4, 4}, {}}, {2, 70, 6, 10, {2, 7}, {padding = {1, 3}}},
  {2, 33, 1, 40, {1, 31}, {padding = {0, 15}}}, {1, 20, 12, 9, {5, 2}, {stride = 2, padding = {2, 1}}},
  {2, 17, 13, 14, {4, 5}, {dilation = {2, 3}, padding = {3, 6}}}, {1, 130, 5, 5, {5, 5}, {padding = 4, stride = {3, 2}}},
  {40, 18, 2, 2, {2, 2}, {}}, {2, 64, 8, 8, {1, 1}, {}}, {1, 2, 30, 3, {7, 1}, {padding = {3, 0}}}, {2, 19, 4, 4, {9, 9}, {padding = 5}},
}

local function gradients(case, dtype, threads)
  local c, k = case[2], case[5]
  local x = tycho.randn(case[1], c, case[3], case[4]):to(dtype):requires_grad_()
  local w = tycho.randn(c, 1, k[1], k[2]):to(dtype):requires_grad_()
  local before = tycho.get_num_threads()
  if threads then tycho.set_num_threads(threads) end
  local options = {groups = c}
  for name, v in pairs(case[6]) do options[name] = v end
  local y = F.conv2d(x, w, nil, options)
  y:backward(y:detach():sin())
  tycho.set_num_threads(before)
  return x.grad, w.grad
end

describe("a depthwise convolution's gradients", function()
  for _, case in ipairs(CASES) do
    it(("%dx%dx%dx%d by %dx%d"):format(case[1], case[2], case[3], case[4], case[5][1], case[5][2]), function()
      local function of(dtype)
        tycho.manual_seed(5)
        return gradients(case, dtype)
      end
      local wx, ww = of "float64"
      for dtype, e in pairs {float32 = 1e-5, float16 = 2e-2, bfloat16 = 1e-1} do
        local x, w = of(dtype)
        assert.equal(dtype, w.dtype)
        assert.is_true((x:double() - wx):norm():item() <= e * wx:norm():item(), dtype .. ", x")
        assert.is_true((w:double() - ww):norm():item() <= e * ww:norm():item(), dtype .. ", w")
      end
    end)
  end

  it("are the same bits by any number of threads #cpu", function()
    for _, case in ipairs {{8, 40, 24, 24, {5, 5}, {padding = 2}}, {16, 24, 1, 300, {1, 4}, {}}} do
      local want
      for _, threads in ipairs {1, 2, 3} do
        tycho.manual_seed(7)
        local _, w = gradients(case, "float32", threads)
        want = want or w
        assert.is_true(want:equal(w))
      end
    end
  end)
end)
