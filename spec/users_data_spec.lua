-- Data as PyTorch's users load and keep it: loaders, streams, pictures, progress bars, checkpoints.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim, data = tycho.nn, tycho.optim, tycho.data
local T, close, fails = tycho.data.transforms, helper.close, helper.fails
local cpu = {device = "cpu"}
local DEVICE = tycho.get_default_device()

describe("users' loaders", function()
  it("a loader takes whole batches from a batch_sampler", function()
    local ds = data.TensorDataset(tycho.range(1, 10):cpu(), tycho.range(1, 10):cpu():long())
    local function batches(o)
      local l, out = data.DataLoader(ds, o), {}
      for x in l:iter() do out[#out + 1] = x:totable() end
      assert.equal(#out, l:size())
      l:close()
      return out
    end
    assert.same({{1, 2}, {3}, {10, 9, 8}}, batches {batch_sampler = {{1, 2}, {3}, {10, 9, 8}}})
    assert.same({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10}}, batches {batch_sampler = data.BatchSampler(data.SequentialSampler(ds), 4)})
    assert.same({{1, 2, 3, 4}, {5, 6, 7, 8}},
      batches {batch_sampler = data.BatchSampler(data.SequentialSampler(ds), 4, true), num_workers = 2,
      persistent_workers = true})
    local function random(workers)
      return batches {batch_sampler = data.BatchSampler(data.RandomSampler(ds), 3), seed = 5, num_workers = workers}
    end
    assert.same(random(0), random(2))
    local own = {iter = function()
      local i = 0
      return function()
        i = i + 1
        return i <= 2 and {i, i + 1} or nil
      end
    end}
    assert.same({{1, 2}, {2, 3}}, batches {batch_sampler = own})
    -- an epoch goes on where it was left
    local function loader() return data.DataLoader(ds, {batch_sampler = data.BatchSampler(data.RandomSampler(ds), 3), seed = 7}) end
    local l, again = loader(), loader()
    local it = l:iter()
    it()
    again:load_state_dict(l:state_dict())
    assert.same(it():totable(), again:iter()():totable())
    fails("batch_sampler names item 11, which is out of range for 10 items", data.DataLoader, ds, {batch_sampler = {{1, 11}}})
    -- any object with iter(), which is not asked again when it has ended
    local ten = {iter = function() return coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i) end end) end}
    assert.same({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10}}, batches {batch_sampler = data.BatchSampler(ten, 3)})
    assert.same({{3, 1}, {2}}, batches {batch_sampler = data.BatchSampler({3, 1, 2}, 2)})
    fails("BatchSampler: argument 'batch_size' is missing", data.BatchSampler, ten)
    fails("the state is of a loader without a batch_sampler", again.load_state_dict, again,
      data.DataLoader(ds, {batch_size = 1}):state_dict())
    fails("batch_sampler must give lists of positions, got an empty one", data.DataLoader, ds, {batch_sampler = {{}}})
    fails("batch_sampler and shuffle exclude each other", data.DataLoader, ds, {batch_sampler = {{1}}, shuffle = true})
    fails("batch_sampler and batch_size exclude each other", data.DataLoader, ds, {batch_sampler = {{1}}, batch_size = 2})
  end)

  it("a worker process has all of Tycho, whatever its dataset's module asks for", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- the stock luajit can't open that build
    local loader, got = data.DataLoader(data.Dataset("spec.fixtures.numbers", {n = 4}),
      {num_workers = 1, batch_sampler = {{1, 2}, {4}}}), {}
    for x, even in loader:iter() do got[#got + 1] = {x:totable(), even:totable()} end
    loader:close()
    assert.same({{{10, 20}, {false, true}}, {{40}, {true}}}, got)
  end)

  it("comes from chosen positions, several datasets, and lists in items", function()
    local numbers = data.TensorDataset(tycho.range(1, 10, 1, {device = "cpu"}))
    local seen = {}
    for x in data.DataLoader(numbers, {sampler = data.SubsetRandomSampler {3, 5, 7}, batch_size = 2, seed = 1}):iter() do
      for _, v in ipairs(x:totable()) do seen[#seen + 1] = v end
    end
    table.sort(seen)
    assert.same({3, 5, 7}, seen)
    local both = data.StackDataset(numbers, numbers)
    assert.same({4, 4}, {both:get(4)})
    local gap = {size = function() return 10 end, get = function(_, i) return i, nil end}
    assert.equal(4, select("#", data.StackDataset(gap, gap):get(1)))
    fails("argument 2 has 3 items, argument 1 has 10", data.StackDataset, numbers, data.TensorDataset(tycho.ones(3, {device = "cpu"})))
    local lists = {size = function() return 2 end, get = function(_, i) return {i, 2, 7.5}, i end}
    for a in data.DataLoader(lists, {batch_size = 2}):iter() do
      assert.equal(3, #a)
      assert.same({1, 2}, a[1]:totable())
      assert.equal("float32", a[3].dtype)
    end
    local uneven = {size = function() return 2 end, get = function(_, i) return i == 1 and {1, 2} or {1} end}
    fails("is a list of 1, item 1 is a list of 2", function() for _ in data.DataLoader(uneven, {batch_size = 2}):iter() do end end)
  end)

  it("a distributed sampler's order depends on the epoch that set_epoch sets", function()
    local function order(epoch)
      local out = {}
      for rank = 0, 1 do
        local sampler = tycho.data.DistributedSampler(20, {num_replicas = 2, rank = rank, seed = 3})
        sampler:set_epoch(epoch)
        for _, i in ipairs(sampler:order(0, 7):totable()) do out[#out + 1] = i end
      end
      return out
    end
    local first = order(0)
    assert.same(first, order(0))
    assert.is_not.same(first, order(1))
    table.sort(first)
    for i = 1, 20 do assert.equal(i, first[i]) end
  end)
end)

describe("users' streams", function()
  local function numbers(n)
    return {iter = function()
      local i = 0
      return function()
        i = i + 1
        if i <= n then return tycho.full({2}, i, {device = "cpu"}), i, math.random() end
      end
    end}
  end
  local function epoch(l)
    local seen = {}
    for x, i, r in l:iter() do
      assert.equal(#i, #x)
      for k = 1, #i do seen[#seen + 1] = ("%d %.6f"):format(i[k], r[k]) end
    end
    return seen
  end

  it("come in their own order, in batches, with draws that the seed decides", function()
    local l = data.DataLoader(numbers(7), {batch_size = 3, seed = 4})
    local first, second = epoch(l), epoch(l)
    assert.equal(7, #first)
    assert.is_true(first[1] ~= second[1])
    local again = data.DataLoader(numbers(7), {batch_size = 3, seed = 4})
    assert.same({first, second}, {epoch(again), epoch(again)})
    assert.equal(6, #epoch(data.DataLoader(numbers(7), {batch_size = 3, drop_last = true})))
    assert.equal("DataLoader(a stream, batches of 3)", tostring(l))
    for x in data.DataLoader(numbers(2),
        {batch_size = 2, collate_fn = function(items) return #items + items[1][2] end}):iter() do
      assert.equal(3, x)
    end
    for x in data.Prefetcher(data.DataLoader(numbers(2), {batch_size = 2}), DEVICE):iter() do
      assert.equal(tycho.ones(1):to(DEVICE).device, x.device)
    end
  end)

  it("go on where they stood", function()
    local l = data.DataLoader(numbers(10), {batch_size = 3, seed = 4})
    local whole, state = {}, nil
    for _, i in l:iter() do
      whole[#whole + 1] = i[1]
      if #whole == 2 then state = l:state_dict() end
    end
    local other, rest = data.DataLoader(numbers(10), {batch_size = 3}), {}
    other:load_state_dict(state)
    for _, i in other:iter() do rest[#rest + 1] = i[1] end
    assert.same({whole[3], whole[4]}, rest)
    assert.equal(1, other:state_dict().epoch)
    fails("batches of 3", data.DataLoader(numbers(1), {batch_size = 2}).load_state_dict,
      data.DataLoader(numbers(1), {batch_size = 2}), state)
  end)

  it("say what they can't have", function()
    fails("shuffle can't be used with it", data.DataLoader, numbers(3), {shuffle = true})
    fails("workers can't read this dataset with iter()", data.DataLoader, numbers(3), {num_workers = 1})
    fails("doesn't say how many items", data.DataLoader(numbers(3)).size, data.DataLoader(numbers(3)))
    fails("must return an iterator", function() for _ in data.DataLoader({iter = function() return 3 end}):iter() do end end)
    fails("with size() and get(i), or with iter()", data.DataLoader, {})
  end)
end)

describe("users' pictures", function()
  it("keep their labels through lists of transforms", function()
    local x, y = tycho.rand(4, 3, 8, 8, cpu), tycho.tensor({1, 2, 3, 4}, {dtype = "int64", device = "cpu"})
    local mixed, shares = T.RandomChoice {T.CutMix {num_classes = 4}, T.MixUp {num_classes = 4}}(x, y)
    assert.equal("4x3x8x8 4x4", tostring(mixed.shape) .. " " .. tostring(shares.shape))
    local z, label = T.Compose {T.CenterCrop(4), function(v) return v * 2 end}(x:select(1, 1), 7)
    assert.equal("3x4x4 7", tostring(z.shape) .. " " .. label)
  end)

  it("are cut five or ten times, and changed in any order", function()
    local x = tycho.range(1, 30, 1, cpu):reshape(1, 5, 6)
    local crops = T.FiveCrop(2)(x)
    assert.same({{{1, 2}, {7, 8}}, {{5, 6}, {11, 12}}, {{19, 20}, {25, 26}}, {{23, 24}, {29, 30}}},
      {crops[1][1]:totable(), crops[2][1]:totable(), crops[3][1]:totable(), crops[4][1]:totable()})
    assert.is_true(crops[5]:equal(T.CenterCrop(2)(x)))
    local ten = T.Compose {T.TenCrop({2, 3}), T.Lambda(function(list) return tycho.stack(list) end)}(x)
    assert.equal("10x1x2x3", tostring(ten.shape))
    assert.is_true(ten[6]:equal(x:flip(3)[{ {}, {1, 2}, {1, 3} }]))
    fails("five_crop: the crop of 7x7 is larger", T.FiveCrop(7), x)
    local seen = {}
    local t = T.RandomOrder {function(v) return v + 1 end, function(v) return v * 2 end}
    tycho.manual_seed(1)
    for _ = 1, 20 do seen[t(tycho.tensor(3, cpu)):item()] = true end
    assert.same({[8] = true, [7] = true}, seen)
  end)

  it("are put side by side, and written", function()
    local x = tycho.rand(5, 1, 4, 6, cpu)
    local grid = tycho.utils.make_grid(x, {nrow = 3, pad_value = 1})
    assert.equal("3x14x26", tostring(grid.shape))
    assert.is_true(grid[{ 2, {9, 12}, {11, 16} }]:equal(x[{5, 1}]))
    assert.equal(1, grid[{1, 1, 1}])
    local path = os.tmpname()
    tycho.utils.save_image(x, path, {nrow = 3, pad_value = 1})
    local read = data.read_image(path)
    close((read.dtype == "uint8" and read:float() / 255 or read), grid, "the file", 0.5 / 255 + 1e-6)
    os.remove(path)
    assert.equal("3x4x6", tostring(tycho.utils.make_grid({x:select(1, 1)}).shape))
    local wide = tycho.utils.make_grid(x * 7 - 3, {normalize = true, nrow = 5})
    assert.equal(1, wide:amax():item())
    fails("save_image: pictures must have 1 or 3 channels", tycho.utils.save_image, tycho.rand(2, 4, 3, 3), path)
    fails("save_image: /nowhere/x.png", tycho.utils.save_image, x, "/nowhere/x.png")
  end)

  it("are found by a folder's name, with numbers of classes", function()
    local dir = helper.folder()
    os.execute(("mkdir %s/ape %s/bee && cp spec/golden/picture.png %s/bee/1.png && cp spec/golden/picture.png \z
      %s/ape/1.png"):format(dir, dir, dir, dir))
    local set = data.datasets.ImageFolder(dir, {transform = T.CenterCrop(8)})
    assert.same({ape = 1, bee = 2}, set.class_to_idx)
    local loader = data.DataLoader(set, {batch_size = 2, collate_fn = function(items) return #items end})
    for n in loader:iter() do assert.equal(2, n) end
    assert.equal("DataLoader(2 items in 1 batch)", tostring(loader))
    fails("ImageFolder: options must be a table", data.datasets.ImageFolder, dir, 3)
    os.execute("rm -r " .. dir)
  end)

  it("may follow its step", function()
    local folder = helper.folder()
    local w = tycho.utils.tensorboard.SummaryWriter(folder)
    w:add_image("a", tycho.rand(4, 5), 3, {dataformats = "HW"})
    w:add_scalar("b", 1, 2, {walltime = 5})
    fails("add_image: unknown option", w.add_image, w, "a", tycho.rand(4, 5), 0, {dataformat = "HW"})
    w:close()
    os.execute("rm -r " .. folder)
  end)
end)

describe("users' progress bars", function()
  it("progress takes what pairs and ipairs give", function()
    local real, out = io.stderr, {}
    io.stderr = {write = function() end, flush = function() end} -- luacheck: ignore 122
    local ok, e = pcall(function()
      for i, v in tycho.utils.progress(ipairs {4, 5}) do out[#out + 1] = i * v end
      for k, v in tycho.utils.progress(pairs {a = 1}) do out[#out + 1] = k .. v end
      for k in tycho.utils.progress(("a b"):gmatch "%a", {desc = "x"}) do out[#out + 1] = k end
    end)
    io.stderr = real -- luacheck: ignore 122
    assert.is_true(ok, e)
    assert.same({4, 10, "a1", "a", "b"}, out)
  end)

  it("a progress bar's values may be tensors, which are read when they are shown", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- the stock luajit can't open that build
    local folder = helper.folder()
    helper.write_file(folder .. "/run.lua", [[
      local tycho = require "tycho"
      local bar = tycho.utils.progress(tycho.data.DataLoader(tycho.data.TensorDataset(tycho.range(1, 3))))
      for x in bar do bar:set{loss = x:sum() / 4, grid = tycho.ones(2, 2)} end]])
    os.execute(("luajit %s/run.lua 2>%s/said"):format(folder, folder))
    local said = helper.read_file(folder .. "/said")
    assert.truthy(said:find "loss 0.75  grid of shape 2x2" or said:find "grid of shape 2x2  loss 0.75", said)
    os.execute("rm -r " .. folder)
  end)
end)

describe("users' checkpoints", function()
  it("takes every optimizer's state, and models that load in a way of their own", function()
    local dir = helper.folder()
    local m = tycho.checkpoint.Manager {dir = dir}
    for k, name in ipairs {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS"} do
      local function run() local net = nn.Linear(3, 2) return net, optim[name](net:parameters(), {lr = 0.1}) end
      local net, opt = run()
      local function step(n, o) o:step(function()
        o:zero_grad()
        local loss = n(tycho.ones(4, 3)):square():sum()
        loss:backward()
        return loss
      end) end
      step(net, opt)
      opt.param_groups[1].name = "decay"
      m:save(k, {model = net, optimizer = opt})
      m:wait()
      local net2, opt2 = run()
      m:restore_latest {model = net2, optimizer = opt2}
      assert.equal("decay", opt2.param_groups[1].name)
      step(net, opt)
      step(net2, opt2)
      helper.close(net2.weight:detach(), net.weight:detach(), name, 1e-6)
    end
    local Net = nn.Module:extend "Net"
    function Net:init()
      nn.Module.init(self)
      self.a = nn.Linear(2, 2)
    end
    function Net:load_state_dict(s) return nn.Module.load_state_dict(self, s, {strict = false}) end
    m:save(9, {model = nn.ModuleDict {a = nn.Linear(2, 2), b = nn.Linear(2, 2)}})
    m:wait()
    assert.equal(9, (m:restore_latest {model = Net()}))
    os.execute("rm -rf " .. dir)
  end)

  it("gives schedulers back what they had where another member errs", function()
    local dir = helper.folder()
    local m, net = tycho.checkpoint.Manager {dir = dir}, nn.Linear(2, 2)
    local function schedule(n)
      local opt, list, at = optim.SGD(net:parameters(), {lr = 1}), {}, {}
      for i = 1, n do list[i] = optim.lr_scheduler.ConstantLR(opt) end
      for i = 1, n - 1 do at[i] = i end
      return optim.lr_scheduler.SequentialLR(opt, list, at)
    end
    m:save(1, {model = net, sched = schedule(2)})
    m:wait()
    local other, three = nn.Linear(2, 2), schedule(3)
    local w = other.weight:clone()
    fails("restore: 'sched' of", m.restore_latest, m, {model = other, sched = three})
    assert.is_true(w:equal(other.weight))
    local own = {state_dict = function() return other:state_dict() end,
      load_state_dict = function(_, s) return other:load_state_dict(s) end}
    fails("restore: 'sched' of", m.restore_latest, m, {model = own, sched = three})      -- which is loaded first
    assert.is_true(w:equal(other.weight))
    os.execute("rm -rf " .. dir)
  end)

  it("changes nothing where one member's state doesn't fit", function()
    local dir = helper.folder()
    local m = tycho.checkpoint.Manager {dir = dir}
    m:save(1, {a = nn.Linear(2, 2), b = nn.Linear(2, 2), t = tycho.ones(3)})
    m:wait()
    for _, other in ipairs {{b = nn.Linear(3, 3)}, {b = optim.SGD(nn.Linear(2, 2):parameters())}, {t = tycho.ones(4)}} do
      local a = nn.Linear(2, 2)
      local w = a.weight:clone()
      other.a = a
      local ok = pcall(m.restore_latest, m, other)
      assert.is_false(ok)
      assert.is_true(w:equal(a.weight))
    end
    os.execute("rm -rf " .. dir)
  end)

  it("whole numbers beyond 2^53 are collated as such, and items that aren't there are told", function()
    local many = {size = function() return 2 end, get = function(_, i) return 2 ^ 60 + 0 * i end}
    for y in tycho.data.DataLoader(many, {batch_size = 2}):iter() do
      assert.equal("int64", y.dtype)
      assert.equal(2 ^ 60, y[1])
    end
    local ds = tycho.data.Subset(tycho.data.TensorDataset(tycho.ones(7, 2)), tycho.range(1, 7))
    fails("get: item 0 is out of range: there are 7 items, counted from 1", ds.get, ds, 0)
  end)

  it("what can't be saved is named", function()
    local path, t = os.tmpname(), tycho.ones(2)
    t:free()
    fails("save: 'a.t' was freed", tycho.save, path, {a = {t = t}})
    local function nested(n)
      local root = {}
      local at = root
      for _ = 1, n do
        at.a = {}
        at = at.a
      end
      at.t = 5
      return root
    end
    fails("save: tables within tables more than 100 deep", tycho.save, path, nested(100))
    fails("save: tables within tables more than 100 deep", tycho.save, path, nested(20000))
    tycho.save(path, nested(99))
    local back = tycho.load(path)
    for _ = 1, 99 do back = back.a end
    assert.equal(5, back.t)
    os.remove(path)
  end)
end)
