-- Statements of the user's API that were once found untrue: options handed on, assigned shapes, ranges, creators.
local tycho = require "tycho"
local helper = require "spec.helper"
local fails = helper.fails
local nn, optim = tycho.nn, tycho.optim

describe("the user's API", function()
  it("takes nil where options may stand", function()
    local x = tycho.ones(4, 2)
    local function zeros(size, o) return tycho.zeros(size, o) end
    assert.same({2, 3}, {unpack(zeros({2, 3}).shape)})
    for _, fn in ipairs {
      function() return tycho.tensor({1}, nil) end, function() return tycho.full({2}, 1, nil) end, function() return x:relu(nil) end,
      function() return tycho.zeros_like(x, nil) end, function() return tycho.randperm(3, nil) end, function() return x:clone(nil) end,
      function() return x:matmul(tycho.ones(2, 2), nil) end, function() return x:view({2, 4}, nil) end,
      function() return tycho.cat({x, x}, 1, nil) end, function() return x:mse_loss(x, nil) end} do
      assert.is_true((pcall(fn)))
    end
    fails("must be whole numbers, got nil", tycho.zeros, 2, 3, nil)           -- a size that is nil is a mistake
    fails("at most 1 argument", tycho.exp, x, 2)
  end)

  it("assigns values that have dims of 1 before, with their gradients", function()
    local net, x, out = nn.Linear(2, 3), tycho.ones(4, 2), tycho.zeros(4, 3)
    for i = 1, 4 do out[i] = net(x[{ {i} }]) end
    out:sum():backward()
    assert.same({4, 4, 4}, net.bias.grad:totable())
    local y, b = tycho.ones(1, 1, {requires_grad = true}), tycho.zeros(2, 2)
    b[{1, 2}] = y
    local c = tycho.zeros(2, 2)
    c[1] = y                                                                  -- broadcast as well
    local sum = (b * 3):sum() + c:sum()
    sum:backward()
    assert.same({{5}}, y.grad:totable())
    b = tycho.zeros(3, 3)
    b[tycho.tensor {true, false, true}] = tycho.ones(1, 1, 3)
    b[{tycho.tensor({2}):long()}] = tycho.full({1, 1, 3}, 2, {requires_grad = true})
    assert.same({{1, 1, 1}, {2, 2, 2}, {1, 1, 1}}, b:totable())
    b:sum():backward()
    b = tycho.zeros(2)
    b:copy_(tycho.ones(1, 1, 2, {requires_grad = true}))
    assert.has_no_error(function() b:sum():backward() end)
  end)

  it("refuses ranges with nil in the middle, and numbers in place of booleans", function()
    fails("nil in the middle", function() return tycho.range(1, 4)[{ {1, nil, 2} }] end)
    fails("dtype int64 doesn't fit in place into dtype bool", function() return tycho.tensor {true}:add_(5) end)
    local m = tycho.tensor {true, true}
    m[1] = 0
    m:logical_not_()
    assert.same({true, false}, m:totable())
    fails("k 0 must be 1", function() return tycho.tensor(5):topk(0) end)
    assert.equal(5, tycho.tensor(5):topk(1):item())
  end)

  it("makes tensors like others with all of creators' options", function()
    local x = tycho.ones(2, 3)
    for _, make in ipairs {"zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"} do
      assert.is_true(tycho[make](x, {requires_grad = true, pin_memory = false}).requires_grad)
    end
    assert.is_true(tycho.full_like(x, 2, {requires_grad = true, pin_memory = false}).requires_grad)
    assert.equal("int64", tycho.randint_like(x, 1, 5, {dtype = "int64", pin_memory = false}).dtype)
    fails("need a dtype", tycho.from_ffi, require("ffi").new("int8_t[2]", {-1, 5}), {2})
  end)

  it("names dims in errors as the program sees them", function()
    local x, new = tycho.ones(2, 3, 4), tycho.newaxis
    for text, key in pairs {["4 is out of range for dim 2 of"] = {1, 4}, ["9 is out of range for dim 3 of"] = {1, "...", {9}},
        ["5 is out of range for dim 2 of"] = {new, 1, 5}, ["7 is out of range for dim 3 of"] = {x[{ {}, {}, 1}]:gt(0), 7}} do
      fails("index: index " .. text .. " shape 2x3x4", function() return x[key] end)
    end
    local Net = nn.Module:extend "Net"
    for _, fn in ipairs {function() return Net:parameters() end, function() return Net:to "cpu" end,
        function() return optim.SGD(Net:parameters()) end} do
      fails("Net is a class: make a module with Net(...)", fn)
    end
  end)

  it("ends tables that no memory holds, and schedules that would never end", function()
    fails("too large for Lua tables", function() return tycho.zeros(0):expand(2 ^ 40, 0):totable() end)
    fails("too large for Lua tables", function() return tycho.ones(1):expand(2 ^ 33):totable() end)
    assert.same({}, tycho.zeros(0, 2 ^ 20):totable())
    local schedule = optim.lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD({nn.Parameter(tycho.ones(1))}, {lr = 1}), {T_0 = 2})
    for _, wrong in ipairs {-1, 0, 0.5} do
      fails("T_mult must be a whole number", schedule.load_state_dict, schedule, {last_epoch = 5, T_0 = 2, T_mult = wrong})
    end
    schedule:load_state_dict {last_epoch = 5, T_0 = 2, T_mult = 2}
    schedule:step()
  end)

  it("outlives finalizers that are called with what isn't theirs", function()
    for _, v in pairs(debug.getregistry()) do
      local m = debug.getmetatable(v)
      local gc = type(m) == "table" and rawget(m, "__gc")
      if gc and type(v) == "userdata" and not tostring(v):find "^file" then pcall(gc, newproxy()) end
    end
  end)
end)
