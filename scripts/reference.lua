-- Collects what is public, and the comment above each definition, for docs/reference.md and the editor stubs (docs.lua).
-- scripts/docs.lua loads it before the library, so that it can watch what makes functions and constructors.
--
-- Idea: walk the public tables and classes, and find the line that defines each function: debug.getinfo tells a Lua function's; a
-- function that core.define made has the line of that call; any other has the line that assigns its name. The comment directly above
-- that line is the text; where it begins with the call, as in "name(a, b=1): ...", it also gives the arguments. Names that share a
-- line, or a function, are one entry. Names that begin with "_" are internal.
local core = require "tycho.core"
local options = require "tycho.options"

-- Names in public tables that are for the library itself.
local INTERNAL = {}
for name in ([[data.transforms.steps distributed.group_of distributed.within distributed.beside tycho.arange bar:line bar:show Module:check_state_dict
  Optimizer:check_state_dict Optimizer:apply_gradients Optimizer:read_again SGD:lacks LBFGS:check LBFGS:check_state_dict
  LBFGS:add_param_group Scheduler:next_lr Scheduler:begin Scheduler:set Scheduler:start Scheduler:restart DataLoader:order DataLoader:engine
  DistributedDataParallel:clone Distribution:draw Distribution:log_prob]]):gmatch "%S+" do INTERNAL[name] = true end
-- Methods that every layer, every dataset or every distribution has.
local USUAL = {init = true, extra_repr = true, reset_parameters = true, fields = true, learn = true}

-- The sections of the reference, each with the files whose functions it has, in order.
local SECTIONS = {
  {"Tensors", "init", "memory", "functional/conversions", "functional/random", "functional/values", "functional/shape",
    "functional/places"},
  {"Modes and settings", "modes", "functional/lib", "backends"},
  {"Random generators", "generator"},
  {"Autograd", "autograd/init", "autograd/gradcheck", "autograd/functional", "recompute"},
  {"Modules as functions", "func", "vmap"},
  {"Modules", "nn/module", "nn/copy", "nn/hooks", "nn/states", "nn/moves"},
  {"Layers", "nn/layer", "nn/init", "nn/dicts", "nn/plain", "nn/losses", "nn/grad", "nn/adaptive_softmax", "nn/lazy", "nn/rnn", "nn/transformer", "nn/attention", "nn/parallel"},
  {"nn.utils", "nn/utils", "nn/sequences", "nn/normalized", "nn/parametrize", "nn/orthogonal", "nn/prune"},
  {"nn.init", "nn/init_functions"},
  {"Optimizers", "optim/init", "optim/optimizer", "optim/state", "optim/lbfgs", "optim/composed", "optim/swa_utils"},
  {"Learning rates", "optim/lr_scheduler", "optim/schedule"},
  {"Mixed precision", "amp/init", "amp/debug"},
  {"Compiled steps", "compile/init"},
  {"Traces", "jit/init", "jit/freeze"},
  {"Devices", "cuda/init", "cuda/memory", "cuda/kernel", "graphed"},
  {"Several processes", "distributed", "nn/sharded", "optim/zero"},
  {"Data", "data/init", "data/loader", "data/remote", "data/samplers", "data/datasets", "data/collate", "data/resident"},
  {"Transforms", "data/transforms", "data/transforms_functional"},
  {"Detection", "vision/boxes", "vision/regions", "vision/deform", "vision/layers", "vision/plain"},
  {"Networks for pictures", "vision/models/init", "vision/models/resnet", "vision/models/vgg", "vision/models/densenet",
    "vision/models/mobilenet", "vision/models/inception", "vision/models/shufflenet",
    "vision/models/regnet", "vision/models/convnext", "vision/models/vit", "vision/models/swin"},
  {"Distributions", "distributions/init", "distributions/base", "distributions/elementary", "distributions/gamma",
    "distributions/composed", "distributions/vectors", "distributions/matrices", "distributions/circular", "distributions/relaxed",
    "distributions/transformed", "distributions/own", "distributions/transforms", "distributions/transforms_vectors",
    "distributions/constraints", "distributions/registry", "distributions/divergences"},
  {"Saving", "saving", "numpy"},
  {"Checkpoints", "checkpoint"},
  {"Profiles", "profiler", "benchmark"},
  {"Utilities", "utils", "plot", "pictures", "tensorboard", "testing"},
}

-- Fields of tensors: type and text; and methods that C alone defines: arguments and text.
local FIELDS = {
  {"shape", "integer[]", "the sizes, a list; two compare by value, and print as 2x3"},
  {"dtype", "string", "such as \"float32\""},
  {"device", "string", "\"cpu\", \"cuda:0\""},
  {"requires_grad", "boolean", "whether a gradient is asked for; may be assigned to a leaf"},
  {"grad", "tycho.Tensor?", "the gradients that backward has added up, or nil; may be assigned"},
  {"is_leaf", "boolean", "whether no recorded op made it"},
  {"ndim", "integer", "the number of dims"},
  {"is_cuda", "boolean", "whether it is on a GPU"},
  {"T", "tycho.Tensor", "the transpose of a matrix, a vector itself: a view"},
  {"mT", "tycho.Tensor", "the last two dims swapped: a view"},
  {"H", "tycho.Tensor", "as T: what is real is its own conjugate"},
  {"mH", "tycho.Tensor", "as mT"},
}
local IN_C = {
  size = {"dim=", "one dim's size or, without dim, all of them, as x.shape"},
  dim = {"", "the number of dims"},
  numel = {"", "the number of elements"},
  stride = {"dim=", "the step from an element to the next along a dim or, without dim, a list of all; in elements"},
  item = {"", "the element of a tensor that has one, as a Lua number (exact to 2^53) or boolean; a GPU is waited for"},
  totable = {"", "the elements as nested lists of Lua numbers or booleans; a GPU is waited for"},
  is_contiguous = {"memory_format=\"contiguous\"", "whether the elements lie in order (\"channels_last\": with the channels side by side)"},
  is_channels_last = {"", "whether it has been laid out channels-last: by contiguous, to, or a convolution of such"},
  detach = {"", "the same memory without history: changes in place show in both"},
  requires_grad_ = {"requires_grad=true", "sets whether a leaf collects a gradient; gives the tensor"},
  shares_memory = {"other", "whether both lie in one storage"},
  free = {"", "gives the memory back now, unless others share it; the tensor can't be used any more"},
}
-- Switches: fields that users assign, and their text.
local SWITCHES = {
  {"backends.cudnn.benchmark", "convolutions and products of a new shape time the plans there are, rather than take the first"},
  {"backends.cudnn.deterministic", "only plans that give the same bits each time"},
  {"backends.cuda.allow_tf32", "float32 products and convolutions may round their operands to TF32: faster, 10 bits of mantissa"},
  {"backends.cuda.matmul.allow_tf32", "products alone"},
  {"backends.cudnn.allow_tf32", "convolutions alone"},
}

local M = {errors = {}}

---- watching what makes functions ----
local origin = {}                -- function -> {file=, line=, args=, fn=}
local inner = {}                 -- a method that checks its object -> the method as it is written
local signatures, asked = {}, nil  -- of constructors, by the name that errors use

local function file_of(source) return source:match "/lua/tycho/(.-)%.lua$" end

-- The file, and the line of its main chunk, that led here.
local function main_line()
  local file, line
  for level = 3, 40 do
    local info = debug.getinfo(level, "Sl")
    if not info or not file_of(info.source) then break end
    file, line = file_of(info.source), info.currentline
    if info.what == "main" then break end
  end
  return file, line
end
local define = core.define
core.define = function(name, signature, fn, ...)
  local f, place = define(name, signature, fn, ...), {args = signature, fn = fn}
  place.file, place.line = main_line()
  origin[f] = place
  return f
end
local method = options.method
options.method = function(who, object, name, is, f)
  local g = method(who, object, name, is, f)
  inner[g] = f
  return g
end
local lib = require "tycho.functional.lib"
local of_tensor = lib.method
lib.method = function(name, f)
  of_tensor(name, f)
  inner[core.methods[name]] = f
end
local arguments = options.arguments
options.arguments = function(who, signature, ...)
  if asked then
    signatures[asked] = signature
    error("asked", 0)
  end
  return arguments(who, signature, ...)
end

-- Calls visit(name, value) for a function's upvalues.
local function upvalues(f, visit)
  for i = 1, 60 do
    local name, v = debug.getupvalue(f, i)
    if not name then return end
    visit(name, v)
  end
end
local function upvalue(f, wanted)
  local found
  upvalues(f, function(name, v) if name == wanted then found = v end end)
  return found
end
-- A local table of the library's, found through upvalues of the functions in a table: classes of which users only meet objects.
local function hidden(from, wanted)
  local seen, found = {}, nil
  local function look(v)
    v = inner[v] or origin[v] and origin[v].fn or v
    if found or seen[v] then return end
    seen[v] = true
    if type(v) == "table" then
      for _, x in pairs(v) do if type(x) == "function" then look(x) end end
      if getmetatable(v) then look(getmetatable(v)) end
    elseif type(v) == "function" then
      upvalues(v, function(name, x)
        if name == wanted and type(x) == "table" then found = x
        elseif type(x) == "function" or type(x) == "table" then look(x) end
      end)
    end
  end
  look(from)
  return found or error("no class " .. wanted)
end

---- the source ----
local here
local texts = {}
local function lines_of(file)
  if not texts[file] then
    texts[file] = {}
    for line in assert(io.open(here .. "/lua/tycho/" .. file .. ".lua")):lines() do table.insert(texts[file], line) end
  end
  return texts[file]
end
local function mentions(file, line, name)
  local text = lines_of(file)[line]
  return text and text:find("%f[%w_]" .. name .. "%f[^%w_]") and not text:find "^%s*%-%-" and true
end
-- The files of home's section, home first.
local function beside(home)
  local files = {home}
  for _, section in ipairs(SECTIONS) do
    local is_there
    for i = 2, #section do is_there = is_there or section[i] == home end
    for i = 2, is_there and #section or 0 do if section[i] ~= home then files[#files + 1] = section[i] end end
  end
  return files
end
-- The file and line that define a name by assigning it, or by a call that takes it. after: pattern of a line that must come before.
local DEFINES = {
  object = {'^local .*[%w_] ?%(?"NAME"', '^[%w_., =]*%f[%w_][%w_]+ ?%(?"NAME"', "^%s*function [%w_.]*[.:]NAME%(",
    "^[%w_., ]*[%w_]%.NAME[%w_., ]* = ", "{.*%f[%w_]NAME = ", '{"NAME", '},
  ["function"] = {"^%s*function [%w_.]*[.:]NAME%(", "^[%w_., ]*[%w_]%.NAME[%w_., ]* = ", '^[%w_., =]*%f[%w_][%w_]+ ?%(?"NAME"',
    "^%s+[%w_., ]*[%w_]%.NAME = ", "[{,%s]NAME = [fcgr]"}}
local function assigned(home, name, kind, after)
  for _, pattern in ipairs(DEFINES[kind] or DEFINES.object) do
    pattern = pattern:gsub("NAME", name)
    for _, file in ipairs(beside(home)) do
      local from = not after
      for i, line in ipairs(lines_of(file)) do
        from = from or line:find(after)
        if from and line:find(pattern) and not line:find "^%s*%-%-" then return file, i end
      end
    end
  end
end
-- Whether a line is within a loop of the file's main chunk, which defines several functions.
local function in_loop(file, line)
  for i = line, 1, -1 do
    local text = lines_of(file)[i]
    if text:find "^%a" then return text:find "^for " ~= nil end
  end
end
local comment_above
-- Where a Lua function is defined under this name.
local function own_site(name, f)
  if origin[f] then return origin[f].file, origin[f].line, origin[f].args, f end
  local info = debug.getinfo(f, "S")
  local file, line = info.what ~= "C" and file_of(info.source), info.linedefined
  local calls = "^[%w_.]-%f[%w_]" .. name .. "%("             -- how the comment may begin
  if file and (mentions(file, line, name) or in_loop(file, line) or comment_above(file, line):find(calls)) then
    return file, line, nil, f
  end
end
-- Where a public function is defined: file, line, arguments if known, and the function there. home: the file of the table that has it.
local function site(name, f, home, class)
  f = inner[f] or f
  if origin[f] then return own_site(name, f) end
  local wrapped, info = nil, debug.getinfo(f, "S")
  local file, line, args = own_site(name, f)
  if file and not in_loop(file, line) then return file, line, args end
  if info.what == "C" then return assigned(home, name, "function", class and "^local " .. class .. " = ") end
  upvalues(f, function(_, v)                                 -- f wraps a function that is defined under this name
    if type(v) == "function" and not wrapped then
      local place = {own_site(name, v)}
      wrapped = place[1] and place
    end
  end)
  if wrapped then return unpack(wrapped, 1, 4) end
  if file then return file, line, args end
  file, line = assigned(file_of(info.source), name, "function")
  if file then return file, line end
  return assigned(home, name, "function")
end
function comment_above(file, line)
  local all, out = lines_of(file), {}
  for i = line - 1, 1, -1 do
    local text = all[i]:match "^%s*%-%- ?(.*)$"
    if not text or all[i]:find "^%s*%-%-%-%-" then break end
    table.insert(out, 1, text)
  end
  return table.concat(out, " ")
end
local function parameters(f, without_first)
  f = inner[f] or f
  local info, names = debug.getinfo(f, "u"), {}
  for i = without_first and 2 or 1, info.nparams or 0 do names[#names + 1] = debug.getlocal(f, i) end
  if info.isvararg then names[#names + 1] = "..." end
  return table.concat(names, ", ")
end

---- the walk ----
-- A signature as it is shown: names and defaults; strings in quotes.
local function readable(args)
  return (args:gsub(":any", ""):gsub(":tensor", ""):gsub(", $", ""):gsub(", %*, _[%w_]+=nil", ""):gsub(", _[%w_]+=nil", "")
    :gsub("=([%a_]+)", function(word) return word ~= "nil" and word ~= "true" and word ~= "false" and '="' .. word .. '"' or nil end))
end

local entries, by_site, by_value, plain = {}, {}, {}, {}     -- plain: layers that are a function, {fn=, file=, line=}
-- Where a class of modules is defined: at its init, if that has the comment, else at its own line.
local function class_site(name, class, home)
  if plain[name] then return plain[name].file, plain[name].line end
  local file, line = assigned(home, name)
  local init = rawget(class, "init") and debug.getinfo(inner[class.init] or class.init, "S")
  local own = init and file_of(init.source)
  if own and (not file or comment_above(own, init.linedefined) ~= "") then return own, init.linedefined end
  return file, line
end
-- Adds an entry, or a name to one. class: whose method it is; kind: "function", "class" (of modules), "object" (a table that is called).
local function add(path, name, value, home, class, kind)
  local shown = (class and (class == "Tensor" and "x" or class) .. ":" or path == "" and "tycho." or path .. ".") .. name
  if INTERNAL[shown] then return end
  value = inner[value] or value
  local entry = by_value[value]
  if not entry then
    local file, line, args, f
    if kind == "class" then
      file, line = class_site(name, value, home)
      args = signatures[name]
    elseif kind == "object" then
      file, line = assigned(home, name)
      args = signatures[name]
      local call = getmetatable(value).__call
      if (not file or comment_above(file, line) == "") and own_site(name, call) then file, line = own_site(name, call) end
    else file, line, args, f = site(name, value, home, class) end
    if not file then
      table.insert(M.errors, shown .. ": no line of the source is known to define it")
      return
    end
    entry = by_site[file .. ":" .. line]
    if not entry then
      local static = class and class ~= "Tensor" and lines_of(file)[line]:find("^function [%w_]+%." .. name .. "%(")
      entry = {file = file, line = line, names = {}, kind = kind, value = value, text = comment_above(file, line),
        args = args and readable(args) or kind == "function" and parameters(f or value, class and not static) or nil,
        dot = static and true}
      if origin[value] and class then entry.args = entry.args:gsub("^%w+,? ?", "") end
      entries[#entries + 1] = entry
      by_site[file .. ":" .. line] = entry
    end
    by_value[value] = entry
  end
  for _, n in ipairs(entry.names) do if n.shown == shown then return end end
  table.insert(entry.names, {path = path, name = name, class = class, shown = entry.dot and shown:gsub(":", ".") or shown})
end

-- more: tables within t that its __index keeps, so that they can't be replaced (backends)
local function sorted(t, keep)
  local names, index = {}, (getmetatable(t) or {}).__index
  for _, fields in ipairs {t, type(index) == "function" and upvalue(index, "more") or {}} do
    for k, v in pairs(fields) do if type(k) == "string" and not k:find "^_" and keep(v) then names[#names + 1] = k end end
  end
  table.sort(names)
  return names
end
local function is_function(v) return type(v) == "function" end
local function is_table(v) return type(v) == "table" end
local function is_module(v) return type(v) == "table" and (rawget(v, "_super") ~= nil or rawget(v, "_name") == "Module") end
local function is_called(v) return type(v) == "table" and (getmetatable(v) or {}).__call ~= nil end

-- Names that ops.md has: ops and functions made of ops, their in-place forms, and other names of these.
local op_names, op_functions, alias_of = {}, {}, {}
M.aliases = {}                                               -- first name -> list of further names
M.tables = {}                                                -- another name of a public table -> its first one
local function is_op(name, f, by_name)
  if by_name and op_names[name] or by_name and op_names[name:match "^(.*)_$" or ""] then return true end
  local first = op_functions[f]
  if not first then return by_name and alias_of[name:match "^(.*)_$" or ""] ~= nil end
  if not alias_of[name] then
    alias_of[name] = first
    M.aliases[first] = M.aliases[first] or {}
    table.insert(M.aliases[first], name)
  end
  return true
end

local HOMES = {["autograd.functional"] = "autograd/functional", ["nn.init"] = "nn/init_functions", ["nn.utils"] = "nn/utils",
  ["nn.utils.rnn"] = "nn/sequences", ["nn.utils.prune"] = "nn/prune", ["nn.utils.parametrize"] = "nn/parametrize",
  ["nn.utils.parametrizations"] = "nn/parametrize", ["utils.tensorboard"] = "tensorboard",
  ["distributed.fsdp"] = "nn/sharded", ["distributed.optim"] = "optim/zero", ["utils.benchmark"] = "benchmark",
  ["distributions.transforms"] = "distributions/transforms", ["vision.ops"] = "vision/boxes",
  ["data.transforms.functional"] = "data/transforms_functional"}
-- The file that makes a public table: the one of its name, else that of the table around it.
local function home_of(path, above)
  if HOMES[path] then return HOMES[path] end
  for _, file in ipairs {path:gsub("%.", "/"), path:gsub("%.", "/") .. "/init"} do
    local f = io.open(here .. "/lua/tycho/" .. file .. ".lua")
    if f then
      f:close()
      return file
    end
  end
  return above
end

local function add_methods(class, shown, home)
  local base = (getmetatable(class) or {}).__index
  for _, name in ipairs(sorted(class, is_function)) do
    local file, line = site(name, class[name], home, shown)
    local told = file and comment_above(file, line) ~= "" or name ~= "forward" and not (type(base) == "table" and base[name] ~= nil)
    if told and not USUAL[name] then add("", name, class[name], file or home, shown, "function") end
  end
end
local in_table = {}                                          -- layer -> whether the table of layers says what it does
local of_functions = {}                                      -- paths of tables of functions made of ops
for _, path in ipairs(require("tycho.functional").places) do of_functions[path] = true end
local function walk(path, t, home, seen)
  if seen[t] then
    M.tables[path] = seen[t]
    return
  end
  seen[t] = path
  for _, name in ipairs(sorted(t, is_function)) do
    local of_ops = path == "" or of_functions[path]
    if path ~= "nn.functional" and not is_op(path == "" and name or path .. "." .. name, t[name], of_ops) then
      add(path, name, t[name], home, nil, "function")
    end
  end
  for _, name in ipairs(sorted(t, is_table)) do
    local v, inside = t[name], path == "" and name or path .. "." .. name
    if is_module(v) then
      if not in_table[name] then add(path, name, v, home, nil, "class") end
      add_methods(v, name, home)
    elseif is_called(v) then add(path, name, v, home, nil, "object")
    elseif not (getmetatable(v) or {}).__eq and not (getmetatable(v) or {}).__tostring then walk(inside, v, home_of(inside, home), seen) end
  end
end

-- Gets a constructor's signature by a call. name: the one that errors use.
local function ask(name, constructor, ...)
  asked = name
  pcall(constructor, ...)
  asked = nil
end
-- A loss's arguments: its function's options, first those that PyTorch takes by position.
local function loss_arguments(class, functional)
  local fn, order = upvalue(class.forward, "fn"), upvalue(class.init, "order") or ""
  for _, f in ipairs(functional.signatures) do
    if f.name == fn then
      local known, first, rest = {}, {}, {}
      local flat = f.signature:gsub("%b()", ""):gsub(":%a+%??", ""):gsub(", %*", "")
      for item in flat:gmatch "[^,%s]+" do
        local name = item:match "^[%w_]+"
        if f.signature:find("%f[%w_]" .. name .. ":%a+[?=(]") then
          known[name] = item:find "=" and item or item .. "=nil"
          if not (" " .. order .. " "):find(" " .. name .. " ", 1, true) then rest[#rest + 1] = known[name] end
        end
      end
      for name in order:gmatch "%S+" do first[#first + 1] = known[name] end
      return table.concat(first, ", ") .. (#rest > 0 and (#first > 0 and ", " or "") .. "*, " .. table.concat(rest, ", ") or "")
    end
  end
end

-- Loads everything that is otherwise loaded or made when it is first named.
local function name_all(t, seen)
  if seen[t] then return end
  seen[t] = true
  local index = (getmetatable(t) or {}).__index
  for name in pairs(type(index) == "function" and upvalue(index, "late") or {}) do local _ = t[name] end
  for _, v in pairs(t) do if type(v) == "table" then name_all(v, seen) end end
end
local function read_all(tycho)
  require("tycho.functional").all()
  for _, t in ipairs {tycho.nn, tycho.nn.functional} do pcall(function() return t["?"] end) end    -- an unknown name: all files are read
  name_all(tycho, {})
  require "tycho.grad"
end

local layers, optimizers, schedulers = {}, {}, {}            -- {name=, args=, does=}
local CLASSES                                                -- {shown, the class, its file}
-- Walks everything and fills M: entries, {names={ {path=, name=, class=, shown=, call=}, ...}, by=, args=, text=, kind=};
-- aliases of ops; the rows of tables; errors: what is undocumented.
function M.collect(root)
  here = root
  local tycho = require "tycho"
  local layer = require "tycho.nn.layer"
  local make = layer.plain
  layer.plain = function(name, fn, ...)
    plain[name] = {fn = fn}
    plain[name].file, plain[name].line = main_line()
    return make(name, fn, ...)
  end
  read_all(tycho)
  local nn, optim, data, functional = tycho.nn, tycho.optim, tycho.data, require "tycho.functional"
  for _, op in ipairs(core.op_table()) do if op.domain ~= "internal" then op_names[op.name] = true end end
  for _, f in ipairs(functional.signatures) do op_names[f.name] = true end
  for name in pairs(op_names) do
    local place, last = functional.place(name)
    local f = rawget(place, last) or core.methods[name]
    local known = f and op_functions[f]
    if f and not (known and (#known < #name or known:find "%.")) then op_functions[f] = name end
  end

  for _, name in ipairs(sorted(nn, is_module)) do
    if rawget(nn[name], "_builtin") then
      ask(name, nn[name])
      local args, does = signatures[name], ""
      local loss = rawget(nn[name], "forward") and upvalue(nn[name].forward, "fn")
      if name:find "^Lazy" then
        args = (signatures[name:sub(5)] or ""):gsub("^[^,]*,? ?", "")
        does = ("as `%s`; its first argument follows from the first input"):format(name:sub(5))
      elseif name:find "Loss$" and loss then args, does = loss_arguments(nn[name], functional), ("`nn.functional.%s`"):format(loss)
      elseif plain[name] then
        local fn = plain[name].fn
        local f = type(fn) == "string" and (fn == "im2col" and "unfold" or fn) or nil
        does = f and ("`%s.%s`"):format(rawget(nn.functional, f) and "nn.functional" or "tycho", f) or ""
      end
      layers[#layers + 1] = {name = name, args = readable(args or ""), does = does}
      in_table[name] = does ~= ""
      signatures[name] = args
    end
  end
  for _, name in ipairs(sorted(optim, function(v) return is_called(v) end)) do
    local list = {}
    for k, v in pairs(optim[name].defaults_of) do
      if type(v) == "table" then
        local items = {}
        for i, item in ipairs(v) do items[i] = tostring(item) end
        v = "{" .. table.concat(items, ", ") .. "}"
      end
      list[#list + 1] = k .. "=" .. tostring(v)
    end
    table.sort(list, function(a, b) return (a:find "^lr=" and "" or a) < (b:find "^lr=" and "" or b) end)
    optimizers[#optimizers + 1] = {name = name, args = table.concat(list, ", ")}
  end
  for _, name in ipairs(sorted(optim.lr_scheduler, is_called)) do
    ask(name, optim.lr_scheduler[name], optim.SGD({tycho.zeros(1, {requires_grad = true})}, 1))
    schedulers[#schedulers + 1] = {name = name, args = readable(signatures[name] or ""):gsub("0.3333+1", "1/3")}
  end
  for _, name in ipairs(sorted(tycho.distributions, is_called)) do ask(name, tycho.distributions[name]) end

  CLASSES = {
    {"Tensor", core.methods, "init"}, {"Generator", getmetatable(tycho.Generator()).__index, "generator"},
    {"ctx", hidden(tycho.autograd, "Context"), "autograd/init"}, {"Optimizer", hidden(optim.Optimizer, "Optimizer"), "optim/optimizer"},
    {"Optimizer", {add_param_group = optim.SGD.add_param_group}, "optim/optimizer"},          -- which each class has for itself
    {"LBFGS", getmetatable(optim.LBFGS).__index, "optim/lbfgs"},
    {"Scheduler", hidden(optim.lr_scheduler.LRScheduler, "Scheduler"), "optim/schedule"},
    {"PackedSequence", hidden(nn.utils.rnn, "Packed"), "nn/sequences"},
    {"GradScaler", hidden(tycho.amp, "Scaler"), "amp/init"}, {"compiled", hidden({tycho.compile}, "Compiled"), "compile/init"},
    {"traced", hidden(tycho.jit, "Traced"), "jit/init"},
    {"Event", upvalue(core.gpu.event_meta.__index, "methods"), "cuda/init"},
    {"Stream", upvalue(core.gpu.stream_meta.__index, "methods"), "cuda/init"},
    {"Graph", upvalue(core.gpu.graph_meta.__index, "methods"), "cuda/init"}, {"Work", hidden(tycho.distributed, "Work"), "distributed"},
    {"DataLoader", hidden(data, "DataLoader"), "data/loader"}, {"Prefetcher", hidden(data, "Prefetcher"), "data/loader"},
    {"Dataset", hidden(data, "Dataset"), "data/remote"}, {"TensorDataset", hidden(data, "TensorDataset"), "data/init"},
    {"Pictures", hidden(data.datasets, "Pictures"), "data/datasets"}, {"TextFile", hidden(data.datasets, "Text"), "data/datasets"},
    {"CSV", hidden(data.datasets, "Table"), "data/datasets"},
    {"Distribution", getmetatable(getmetatable(tycho.distributions.Normal).__index).__index, "distributions/base"},
    {"Manager", hidden(tycho.checkpoint, "Manager"), "checkpoint"},
    {"Profile", hidden(tycho.profiler, "Profile"), "profiler"}, {"Timer", hidden(tycho.utils.benchmark, "Timer"), "benchmark"},
    {"bar", hidden(tycho.utils, "Bar"), "utils"},
    {"SummaryWriter", hidden(tycho.utils.tensorboard, "Writer"), "tensorboard"}}
  for name, c in pairs(IN_C) do                              -- first of their section, by name
    local entry = {file = "init", line = 0, names = {{path = "", name = name, class = "Tensor", shown = "x:" .. name}}, kind = "function",
      value = core.methods[name], text = c[2], args = c[1]}
    by_value[core.methods[name]] = entry
    entries[#entries + 1] = entry
  end
  local _, _ = tycho.distributed.fsdp, tycho.distributed.optim   -- naming them loads them
  walk("", tycho, "init", {})
  for _, c in ipairs(CLASSES) do
    if c[1] == "Tensor" then
      for _, name in ipairs(sorted(c[2], function(v) return is_function(v) or is_called(v) end)) do
        local v = c[2][name]
        if not IN_C[name] and not is_op(name, v, true) then add("", name, v, c[3], "Tensor", is_called(v) and "object" or "function") end
      end
    else add_methods(c[2], c[1], c[3]) end
  end
  for _, e in ipairs(entries) do
    if e.line > 0 then table.sort(e.names, function(a, b)                       -- the name that the source has first; then alphabetically
      local text = lines_of(e.file)[e.line] or ""
      local x, y = text:find("%f[%w_]" .. a.name .. "%f[^%w_]") or 1000, text:find("%f[%w_]" .. b.name .. "%f[^%w_]") or 1000
      if x ~= y then return x < y end
      return a.shown < b.shown
    end) end
    local first = e.names[1]
    local call, text = e.text:match "^([%w_.:]+%b()):%s*(.*)$"
    if not call then call, text = e.text:match "^([%w_.:]+%b{}):%s*(.*)$" end
    local own = call and call:match "([%w_]+)[({]"
    for _, n in ipairs(e.names) do
      if own == n.name then
        local dot = n.class and call:find("^%u%w*%." .. own)
        n.call = (dot and n.shown:gsub(":", ".") or n.shown) .. call:match("[({].*$")
        e.text, e.by = text, n
      end
    end
    if e.text == "" and e.kind ~= "class" and not e.by then
      table.insert(M.errors, ("lua/tycho/%s.lua:%d: %s has no comment"):format(e.file, e.line, first.shown))
    elseif e.text == "" and e.kind == "class" and not e.by then
      table.insert(M.errors, ("lua/tycho/%s.lua:%d: class %s has no comment"):format(e.file, e.line, first.shown))
    end
  end
  local rank = {}
  for i, section in ipairs(SECTIONS) do for k = 2, #section do rank[section[k]] = i * 100 + k end end
  for _, e in ipairs(entries) do
    if not rank[e.file] then error(("scripts/reference.lua: no section has %s.lua, which defines %s"):format(e.file, e.names[1].shown)) end
  end
  table.sort(entries, function(a, b)
    if a.file ~= b.file then return rank[a.file] < rank[b.file] end
    if a.line ~= b.line then return a.line < b.line end
    return a.names[1].shown < b.names[1].shown
  end)
end

-- An entry's call under one of its names, n.
function M.call_of(e, n)
  if n.call or not e.args and e.kind ~= "function" then return n.call or n.shown end
  if e.args:find "^self" then return n.shown:gsub("%.(%w+)$", ":%1") .. "(" .. e.args:gsub("^self,? ?", "") .. ")" end
  return n.shown .. "(" .. e.args .. ")"
end
function M.classes() return CLASSES end

M.entries, M.sections, M.fields, M.switches = entries, SECTIONS, FIELDS, SWITCHES
M.layers, M.optimizers, M.schedulers = layers, optimizers, schedulers
return M
