-- NumPy's and PyTorch's files: what they wrote is read, what Tycho writes is read again, and anything hostile is refused.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local fails = helper.fails
local dir = "spec/golden/files/"
local gold = tycho.load(dir .. "values.safetensors")
local read = helper.read_file
local write = helper.write_file
local function mutations(path, n, fn)
  local whole, state, tmp = read(path), 7, os.tmpname()
  for _ = 1, n do
    state = (state * 1103515245 + 12345) % 2 ^ 31
    local at = math.floor(state / 16) % #whole + 1
    state = (state * 1103515245 + 12345) % 2 ^ 31
    local s = whole:sub(1, at - 1) .. string.char(math.floor(state / 64) % 256) .. whole:sub(at + 1)
    if state % 7 == 0 then s = s:sub(1, math.floor(state / 64) % #s) end
    write(tmp, s)
    local ok, e = pcall(fn, tmp)
    if not ok then assert.equal("string", type(e)) end
  end
  os.remove(tmp)
end

describe("numpy", function()
  it("give tensors that compiled functions hold, where the file's memory is theirs alone #cpu", function()
    local path = os.tmpname()
    tycho.save_npz(path, {x = tycho.range(1, 3)})
    local held, p = tycho.load_npz(path).x, tycho.ones(3):requires_grad_()
    os.remove(path)
    local f = tycho.compile(function()
      p.grad = nil
      local loss = (held * p):sum()
      loss:backward()
      return loss:detach()
    end)
    for _ = 1, 4 do assert.equal(6, f():item()) end
    assert.is_true(helper.compiled(f))
  end)

  it("arrays of every dtype and order are read", function()
    local a = tycho.load_npz(dir .. "arrays.npz")
    local want = {f2 = "float16", f4 = "float32", f8 = "float64", i1 = "int32", i2 = "int32", i4 = "int32",
      i8 = "int64", u1 = "uint8", u2 = "int32", u4 = "int64", b1 = "bool"}
    for t, dtype in pairs(want) do
      for _, form in ipairs {"", "_fortran", "_big"} do
        assert.equal(dtype, a[t .. form].dtype)
        assert.is_true(a[t .. form]:double():equal(gold[t]), t .. form)
        assert.is_true(a[t .. form]:is_contiguous())
      end
    end
    assert.equal(3, a.scalar:item())
    assert.equal("0x3", tostring(a.empty.shape))
    assert.equal(499500, tycho.load_npz(dir .. "compressed.npz").arr_0:sum():item())
    assert.same({0, 1, 2, 3, 4}, tycho.load_npy(dir .. "vector.npy"):totable())
  end)
  it("arrays come back", function()
    local path = os.tmpname()
    for _, dtype in ipairs {"float32", "float16", "bfloat16", "float64", "int32", "int64", "uint8", "bool"} do
      local x = tycho.tensor({{0, 1, 2}, {3, 4, 5}}):to(dtype)
      tycho.save_npy(path, x:t())
      local y = tycho.load_npy(path)
      assert.equal(dtype == "bfloat16" and "float32" or dtype, y.dtype)
      assert.is_true(y:to(dtype):equal(x:t()))
      tycho.save_npz(path, {x, name = x})
      assert.is_true(tycho.load_npz(path).arr_0:to(dtype):equal(x))
      assert.is_true(tycho.load_npz(path).name:to(dtype):equal(x))
    end
    for _, x in ipairs {tycho.tensor(2.5), tycho.zeros(0, 3), tycho.range(1, 3), tycho.ones(1, 2, 1, 2, 1, 2, 1, 2)} do
      tycho.save_npy(path, x)
      assert.is_true(tycho.load_npy(path):equal(x))
    end
    os.remove(path)
  end)
  it("files that are none are refused", function()
    fails("objects.npy: an array of dtype '|O', which is not supported: it holds pickled objects", tycho.load_npy, dir .. "objects.npy")
    fails("records", tycho.load_npy, dir .. "records.npy")
    fails("not a .npy file", tycho.load_npy, dir .. "arrays.npz")
    fails("Not a zip archive", tycho.load_npz, dir .. "vector.npy")
    fails("No such file", tycho.load_npy, dir .. "none")
    fails("must be a string", tycho.load_npy, 5)
    fails("must be a tensor", tycho.save_npy, os.tmpname(), 5)
    fails("no tensors to save", tycho.save_npz, os.tmpname(), {})
    local path = os.tmpname()
    local good = read(dir .. "vector.npy")
    local function try(why, s) write(path, s) fails(why, tycho.load_npy, path) fails(path, tycho.load_npy, path) end
    for n = 0, #good - 1, 5 do try("", good:sub(1, n)) end
    try("truncated: an array of", (good:gsub("%(5,%)", "(6,)")))
    try("impossible shape", (good:gsub("%(5,%), }  ", "(9999999999999999,9), }"):sub(1, #good)))
    try("at most 8 are supported", (good:gsub("%(5,%), }                  ", "(1,1,1,1,1,1,1,1,1), }")))
    try("version 9", "\147NUMPY\9\0" .. good:sub(9))
    mutations(dir .. "vector.npy", 300, tycho.load_npy)
    mutations(dir .. "compressed.npz", 300, tycho.load_npz)
    mutations(dir .. "arrays.npz", 200, tycho.load_npz)
    os.remove(path)
  end)
end)

describe("torch.save's files", function()
  it("that tie tensors give tensors that share memory, which compiled functions hold #cpu", function()
    local v = tycho.load(dir .. "tied.pt")
    assert.is_true(v.a:shares_memory(v.b) and v.b:shares_memory(v.c) and v.a.is_leaf and v.b.is_leaf)
    v.b:add_(1)
    assert.same({{{1, 2}, {3, 4}, {5, 6}}, {{3, 4}, {5, 6}}}, {v.a:totable(), v.c:totable()})
    local f = tycho.compile(function(x) return (v.a * x):sum() end)
    for i = 1, 4 do
      v.c:fill_(i)
      assert.equal(3 + 4 * i, f(tycho.ones(2)):item())
    end
    assert.is_true(helper.compiled(f))
  end)
  for _, name in ipairs {"state.pt", "state_before_1.6.pt"} do it("are read as data: " .. name, function()
    local v = tycho.load(dir .. name)
    local n = 0
    for k, t in pairs(v.model) do
      n = n + 1
      assert.equal(gold["model." .. k].dtype, t.dtype)
      assert.is_true(t:equal(gold["model." .. k]), k)
    end
    assert.equal(9, n)
    for _, k in ipairs {"t", "s", "bf", "p", "x"} do assert.is_true(v[k]:equal(gold[k]), k) end
    assert.is_true(v.opt.state[0].exp_avg:equal(gold.exp_avg))
    assert.same({7, 0.001, "hello", 2 ^ 40, -5}, {v.epoch, v.lr, v.name, v.big, v.neg})
    assert.same({1, true, {2, 3.5}}, v.list)
    assert.same({4, 5}, v.size)
    assert.is_nil(v.none)
    assert.equal("0x3", tostring(v.e.shape))
    assert.equal(0.999, v.opt.param_groups[1].betas[2])
    local net = tycho.nn.Sequential(tycho.nn.Conv2d(3, 4, 3), tycho.nn.BatchNorm2d(4), tycho.nn.Linear(4, 2):half())
    net:load_state_dict(v.model)
    assert.is_true(net[1].weight:equal(gold["model.0.weight"]))
    mutations(dir .. name, 100, tycho.load)
  end) end
  it("have settings as plain values", function()
    local v = tycho.load(dir .. "settings.pt")
    assert.same({device = "cuda:1", plain = "cpu", dtype = "float16", set = {7}, count = {a = 2, b = 1}}, v)
  end)
  it("have bytes as strings, complex numbers as pairs, tensors without their Python attributes", function()
    local v, bytes = tycho.load(dir .. "more.pt"), {}
    for i = 0, 255 do bytes[i + 1] = string.char(i) end
    assert.equal(table.concat(bytes), v.bytes)
    assert.equal("", v.none)
    assert.same({{0, 1, 2}, {0, 1, 2}, {{0, 2}, {1, 3}}}, {v.buffer:totable(), v.noted:totable(), v.noted_p:totable()})
    assert.same({{{0, 10}, {3, 13}}, {{1, 11}, {4, 14}}, {{2, 12}, {5, 15}}}, v.z:totable())
    assert.same({"float64", {1, 2}}, {v.z0.dtype, v.z0:totable()})
    fails("it has a sparse tensor: save its to_dense()", tycho.load, dir .. "sparse.pt")
    fails("it has a tensor of a dtype that Tycho lacks", tycho.load, dir .. "uint16.pt")
    mutations(dir .. "more.pt", 200, tycho.load)
  end)
  it("may have any strides, but don't ask for more memory than they hold", function()
    local v = tycho.load(dir .. "strides.pt")
    assert.same({{0, 1, 2}, {2, 3, 4}, {4, 5, 6}}, v.windows:totable())
    assert.same({2000, 2000}, {unpack(v.one.shape)})
    assert.same({1, -(2 ^ 52 + 1)}, {v.one[{2000, 1}], v.negative})
    fails("a tensor of 1440000 elements overlaps itself in a storage of 2400", tycho.load, dir .. "over.pt")
  end)
  it("that call anything are refused", function()
    fails("evil.pt: it calls 'posix.system'; only tensors, tables, numbers and strings can be read", tycho.load, dir .. "evil.pt")
    fails("it calls 'torch.nn.modules.linear.Linear'", tycho.load, dir .. "module.pt")
    fails("not written by torch.save", tycho.load, dir .. "arrays.npz")
    local path = os.tmpname()
    write(path, read(dir .. "state.pt"):sub(1, 2000))
    fails(path, tycho.load, path)
    os.remove(path)
    mutations(dir .. "state.pt", 300, tycho.load)
  end)
  it("with any other pickle are data or an error", function()          -- archives whose checks are right, around a changed pickle
    local archive, names = core.zip_list(dir .. "state.pt")
    local texts, none, at, path = {}, {}, nil, os.tmpname()
    for i, name in ipairs(names) do
      local blob, n = core.zip_member(archive, i)
      texts[i], none[i] = core.blob_text(blob, 0, n), tycho.zeros(0, {dtype = "uint8", device = "cpu"})
      if name:find "data.pkl$" then at = i end
    end
    local pickle, state, read_well = texts[at], 11, 0
    local function random(n)
      state = (state * 1103515245 + 12345) % 2 ^ 31
      return math.floor(state / 64) % n
    end
    for _ = 1, 800 do
      local s = pickle
      for _ = 0, random(3) do
        local i = random(#s) + 1
        local what = random(4)
        if what == 0 then s = s:sub(1, i - 1) .. string.char(random(256)) .. s:sub(i + 1)
        elseif what == 1 then s = s:sub(1, i - 1) .. s:sub(i + 1 + random(4))
        elseif what == 2 then local j = random(#s) + 1; s = s:sub(1, i) .. s:sub(j, j + random(30)) .. s:sub(i + 1)
        else s = s:sub(1, i - 1) .. ("tslebQR.(}]hqKMNX"):sub(random(17) + 1):sub(1, 1) .. s:sub(i + 1) end
      end
      texts[at] = s
      core.zip_write(path, names, texts, none)
      local ok, e = pcall(tycho.load, path)
      if ok then read_well = read_well + 1
      else assert.truthy(type(e) == "string" and e:find(path, 1, true), tostring(e)) end
    end
    assert.is_true(read_well > 25)
    os.remove(path)
  end)
end)
