-- tycho.checkpoint.Manager: a training run's state, saved as one unit while the run goes on, and restored exactly.
--
-- Idea: save() copies everything before it returns; a thread in C writes the copy (src/io/checkpoint.c). A file holds members' state dicts,
-- plain values and the random generators, with checksums of every byte. restore_latest() takes the newest complete file.
-- Invariant: older checkpoints stay until a newer one is durable.
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local saving = require "tycho.saving"
local modes = require "tycho.modes"
local checkpoint = {}

local Manager = {}
Manager.__index = Manager
Manager.__tostring = function(m) return ("Manager(dir=%q, keep=%s, async=%s)"):format(m.dir, m.keep > 0 and m.keep or "false", m.async) end

-- Manager{dir=, keep=3, async=true}: writes checkpoints, files step-N.safetensors in the folder dir, of which the last `keep` are kept
-- (false: all). async: a thread writes while training goes on.
function checkpoint.Manager(o)
  local all = type(o) == "table" and o.keep == false
  o = options.fill("checkpoint.Manager", o, {dir = options.none, keep = all and options.none or 3, async = true})
  if type(o.dir) ~= "string" or o.dir == "" then
    fail("checkpoint.Manager: dir must be the name of a folder, got %s", o.dir and tostring(o.dir) or "nothing")
  end
  if o.keep then options.whole("checkpoint.Manager", "keep", o.keep, 1) end
  local ok, e = pcall(function()
    core.make_folder(o.dir)
    core.clean_folder(o.dir)
  end)
  if not ok then fail("checkpoint.Manager: " .. options.bare(e)) end
  return setmetatable({dir = o.dir:gsub("(.)/+$", "%1"), keep = math.min(o.keep or 0, 2 ^ 31 - 1), async = o.async}, Manager)
end

local function path_of(self, step) return ("%s/step-%d.safetensors"):format(self.dir, step) end
local function has_state(v, how)
  return (type(v) == "table" or type(v) == "userdata") and not core.is_tensor(v) and type(v[how]) == "function"
end

---- random generators: those of devices by name, and math.random's ----
-- This process's rank if there are several; nil if it is alone.
local function own_rank()
  local distributed = package.loaded["tycho.distributed"]
  return distributed and distributed.is_initialized() and distributed.get_rank() or nil
end
local function generators()
  local state = core.math_random()
  local out = {lua = state and saving.hex(state) or nil}
  local names = {"cpu"}
  if core.gpu.opened() then                -- else no GPU's generator has been used
    for i = 0, core.gpu.device_count() - 1 do names[#names + 1] = "cuda:" .. i end
  end
  for _, name in ipairs(names) do
    local seed, offset = core.gpu.rng_state(name)
    out[name] = {seed, offset}
  end
  return out
end
local function check_generators(kept, path)
  for name, g in pairs(kept) do
    local ok
    if name == "lua" then ok = type(g) == "string" and #g % 2 == 0 and not g:find "%X" and g:find "[^0]"
    else ok = type(name) == "string" and type(g) == "table" and type(g[1]) == "number" and type(g[2]) == "number" end
    if not ok then error(("restore: the state of the random generator '%s' in %s is damaged"):format(tostring(name), path), 0) end
  end
end
-- If several processes load one process's checkpoint, only that process continues with its random numbers. The others' must differ, so
-- their seeds are made from its seed and their rank.
local function restore_generators(kept, saver)
  local rank = own_rank()
  local apart = rank and rank ~= (saver or 0) and rank + 1 or 0
  for name, g in pairs(kept) do
    if apart > 0 and name ~= "lua" then g = {core.mix_seeds(g[1], apart), g[2]} end
    if name == "lua" then
      core.math_random(saving.unhex(g))
      if apart > 0 then math.randomseed(math.random(2 ^ 30) + apart) end
    elseif name == "cpu" or (core.gpu.is_available() and tonumber(name:match "%d+") < core.gpu.device_count()) then
      core.gpu.rng_state(name, g[1], g[2])
    end
  end
end

---- plans of the GPU's libraries, where they are timed: another one rounds differently ----
local function device_names()
  local out = {}
  for i = 0, core.gpu.device_count() - 1 do out[#out + 1] = core.gpu.get_device_properties(i).name end
  return table.concat(out, ", ")
end
local function plans()
  if not core.gpu.opened() then return nil end
  local words, libraries = core.gpu.timed_plans()
  return words and {words = words, libraries = libraries, devices = device_names()} or nil
end
local function restore_plans(kept)
  if not kept or not core.gpu.is_available() then return end
  local devices, _, libraries = device_names(), core.gpu.timed_plans()
  if kept.devices == devices and kept.libraries == libraries then return core.gpu.set_timed_plans(kept.words) end
  io.stderr:write(("checkpoint: its timed plans are for %s with %s, here there is %s with %s: \z
    they are timed anew, and may round differently\n"):format(kept.devices, kept.libraries, devices, libraries))
end

---- saving ----
-- Copies of tensors in host memory: from a GPU into pinned memory, with a single wait.
local function snapshot(tensors)
  local out, devices = {}, {}
  for i, t in ipairs(tensors) do
    if t.device == "cpu" then out[i] = core.ops.clone(t, {memory_format = "contiguous"})
    else
      out[i] = core.gpu.to_pinned(t)
      devices[t.device] = true
    end
  end
  for device in pairs(devices) do core.gpu.stream_synchronize(core.gpu.current_stream(tonumber(device:match "%d+"))) end
  return out
end

-- Waits for a save in progress; gives its error, if any, as text. failed: an error not yet reported.
local function finish(self)
  local under_way, failed = self.under_way, self.failed
  self.failed = nil
  if not under_way then return failed end
  while not core.saving_done(under_way.saving, 0.1) do end     -- in short waits, so that Ctrl-C works
  self.under_way = nil
  local ok, e = pcall(core.saving_end, under_way.saving)
  if ok then return failed end
  return (failed and failed .. "; " or "") .. ("checkpoint: step %d was not saved: %s"):format(under_way.step, options.bare(e))
end

-- whether it is a class of modules
local function is_class(v) return type(v) == "table" and rawget(v, "_super") ~= nil and type(rawget(v, "_name")) == "string" end
local function check_members(who, members)
  if type(members) ~= "table" or has_state(members, "state_dict") then
    fail("%s must be a table of members, such as {model = net}, got %s", who,
      has_state(members, "state_dict") and "one of them" or options.shown(members))
  end
end

local function encode(step, members)
  local states, values = {}, {}
  for name, v in pairs(members) do
    if type(name) ~= "string" then error(("save: member names are strings, got %s"):format(tostring(name)), 0) end
    if is_class(v) then
      error(("save: '%s' is the class %s; save an object made by %s(...)"):format(name, v._name, v._name), 0)
    end
    if has_state(v, "state_dict") then states[name] = v:state_dict() else values[name] = v end
  end
  return saving.tree {step = step, states = states, values = values, generators = generators(), rank = own_rank(), plans = plans()}
end

-- save(step, {name = member, ...}): saves the state dicts of members that have one, others as values (any that tycho.save takes), and all
-- random generators. Everything is copied now. Once this save has begun, raises any error of the previous one.
function Manager:save(step, members, more)
  options.no_more("save", more)
  options.whole("save", "argument 1 (step)", step, 0)
  check_members("save: argument 2", members)
  local before = finish(self)
  local ok, tree, names, tensors = pcall(encode, step, members)
  if not ok then
    self.failed = before
    fail(options.bare(tree))
  end
  self.failed = before
  local saved, e = pcall(function()
    self.under_way = {step = step,
      saving = core.saving_start(path_of(self, step), names, snapshot(tensors), core.json_encode(tree), self.keep)}
  end)
  if not saved then fail("checkpoint: step %d was not saved: %s", step, options.bare(e)) end
  if not self.async then return self:wait() end
  self.failed = nil
  if before then fail(before) end
end

-- Waits until the last save is on disk; raises if it failed.
function Manager:wait()
  local failed = finish(self)
  if failed then fail(failed) end
end

-- The step being saved, the bytes written and the total bytes; nil if none is being saved.
function Manager:progress()
  if not self.under_way then return nil end
  local done, written, total = core.saving_done(self.under_way.saving, 0)
  if done then return nil end
  return self.under_way.step, written, total
end

-- A list of the steps that have checkpoints, the last saved first.
function Manager:steps() return core.checkpoints(self.dir) end

---- restoring ----
local function read(self, step)
  local tensors, text = core.read_safetensors(path_of(self, step), true)
  local parsed, tree = pcall(core.json_decode, text or "null")
  if not parsed then error(tree:find("json_decode", 1, true) and path_of(self, step) .. ": " .. tree or tree, 0) end
  local value = saving.value(tree, tensors)
  if type(value) ~= "table" or type(value.states) ~= "table" or type(value.values) ~= "table" or
      type(value.generators) ~= "table" then
    error(path_of(self, step) .. ": not a checkpoint", 0)
  end
  return value
end

-- Loads schedulers, scalers, loaders and the user's own members: they come first, and are restored if one of them fails.
local function load_unchecked(members, names, states, path)
  local before = {}
  for i, name in ipairs(names) do
    local m = members[name]
    before[i] = has_state(m, "state_dict") and saving.copied(m:state_dict()) or nil
    local ok, e = pcall(m.load_state_dict, m, states[name])
    if not ok then
      for k = i, 1, -1 do
        if before[k] then pcall(members[names[k]].load_state_dict, members[names[k]], before[k]) end
      end
      error(("restore: '%s' of %s: %s"):format(name, path, options.bare(e)), 0)
    end
  end
end

local function load_into(value, members, path)
  check_generators(value.generators, path)
  local names, unchecked, tensors = {}, {}, {}
  for name, m in pairs(members or {}) do
    if value.states[name] ~= nil and (not has_state(m, "load_state_dict") or is_class(m)) then
      error(("restore: '%s' of %s was saved by state_dict(); %s can't load it"):format(name, path,
        is_class(m) and "the class " .. m._name or options.shown(m)), 0)
    elseif has_state(m, "load_state_dict") then
      if value.states[name] == nil then
        local what = value.values[name] == nil and "no" or "a value, not a state,"
        error(("restore: %s has %s '%s'"):format(path, what, name), 0)
      end
      -- the library's own load_state_dict, not a replaced one
      local checks = has_state(m, "check_state_dict") and rawequal(m.load_state_dict, m._loads)
      if checks then
        local ok, e = pcall(m.check_state_dict, m, value.states[name])
        if not ok then error(("restore: '%s' of %s: %s"):format(name, path, options.bare(e)), 0) end
      end
      table.insert(checks and names or unchecked, name)
    elseif core.is_tensor(m) then
      local v = value.values[name]
      if not core.is_tensor(v) then error(("restore: %s has no tensor '%s'"):format(path, name), 0) end
      if v.shape ~= m.shape then
        error(("restore: '%s' of %s has shape %s; it must be %s"):format(name, path, tostring(v.shape), tostring(m.shape)), 0)
      end
      tensors[m] = v
    end
  end
  table.sort(names)
  table.sort(unchecked)
  load_unchecked(members, unchecked, value.states, path)
  for _, name in ipairs(names) do members[name]:load_state_dict(value.states[name]) end
  for m, v in pairs(tensors) do modes.no_grad(m.copy_, m, v) end
  restore_generators(value.generators, value.rank)
  restore_plans(value.plans)
  return value.step, value.values
end

-- restore(step, {name = member, ...}): loads into members that have load_state_dict, and into tensors; restores the random generators;
-- gives the step, and a table of the plain values.
function Manager:restore(step, members, more)
  options.no_more("restore", more)
  options.whole("restore", "argument 1 (step)", step, 0)
  if members ~= nil then check_members("restore: argument 2", members) end
  local failed = finish(self)
  if failed then io.stderr:write(failed, "\n") end
  local ok, value = pcall(read, self, step)
  if not ok then fail(type(value) == "string" and "restore: " .. options.bare(value):gsub("^load: ", "") or value) end
  local fine, a, b = pcall(load_into, value, members, path_of(self, step))
  if not fine then fail(options.bare(a)) end
  return a, b
end

-- restore_latest{name = member, ...}: as restore, with the newest intact checkpoint; reports newer, damaged ones on stderr. nil if there is
-- none; an error if all are damaged.
function Manager:restore_latest(members, more)
  options.no_more("restore_latest", more)
  if members ~= nil then check_members("restore_latest: argument 1", members) end
  local failed, last = finish(self), nil
  if failed then io.stderr:write(failed, "\n") end
  local steps = self:steps()
  for _, step in ipairs(steps) do
    local ok, value = pcall(read, self, step)
    if ok then
      local fine, a, b = pcall(load_into, value, members, path_of(self, step))
      if not fine then fail(options.bare(a)) end
      return a, b
    end
    -- damage names the file; an interrupt or a lack of memory doesn't
    if type(value) ~= "string" or not value:find(path_of(self, step), 1, true) then error(value, 0) end
    last = options.bare(value):gsub("^load: ", "")
    io.stderr:write("checkpoint: ", last, "; trying the checkpoint before it\n")
  end
  if not last then return nil end
  fail("restore_latest: none of the %d checkpoints in %s can be read; the oldest: %s", #steps, self.dir, last)
end

options.methods(Manager, "manager", function(self) return getmetatable(self) == Manager end)

return require("tycho.options").told(checkpoint, "checkpoint")
