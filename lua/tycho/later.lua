-- Loads the library's files when one of their names is first used, so that a program reads and keeps only what it uses.
--
-- Idea: a list says which names a file defines; reading the file puts them where they belong. Files are read from the library's original
-- folder and with its own modules, even if the host has changed directory, package.path or require since, or loaded the library anew.
-- Invariants: lists only say where to look first; a name on no list is looked for in every file before it counts as missing
-- (spec/later_spec.lua compares lists and files). A file that fails to load leaves nothing behind, and is read again.
local ffi = require "ffi"
local io = io
local later = {}

local ours = {}                     -- this library's modules by name
local loaded, host_require = package.loaded, require
pcall(ffi.cdef, "char *getcwd(char *, size_t);")
local function absolute(path)
  local room = ffi.new "char[4096]"
  if path:sub(1, 1) == "/" or ffi.C.getcwd(room, 4096) == nil then return path end
  return ffi.string(room) .. "/" .. path
end
local named = debug.getinfo(1, "S").source:match "^@(.*)tycho/later%.lua$" or ""
local root = absolute(named)

-- Whether host code that requires tycho modules gets this copy of the library.
local function current() return ours["tycho.later"] == nil or loaded["tycho.later"] == ours["tycho.later"] end
-- Whether m can be a loaded module; any other value is require's mark for a module that is being loaded.
local function is_module(m) return type(m) == "table" or type(m) == "function" or m == true end
-- Notes the modules that have been required, and tycho itself, which is still loading.
function later.note(tycho)
  for name, m in pairs(loaded) do
    if type(name) == "string" and name:find "^tycho" and is_module(m) then ours[name] = m end
  end
  ours.tycho = tycho
end

local env = {}                      -- the environment that files run in
for name in ([[assert error getmetatable ipairs loadstring math next pairs pcall rawequal rawget rawset select setfenv setmetatable string
    table tonumber tostring type unpack xpcall debug io os coroutine collectgarbage newproxy]]):gmatch "%S+" do env[name] = _G[name] end

-- The host's require marks a module while it loads, and leaves the mark when loading fails; this removes it.
local function by_host(name)
  local ok, m = pcall(host_require, name)
  if ok then return m end
  loaded[name] = nil
  error(m, 0)
end
-- As require, for this library's modules.
function later.require(name)
  if not name:find "^tycho" then return by_host(name) end
  if ours[name] ~= nil then return ours[name] end
  if current() and is_module(loaded[name]) then return loaded[name] end
  local chunk
  for _, path in ipairs {name:gsub("%.", "/") .. ".lua", name:gsub("%.", "/") .. "/init.lua"} do
    local file = not chunk and io.open(root .. path, "rb")
    if file then
      chunk = assert(loadstring(file:read "*a", "@" .. named .. path))   -- the chunk name by which errors recognise the library's files
      file:close()
    end
  end
  if not chunk then return by_host(name) end
  local m = setfenv(chunk, env)(name)
  if m == nil then m = true end
  ours[name] = m
  if current() then loaded[name] = m end
  return m
end
env.require = later.require
setmetatable(env, {__index = _G, __newindex = _G})

local Files = {}
Files.__index = Files
-- files: a list of {module, names}, names in one text, separated by spaces; a name also covers its form with a trailing _.
function later.files(files)
  for _, file in ipairs(files) do file[2] = " " .. file[2]:gsub("%s+", " ") .. " " end
  return setmetatable({files = files, reading = {}}, Files)
end

-- The module whose list has the name, or nil.
function Files:of(name)
  local whole, plain = " " .. name .. " ", name:sub(-1) == "_" and " " .. name:sub(1, -2) .. " "
  for _, file in ipairs(self.files) do
    if file[2]:find(whole, 1, true) or plain and file[2]:find(plain, 1, true) then return file[1] end
  end
end

local function read(self, module)
  if self.reading[module] then return end                    -- the file looks up a name of its own
  local ok, err = pcall(function()
    self.reading[module] = true
    later.require(module)
  end)
  self.reading[module] = nil
  if not ok then error(err, 0) end
end

-- Reads all files.
function Files:all()
  for _, file in ipairs(self.files) do read(self, file[1]) end
end

-- Reads the file that has the name; every file, where no list has it.
function Files:read(name)
  local module = self:of(name)
  if module then read(self, module) else self:all() end
end

-- A table that the files put their names into: looking up a missing name reads its file.
function Files:fills(t)
  return setmetatable(t, {__index = function(_, name)
    if type(name) ~= "string" then return nil end
    self:read(name)
    return rawget(t, name)
  end})
end

return later
