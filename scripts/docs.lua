-- Generates, from the op table and the comments in lua/tycho (reference.lua): docs/ops.md, docs/reference.md, docs/coverage.md, and
-- docs/tycho.d.lua, LuaCATS stubs for editors.
--   luajit scripts/docs.lua [--check]     --check: writes nothing; fails if a file is old or a public function has no comment
local here = arg[0]:match("^(.*)/scripts/") or "."
package.path = here .. "/lua/?.lua;" .. here .. "/lua/?/init.lua;" .. package.path
package.cpath = here .. "/build/?.so;" .. here .. "/build-lint/?.so;" .. package.cpath
local reference = dofile(here .. "/scripts/reference.lua")
reference.collect(here)
local core = require "tycho.core"
local tycho = require "tycho"
local functional = require "tycho.functional"

-- The sections of docs/ops.md, each with the classes of ops that it has.
local order, titles = {}, {}
for title, classes in ([[Pointwise: pointwise; Reductions: reduce reduce_index; Scans: scan; Views: view; Copies: copy cat; Creation: fill;
    Random numbers: random; Matrix products: matmul; Softmax: softmax; Indices: index; Sorting: sort; Resizing: resize;
    Attention: attention; Convolution and pooling: conv pool; Normalisation: norm; Losses: loss; Made of ops:;]]):gmatch
    "%s*([^:]+):([^;]*);" do
  order[#order + 1] = title
  for class in classes:gmatch "%S+" do titles[class] = title end
end
local groups = {}
local function put(title, row)
  groups[title] = groups[title] or {}
  table.insert(groups[title], row)
end
local alone = {}                                             -- in-place forms of ops that users have in no other form
for _, op in ipairs(core.op_table()) do
  if op.domain ~= "internal" then
    local only = rawget(tycho, op.name) == nil or op.class == "random" and functional.functions[op.name] ~= nil
    if only then alone[op.name .. "_"] = true end
    if not titles[op.class] then error("no section of docs/ops.md has " .. op.name .. ", of class " .. op.class) end
    put(titles[op.class], {name = only and op.name .. "_" or op.name, signature = op.signature, doc = op.doc, results = op.results,
      inplace = not only and core.methods[op.name .. "_"] ~= nil, gradient = op.differentiable, dtype = op.dtype, autocast = op.autocast})
  end
end
for _, f in ipairs(functional.signatures) do
  put("Made of ops", {name = f.name, signature = f.signature, doc = f.doc, results = 1, gradient = true,
    inplace = core.methods[f.name .. "_"] ~= nil and not alone[f.name .. "_"]})
end

local md = {"# Ops", "", "Made from `src/core/ops.def` and `lua/tycho/functional/` by `make docs`; edit those.", "",
  "Each op is a function of `tycho`. If its first argument is a tensor, it is a method too. Arguments are given in order, or by name in a table that comes last.",
  "In the column of arguments, `?` marks those that may be left out, `=` gives the default, and those after `*` are given by name only. A parameter without a",
  "type is a tensor; an operand is a tensor or a number.",
  "",
  "Shapes: pointwise ops broadcast their operands. A reduction removes the dims that it is given (all dims, if none is given), or keeps them with size 1 under",
  "`keepdim`. Other ops say what shape they give. Errors are Lua errors: one sentence that names the op, the argument, what was expected and what was passed.",
  "",
  "The last column:",
  "",
  "- The dtype of a pointwise result. *same*: the type to which the operands promote (of `where`, the last two). *floating*: the same, but integers become",
  "  float32. *first*: the first operand's. *whole*: the same, but floating operands are an error. Sums and products of integers are int64; means take floating operands only.",
  "- *in place*: there is a form with a trailing `_`.",
  "- Under autocast. *16 bits*: floating operands are cast to autocast's dtype. *float32*: they are cast to float32. Otherwise they promote.",
  ""}
local lua_type = {operand = "tycho.Tensor|number", tensors = "tycho.Tensor[]", int = "integer", number = "number", bool = "boolean",
  dim = "integer", dims = "integer|integer[]", sizes = "integer|integer[]", ints = "integer[]", single = "integer|integer[]", pair = "integer|integer[]",
  triple = "integer|integer[]", dtype = "string", enum = "string", string = "string", device = "string", any = "any"}
for _, title in ipairs(order) do
  if groups[title] then
    table.insert(md, "## " .. title .. "\n\n| op | arguments | gives | |\n|---|---|---|---|")
    for _, r in ipairs(groups[title]) do
      local notes = {}
      if r.dtype then notes[#notes + 1] = r.dtype end
      if r.inplace then notes[#notes + 1] = "in place" end
      if r.autocast == "16 bits" or r.autocast == "float32" then notes[#notes + 1] = "autocast " .. r.autocast end
      if not r.gradient then notes[#notes + 1] = "no gradient" end
      local others = reference.aliases[r.name] or {}
      table.sort(others)
      local shown = "`" .. table.concat({r.name, unpack(others)}, "`, `") .. "`"
      table.insert(md, ("| %s | `%s` | %s | %s |"):format(shown, r.signature, (r.doc:gsub("|", "\\|")), table.concat(notes, ", ")))
    end
    table.insert(md, "")
  end
end
---- docs/reference.md ----
local function cell(s) return (s:gsub("|", "\\|")) end
local function prose(s) return (s:gsub("[*<]", {["*"] = "\\*", ["<"] = "&lt;"})) end
local links = {}
for i, section in ipairs(reference.sections) do
  links[i] = ("[%s](#%s)"):format(section[1], section[1]:lower():gsub("[^%w ]", ""):gsub(" ", "-"))
end
local ref = {"# Reference", "",
  "Made from the comments in `lua/tycho` by `make docs`; ops, which are functions and methods of tensors, are in [ops.md](ops.md).",
  "Arguments are given in order or by name, in a table that comes last; `=` gives the default, `?` may be left out, those after `*` go by name only.",
  "`nn.summary` is `tycho.nn.summary`; `Module:to` is a method of modules, `x:item` of tensors. Other names follow the first one.", "",
  table.concat(links, " · "), ""}
-- path: rows take their texts from the entries of this path, which then stand in the table alone.
local function rows(head, list, path)
  table.insert(ref, "| " .. head .. " |\n|" .. ("---|"):rep(select(2, head:gsub("|", "")) + 1))
  for _, row in ipairs(list) do
    local text = row.does or ""
    for _, e in ipairs(path and reference.entries or {}) do
      for _, n in ipairs(e.names) do
        if n.path == path and n.name == row.name then text, e.tabled = prose(e.text), true end
      end
    end
    local args = row.args and (row.args ~= "" and "`" .. cell(row.args) .. "` | " or " | ") or ""
    table.insert(ref, ("| `%s` | %s%s |"):format(row.name, args, cell(text)))
  end
  table.insert(ref, "")
end
local BEFORE = {                                             -- what a section begins with
  Tensors = function()
    local list = {}
    for i, f in ipairs(reference.fields) do list[i] = {name = "x." .. f[1], does = f[3]} end
    rows("field | ", list)
  end,
  ["Modes and settings"] = function()
    local list = {}
    for i, f in ipairs(reference.switches) do list[i] = {name = "tycho." .. f[1], does = f[2]} end
    rows("switch, true or false | ", list)
  end,
  Layers = function()
    table.insert(ref, "Every layer also takes `{dtype=, device=}` for its parameters; `layer:reset_parameters()` draws these anew.\n" ..
      "Layers are called with `(x)` unless said. What takes `inplace` gives a new result all the same.\n" ..
      "The last column names the function that a layer calls; layers without one are below the table.\n")
    rows("layer | arguments | ", reference.layers)
  end,
  Optimizers = function()
    table.insert(ref, "`optim.SGD(params, {lr = 0.1})`, or `optim.SGD(params, 0.1)`: params is a list of parameters, a list of such\n" ..
      "lists, or a list of groups `{params = list, lr = ...}`. `master_weights`: 16-bit parameters are copies of float32 ones in the state.\n")
    rows("optimizer | options | ", reference.optimizers, "optim")
  end,
  ["Learning rates"] = function()
    rows("scheduler | arguments after the optimizer | the rate", reference.schedulers, "optim.lr_scheduler")
  end,
}
for _, section in ipairs(reference.sections) do
  local files = {}
  for i = 2, #section do files[section[i]] = true end
  table.insert(ref, "## " .. section[1] .. "\n")
  if BEFORE[section[1]] then BEFORE[section[1]]() end
  for _, e in ipairs(reference.entries) do
    if files[e.file] and not e.tabled then
      local first = e.by or e.names[1]
      local shown = {"`" .. reference.call_of(e, first) .. "`"}
      for _, n in ipairs(e.names) do if n ~= first then shown[#shown + 1] = "`" .. n.shown .. "`" end end
      table.insert(ref, ("- %s: %s"):format(table.concat(shown, ", "), prose(e.text)))
    end
  end
  table.insert(ref, "")
end

---- stubs for editors: LuaCATS ----
local cats = {"---@meta", "-- Made by make docs.", ""}
local function say(...) table.insert(cats, (select("#", ...) > 1 and string.format(...) or (...))) end
say "---@class tycho.Tensor"
for _, f in ipairs(reference.fields) do say("---@field %s %s %s", f[1], f[2], f[3]) end
for _, op in ipairs {"add", "sub", "mul", "div", "mod", "pow"} do say("---@operator %s(any): tycho.Tensor", op) end
say "---@operator unm: tycho.Tensor\n---@operator len: integer\nlocal Tensor = {}\n"
say "---@class tycho"
local values = {}
for k, v in pairs(tycho) do
  if (type(v) == "string" or type(v) == "number") and not k:find "^_" then values[#values + 1] = ("---@field %s %s"):format(k, type(v)) end
end
table.sort(values)
say(table.concat(values, "\n"))
say "local tycho = {}\n\n-- What functions give: methods by the names in reference.md.\nlocal classes = {}\n"

local KEYWORDS = {["end"] = true, ["repeat"] = true, ["function"] = true, ["in"] = true, ["and"] = true, ["or"] = true, ["not"] = true}
-- The names of a stub's parameters and their annotations, from a signature such as "a, b=1, c:int?, *, d=, {e=}"; arguments that go by
-- name become a last table. usual: the type of parameters without one.
local function parameters(args, usual)
  local names, notes, depth, item, positional, by_name = {}, {}, 0, "", true, false
  for c in (args .. ","):gmatch "." do
    if c:find "[%({%[]" then depth = depth + 1 elseif c:find "[%)}%]]" then depth = depth - 1 end
    if c ~= "," or depth > 0 then item = item .. c
    else
      item = item:match "^%s*(.-)%s*$"
      local name = item:match "^[%a_][%w_]*"
      if item == "*" then positional = false
      elseif item:find "^{" or name and not positional then by_name = true
      elseif item:find "^%.%.%." then names[#names + 1] = "..."
      elseif name and not KEYWORDS[name] and names[#names] ~= "..." then
        local optional, kind = item:find "[=?]", item:match "^[%w_]+:(%a+)"
        local shown = lua_type[kind] or usual
        if optional and shown ~= "any" then shown = shown .. "|table" end
        names[#names + 1] = name
        notes[#notes + 1] = ("---@param %s%s %s"):format(name, optional and "?" or "", shown)
      end
      item = ""
    end
  end
  if by_name and names[#names] ~= "..." then
    names[#names + 1], notes[#notes + 1] = "options", "---@param options? table"
  end
  return names, notes
end
-- Writes a function's stub. owner: such as "tycho.nn" or "Tensor:".
local function stub(owner, name, args, text, gives, usual)
  local names, notes = parameters(args, usual or "any")
  say("--- " .. (args ~= "" and "`(" .. args .. ")` " or "") .. text)
  for _, note in ipairs(notes) do say(note) end
  if gives then say("---@return " .. gives) end
  local list = table.concat(names, ", ")
  if KEYWORDS[name] then say(('%s["%s"] = function(%s) end\n'):format(owner:gsub(":$", ""), name, list))
  else say(("function %s%s(%s) end\n"):format(owner:find ":$" and owner or owner .. ".", name, list)) end
end
local places = {}
local function place(path)                                   -- writes a table within tycho; path: what follows "tycho."
  if path == "" or places[path] then return end
  places[path] = true
  place(path:match "^(.*)%.[^.]*$" or "")
  say("tycho." .. path .. " = {}")
end

-- Ops, their in-place forms, other names of both.
for _, path in ipairs(functional.places) do place(path) end
for _, title in ipairs(order) do
  for _, r in ipairs(groups[title] or {}) do
    local names, gives = {r.name}, "tycho.Tensor" .. (r.results > 1 and ", tycho.Tensor" or "")
    for _, other in ipairs(reference.aliases[r.name] or {}) do names[#names + 1] = other end
    for _, name in ipairs(names) do
      for _, form in ipairs {name, r.inplace and name .. "_" or nil} do
        if form:find "%." or rawget(tycho, form) then stub("tycho", form, r.signature, r.doc, gives, "tycho.Tensor") end
        if not form:find "%." and core.methods[form] then
          stub("Tensor:", form, r.signature:gsub("^[^,]*,?%s*", ""), r.doc, gives, "tycho.Tensor")
        end
      end
    end
  end
end
local paths = {}
for path in pairs(reference.tables) do paths[#paths + 1] = path end
table.sort(paths)
for _, path in ipairs(paths) do
  local of = reference.tables[path]
  place(path:match "^(.*)%.[^.]*$" or "")
  place(of)
  say("tycho.%s = tycho.%s", path, of)
end
place "nn"
place "nn.functional"
local names = {}
for name in pairs(tycho.nn.functional) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local f = tycho.nn.functional[name]
  local same = rawget(tycho, name) and name or core.methods[name] == f and name
  for other, g in pairs(name == "unfold" and functional.functions or {}) do if g == f then same = other end end
  say("tycho.nn.functional.%s = %s", name, rawget(tycho, same or "") and "tycho." .. same or "Tensor." .. (same or name))
end
say ""

-- Classes, then all that reference.md has.
say "---@class tycho.nn.Module\ntycho.nn.Module = {}\n"
local owners = {Tensor = "Tensor:", Module = "tycho.nn.Module:"}
local made = {}                                              -- name of a function -> the class that it gives
for _, c in ipairs(reference.classes()) do
  if not owners[c[1]] then
    say("---@class tycho.%s\nclasses.%s = {}\n", c[1], c[1])
    owners[c[1]], made[c[1]] = "classes." .. c[1] .. ":", "tycho." .. c[1]
  end
end
local function module(path, name, args, text)                -- writes a class of modules
  if owners[name] then return end
  local list, full = {}, path .. "." .. name
  for _, n in ipairs((parameters(args, "any"))) do list[#list + 1] = n == "..." and "...: any" or n .. "?: any" end
  place(path)
  say("--- " .. (args ~= "" and "`(" .. args .. ")` " or "") .. text)
  say("---@class tycho.%s: tycho.nn.Module\n---@overload fun(%s): tycho.%s\ntycho.%s = {}\n", full, table.concat(list, ", "), full, full)
  owners[name] = "tycho." .. full .. ":"
end
local function arguments_of(e)                               -- those of the entry's comment, else of the source
  local call = e.by and e.by.call or ""
  return call:match "%((.*)%)$" or call:match "({.*})$" or e.args or ""
end
for _, l in ipairs(reference.layers) do module("nn", l.name, l.args, l.does) end
for _, e in ipairs(reference.entries) do
  for _, n in ipairs(e.kind == "class" and e.names or {}) do module(n.path, n.name, arguments_of(e), e.text) end
end
for _, e in ipairs(reference.entries) do
  local args = arguments_of(e)
  for _, n in ipairs(e.names) do
    if n.class then stub(owners[n.class], n.name, args, e.text)
    elseif e.kind ~= "class" then
      place(n.path)
      local gives = made[n.name] or n.path == "distributions" and e.kind == "object" and "tycho.Distribution"
      for _, o in ipairs(reference.optimizers) do
        if n.path == "optim" and o.name == n.name then args, gives = "params, {" .. o.args .. "}", "tycho.Optimizer" end
      end
      for _, o in ipairs(reference.schedulers) do
        if n.path == "optim.lr_scheduler" and o.name == n.name then args, gives = "optimizer, " .. o.args, "tycho.Scheduler" end
      end
      stub("tycho" .. (n.path == "" and "" or "." .. n.path), n.name, args, e.text, gives or nil)
    end
  end
end
say "return tycho"

---- coverage: PyTorch's names beside Tycho's ----
-- Why a name is left out, by pattern; the rest are plain gaps.
local reasons = {
  {"another dtype or storage: quantized, sparse, complex, nested", {"quantiz", "^q_", "^int_repr", "^dequantize", "fbgemm", "sparse",
    "^coalesce", "^is_coalesced", "^indices$", "^values$", "^crow", "^ccol", "^row_indices", "^col_indices", "^to_sparse", "^to_dense$",
    "complex", "^real$", "^imag$", "^conj", "^is_conj", "^resolve_", "^view_as_real", "^angle$", "^polar$", "^isreal$", "nested", "^smm$",
    "^sspaddmm$", "^hspmm$", "^saddmm", "^dsmm$", "mkldnn", "^int%d", "^chalf$", "^cdouble$", "^cfloat$", "^is_neg$"}},
  {"linear algebra and transforms of signals", {"^linalg", "^cholesky", "^lu", "^svd", "^qr$", "^eig", "^symeig", "^lstsq", "^det$",
    "^logdet", "^slogdet", "^inverse$", "^pinverse", "^solve", "^triangular_solve", "^lobpcg", "^pca_lowrank", "^svd_lowrank", "^geqrf",
    "^orgqr", "^ormqr", "^matrix_exp", "^mvlgamma", "^fft", "^ifft", "^rfft", "^irfft", "^stft", "^istft", "window$", "^trapz$",
    "^trapezoid$", "^cumulative_trapezoid$", "^gradient$", "^nuclear", "^frobenius"}},
  {"special functions", {"gamma", "bessel", "^airy", "polynomial", "^frexp$", "^nextafter"}},
  {"functions and base classes of the recurrent layers, which are in nn", {"lstm", "LSTM", "^gru", "^GRU", "rnn", "RNN"}},
  {"three-dimensional layers", {"3d$", "3d_with_indices$", "3D$", "[Vv]olumetric"}},
  {"internal to PyTorch: names of dims, names for compilers and devices", {"named", "^names$", "^refine_names", "^rename", "^align_",
    "^has_names", "^unsafe_", "^batch_norm_", "^native_", "cudnn", "miopen", "mps", "^ipu", "^xpu", "^hpu", "^mtia", "^vulkan", "_copy$",
    "^sym_", "^fused_moving", "^fake_quant", "^_", "^storage", "^untyped_storage", "^data_ptr$", "^share_memory", "^is_shared",
    "^is_set_to", "^set_$", "^resize", "^module_load", "^apply_$", "^map", "^record_stream", "^reinforce", "^register_post", "^backward$",
    "^is_inference", "^is_signed", "^is_nonzero", "^get_device", "^element_size", "^const_data", "^dim_order", "^detach_$",
    "^layer_stack", "^group_norm_", "^constant_pad", "^feature_", "has_torch_function", "^handle_torch", "^boolean_dispatch", "assert",
    "^multi_head_attention_forward", "^embedding_renorm", "^type", "^nelement$", "^ndimension$", "^cpu$", "^cuda$"}},
}
local function reason_of(name)
  for i, r in ipairs(reasons) do
    for _, p in ipairs(r[2]) do if name:find(p) then return i end end
  end
  return #reasons + 1
end
local spaces = {
  {"torch", tycho}, {"Tensor", core.methods}, {"nn.functional", tycho.nn.functional}, {"linalg", tycho.linalg}, {"fft", tycho.fft},
  {"special", tycho.special}, {"nn", tycho.nn}, {"optim", tycho.optim}, {"optim.lr_scheduler", tycho.optim.lr_scheduler}}
-- PyTorch's names that have another name or form here.
local otherwise = {arange = "range", ["where"] = "where", long = "long", ["repeat"] = "tile", stride = "stride",
  is_tensor = "is_tensor", requires_grad_ = "requires_grad_"}
local cover = {"# Coverage", "",
  "PyTorch's functions, methods, layers and optimizers (`docs/torch_names.txt`, made by `scripts/torch_names.py`) beside Tycho's. Made by `make docs`.", ""}
for _, space in ipairs(spaces) do
  local have, lack, total = {}, {}, 0
  for line in io.lines(here .. "/docs/torch_names.txt") do
    local where, name = line:match("^(%S+) (%S+)$")
    if where == space[1] then
      total = total + 1
      local found, there = pcall(function() return space[2][name] end)                -- some are loaded when first named
      local here_otherwise = otherwise[name] and rawget(space[2], otherwise[name]) ~= nil
      if found and there ~= nil and name ~= "arange" or here_otherwise then have[#have + 1] = name
      else
        local r = reason_of(name)
        lack[r] = lack[r] or {}
        table.insert(lack[r], name)
      end
    end
  end
  table.insert(cover, ("## %s: %d of %d"):format(space[1], #have, total))
  table.insert(cover, "\nThere: " .. table.concat(have, ", ") .. "\n")
  for r = #reasons + 1, 1, -1 do
    if lack[r] then
      local why = reasons[r] and reasons[r][1] or "a gap"
      table.insert(cover, ("Not there, %s (%d): %s\n"):format(why, #lack[r], table.concat(lack[r], ", ")))
    end
  end
end

for _, e in ipairs(reference.errors) do io.stderr:write(e, "\n") end
local check, old = arg[1] == "--check", #reference.errors > 0
for name, lines in pairs {["docs/ops.md"] = md, ["docs/tycho.d.lua"] = cats, ["docs/coverage.md"] = cover, ["docs/reference.md"] = ref} do
  local text, path = table.concat(lines, "\n") .. "\n", here .. "/" .. name
  if check then
    local f = io.open(path)
    if not f or f:read("*a") ~= text then
      io.stderr:write(name, " is old\n")
      old = true
    end
    if f then f:close() end
  else
    local f = assert(io.open(path, "w"))
    f:write(text)
    f:close()
  end
end
os.exit(old and 1 or 0)
