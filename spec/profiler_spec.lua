-- tycho.profiler: every kernel has an entry, entries nest, nothing stays behind.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn, profiler, fails = tycho.nn, tycho.profiler, helper.fails
local DEVICE = tycho.get_default_device()

local function by_name(p, o)
  local out = {}
  for _, row in ipairs(p:key_averages(o)) do out[row.key .. (row.input_shapes and " " .. row.input_shapes or "")] = row end
  return out
end

describe("profiler", function()
  it("tells of ops, forward and backward, within the ranges that are named", function()
    local x, w = tycho.randn(8, 4), tycho.randn(4, 3, {requires_grad = true})
    local p, a, b = profiler.profile(function(k)
      for _ = 1, k do profiler.record_function("step", function() x:matmul(w):exp():sum():backward() end) end
      return k, "done"
    end, 3)
    assert.same({3, "done"}, {a, b})
    local rows = by_name(p)
    assert.equal(3, rows.step.count)
    assert.equal(6, rows.matmul.count)           -- the weight's gradient is a product too
    assert.equal(3, rows.exp.count)
    local inner = 0
    for name, row in pairs(rows) do
      assert.is_true(row.cpu_time_total >= row.self_cpu_time_total and row.self_cpu_time_total >= 0, name)
      assert.equal(row.cpu_time_total / row.count, row.cpu_time)
      if name ~= "step" then inner = inner + row.self_cpu_time_total end
    end
    assert.is_true(math.abs(rows.step.self_cpu_time_total + inner - rows.step.cpu_time_total) < 1)
    if DEVICE ~= "cpu" then assert.is_true(rows.matmul.cuda_time_total > 0) end
  end)

  it("tells which lines of the program ran what", function()
    local x = tycho.randn(8, 4, {requires_grad = true})
    local function here() return debug.getinfo(2, "l").currentline end
    local first, second, back
    local p = profiler.profile({with_stack = true}, function()
      local y = x * 2
      first = here() - 1
      for _ = 1, 2 do y = y * 3 end
      second = here() - 1
      y:sum():backward()
      back = here() - 1
    end)
    local by = {}
    for _, row in ipairs(p:key_averages {group_by_stack_n = 1}) do
      by[row.key .. row.line:match ":%d+$"] = row
      assert.equal("profiler_spec.lua", row.line:match "([%w_]+%.lua):")
    end
    assert.same({1, 2, 1}, {by["mul:" .. first].count, by["mul:" .. second].count, by["sum:" .. back].count})
    assert.is_true(p:table({group_by_stack_n = 1, sort_by = "self_device_time_total"}):find("profiler_spec.lua:" .. first, 1, true) ~= nil)
    fails("group_by_stack_n needs a profile taken with {with_stack = true}", function()
      profiler.profile(function() end):key_averages {group_by_stack_n = 1}
    end)
  end)

  it("stays whole where finalizers run ops, or on_trace_ready errs", function()
    local p = profiler.profile({with_stack = true}, function()
      for _ = 1, 3000 do
        tycho.ones(3):exp()
        getmetatable(newproxy(true)).__gc = function() tycho.zeros(1) end
      end
    end)
    local n = 0
    for _, row in ipairs(p:key_averages {group_by_stack_n = 1}) do n = n + (row.key == "exp" and row.count or 0) end
    assert.equal(3000, n)
    local failing = true
    p = profiler.profile {on_trace_ready = function() if failing then error "boom" end end}
    p:start()
    fails("boom", p.stop, p)
    failing = false
    p:start()
    tycho.ones(3):exp()
    p:stop()
    assert.equal(1, by_name(p).exp.count)
    fails("with_stack must be true or false, got 1", profiler.profile, {with_stack = 1}, print)
    fails("repeats is given twice", profiler.schedule, {["repeat"] = 2, repeats = 3})
  end)

  it("is begun and ended by hand, and takes PyTorch's options", function()
    local seen = 0
    local p = profiler.profile {activities = {profiler.ProfilerActivity.CPU}, profile_memory = true,
      on_trace_ready = function(q) seen = #q.events end}
    fails("stop: the profile hasn't begun", p.stop, p)
    p:start()
    fails("start: the profile has begun already", p.start, p)
    fails("another profile is being taken", profiler.profile, function() end)
    local y = tycho.ones(3):exp()
    p:stop()
    assert.equal(1, by_name(p).exp.count)
    assert.equal(#p.events, seen)
    local text = p:table {sort_by = "self_cpu_memory_usage"}
    assert.is_true(text:find "memory" ~= nil)
    fails("step: the profile has ended", p.step, p)
    p:start()
    y:sin()
    p:stop()
    assert.is_nil(by_name(p).exp)
    assert.equal(1, by_name(p).sin.count)
    fails("unknown option 'with_modules'", profiler.profile, {with_modules = true}, print)
    fails("a function is needed, got number", profiler.profile, nil, 5)
    assert.equal(0, #profiler.profile().events)
    local each = profiler.schedule {active = 1, ["repeat"] = 2}
    assert.same({"save", "save", "none"}, {each(0), each(1), each(2)})
  end)

  it("keeps shapes and memory, sorts, and writes a trace", function()
    local p = profiler.profile({record_shapes = true}, function()
      local y = tycho.ones(100, 10) + tycho.ones(10)
      return y:sum(), tycho.ones(5) + 1
    end)
    local rows = by_name(p, {group_by_input_shape = true})
    assert.equal(1, rows["add 100x10, 10"].count)
    assert.equal(1, rows["add 5"].count)
    assert.equal(4000, rows["add 100x10, 10"].memory)
    local text = p:table {sort_by = "count", row_limit = 2}
    assert.equal("name", text:match "^%S+")
    assert.equal(4, select(2, text:gsub("\n", "\n")) + 1)          -- a head, two rows, the total
    assert.equal("ones", text:match "\n(%S+)")
    assert.equal(p:table(), tostring(p))
    fails("did you mean 'cpu_time'", p.table, p, {sort_by = "cpu_tim"})
    local dir = helper.folder()
    p:export_chrome_trace(dir .. "/trace.json")
    local f = io.open(dir .. "/trace.json")
    local trace = core.json_decode(f:read "*a")
    f:close()
    os.execute("rm -rf " .. dir)
    local rows_of = {}
    for _, e in ipairs(trace.traceEvents) do
      assert.is_true(e.ph == "X" and e.dur >= 0)
      rows_of[e.tid] = (rows_of[e.tid] or 0) + 1
    end
    assert.equal(#p.events, rows_of.cpu)
    if DEVICE ~= "cpu" then assert.is_true(rows_of["cuda:0"] > 0) end
  end)

  it("tells of compiled steps", function()
    local net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    local fast, x = tycho.compile(function(v) return tycho.no_grad(function() return net(v):exp() * 2 + 1 end) end), tycho.randn(3, 4)
    for _ = 1, 4 do fast(x) end
    local rows = by_name((profiler.profile(function() for _ = 1, 5 do fast(x) end end)))
    if rows.graph then assert.equal(5, rows.graph.count)
    else
      assert.equal(10, rows.linear.count)
      if DEVICE == "cpu" then assert.equal(5, rows["fused steps"].count) end
    end
  end)

  it("leaves out the end of a range that a coroutine began before it", function()
    local turn = coroutine.wrap(function() profiler.record_function("range", coroutine.yield) end)
    turn()
    local p = profiler.profile(function()
      turn()
      for _ = 1, 3 do tycho.exp(tycho.ones(3)) end
    end)
    assert.equal(6, #p.events)
    for _, e in ipairs(p.events) do assert.equal(0, e.depth) end
  end)

  it("ends with its function, also where that errs", function()
    fails("stop", profiler.profile, function() profiler.record_function("range", error, "stop") end)
    fails("another profile is being taken", profiler.profile, function() profiler.profile(print) end)
    local p = profiler.profile(function() end)
    assert.equal(0, #p.events)
    assert.equal(7, profiler.record_function("nothing is taken", function() return 7 end))
    fails("options must be a table, got 3", profiler.profile, 3)
    assert.is_function(profiler.profile({}).start)
    fails("must be a string", profiler.record_function, 3, print)
    fails("unknown option 'record_shape'; did you mean 'record_shapes'", profiler.profile, {record_shape = true}, print)
  end)

  it("counts floating-point operations as PyTorch 2.15's FlopCounterMode does", function()
    local function count(fn)
      local p, n = profiler.profile({with_flops = true}, fn), 0
      for _, row in ipairs(p:key_averages()) do n = n + row.flops end
      return n, p
    end
    local function leaf(...) return tycho.randn(..., {requires_grad = true}) end
    local linear, line = nn.Linear(7, 3), nn.Conv1d(4, 6, 3)
    local conv, deconv = nn.Conv2d(4, 6, 3, {stride = 2, padding = 1}), nn.ConvTranspose2d(4, 6, 3, {stride = 2})
    local x, a, b = leaf {5, 7}, leaf {4, 2, 3}, leaf {4, 3, 6}
    local n, p = count(function() linear(x):sum():backward() end)
    assert.equal(630, n)
    assert.is_truthy(tostring(p):find "630 FLOP$")
    assert.is_truthy(p:table {sort_by = "flops", row_limit = 1}:find "210 FLOP")
    assert.equal(864, (count(function() a:matmul(b):sum():backward() end)))
    x = leaf {2, 4, 9, 9}
    assert.equal(64800, (count(function() conv(x):sum():backward() end)))
    a = leaf {2, 4, 9}
    assert.equal(6048, (count(function() line(a):sum():backward() end)))
    b = leaf {2, 4, 5, 5}
    assert.equal(64800, (count(function() deconv(b):sum():backward() end)))
    local q, k, v = leaf {2, 3, 5, 8}, leaf {2, 3, 6, 8}, leaf {2, 3, 6, 8}
    assert.equal(20160, (count(function() nn.functional.scaled_dot_product_attention(q, k, v):sum():backward() end)))
    assert.equal(0, (count(function() return tycho.zeros(0, 3):matmul(tycho.zeros(3, 2)) + x:sum() end)))
    fails("with_flops must be true or false", profiler.profile, {with_flops = 1}, print)
  end)

  it("takes the steps that a schedule names", function()
    local plan = profiler.schedule {wait = 1, warmup = 1, active = 2, repeats = 2, skip_first = 1}
    local actions = {}
    for step = 0, 10 do actions[#actions + 1] = plan(step) end
    assert.equal("none none warmup record save none warmup record save none none", table.concat(actions, " "))
    local early = profiler.schedule {wait = 2, active = 1, skip_first = 1, skip_first_wait = 1}
    actions = {}
    for step = 0, 6 do actions[#actions + 1] = early(step) end
    assert.equal("none save none none save none none", table.concat(actions, " "))
    local x, seen = tycho.ones(3), {}
    local function told(p) seen[#seen + 1] = {p.step_num, #p.events, p.events[1].name} end
    local function work(p, n)
      for i = 1, n do
        for _ = 1, i do tycho.exp(x) end                         -- step i calls it i times
        p:step()
      end
      return "done"
    end
    local p, result = profiler.profile({schedule = plan, on_trace_ready = told}, work, 10)
    assert.equal("done", result)
    assert.same({{5, 4 + 5, "exp"}, {9, 8 + 9, "exp"}}, seen)
    assert.equal(17, p:key_averages()[1].count)
    assert.is_truthy(tostring(p):find "exp")
    seen = {}
    profiler.profile({schedule = profiler.schedule {active = 5}, on_trace_ready = told}, work, 2)        -- ends within a round
    assert.same({{2, 3, "exp"}}, seen)
    fails("boom", profiler.profile, {schedule = plan}, function(q) for _ = 1, 3 do q:step() end error "boom" end)
    fails("the profile has ended", p.step, p)
    fails("the schedule must return", profiler.profile, {schedule = function() return "now" end}, function() end)
    assert.equal(0, #profiler.profile(function() end).events)
    fails("active must be a whole number", profiler.schedule, {active = 0})
    fails("unknown option 'actve'; did you mean 'active'", profiler.schedule, {actve = 1})
    local folder = os.tmpname()
    os.remove(folder)
    profiler.profile({on_trace_ready = profiler.tensorboard_trace_handler(folder)}, tycho.exp, x)
    local files = core.list_folder(folder)
    assert.equal(1, #files)
    assert.is_truthy(files[1]:find "%.pt%.trace%.json$")
    os.remove(folder .. "/" .. files[1])
    os.remove(folder)
  end)

  it("gives a range what ran in it, and its rows by a table", function()
    local x = tycho.randn(64, 64)
    local p = profiler.profile(function()
      profiler.record_function("outer", function()
        tycho.exp(x)
        profiler.record_function("inner", function() tycho.matmul(x, x) tycho.exp(x) end)
      end)
    end)
    local rows = by_name(p)
    if DEVICE ~= "cpu" then
      assert.is_true(math.abs(rows.outer.cuda_time_total - rows.exp.cuda_time_total - rows.matmul.cuda_time_total) < 1e-6)
      assert.is_true(rows.inner.cuda_time_total < rows.outer.cuda_time_total)
      assert.equal(0, rows.outer.self_cuda_time_total)
    end
    assert.is_truthy(p:key_averages():table({sort_by = "memory", row_limit = 2}):find "memory")
  end)

  it("ends for coroutines that it met in the middle of no_grad", function()
    local x = tycho.ones(8)
    local co = coroutine.wrap(function()
      tycho.no_grad(function() coroutine.yield() for _ = 1, 100 do local _ = x + 1 end end)
    end)
    local p = profiler.profile(function() co() local _ = x * 2 end)
    local many = {}
    for i = 1, 1000 do many[i] = tycho.ones(4) end           -- what the profile has freed is used again
    co()
    assert.same({1, 1000}, {#p.events, #many})
    co = coroutine.wrap(function() tycho.no_grad(function() coroutine.yield() local _ = x + 1 end) end)
    co()
    assert.equal(1, #profiler.profile(co).events)            -- and one that began before is seen
  end)

  it("names each op on the timelines of profilers outside", function()
    assert.equal(7, profiler.emit_nvtx(function(k)
      profiler.record_function("part", tycho.exp, tycho.ones(3))
      return k
    end, 7))
    assert.equal(0, #profiler.profile(function() end).events)    -- it has ended
  end)

  it("measures a piece of a program", function()
    local Timer, n, prepared = tycho.utils.benchmark.Timer, 0, 0
    local timer = Timer(function() n = n + 1 end, {setup = function() prepared = prepared + 1 end, label = "counting"})
    local m = timer:timeit(100)
    assert.same({101, 1, 100}, {n, prepared, m.number_per_run})
    assert.is_true(m.median > 0 and m.median < 1e-3)
    local threads = tycho.get_num_threads()
    local slow = Timer({stmt = function()
      assert.equal(2, tycho.get_num_threads())
      local till = core.now() + 2e-3
      while core.now() < till do end
    end, num_threads = 2}):blocked_autorange {min_run_time = 0.02}
    assert.equal(threads, tycho.get_num_threads())
    assert.is_true(slow.median >= 2e-3 and slow.iqr >= 0 and #slow.times >= 3)
    assert.is_truthy(tostring(m):find "^counting: [%d.]+ %a+ %(median of 1 x 100 calls")
    fails("must be a function, got 3", Timer, 3)
    fails("number must be a whole number", timer.timeit, timer, 0.5)
  end)

  it("compares measurements in a table for each label", function()
    local benchmark, results = tycho.utils.benchmark, {}
    local function add(label, row, column, threads, median)
      local m = benchmark.Timer(function() end, {label = label, sub_label = row, description = column, num_threads = threads}):timeit(1)
      m.median, m.iqr = median, 2e-6
      results[#results + 1] = m
    end
    add("product", "64x64", "mm", 1, 30.5e-6)
    add("product", "64x64", "mul and sum", 1, 1e-3)
    add("product", "8x8", "mm", 1, 2e-6)
    add("product", "64x64", "mm", 2, 21e-6)
    add("sum", nil, nil, 1, 4e-3)
    local all = benchmark.Compare(results)
    assert.equal([[
[------------ product -------------]
             |    mm  |  mul and sum
1 thread: --------------------------
      64x64  |  30.5  |       1000.0
      8x8    |   2.0  |
2 threads: -------------------------
      64x64  |  21.0  |

Times are in microseconds (us).

[------ sum ------]
            |  time
1 thread: ---------
      call  |   4.0

Times are in milliseconds (ms).]], tostring(all))
    all:trim_significant_figures()
    assert.is_truthy(tostring(all):find("      64x64  |  31  |         1000\n", 1, true))
    fails("result 1 must be a measurement, got 3", benchmark.Compare, {3})
  end)
end)
