-- nn.attention: which ways scaled_dot_product_attention may take.
--
-- Idea: the ways are switches of the whole process, as tycho.backends.cuda has them; sdpa_kernel sets them for the length of a call.
local core = require "tycho.core"
local modes = require "tycho.modes"
local options = require "tycho.options"
local fail = options.fail

local M = {}
-- The ways. FLASH_ATTENTION and EFFICIENT_ATTENTION are both the library's own fused op, which is the CPU's too; CUDNN_ATTENTION is
-- cuDNN's, which takes what it can on a GPU; MATH is written out in plain ops: its memory grows with the number of scores, and it has
-- derivatives of any order, with dropout too.
M.SDPBackend = options.told({FLASH_ATTENTION = "flash", EFFICIENT_ATTENTION = "mem_efficient", CUDNN_ATTENTION = "cudnn", MATH = "math"},
  "SDPBackend")

-- sdpa_kernel(backends, fn, ...): calls fn(...) with these ways of attention alone, and gives its results. backends: one of SDPBackend, or
-- a list. What cuDNN doesn't take goes by the library's own op, so CUDNN_ATTENTION alone allows that too; with MATH, all goes by MATH.
function M.sdpa_kernel(backends, fn, ...)
  local list = type(backends) == "table" and backends or {backends}
  if not modes.callable(fn) then fail("sdpa_kernel: argument 2 must be a function, got %s", options.shown(fn)) end
  local allowed, before = {}, {}
  for _, way in pairs(M.SDPBackend) do allowed[way], before[way] = false, core.gpu.flag(way .. "_sdp") end
  for i = 1, math.max(#list, 1) do
    if allowed[list[i]] == nil then
      fail("sdpa_kernel: argument 1 must be one of SDPBackend, or a list of these, got %s", options.shown(list[i]))
    end
    allowed[list[i]] = true
  end
  allowed.flash = allowed.flash or (allowed.cudnn and not allowed.math)
  return options.meanwhile(function(ways) for way, on in pairs(ways) do core.gpu.flag(way .. "_sdp", on) end end, allowed, before, fn, ...)
end

return options.told(M, "nn.attention")
