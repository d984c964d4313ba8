-- Files that are read when a name of theirs is first asked for: a program reads, keeps and has its collector walk only what it uses.
--
-- Idea: a list says which names a file gives; reading it puts them where they belong. Files are read from where the library was, with its
-- own modules, whatever the host has done since: changed directory, package.path or require, or loaded the library anew. Invariant: lists
-- only say where to look first: a name that none has is looked for in every file before it counts as missing (spec/later_spec.lua compares
-- lists and files). What fails while it is read leaves nothing behind, and is read again.
local ffi = require "ffi"
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

-- Whether the modules that others require are this library's.
local function current() return ours["tycho.later"] == nil or loaded["tycho.later"] == ours["tycho.later"] end
-- What a module may be; another value is require's mark of one that is being read.
local function is_module(m) return type(m) == "table" or type(m) == "function" or m == true end
-- Notes the modules that have been required, and tycho, which is being.
function later.note(tycho)
  for name, m in pairs(loaded) do
    if type(name) == "string" and name:find "^tycho" and is_module(m) then ours[name] = m end
  end
  ours.tycho = tycho
end

local env = {}                      -- what files are read in
for name in ([[assert error getmetatable ipairs loadstring math next pairs pcall rawequal rawget rawset select setfenv setmetatable string
    table tonumber tostring type unpack xpcall debug io os coroutine collectgarbage newproxy]]):gmatch "%S+" do env[name] = _G[name] end

-- The host's require, which marks a module while it is read, and lets the mark stand where that fails.
local function by_host(name)
  local ok, m = pcall(host_require, name)
  if ok then return m end
  loaded[name] = nil
  error(m, 0)
end
-- As require, of this library's modules.
function later.require(name)
  if not name:find "^tycho" then return by_host(name) end
  if ours[name] ~= nil then return ours[name] end
  if current() and is_module(loaded[name]) then return loaded[name] end
  local chunk
  for _, path in ipairs {name:gsub("%.", "/") .. ".lua", name:gsub("%.", "/") .. "/init.lua"} do
    local file = not chunk and io.open(root .. path, "rb")
    if file then
      chunk = assert(loadstring(file:read "*a", "@" .. named .. path))   -- errors know the library's files by their names
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
-- files: a list of {module, names}, names in one text between spaces; one with a trailing _ may go by the name without.
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
  if self.reading[module] then return end                    -- it asks for names of its own
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

-- Reads the file that has the name; all, where no list has it.
function Files:read(name)
  local module = self:of(name)
  if module then read(self, module) else self:all() end
end

-- A table that the files put their names into: what isn't in it is read.
function Files:fills(t)
  return setmetatable(t, {__index = function(_, name)
    if type(name) ~= "string" then return nil end
    self:read(name)
    return rawget(t, name)
  end})
end

return later
