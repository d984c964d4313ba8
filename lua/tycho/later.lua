-- Files that are read when a name of theirs is first asked for: a program reads, keeps and has its collector walk only what it uses.
--
-- Idea: a list says which names a file gives; reading it puts them where they belong. Invariant: lists only say where to look first. A name
-- that none has is looked for in every file before it counts as missing; spec/later_spec.lua compares lists and files.
local Later = {}
Later.__index = Later

-- files: a list of {module, names}, names in one text between spaces; one with a trailing _ may go by the name without.
local function later(files)
  for _, file in ipairs(files) do file[2] = " " .. file[2]:gsub("%s+", " ") .. " " end
  return setmetatable({files = files, reading = {}}, Later)
end

-- The module whose list has the name, or nil.
function Later:of(name)
  local whole, plain = " " .. name .. " ", name:sub(-1) == "_" and " " .. name:sub(1, -2) .. " "
  for _, file in ipairs(self.files) do
    if file[2]:find(whole, 1, true) or plain and file[2]:find(plain, 1, true) then return file[1] end
  end
end

local function read(self, module)
  if package.loaded[module] ~= nil or self.reading[module] then return end      -- one that is being read asks for names of its own
  self.reading[module] = true
  local ok, err = pcall(require, module)
  self.reading[module] = nil
  if ok then return end
  package.loaded[module] = nil                               -- require's mark of a failure: it may be read yet
  error(err, 0)
end

-- Reads all files.
function Later:all()
  for _, file in ipairs(self.files) do read(self, file[1]) end
end

-- Reads the file that has the name; all, where no list has it.
function Later:read(name)
  local module = self:of(name)
  if module then read(self, module) else self:all() end
end

-- A table that the files put their names into: what isn't in it is read.
function Later:fills(t)
  return setmetatable(t, {__index = function(_, name)
    if type(name) ~= "string" then return nil end
    self:read(name)
    return rawget(t, name)
  end})
end

return later
