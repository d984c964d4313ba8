-- Files that are read when a name of theirs is first asked for (lua/tycho/later.lua).
local later = require "tycho.later"

-- What a Lua program prints, run by itself.
local function printed(program)
  local path = os.tmpname()
  local f = assert(io.open(path, "w"))
  f:write(program)
  f:close()
  local p = assert(io.popen("TYCHO_TEST_DEVICE= luajit " .. path .. " 2>&1"))
  local text = p:read "*a"
  p:close()
  os.remove(path)
  return text
end

describe("files that are read late", function()
  local function files(list, names)
    local t = {}
    for module, fill in pairs(list) do package.preload[module] = function() fill(t) return true end end
    local l = later(names)
    return l:fills(t), l
  end
  after_each(function()
    for name in pairs(package.preload) do
      if name:find "^later_" then package.preload[name], package.loaded[name] = nil, nil end
    end
  end)

  it("are read for their names alone", function()
    local t, l = files({later_a = function(t) t.one, t.one_ = 1, 11 end, later_b = function(t) t.two = 2 end},
      {{"later_a", "one"}, {"later_b", "two"}})
    assert.equal(1, t.one)
    assert.is_nil(package.loaded.later_b)
    assert.equal("later_a", l:of "one_")
    assert.is_nil(l:of "on")
    assert.equal(2, t.two)
    assert.is_nil(t[1])
  end)
  it("are all searched for a name that no list has", function()
    local t = files({later_a = function(t) t.one = 1 end, later_b = function(t) t.hidden = 2 end}, {{"later_a", "one"}, {"later_b", "two"}})
    assert.equal(2, t.hidden)
    assert.is_nil(t.nowhere)
  end)
  it("may name what is theirs and others' while they are read", function()
    local t
    t = files({later_a = function(own) assert.is_nil(t.one) own.one = t.two + 1 end, later_b = function(own) own.two = 2 end},
      {{"later_a", "one"}, {"later_b", "two"}})
    assert.equal(3, t.one)
  end)
  it("are read again where that failed", function()
    local fails = true
    local t = files({later_a = function(own) if fails then error "not now" end own.one = 1 end}, {{"later_a", "one"}})
    local ok, err = pcall(function() return t.one end)
    assert.is_false(ok)
    assert.truthy(err:find "not now")
    fails = false
    assert.equal(1, t.one)
  end)

  -- each file in a program of its own, since one may have read another
  local program = [[
    local tycho = require "tycho"
    local functional, core, nn = require "tycho.functional", require "tycho.core", tycho.nn
    local tables = {functional.functions, core.methods, nn}
    local function there(name)
      for _, t in ipairs(tables) do if rawget(t, name) ~= nil then return true end end
    end
    for _, later in ipairs {functional.families, require "tycho.nn.layer".others} do
      for _, file in ipairs(later.files) do
        if file[1] == "%s" then
          require(file[1])
          require "tycho.nn.layer".all()
          for name in file[2]:gmatch "%%S+" do if not there(name) then print(file[1] .. " has no " .. name) end end
        end
      end
    end]]
  local listed = {}
  for _, of in ipairs {require("tycho.functional").families, require("tycho").nn and require("tycho.nn.layer").others} do
    for _, file in ipairs(of.files) do listed[#listed + 1] = file[1] end
  end
  it("give the names of their lists", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end          -- the stock luajit runs these
    assert.is_true(#listed > 20)
    for _, module in ipairs(listed) do assert.equal("", printed(program:format(module))) end
  end)
  it("give no others", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end
    assert.equal("", printed [[
      local tycho = require "tycho"
      local functional, core, layer = require "tycho.functional", require "tycho.core", require "tycho.nn.layer"
      local nn = tycho.nn
      layer.all()                                                       -- what nn's own file declares
      local before = {[nn] = {}, [core.methods] = {}, [functional.functions] = {}}
      for t, names in pairs(before) do for name in pairs(t) do names[name] = true end end
      functional.all()
      pcall(function() return nn["?"] end)                        -- which is looked for in all
      for t, names in pairs(before) do
        local lists = t == nn and layer.others or functional.families
        for name in pairs(t) do if not names[name] and not lists:of(name) then print("no list has " .. name) end end
      end
    ]])
  end)
  it("stay unread where a program doesn't need them", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end
    local text = printed [[
      local tycho = require "tycho"
      local x = tycho.ones(3) * 2 + 1
      local net = tycho.nn.Sequential(tycho.nn.Linear(3, 2), tycho.nn.ReLU())
      net(x):sum():backward()
      tycho.optim.SGD(net:parameters(), {lr = 0.1}):step()
      for _, name in ipairs {"functional.linalg", "functional.spectral", "functional.losses", "functional.layers", "nn.transformer",
          "nn.rnn", "nn.parallel", "nn.losses", "optim.lbfgs", "optim.lr_scheduler", "distributed", "saving", "data"} do
        if package.loaded["tycho." .. name] ~= nil then print(name .. " was read") end
      end
    ]]
    assert.equal("", text)
  end)
end)
