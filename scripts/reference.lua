-- docs/reference.md: what is written in Lua, from the comments above it: modules, layers and their arguments, optimizers, data, mixed precision, devices.
-- Loaded by scripts/docs.lua, before the library, so that constructors can be asked for their signatures.
local options = require "tycho.options"
local signatures, asked = {}, nil                -- by the name that errors use

local arguments = options.arguments
options.arguments = function(who, signature, ...)
  if asked then
    signatures[asked] = signature
    error("asked", 0)
  end
  return arguments(who, signature, ...)
end

local M = {}

-- What is there for the library itself.
local INTERNAL = {["sequences.with"] = true, ["sequences.runs"] = true, ["sequences.recur"] = true, ["sequences.reordered"] = true, ["Optimizer:check_state_dict"] = true, ["Optimizer:apply_gradients"] = true, ["Optimizer:reads_rate"] = true, ["Transformed:draw"] = true, ["Parallel:clone"] = true,
  ["SGD:lacks"] = true, ["Scheduler:next_lr"] = true, ["Scheduler:restart"] = true, ["OneCycleLR:along"] = true, ["recompute.run"] = true, ["saving.unpack_from"] = true, ["Traced:init"] = true, ["Module:check_state_dict"] = true}

-- The same by what their names begin with.
local INTERNAL_PARTS = {"remote.", "Pool:", "samplers.", "saving.", "transforms.", "DataLoader:order", "DataLoader:engine", "source.", "Packed:"}
local PUBLIC = {["saving.save"] = true, ["saving.load"] = true}
local function internal(name)
  if PUBLIC[name] or name:find "__" then return name:find "__" ~= nil end
  for _, part in ipairs(INTERNAL_PARTS) do if name:sub(1, #part) == part then return true end end
  return INTERNAL[name]
end
-- As users call what a file's local table names.
local PREFIX = {["sequences."] = "nn.utils.rnn.", ["utils."] = "nn.utils.", ["tensorboard."] = "utils.tensorboard.", ["init."] = "nn.init."}

local function text_of(path)
  local f = assert(io.open(path))
  local text = f:read "*a"
  f:close()
  return text
end

-- Functions of a file with the comments above them.
local function documented(path, skip)
  local out, comment, begun, defined = {}, {}, nil, nil
  for line in io.lines(path) do
    if begun then line = begun .. line:gsub("^ +", "") end
    begun = line:match '^(.*core%.define%("[%w_.]+", "[^"]*)\\z$'      -- a definition whose signature is on the next lines
    begun = begun or line:find 'core%.define%("[%w_.]+",$' and line .. " " or nil
    local text = line:match "^%-%- (.*)$"
    local name, args = line:match "^function ([%w_.:]+)(%b())"
    if not name then
      name, args = line:match 'core%.define%("([%w_.]+)", "([^"]*)"'
      args = args and "(" .. args .. ")"
    end
    if line:find "^return function" then name, args = (comment[1] or ""):match "^([%w_.]+)(%b())" end      -- a file that is one function
    if defined then                        -- define("Name", and its signature on the next line
      name, args, defined = defined, "(" .. (line:match '^ *"([^"]*)"' or "") .. ")", nil
    end
    local own, signature = line:match '^define%("([%w_]+)", "([^"]*)"'          -- a transform, an initializer
    if not own then
      own, signature = line:match '^define%("([%w_]+)", (%u+),'
      signature = own and text_of(path):match("local " .. signature .. ' = "([^"]*)"') or ""
    end
    if own then name, args = (path:find "init_functions" and "init." or "") .. own, "(" .. signature .. ")"
    elseif path:find "transforms" then
      defined = line:match '^define%("([%w_]+)",$'
      if defined then name = nil end
    end
    if line:find "^local function" and (comment[1] or ""):find "^%u%w*%(" then     -- what a constructor's comment begins with
      name, args = table.concat(comment, " "):match "^(%u%w*)(%b())"
    end
    local set = line:match '^define%("(%w+)", {'
    if set and (comment[1] or ""):find "^{" then                       -- a dataset: its comment begins with its options
      name, args = "datasets." .. set, ""
      comment[1] = name .. comment[1]
    end
    if text then comment[#comment + 1] = text
    elseif not begun and not defined then
      local public = name and (not name:find(skip) or (comment[1] or ""):find "^nn%.")
      if public and (#comment > 0 or own or path:find "transforms") and not internal(name) then out[#out + 1] = {name = name, args = args, text = table.concat(comment, " ")} end
      comment = {}
    end
  end
  return out
end

local function cell(s) return (s:gsub("|", "\\|")) end

function M.lines(here)
  local tycho = require "tycho"
  local md = {"# Reference", "", "What is written in Lua, made from the comments in `lua/tycho` by `make docs`; functions of tensors are in [ops.md](ops.md). Arguments stand in order or by",
    "name in a last table; `=` gives the default, those after `*` go by name only.", ""}
  local function section(title) md[#md + 1] = "## " .. title .. "\n" end
  local function method(name, args)                                  -- M.clone(x) is x:clone()
    local x, rest = args:match "^%((%w+),? ?(.*)$"
    return name:find "^M%." and x and x .. ":" .. name:sub(3) .. "(" .. rest or name .. args
  end
  local function functions(path, skip)
    for _, f in ipairs(documented(here .. "/lua/tycho/" .. path, skip or "^lib%.")) do
      for own, shown in pairs(path:find "^nn/" and PREFIX or {}) do
        if f.name:sub(1, #own) == own then f.name = shown .. f.name:sub(#own + 1) end
      end
      local call, text = f.text:match "^([%w_.]+%b())(.*)$"          -- a comment that begins with the call says it better
      if not call then call, text = f.text:match "^([%w_.]+%b{})(.*)$" end
      if call and call:find "^fn%(" then call = nil end              -- what a hook is called with
      local of = call and call:find "^layer%(" and f.name:match "^([%w_]+):"
      if of then text = ("%s `%s`"):format(text:gsub("^:?", ":", 1), call) call = of end
      if call then md[#md + 1] = ("- `%s`%s"):format(call, text)
      else
        md[#md + 1] = ("- `%s`%s%s"):format(f.name:find ":init$" and f.name:gsub(":init$", "") or method(f.name, f.args),
          f.text ~= "" and ": " or "", f.text)
      end
    end
    md[#md + 1] = ""
  end

  section "Modules"
  functions("nn/module.lua", "^exports")
  functions("nn/states.lua")
  section "Layers"
  md[#md + 1] = "| layer | arguments |\n|---|---|"
  local names = {}
  for name, class in pairs(tycho.nn) do
    if type(class) == "table" and rawget(class, "_builtin") then
      asked = name
      pcall(class)
      asked = nil
      names[#names + 1] = name
    end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local known, takes = signatures[name], ""
    if name:find "^Lazy" then takes = ("those of `%s` but for the first"):format(name:sub(5))
    elseif known and known ~= "" then takes = "`" .. cell(known) .. "`"
    elseif not known and name:find "Loss$" then takes = "those of its function in nn.functional but for the first, by name" end
    md[#md + 1] = ("| `%s` | %s |"):format(name, takes)
  end
  md[#md + 1] = ""
  md[#md + 1] = "Recurrent layers give their states as further values: `local y, h, c = lstm(x, h0, c0)`, `local y, h = gru(x, h0)`; x is (L,N,E), "
    .. "y (L,N,D*H), states (D*layers,N,H), D the number of directions. Cells: `local h, c = lstm_cell(x, h, c)`.\n"
  for _, file in ipairs {"nn/init.lua", "nn/plain.lua", "nn/rnn.lua", "nn/transformer.lua", "nn/parallel.lua"} do functions(file) end
  section "nn.utils"
  for _, file in ipairs {"nn/utils.lua", "nn/normalized.lua", "nn/prune.lua", "nn/sequences.lua"} do functions(file) end
  section "nn.init"
  functions "nn/init_functions.lua"

  section "Optimizers"
  md[#md + 1] = "| optimizer | options |\n|---|---|"
  names = {}
  for name, class in pairs(tycho.optim) do if type(class) == "table" and name:find "^%u" and name ~= "Optimizer" then names[#names + 1] = name end end
  table.sort(names)
  for _, name in ipairs(names) do
    local list = {}
    for k, v in pairs(tycho.optim[name].defaults_of) do
      if type(v) == "table" then
        local items = {}
        for i, item in ipairs(v) do items[i] = tostring(item) end
        v = "{" .. table.concat(items, ", ") .. "}"
      end
      list[#list + 1] = k .. "=" .. tostring(v)
    end
    table.sort(list)
    md[#md + 1] = ("| `%s` | `%s` |"):format(name, table.concat(list, ", "))
  end
  md[#md + 1] = ""
  functions "optim/init.lua"
  functions "optim/state.lua"
  functions "optim/swa_utils.lua"
  section "Learning rates"
  md[#md + 1] = "| scheduler | arguments after the optimizer |\n|---|---|"
  names = {}
  for name in pairs(tycho.optim.lr_scheduler) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    asked = name
    pcall(tycho.optim.lr_scheduler[name], tycho.optim.SGD({tycho.zeros(1, {requires_grad = true})}, 1))
    asked = nil
    if signatures[name] then md[#md + 1] = ("| `%s` | `%s` |"):format(name, cell(signatures[name])) end
  end
  md[#md + 1] = ""
  functions "optim/lr_scheduler.lua"

  local last
  for _, part in ipairs {{"Tensors and modes", "init.lua", "^M%."}, {"Random generators", "generator.lua"}, {"Autograd", "autograd.lua"}, {"Autograd", "autograd_functional.lua"}, {"Activation checkpointing", "recompute.lua"}, {"Mixed precision", "amp.lua"}, {"Mixed precision", "amp_debug.lua"},
    {"Distributions", "distributions/init.lua"}, {"Distributions", "distributions/elementary.lua"}, {"Distributions", "distributions/gamma.lua"}, {"Distributions", "distributions/composed.lua"}, {"Compiled steps", "compile.lua"}, {"Traces", "jit.lua"}, {"Devices", "cuda.lua"}, {"Several processes", "distributed.lua"}, {"Modules as functions", "func.lua"}, {"Profiles", "profiler.lua"}, {"Data", "data/init.lua"}, {"Data", "data/loader.lua"}, {"Data", "data/remote.lua"}, {"Data", "data/samplers.lua"}, {"Data", "data/datasets.lua"},
    {"Transforms", "data/transforms.lua"}, {"Saving", "saving.lua"}, {"Saving", "checkpoint.lua"}, {"Utilities", "utils.lua"}, {"Utilities", "testing.lua"}, {"Utilities", "benchmark.lua"}, {"Utilities", "tensorboard.lua"}} do
    if #documented(here .. "/lua/tycho/" .. part[2], part[3] or "^lib%.") > 0 then
      if part[1] ~= last then section(part[1]) end
      last = part[1]
      functions(part[2], part[3])
    end
  end
  return md
end

return M
