-- Arguments of a compiled function that are tables: of tensors, such as a batch with named fields, or of options.
--
-- Idea: options are compared by what they hold. Tensors in tables become separate arguments, after a text that says how the tables are
-- built. What is compiled is a function that builds the tables again and calls fn; the text is one more value by which variants differ.
-- Invariant: changes that fn makes to a table reach the caller's table.
local core = require "tycho.core"
local is_module = require("tycho.nn.module").is_module

local tables = {}

local KEYS = {string = true, number = true, boolean = true}
local MOST = 64                                          -- different table structures that one function may have
local plain = require("tycho.tree").is_plain

-- Whether a plain table holds a tensor, at any depth.
function tables.hold_tensors(v, seen)
  if not plain(v) or (seen and seen[v]) then return false end
  seen = seen or {}
  seen[v] = true
  for _, x in pairs(v) do if core.is_tensor(x) or tables.hold_tensors(x, seen) then return true end end
  return false
end

-- What tells a plain table of options from others: its numbers, texts, booleans and tables of such, as a copy. nil: it is no such table, or
-- large.
local LARGE = 64
local function content(v, count)
  local out = {}
  for k, x in pairs(v) do
    count.n = count.n + 1
    if not KEYS[type(k)] or count.n > LARGE then return nil end
    if plain(x) then x = content(x, count) elseif not KEYS[type(x)] then x = nil end
    if x == nil then return nil end
    out[k] = x
  end
  return out
end
function tables.content(v) return plain(v) and content(v, {n = 0}) or nil end

-- Whether an argument that is no tensor is as it was; held: its content then. Where fn is called again (not trusting), the ops that use a
-- number compare it.
function tables.same_value(was, now, held, trusting)
  if type(was) == "number" and type(now) == "number" and not trusting then return true end
  if (not held or not trusting) and (rawequal(was, now) or (was ~= was and now ~= now)) then return true end
  if not held or not plain(now) then return false end
  for k, x in pairs(now) do if not tables.same_value(held[k], x, plain(held[k]) and held[k] or nil, trusting) then return false end end
  for k in pairs(held) do if now[k] == nil then return false end end
  return true
end

-- Why a replay that doesn't call fn can't do what fn did with the tables of options among args (contents: what they held), or give its
-- results; or nil.
function tables.refused(contents, args, results)
  for k = 1, results.n do
    local t = results[k]
    if type(t) == "table" and getmetatable(t) ~= nil and not is_module(t) then
      for _, x in pairs(t) do if core.is_tensor(x) then return "a result is a table with a metatable" end end
    end
  end
  for i, held in pairs(contents) do
    if not tables.same_value(nil, args[i], held, true) then return "an argument is a table that the function changes" end
    for k = 1, results.n do if rawequal(results[k], args[i]) then return "a result is a table that is an argument" end end
  end
end

-- Appends v's leaves to flat and its structure to text; gives the structure as a tree: {} or {keys=, items=}. nil: text can't identify it.
local function take_apart(v, flat, text, seen)
  if not plain(v) then
    flat.n = flat.n + 1
    flat[flat.n] = v
    text[#text + 1] = "."
    return {}
  end
  if seen[v] then return nil end
  seen[v] = true
  local keys, items, name = {}, {}, {}
  for k in pairs(v) do
    if not KEYS[type(k)] then return nil end
    keys[#keys + 1] = k
    local s = type(k) == "number" and ("%.17g"):format(k) or tostring(k)
    name[k] = ("%s%d:%s"):format(type(k):sub(1, 1), #s, s)
  end
  table.sort(keys, function(a, b) return name[a] < name[b] end)
  text[#text + 1] = "{"
  for i, k in ipairs(keys) do
    text[#text + 1] = name[k]
    items[i] = take_apart(v[k], flat, text, seen)
    if not items[i] then return nil end
  end
  text[#text + 1] = "}"
  return {keys = keys, items = items}
end

local function built(tree, flat, at)
  if not tree.keys then return flat[at], at + 1 end
  local out = {}
  for i, k in ipairs(tree.keys) do out[k], at = built(tree.items[i], flat, at) end
  return out, at
end

-- Writes what fn changed in a rebuilt table to the caller's table; calls wrote for each change.
local function give_back(tree, made, from, flat, at, wrote)
  if not tree.keys then return at + 1 end
  local known = {}
  for i, k in ipairs(tree.keys) do
    known[k] = true
    local item = tree.items[i]
    if item.keys and plain(made[k]) and plain(from[k]) then at = give_back(item, made[k], from[k], flat, at, wrote)
    else
      if item.keys or not rawequal(made[k], flat[at]) then
        from[k] = made[k]
        wrote()
      end
      local _, past = built(item, flat, at)
      at = past
    end
  end
  for k, x in pairs(made) do
    if not known[k] then
      from[k] = x
      wrote()
    end
  end
  return at
end

-- For a call's arguments {n=}: the structure text and the leaves. nil: no argument is a table of tensors, or a table occurs twice. trees:
-- the tree for each text.
function tables.apart(args, trees)
  local any = false
  for i = 1, args.n do any = any or tables.hold_tensors(args[i]) end
  if not any then return nil end
  local flat, text, list, seen = {n = 0}, {}, {}, {}
  for i = 1, args.n do
    list[i] = take_apart(args[i], flat, text, seen)
    if not list[i] then return nil end
  end
  text = table.concat(text)
  if not trees[text] then
    trees.n = (trees.n or 0) + 1
    if trees.n > MOST then return nil end
    trees[text] = list
  end
  return text, flat
end

-- fn for arguments that were taken apart. now(): the arguments as the caller gave them; wrote(): called when fn changes one of the tables,
-- or gives it back.
function tables.together(fn, trees, now, wrote)
  return function(text, ...)
    local list, flat, args, at, given = trees[text], {...}, {}, 1, now()
    for i, tree in ipairs(list) do args[i], at = built(tree, flat, at) end
    local function ended(ok, ...)
      local from, out, n = 1, {...}, select("#", ...)
      for i, tree in ipairs(list) do
        from = give_back(tree, args[i], given[i], flat, from, wrote)
        for k = 1, n do
          if tree.keys and rawequal(out[k], args[i]) then
            out[k] = given[i]
            wrote()                        -- a replay without fn would give it as it was
          end
        end
      end
      if not ok then error((select(1, ...)), 0) end
      return unpack(out, 1, n)
    end
    return ended(pcall(fn, unpack(args, 1, #list)))
  end
end

return tables
