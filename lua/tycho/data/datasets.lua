-- Readers of published datasets. Labels that count from 0 in the files are 1-based here: digit 0 has label 1. Nothing is downloaded: if
-- files are missing, the error shows the command that fetches them.
local core = require "tycho.core"
local source = require "tycho.data.source"
local transforms = require "tycho.data.transforms"
local resident = require "tycho.data.resident"
local ops, M = core.ops, core.methods
local options = require "tycho.options"
local modes = require "tycho.modes"
local fail = options.fail
local fill, bare, shown = options.fill, options.bare, options.shown
local datasets = {}

local function exists(path)
  local f = io.open(path, "rb")
  if f then f:close() end
  return f ~= nil
end

-- The first of root and the folders `below` in it that contains the file.
local function folder_with(root, name, below)
  for _, sub in ipairs {"", unpack(below or {})} do
    local at = sub == "" and root or root .. "/" .. sub
    if exists(at .. "/" .. name) or exists(at .. "/" .. name .. ".gz") then return at end
  end
end

---- pictures with labels ----
-- images: uint8 (N, H, W) or (N, C, H, W), or paths: a list of files. labels: int64, 1-based. classes[label] is the label's name.
local Pictures = source.class "Pictures"
-- The number of pictures.
function Pictures:size() return M.size(self.labels, 1) end
-- The fields that C makes; `with`: the transform, left out if it needs Lua.
local function fields(self, with)
  local steps = with and transforms.steps(with) or {}
  local pictures = self.paths and {kind = "files", paths = self.paths, gray = self.gray, steps = steps} or
    {kind = "images", tensor = self.images, steps = steps}
  return {pictures, {kind = "rows", tensor = self.labels}}
end
function Pictures:fields()
  if self.transform and not transforms.steps(self.transform) then
    return nil, "its transform is, or contains, a Lua function or one that runs in Lua"
  end
  return fields(self, self.transform)
end
-- Picture i, float32 CxHxW in 0..1 unless a transform changes that, and its label, which counts from 1.
function Pictures:get(i)
  if not self.transform or transforms.steps(self.transform) then return source.get(self, i) end
  self.plain = self.plain or setmetatable({}, Pictures)
  for _, k in ipairs {"images", "paths", "gray", "labels"} do self.plain[k] = self[k] end
  local x, y = source.get(self.plain, i)
  x = self.transform(x)
  if x == nil then fail("the dataset's transform returned nothing") end
  return x, y
end

-- The whole dataset on a device: its batch(positions), of an int64 tensor, gathers pictures and labels there and applies the transform
-- (crops, flips, Cutout, Normalize) in one kernel, also within compiled steps.
function Pictures:to(device)
  if not self.images then fail("to: pictures in files can't be moved to a device; read them with a DataLoader") end
  local steps = self.transform and transforms.steps(self.transform) or not self.transform and {}
  if not steps then fail("to: the transform is a Lua function; a device can only run transforms of tycho.data.transforms") end
  local ok, set = pcall(resident.pictures, self.images, self.labels, steps, self.classes, device)
  if not ok then fail(bare(set)) end
  return set
end

local function pictures(t)
  t.transform = t.transform or nil
  t.targets, t.class_to_idx = t.labels, {}
  for i, class in ipairs(t.classes or {}) do t.class_to_idx[class] = i end
  for _, k in ipairs {"images", "labels"} do if t[k] then core.keep(t[k]) end end
  return setmetatable(t, Pictures)
end

-- Defines a dataset by a function of its options; errors begin with its name.
local function define(name, defaults, make)
  defaults.download = false                            -- PyTorch's option; nothing is downloaded
  datasets[name] = function(o, ...)
    if type(o) == "string" then                        -- the folder or file first, as in PyTorch, then train and transform
      local named, rest, k = {root = o}, {...}, 1
      for _, place in ipairs {"train", "transform"} do
        local v = rest[k]
        local fits = place == "transform" and modes.callable(v) or place == "train" and type(v) == "boolean" and defaults.train ~= nil
        if fits then named[place] = v end
        if fits or v == nil and k < select("#", ...) then k = k + 1 end
      end
      if rest[k] ~= nil and type(rest[k]) ~= "table" then fail("%s: options must be a table, got %s", name, shown(rest[k])) end
      if rest[k + 1] ~= nil then fail("%s: options come last, got %s after them", name, shown(rest[k + 1])) end
      for key, v in pairs(rest[k] or {}) do named[key] = v end
      o = named
    end
    o = fill(name, o, defaults)
    if o.root and type(o.root) ~= "string" then fail("%s: root must be a path, got %s", name, shown(o.root)) end
    if o.train ~= nil and type(o.train) ~= "boolean" and o.train ~= defaults.train then
      fail("%s: train must be true or false, got %s", name, shown(o.train))
    end
    if o.transform and not modes.callable(o.transform) then
      fail("%s: transform must be a function or one of tycho.data.transforms, got %s", name, shown(o.transform))
    end
    if o.block_size ~= nil then options.whole(name, "block_size", o.block_size, 1) end
    local ok, d = pcall(make, o)
    if not ok then fail(name .. ": " .. tostring(bare(d))) end
    d.name = name
    return d
  end
end

---- MNIST's format ----
local function define_idx(name, classes, default_root, help)
  -- {root=, train=true, transform=}
  define(name, {root = options.none, train = true, transform = options.none}, function(o)
    local root, part = o.root or default_root, o.train == false and "t10k" or "train"
    root = folder_with(root, part .. "-images-idx3-ubyte", {name .. "/raw"}) or root
    local function read(ending)
      local path = root .. "/" .. part .. ending
      if exists(path) then return core.read_idx(path) end
      if exists(path .. ".gz") then return core.read_idx(path .. ".gz") end
      error(("%s(.gz) is missing; %s"):format(path, help), 0)
    end
    local images, labels = read "-images-idx3-ubyte", read "-labels-idx1-ubyte"
    if images.dtype ~= "uint8" or M.dim(images) ~= 3 or labels.dtype ~= "uint8" or M.dim(labels) ~= 1 or #images ~= #labels then
      error(("%s holds images of shape %s and labels of shape %s, which don't match"):format(root,
        tostring(images.shape), tostring(labels.shape)), 0)
    end
    if #labels > 0 and ops.amax(labels):item() >= #classes then error(("%s has a label above %d"):format(root, #classes - 1), 0) end
    return pictures {images = images, labels = M.long(labels) + 1, classes = classes, transform = o.transform}
  end)
end
local digits = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
-- FashionMNIST{root=, train=true, transform=}: 28x28 pictures of clothes in 10 classes, from the four IDX files (or .gz) in the folder
-- root, by default that of Debian's package dataset-fashion-mnist. train = false: the test part. Labels count from 1; ds.classes[label] is
-- the class's name. Nothing is downloaded: if files are missing, the error shows the command that fetches them. Options may also follow the
-- path: FashionMNIST(root, {...}); so too for the other datasets.
define_idx("FashionMNIST", {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"},
  "/usr/share/datasets/fashion-mnist",
  "install it with Debian's package dataset-fashion-mnist (apt-get install dataset-fashion-mnist), or give its folder as root")
-- MNIST{root="mnist", train=true, transform=}: 28x28 pictures of digits; digit 0 has label 1.
define_idx("MNIST", digits, "mnist", "name the folder of the four IDX files as root; to fetch them: for f in \z
  train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; "
  .. "do curl -O https://ossci-datasets.s3.amazonaws.com/mnist/$f-ubyte.gz; done")

---- CIFAR's binary version ----
local function names_in(path, count, or_else)
  local f = io.open(path)
  if not f then return or_else end
  local out = {}
  for line in f:lines() do
    line = line:match "^%s*(.-)%s*$"
    if line ~= "" then out[#out + 1] = line end
  end
  f:close()
  return #out == count and out or or_else
end

-- files: of the training part and of the test part; head: the number of label bytes of a record, of which the last one counts
local function define_cifar(name, archive, below, files, head, count, meta, classes)
  define(name, {root = name:lower(), train = true, transform = options.none}, function(o)
    local list = files[o.train == false and 2 or 1]
    local root = folder_with(o.root, list[1], {below})
    if not root then
      error(("%s/%s is missing; name the folder of the binary version's files as root; to fetch them: curl -O \z
        https://www.cs.toronto.edu/~kriz/%s && tar xf %s"):format(o.root, list[1], archive, archive), 0)
    end
    local images, labels = {}, {}
    for i, file in ipairs(list) do
      local l, x = core.read_records(root .. "/" .. file, head, 3, 32, 32)
      images[i], labels[i] = x, ops.select(l, 2, head)
    end
    images, labels = #images > 1 and ops.cat(images, 1) or images[1], M.long(ops.cat(labels, 1))
    if ops.amax(labels):item() >= count then error(("%s has a label above %d"):format(root, count - 1), 0) end
    return pictures {images = images, labels = labels + 1, classes = names_in(root .. "/" .. meta, count, classes), transform = o.transform}
  end)
end
local numbers = {}
for i = 1, 100 do numbers[i] = tostring(i - 1) end
-- CIFAR10{root="cifar10", train=true, transform=}: 3x32x32 pictures in 10 classes, from the files of the binary version.
define_cifar("CIFAR10", "cifar-10-binary.tar.gz", "cifar-10-batches-bin",
  {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"}, {"test_batch.bin"}},
  1, 10, "batches.meta.txt",
  {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"})
-- CIFAR100{root="cifar100", train=true, transform=}: 3x32x32 pictures in 100 classes, from the files of the binary version.
define_cifar("CIFAR100", "cifar-100-binary.tar.gz", "cifar-100-binary", {{"train.bin"}, {"test.bin"}}, 2, 100,
  "fine_label_names.txt", numbers)

---- folders of pictures ----
local function sorted_folder(path)
  local list, why = core.list_folder(path)
  if not list then error(why, 0) end
  table.sort(list)
  return list
end
local endings = {jpg = true, jpeg = true, png = true}
local function find_pictures(path, out)
  for _, name in ipairs(sorted_folder(path)) do
    local full = path .. "/" .. name
    if endings[(name:match "%.(%w+)$" or ""):lower()] then out[#out + 1] = full
    elseif core.list_folder(full) then find_pictures(full, out) end
  end
  return out
end

-- ImageFolder{root=, train=, transform=, gray=false, allow_empty=false}: pictures root/class/.../file.jpg or .png; the classes are the
-- folders' names, sorted. If train is given, the classes are in root/train, or root/val (or root/test). gray: one channel. allow_empty: a
-- folder without pictures is a class too, not an error. Fields: paths, a list; labels, or PyTorch's name targets, a tensor; classes;
-- class_to_idx.
define("ImageFolder", {root = options.none, train = "whole", transform = options.none, gray = false, allow_empty = false}, function(o)
  if type(o.root) ~= "string" then error("root must be the name of a folder", 0) end
  local root = o.root
  if o.train == true and core.list_folder(root .. "/train") then root = root .. "/train"
  elseif o.train == false then
    for _, sub in ipairs {"test", "val"} do if core.list_folder(o.root .. "/" .. sub) then root = o.root .. "/" .. sub end end
  end
  local classes, paths, labels, empty = {}, {}, {}, {}
  for _, name in ipairs(sorted_folder(root)) do
    if core.list_folder(root .. "/" .. name) then
      local found = find_pictures(root .. "/" .. name, {})
      if #found == 0 then empty[#empty + 1] = name end
      classes[#classes + 1] = name
      for _, path in ipairs(found) do paths[#paths + 1], labels[#labels + 1] = path, #classes end
    end
  end
  if #paths == 0 then error(root .. " has no folders with .jpg or .png files", 0) end
  if #empty > 0 and not o.allow_empty then
    error(("%s has folders without .jpg or .png files: %s; with {allow_empty = true} they are classes too"):format(root,
      table.concat(empty, ", ")), 0)
  end
  return pictures {paths = paths, labels = core.from_value(labels, "int64"), classes = classes,
    transform = o.transform, gray = o.gray and true or false}
end)

---- text ----
-- The number of windows of block_size + 1 ids in the part of `count` ids that the options select, and where the part begins, from 0.
local function windows(o, count, path, what)
  for _, k in ipairs {"block_size", "stride"} do
    if o[k] and (type(o[k]) ~= "number" or o[k] < 1 or o[k] % 1 ~= 0) then
      error(("%s must be a whole number from 1, got %s"):format(k, options.shown(o[k])), 0)
    end
  end
  if type(o.split) ~= "number" or not (o.split > 0 and o.split <= 1) then
    error("split must be a number above 0 and at most 1, got " .. options.shown(o.split), 0)
  end
  local cut, first = math.floor(count * o.split), 0
  if o.train == true then count = cut elseif o.train == false then first, count = cut, count - cut end
  local stride = o.stride or o.block_size
  local n = math.floor((count - o.block_size - 1) / stride) + 1
  if n < 1 then error(("%s: %d %s are too few for windows of %d"):format(path, count, what, o.block_size), 0) end
  return {n = n, stride = stride, block_size = o.block_size, first = first, count = count}
end

local Text = source.class "TextFile"
-- The number of windows.
function Text:size() return self.n end
function Text:fields()
  if self.transform then return nil, "its transform is a Lua function" end
  local function window(from) return {kind = "windows", tensor = self.ids, length = self.block_size, step = self.stride, from = from} end
  return {window(0), window(1)}
end
-- Window i: block_size ids, and the same window shifted by one.
function Text:get(i)
  source.need_item(i, self.n)
  local at = (i - 1) * self.stride
  local x, y = ops.slice(self.ids, 1, at + 1, at + self.block_size), ops.slice(self.ids, 1, at + 2, at + 1 + self.block_size)
  if self.transform then return self.transform(x, y) end
  return x, y
end
-- The ids of a string's characters, an int64 vector; a character that the file doesn't contain is an error.
function Text:encode(text)
  if type(text) ~= "string" then fail("encode: argument 1 must be a string, got %s", options.shown(text)) end
  local out = {}
  for i = 1, #text do
    out[i] = self.id_of[text:sub(i, i)]
    if not out[i] then fail("encode: the character '%s' doesn't occur in the dataset's text", text:sub(i, i)) end
  end
  return core.from_value(out, "int64")
end
-- The string for ids, a tensor or a list.
function Text:decode(ids)
  if type(ids) ~= "table" and not core.is_tensor(ids) then fail("decode: argument 1 must be a list of ids, got %s", options.shown(ids)) end
  local out = {}
  for i, id in ipairs(core.is_tensor(ids) and M.flatten(ids):totable() or ids) do
    out[i] = self.vocab[id] or fail("decode: there is no character with id %s", tostring(id))
  end
  return table.concat(out)
end

local TEXT = {root = options.none, train = true, block_size = 128, stride = options.none, split = 0.9, transform = options.none}
-- TextFile{root=FILE, train=true, block_size=128, stride=block_size, split=0.9, transform=}: the characters (bytes) of a text as ids from
-- 1, in the order of their codes. Item i is a window of block_size ids, and the same window shifted by one. The first `split` of the text
-- is for training. ds.vocab[id] is a character, ds.id_of[character] its id, #ds.vocab their number, ds.ids all ids of this part.
define("TextFile", TEXT, function(o)
  if type(o.root) ~= "string" then error("root must be the name of a text file", 0) end
  local path = o.root
  if core.list_folder(path) and exists(path .. "/input.txt") then path = path .. "/input.txt" end
  if exists(path) and not core.file_head(path, 0) then error(path .. ": not a regular file", 0) end
  local f, why = io.open(path, "rb")
  local text = f and f:read "*a"
  if f then f:close() end
  if not text then error(why or path .. ": can't be read", 0) end
  local w = windows(o, #text, path, "characters")
  local seen, vocab, id_of = {}, {}, {}
  for c in text:gmatch "." do seen[c] = true end
  if text:find "\n" then seen["\n"] = true end
  for c in pairs(seen) do vocab[#vocab + 1] = c end
  table.sort(vocab, function(a, b) return a:byte() < b:byte() end)
  local ids = core.bytes_tensor(text)
  local map = core.methods.long(ops.zeros(256, {device = "cpu"}))
  for id, c in ipairs(vocab) do
    id_of[c] = id
    map[c:byte() + 1] = id
  end
  ids = ops.index(map, {M.long(ids) + 1}, 1)
  ids = M.contiguous(ops.slice(ids, 1, w.first + 1, w.first + w.count))
  return setmetatable({ids = core.keep(ids), vocab = vocab, id_of = id_of, block_size = w.block_size, stride = w.stride,
    n = w.n, transform = o.transform or nil}, Text)
end)

local Tokens = source.class "TokenFile"
function Tokens:size() return self.n end
function Tokens:fields()
  local function window(from)
    return {kind = "windows", path = self.path, width = self.width, length = self.block_size, step = self.stride,
      from = self.first + from}
  end
  return {window(0), window(1)}
end
Tokens.get = source.get

local TOKENS = {root = options.none, dtype = "uint16", train = "whole", block_size = 128, stride = options.none, split = 0.9}
-- TokenFile{root=FILE, dtype="uint16", train=, block_size=128, stride=block_size, split=0.9}: a file of token ids from 0, uint16 or int32,
-- as tokenizers write them. It is memory-mapped, and must not become shorter while in use. Items are windows as TextFile's, with ids from
-- 1. Without train it is the whole file.
define("TokenFile", TOKENS, function(o)
  if type(o.root) ~= "string" then error("root must be the name of a file", 0) end
  local width = ({uint16 = 2, int32 = 4})[o.dtype] or error("dtype must be uint16 or int32, got " .. tostring(o.dtype), 0)
  local f, why = io.open(o.root, "rb")
  local bytes = f and f:seek "end"
  if f then f:close() end
  if not bytes then error(why or o.root .. ": can't be read", 0) end
  local w = windows(o, math.floor(bytes / width), o.root, "tokens")
  return setmetatable({path = o.root, width = width, first = w.first, block_size = w.block_size, stride = w.stride, n = w.n}, Tokens)
end)

---- tables ----
local Table = source.class "CSV"
-- The number of rows.
function Table:size() return M.size(self.x, 1) end
-- Row i, and its target, if there is one.
function Table:get(i) return self.x[i], self.y and self.y[i] end
function Table:fields() return {{kind = "rows", tensor = self.x}, self.y and {kind = "rows", tensor = self.y}} end
-- The rows at the given positions, an int64 tensor, and their targets.
function Table:batch(indices) return ops.index(self.x, {indices}, 1), self.y and ops.index(self.y, {indices}, 1) end

-- CSV{root=FILE, target=, header=true, separator=",", labels=false}: item i is row i, float32 numbers. target: the name or number of a
-- column that items give separately, as float32 or, with labels = true, as int64 from 1, where the file counts from 0. ds.columns: the
-- names of the other columns.
define("CSV", {root = options.none, target = options.none, header = true, separator = ",", labels = false}, function(o)
  if type(o.root) ~= "string" then error("root must be the name of a file", 0) end
  local all, names = source.csv(o.root, o)
  local n, at = M.size(all, 2), nil
  if o.target then
    if type(o.target) == "number" and o.target % 1 == 0 then at = o.target < 0 and n + 1 + o.target or o.target
    else for k, name in ipairs(names or {}) do if name == o.target then at = k end end end
    if not at or at < 1 or at > n then error(("%s has no column %s"):format(o.root, tostring(o.target)), 0) end
  end
  local columns, rest = {}, {}
  for k = 1, n do
    if k ~= at then
      rest[#rest + 1] = k
      columns[#columns + 1] = names and names[k]
    end
  end
  if #rest == 0 then error(o.root .. ": the target is the only column", 0) end
  local set = {x = M.contiguous(M.float(ops.index(all, {core.from_value(rest, "int64")}, 2))), columns = columns}
  if at then
    local y = ops.select(all, 2, at)
    if o.labels and not ops.all(ops.eq(y, ops.floor(y))):item() then error(("%s: labels must be whole numbers"):format(o.root), 0) end
    set.y = core.keep(o.labels and M.long(y) + 1 or M.contiguous(M.float(y)))
  end
  core.keep(set.x)
  return setmetatable(set, Table)
end)

return options.told(datasets, "data.datasets")
