-- Arguments and options of functions written in Lua: fills in defaults, and refuses an unknown name with a suggestion. Errors name the
-- user's line.
local core = require "tycho.core"
local later = require "tycho.later"
local options = {}

-- Raises an error that names the user's line, however deep the call.
function options.fail(message, ...)
  if type(message) ~= "string" then error(message, 0) end          -- an error value of the user's
  local place, name = core.where()
  if select("#", ...) > 0 then message = message:format(...) end
  if message:sub(1, #place) == place then message = message:sub(#place + 1) end             -- an inner call added it
  if name and message:sub(1, #name + 1) ~= name .. ":" then message = name .. ": " .. message end
  error(place .. message, 0)
end
local fail = options.fail

-- Writes a warning with the user's line to stderr, the first time that this name warns.
local warned = {}
function options.warn(name, message, ...)
  if warned[name] then return end
  warned[name] = true
  io.stderr:write((core.where()), name, ": ", message:format(...), "\n")
end

-- A list of values that may be nil, with their number n.
function options.pack(...) return {n = select("#", ...), ...} end

-- fn(...), within pcall. Ctrl-C while C code runs is raised at the next instruction of Lua: after a tail call in fn, that is one here, not
-- one of pcall's caller, which has something to restore.
local function same(...) return ... end
function options.run(fn, ...) return same(fn(...)) end

-- Calls fn(...), then done(), also where fn errs; gives fn's results. The caller makes done before it does what done undoes, since that may
-- run out of memory.
local function ended(done, ok, ...)
  done()
  if not ok then error((select(1, ...)), 0) end
  return ...
end
function options.finally(done, fn, ...) return ended(done, pcall(options.run, fn, ...)) end
-- Calls set(now), fn(...), then set(before), also where one of the first two errs; gives fn's results.
function options.meanwhile(set, now, before, fn, ...)
  return options.finally(function() set(before) end, function(...)
    set(now)
    return fn(...)
  end, ...)
end

-- The address of an FFI pointer or array, a number; nil for anything else.
function options.address(ptr)
  if type(ptr) ~= "cdata" then return nil end
  local ffi = require "ffi"
  local ok, address = pcall(function() return tonumber(ffi.cast("intptr_t", ffi.cast("void *", ptr))) end)
  return ok and address or nil
end

-- A method that reports a call with a dot instead of a colon. object: a name for the object in the message; is(self): whether self is one.
function options.method(who, object, name, is, f)
  return function(self, ...)
    if not is(self) then fail("%s: call it with a colon: %s:%s(...)", who, object, name) end
    return f(self, ...)
  end
end
-- Wraps all methods of a class so.
function options.colon(class, object, is)
  for name, f in pairs(class) do
    if type(f) == "function" and not name:find "^_" then
      class[name] = options.method(name, object, name, is, f)
    end
  end
end

-- The same for a class whose objects seldom get fields of the user's: a misspelled method is an error; a name that resembles none is nil.
-- elsewhere: what to do instead of methods that PyTorch has, by name.
function options.methods(class, object, is, elsewhere)
  options.colon(class, object, is)
  local names, others = {}, {}
  for name, f in pairs(class) do
    if type(f) == "function" and not name:find "^_" then names[#names + 1] = name end
  end
  setmetatable(class, {__index = function(_, k)
    if elsewhere and elsewhere[k] then fail("%s has no method '%s': %s", object, k, elsewhere[k]) end
    if type(k) ~= "string" or #k < 4 or others[k] then return nil end
    local near = core.nearest(k, names)
    if near and near:byte() == k:byte() and math.abs(#near - #k) <= 1 then
      fail("%s has no method '%s'; did you mean '%s'?", object, k, near)
    end
    others[k] = true
  end})
end

-- Raises unless the table is a list: without holes, which an unset field leaves in {a.weight, a.typo, b.weight}, and without named fields.
-- hint: where named fields belong.
function options.items(who, what, list, hint)
  local n, most = 0, 0
  for k in pairs(list) do
    if k == "n" and type(list.n) == "number" then k = 0    -- as in {n = select("#", ...), ...}
    elseif type(k) ~= "number" or k < 1 or k % 1 ~= 0 then
      fail("%s: %s can't have named fields, got '%s'%s", who, what, tostring(k), hint and ", which " .. hint or "")
    end
    if k > 0 then n, most = n + 1, math.max(most, k) end
  end
  for i = 1, n < most and most or 0 do
    if list[i] == nil then fail("%s: item %d of %s is nil", who, i, what) end
  end
  return list
end

-- "; did you mean 'that'?" for the nearest of names, a list or a table with names as keys; "" if none is near.
function options.suggest(word, names)
  local list = names
  if #names == 0 then
    list = {}
    for name in pairs(names) do if type(name) == "string" then list[#list + 1] = name end end
  end
  local near = type(word) == "string" and core.nearest(word, list)
  return near and ("; did you mean '%s'?"):format(near) or ""
end

-- Raises unless every name in given is a key of known.
function options.check(who, given, known)
  if type(given) ~= "table" then fail("%s: options must be a table, got %s", who, options.shown(given)) end
  for k in pairs(given) do
    if known[k] == nil then
      local names = {}
      for n in pairs(known) do names[#names + 1] = n end
      table.sort(names)
      local meant = options.suggest(k, names)
      fail("%s: unknown option '%s'%s", who, tostring(k), meant ~= "" and meant or
        #names > 0 and "; the options are " .. table.concat(names, ", ") or "")
    end
  end
end

options.none = setmetatable({}, {__tostring = function() return "none" end})     -- stands for an option without a default, below
-- A new table: given over defaults. An option whose default is a boolean or a number must be one. One that has no default, options.none,
-- is false unless it is given.
function options.fill(who, given, defaults)
  if given ~= nil then options.check(who, given, defaults) end
  local out = {}
  for k, default in pairs(defaults) do
    local v = given and given[k]
    if v == nil then out[k] = default ~= options.none and default
    else
      local kind = type(default)
      if kind == "boolean" and type(v) ~= kind then fail("%s: %s must be true or false, got %s", who, k, options.shown(v)) end
      if kind == "number" and (type(v) ~= kind or v ~= v) then fail("%s: %s must be a number, got %s", who, k, options.shown(v)) end
      out[k] = v
    end
  end
  return out
end

-- Whether v can only be a table of options: plain, with names.
function options.has_names(v) return type(v) == "table" and getmetatable(v) == nil and type(next(v)) == "string" end

-- v, or where it is a table of names the value of its only one: f(x, {name = v}) for f(x, v).
function options.named(who, name, v)
  if not options.has_names(v) then return v end
  options.check(who, v, {[name] = true})
  return v[name]
end

-- Raises if o, which stands behind who's last argument, is a table of options: there are none.
function options.no_more(who, o)
  if options.has_names(o) then fail("%s: unknown option '%s'; there are no options", who, (next(o))) end
end

-- Raises if the last of ..., the arguments for fn, is a table of who's own options: options come before fn.
function options.first(who, known, ...)
  local last = select("#", ...) > 0 and select(-1, ...)
  if type(last) ~= "table" or getmetatable(last) ~= nil or next(last) == nil then return end
  for k in pairs(last) do if known[k] == nil then return end end
  fail("%s: options come before the function: %s({...}, fn, ...)", who, who)
end

-- Raises, with what argument n (v) must be, unless ok.
function options.expect(who, n, v, ok, what)
  if not ok then fail("%s: argument %d must be %s, got %s", who, n, what, options.shown(v)) end
  return v
end

-- Raises unless v is a whole number, from least where that is given.
function options.whole(who, name, v, least)
  if type(v) ~= "number" or v < (least or -2 ^ 53) or v % 1 ~= 0 or v >= 2 ^ 53 then
    fail("%s: %s must be a whole number%s, got %s", who, name, least and (" from %d"):format(least) or "", options.shown(v))
  end
  return v
end

-- Raises unless v is a number, from least where that is given.
function options.number(who, name, v, least)
  if type(v) ~= "number" or v ~= v or (least and v < least) then
    fail("%s: %s must be a number%s, got %s", who, name, least and " from " .. least or "", options.shown(v))
  end
  return v
end

-- Calls fn(...), which reads or writes a file; its errors name who and the path.
function options.file(who, path, fn, ...)
  if type(path) ~= "string" then fail("%s: argument 1 (path) must be a string, got %s", who, options.shown(path)) end
  local ok, v = pcall(fn, ...)
  if not ok then
    v = tostring(options.bare(v))
    fail("%s: %s%s", who, v:find(path, 1, true) and "" or path .. ": ", v)
  end
  return v
end

---- arguments of constructors: PyTorch's positions, and names in a last table ----
local parsed = {}
-- "in, out, bias=true, eps=nil, *, mode=zeros": a name without default is required; nil: no value; names after * can't be positional.
local function parse(signature)
  local s = parsed[signature]
  if s then return s end
  s = {order = {}, names = {}, defaults = {}, known = {}, needed = {}}
  local positional = true
  for item in signature:gmatch "[^,%s]+" do
    local name, default = item:match "^([%w_]+)=(.*)$"
    name = name or item
    if item == "*" then positional = false
    else
      if positional then s.order[#s.order + 1] = name end
      if default == "true" or default == "false" then s.defaults[name] = default == "true"
      elseif default and default ~= "nil" then s.defaults[name] = tonumber(default) or default
      elseif not default then s.needed[#s.needed + 1] = name end
      s.known[name], s.names[#s.names + 1] = true, name
    end
  end
  parsed[signature] = s
  return s
end

function options.defaults(signature) return parse(signature).defaults end
function options.names(signature) return parse(signature).names end

-- Whether the n-th and last argument is a table of options, rather than a value: a tensor, a module, a shape, a callable, a list.
local function is_options(v, n, s)
  if type(v) ~= "table" or core.is_tensor(v) or rawget(v, "_parts") then return false end
  local meta = getmetatable(v)
  if meta and (meta.__call or meta.__eq) then return false end
  if meta then                             -- an options table may have a metatable; an object has other fields
    for k in pairs(v) do if not s.known[k] then return false end end
  end
  if next(v) == nil then return n > #s.needed end        -- else it is an empty list for a required argument
  return type(next(v)) == "string"
end

-- A table of the arguments by name.
function options.arguments(who, signature, ...)
  local s, n, out, given, named = parse(signature), select("#", ...), {}, {}, nil
  while n > 0 and select(n, ...) == nil do n = n - 1 end
  if n > 0 and is_options((select(n, ...)), n, s) then
    named = select(n, ...)
    n = n - 1
  end
  if n > #s.order then fail("%s: at most %d argument%s, got %d", who, #s.order, #s.order == 1 and "" or "s", n) end
  for k, v in pairs(s.defaults) do out[k] = v end
  for i = 1, n do
    local v = select(i, ...)
    if v ~= nil then out[s.order[i]], given[s.order[i]] = v, true end
  end
  if named then options.check(who, named, s.known) end
  for k, v in pairs(named or {}) do
    if given[k] then fail("%s: argument '%s' is given twice", who, k) end
    out[k] = v
  end
  for _, k in ipairs(s.needed) do
    if out[k] == nil then fail("%s: argument '%s' is missing", who, k) end
  end
  for k, v in pairs(s.defaults) do
    if type(v) == "boolean" and type(out[k]) ~= "boolean" then
      fail("%s: %s must be true or false, got %s", who, k, options.shown(out[k]))
    end
  end
  return out
end

-- The seed and offset of a generator's state, which get_rng_state gives as a list; or of two numbers.
function options.rng_state(state, offset)
  local seed = state
  if type(state) == "table" and not core.is_tensor(state) then seed, offset = state[1], state[2] end
  if type(seed) ~= "number" or (offset ~= nil and type(offset) ~= "number") then
    fail("set_rng_state: a list of a seed and an offset is needed, as get_rng_state gives it, got %s", options.shown(state))
  end
  return seed, offset or 0
end

-- A value as errors show it: numbers, strings and booleans themselves, of others the kind.
function options.shown(v)
  if type(v) == "string" then return "'" .. v .. "'" end
  if type(v) == "number" or type(v) == "boolean" or v == nil then return tostring(v) end
  return "a " .. (core.is_tensor(v) and "tensor" or core.is_module(v) and "module" or type(v))
end

-- A misspelled name in the table is an error with the nearest name. place: a module that the name may belong to instead; elsewhere: names
-- that PyTorch programs look for here, with the replacement. late: names whose files load when first used: each a module or {module}, the
-- module's field of that name; a file may also set the name itself. find(t, name): makes other values on first use, or gives nil.
function options.told(t, what, place, elsewhere, late, find)
  return setmetatable(t, {__index = function(_, k)
    if type(k) ~= "string" then return nil end
    local from, found = late and late[k], nil
    if from then
      local m = later.require(type(from) == "table" and from[1] or from)
      found = rawget(t, k)
      if found == nil then found = type(from) == "table" and m[k] or m end
    elseif find then found = find(t, k) end
    if found ~= nil then
      rawset(t, k, found)
      return found
    end
    if elsewhere and elsewhere[k] then fail("%s has no '%s': %s", what, k, elsewhere[k]) end
    local there, v = pcall(function() return place and later.require(place)[k] end)
    if there and v ~= nil then fail("%s has no '%s': it is %s.%s", what, k, place, k) end
    local names = {}
    for _, of in ipairs {t, late} do for name in pairs(of) do names[#names + 1] = name end end
    fail("%s has no '%s'%s", what, k, options.suggest(k, names))
  end})
end

-- An error's text without the place (the user's line, or the library's) where it was raised.
function options.bare(e)
  if type(e) ~= "string" then return e end
  local place = core.where()
  while true do
    local shorter = place ~= "" and e:sub(1, #place) == place and e:sub(#place + 1) or e:match "^[^\n:]*%.lua:%d+: (.*)$"
    if not shorter then return e end
    e = shorter
  end
end

return options
