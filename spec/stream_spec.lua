-- Worker processes that read datasets with iter(), and ones joined of several modules'.
local tycho = require "tycho"
local helper = require "spec.helper"
local fails = helper.fails
local data = tycho.data

describe("worker processes #cpu", function()
  if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- the stock luajit can't open that build
  local path = package.path
  setup(function() package.path = "spec/fixtures/?.lua;" .. path end)
  teardown(function() package.path = path end)

  local function read(set, o)
    local out, l = {}, data.DataLoader(set, o)
    for x, y in l:iter() do out[#out + 1] = {x:totable(), y:totable()} end
    l:close()
    return out
  end

  it("read a dataset with iter() in turn, which gives the same batches whatever their number", function()
    local lines = data.Dataset("lines", {n = 11})
    local want = read(lines, {batch_size = 2, seed = 5})
    assert.equal(6, #want)
    assert.same({11}, want[6][1])
    for workers = 1, 3 do assert.same(want, read(lines, {batch_size = 2, seed = 5, num_workers = workers})) end
    assert.equal(5, #read(lines, {batch_size = 2, seed = 5, num_workers = 2, drop_last = true}))
    local function sums(items)
      local total = 0
      for _, item in ipairs(items) do total = total + item[1] end
      return tycho.tensor({total}, {device = "cpu"}), items[1][2]
    end
    assert.same(read(lines, {batch_size = 3, seed = 1, collate = sums}),
      read(lines, {batch_size = 3, seed = 1, collate = sums, num_workers = 2}))
    -- a second epoch draws other numbers, and a state goes on where it was taken
    local l = data.DataLoader(lines, {batch_size = 2, seed = 5, num_workers = 2})
    local first, second = {}, {}
    for x, y in l:iter() do first[#first + 1] = {x:totable(), y:totable()} end
    assert.same(want, first)
    local state
    for x, y in l:iter() do
      second[#second + 1] = {x:totable(), y:totable()}
      if #second == 4 then state = l:state_dict() break end
    end
    l:close()
    assert.not_same(want[1][2], second[1][2])
    local again = data.DataLoader(lines, {batch_size = 2, num_workers = 3})
    again:load_state_dict(state)
    for x, y in again:iter() do second[#second + 1] = {x:totable(), y:totable()} end
    again:close()
    local here, rest = data.DataLoader(lines, {batch_size = 2, seed = 5}), {}
    for _ in here:iter() do end
    for x, y in here:iter() do rest[#rest + 1] = {x:totable(), y:totable()} end
    assert.same(rest, second)
  end)

  it("have each its own share of a dataset with iter() that asks which worker it is in", function()
    for _, within in ipairs {false, true} do
      local set = data.Dataset("lines", {n = 10, shares = true, within = within})
      local out = read(set, {batch_size = 2, seed = 5, num_workers = 3})
      local firsts, draws = {}, {}
      for i, b in ipairs(out) do
        firsts[i] = table.concat(b[1], " ")
        for _, row in ipairs(b[2]) do
          assert.is_nil(draws[row[1]], "two workers drew the same")
          draws[row[1]] = true
        end
      end
      assert.same({"1 4", "2 5", "3 6", "7 10", "8", "9"}, firsts)
      assert.same(out, read(set, {batch_size = 2, seed = 5, num_workers = 3}))
      assert.equal(5, #read(set, {batch_size = 2}))
    end
    assert.is_nil(data.get_worker_info())
  end)

  it("go on with workers' own shares where a state was taken, in any epoch", function()
    local set = data.Dataset("lines", {n = 14, shares = true})
    local function loader(n) return data.DataLoader(set, {batch_size = 3, num_workers = n, seed = 3}) end
    local function firsts(l, most, out)
      out = out or {}
      for x in l:iter() do
        out[#out + 1] = table.concat(x:totable(), " ")
        if #out == most then break end
      end
      return out
    end
    local whole = loader(2)
    local one, two = firsts(whole), firsts(whole)
    assert.same(one, two)                          -- each epoch begins with the first worker
    for stop = 1, #one do
      local l = loader(2)
      firsts(l)
      local out = firsts(l, stop)
      local state = l:state_dict()
      l:close()
      local other = loader(2)
      other:load_state_dict(state)
      assert.same(state, other:state_dict())
      assert.same(two, stop < #two and firsts(other, nil, out) or out, "from batch " .. stop)
      local three = loader(3)
      if stop < #two then fails("the state is of 2 workers, each of which makes items of its own", three.load_state_dict, three, state) end
      other:close()
    end
    whole:close()
    local here = loader(0)
    firsts(here, 1)
    local there = loader(2)
    there:load_state_dict(here:state_dict())
    fails("the state is of 0 workers, each of which makes items of its own", firsts, there)
  end)

  it("tell a dataset with iter() what is wrong", function()
    fails("worker 1, item 5: spec/fixtures/lines.lua:16: a bad line", read, data.Dataset("lines", {n = 8, fails = 5}),
      {batch_size = 2, num_workers = 2})
    local lines = data.Dataset("lines", {n = 8})
    local neither = "size: module 'lines' made a dataset with iter(), which has neither size() nor get(i)"
    fails(neither, function() return lines:size() end)
    fails(neither, data.ConcatDataset, {lines})
    fails(neither, data.Subset, lines, {1})
    fails("get: module 'lines' made a dataset with iter()", function() return lines:get(1) end)
    fails("get_worker_info: call it before iter() gives its first item", read, data.Dataset("lines", {n = 8, asks_at = 3}),
      {batch_size = 2, num_workers = 2})
    fails("workers can't read this dataset with iter()", data.DataLoader, {iter = function() end}, {num_workers = 1})
    local failed = data.DataLoader(data.Dataset("lines", {n = 8, fails = 1}), {num_workers = 1}):iter()
    fails("item 1: ", failed)
    fails("or an error was raised", failed)
    local l = data.DataLoader(data.Dataset("lines", {n = 8}), {batch_size = 2, num_workers = 1})
    local one = l:iter()
    one()
    local other = l:iter()
    assert.same({1, 2}, (other():totable()))
    fails("another loop is using this loader's workers", one)
    l:close()
    fails("the loader was closed", other)
  end)

  it("make the items of ConcatDatasets, of Subsets too", function()
    local set = data.ConcatDataset {data.Dataset("squares", {n = 5}), data.Subset(data.Dataset("squares", {n = 9}), {8, 7})}
    local want = read(set, {batch_size = 3, shuffle = true, seed = 2})
    assert.same(want, read(set, {batch_size = 3, shuffle = true, seed = 2, num_workers = 2}))
    local ints = data.Dataset("ints", {n = 4})
    for workers = 0, 1 do
      local l = data.DataLoader(data.ConcatDataset {ints, ints}, {batch_size = 3, num_workers = workers})
      assert.equal("int32", (l:iter()()).dtype)
      l:close()
    end
    local part = data.Subset(set, {7, 1, 6})
    assert.same(read(part, {batch_size = 2, seed = 1}), read(part, {batch_size = 2, seed = 1, num_workers = 1}))
    fails("workers can't make this dataset's items", data.DataLoader,
      data.ConcatDataset {data.Dataset("squares", {n = 5}), {size = function() return 1 end, get = function() end}}, {num_workers = 1})
  end)
end)
