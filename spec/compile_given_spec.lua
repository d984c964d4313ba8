-- Compiled functions: arguments that fn keeps, returns or changes, results that share memory, and calls that leave the record within vmap,
-- checkpoint or a gradient that passes through. All must end as without compile.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F, M = tycho.nn, tycho.nn.functional, require("tycho.core").methods

-- make(wrap) gives a function that calls wrap(fn) and lists what it finds after call k; that must be the same for a compiled fn.
local function alike(make, options)
  local function run(wrap)
    local call, out = make(wrap), {}
    for k = 1, 6 do
      out[k] = call(k)
      for i, x in ipairs(out[k]) do out[k][i] = tycho.is_tensor(x) and x:clone() or x end
    end
    return out
  end
  local want, got = run(function(fn) return fn end), run(function(fn) return tycho.compile(fn, options) end)
  for k = 1, 6 do
    assert.equal(#want[k], #got[k])
    for i, x in ipairs(want[k]) do
      if tycho.is_tensor(x) then helper.close(got[k][i], x, ("call %d, item %d"):format(k, i)) else assert.equal(x, got[k][i]) end
    end
  end
end

describe("compile, what is given,", function()
  it("lets fn keep an argument and return it", function()
    for _, guard in ipairs {"full", "inputs"} do
      alike(function(wrap)
        local last
        local f = wrap(function(x)
          last = x
          return x, x * 2
        end)
        return function(k)
          local x = tycho.full({2}, k)
          local a, b = f(x)
          return {guard == "full" and last or 0, rawequal(a, x), b}
        end
      end, {guard = guard})
    end
    alike(function(wrap)
      local state, f = {h = tycho.zeros(2)}, wrap(function(s, x)
        s.last = s.h
        s.h = (s.h + x):tanh()
        return s.h, s.last
      end)
      return function(k)
        local h, last = f(state, tycho.full({2}, k))
        return {h, last, state.h, state.last}
      end
    end)
    alike(function(wrap)                                 -- overlapping arguments
      local base, last = tycho.ones(4), nil
      local f = wrap(function(x, y)
        last = x
        return x, x + y
      end)
      return function(k)
        base:fill_(k)
        local _, sum = f(base:slice(1, 1, 2), base:slice(1, 2, 3))
        return {last, sum}
      end
    end)
  end)

  it("lets fn return an argument beside what backward comes to from outside", function()
    alike(function(wrap)
      tycho.manual_seed(4)
      local net, last = nn.Linear(3, 2), nil
      local f = wrap(function(x)
        last = x
        return x, net(x), x:sum()
      end)
      return function(k)
        net:zero_grad()
        local x = tycho.full({2, 3}, k)
        local same, y, sum = f(x)
        y:sum():backward()
        return {rawequal(same, x), y:detach(), sum, last, net.weight.grad}
      end
    end)
  end)

  it("changes arguments that others see, and raises fn's own error", function()
    alike(function(wrap)
      local f = wrap(function(x)
        x:select(1, 1):add_(1)
        return x * 2
      end)
      return function()
        local x = tycho.zeros(1, 2):expand(3, 2)
        return {f(x), x:contiguous()}
      end
    end)
    alike(function(wrap)
      local bad
      local f = wrap(function(x, y)
        if bad then
          x:add_(1)
          error("mine", 0)
        end
        return x[{ {1, 3} }] * 2 + y
      end)
      local x = tycho.ones(4, 2)
      return function(k)
        bad = k == 5
        local ok, y = pcall(f, x, x[{ {2, 4} }])
        return {ok, y, x}
      end
    end)
  end)

  it("gives results that share memory as fn does", function()
    for _, guard in ipairs {"full", "inputs"} do
      alike(function(wrap)
        local f = wrap(function(x)
          local y = x * 2
          return y, y[1]
        end)
        return function(k)
          local y, row = f(tycho.full({2, 2}, k))
          y:add_(1)
          return {y, row, y:shares_memory(row)}
        end
      end, {guard = guard})
      alike(function(wrap)
        local f = wrap(function(x)
          local y = x * 2
          return y[1], y:unsqueeze(1):expand(3, 2, 2), y, {y, last = y:slice(2, 2, 2)}
        end)
        return function(k)
          local row, more, y, t = f(tycho.full({2, 2}, k))
          y:add_(1)
          return {row, y, more, t.last, y:shares_memory(row), y:shares_memory(t.last), y:shares_memory(more), rawequal(y, t[1])}
        end
      end, {guard = guard})
    end
  end)

  it("doesn't hide that fn changes what an outside backward needs", function()
    for _, change in ipairs {function(w) tycho.no_grad(w.mul_, w, 2) end, function(_, x) x:mul_(2) end} do
      alike(function(wrap)
        local w, u = nn.Parameter(tycho.ones(3)), nn.Parameter(tycho.ones(3))
        local f = wrap(function(x)
          local l = (u * x * w):square():sum()
          change(w, x)
          return l
        end)
        return function()
          u.grad = nil
          local ok, why = pcall(M.backward, f(tycho.ones(3)))
          return {ok, tostring(why):match "changed in place", u.grad or false}
        end
      end)
    end
  end)

  it("takes tables of options by their content", function()
    for _, guard in ipairs {"full", "inputs"} do
      local f = tycho.compile(function(x, o) return o.twice and x * o.by[1] or x + 1 end, {guard = guard})
      for k = 1, 24 do
        local twice, by = k % 2 == 0, k > 12 and 3 or 2
        helper.close(f(tycho.ones(2), {twice = twice, by = {by}}), tycho.full({2}, twice and by or 2))
      end
      local ways = f:report()
      for _, way in ipairs(ways) do assert.is_true(way.compiled, tostring(ways)) end
    end
    local writes = tycho.compile(function(x, o)
      o.seen = true
      return x * 2, o
    end, {guard = "inputs"})
    for _ = 1, 6 do
      local o = {by = 2}
      local _, same = writes(tycho.ones(2), o)
      assert.is_true(o.seen and rawequal(o, same))
    end
    assert.equal("an argument is a table that the function changes", writes:report()[1].why)
    local gives = tycho.compile(function(x, o) return x * 2, o end, {guard = "inputs"})
    for _ = 1, 6 do
      local o = {by = 2}
      assert.is_true(rawequal(o, (select(2, gives(tycho.ones(2), o)))))
    end
    local gives_tensors = tycho.compile(function(t) return t.x * 2, t end, {guard = "inputs"})
    local made = tycho.compile(function(x) return setmetatable({y = x * 2}, {}) end, {guard = "inputs"})
    for k = 1, 6 do
      local t = {x = tycho.full({2}, k)}
      local y, same = gives_tensors(t)
      assert.equal(2 * k, y[1])
      assert.is_true(rawequal(t, same))
      assert.equal(k, same.x[1])
      assert.equal(2 * k, made(t.x).y[1])
    end
    local changed, f = {by = 2}, tycho.compile(function(x, o) return x * o.by end, {guard = "inputs"})
    for k = 1, 6 do
      changed.by = k > 4 and 5 or 2                      -- the same table
      helper.close(f(tycho.ones(2), changed), tycho.full({2}, changed.by))
    end
  end)

  it("gives a rule that extends an optimizer numbers, and sees a rate that becomes a tensor", function()
    local seen
    local Mine = tycho.optim.Muon:extend("Mine", {})
    function Mine:rule(group, p, g, _, _, write)
      seen = type(group.momentum) == "number" and group.momentum > 0
      write(p, p - g * group.lr)
    end
    local w = nn.Parameter(tycho.ones(2, 2))
    local opt = Mine({w}, {lr = 0.1})
    local f = tycho.compile(function()
      w.grad = nil
      w:square():sum():backward()
      opt:step()
    end)
    for _ = 1, 4 do f() end
    assert.is_true(seen)
    for _, name in ipairs {"SGD", "Adam", "Muon"} do
      alike(function(wrap)
        local p = nn.Parameter(tycho.ones(2, 2))
        local o = tycho.optim[name]({p}, {lr = 0.5})
        local step = wrap(function(x)
          p.grad = nil;
          (p * x):sum():backward()
          o:step()
        end)
        return function(k)
          if k == 5 then o.param_groups[1].lr = tycho.tensor(0.001) end
          step(tycho.full({2, 2}, k))
          return {p}
        end
      end, {guard = "inputs"})
    end
  end)

  it("sees numbers that schedules change in optimizers made of ops", function()
    for _, guard in ipairs {"full", "inputs"} do
      for _, name in ipairs {"Muon", "ASGD", "Adafactor"} do
        local report
        local function run(wrap)
          tycho.manual_seed(3)
          local w, u, out = nn.Parameter(tycho.randn(6, 4)), nn.Parameter(tycho.randn(4, 4)), {}
          local opt = tycho.optim[name]({{params = {w}}, {params = {u}, lr = 0.01}}, {lr = 0.02, weight_decay = 0.1})
          local step = wrap(function(x)
            opt:zero_grad()
            x:matmul(w):matmul(u):square():sum():backward()
            opt:step()
          end)
          for k = 1, 8 do
            for n, group in ipairs(opt.param_groups) do
              group.lr, group.weight_decay = 0.02 / (k + n), 0.1 * k * n
              if group.momentum then group.momentum = 0.5 + 0.02 * k * n end
            end
            step(tycho.randn(5, 6))
            out[k] = tycho.cat({w:detach():flatten(), u:detach():flatten()}, 1):clone()
          end
          if type(step) == "table" then report = step:report() end
          return out
        end
        local want = run(function(fn) return fn end)
        local got = run(function(fn) return tycho.compile(fn, {guard = guard}) end)
        for k = 1, 8 do helper.close(got[k], want[k], name .. ", step " .. k) end
        assert.equal(1, #report)
        assert.is_true(report[1].compiled, tostring(report))
      end
    end
  end)

  it("sees a gradient of another layout, and a mode that fn restores, by its arguments alone", function()
    alike(function(wrap)
      local w = nn.Parameter(tycho.ones(2, 2))
      local opt = tycho.optim.SGD({w}, {lr = 0.1})
      local f = wrap(function(x)
        opt:step()
        return (w:detach() * x):sum()
      end)
      w.grad = tycho.ones(2, 2)
      return function(k)
        if k == 5 then w.grad = tycho.tensor({{1, 2}, {3, 4}}):t() end
        return {f(tycho.ones(2, 2)), w}
      end
    end, {guard = "inputs"})
    alike(function(wrap)
      tycho.manual_seed(2)
      local net = nn.BatchNorm1d(2)
      local f = wrap(function(x)
        local was = net.training
        net:eval()
        local a = tycho.no_grad(net, x):sum()
        net:train(was)
        return net(x):abs():sum():detach(), a
      end)
      return function(k)
        if k == 5 then net:eval() end
        local y, a = f(tycho.randn(4, 2))
        return {y, a, net.running_mean}
      end
    end, {guard = "inputs"})
  end)

  it("sums gradients into what view() has copied", function()
    alike(function(wrap)
      tycho.manual_seed(3)
      local w, conv = nn.Parameter(tycho.randn(4, 8)), nn.Conv2d(2, 2, 3, {padding = 1})
      local f = wrap(function(x)
        local y = w * x
        conv((y + y:sin()):reshape(4, 2, 2, 2)):sum():backward()
      end)
      return function(k)
        w.grad = nil
        f(tycho.full({4, 8}, k))
        return {w.grad}
      end
    end)
  end)
end)

describe("compile, a call that leaves the record,", function()
  it("redoes draws outside of the vmap that runs", function()
    for _, randomness in ipairs {"error", "different", "same"} do
      alike(function(wrap)
        tycho.manual_seed(7)
        local p, by = tycho.zeros(2, {requires_grad = true}), 1
        local f = wrap(function(x)
          local h = F.dropout(x + p, {p = 0.5})
          local y = tycho.vmap(function(v) return v * by end, 1, 1, {randomness = randomness})(h)
          return y:detach(), y.requires_grad
        end)
        return function(k)
          by = k > 3 and k or 1
          local y, needs = f(tycho.ones(4, 2))
          return {y, needs, tycho.rand(2)}
        end
      end)
    end
  end)

  it("redoes what a checkpoint has saved", function()
    alike(function(wrap)
      tycho.manual_seed(7)
      local layer, by = nn.Linear(4, 4), 1
      local f = wrap(function(x)
        local a = layer(x)
        return tycho.utils.checkpoint(function(v) return (layer(v) * by):sum() end, a, {save = {"linear"}}):detach()
      end)
      return function(k)
        by = k > 3 and k or 1
        return {f(tycho.ones(3, 4))}
      end
    end)
  end)

  it("still sees a saved result that changes in place", function()
    local layer, by = nn.Linear(4, 4), 1
    local f = tycho.compile(function(x)
      local a = layer(x)
      return tycho.utils.checkpoint(function(v)
        local y = layer(v)
        if by > 3 then y:mul_(2) end
        return (y * by):sum()
      end, a, {save = {"linear"}}):detach()
    end)
    for k = 1, 6 do
      by = k > 3 and k or 1
      local ok, why = pcall(f, tycho.ones(3, 4))
      assert.equal(k <= 3, ok)
      if not ok then assert.matches("changes a result of linear in place", why) end
    end
  end)

  it("keeps the history of a gradient that passes through", function()
    alike(function(wrap)
      local f = wrap(function(x)
        local _, j = tycho.func.jvp(function(v) return v + 1 end, {x}, {x})
        return j
      end)
      return function(k) return {f(tycho.full({2}, k))} end
    end)
    alike(function(wrap)
      local f = wrap(function(x)
        local v, w = x:detach():requires_grad_(), tycho.zeros_like(x):requires_grad_()
        local y = v + 1
        y:backward(w, {create_graph = true})
        return tycho.grad(v.grad * 2, w, tycho.ones_like(x))
      end)
      return function(k) return {f(tycho.full({2}, k))} end
    end)
  end)

  it("gives results that are nested; too deeply, an error leaves nothing open", function()
    local levels = 1000
    local f = tycho.compile(function(x)
      local deep = {x + 1}
      for _ = 1, levels do deep = {deep} end
      return deep
    end)
    for k = 1, 4 do
      local deep = f(tycho.full({2}, k))
      while type(deep) == "table" do deep = deep[1] end
      assert.equal(k + 1, deep[1])
    end
    assert.is_true(f:report()[1].compiled)
    levels = 40000
    helper.fails("stack overflow", f, tycho.ones(2))
    assert.is_false(require("tycho.core").program.active())
  end)

  it("gives results of unequal depth in their places", function()
    for _, guard in ipairs {"full", "inputs"} do
      local f = tycho.compile(function(x) return {{x + 1, x * 2}, x * 3, {{x * 4}, x * 5, a = {b = x * 7}}}, x * 6 end, {guard = guard})
      for k = 1, 6 do
        local t, last = f(tycho.full({2}, k))
        assert.same({k + 1, 2 * k, 3 * k, 4 * k, 5 * k, 7 * k, 6 * k},
          {t[1][1][1], t[1][2][1], t[2][1], t[3][1][1][1], t[3][2][1], t[3].a.b[1], last[1]})
      end
      assert.is_true(f:report()[1].compiled)
    end
  end)
end)
