-- Files: what is written comes back; what is damaged or hostile is refused by name and reason.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local fails = helper.fails

local function tmp() local p = os.tmpname() return p end
local read = helper.read_file
local write = helper.write_file
local function u64(n) local s = "" for _ = 1, 8 do s = s .. string.char(n % 256) n = math.floor(n / 256) end return s end

describe("saving", function()
  it("gives back what it was given", function()
    local path = tmp()
    for _, dtype in ipairs {"float32", "float16", "bfloat16", "float64", "int32", "int64", "uint8", "bool"} do
      local x = tycho.tensor({{0, 1, 2}, {3, 4, 5}}):to(dtype)
      tycho.save(path, x)
      local y = tycho.load(path)
      assert.equal(dtype, y.dtype)
      assert.is_true(x:equal(y))
    end
    local value = {model = {["a.weight"] = tycho.ones(2), b = {tycho.zeros(3), tycho.tensor(7)}}, step = 12, lr = 0.1,
      nan = 0 / 0, inf = -math.huge, big = 2 ^ 60, name = "two words\0\255", flag = false, list = {1, 2, {3}},
      [5] = "five", [true] = 1, empty = {}, [0.5] = 2}
    tycho.save(path, value)
    local got = tycho.load(path)
    assert.is_true(got.nan ~= got.nan)
    got.nan, value.nan = nil, nil
    assert.same({1, 1}, got.model["a.weight"]:totable())
    assert.equal(7, got.model.b[2]:item())
    got.model, value.model = nil, nil
    assert.same(value, got)
    tycho.save(path, tycho.zeros(0, 3))
    assert.equal("0x3", tostring(tycho.load(path).shape))
    tycho.save(path, tycho.range(1, 6):view(2, 3):t())
    assert.same({{1, 4}, {2, 5}, {3, 6}}, tycho.load(path):totable())
    tycho.save(path, 5)
    assert.equal(5, tycho.load(path))
    assert.equal(5, tycho.load(path, "cpu"))                            -- as torch.load's map_location
    assert.equal(5, tycho.load(path, {map_location = "cpu", weights_only = true}))
    os.remove(path)
  end)

  it("writes state dicts as any reader of safetensors expects", function()
    local path = tmp()
    local net = tycho.nn.Sequential(tycho.nn.Linear(2, 3))
    tycho.save(path, net:state_dict())
    local s = read(path)
    local n = s:byte(1) + s:byte(2) * 256
    assert.equal(0, (8 + n) % 8)
    local header = core.json_decode(s:sub(9, 8 + n))
    assert.same({3, 2}, header["0.weight"].shape)
    assert.equal("F32", header["0.bias"].dtype)
    assert.is_nil(header.__metadata__)
    local again = tycho.nn.Sequential(tycho.nn.Linear(2, 3))
    again:load_state_dict(tycho.load(path))
    assert.is_true(again[1].weight:equal(net[1].weight))
    os.remove(path)
  end)

  it("takes several files and an index", function()
    local dir = tmp()
    os.remove(dir)
    os.execute("mkdir " .. dir)
    local net = tycho.nn.Sequential(tycho.nn.Linear(8, 8), tycho.nn.Linear(8, 2))
    local path = dir .. "/model.safetensors"
    tycho.save(path, net:state_dict(), {max_shard_size = 200})
    local index = core.json_decode(read(path .. ".index.json"))
    assert.equal((8 * 8 + 8 + 16 + 2) * 4, index.metadata.total_size)
    assert.equal("model-00002-of-00003.safetensors", index.weight_map["0.weight"])
    local got = tycho.load(path .. ".index.json")
    local n = 0
    for name, t in pairs(net:state_dict()) do n = n + 1; assert.is_true(t:equal(got[name]), name) end
    assert.equal(4, n)
    os.remove(dir .. "/model-00002-of-00003.safetensors")
    fails("model-00002-of-00003.safetensors: No such file", tycho.load, path .. ".index.json")
    write(path .. ".index.json", '{"weight_map":{"x":"../x"}}')
    fails("weight_map is damaged", tycho.load, path .. ".index.json")
    write(path .. ".index.json", '{"weight_map":{"x":"model-00001-of-00003.safetensors"}}')
    fails("has no tensor 'x'", tycho.load, path .. ".index.json")
    write(path .. ".index.json", "{")
    fails("not an index of safetensors files", tycho.load, path .. ".index.json")
    fails("flat table", tycho.save, path, {1}, {max_shard_size = 10})
    fails("No such file", tycho.load, dir .. "/none.index.json")
    os.execute("rm -r " .. dir)
  end)

  it("leaves the old file when it fails", function()
    local path = tmp()
    tycho.save(path, {x = tycho.ones(1)})
    local before = read(path)
    fails("is a function", tycho.save, path, {x = print})
    fails("contains itself", function() local t = {} t.t = t tycho.save(path, t) end)
    fails("as a key", tycho.save, path, {[{}] = 1})
    fails("save its state_dict()", tycho.save, path, {net = tycho.nn.Linear(1, 1)})
    assert.equal(before, read(path))
    fails("No such file", tycho.save, "/nowhere/x", tycho.ones(1))
    fails("must be a string", tycho.save, 5, tycho.ones(1))
    fails("missing", tycho.save, path)
    os.remove(path)
    fails("No such file", tycho.load, path)
    fails("regular file", tycho.load, "/tmp")
  end)

  it("writes through a link, and leaves permissions", function()
    local dir = helper.folder()
    local real, link = dir .. "/real", dir .. "/link"
    helper.write_file(real, "before")
    assert.equal(0, os.execute(("chmod 640 %s && ln -s real %s"):format(real, link)))
    local function mode(path) local p = io.popen("stat -c '%F %a' " .. path) local s = p:read "*l" p:close() return s end
    for _, save in ipairs {function(p) tycho.save(p, {a = tycho.ones(3)}) end, function(p) tycho.save_npz(p, {a = tycho.ones(3)}) end} do
      helper.write_file(real, "before")
      save(link)
      assert.equal("symbolic link 777", mode(link))
      assert.equal("regular file 640", mode(real))
      assert.is_true(#helper.read_file(real) > 20)
    end
    assert.equal(0, os.execute("ln -s nothing " .. dir .. "/dangling"))
    tycho.save(dir .. "/dangling", {a = tycho.ones(3)})
    assert.equal(3, tycho.load(dir .. "/dangling").a:numel())
  end)

  it("writes TensorBoard's event files as PyTorch does", function()
    local dir = helper.folder()
    local w = tycho.utils.tensorboard.SummaryWriter(dir .. "/run")
    w:add_scalar("loss/train", 0.25, 0, 1700000000.5)
    w:add_scalar("loss/train", tycho.tensor(1.5), 300, 1700000001.5)
    w:add_scalar("lr", 0, 2 ^ 40, 1700000002)
    w:add_text("notes", "one **two**, \195\164", 7, 1700000003)
    w:add_histogram("weights", tycho.tensor({{1, 2, 3.5}, {-0.25, 0, 1}}), 5, 1700000004)
    w:add_histogram("one", {0}, 6, 1700000005)
    w:flush()
    local golden, data = read("spec/golden/tensorboard.bin"), read(w.path)
    assert.is_true(golden == data:sub(-#golden), "not PyTorch's bytes")
    assert.equal(24 + 16, #data - #golden, "the version's record")
    w:add_image("picture", tycho.rand(3, 8, 10), 1)
    w:add_images("pictures", tycho.rand(4, 1, 8, 8), 1)
    w:add_scalars("both", {a = 1, b = 2}, 1)
    w:close()
    assert.is_truthy(read(w.path):find("\137PNG", 1, true))
    assert.equal(0, os.execute("ls " .. dir .. "/run/both_a/events.out.tfevents.* >/dev/null"))
    fails("add_scalar: the writer is closed", w.add_scalar, w, "x", 1)
    w = tycho.utils.tensorboard.SummaryWriter {log_dir = dir .. "/other", flush_secs = 0}
    fails("add_scalar: argument 2 must be a number", w.add_scalar, w, "x", tycho.ones(2), 1)
    fails("add_scalar: argument 3 (step) must be a whole number", w.add_scalar, w, "x", 1, 0.5)
    fails("add_histogram: argument 2 must be a tensor", w.add_histogram, w, "x", 3)
    fails("call it with a colon", w.add_scalar, "x", 1)
    fails("SummaryWriter: unknown option 'flush'; did you mean 'flush_secs'?", tycho.utils.tensorboard.SummaryWriter, dir, {flush = 1})
    w:close()
  end)

  it("refuses damaged and hostile files, by name and reason", function()
    local path = tmp()
    local function try(reason, bytes)
      write(path, bytes)
      fails(reason, tycho.load, path)
      fails(path, tycho.load, path)
    end
    local function file(header, data) return u64(#header) .. header .. (data or "") end
    try("empty", "")
    try("at least 8 bytes", "abc")
    try("over the limit", u64(2 ^ 40))
    try("truncated", u64(1000) .. "{}")
    try("not a JSON object", file("[1]"))
    try("bad header", file("{\"a\":"))
    try("bad header", file('{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'))
    try("needs dtype, shape and data_offsets", file('{"a":{"dtype":"F32","shape":[1]}}'))
    try("needs dtype, shape and data_offsets", file('{"a":5}'))
    try("dtype 'F99'", file('{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}', "1234"))
    try("impossible shape", file('{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', "1234"))
    try("impossible shape", file('{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}}', "1234"))
    try("more than 8 dims", file('{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}', "1234"))
    try("outside the file", file('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', "1234"))
    try("outside the file", file('{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}', "1234"))
    try("4 bytes of data, but its shape needs 8", file('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', "1234"))
    try("a hole or an overlap", file('{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', "12345678"))
    try("a hole or an overlap",
      file('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
      "1234"))
    try("of 8 bytes of data", file('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', "12345678"))
    try("is not a string", file('{"__metadata__":{"a":1}}'))
    try("is not an object", file('{"__metadata__":1}'))
    try("metadata is damaged", file('{"__metadata__":{"tycho":"{"}}'))
    try("metadata is damaged", file('{"__metadata__":{"tycho":"{\\"t\\":\\"gone\\"}"}}'))
    try("metadata is damaged", file('{"__metadata__":{"tycho":"5"}}'))
    try("bad header", file(("["):rep(100000)):gsub("%[", "{", 1))
    os.remove(path)
  end)

  it("survives every truncation and many flipped bits of a real file", function()
    local path = tmp()
    tycho.save(path, {a = tycho.ones(3), b = {1, "x", tycho.tensor({1, 2}, {dtype = "int64"})}})
    local whole = read(path)
    for n = 0, #whole - 1, 3 do
      write(path, whole:sub(1, n))
      assert.is_false(pcall(tycho.load, path))
    end
    local state = 7
    for _ = 1, 400 do
      state = (state * 1103515245 + 12345) % 2 ^ 31
      local at = math.floor(state / 16) % #whole + 1
      local bit = 2 ^ (state % 8)
      local c = whole:byte(at)
      local flipped = math.floor(c / bit) % 2 == 1 and c - bit or c + bit
      write(path, whole:sub(1, at - 1) .. string.char(flipped) .. whole:sub(at + 1))
      local ok, err = pcall(tycho.load, path)
      if not ok then assert.equal("string", type(err)) end
    end
    os.remove(path)
  end)
end)

describe("idx", function()
  it("reads what it should and refuses the rest", function()
    local path = tmp()
    local good = "\0\0\8\2" .. "\0\0\0\2" .. "\0\0\0\3" .. "\1\2\3\4\5\6"
    write(path, good)
    assert.same({{1, 2, 3}, {4, 5, 6}}, core.read_idx(path):totable())
    write(path, "\0\0\13\1\0\0\0\1\63\128\0\0")
    assert.same({1}, core.read_idx(path):totable())
    for n = 0, #good - 1 do
      write(path, good:sub(1, n))
      fails(path, core.read_idx, path)
    end
    local function try(reason, s) write(path, s) fails(reason, core.read_idx, path) end
    try("more bytes", good .. "x")
    try("two zero bytes", "\1\0\8\1\0\0\0\1x")
    try("element type", "\0\0\9\1\0\0\0\1x")
    try("number of dims", "\0\0\8\0")
    try("promises more", "\0\0\8\3\255\255\255\255\255\255\255\255\255\255\255\255")
    try("promises more", "\0\0\8\1\127\255\255\255")
    os.execute("gzip -c > " .. path .. ".gz < /dev/null")
    fails("truncated", core.read_idx, path .. ".gz")
    write(path, good)
    os.execute("gzip -kf " .. path)
    assert.equal(21, core.read_idx(path .. ".gz"):sum():item())
    local z = read(path .. ".gz")
    write(path .. ".gz", z:sub(1, -6))
    assert.is_false(pcall(core.read_idx, path .. ".gz") and core.read_idx(path .. ".gz"):sum():item() ~= 21)
    os.remove(path)
    os.remove(path .. ".gz")
    fails("No such file", core.read_idx, path)
  end)
end)

describe("load", function()
  it("reads tensors of many pieces, on any device", function()
    local path = tmp()
    local t = {big = tycho.randn(2200, 4001), flags = tycho.randn(10):gt(0), empty = tycho.zeros(0, 3),
      one = tycho.tensor(3), half = tycho.randn(7):half()}
    tycho.save(path, t)
    for _, device in ipairs {"cpu", helper.device} do
      local again = tycho.load(path, {device = device})
      for k, v in pairs(t) do
        assert.is_truthy(again[k].device:find(device, 1, true))
        assert.is_true(again[k]:cpu():equal(v:cpu()), k)
      end
    end
    fails("device", tycho.load, path, {device = "cuda:7"})
    assert.equal("cpu", select(2, next(tycho.load(path, {map_location = "cpu"}))).device)
    fails("(map_location) must be a device", tycho.load, path, {map_location = {["cuda:0"] = "cpu"}})
    os.remove(path)
  end)
end)

describe("curve", function()
  it("is written as a PNG", function()
    local path = tmp()
    tycho.utils.save_curve(path, {3, 2, 0 / 0, 1.5, 1})
    local s = read(path)
    assert.equal("\137PNG\r\n\26\n", s:sub(1, 8))
    assert.equal("IEND", s:sub(-8, -5))
    tycho.utils.save_curve(path, {1})
    os.remove(path)
    fails("list of numbers", tycho.utils.save_curve, path, {})
    fails("No such file", tycho.utils.save_curve, "/nowhere/x.png", {1, 2})
  end)

  it("reads safetensors of dtypes that are wider here", function()
    local ffi = require "ffi"
    local header = [[{"a":{"dtype":"I8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"F8_E4M3","shape":[5],"data_offsets":[3,8]},]] ..
      [["c":{"dtype":"I16","shape":[2],"data_offsets":[8,12]},"d":{"dtype":"U16","shape":[1],"data_offsets":[12,14]},]] ..
      [["e":{"dtype":"U32","shape":[2],"data_offsets":[14,22]},"f":{"dtype":"F8_E5M2","shape":[3],"data_offsets":[22,25]},]] ..
      [["g":{"dtype":"F32","shape":[],"data_offsets":[25,29]}}]]
    local bytes = "\255\127\128" .. "\1\56\126\200\127" .. "\255\255\0\128" .. "\255\255" .. "\255\255\255\255\1\0\0\0" ..
      "\60\1\124" .. ffi.string(ffi.new("float[1]", 2.5), 4)
    local path = os.tmpname()
    helper.write_file(path, ffi.string(ffi.new("uint64_t[1]", #header), 8) .. header .. bytes)
    for _, device in ipairs(helper.device == "cpu" and {"cpu"} or {"cpu", helper.device}) do
      local t = tycho.load(path, {device = device})
      assert.same({-1, 127, -128}, t.a:totable())
      assert.same({"int32", "float16", "int32", "int32", "int64", "float16", "float32"},
        {t.a.dtype, t.b.dtype, t.c.dtype, t.d.dtype, t.e.dtype, t.f.dtype, t.g.dtype})
      local b = t.b:totable()
      assert.same({2 ^ -9, 1, 448, -1.0 * 2 ^ 2}, {b[1], b[2], b[3], b[4]})
      assert.is_true(b[5] ~= b[5])
      assert.same({{-1, -32768}, {65535}, {4294967295, 1}}, {t.c:totable(), t.d:totable(), t.e:totable()})
      assert.same({1, 2 ^ -16, math.huge}, t.f:totable())
      assert.equal(2.5, t.g:item())
    end
    os.remove(path)
  end)
end)
