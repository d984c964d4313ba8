-- Bugs that were, of data: loaders, their worker processes, datasets, transforms, errors, progress bars.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local optim, data = tycho.optim, tycho.data
local fails, write, folder = helper.fails, helper.write_file, helper.folder
local inf = math.huge
local function numbers(n) return data.TensorDataset(tycho.range(1, n, 1, {dtype = "int64", device = "cpu"})) end
local function epoch(loader)
  local out = {}
  for x in loader:iter() do for _, v in ipairs(x:flatten():totable()) do out[#out + 1] = v end end
  return out
end

describe("regressions of loaders", function()
  it("have memory and shape of their own, whatever becomes of the user's tensor", function()
    local table_of = tycho.nn.Embedding(200, 64)
    table_of:to("cpu")
    table_of.weight:requires_grad_(false)
    local want = table_of.weight:clone()
    local positions = {}
    for i = 1, 8000 do positions[i] = i % 200 + 1 end
    local k = 0
    for x in data.DataLoader(data.TensorDataset(table_of.weight),
        {batch_size = 400, num_workers = 2, prefetch_factor = 8, sampler = positions}):iter() do
      k = k + 1
      if k == 1 then table_of:double() end
      assert.equal("float32", x.dtype)
      assert.is_true(x[1]:equal(want[positions[(k - 1) * 400 + 1]]))
    end
    assert.equal(20, k)
  end)

  it("give each seed and epoch its own order, large seeds too", function()
    for _, seed in ipairs {1, 2 ^ 31, 1e12, 1732000000, 2 ^ 52 - 1} do
      local l = data.DataLoader(numbers(40), {batch_size = 40, shuffle = true, seed = seed})
      assert.is_false(table.concat(epoch(l), ",") == table.concat(epoch(l), ","))
      local seen = {}
      for i = 1, 300 do seen[core.mix_seeds(core.mix_seeds(seed, 0), i)] = true end
      local n = 0
      for _ in pairs(seen) do n = n + 1 end
      assert.equal(300, n)
    end
    tycho.manual_seed(1)
    local a = data.DataLoader(numbers(40), {batch_size = 40, shuffle = true})
    local b = data.DataLoader(numbers(40), {batch_size = 40, shuffle = true})
    assert.is_false(a.seed == b.seed)
    tycho.manual_seed(1)
    assert.equal(a.seed, data.DataLoader(numbers(40), {shuffle = true}).seed)
  end)

  it("draw anew for an item that comes twice", function()
    local set = {size = function() return 3 end, get = function(_, i) return tycho.rand(1, {device = "cpu"}) + i * 10 end}
    local got = epoch(data.DataLoader(set, {batch_size = 2, sampler = {2, 2, 2}, seed = 3}))
    assert.is_true(got[1] ~= got[2] and got[2] ~= got[3])
    assert.same(got, epoch(data.DataLoader(set, {batch_size = 3, sampler = {2, 2, 2}, seed = 3})))
    tycho.manual_seed(5)
    local before = tycho.rand(1, {device = "cpu"}):item()
    tycho.manual_seed(5)
    epoch(data.DataLoader(set, {seed = 3}))
    assert.equal(before, tycho.rand(1, {device = "cpu"}):item())          -- drawing for items leaves the generator
  end)

  it("take tensors and drawing objects as samplers, and resume them", function()
    assert.same({3, 1, 2}, epoch(data.DataLoader(numbers(3), {sampler = tycho.tensor({3, 1, 2}):long()})))
    assert.equal(2, data.DataLoader(numbers(3), {sampler = tycho.tensor({3, 1, 2}):long(), batch_size = 2}):size())
    local draws = {iter = function()
      local p, i = tycho.randperm(12, {device = "cpu"}), 0
      return function() i = i + 1; if i <= 12 then return p[i] end end
    end}
    local whole = data.DataLoader(numbers(12), {batch_size = 3, sampler = draws, seed = 8})
    local want = epoch(whole)
    local first = data.DataLoader(numbers(12), {batch_size = 3, sampler = draws, seed = 8})
    local it = first:iter()
    it()
    it()
    local again = data.DataLoader(numbers(12), {batch_size = 3, sampler = draws})
    again:load_state_dict(first:state_dict())
    assert.same({unpack(want, 7)}, epoch(again))
    fails("batches of 3, this loader makes batches of 4",
      function() data.DataLoader(numbers(12), {batch_size = 4}):load_state_dict(first:state_dict()) end)
    fails("must be a whole number from 0", function() again:load_state_dict {epoch = 1, position = -2, seed = 1} end)
    for _, bad in ipairs {{1.5}, {0}, {4}, {"a"}} do fails("sampler", data.DataLoader, numbers(3), {sampler = bad}) end
    fails("got number", data.DataLoader, numbers(3), {sampler = 5})
    fails("must return an iterator", function() epoch(data.DataLoader(numbers(3), {sampler = {iter = function() return {} end}})) end)
    fails("write for x, y in loader:iter() do", function() for _ in whole do end end)
    fails("seed must be a whole number", data.DataLoader, numbers(3), {seed = "x"})
    fails("collate must return the batch", epoch, data.DataLoader(numbers(3), {collate = function() end}))
    fails("collate must be a function", data.DataLoader, numbers(3), {collate = 5})
  end)

  it("a loader left by break begins a new epoch", function()
    local loader = tycho.data.DataLoader(tycho.data.TensorDataset(tycho.range(1, 10)), {batch_size = 2})
    loader:iter()()
    local n = 0
    for _ in loader:iter() do n = n + 1 end
    assert.equal(5, n)
    local sampler = {iter = function() local i = 0 return function() i = i + 1 if i <= 3 then return i * 2 end end end}
    local some = tycho.data.DataLoader(tycho.data.TensorDataset(tycho.range(1, 10)), {batch_size = 2, sampler = sampler})
    local all = {}
    for x in some:iter() do for _, v in ipairs(x:totable()) do all[#all + 1] = v end end
    assert.same({2, 4, 6}, all)
    assert.equal(2, some:size())
  end)

  it("loops that begin together are epochs of their own", function()
    local l = tycho.data.DataLoader(tycho.data.TensorDataset(tycho.range(1, 64)), {shuffle = true, seed = 3, batch_size = 64})
    local a, b = l:iter(), l:iter()
    assert.is_false(a():equal(b()))
    local base = tycho.data.TensorDataset(tycho.range(1, 8))
    local half = {dataset = base, size = function() return 4 end, get = function(self, i) return self.dataset:get(i * 2) end}
    assert.equal(4, tycho.data.DataLoader(half):size())
    local named = tycho.data.DataLoader {dataset = tycho.data.TensorDataset(tycho.range(1, 4)), batch_size = 2}
    assert.equal(2, named:size())
  end)

  it("an epoch that two processes began goes on in one, three or four, without an item left out", function()
    local items = data.TensorDataset(tycho.range(1, 24))
    local function loader(n, rank)
      return data.DataLoader(items, {batch_size = 2, sampler = data.DistributedSampler(items, {num_replicas = n, rank = rank, seed = 1})})
    end
    local seen, state
    local function see(l, batches)
      for x in l:iter() do
        for _, v in ipairs(x:totable()) do seen[v] = true end
        batches = batches - 1
        if batches == 0 then return end
      end
    end
    for _, n in ipairs {1, 3, 4} do
      seen = {}
      for rank = 0, 1 do
        local l = loader(2, rank)
        see(l, 3)
        state = l:state_dict()
      end
      for rank = 0, n - 1 do
        local l = loader(n, rank)
        l:load_state_dict(state)
        see(l, -1)
      end
      for i = 1, 24 do assert.is_true(seen[i], i) end
    end
  end)

  it("processes' shares are disjoint, whatever their loaders' seeds", function()
    local seen = {}
    for rank = 0, 1 do
      local sampler = data.DistributedSampler(10, {num_replicas = 2, rank = rank})
      for x in data.DataLoader(numbers(10), {batch_size = 5, sampler = sampler, seed = 3 + rank}):iter() do
        for _, v in ipairs(x:totable()) do seen[v] = (seen[v] or 0) + 1 end
      end
    end
    assert.same({1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, seen)
  end)

  it("items come one by one where there is no batch size", function()
    local cpu, seen = {device = "cpu"}, {}
    local set = data.TensorDataset(tycho.range(1, 3, 1, cpu), tycho.ones(3, 2, cpu))
    for a, b in data.DataLoader(set, {batch_size = false}):iter() do seen[#seen + 1] = {a, tostring(b.shape)} end
    assert.same({{1, "2"}, {2, "2"}, {3, "2"}}, seen)
    seen = {}
    local loader = data.DataLoader(set, {batch_size = false, collate = function(a, b) return b * a end})
    for x in loader:iter() do seen[#seen + 1] = x:totable() end
    assert.same({{1, 1}, {2, 2}, {3, 3}}, seen)
    assert.equal(3, loader:size())
    fails("batch_sampler and batch_size=false exclude each other", data.DataLoader, set,
      {batch_size = false, batch_sampler = {{1, 2}, {3}}})
    seen = {}
    for a in data.DataLoader(set, {batch_size = false, sampler = {3, 1}}):iter() do seen[#seen + 1] = a end
    assert.same({3, 1}, seen)
  end)

  it("keep the dtypes of tensors' numbers, whatever they are put together with", function()
    local t = tycho.tensor({1, 2, 2.5, 0.1}, {dtype = "float64", device = "cpu"})
    local doubles, ints = data.TensorDataset(t), data.TensorDataset(tycho.range(1, 4, 1, {device = "cpu"}):int())
    local own = {size = function() return 4 end, get = function(_, i) return i end}
    local function dtypes(set, workers)
      local seen = {}
      for a, b in data.DataLoader(set, {batch_size = 2, num_workers = workers}):iter() do
        seen[#seen + 1] = a.dtype .. (b and " " .. b.dtype or "")
      end
      return table.concat(seen, ", ")
    end
    for workers = 0, 1 do
      local set = data.StackDataset(doubles, data.Subset(ints, {4, 3, 2, 1}))
      assert.equal("float64 int32, float64 int32", dtypes(set, workers))
      local x, y = data.DataLoader(set, {batch_size = 3, num_workers = workers}):iter()()
      assert.same({{1, 2, 2.5}, {4, 3, 2}}, {x:totable(), y:totable()})
    end
    local halves = data.TensorDataset(tycho.range(1, 4, 1, {device = "cpu"}):long())
    function halves:get(i) return self.tensors[1][i] / 2 end               -- a get of the user's own
    assert.same({0.5, 1, 1.5}, (data.DataLoader(data.StackDataset(halves, ints), {batch_size = 3}):iter()()):totable())
    assert.equal("int64 int64, int64 int64", dtypes(data.StackDataset({size = own.size, get = own.get,
      fields = function() return 3 end}, own)))
    local path = helper.folder() .. "/text"
    helper.write_file(path, ("abcdefgh"):rep(20))
    local text = data.datasets.TokenFile {root = path, block_size = 4}
    local theirs = text.get
    function text:get(i) return (theirs(self, i)) end                      -- which asks what it takes the place of
    assert.same({4}, {unpack(text:get(1).shape)})
    assert.same({2, 4}, {unpack((data.DataLoader(text, {batch_size = 2}):iter()()).shape)})
    assert.equal(1, select("#", data.DataLoader(text, {batch_size = 2}):iter()()))
    assert.equal("float64 int64, float64 int64", dtypes(data.StackDataset(doubles, own)))
    assert.equal("float64, float64, float64, float64", dtypes(data.ConcatDataset {doubles, own}))
    assert.equal("float64, float64, float64, float64", dtypes(data.ConcatDataset {ints, doubles}))
  end)

  it("make batches of datasets one after the other, of parts of them, and of parts of the whole", function()
    local cpu = {device = "cpu"}
    local function rows(first, n, ...) return tycho.range(first, first + n - 1, 1, cpu):reshape(...) end
    local a = data.TensorDataset(rows(1, 10, 5, 2), rows(1, 5, 5))
    local b = data.TensorDataset(rows(101, 6, 3, 2), rows(101, 3, 3))
    local whole = data.ConcatDataset {data.Subset(b, {3, 1}),
      data.ConcatDataset {a, data.TensorDataset(tycho.zeros(0, 2, cpu), tycho.zeros(0, cpu))}, b}
    local set = data.Subset(whole, {10, 1, 2, 3, 9, 7})
    local want = {}
    for i = 1, 6 do
      local x, y = set:get(i)
      want[i] = {x:totable(), y}
    end
    for _, workers in ipairs {0, 2} do
      local got = {}
      for x, y in data.DataLoader(set, {batch_size = 4, num_workers = workers}):iter() do
        for i = 1, #x do got[#got + 1] = {x[i]:totable(), y[i]} end
      end
      assert.same(want, got)
    end
    -- the user's, whatever its fields are called
    local own = {datasets = {a, b}, size = function() return 2 end, get = function(_, i) return i * 7 end}
    for x in data.DataLoader(own, {batch_size = 2}):iter() do assert.same({7, 14}, x:totable()) end
    local pictures = tycho.randint(0, 255, {4, 1, 6, 6}, {dtype = "uint8", device = "cpu"})
    local function cut(n)
      return data.Subset({size = function() return 4 end, get = true,
        fields = function() return {{kind = "images", tensor = pictures, steps = {{"center_crop", n, n}}}} end}, {1, 2})
    end
    local sizes = {}
    for x in data.DataLoader(data.ConcatDataset {cut(4), cut(3)}, {batch_size = 2, num_workers = 1}):iter() do
      sizes[#sizes + 1] = tostring(x.shape)
    end
    assert.same({"2x1x4x4", "2x1x3x3"}, sizes)
    fails("item 3: its picture is",
      function() for _ in data.DataLoader(data.ConcatDataset {cut(4), cut(3)},
      {batch_size = 3, num_workers = 1}):iter() do end end)
    fails("its datasets 1 and 2 differ", data.DataLoader,
      data.ConcatDataset {a, data.TensorDataset(tycho.ones(2, 3, cpu), tycho.ones(2, cpu))}, {num_workers = 1})
    fails("its datasets 1 and 2 have 2 and 1 fields", data.DataLoader,
      data.ConcatDataset {a, data.TensorDataset(tycho.ones(2, 2, cpu))}, {num_workers = 1})
    fails("its dataset 2: it is written in Lua", data.DataLoader,
      data.ConcatDataset {a, {size = function() return 1 end, get = function() return 1, 2 end}}, {num_workers = 1})
  end)

  it("name the item that isn't like the others, and the one that failed", function()
    local function of(...)
      local items = {...}
      return data.DataLoader({size = function() return #items end, get = function(_, i) return unpack(items[i]) end}, {batch_size = #items})
    end
    fails("DataLoader: field 1: item 2 is a string, item 1 is a number", epoch, of({1}, {"a"}))
    fails("DataLoader: item 2 has 1 fields, item 1 has 2", epoch, of({1, 2}, {1}))
    fails("field 1: item 2 has shape 3, item 1 has 2", epoch, of({tycho.ones(2)}, {tycho.ones(3)}))
    fails("field 1: item 2 has no 'b', but item 1 has one", epoch, of({{a = 1, b = 2}}, {{a = 1}}))
    fails("field 1: item 3 has 'b', but item 1 has not", epoch, of({{a = 1}}, {{a = 1}}, {{a = 1, b = 2}}))
    local l = data.DataLoader({size = function() return 5 end, get = function(_, i) if i == 3 then
      error("broken")
    end return i end}, {batch_size = 1})
    fails("DataLoader: item 3: ", epoch, l)
    assert.equal(2, l:state_dict().position)        -- the failed one was not given
    fails("it is empty",
      function() error(select(2, require("tycho.data.source").of(data.TensorDataset(tycho.zeros(0, {device = "cpu"})))), 0) end)
    assert.same({}, epoch(data.DataLoader(data.TensorDataset(tycho.zeros(0, {device = "cpu"})), {num_workers = 2})))
    fails("its tensor 1 is not contiguous", data.DataLoader, data.TensorDataset(tycho.ones(3, 2, {device = "cpu"}):t()), {num_workers = 1})
  end)

  it("items are lists, or have names", function()
    local set = {size = function() return 2 end, get = function(_, i) return {i, name = "n" .. i} end}
    fails("is a list that also has the field 'name'", function() for _ in data.DataLoader(set, {batch_size = 2}):iter() do end end)
  end)

  it("errors that are tables stay what they are", function()
    local own = {code = 7}
    local function thrown(fn)
      local ok, e = pcall(fn)
      assert.is_false(ok)
      return e
    end
    assert.equal(own, thrown(function()
      for _ in data.DataLoader(numbers(2), {collate = function() error(own) end}):iter() do end
    end))
    assert.equal(own, thrown(function()
      data.DataLoader({size = function() error(own) end, get = function() return 1 end}):size()
    end))
  end)

  it("don't wait for pipes", function()
    local dir = folder()
    os.execute(("mkdir %s/a; mkfifo %s/a/x.png"):format(dir, dir))
    for _, workers in ipairs {0, 1} do
      fails("x.png: not a regular file",
        function() for _ in data.DataLoader(data.datasets.ImageFolder {root = dir}, {num_workers = workers}):iter() do end end)
    end
    for _, read in ipairs {tycho.load, tycho.load_npy, core.read_idx, data.read_csv} do
      fails("not a regular file", read, dir .. "/a/x.png")
    end
    os.execute("rm -r " .. dir)
  end)

  it("can't be forged", function()
    local source = core.make_source(3, {{kind = "rows", tensor = tycho.ones(3, {device = "cpu"})}})
    assert.is_false(getmetatable(source))
    fails("must be a loader", core.loader_take, source, 0)
    fails("must be a source", core.source_batch, newproxy(), tycho.ones(1), 0, 0)
    fails("must be a worker", core.process_note, io.stdout)
    local loader = core.loader_start(source, 1)
    core.loader_stop(loader)
    core.loader_stop(loader)
    fails("has been ended", core.loader_take, loader, 0)
    fails("not a worker of a DataLoader", core.process_enter)
    fails("occurs twice or is __metadata__", core.write_safetensors, os.tmpname(), {"__metadata__"}, {tycho.ones(1, {device = "cpu"})})
  end)
end)

describe("regressions of worker processes #cpu", function()
  local T = tycho.data.transforms
  if os.getenv "TYCHO_BUILD" == "build-asan" then return end
  local path = package.path
  setup(function() package.path = "spec/fixtures/?.lua;" .. package.path end)
  teardown(function() package.path = path end)

  it("and their parent don't wait for each other", function()
    local n = 0
    local l = data.DataLoader(data.Dataset("squares", {n = 1500}), {num_workers = 1, prefetch_factor = 700, timeout = 5})
    for _ in l:iter() do n = n + 1 end
    assert.equal(1500, n)
    l:close()
    assert.equal(6, #epoch(data.DataLoader(numbers(6), {batch_size = 2, num_workers = 1, timeout = 0})))       -- no limit; processes too:
    assert.equal(18, #epoch(data.DataLoader(data.Dataset("squares", {n = 6}), {batch_size = 2, num_workers = 1, timeout = 0})))
    fails("timeout must be a number of seconds, 0 for no limit, got -1", data.DataLoader, numbers(6), {timeout = -1})
    local stuck = data.DataLoader(data.Dataset("squares", {n = 1500, hang = 1}), {num_workers = 1, prefetch_factor = 700, timeout = 1})
    fails("worker 1, item 1: no answer for", function() for _ in stuck:iter() do end end)
  end)

  it("hand items to the program's collate, and batches of a dataset's own", function()
    local function padded(items)                 -- items as get gives them, whoever made them
      local rows, labels, longest = {}, {}, 0
      for _, item in ipairs(items) do longest = math.max(longest, #item[1]) end
      for k, item in ipairs(items) do
        rows[k], labels[k] = tycho.pad(item[1], {0, longest - #item[1]}), item[2]
      end
      return tycho.stack(rows, 1), tycho.tensor(labels, {dtype = "int64", device = "cpu"})
    end
    local function run(set, workers, o)
      o.batch_size, o.shuffle, o.seed, o.num_workers = 4, true, 3, workers
      local out, l = {}, data.DataLoader(set, o)
      for x, y in l:iter() do out[#out + 1] = {x:totable(), core.is_tensor(y) and y:totable() or y} end
      l:close()
      return out
    end
    local words = data.Dataset("words", {n = 11})
    local want = run(words, 0, {collate = padded})
    assert.equal(3, #want)
    assert.equal("number", type(want[1][2][1]))
    assert.same(want, run(words, 2, {collate = padded}))
    local some = data.Subset(words, {2, 9, 4, 7, 1})
    assert.same(run(some, 0, {collate = padded}), run(some, 1, {collate = padded}))
    -- what C reads: augmented alike with a collate and without, in any number of threads
    local dir = folder()
    for i = 1, 5 do write(dir .. "/data_batch_" .. i .. ".bin", ("\1" .. string.char(i * 40):rep(3072)):rep(2)) end
    local set = data.datasets.CIFAR10 {root = dir, transform = T.Compose {T.RandomCrop(32, {padding = 4}), T.RandomHorizontalFlip()}}
    local plain = run(set, 0, {})
    local function stacked(items)
      local x, y = {}, {}
      for k, item in ipairs(items) do
        assert.equal("number", type(item[2]))
        x[k], y[k] = item[1], item[2]
      end
      return tycho.stack(x, 1), tycho.tensor(y, {dtype = "int64", device = "cpu"})
    end
    for n = 0, 2 do assert.same(plain, run(set, n, {collate = stacked})) end
    os.execute("rm -rf " .. dir)
    fails("DataLoader: no such thing", function() run(words, 2, {collate = function() error("no such thing", 0) end}) end)
    fails("collate must return the batch", function() run(words, 2, {collate = function() end}) end)
    fails("DataLoader: worker 1: field 1: item ", function() run(words, 1, {}) end)
    -- a dataset's own, where its items are made
    local own = data.Dataset("words", {n = 6, own = true})
    local here, there = run(own, 0, {}), run(own, 2, {})
    for k = 1, 2 do
      assert.same(here[k][1], there[k][1])
      assert.equal(io.open("/proc/self/stat"):read "*n", here[k][2])
      assert.not_equal(here[k][2], there[k][2])
    end
  end)

  it("serve Subsets, and give what isn't sendable as an error", function()
    local set = data.Dataset("squares", {n = 20})
    local parts = data.random_split(set, {12, 8}, {seed = 1})
    local function run(workers)
      local out = {}
      local l = data.DataLoader(parts[1], {batch_size = 5, seed = 2, num_workers = workers})
      for x, y in l:iter() do out[#out + 1] = {x:totable(), y:totable()} end
      l:close()
      return out
    end
    assert.same(run(0), run(2))
    local bad = data.DataLoader(data.Dataset("squares", {n = 4, strange = 2}), {num_workers = 1})
    fails("worker 1, item 2: save: 'fields.1.1' is a function", function() for _ in bad:iter() do end end)
  end)

  it("start also when an upgrade has replaced the program", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- the stock program can't load it
    local dir = folder()
    local program = dir .. "/luajit"
    os.execute("cp $(command -v luajit) " .. program)
    local lines = [[
      os.remove(arg[1])
      package.path = "spec/fixtures/?.lua;" .. package.path
      local data, n = require("tycho").data, 0
      for _ in data.DataLoader(data.Dataset("squares", {n = 3}), {num_workers = 1}):iter() do n = n + 1 end
      print(n)]]
    write(dir .. "/run.lua", lines)
    local p = io.popen(("%s %s/run.lua %s 2>&1"):format(program, dir, program))
    assert.equal("3\n", p:read "*a")
    p:close()
    os.execute("rm -rf " .. dir)
  end)
end)

describe("regressions of datasets", function()
  it("what is assigned to a dataset is read", function()
    local cpu = {device = "cpu"}
    local set = data.TensorDataset(tycho.range(1, 3, 1, cpu))
    assert.same({1, 2, 3}, epoch(data.DataLoader(set, {batch_size = 3})))
    set.tensors[1] = tycho.range(11, 13, 1, cpu)
    assert.same({11, 12, 13}, epoch(data.DataLoader(set, {batch_size = 3})))
    assert.equal(11, set:get(1))
  end)

  it("a user's dataset may have any fields", function()
    local Mine = {}
    Mine.__index = Mine
    function Mine:size() return #self.positions end
    function Mine:get(i) return self.dataset:get(self.positions[i]) * 100 end
    local at = tycho.tensor({5, 4}, {dtype = "int64", device = "cpu"})
    local set = setmetatable({dataset = numbers(5), positions = at, batch = 7}, Mine)
    for x in data.DataLoader(set, {batch_size = 2}):iter() do assert.same({500, 400}, x:totable()) end
  end)

  it("a folder without pictures is a class where that is allowed, and no label shifts silently", function()
    local place = os.tmpname()
    os.remove(place)
    for _, name in ipairs {"ape", "bee", "cat"} do os.execute(("mkdir -p %s/%s"):format(place, name)) end
    for _, name in ipairs {"ape", "cat"} do os.execute(("cp spec/golden/picture.png %s/%s/"):format(place, name)) end
    helper.fails("has folders without .jpg or .png files: bee;", data.datasets.ImageFolder, {root = place})
    local set = data.datasets.ImageFolder {root = place, allow_empty = true}
    assert.same({"ape", "bee", "cat"}, set.classes)
    assert.equal(3, (select(2, set:get(2))))
    os.execute("rm -r " .. place)
  end)

  it("a file of tokens that is cut off is an error", function()
    local path = os.tmpname()
    local f = io.open(path, "wb")
    f:write(("\1\0"):rep(100000))
    f:close()
    local set = tycho.data.datasets.TokenFile {root = path, block_size = 10}
    set:get(5000)
    f = io.open(path, "wb")
    f:write "\1\0"
    f:close()
    fails("became shorter", set.get, set, 5000)
    fails("became shorter", function() return tycho.data.DataLoader(set, {batch_size = 4, num_workers = 2}):iter()() end)
    os.remove(path)
  end)

  it("lines of a file of numbers are counted within quotes, too", function()
    local path = os.tmpname()
    local file = io.open(path, "w")
    file:write '"a\nname",b\n1,2\n3,x\n'
    file:close()
    helper.fails("line 4, field 2", tycho.data.read_csv, path, {header = true})
    os.remove(path)
  end)
end)

describe("regressions of transforms", function()
  local T = tycho.data.transforms

  it("survive numbers that aren't, and sizes past any", function()
    local nan = tycho.full({3, 8, 8}, 0 / 0, {device = "cpu"})
    T.functional.equalize(nan)
    T.functional.adjust_hue(nan, 0.3)
    T.functional.posterize(nan, 3)
    fails("std must be above 0", T.Normalize, 0, 1e-46)
    local steps = {}
    for i = 1, 300 do steps[i] = T.Pad(32768) end
    steps[301] = T.Resize(7)
    fails("Pad: ", T.Compose(steps), tycho.ones(1, 1, 1, {device = "cpu"}))
    fails("would become", T.Resize(32768), tycho.ones(1, 30000, 1, {device = "cpu"}))
  end)

  it("take a factor by PyTorch's name too", function()
    local F, x = data.transforms.functional, tycho.rand(3, 4, 4, {device = "cpu"})
    for _, name in ipairs {"brightness", "contrast", "saturation", "hue", "sharpness"} do
      local adjust = F["adjust_" .. name]
      helper.close(adjust(x, 0.25), adjust(x, {[name .. "_factor"] = 0.25}))
    end
  end)
end)

describe("regressions of errors", function()
  local T = tycho.tensor

  it("errors name what is wrong, by the words of the caller", function()
    helper.fails("ColorJitter: brightness must be a number or a list of two, {least, most} of 0 to 1e+06, got {0, inf}",
      tycho.data.transforms.ColorJitter, inf)
    local w = T({1}, {requires_grad = true, device = "cpu"})
    local scaler = tycho.amp.GradScaler()
    local lbfgs = optim.LBFGS {w}
    scaler:scale(w:sum()):backward()
    helper.fails("step: LBFGS evaluates the loss itself, and can't be used with a GradScaler", scaler.step, scaler, lbfgs)
    local writer = tycho.utils.tensorboard.SummaryWriter(helper.folder())
    helper.fails("add_scalars: argument 2 must have numbers by name, got 1 as a name", writer.add_scalars, writer, "a", {1, 2}, 1)
    helper.fails("add_scalar: walltime must be a number, got 'abc'", writer.add_scalar, writer, "a", 1, 1, "abc")
    helper.fails("SummaryWriter: flush_secs must be a number, got 'x'", tycho.utils.tensorboard.SummaryWriter, "a", {flush_secs = "x"})
    writer:close()
    local path = helper.folder() .. "/long.csv"
    local file = assert(io.open(path, "w"))
    file:write(("n"):rep(300) .. ",b\n1,2\n")
    file:close()
    helper.fails("line 1, field 1: a name has at most 255 bytes, got 'nnn", tycho.data.read_csv, path, {header = true})
  end)
end)

describe("regressions of progress bars", function()
  it("progress goes over streams", function()
    local stderr = io.stderr
    io.stderr = {write = function() end, flush = function() end} -- luacheck: ignore
    local n = 0
    local ok, e = pcall(function()
      local stream = data.DataLoader({iter = function() return ipairs {1, 2, 3} end}, {batch_size = 2})
      for _ in tycho.utils.progress(stream) do n = n + 1 end
    end)
    io.stderr = stderr -- luacheck: ignore
    assert.is_true(ok, e)
    assert.equal(2, n)
  end)

  it("progress goes over a list, with options", function()
    local out = {}
    for i, v in tycho.utils.progress({4, 5}, {desc = "list"}) do out[#out + 1] = i * v end
    assert.same({4, 10}, out)
    helper.fails("progress: with options, argument 1 must be the list itself", tycho.utils.progress, (ipairs {4}), {desc = "x"})
    helper.fails("progress: with options, argument 1 must be the list itself", tycho.utils.progress, (pairs {4}), {desc = "x"})
  end)
end)

describe("regressions of datasets: those", function()
  it("joined have the sizes that they have now", function()
    local set = data.TensorDataset(tycho.range(1, 8))
    local part = data.Subset(set, {1, 2, 3})
    local both = data.ConcatDataset {part, set}
    assert.equal(11, both:size())
    part.indices = {1, 2, 3, 4}
    assert.equal(12, both:size())
    assert.equal(8, both:get(12))
  end)

  it("without items have no random positions", function()
    fails("RandomSampler: num_samples is 5, but there are no items", data.RandomSampler, 0, {num_samples = 5})
  end)

  it("that a sampler is given as a list have no names", function()
    local out = {}
    for i in data.SequentialSampler({7, 8, 9}):iter() do out[#out + 1] = i end
    assert.same({1, 2, 3}, out)
    fails("SequentialSampler: argument 1 must be a dataset or a number of items, got a table", data.SequentialSampler, {size = 5})
    fails("SequentialSampler: argument 1 must be a dataset or a number of items, got a table", data.SequentialSampler, {1, 2, size = 5})
    assert.equal(3, data.RandomSampler({7, 8, 9, n = 3}):size())
    local lazy = setmetatable({}, {__index = function(_, i) return type(i) == "number" and i < 3 and {i} or nil end})
    local batches = 0
    for _ in data.DataLoader({4, 5}, {batch_sampler = lazy}):iter() do batches = batches + 1 end
    assert.equal(2, batches)
    fails("batch_sampler must be a list of lists of positions or an object with iter(), got a table", data.DataLoader, {4, 5},
      {batch_sampler = {size = 2}})
  end)

  it("of a folder refuse options after a transform that they don't know", function()
    local set = data.datasets
    fails("ImageFolder: unknown option 'bogus'", set.ImageFolder, folder(), function(x) return x end, {bogus = 3})
    fails("MNIST: options must be a table, got 3", set.MNIST, folder(), true, function(x) return x end, 3)
    fails("MNIST: unknown option 'bogus'", set.MNIST, folder(), nil, nil, {bogus = 3})
    fails("ImageFolder: unknown option 'bogus'", set.ImageFolder, folder(), nil, {bogus = 3})
    fails("MNIST: options come last, got 3 after them", set.MNIST, folder(), true, {}, 3)
  end)
end)
