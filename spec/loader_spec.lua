-- Loaders: what of their states and datasets doesn't fit, workers that hang, loops within loops.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local data, fails = tycho.data, helper.fails

describe("loaders #cpu", function()
  it("says what of a state, a collate and a dataset doesn't fit", function()
    local items = data.TensorDataset(tycho.range(1, 10))
    local loader = data.DataLoader(items, {batch_size = 2, shuffle = true})
    loader:iter()()
    local state = loader:state_dict()
    fails("of an epoch that is shuffled, this loader doesn't shuffle", function()
      data.DataLoader(items, {batch_size = 2}):load_state_dict(state)
    end)
    fails("of an epoch of 10 items, the dataset has 4", function()
      data.DataLoader(data.TensorDataset(tycho.range(1, 4)), {batch_size = 2, shuffle = true}):load_state_dict(state)
    end)
    fails("'data' has a function as a key", data.Dataset, "m", {[print] = 1})
    for _, workers in ipairs {0, 2} do
      local bad = data.DataLoader(items, {batch_size = 2, num_workers = workers, collate = function(list) return list.no.such end})
      fails("DataLoader: collate: spec/loader_spec.lua:", function() for _ in bad:iter() do error "a batch" end end)
    end
  end)

  it("an item that takes a thread longer than the timeout is told; the thread is left behind", function()
    local place = helper.folder()
    assert(os.execute("mkdir " .. place .. "/a") == 0)
    for _, name in ipairs {"1", "2"} do tycho.utils.save_image(tycho.rand(3, 4, 4), place .. "/a/" .. name .. ".png") end
    local set = data.datasets.ImageFolder{root = place, transform = data.transforms.Resize{4000, 4000}}
    local loader = data.DataLoader(set, {batch_size = 1, num_workers = 1, timeout = 0.1, prefetch_factor = 1})
    local before = core.now()
    fails("DataLoader: worker 1, item 1: no answer for 0.1 seconds", function() for _ in loader:iter() do end end)
    assert.is_true(core.now() - before < 2)
    set.transform = data.transforms.Resize{4, 4}
    local n = 0
    for _ in data.DataLoader(set, {num_workers = 2}):iter() do n = n + 1 end
    assert.equal(2, n)
    os.execute("rm -r " .. place)
  end)

  it("loops over one loader may be within one another, whoever makes the batches", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- the stock luajit can't open that build
    local module = data.Dataset("spec.fixtures.numbers", {n = 6})
    local tensors = data.TensorDataset(tycho.range(1, 6))
    for _, case in ipairs {{tensors, 0}, {tensors, 2}, {module, 0}, {module, 2}} do
      local loader = data.DataLoader(case[1], {batch_size = 2, num_workers = case[2], shuffle = true, seed = 3})
      local outer, inner = {}, 0
      for x in loader:iter() do
        for _, v in ipairs(x:totable()) do outer[#outer + 1] = v end
        for y in loader:iter() do inner = inner + y:numel() end
      end
      local alone = {}
      for x in data.DataLoader(case[1], {batch_size = 2, shuffle = true, seed = 3}):iter() do
        for _, v in ipairs(x:totable()) do alone[#alone + 1] = v end
      end
      assert.same(alone, outer)
      assert.equal(18, inner)
      local a, b = loader:iter(), loader:iter()
      for _ = 1, 3 do assert.is_true(a() ~= nil and b() ~= nil) end
      assert.is_true(a() == nil and b() == nil)
      loader:close()
    end
  end)

  it("a subset goes to a device with its dataset, where that can", function()
    fails("to: the subset's dataset can't be moved", function()
      data.Subset({size = function() return 1 end, get = function() return 1 end}, {1}):to("cpu")
    end)
  end)

  it("collate gives every field of its items", function()
    local x, y, z = data.collate {{tycho.ones(2), 1, "a"}, {tycho.zeros(2), 2, "b"}}
    assert.same({2, 2}, {unpack(x.shape)})
    assert.same({1, 2}, y:totable())
    assert.same({"a", "b"}, z)
  end)

  it("read datasets with iter() one after another", function()
    local function numbers(n, from)
      return {iter = function()
        local i = 0
        return function()
          i = i + 1
          if i <= n then return tycho.tensor({from + i}), i end
        end
      end}
    end
    local chain = data.ChainDataset {numbers(3, 10), numbers(0, 20), numbers(2, 30)}
    for _ = 1, 2 do
      local out = {}
      for x, i in chain:iter() do out[#out + 1] = {x:item(), i} end
      assert.same({{11, 1}, {12, 2}, {13, 3}, {31, 1}, {32, 2}}, out)
    end
    local sizes = {}
    for x in data.DataLoader(chain, {batch_size = 2}):iter() do sizes[#sizes + 1] = #x end
    assert.same({2, 2, 1}, sizes)
    helper.fails("ChainDataset: item 2 of the list has no iter()", data.ChainDataset, {chain, {}})
  end)

  it("hands a program's error objects on as they are", function()
    local mine = {code = 3}
    local items = {size = function() return 4 end, get = function() error(mine) end}
    local ok, e = pcall(data.DataLoader(items, {batch_size = 2}):iter())
    assert.is_false(ok)
    assert.is_true(rawequal(mine, e))
  end)

  it("take what else PyTorch's takes, and say where a worker's first steps stand", function()
    local set = data.TensorDataset(tycho.range(1, 4, {device = "cpu"}))
    local o = {batch_size = 2, in_order = true, pin_memory_device = "", multiprocessing_context = "spawn", persistent_workers = true,
      worker_init_fn = function() error "not called" end}
    local sums = {}
    for x in data.DataLoader(set, o):iter() do sums[#sums + 1] = x:sum():item() end
    assert.same({3, 7}, sums)
    o.num_workers = 1
    fails("DataLoader: worker_init_fn: workers are programs of their own", data.DataLoader, set, o)
  end)

  it("stack datasets by name into tables", function()
    local one, two = data.TensorDataset(tycho.range(1, 6)), data.TensorDataset(tycho.range(1, 6), tycho.range(7, 12))
    local set = data.StackDataset {x = one, y = two}
    assert.equal(6, set:size())
    assert.same({x = 2, y = {2, 8}}, set:get(2))
    local batch = data.DataLoader(set, {batch_size = 4}):iter()()
    assert.same({{1, 2, 3, 4}, {7, 8, 9, 10}}, {batch.x:totable(), batch.y[2]:totable()})
    fails("'y' has 5 items, 'x' has 6", data.StackDataset, {x = one, y = data.TensorDataset(tycho.range(1, 5))})
    fails("'x' must be a dataset", data.StackDataset, {x = 3})
    fails("a table of datasets must have names alone, got 1", data.StackDataset, {one})
  end)
end)
