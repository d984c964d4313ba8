-- Hooks of modules: of one, and of every module; what they may change, when they are called and in which order.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn = tycho.nn

describe("hooks", function()
  it("calls hooks around forward, which may change what passes", function()
    local l, seen = nn.Linear(2, 3), {}
    local net = nn.Sequential(l, nn.ReLU(), nn.Linear(3, 1))
    local x = tycho.randn(4, 2)
    local plain = net(x)
    local after = l:register_forward_hook(function(m, inputs, y)
      assert.equal(l, m)
      seen.input, seen.output = inputs[1], y
    end)
    helper.close(net(x), plain, "a hook that only looks", 0)
    assert.equal(x, seen.input)
    assert.equal("4x3", tostring(seen.output.shape))
    assert.is_number(seen.output:sum():item())           -- Sequential left it alone
    local before = l:register_forward_pre_hook(function(_, inputs) return inputs[1] * 2 end)
    after:remove()
    local doubled = l:register_forward_hook(function(_, _, y) return y * 0 end)
    helper.close(l(x), tycho.zeros(4, 3), "replaced", 0)
    doubled:remove()
    local through = l(x)
    before.remove()
    helper.close(through, l(x * 2), "replaced input", 1e-6)
    helper.close(net(x), plain, "hooks removed", 0)
    helper.fails("argument 1 must be a function", function() l:register_forward_hook(3) end)
  end)

  it("hooks may have the options apart", function()
    local Scale = nn.Module:extend("Scale")
    function Scale:forward(x, o) return x * (o and o.by or 1) end
    local net, seen = Scale(), {}
    local look = net:register_forward_hook(function(_, inputs, o, y) seen = {inputs.n, o.by, y:item()} end, {with_kwargs = true})
    net(tycho.ones(1), {by = 3})
    assert.same({1, 3, 3}, seen)
    net(tycho.ones(1))
    assert.same({1, nil, 1}, seen)
    look:remove()
    local change = net:register_forward_pre_hook(function(_, inputs, o)
      return {inputs[1] + 1}, {by = (o.by or 1) * 2}
    end, {with_kwargs = true})
    assert.same({12, 4}, {net(tycho.ones(1), {by = 3}):item(), net(tycho.ones(1)):item()})
    change:remove()
    net:register_forward_pre_hook(function(_, inputs) return inputs[1] * 5 end, {with_kwargs = true})
    assert.equal(10, net(tycho.ones(1), {by = 2}):item())
    local other = Scale()
    other:register_forward_pre_hook(function(_, inputs) inputs[1] = inputs[1] + 1 end, {with_kwargs = true})       -- in place
    assert.same({4, 2}, {other(tycho.ones(1), {by = 2}):item(), other(tycho.ones(1)):item()})
    other:register_forward_pre_hook(function() return nil, 3 end, {with_kwargs = true})
    helper.fails("a hook's options must be a table or nil, got 3", other, tycho.ones(1))
    helper.fails("with_kwargs must be true or false, got 'no'", other.register_forward_hook, other, print, {with_kwargs = "no"})
    helper.fails("unknown option 'with_kwargs'", net.register_full_backward_hook, net, print, {with_kwargs = true})
  end)

  it("of every module come before a module's own, until they are removed", function()
    local net, said, handles = nn.Sequential(nn.Linear(2, 3), nn.ReLU()), {}, {}
    local function says(what) return function(m) said[#said + 1] = what .. " " .. m._name end end
    local x = tycho.randn(4, 2)
    local plain = net(x)
    for name, what in pairs {register_module_forward_pre_hook = "before", register_module_forward_hook = "after",
        register_module_full_backward_hook = "back", register_module_full_backward_pre_hook = "towards"} do
      handles[#handles + 1] = nn[name](says(what))
    end
    net:register_forward_hook(says "own")
    local y = net(x)
    helper.close(y, plain, "watched", 0)
    assert.same({"before Sequential", "before Linear", "after Linear", "before ReLU", "after ReLU", "after Sequential", "own Sequential"},
      said)
    said = {}
    y:sum():backward()
    assert.same({"towards Sequential", "back Sequential", "towards ReLU", "back ReLU", "towards Linear", "back Linear"}, said)
    handles[#handles + 1] = nn.register_module_forward_hook(function(m, _, out) return m._name == "Linear" and out * 0 or nil end)
    helper.close(net(x), plain * 0, "changed", 0)
    for _, h in ipairs(handles) do h.remove() end
    said = {}
    helper.close(net(x), plain, "without", 0)
    assert.same({"own Sequential"}, said)
    helper.fails("register_module_forward_hook: argument 1 must be a function, got nil", nn.register_module_forward_hook)
    helper.fails("unknown option 'prepnd'", nn.register_module_forward_hook, print, {prepnd = true})
    assert.is_nil(require("tycho.nn.hooks").everywhere)   -- calls of modules are as they were
  end)

  it("of every module are seen by what has been compiled", function()
    local net, n = nn.Linear(2, 2), 0
    local step = tycho.compile(function(v) return net(v) end)
    local x = tycho.randn(3, 2)
    for _ = 1, 4 do step(x) end
    local h = nn.register_module_forward_hook(function(_, _, y)
      n = n + 1
      return y + 1
    end)
    for _ = 1, 3 do helper.close(step(x), nn.functional.linear(x, net.weight, net.bias) + 1, "with it", 1e-6) end
    h.remove()
    assert.is_true(n > 0)
    for _ = 1, 3 do helper.close(step(x), nn.functional.linear(x, net.weight, net.bias), "without", 1e-6) end
  end)

  it("that are called always see a forward that errs, once, and don't change its error", function()
    local Bad, calls = nn.Module:extend("Bad"), {}
    function Bad:forward(x) return x:matmul(x) end
    local net = Bad()
    net:register_forward_hook(function(_, inputs, ...)
      calls[#calls + 1] = {inputs.n, select("#", ...)}
      error "of the hook"
    end, {always_call = true})
    net:register_forward_hook(function() calls[#calls + 1] = "not called" end)
    helper.fails("matmul: argument 2 has shape 2x3", net, tycho.ones(2, 3))
    assert.same({{1, 0}}, calls)
    helper.fails("of the hook", net, tycho.ones(2, 2))
    assert.same({{1, 0}, {1, 1}}, calls)
    local other, seen = nn.ReLU(), nil
    other:register_forward_hook(function() error "first" end)
    other:register_forward_hook(function(_, _, y) seen = y:item() end, {always_call = true})
    helper.fails("first", other, tycho.ones(1))
    assert.equal(1, seen)
    helper.fails("unknown option 'always_call'", net.register_forward_pre_hook, net, print, {always_call = true})
  end)
end)
