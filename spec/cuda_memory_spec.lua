-- The GPU's memory: what the allocator holds, hands out and gives back, also beside other streams; pinned memory.
local tycho = require "tycho"
local helper = require "spec.helper"

-- A pickle of protocol 2 that has no more than a snapshot needs; a tuple has a field tuple.
local function unpickle(text)
  local at, stack, marks = 3, {}, {}
  local function little(n)
    local v = 0
    for i = n, 1, -1 do v = v * 256 + text:byte(at + i - 1) end
    at = at + n
    return v
  end
  local function push(v) stack[#stack + 1] = v end
  local function since_mark()
    local from = table.remove(marks)
    local out = {unpack(stack, from + 1)}
    for i = #stack, from + 1, -1 do stack[i] = nil end
    return out
  end
  local ops = {K = function() push(little(1)) end, J = function() push(little(4)) end, ["]"] = function() push {} end,
    ["}"] = function() push {} end, ["("] = function() marks[#marks + 1] = #stack end, ["\136"] = function() push(true) end,
    ["\137"] = function() push(false) end, ["\138"] = function() push(little(little(1))) end,
    X = function() local n = little(4) push(text:sub(at, at + n - 1)) at = at + n end,
    e = function() local items = since_mark() local l = stack[#stack] for _, v in ipairs(items) do l[#l + 1] = v end end,
    u = function() local items = since_mark() for i = 1, #items, 2 do stack[#stack][items[i]] = items[i + 1] end end,
    t = function() local items = since_mark() items.tuple = true push(items) end}
  assert.equal("\128\2", text:sub(1, 2))
  while text:sub(at, at) ~= "." do
    local op = text:sub(at, at)
    at = at + 1
    ops[op]()
  end
  assert.same({#text, 1, 0}, {at, #stack, #marks})
  return stack[1]
end

describe("memory of GPUs", function()
  if not tycho.cuda.is_available() then return end
  setup(function() tycho.set_default_device("cpu") end)
  teardown(function() tycho.set_default_device(helper.device) end)
  local cached = os.getenv "TYCHO_CUDA_CACHE" ~= "0"

  it("says what memory there is, and which line made it", function()
    collectgarbage() collectgarbage()
    tycho.cuda.record_memory_history(true)
    local x = tycho.zeros(1000, 1000, {device = "cuda"})
    local line = debug.getinfo(1, "l").currentline - 1
    tycho.cuda.record_memory_history(false)
    local y = tycho.zeros(1000, {device = "cuda"})
    local function look()
      local total, used, mine = 0, 0, 0
      for _, s in ipairs(tycho.cuda.memory_snapshot()) do
        local at = s.address
        for _, b in ipairs(s.blocks) do
          assert.equal(at, b.address)                              -- blocks lie one after another
          at = at + b.size
          if b.state == "active_allocated" then used = used + b.size end
          if b.where == "spec/cuda_memory_spec.lua:" .. line then mine = mine + b.size end
        end
        assert.equal(at, s.address + s.total_size)
        total = total + s.total_size
      end
      assert.same({tycho.cuda.memory_reserved(), tycho.cuda.memory_allocated()}, {total, used})
      return mine
    end
    local mine = look()
    assert.is_true(mine >= 4e6 and mine < 8e6)
    x:free()
    assert.equal(0, look())
    y:free()
    tycho.cuda.empty_cache()
    look()
  end)

  it("tells what the allocator did, and writes it for PyTorch's tools", function()
    local cuda, s = tycho.cuda, tycho.cuda.Stream()
    collectgarbage() collectgarbage()
    cuda.empty_cache()
    cuda.record_memory_history {max_entries = 1000}
    local x = tycho.zeros(3000000, {device = "cuda"})
    local where = "spec/cuda_memory_spec.lua:" .. debug.getinfo(1, "l").currentline - 1
    cuda.stream(s, function() return x:sum() end)
    x:free()
    local pending = 0
    for _, segment in ipairs(cuda.memory._snapshot().segments) do
      for _, b in ipairs(segment.blocks) do if b.state == "active_pending_free" then pending = pending + 1 end end
    end
    assert.equal(cached and 1 or 0, pending)
    s:synchronize()
    local y = tycho.zeros(10, {device = "cuda"})
    helper.fails("out of memory", tycho.empty, 2 ^ 40, {device = "cuda"})
    cuda.empty_cache()
    local events = cuda.memory_history()
    local seen, address, last, oom = {}, nil, 0, 0
    for _, e in ipairs(events) do
      if e.action == "alloc" and e.where == where then address = e.address end
      if address and e.address == address then seen[#seen + 1] = ("%s %d"):format(e.action, e.size / 2^20) end
      assert.is_true(e.time_us >= last and math.abs(e.time_us / 1e6 - os.time()) < 1000)
      last = e.time_us
      if e.action == "oom" then
        oom = oom + 1
        assert.is_true(e.size == 2 ^ 42 and e.device_free > 0 and e.address == nil)
      end
    end
    local mib = cached and 12 or 11                                    -- a segment's size is a multiple of 2 MiB
    assert.equal(("alloc %d, free_requested %d, free_completed %d, segment_free %d"):format(mib, mib, mib, mib), table.concat(seen, ", "))
    assert.equal("segment_alloc", events[1].action)
    assert.equal(1, oom)

    local path = os.tmpname()
    cuda.memory._dump_snapshot(path)
    local file = assert(io.open(path, "rb"))
    local dumped = unpickle(file:read "*a")
    file:close()
    os.remove(path)
    cuda.record_memory_history(false)
    y:free()
    local total, used = 0, 0
    for _, segment in ipairs(dumped.segments) do
      local at = segment.address
      for _, b in ipairs(segment.blocks) do
        assert.equal(at, b.address)
        at = at + b.size
        if b.state == "active_allocated" then used = used + b.size end
      end
      assert.equal(at, segment.address + segment.total_size)
      assert.same({0, 0, tuple = true}, segment.segment_pool_id)
      assert.is_false(segment.is_expandable)
      total = total + segment.total_size
    end
    assert.is_true(used > 0 and total >= used)
    assert.same({}, dumped.allocator_settings)
    local trace = dumped.device_traces[1]
    assert.equal(#events, #trace)
    for i, e in ipairs(events) do
      assert.same({e.action, e.address, e.size, e.time_us}, {trace[i].action, trace[i].addr, trace[i].size, trace[i].time_us})
      if e.where == where then
        assert.same({{filename = "spec/cuda_memory_spec.lua", line = tonumber(where:match "%d+$"), name = "lua"}}, trace[i].frames)
      end
    end
  end)

  it("keeps the last events of its history", function()
    local cuda = tycho.cuda
    cuda.record_memory_history(true, {max_entries = 4})
    for _ = 1, 5 do tycho.zeros(2, {device = "cuda"}):free() end
    local last = {}
    for i, e in ipairs(cuda.memory_history()) do last[i] = e.action end
    cuda.record_memory_history(false)
    assert.equal(0, #cuda.memory_history())                            -- else it wouldn't tell how the segments came about
    cuda.record_memory_history {max_entries = math.huge}
    local place = "caf\233/" .. ("\195\182"):rep(3) .. "/" .. ("x"):rep(3) .. "\195"      -- Latin-1, UTF-8, half a character
    local make = loadstring("local tycho = ... for _ = 1, 1100 do tycho.zeros(2, {device = 'cuda'}):free() end", "@" .. place)
    make(tycho)
    local path = os.tmpname()
    cuda.dump_memory_snapshot(path)
    local file = assert(io.open(path, "rb"))
    local trace, found = unpickle(file:read "*a").device_traces[1], 0
    file:close()
    os.remove(path)
    for _, e in ipairs(trace) do
      if e.frames[1] and e.frames[1].filename == "caf?/" .. ("\195\182"):rep(3) .. "/xxx?" then found = found + 1 end
    end
    assert.is_true(#trace >= 3300 and found >= 1100)
    assert.equal(cached and "free_completed alloc free_requested free_completed" or "alloc free_requested free_completed segment_free",
      table.concat(last, " "))
    cuda.record_memory_history "state"                                 -- lines of blocks, no events
    local z = tycho.zeros(2, {device = "cuda"})
    assert.equal(0, #cuda.memory_history())
    cuda.record_memory_history {enabled = false}
    z:free()
    assert.equal(0, #cuda.memory_history())
    helper.fails("dump_memory_snapshot: /nowhere/x", cuda.dump_memory_snapshot, "/nowhere/x")
    helper.fails("max_entries must be a whole number from 1", cuda.record_memory_history, {max_entries = 0})
    helper.fails("argument 1 (enabled) must be a boolean, 'all' or 'state', got 3", cuda.record_memory_history, 3)
    helper.fails("unknown option 'max_entry'", cuda.record_memory_history, {max_entry = 3})
  end)

  it("counts memory, gives it back, and says what there was when there is no more", function()
    collectgarbage() collectgarbage()
    local before = tycho.cuda.memory_allocated()
    local x = tycho.empty(1000, 1000, {device = "cuda"})
    assert.is_true(tycho.cuda.memory_allocated() - before >= 4e6)
    assert.is_true(tycho.cuda.max_memory_allocated() >= tycho.cuda.memory_allocated())
    assert.is_true(tycho.cuda.memory_reserved() >= tycho.cuda.memory_allocated())
    x:free()
    assert.equal(before, tycho.cuda.memory_allocated())
    tycho.cuda.reset_peak_memory_stats()
    assert.equal(before, tycho.cuda.max_memory_allocated())
    local free, total = tycho.cuda.mem_get_info()
    assert.is_true(free > 0 and total >= free)
    helper.fails("out of memory", tycho.empty, 2 ^ 40, {device = "cuda"})
    assert.equal(before, tycho.cuda.memory_allocated())
    assert.is_truthy(tycho.cuda.memory_summary():find("allocated by tensors", 1, true))
    local y, held = tycho.empty(1000, {device = "cuda"}), tycho.cuda.memory_summary()
    assert.is_truthy(held:match("4 KiB%s+[1-9]"))
    y:free()
    tycho.cuda.empty_cache()
    helper.close(tycho.ones(3, {device = "cuda"}):cpu(), tycho.ones(3))
  end)

  it("keeps within the share of the memory that is given to it, and counts what it couldn't have", function()
    local total = select(2, tycho.cuda.mem_get_info())
    collectgarbage() collectgarbage()
    tycho.cuda.empty_cache()
    local before, share = tycho.cuda.memory_stats(), (tycho.cuda.memory_reserved() + 2 ^ 23) / total
    assert.equal(before.allocated, before["allocated_bytes.all.current"])
    assert.equal(before.max_reserved, before["reserved_bytes.all.peak"])
    tycho.cuda.set_per_process_memory_fraction(share)
    assert.equal(share, tycho.cuda.get_per_process_memory_fraction())
    helper.fails(", at most ", tycho.empty, 2 ^ 22, {device = "cuda"})
    helper.close(tycho.ones(1000, {device = "cuda"}):cpu(), tycho.ones(1000))
    tycho.cuda.set_per_process_memory_fraction(1)
    helper.close(tycho.ones(2 ^ 22, {device = "cuda"})[{ {1, 3} }]:cpu(), tycho.ones(3))
    local now = tycho.cuda.memory_stats()
    assert.equal(before.num_ooms + 1, now.num_ooms)
    assert.is_true(now.num_alloc_retries > before.num_alloc_retries)
    helper.fails("above 0 and up to 1, got 2", tycho.cuda.set_per_process_memory_fraction, 2)
  end)

  it("uses blocks again, cuts them and joins them", function()
    tycho.manual_seed(1)
    local held, random = {}, 12345
    for _ = 1, 400 do
      random = (random * 1103515245 + 12345) % 2 ^ 31
      local k = random % 20 + 1
      if held[k] then
        assert.equal(held[k].n, held[k].t:sum():item() / k)        -- nobody wrote into it
        held[k].t:free()
        held[k] = nil
      else
        local n = (random / 64) % 3000 + 1
        n = n - n % 1
        held[k] = {n = n, t = tycho.full({n}, k, {device = "cuda"})}
      end
    end
    for _, h in pairs(held) do h.t:free() end
  end)

  it("keeps what another stream works with until that is done", function()
    local side = tycho.cuda.Stream()
    for round = 1, 30 do
      local x = tycho.full({5000}, round, {device = "cuda"})
      side:wait_stream(tycho.cuda.current_stream())
      local y = tycho.cuda.stream(side, function()
        local z = x * 2
        for _ = 1, 3 do z = z + x end
        return z
      end)
      x:free()
      tycho.full({5000}, -1000, {device = "cuda"})                 -- wants x's memory
      tycho.cuda.current_stream():wait_stream(side)
      helper.close((y + 0):cpu(), tycho.full({5000}, round * 5))
    end
  end)

  if os.getenv("TYCHO_SIM") == "async" then
    it("is told by the simulation when a wait is missing", function()
      local side, wrong = tycho.cuda.Stream(), 0
      for round = 1, 60 do
        local x = tycho.full({64}, round, {device = "cuda"})
        for _ = 1, 4 do x:add_(1) end
        local y = tycho.cuda.stream(side, function() return (x * 1):cpu() end)     -- nothing says that x is ready
        if y[1] ~= round + 4 then wrong = wrong + 1 end
        tycho.cuda.synchronize()
      end
      assert.is_true(wrong > 0)
    end)
  end

  it("copies from pinned memory without waiting, from other memory at once", function()
    local pinned, plain = tycho.full({10000}, 3):pin_memory(), tycho.full({10000}, 3)
    local syncs = tycho.cuda.sync_count()
    local a, b = pinned:to("cuda", {non_blocking = true}), plain:to("cuda", {non_blocking = true})
    plain:fill_(7)                                                 -- may change as soon as the call returns
    assert.equal(syncs, tycho.cuda.sync_count())
    helper.close(a:cpu(), tycho.full({10000}, 3))
    helper.close(b:cpu(), tycho.full({10000}, 3))
    local back = tycho.zeros(10000):pin_memory()
    back:copy_(a + 1)
    tycho.cuda.synchronize()
    helper.close(back, tycho.full({10000}, 4))
  end)

  it("has read what isn't pinned when the call returns, few bytes and many, also behind other work", function()
    local busy = tycho.ones(1000):cuda()
    for _, n in ipairs {1, 1000, 20000, 100000, 400000} do
      for _ = 1, 20 do busy:add_(1) end
      local plain = tycho.full({n}, 3)
      local there = plain:to("cuda", {non_blocking = true})
      plain:fill_(7)
      assert.is_true(there:eq(3):all():item(), n)
    end
  end)

  it("uses pinned memory again, after the copies from it", function()
    local loader = tycho.data.DataLoader(tycho.data.TensorDataset(tycho.range(1, 4000):view(40, 100), tycho.range(1, 40)),
      {batch_size = 2, pin_memory = true})
    local at, held = 0, {}
    for x, y in loader:iter() do
      held[#held + 1] = {x:to("cuda", {non_blocking = true}), y:to("cuda", {non_blocking = true})}
      x:free()                                                     -- at once
      y:free()
    end
    for _, pair in ipairs(held) do
      helper.close(pair[1]:cpu(), tycho.range(at * 100 + 1, at * 100 + 200):view(2, 100))
      helper.close(pair[2]:cpu(), tycho.range(at + 1, at + 2))
      at = at + 2
    end
    tycho.cuda.empty_cache()
  end)

  if os.getenv "TYCHO_SIM" then it("reads what another library has page-locked before the call returns", function()      -- by its own means
    local ffi = require "ffi"
    pcall(ffi.cdef, "void *sim_pin(size_t n);")
    local n = 100000
    local p = ffi.cast("float *", ffi.load(os.getenv "TYCHO_CUDA_LIBRARY").sim_pin(4 * n))
    for i = 0, n - 1 do p[i] = 3 end
    local x = tycho.from_ffi(p, {n})
    local work = tycho.ones(n, {device = "cuda"})
    for _ = 1, 20 do work = work * 1 end
    local y = x:to("cuda")
    for i = 0, n - 1 do p[i] = 5 end
    helper.close(y:cpu(), tycho.full({n}, 3))
    local z = x:to("cuda", {non_blocking = true})
    for i = 0, n - 1 do p[i] = 7 end
    helper.close(z:cpu(), tycho.full({n}, 5))
  end) end
end)
