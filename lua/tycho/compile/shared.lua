-- What compile/init.lua and compile/outside.lua share: how a recorded program runs, and what TYCHO_DEBUG prints.
local core = require "tycho.core"
local program, gpu = core.program, core.gpu

local shared = {}

-- Whether no program can record or run here: inside another record, a vmap, the user's graph capture, or under detect_anomaly.
function shared.busy() return program.active() or core.is_mapping() or gpu.capturing() or core.watch() end

local function walk(x, visit, seen)
  if core.is_tensor(x) then return visit(x) end
  if type(x) == "table" and getmetatable(x) == nil and not seen[x] then
    seen[x] = true
    for k, y in pairs(x) do
      local z = walk(y, visit, seen)
      if not rawequal(z, y) then x[k] = z end
    end
  end
  return x
end
-- Calls visit for each tensor in the results {n=} and in plain tables among them, and replaces the tensor by what visit returns.
function shared.each_tensor(results, visit)
  local seen
  for i = 1, results.n do
    local x = results[i]
    if core.is_tensor(x) then results[i] = visit(x)
    elseif type(x) == "table" then
      seen = seen or {}
      results[i] = walk(x, visit, seen)
    end
  end
  return results
end

-- The tensors among the results, in the order of each_tensor.
function shared.tensors_of(results)
  local list = {}
  shared.each_tensor(results, function(x)
    list[#list + 1] = x
    return x
  end)
  return list
end

function shared.debug_print(...)
  if (os.getenv("TYCHO_DEBUG") or ""):find("compile") then io.stderr:write("compile: ", string.format(...), "\n") end
end

-- What was fused, and why not more.
function shared.print_kernels(kernels)
  if not (os.getenv("TYCHO_DEBUG") or ""):find("fusion") then return end
  for _, k in ipairs(kernels) do
    local text = table.concat(k.ops, " ")
    if k.fused then
      text = ("%s: %s%d tensors read, %d written"):format(text, k.elements and k.elements .. " elements, " or "",
        k.reads, k.writes)
    end
    io.stderr:write("fusion: ", k.fused and "[" .. text .. "]" or text, k.why and "; not fused further: " .. k.why or "", "\n")
  end
end

-- Runs the recording that the last call agreed with, or was trusted to match. way: this recording's data, its captured graph among it.
-- v.static: by argument, {copy=}: the argument's copy on the GPU.
function shared.run(v, way)
  local p = v.program
  program.ready(p)
  if not program.on_gpu(p) or not gpu.graphs() then
    program.rates(p)
    return program.run(p)
  end
  if program.stale(p) or not way.graph or way.timed_plans ~= gpu.timed_plans_set() then  -- a checkpoint has loaded other plans
    way.graph, way.timed_plans, way.graph_holds = nil, gpu.timed_plans_set(), {}
    for _, s in pairs(v.static) do way.graph_holds[s] = -program.input_holders(p, s.copy) end
    local home = program.on_gpu(p)
    local old, graph = gpu.current_stream(home), gpu.graph_begin(home, nil, true)
    local ok, err = pcall(program.capture, p)
    gpu.set_stream(old)
    local nodes = gpu.graph_end(graph, ok)
    if not ok then error(err, 0) end
    way.graph, way.nodes = graph, nodes
    for _, s in pairs(v.static) do way.graph_holds[s] = way.graph_holds[s] + program.input_holders(p, s.copy) end
    shared.debug_print("captured: %d nodes", nodes)
  end
  program.rates(p)
  gpu.graph_replay(way.graph)
  program.ran(p)
end

return shared
