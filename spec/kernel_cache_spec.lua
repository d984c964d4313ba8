-- Kernels compiled at run time stay on disk; a damaged file is as none.
local helper = require "spec.helper"
if helper.device == "cpu" or os.getenv "TYCHO_BUILD" == "build-asan" then return end      -- its processes are run by the stock luajit

local PROGRAM = [[
local tycho = require "tycho"
local x = tycho.linspace(-2, 2, 40, {device = "cuda"})
local function fn() return (x * 3):tanh() + x:abs() end
local f = tycho.compile(fn)
f() f()
assert((f() - fn()):abs():amax():item() == 0)
local k = f:report()[1].kernels
print(#k, k[1].fused, k[1].why)
]]

local function run(cache)
  local p = io.popen(("TYCHO_CACHE='%s' luajit -e '%s' 2>&1"):format(cache, PROGRAM))
  local out = p:read("*a")
  p:close()
  return out:match("([^\n]+)\n*$")
end
local function read(path) local f = assert(io.open(path, "rb")) local s = f:read("*a") f:close() return s end
local function write(path, s) local f = assert(io.open(path, "wb")) f:write(s) f:close() end
local function files(dir)
  local out, p = {}, io.popen("ls '" .. dir .. "'")
  for name in p:lines() do out[#out + 1] = dir .. "/" .. name end
  p:close()
  return out
end

describe("the kernel cache", function()
  it("keeps what was compiled, whole or not at all", function()
    local dir = os.tmpname()
    os.remove(dir)
    local whole = "1\ttrue\tnil"
    assert.equal(whole, run(dir .. "/made/anew"))
    local kept = files(dir .. "/made/anew")
    assert.equal(1, #kept)
    local good = read(kept[1])
    local head = 20                                                  -- magic, sizes, checksum
    for _, bad in ipairs {"", good:sub(1, 7), good:sub(1, head), good:sub(1, -2), good .. "x", "X" .. good:sub(2),
        good:sub(1, 8) .. "\255\255\255\127" .. good:sub(13), good:sub(1, 12) .. "\255\255\255\127" .. good:sub(17),
        good:sub(1, 16) .. "\0\0\0\0" .. good:sub(21),
        good:sub(1, 100) .. string.char((good:byte(101) + 1) % 256) .. good:sub(102),
        good:sub(1, -100) .. string.char((good:byte(-99) + 1) % 256) .. good:sub(-98)} do
      write(kept[1], bad)
      assert.equal(whole, run(dir .. "/made/anew"))
      assert.same(kept, files(dir .. "/made/anew"))
      assert.is_true(#read(kept[1]) > 10000 and read(kept[1]) ~= bad)          -- written anew
    end
    os.execute("rm -rf '" .. dir .. "'")
  end)

  it("may be nowhere", function()
    local path = os.tmpname()                                        -- a file, where a folder should be
    assert.equal("1\ttrue\tnil", run(path))
    assert.equal("1\ttrue\tnil", run(""))
    os.remove(path)
  end)
end)
