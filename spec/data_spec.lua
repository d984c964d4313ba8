-- Datasets and loaders: the same batches whoever makes them; workers that fail; datasets on a device.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local fails = helper.fails
local data, T = tycho.data, tycho.data.transforms
local F = T.functional

local function near(a, b, eps, name)
  assert.equal(tostring(b.shape), tostring(a.shape), name)
  local d = a:double():sub(b:double()):abs():max():item()
  assert.is_true(d <= (eps or 1e-6), ("%s: %g away"):format(name or "?", d))
end
local write = helper.write_file
local folder = helper.folder

describe("datasets", function()
  it("read CIFAR's binary version", function()
    local dir = folder()
    local function record(label, v) return string.char(label) .. string.char(v):rep(3072) end
    for i = 1, 5 do write(dir .. "/data_batch_" .. i .. ".bin", record(i - 1, i) .. record(9, 0)) end
    write(dir .. "/test_batch.bin", record(3, 255))
    local set = data.datasets.CIFAR10 {root = dir}
    assert.equal(10, set:size())
    local x, y = set:get(3)
    assert.equal(2, y)
    assert.equal("automobile", set.classes[y])
    near(x, tycho.full({3, 32, 32}, 2 / 255, {device = "cpu"}), 1e-7)
    local test = data.datasets.CIFAR10 {root = dir, train = false, transform = function(p) return p * 2 end}
    assert.equal(2, (test:get(1):max():item()))
    write(dir .. "/test_batch.bin", "123")
    fails("not a whole number of records", data.datasets.CIFAR10, {root = dir, train = false})
    write(dir .. "/test_batch.bin", record(12, 1))
    fails("a label above 9", data.datasets.CIFAR10, {root = dir, train = false})
    fails("curl -O", data.datasets.CIFAR10, {root = dir .. "/none"})
    write(dir .. "/train.bin", "\1\99" .. ("\7"):rep(3072))
    local fine = data.datasets.CIFAR100 {root = dir}
    assert.equal(100, select(2, fine:get(1)))
    os.execute("rm -r " .. dir)
  end)

  it("read folders of pictures", function()
    local dir = folder()
    os.execute(("mkdir -p %s/cat/more %s/ape && cp spec/golden/picture.png %s/cat/b.png && cp spec/golden/picture.jpg \z
      %s/cat/more/a.JPG && cp spec/golden/gray.png %s/ape/"):format(dir, dir, dir, dir, dir))
    local set = data.datasets.ImageFolder {root = dir}
    assert.equal(set.labels, set.targets)
    assert.same({"ape", "cat"}, set.classes)
    assert.equal(3, set:size())
    local x, y = set:get(2)
    assert.equal("3x24x31", tostring(x.shape))
    assert.equal(2, y)
    for _, workers in ipairs {0, 2} do
      local resized = data.datasets.ImageFolder {root = dir, transform = T.Resize(12)}
      for p, l in data.DataLoader(resized, {batch_size = 3, num_workers = workers}):iter() do
        assert.equal("3x3x12x15", tostring(p.shape))
        assert.same({1, 2, 2}, l:totable())
      end
    end
    os.execute(("printf x > %s/ape/z.jpg"):format(dir))
    local bad = data.DataLoader(data.datasets.ImageFolder {root = dir}, {batch_size = 2, num_workers = 1})
    fails("worker 1, item 2: " .. dir .. "/ape/z.jpg: neither a JPEG nor a PNG", function() for _ in bad:iter() do end end)
    os.execute(("rm %s/ape/z.jpg; printf x > %s/cat/more/a.JPG"):format(dir, dir))
    os.execute(("cp spec/golden/picture.png %s/cat/c.png"):format(dir))
    fails("no folders with", data.datasets.ImageFolder, {root = dir .. "/cat/more"})
    fails("No such file", data.datasets.ImageFolder, {root = dir .. "/none"})
    os.execute("rm -r " .. dir)
  end)

  it("say which picture has another size", function()
    local dir = folder()
    os.execute(("mkdir %s/a && cp spec/golden/picture.png %s/a/1.png"):format(dir, dir))
    local set = data.datasets.ImageFolder {root = dir, transform = T.CenterCrop(10)}
    set.transform = nil
    for x in data.DataLoader(set, {batch_size = 1, num_workers = 1}):iter() do assert.equal("1x3x24x31", tostring(x.shape)) end
    os.execute(("cp spec/golden/gray.png %s/a/2.png"):format(dir))
    for x in data.DataLoader(data.datasets.ImageFolder {root = dir}, {batch_size = 2}):iter() do
      assert.equal("2x3x24x31", tostring(x.shape))
    end
    tycho.utils.save_curve(dir .. "/a/2.png", {1, 2})
    fails("item 2: its picture is",
      function() for _ in data.DataLoader(data.datasets.ImageFolder {root = dir}, {batch_size = 2}):iter() do end end)
    os.execute("rm -r " .. dir)
  end)

  it("map files of token ids", function()
    local path = os.tmpname()
    local ids = {}
    for i = 0, 99 do ids[i + 1] = string.char(i, i == 99 and 255 or 0) end
    write(path, table.concat(ids))
    local set = data.datasets.TokenFile {root = path, block_size = 9}
    assert.equal(11, set:size())
    local x, y = set:get(2)
    assert.same({10, 11, 12, 13, 14, 15, 16, 17, 18}, x:totable())
    assert.equal(19, y[9])
    assert.equal(65280 + 99 + 1, (select(2, set:get(11)))[9])
    local train, rest = data.datasets.TokenFile {root = path, block_size = 9, train = true, stride = 1},
      data.datasets.TokenFile {root = path, block_size = 9, train = false}
    assert.equal(81, train:size())
    assert.equal(91, rest:get(1)[1])
    for a, b in data.DataLoader(train, {batch_size = 81, num_workers = 2}):iter() do assert.is_true(b:equal(a + 1)) end
    local wide = data.datasets.TokenFile {root = path, dtype = "int32", block_size = 4}
    assert.equal(1 + 65536 + 0, wide:get(1)[1])
    fails("too few", data.datasets.TokenFile, {root = path, block_size = 100})
    fails("dtype must be", data.datasets.TokenFile, {root = path, dtype = "int8"})
    os.remove(path)
    fails("No such file", data.datasets.TokenFile, {root = path})
  end)

  it("read tables of numbers", function()
    local path = os.tmpname()
    write(path, 'a,"b ""x""",class\r\n1,2.5,0\r\n\r\n-3e2,,2\r\n" 4 ",5,1')
    local x, names = data.read_csv(path, {dtype = "float64"})
    assert.same({"a", 'b "x"', "class"}, names)
    assert.equal("3x3", tostring(x.shape))
    assert.is_true(x[{2, 2}] ~= x[{2, 2}])
    assert.same({1, -300, 4}, x[{ {}, 1 }]:totable())
    local set = data.datasets.CSV {root = path, target = "class", labels = true}
    assert.same({"a", 'b "x"'}, set.columns)
    for _, workers in ipairs {0, 1} do
      for a, b in data.DataLoader(set, {batch_size = 3, num_workers = workers}):iter() do
        assert.equal("3x2 float32", tostring(a.shape) .. " " .. a.dtype)
        assert.same({1, 3, 2}, b:totable())
      end
    end
    assert.equal(2.5, data.datasets.CSV({root = path, target = 1}):get(1)[1])
    write(path, "1;2\n3;4\n")
    assert.same({{1, 2}, {3, 4}}, data.read_csv(path, {header = false, separator = ";"}):totable())
    local function try(why, text) write(path, text) fails(why, data.read_csv, path) end
    try("line 3, field 2: 'x' is not a number", "a,b\n1,2\n3,x\n")
    try("line 3 has 1 fields, but the lines before it have 2", "a,b\n1,2\n3\n")
    try("the file has no lines", "\n\n")
    write(path, "a\n1\n")
    fails("has no column c", data.datasets.CSV, {root = path, target = "c"})
    fails("the target is the only column", data.datasets.CSV, {root = path, target = "a"})
    fails("No such file", data.read_csv, path .. ".none")
    write(path, "a,b\n1,2\n3,4.5\n")
    fails("row 2 after the header, column 2: 4.5 is not a whole number below 2^53, as needed for int64", data.read_csv, path,
      {dtype = "int64"})
    write(path, "9007199254740993,1\n,300\n")
    fails("row 1, column 1: 9007199254740992 is not", data.read_csv, path, {dtype = "int64", header = false})
    fails("row 1, column 1: 9007199254740992 is not a number of uint8", data.read_csv, path, {dtype = "uint8", header = false})
    os.remove(path)
  end)

  it("read text as windows of ids", function()
    local path = os.tmpname()
    write(path, "hello world\nhello lua\n")
    local set = data.datasets.TextFile {root = path, block_size = 4, split = 1}
    assert.equal("\n adehloruw", table.concat(set.vocab))
    assert.equal(5, set:size())
    local x, y = set:get(2)
    assert.equal("o wo", set:decode(x))
    assert.equal(" wor", set:decode(y))
    assert.same(set:encode("o wo"):totable(), x:totable())
    for a, b in data.DataLoader(set, {batch_size = 5, num_workers = 2}):iter() do
      assert.equal("hello world\nhello lu", set:decode(a))
      assert.equal("ello world\nhello lua", set:decode(b))
    end
    assert.equal(18, data.datasets.TextFile {root = path, block_size = 4, stride = 1, split = 1}:size())
    fails("too few", data.datasets.TextFile, {root = path, train = false, block_size = 4})
    fails("the character 'z' doesn't occur", set.encode, set, "z")
    os.remove(path)
    fails("No such file", data.datasets.TextFile, {root = path})
  end)
end)

describe("loaders", function()
  local function set(n)
    local images = tycho.randint(0, 255, {n, 1, 9, 9}, {device = "cpu"}):to("uint8")
    return data.TensorDataset(images, tycho.range(1, n, 1, {dtype = "int64", device = "cpu"}))
  end
  local function epoch(loader)
    local out = {}
    for x, y in loader:iter() do out[#out + 1] = {x:totable(), y:totable()} end
    return out
  end

  it("give the same batches with any number of threads", function()
    local some = set(23)
    local want
    for _, workers in ipairs {0, 1, 2, 5} do
      local l = data.DataLoader(some, {batch_size = 4, shuffle = true, seed = 7, num_workers = workers})
      local got = {epoch(l), epoch(l)}
      want = want or got
      assert.same(want, got)
      assert.equal(6, #got[1])
      local part = data.DataLoader(data.Subset(data.Subset(some, {5, 9, 2, 7}), {4, 1, 3}), {batch_size = 2, num_workers = workers})
      assert.same({{7, 5}, {2}}, {epoch(part)[1][2], epoch(part)[2][2]})
    end
    assert.is_false(pcall(assert.same, want[1], want[2]))
  end)

  it("draw transforms by seed, epoch and item", function()
    local dir = folder()
    for i = 1, 5 do
      local s = {}
      for k = 1, 6 do s[k] = string.char(k) .. string.char(i * 20 + k):rep(1500) .. string.char(k * 30):rep(1572) end
      write(dir .. "/data_batch_" .. i .. ".bin", table.concat(s))
    end
    local cifar = data.datasets.CIFAR10 {root = dir,
      transform = T.Compose {T.RandomCrop(32, {padding = 4}), T.RandomHorizontalFlip(), T.ColorJitter(0.3, 0.3),
        T.RandomApply({T.GaussianBlur(3)}, 0.5), T.RandomChoice {T.RandomInvert(1), T.RandomVerticalFlip(1)},
        T.RandomErasing()}}
    local want
    for _, workers in ipairs {0, 1, 3} do
      local l = data.DataLoader(cifar, {batch_size = 7, shuffle = true, seed = 2, num_workers = workers})
      local got = {epoch(l), epoch(l)}
      want = want or got
      assert.same(want, got)
    end
    -- an item is the same in another batch of the same epoch
    local by = {}
    for x, y in data.DataLoader(cifar, {batch_size = 30, seed = 2, num_workers = 2}):iter() do by = {x, y} end
    local i = 0
    for x in data.DataLoader(cifar, {batch_size = 1, seed = 2}):iter() do
      i = i + 1
      near(x[1], by[1][i], 0)
    end
    os.execute("rm -r " .. dir)
  end)

  it("go on where they stood, with another number of workers too", function()
    local some = set(40)
    local a = data.DataLoader(some, {batch_size = 3, shuffle = true, seed = 4, num_workers = 2})
    epoch(a)
    local it, whole = a:iter(), {}
    for _ = 1, 5 do for _, i in ipairs(select(2, it()):totable()) do whole[i] = true end end
    local state = a:state_dict()
    local rest = {}
    for _, y in it do
      rest[#rest + 1] = y:totable()
      for _, i in ipairs(rest[#rest]) do whole[i] = true end
    end
    assert.equal(40, #whole)
    for _, workers in ipairs {0, 1, 3} do
      local b = data.DataLoader(some, {batch_size = 3, shuffle = true, seed = 99, num_workers = workers})
      b:load_state_dict(state)
      local got = {}
      for _, y in b:iter() do got[#got + 1] = y:totable() end
      assert.same(rest, got)
      assert.same(a:state_dict(), b:state_dict())
    end
  end)

  it("leave nothing behind, however they end", function()
    local function threads(want)                   -- a joined thread may still be on the kernel's list for a moment
      local n, start = 0, core.now()
      if not want then os.execute "sleep 0.05" end
      repeat
        for line in io.lines("/proc/self/status") do n = tonumber(line:match "^Threads:%s+(%d+)") or n end
      until n == want or not want or core.now() - start > 2
      return n
    end
    local some = set(64)
    epoch(data.DataLoader(some, {num_workers = 3}))
    helper.collected()
    local before, l = threads(), nil
    local function rounds(n)
      l = data.DataLoader(some, {batch_size = 4, num_workers = 3, shuffle = true})
      for k = 1, n do
        local i = 0
        for _ in l:iter() do i = i + 1 if i == k % 17 then break end end
      end
      l:close()
      assert.equal(before, threads(before))
      for k = 1, n / 50 do
        data.DataLoader(some, {batch_size = 4, num_workers = 2}):iter()()
        if k % 5 == 0 then collectgarbage() collectgarbage() end
      end
    end
    rounds(100)                          -- so that what earlier specs have left on the stack is gone
    local bytes, files = helper.collected(), #core.list_folder "/proc/self/fd"
    rounds(1000)
    bytes = bytes - helper.collected()
    assert.same({files, 0, before}, {#core.list_folder "/proc/self/fd", bytes, threads(before)})
    local it = l:iter()
    it()
    local other = l:iter()
    other()
    assert.is_true(it() ~= nil)
    l:close()
    fails("the loader was closed", it)
    fails("the loader was closed", other)
  end)

  it("take samplers", function()
    local some = set(10)
    local function items(sampler, o)
      local out = {}
      for _, y in data.DataLoader(some,
          {batch_size = 3, sampler = sampler, seed = 1, num_workers = o and o.workers or 0}):iter() do
        for _, i in ipairs(y:totable()) do out[#out + 1] = i end
      end
      return out
    end
    assert.same({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, items(data.SequentialSampler(some)))
    assert.same({3, 1, 3}, items({3, 1, 3}, {workers = 1}))
    local r = items(data.RandomSampler(some))
    assert.same(r, items(data.RandomSampler(some)))
    table.sort(r)
    assert.same({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, r)
    assert.equal(25, #items(data.RandomSampler(some, {num_samples = 25})))
    assert.equal(25, #items(data.RandomSampler(some, {num_samples = 25, replacement = true})))
    local w = items(data.WeightedRandomSampler({0, 0, 1, 3, 0, 0, 0, 0, 0, 0}, 400))
    local four = 0
    for _, i in ipairs(w) do
      assert.is_true(i == 3 or i == 4)
      if i == 4 then four = four + 1 end
    end
    assert.is_true(four > 250 and four < 350)
    local seen = {}
    for rank = 0, 2 do
      local part = items(data.DistributedSampler(some, {num_replicas = 3, rank = rank}))
      assert.equal(4, #part)
      for _, i in ipairs(part) do seen[i] = (seen[i] or 0) + 1 end
    end
    assert.equal(10, #seen)
    assert.equal(2, data.DataLoader(some, {batch_size = 3, sampler = data.DistributedSampler(some, {num_replicas = 2})}):size())
    fails("exclude each other", data.DataLoader, some, {sampler = {1}, shuffle = true})
    fails("out of range", function() for _ in data.DataLoader(some, {sampler = {11}}):iter() do end end)
    fails("out of range", function() for _ in data.DataLoader(some, {sampler = {0}, num_workers = 1}):iter() do end end)
    fails("rank must be", data.DistributedSampler, some, {num_replicas = 2, rank = 2})
  end)

  it("say what workers can't do", function()
    local lua = {size = function() return 3 end, get = function(_, i) return i end}
    fails("workers can't make this dataset's items: it is written in Lua", data.DataLoader, lua, {num_workers = 1})
    fails("num_workers must be a whole number", data.DataLoader, set(3), {num_workers = 1.5})
    fails("prefetch_factor must be a whole number from 1", data.DataLoader, set(3), {prefetch_factor = 0})
    fails("num_workers must be 0 to 1024", function() for _ in data.DataLoader(set(3), {num_workers = 5000}):iter() do end end)
  end)
end)

describe("worker processes #cpu", function()
  if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- the stock luajit can't open that build
  local path = package.path
  local pids = helper.worker_pids
  local function workers() return #pids() end
  setup(function()
    package.path = "spec/fixtures/?.lua;" .. package.path
    helper.mark_workers()
  end)
  teardown(function() package.path = path end)
  local function epoch(l)
    local out = {}
    for x, y, z in l:iter() do out[#out + 1] = {x:totable(), y:totable(), core.is_tensor(z) and z:totable() or z} end
    return out
  end

  it("make what this process makes", function()
    local want
    for _, n in ipairs {0, 1, 3} do
      tycho.manual_seed(n)
      local l = data.DataLoader(data.Dataset("squares", {n = 17}), {batch_size = 4, shuffle = true, seed = 5, num_workers = n})
      local got = {epoch(l), epoch(l)}
      want = want or got
      assert.same(want, got)
      for _ = 1, 3 do l:iter()() end               -- left early
      assert.equal(5, #epoch(l))
      l:close()
    end
    assert.equal("item", want[1][1][3][1]:sub(1, 4))
    assert.equal(0, workers())
  end)

  it("draw by math.random what this process draws, which goes on as it would have", function()
    local want, after
    for _, n in ipairs {0, 2} do
      math.randomseed(3)
      local l = data.DataLoader(data.Dataset("drawn", {n = 7}), {batch_size = 3, shuffle = true, seed = 5, num_workers = n})
      local got = epoch(l)
      l:close()
      want, after = want or got, after or math.random()
      assert.same(want, got)
    end
    math.randomseed(3)
    assert.equal(after, math.random())
  end)

  it("that err, die or hang are named, with the item, and leave nothing", function()
    for what, why in pairs {err = "no such thing", die = "the process ended", hang = "no answer for 1 seconds"} do
      local l = data.DataLoader(data.Dataset("squares", {n = 17, [what] = 6}), {batch_size = 2, num_workers = 2, timeout = 1})
      local start = core.now()
      fails("DataLoader: worker 1, item 6: ", function()
        local ok, e = pcall(function() for _ in l:iter() do end end)
        assert.is_true(ok or e:find(why, 1, true) ~= nil)
        error(e, 0)
      end)
      assert.is_true(core.now() - start < 5)
      assert.equal(0, workers())
    end
    local l = data.DataLoader(data.Dataset("squares", {n = 400}), {num_workers = 2})
    fails("DataLoader: worker ", function()
      local k = 0
      for _ in l:iter() do
        k = k + 1
        if k == 5 then os.execute("kill -9 " .. table.concat(pids(), " ")) end
      end
    end)
    assert.equal(0, workers())
  end)

  it("killed, dead or hung a hundred times leave nothing, and are named each time #long", function()
    local random, files = helper.drawer(3), #core.list_folder "/proc/self/fd"
    for k = 1, 100 do
      local how = ({"kill", "die", "hang"})[k % 3 + 1]
      local item = random(40)
      local l = data.DataLoader(data.Dataset("squares", {n = 40, die = how == "die" and item, hang = how == "hang" and item}),
        {batch_size = 3, num_workers = 1 + k % 3, timeout = 0.3, seed = k})
      local start, batches = core.now(), 0
      local ok, e = pcall(function()
        for _ in l:iter() do
          batches = batches + 1
          if how == "kill" and batches == 1 + item % 4 then os.execute("kill -" .. (item % 2 == 0 and 9 or 11) .. " " .. pids()[1]) end
        end
      end)
      -- what it had sent before may have been the rest
      if how == "kill" then assert.is_true(ok or e:find("DataLoader: worker %d", 1) ~= nil, e)
      else
        assert.is_false(ok)
        assert.truthy(e:find("DataLoader: worker %d, item " .. item .. ": "), e)
      end
      assert.is_true(core.now() - start < 5)
      l:close()
      assert.equal(0, workers(), "after " .. k)
    end
    collectgarbage()
    assert.equal(files, #core.list_folder "/proc/self/fd")
  end)

  it("end with their parent", function()
    local script = os.tmpname()
    write(script, [[package.path = "spec/fixtures/?.lua;" .. package.path
      local data = require("tycho").data
      local it = data.DataLoader(data.Dataset("squares", {n = 9, hang = 5}), {num_workers = 2, timeout = 60}):iter()
      it()
      io.stdout:write("ready\n") io.stdout:flush()
      while true do end]])
    local p = io.popen("luajit " .. script .. " & echo $!")
    local pid = p:read "*l"
    assert.equal("ready", p:read "*l")
    assert.is_true(workers() > 0)
    os.execute("kill -9 " .. pid)
    p:close()
    local start = core.now()
    while workers() > 0 and core.now() - start < 5 do os.execute "sleep 0.05" end
    assert.equal(0, workers())
    os.remove(script)
  end)

  it("take plain data alone", function()
    fails("'a.f' is a function (made at spec/data_spec.lua:", data.Dataset, "squares", {a = {f = function() end}})
    fails("must be a module's name, got a function (made at", data.Dataset, function() end)
    fails("'net' is an object", data.Dataset, "squares", {net = tycho.nn.ReLU()})
    fails("'t' contains itself", function() local t = {} t.t = t data.Dataset("squares", t) end)
    fails("no_such_module", function() return data.DataLoader(data.Dataset("no_such_module"), {}):size() end)
    local l = data.DataLoader(data.Dataset("squares",
      {n = 3, list = {1, {2}}, nan = 0 / 0, t = tycho.ones(2, {device = "cpu"})}),
      {num_workers = 1})
    assert.equal(3, #epoch(l))
    l:close()
  end)
end)

describe("datasets on a device", function()
  local images = tycho.randint(0, 255, {12, 3, 6, 7}, {device = "cpu"}):to("uint8")
  local dir = folder()
  local device = helper.device
  local function cifar(transform)                -- a dataset of our pictures, by way of CIFAR's format
    local big = tycho.zeros(12, 3, 32, 32, {dtype = "uint8", device = "cpu"})
    big[{ {}, {}, {1, 6}, {1, 7} }] = images
    for i = 1, 5 do write(dir .. "/data_batch_" .. i .. ".bin", "\1" .. ("\1"):rep(3072)) end
    local set = data.datasets.CIFAR10 {root = dir, transform = transform}
    set.images, set.labels = images, tycho.range(1, 12, 1, {dtype = "int64", device = "cpu"})
    return set
  end
  teardown(function() os.execute("rm -rf " .. dir) end)

  it("give the pictures as loaders do", function()
    local plain = cifar(T.Normalize({0.4, 0.5, 0.6}, {0.2, 0.3, 0.4}))
    local there = plain:to(device)
    local at = tycho.tensor({3, 12, 1}):long():cpu()
    local x, y = there:batch(at)
    assert.same({3, 12, 1}, y:totable())
    for k = 1, 3 do near(x[k]:cpu(), (plain:get(at[k])), 1e-6) end
    assert.equal("bfloat16", (cifar(T.ConvertImageDtype("bfloat16")):to(device):get(2)).dtype)
    local n = 0
    for a, b in data.DataLoader(there, {batch_size = 5, shuffle = true}):iter() do
      n = n + #b
      assert.equal(x.device, a.device)
    end
    assert.equal(12, n)
  end)

  it("crop, flip and cut out at random, the same on every device", function()
    local set = cifar(T.Compose {T.RandomCrop({5, 6}, {padding = 2}), T.RandomHorizontalFlip(0.4), T.Cutout(2)})
    local there, here = set:to(device), set:to("cpu")
    local at = tycho.randint(1, 12, {400}, {device = "cpu"})
    local function draw(d)
      tycho.manual_seed(9)
      if d.images.device ~= "cpu" then tycho.cuda.manual_seed(9) end
      local a, b = (d:batch(at)), (d:batch(at))
      assert.is_false(a:equal(b))
      return a:cpu()
    end
    local x = draw(there)
    near(x, draw(here), 0)
    -- every sample is some crop of its picture, flipped or not, but for the hole
    local padded = F.pad(images[1], 2):expand(12, 3, 10, 11):contiguous()
    for i = 1, 12 do padded[i] = F.pad(images[i], 2) end
    local flips, places = 0, {}
    for k = 1, 400 do
      local found
      for flip = 0, 1 do
        local sample = flip == 1 and x[k]:flip(3) or x[k]
        for dy = 1, 6 do
          for dx = 1, 6 do
            local differs = padded[{at[k], {}, {dy, dy + 4}, {dx, dx + 5}}]:ne(sample):any(1)
            local n = differs:sum():item()
            if n == 0 or (n <= 4 and sample:masked_select(differs:expand(3, 5, 6)):eq(0):all():item()) then found = {flip, dy * 10 + dx} end
          end
        end
      end
      assert.truthy(found, "sample " .. k)
      flips = flips + found[1]
      places[found[2]] = true
    end
    assert.is_true(flips > 110 and flips < 215, flips)
    local n = 0
    for _ in pairs(places) do n = n + 1 end
    assert.equal(36, n)
  end)

  it("work within compiled steps", function()
    local set = cifar(T.Compose {T.RandomCrop(6, {padding = 1}), T.RandomHorizontalFlip(), T.Normalize({0.5}, {0.5})}):to(device)
    local function run(wrap)
      tycho.manual_seed(4)
      if device ~= "cpu" then tycho.cuda.manual_seed(4) end
      local net = tycho.nn.Linear(3 * 6 * 6, 12)
      local opt = tycho.optim.SGD(net:parameters(), {lr = 0.1})
      local step = wrap(function(at)
        local a, b = set:batch(at)
        local loss = tycho.cross_entropy(net(a:flatten(2)), b)
        opt:zero_grad()
        loss:backward()
        opt:step()
        return loss
      end)
      local out = {}
      for k = 1, 6 do out[k] = step(tycho.tensor({k, 12 - k, 2, 9}):long()):item() end
      return out
    end
    assert.same(run(function(f) return f end), run(function(f) return tycho.compile(f) end))
  end)

  it("say what can't be done there", function()
    fails("got 'rotation'", function() cifar(T.RandomRotation(3)):to(device) end)
    fails("each at most once and in this order; got 'hflip'",
      function() cifar(T.Compose {T.Normalize({0.5}, {0.5}), T.RandomHorizontalFlip()}):to(device) end)
    fails("the transform is a Lua function", function() cifar(function(v) return v end):to(device) end)
    fails("doesn't fit pictures of 6x7", function() cifar(T.RandomCrop(20)):to(device):get(1) end)
    fails("out of range", function()
      cifar():to(device):batch(tycho.tensor({13}):long())
      if device ~= "cpu" then tycho.cuda.synchronize(); tycho.ones(1) end
    end)
  end)
end)

describe("prefetcher", function()
  it("gives what the loader gives, and the loader's place", function()
    local x = tycho.rand(30, 4, {device = "cpu"})
    local device = tycho.get_default_device()
    local function loader()
      return data.DataLoader(data.TensorDataset(x, tycho.range(1, 30, 1, {device = "cpu"})),
        {batch_size = 4, shuffle = true, seed = 3, num_workers = 2, pin_memory = true})
    end
    local plain, ahead = loader(), loader()
    local p = data.Prefetcher(ahead, device)
    assert.equal(8, p:size())
    for _ = 1, 2 do
      local want, got = {}, {}
      for a, b in plain:iter() do want[#want + 1] = {a:totable(), b:totable(), plain:state_dict()} end
      for a, b in p:iter() do
        assert.equal(device == "cuda" and "cuda:0" or device, a.device)
        local y = a * 2                       -- work on the current stream while the next one is copied
        assert.is_true(y:equal(a + a))
        got[#got + 1] = {a:totable(), b:totable(), p:state_dict()}
      end
      assert.same(want, got)
      assert.same(plain:state_dict(), p:state_dict())
    end
    fails("must be a loader", data.Prefetcher, {})
    fails("Prefetcher: ", data.Prefetcher, plain, "tpu")
  end)
end)
