-- Writes what follows from the op table: docs/ops.md, and LuaCATS stubs for editors (docs/tycho.d.lua).
--   luajit scripts/docs.lua [--check]     --check: only says (by its exit code) whether the files are up to date
local here = arg[0]:match("^(.*)/scripts/") or "."
package.path = here .. "/lua/?.lua;" .. here .. "/lua/?/init.lua;" .. package.path
package.cpath = here .. "/build/?.so;" .. here .. "/build-lint/?.so;" .. package.cpath
local core = require "tycho.core"
local tycho = require "tycho"
local functional = require "tycho.functional"

local titles = {pointwise = "Pointwise", reduce = "Reductions", reduce_index = "Reductions", scan = "Scans", view = "Views", copy = "Copies", cat = "Copies",
  fill = "Creation", random = "Random numbers", matmul = "Matrix products", softmax = "Softmax", index = "Indices", sort = "Sorting", resize = "Resizing", attention = "Attention", conv = "Convolution and pooling",
  pool = "Convolution and pooling", norm = "Normalisation", loss = "Losses", optim = "Optimizers"}
local order = {"Pointwise", "Reductions", "Scans", "Views", "Copies", "Creation", "Random numbers", "Matrix products", "Softmax", "Indices", "Sorting", "Convolution and pooling", "Made of ops"}
local groups = {}
local function put(title, row)
  groups[title] = groups[title] or {}
  table.insert(groups[title], row)
end
for _, op in ipairs(core.op_table()) do
  if op.domain ~= "internal" then
    local only = rawget(tycho, op.name) == nil    -- users have the in-place form alone
    put(titles[op.class], {name = only and op.name .. "_" or op.name, signature = op.signature, doc = op.doc, results = op.results, inplace = op.inplace and not only, gradient = op.differentiable})
  end
end
for _, f in ipairs(functional.signatures) do put("Made of ops", {name = f.name, signature = f.signature, doc = f.doc, results = 1, inplace = f.inplace, gradient = true}) end

local md = {"# Ops", "", "Made from `src/core/ops.def` and `lua/tycho/functional.lua` by `make docs`; edit those.", "",
  "Each is a function of `tycho` and, where its first argument is a tensor, a method. Arguments stand in order or, by name, in a last table;",
  "`?` may be left out, `=` gives the default, those after `*` go by name only. \"in place\": there is a form with a trailing `_`.", ""}
local cats = {"---@meta", "-- Made by make docs.", "---@class tycho.Tensor", "local Tensor = {}", "---@class tycho", "local tycho = {}", ""}
local lua_type = {operand = "tycho.Tensor|number", tensors = "tycho.Tensor[]", int = "integer", number = "number", bool = "boolean", dim = "integer", dims = "integer|integer[]",
  sizes = "integer|integer[]", ints = "integer[]", pair = "integer|integer[]", dtype = "string", enum = "string", string = "string", device = "string", any = "any"}
for _, title in ipairs(order) do
  if groups[title] then
    table.insert(md, "## " .. title .. "\n\n| op | arguments | gives | |\n|---|---|---|---|")
    for _, r in ipairs(groups[title]) do
      local notes = {}
      if r.inplace then notes[#notes + 1] = "in place" end
      if not r.gradient then notes[#notes + 1] = "no gradient" end
      table.insert(md, ("| `%s` | `%s` | %s | %s |"):format(r.name, r.signature, (r.doc:gsub("|", "\\|")), table.concat(notes, ", ")))
      local names, fields, flat = {}, {}, r.signature:gsub("%b()", "")
      for p in flat:gmatch("[^,]+") do
        local name, rest = p:match("^%s*([%w_]+)(.*)$")
        if name then
          names[#names + 1] = name
          local t = rest:match(":(%a+)")
          fields[#fields + 1] = ("---@param %s%s %s"):format(name, rest:find("[?=]") and "?" or "", lua_type[t] or "tycho.Tensor")
        end
      end
      for _, owner in ipairs {"tycho", "Tensor"} do
        if owner == "tycho" or not r.signature:match("^size") then
          table.insert(cats, "--- " .. r.doc)
          for _, f in ipairs(fields) do table.insert(cats, f) end
          table.insert(cats, "---@return tycho.Tensor" .. (r.results > 1 and ", tycho.Tensor" or ""))
          table.insert(cats, ("function %s.%s(%s) end\n"):format(owner, r.name, table.concat(names, ", ")))
        end
      end
    end
    table.insert(md, "")
  end
end
table.insert(cats, "return tycho")

local check, old = arg[1] == "--check", false
for name, lines in pairs {["docs/ops.md"] = md, ["docs/tycho.d.lua"] = cats} do
  local text, path = table.concat(lines, "\n") .. "\n", here .. "/" .. name
  if check then
    local f = io.open(path)
    old = old or not f or f:read("*a") ~= text
    if f then f:close() end
  else
    local f = assert(io.open(path, "w"))
    f:write(text)
    f:close()
  end
end
os.exit(old and 1 or 0)
