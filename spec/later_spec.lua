-- Files that are read when a name of theirs is first asked for (lua/tycho/later.lua).
local later = require("tycho.later").files
local printed = require("spec.helper").printed

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

  -- What a program prints in which the host has done something before the library reads more.
  local function after(what) return printed([[
      local tycho = require "tycho"
      local nn = tycho.nn
      local x = tycho.tensor {{1, 2}, {3, 4}}
      local net = nn.Sequential(nn.Linear(2, 2), nn.GELU(), nn.Dropout(0.1))
      ]] .. what .. [[

      local ok, err = pcall(function()
        assert(#x:flatten().shape == 1 and x:max():item() == 4 and tycho.linalg.det(x):item() < 0)
        assert(tostring(x):find "size 2x2")
        net(x):sum():backward()
        assert(nn.LSTM(2, 3)(tycho.ones(1, 1, 2)) and nn.functional.softmin(x, 1) and tycho.einsum("ij->ji", x))
        assert(tycho.optim.LBFGS and tycho.autograd.functional and nn.utils.prune and tycho.data.transforms and tycho.save)
      end)
      if not ok then print(err) end
      local _, why = pcall(function() return x.flaten end)
      if not why:find("did you mean 'flatten'", 1, true) then print(why) end]])
  end
  it("are read where the host has changed directory, package.path or require, or loads the library anew", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end
    for _, what in ipairs {'local ffi = require "ffi" ffi.cdef "int chdir(const char *path);" ffi.C.chdir "/"',
        'package.path = ""', "require = nil", "package = nil",
        [[for name in pairs(package.loaded) do if name:find "^tycho" then package.loaded[name] = nil end end
        local new = require "tycho"
        x = new.tensor {{1, 2}, {3, 4}}
        assert(new.nn.LSTM and new.linalg.det)
        assert(rawequal(tycho.tensor(1):new_tensor({1, 2}):dim(), 1))]]} do
      assert.equal("", after(what), what)
    end
  end)
  it("are read again where a hook, or Ctrl-C, has broken off reading", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end
    for _, code in ipairs {"tycho.ones(2):requires_grad_(true)", "tycho.nn.Conv2d(1, 1, 1)", "tycho.nn.LSTM(1, 1)", "return tycho.save",
        "tycho.ones(2):std()"} do
      for _, instructions in ipairs {20, 100, 140, 180, 400} do
        assert.equal("", printed(([[
          jit.off()
          tycho = require "tycho"
          local f = loadstring "%s"
          debug.sethook(function() debug.sethook() error "broken off" end, "", %d)
          pcall(f)
          debug.sethook()
          local ok, err = pcall(f)
          if not ok then print(err) end]]):format(code, instructions)), code .. " after " .. instructions)
      end
    end
  end)
  it("leave what a program has put in their names' places", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- the stock luajit can't open that build
    assert.equal("", printed [[
      local tycho = require "tycho"
      local function own() end
      tycho.argmax, tycho.linalg.norm, tycho.nn.LSTM, tycho.nn.functional.swish = own, own, own, own
      local x = tycho.ones(2, 2)
      local _ = x:argmin(), tycho.linalg.det(x), tycho.nn.GRU(1, 1)
      for name, f in pairs {argmax = tycho.argmax, norm = tycho.linalg.norm, LSTM = tycho.nn.LSTM} do if f ~= own then print(name) end end
      tycho.nn.TransformerEncoderLayer(4, 2, {activation = "swish"})]])
  end)
end)
