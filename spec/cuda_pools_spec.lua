-- Where GPU memory comes from: pools, functions of the program's own, the allocator's settings, expandable segments.
local tycho = require "tycho"
local helper = require "spec.helper"

describe("segments of GPU memory", function()
  if not tycho.cuda.is_available() then return end
  setup(function() tycho.set_default_device("cpu") end)
  teardown(function() tycho.set_default_device(helper.device) end)
  local cached = os.getenv "TYCHO_CUDA_CACHE" ~= "0"

  it("keeps a pool's memory apart, and gives it back when the pool and its tensors are gone", function()
    if not cached then return end
    local cuda = tycho.cuda
    collectgarbage() collectgarbage()
    cuda.empty_cache()
    local reserved, x, y = cuda.memory_reserved(), nil, nil
    do
      local pool, other = cuda.MemPool(), cuda.MemPool()
      cuda.use_mem_pool(pool, function()
        x = tycho.full({2000, 1000}, 3, {device = "cuda"})
        local double = x * 2
        y = double:sum()
        double:free()
      end)
      assert.equal(12e6, y:item())
      local segments = pool:snapshot()
      assert.equal(2, #segments)                                         -- one of small blocks
      for _, s in ipairs(segments) do assert.equal(pool.id, s.pool) end
      x:free()
      local z = tycho.full({2000, 1000}, 5, {device = "cuda"})           -- doesn't get the pool's free blocks
      for _, s in ipairs(cuda.memory_snapshot()) do
        for _, b in ipairs(s.blocks) do
          if s.pool == pool.id then assert.is_true(b.state == "inactive" or b.size <= 512) end
        end
      end
      assert.equal(5 * 2e6, z:sum():item())
      local now = cuda.memory_reserved()
      cuda.use_mem_pool(pool, function() x = tycho.full({2000, 1000}, 7, {device = "cuda"}) end)      -- does
      assert.equal(now, cuda.memory_reserved())
      assert.equal(7 * 2e6, x:sum():item())
      cuda.use_mem_pool(pool, function()
        cuda.use_mem_pool(other, function() end)
        helper.fails("oh", cuda.use_mem_pool, other, function() error "oh" end)
        tycho.zeros(1000, 1000, {device = "cuda"}):free()                -- the outer one again
        assert.equal(0, #other:snapshot())
        coroutine.wrap(function()                                        -- has modes of its own
          local before = cuda.memory_snapshot()
          local w = tycho.zeros(3, {device = "cuda"})
          assert.equal(#before, #cuda.memory_snapshot())
          w:free()
        end)()
      end)
    end
    collectgarbage() collectgarbage()
    local held = 0
    for _, s in ipairs(cuda.memory_snapshot()) do if s.pool > 0 then held = held + 1 end end
    assert.equal(2, held)                                              -- x's, and y's
    x:free()
    y:free()
    cuda.synchronize()
    for _, s in ipairs(cuda.memory_snapshot()) do assert.equal(0, s.pool) end
    collectgarbage() collectgarbage()
    cuda.empty_cache()
    assert.equal(reserved, cuda.memory_reserved())
    do
      local pool = cuda.MemPool()
      assert.equal(pool.id, cuda.use_mem_pool(pool, function()
        local id = pool.id
        pool.held, pool.id = nil, nil                                  -- whatever a program does with its table
        collectgarbage() collectgarbage()
        local w = tycho.ones(3, {device = "cuda"})
        assert.equal(3, w:sum():item())
        w:free()
        pool.id = id
        return id
      end))
    end
    helper.fails("argument 1 must be a MemPool, got 3", cuda.use_mem_pool, 3, print)
    helper.fails("argument 2 must be a function, got nil", cuda.use_mem_pool, cuda.MemPool())
  end)

  it("waits for other streams before a pool's memory goes back, and records graphs within one", function()
    if not cached then return end
    local cuda, side, total = tycho.cuda, tycho.cuda.Stream(), nil
    cuda.use_mem_pool(cuda.MemPool(), function()
      local x = tycho.full({3000000}, 2, {device = "cuda"})
      side:wait_stream(cuda.current_stream())
      total = cuda.stream(side, function() return (x * 3):sum() end)
    end)
    collectgarbage() collectgarbage()
    cuda.current_stream():wait_stream(side)
    assert.equal(18e6, total:item())
    do
      local x = tycho.full({1000}, 2, {device = "cuda"})
      local graph, made = cuda.use_mem_pool(cuda.MemPool(), function() return cuda.graph(function() return x * 5 end) end)
      collectgarbage() collectgarbage()
      graph:replay()
      assert.equal(1e4, made:sum():item())
    end
    collectgarbage() collectgarbage()
    total:free()
    cuda.empty_cache()
    for _, s in ipairs(cuda.memory_snapshot()) do assert.equal(0, s.pool) end
  end)

  if os.getenv "TYCHO_SIM" then it("takes a pool's memory from functions of the program's own", function()
    local ffi, cuda, path = require "ffi", tycho.cuda, os.getenv "TYCHO_CUDA_LIBRARY"
    pcall(ffi.cdef, "long sim_own_segments();")
    local sim = ffi.load(path)
    do
      local pool, x = cuda.MemPool(cuda.CUDAPluggableAllocator(path, "sim_alloc", "sim_take_back")), nil
      cuda.use_mem_pool(pool, function() x = tycho.full({2000, 1000}, 3, {device = "cuda"}) end)
      assert.equal(1, tonumber(sim.sim_own_segments()))
      assert.equal(6e6, x:sum():item())
      cuda.use_mem_pool(pool, function() helper.fails("out of memory", tycho.empty, 2 ^ 40, {device = "cuda"}) end)
      x:free()
    end
    collectgarbage() collectgarbage()
    assert.equal(0, tonumber(sim.sim_own_segments()))
    helper.fails("has no function 'nothing'", cuda.CUDAPluggableAllocator, path, "sim_alloc", "nothing")
    helper.fails("/nowhere.so", cuda.CUDAPluggableAllocator, "/nowhere.so", "a", "b")
    helper.fails("argument 2 must be a string", cuda.CUDAPluggableAllocator, path)
    local x = tycho.zeros(3, {device = "cuda"})
    helper.fails("memory has been allocated already", cuda.change_current_allocator,
      cuda.CUDAPluggableAllocator(path, "sim_alloc", "sim_take_back"))
    helper.fails("argument 1 must be an allocator", cuda.MemPool, 3)
    helper.fails("argument 1 must be an allocator, got nil", cuda.change_current_allocator)
    x:free()
  end) end

  it("keeps to the settings of its allocator", function()
    if not cached then return end
    local cuda = tycho.cuda
    local function fresh()
      collectgarbage() collectgarbage()
      cuda.empty_cache()
      return cuda.memory_reserved()
    end
    local function bytes(n) return tycho.empty(n, {dtype = "uint8", device = "cuda"}) end
    local MB = 2 ^ 20
    -- a large block is only cut up without the limit
    fresh()
    bytes(40 * MB):free()
    local with = cuda.memory_reserved()
    local a = bytes(15 * MB)
    assert.equal(with, cuda.memory_reserved())
    a:free()
    fresh()
    cuda.set_allocator_settings {max_split_size_mb = 30}
    bytes(40 * MB):free()
    with = cuda.memory_reserved()
    a = bytes(15 * MB)
    assert.equal(with + 16 * MB, cuda.memory_reserved())
    local b = bytes(35 * MB)                                           -- about as large
    assert.equal(with + 16 * MB, cuda.memory_reserved())
    a:free()
    b:free()
    cuda.set_allocator_settings {max_split_size_mb = false}
    -- sizes are rounded up
    fresh()
    cuda.memory._set_allocator_settings "roundup_power2_divisions:4"
    local held = cuda.memory_allocated()
    a = bytes(1200 * 1024)
    assert.equal(1280 * 1024, cuda.memory_allocated() - held)
    b = bytes(1024 * 1024)
    assert.equal((1280 + 1024) * 1024, cuda.memory_allocated() - held)
    a:free()
    b:free()
    cuda.set_allocator_settings {roundup_power2_divisions = false}
    -- what has been unused longest goes back first
    local before = fresh()
    local _, total = cuda.mem_get_info()
    cuda.set_per_process_memory_fraction((before + 100 * MB) / total)
    cuda.set_allocator_settings {garbage_collection_threshold = 0.6}
    a, b = bytes(22 * MB), bytes(24 * MB)
    b:free()
    a:free()
    local c = bytes(30 * MB)
    assert.equal(before + 52 * MB, cuda.memory_reserved())
    local retries = cuda.memory_stats().num_alloc_retries
    c:free()
    assert.equal(0, cuda.memory_stats().num_alloc_retries - retries)
    cuda.set_allocator_settings {garbage_collection_threshold = false}
    cuda.set_per_process_memory_fraction(1)
    fresh()
    helper.fails("unknown option 'max_split_mb'", cuda.set_allocator_settings, {max_split_mb = 30})
    helper.fails("'max_split_size_mb' must be a whole number of MiB above 20, or false, got 3", cuda.set_allocator_settings,
      "max_split_size_mb:3")
    helper.fails("'max_split_size_mb' isn't 'name:value'", cuda.set_allocator_settings, "max_split_size_mb")
    helper.fails("must be a power of two from 1 to 64", cuda.set_allocator_settings, {roundup_power2_divisions = 3})
  end)

  it("maps memory into expandable segments where it is needed, and takes it out again", function()
    if not cached then return end
    local cuda, MB = tycho.cuda, 2 ^ 20
    local function fresh()
      collectgarbage() collectgarbage()
      cuda.empty_cache()
      return cuda.memory_reserved()
    end
    local function full(n, v) return tycho.full({n * MB / 4}, v, {device = "cuda"}) end
    local before = fresh()
    cuda.set_allocator_settings {expandable_segments = true}
    for n = 5, 60, 5 do tycho.empty(n * MB / 4, {device = "cuda"}):free() end      -- each one larger than what is cached
    assert.equal(before + 64 * MB, cuda.memory_reserved())
    fresh()
    cuda.record_memory_history(true)
    full(20, 1):free()
    fresh()
    local seen = {}
    for i, e in ipairs(cuda.memory_history()) do seen[i] = ("%s %d"):format(e.action, e.size / MB) end
    cuda.record_memory_history(false)
    assert.equal("segment_map 32, alloc 20, free_requested 20, free_completed 20, segment_unmap 32", table.concat(seen, ", "))
    local a, b, c = full(16, 1), full(16, 2), full(16, 3)
    local at = tostring(b:data_ptr())
    b:free()
    assert.equal(before + 32 * MB, fresh())                            -- b's piece between the others
    local ranges = 0
    for _, s in ipairs(cuda.memory_snapshot()) do
      if s.expandable then ranges = ranges + 1 end
      assert.equal(s.expandable and "large" or "small", s.segment_type)
    end
    assert.equal(2, ranges)
    assert.equal(16 * MB, a:sum():item() + c:sum():item())
    b = full(16, 4)
    assert.equal(at, tostring(b:data_ptr()))
    a:free()
    b:free()
    local d = full(40, 5)                                              -- the 32 MiB in front of c don't do
    assert.equal(3 * 4 * MB, c:sum():item())
    assert.equal(5 * 10 * MB, d:sum():item())
    c:free()
    d:free()
    assert.equal(before, fresh())
    assert.equal(0, #cuda.MemPool():snapshot())
    -- a limit, other streams, graphs and pools
    local _, total = cuda.mem_get_info()
    cuda.set_per_process_memory_fraction((before + 40 * MB) / total)
    local segments = cuda.memory_stats().segments
    helper.fails("out of memory", full, 41, 1)
    helper.fails("out of memory", tycho.empty, 2 ^ 40, {device = "cuda"})
    cuda.use_mem_pool(cuda.MemPool(), function() helper.fails("out of memory", tycho.empty, 2 ^ 40, {device = "cuda"}) end)
    assert.equal(segments, cuda.memory_stats().segments)               -- no addresses are left behind
    a = full(20, 1)
    assert.equal(5 * MB, a:sum():item())
    a:free()
    cuda.set_per_process_memory_fraction(1)
    local side, x, sum = cuda.Stream(), full(24, 1), nil
    side:wait_stream(cuda.current_stream())
    cuda.stream(side, function() sum = (x * 2):sum() end)
    x:free()
    fresh()
    side:synchronize()
    assert.equal(12 * MB, sum:item())
    x = full(1, 1)
    do
      local graph, y = cuda.graph(function() return (x * 3):sum() end)
      graph:replay()
      assert.equal(0.75 * MB, y:item())
    end
    local y = cuda.use_mem_pool(cuda.MemPool(), full, 30, 1)
    fresh()
    assert.equal(7.5 * MB, y:sum():item())
    y:free()
    sum:free()
    x:free()
    assert.equal(before, fresh())
    cuda.set_allocator_settings "expandable_segments:False"
    helper.fails("option 'expandable_segments' must be true, or false, got 3", cuda.set_allocator_settings, {expandable_segments = 3})
  end)

  if os.getenv "TYCHO_SIM" then it("loses nothing when an expandable segment gets no memory", function()
    if not cached then return end
    local ffi, cuda = require "ffi", tycho.cuda
    pcall(ffi.cdef, "void sim_fail(long n, int error); bool sim_failing();")
    local sim = ffi.load(os.getenv "TYCHO_CUDA_LIBRARY")
    collectgarbage() collectgarbage()
    cuda.empty_cache()
    local before = cuda.memory_reserved()
    cuda.set_allocator_settings {expandable_segments = true}
    local retries = cuda.memory_stats().num_alloc_retries
    for n = 1, 40 do
      local held, most = tycho.full({1000}, n, {device = "cuda"}), 6 * 2 ^ 20
      sim.sim_fail(n, 2)
      local ok, x = pcall(tycho.empty, most, {device = "cuda"})
      local ended = not sim.sim_failing()
      sim.sim_fail(0, 0)
      assert.is_true(ok or tycho.is_out_of_memory(x), x)
      if not ok then x = tycho.empty(most, {device = "cuda"}) end
      for _, at in ipairs {1, most / 3, most - 99} do x:narrow(1, at, 100):fill_(7) end
      assert.equal(700, x:narrow(1, most - 99, 100):sum():item())
      assert.equal(n * 1000, held:sum():item())
      x:free()
      held:free()
      collectgarbage()
      cuda.empty_cache()
      assert.equal(before, cuda.memory_reserved())
      if not ended then break end
    end
    cuda.set_allocator_settings {expandable_segments = false}
    assert.is_true(cuda.memory_stats().num_alloc_retries > retries)
  end) end

  it("lets a program go on with less when memory has run out", function()
    local ok, err = pcall(tycho.empty, 2 ^ 40, {device = "cuda"})
    assert.is_true(not ok and tycho.is_out_of_memory(err))
    assert.is_false(tycho.is_out_of_memory(select(2, pcall(tycho.zeros, -1))))
  end)
end)
