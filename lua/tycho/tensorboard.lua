-- tycho.utils.tensorboard: writes files for TensorBoard (tensorboard --logdir runs), as torch.utils.tensorboard does.
--
-- Idea: an event file is a row of records, each a protocol buffer of a few fields (TensorFlow's event.proto and summary.proto) between two
-- checksums (CRC-32C). Invariant: a record is written whole or not at all, so that a file can be read while it grows.
local ffi = require "ffi"
local bit = require "bit"
local core = require "tycho.core"
local options = require "tycho.options"
local functions = require("tycho.functional.lib").functions
local pictures = require "tycho.pictures"
local fail = options.fail
local M = core.methods
local tensorboard = {}
ffi.cdef "int getpid(void); int gethostname(char *name, size_t size);"

---- records ----
local crc_table
local function crc32c(s)
  if not crc_table then
    crc_table = ffi.new("uint32_t[256]")
    for i = 0, 255 do
      local c = i
      for _ = 1, 8 do c = bit.bxor(bit.rshift(c, 1), bit.band(c, 1) == 1 and 0x82F63B78 or 0) end
      crc_table[i] = bit.tobit(c)
    end
  end
  local c, p = -1, ffi.cast("const uint8_t *", s)
  for i = 0, #s - 1 do c = bit.bxor(bit.tobit(crc_table[bit.band(bit.bxor(c, p[i]), 0xff)]), bit.rshift(c, 8)) end
  return bit.bnot(c)
end
local function bytes(ctype, v) return ffi.string(ffi.new(ctype .. "[1]", v), ffi.sizeof(ctype)) end
local function masked(s)                   -- masked, since a checksum of data with checksums would be weak
  local c = crc32c(s)
  return bytes("uint32_t", (bit.bor(bit.rshift(c, 15), bit.lshift(c, 17)) % 2 ^ 32 + 0xa282ead8) % 2 ^ 32)
end
local function record(data)
  local length = bytes("uint64_t", #data)
  return length .. masked(length) .. data .. masked(data)
end

---- protocol buffers: fields by number ----
local function varint(n)
  local out = {}
  while n >= 128 do
    out[#out + 1] = string.char(n % 128 + 128)
    n = math.floor(n / 128)
  end
  return table.concat(out) .. string.char(n)
end
local function whole(field, n) return varint(field * 8) .. varint(n) end
local function double(field, v) return varint(field * 8 + 1) .. bytes("double", v) end
local function single(field, v) return varint(field * 8 + 5) .. bytes("float", v) end
local function text(field, s) return varint(field * 8 + 2) .. varint(#s) .. s end       -- and messages within
local function doubles(field, list)
  return text(field, ffi.string(ffi.new("double[?]", #list, list), 8 * #list))
end

---- the writer ----
local Writer = {}
Writer.__index = Writer
Writer.__tostring = function(w) return ("SummaryWriter(%q)"):format(w.log_dir) end

local function event(w, step, time, more)
  return record(double(1, time or core.now() + w._clock) .. (step and step > 0 and whole(2, step) or "") .. more)
end
local count = 0
local function open(w)
  count = count + 1
  options.file("SummaryWriter", w.log_dir, core.make_folder, w.log_dir)
  local host = ffi.new "char[256]"
  ffi.C.gethostname(host, 255)
  local path = ("%s/events.out.tfevents.%010.0f.%s.%d.%d%s"):format(w.log_dir, os.time(), ffi.string(host), ffi.C.getpid(), count,
    w._suffix)
  local file, why = io.open(path, "wb")
  if not file then fail("SummaryWriter: %s", why) end
  file:setvbuf("full", 65536)
  w._file, w.path = file, path
  file:write(event(w, nil, nil, text(3, "brain.Event:2")))
end

-- step and time, which may be given under PyTorch's names in a table, with other known options.
local NAMES = {global_step = true, walltime = true}
local function named(who, step, time, known)
  local last = type(time) == "table" and not core.is_tensor(time) and time
  if last then
    options.check(who, last, known or NAMES)
    if last.global_step ~= nil and step ~= nil then fail("%s: argument 'global_step' is given twice", who) end
    return step or last.global_step, last.walltime, last
  end
  if type(step) ~= "table" or core.is_tensor(step) then return step, time, {} end
  options.check(who, step, known or NAMES)
  return step.global_step, step.walltime or time, step
end

local function write(w, who, tag, step, time, value)
  step, time = named(who, step, time)
  if type(tag) ~= "string" then fail("%s: argument 1 (tag) must be a string, got %s", who, options.shown(tag)) end
  if step ~= nil and (type(step) ~= "number" or step % 1 ~= 0 or step < 0) then
    fail("%s: argument 3 (step) must be a whole number from 0, got %s", who, options.shown(step))
  end
  if time ~= nil then options.number(who, "walltime", time) end
  if w._closed then fail("%s: the writer is closed", who) end
  if not w._file then open(w) end
  local ok, why = w._file:write(event(w, step, time, text(5, text(1, text(1, tag) .. value))))
  if not ok then fail("%s: %s: %s", who, w.path, why) end
  if core.now() - w._flushed > w._every then w:flush() end
end
local function number(who, v)
  if core.is_tensor(v) and M.numel(v) == 1 then v = M.item(v) end
  if type(v) == "boolean" then v = v and 1 or 0 end
  if type(v) ~= "number" then fail("%s: argument 2 must be a number or a tensor of one element, got %s", who, options.shown(v)) end
  return v
end

-- SummaryWriter(log_dir=, {flush_secs=120, filename_suffix="", comment=""}): writes data for TensorBoard into a file of the folder, by
-- default runs/ and the time; to see it: tensorboard --logdir runs. Data reach the file after flush_secs, at flush() or close(), and at the
-- program's end.
function tensorboard.SummaryWriter(folder, o)
  if type(folder) == "table" and o == nil then folder, o = folder.log_dir, folder end
  o = options.fill("SummaryWriter", o, {log_dir = options.none, flush_secs = 120, filename_suffix = "", comment = ""})
  options.number("SummaryWriter", "flush_secs", o.flush_secs)
  folder = folder or o.log_dir or os.date("runs/%b%d_%H-%M-%S") .. o.comment
  if type(folder) ~= "string" then fail("SummaryWriter: argument 1 must be a folder's name, got %s", options.shown(folder)) end
  return setmetatable({log_dir = folder, _every = o.flush_secs, _suffix = o.filename_suffix, _flushed = core.now(),
    _clock = os.time() - core.now(), _of = {}}, Writer)
end

-- A number, or a tensor of one element; waits for the GPU. global_step: a whole number from 0; walltime: seconds since 1970, by default
-- now; both also in the functions below.
function Writer:add_scalar(tag, value, global_step, walltime)
  write(self, "add_scalar", tag, global_step, walltime, single(2, number("add_scalar", value)))
end
-- add_scalars(tag, {name = value, ...}, global_step, walltime): several curves in one chart; each is a separate run below the folder.
function Writer:add_scalars(tag, values, global_step, walltime)
  if type(values) ~= "table" or core.is_tensor(values) then
    fail("add_scalars: argument 2 must be a table of numbers by name, got %s", options.shown(values))
  end
  local names = {}
  for name in pairs(values) do
    if type(name) ~= "string" then fail("add_scalars: argument 2 must have numbers by name, got %s as a name", options.shown(name)) end
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local below = ("%s/%s_%s"):format(self.log_dir, tostring(tag):gsub("/", "_"), name)
    self._of[below] = self._of[below] or tensorboard.SummaryWriter(below, {flush_secs = self._every, filename_suffix = self._suffix})
    self._of[below]:add_scalar(tag, values[name], global_step, walltime)
  end
end

-- Bin borders that grow by a tenth, on both sides of 0.
local borders
local function histogram(x)
  if not borders then
    local up, v = {}, 1e-12
    while v < 1e20 do up[#up + 1], v = v, v * 1.1 end
    borders = {}
    for i = #up, 1, -1 do borders[#borders + 1] = -up[i] end
    borders[#borders + 1] = 0
    for i = 1, #up do borders[#borders + 1] = up[i] end
  end
  local inside = functions.histogram(x, core.from_value(borders, "float64")):totable()
  local first, last = #inside + 1, 0
  for i, n in ipairs(inside) do if n > 0 then first, last = math.min(first, i), i end end
  if last == 0 then fail "add_histogram: no value is between -1e20 and 1e20" end
  local limits, counts = {}, {}
  for i = first - 1, last do                             -- begins with an empty bin
    limits[#limits + 1], counts[#counts + 1] = borders[i + 1], inside[i] or 0
  end
  local out = {}
  for field, v in ipairs {M.min(x):item(), M.max(x):item(), M.numel(x), M.sum(x):item(), M.dot(x, x):item()} do
    out[field] = v ~= 0 and double(field, v) or ""       -- zeros are omitted
  end
  return table.concat(out) .. doubles(6, limits) .. doubles(7, counts)
end
-- A histogram of the elements of a tensor or a list.
function Writer:add_histogram(tag, values, global_step, walltime)
  if type(values) == "table" and not core.is_tensor(values) then values = core.from_value(values, "float64") end
  if not core.is_tensor(values) or M.numel(values) == 0 then
    fail("add_histogram: argument 2 must be a tensor or a list with elements, got %s", options.shown(values))
  end
  write(self, "add_histogram", tag, global_step, walltime, text(5, histogram(M.double(M.flatten(M.cpu(M.detach(values)))))))
end

local function picture(self, who, tag, x, step, time, o)
  if not core.is_tensor(x) then fail("%s: argument 2 must be a tensor, got %s", who, options.shown(x)) end
  local path = os.tmpname()
  local ok, why = pcall(pictures.save_image, x, path, o)
  local file = ok and io.open(path, "rb")
  local png = file and file:read "*a"
  if file then file:close() end
  os.remove(path)
  if not png then fail("%s: %s", who, options.bare(why)) end
  local function size(at) return ((png:byte(at) * 256 + png:byte(at + 1)) * 256 + png:byte(at + 2)) * 256 + png:byte(at + 3) end
  write(self, who, tag, step, time, text(4, whole(1, size(21)) .. whole(2, size(17)) ..
    whole(3, ({[0] = 1, [2] = 3, [4] = 2, [6] = 4})[png:byte(26)] or 3) .. text(4, png)))
end
-- A picture CxHxW or HxW of values in 0..1, or of bytes. dataformats: "CHW", "HWC" or "HW", the order of its dims.
function Writer:add_image(tag, x, global_step, walltime, dataformats)
  local o
  global_step, walltime, o = named("add_image", global_step, walltime, {global_step = true, walltime = true, dataformats = true})
  dataformats = dataformats or o.dataformats or "CHW"
  if dataformats ~= "CHW" and dataformats ~= "HWC" and dataformats ~= "HW" then
    fail("add_image: dataformats must be 'CHW', 'HWC' or 'HW', got %s", options.shown(dataformats))
  end
  if dataformats == "HWC" and core.is_tensor(x) and M.dim(x) == 3 then x = M.permute(x, 3, 1, 2) end
  picture(self, "add_image", tag, x, global_step, walltime)
end
-- add_images(tag, x, global_step, walltime, {options of make_grid}): shows pictures NxCxHxW side by side.
function Writer:add_images(tag, x, global_step, walltime, o) picture(self, "add_images", tag, x, global_step, walltime, o) end

-- A text, shown as Markdown.
function Writer:add_text(tag, s, global_step, walltime)
  if type(s) ~= "string" then fail("add_text: argument 2 must be a string, got %s", options.shown(s)) end
  local tensor = whole(1, 7) .. text(2, text(2, whole(1, 1))) .. text(8, s)              -- one string
  write(self, "add_text", tostring(tag) .. "/text_summary", global_step, walltime, text(8, tensor) .. text(9, text(1, text(1, "text"))))
end

-- Writes everything added so far to the file.
function Writer:flush()
  local ok, why = true, nil
  if self._file then ok, why = self._file:flush() end
  if not ok then fail("flush: %s: %s", self.path, why) end
  for _, w in pairs(self._of) do w:flush() end
  self._flushed = core.now()
end
-- Closes the file.
function Writer:close()
  local ok, why = true, nil
  if self._file then ok, why = self._file:close() end
  for _, w in pairs(self._of) do w:close() end
  self._file, self._closed = nil, true
  if not ok then fail("close: %s: %s", self.path, why) end
end

local DRAW = "draw it, and write the picture by add_image"
options.methods(Writer, "writer", function(w) return getmetatable(w) == Writer end, {add_figure = DRAW, add_pr_curve = DRAW,
  add_graph = "write print's text of the module by add_text", add_embedding = "save the vectors as a table for projector.tensorflow.org",
  add_hparams = "write them by add_text, and the results by add_scalar", add_video = "write its pictures by add_images, one for each step",
  add_audio = "write the sound into a file of its own", add_mesh = DRAW})
return options.told(tensorboard, "utils.tensorboard")
