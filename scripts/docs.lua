-- Writes what follows from the op table: docs/ops.md, and LuaCATS stubs for editors (docs/tycho.d.lua); and from what is written in Lua: docs/reference.md.
--   luajit scripts/docs.lua [--check]     --check: only says (by its exit code) whether the files are up to date
local here = arg[0]:match("^(.*)/scripts/") or "."
package.path = here .. "/lua/?.lua;" .. here .. "/lua/?/init.lua;" .. package.path
package.cpath = here .. "/build/?.so;" .. here .. "/build-lint/?.so;" .. package.cpath
local reference = dofile(here .. "/scripts/reference.lua")
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
    put(titles[op.class], {name = only and op.name .. "_" or op.name, signature = op.signature, doc = op.doc, results = op.results, inplace = op.inplace and not only, gradient = op.differentiable,
      dtype = op.dtype, autocast = op.autocast})
  end
end
for _, f in ipairs(functional.signatures) do put("Made of ops", {name = f.name, signature = f.signature, doc = f.doc, results = 1, inplace = f.inplace, gradient = true}) end

local md = {"# Ops", "", "Made from `src/core/ops.def` and `lua/tycho/functional/` by `make docs`; edit those.", "",
  "Each is a function of `tycho` and, where its first argument is a tensor, a method. Arguments stand in order or, by name, in a last table;",
  "`?` may be left out, `=` gives the default, those after `*` go by name only. A parameter without a type is a tensor; an operand is a tensor or a number.",
  "",
  "Shapes: pointwise ops broadcast their operands; a reduction's result lacks the dims that it names (all, where it names none), or has them with size 1 with",
  "`keepdim`; others say theirs. Errors are Lua's, one sentence that names the op, the argument, what was expected and what came.",
  "",
  "The last column. A pointwise result's dtype: *same*: what the operands promote to (of `where`, the last two); *floating*: the same, whole numbers become",
  "float32; *first*: the first operand's; *whole*: the same, floating operands are an error. Of reductions, sums and products of whole numbers are int64, means are of floating ones. In place: there is a form with a trailing `_`. Under autocast: *16 bits*: floating operands are cast to autocast's dtype;",
  "*float32*: to float32; otherwise they promote.", ""}
local cats = {"---@meta", "-- Made by make docs.", "---@class tycho.Tensor", "local Tensor = {}", "---@class tycho", "local tycho = {linalg = {}}", ""}
local lua_type = {operand = "tycho.Tensor|number", tensors = "tycho.Tensor[]", int = "integer", number = "number", bool = "boolean", dim = "integer", dims = "integer|integer[]",
  sizes = "integer|integer[]", ints = "integer[]", pair = "integer|integer[]", triple = "integer|integer[]", dtype = "string", enum = "string", string = "string", device = "string", any = "any"}
for _, title in ipairs(order) do
  if groups[title] then
    table.insert(md, "## " .. title .. "\n\n| op | arguments | gives | |\n|---|---|---|---|")
    for _, r in ipairs(groups[title]) do
      local notes = {}
      if r.dtype then notes[#notes + 1] = r.dtype end
      if r.inplace then notes[#notes + 1] = "in place" end
      if r.autocast == "16 bits" or r.autocast == "float32" then notes[#notes + 1] = "autocast " .. r.autocast end
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
        if owner == "tycho" or (core.methods[r.name] and not (r.signature:match("^size") or r.name:find(".", 1, true))) then
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

---- coverage: PyTorch's names beside what there is ----
-- Why a name is left out, by pattern; the rest are plain gaps.
local reasons = {
  {"another dtype or storage: quantized, sparse, complex, nested", {"quantiz", "^q_", "^int_repr", "^dequantize", "fbgemm", "sparse", "^coalesce", "^is_coalesced", "^indices$", "^values$", "^crow", "^ccol", "^row_indices", "^col_indices", "^to_sparse", "^to_dense$",
    "complex", "^real$", "^imag$", "^conj", "^is_conj", "^resolve_", "^view_as_real", "^angle$", "^polar$", "^isreal$", "nested", "^smm$", "^sspaddmm$", "^hspmm$", "^saddmm", "^dsmm$", "mkldnn", "^int%d", "^chalf$", "^cdouble$", "^cfloat$", "^is_neg$"}},
  {"linear algebra and transforms of signals", {"^linalg", "^cholesky", "^lu", "^svd", "^qr$", "^eig", "^symeig", "^lstsq", "^det$", "^logdet", "^slogdet", "^inverse$", "^pinverse", "^solve", "^triangular_solve", "^lobpcg", "^pca_lowrank", "^svd_lowrank", "^geqrf", "^orgqr", "^ormqr", "^matrix_exp", "^mvlgamma",
    "^fft", "^ifft", "^rfft", "^irfft", "^stft", "^istft", "window$", "^trapz$", "^trapezoid$", "^cumulative_trapezoid$", "^gradient$", "^renorm$", "^nuclear", "^frobenius"}},
  {"special functions", {"gamma", "^i0", "^i1", "^bessel", "^erfcx", "^ndtri", "^log_ndtr", "^zeta", "^airy", "polynomial", "^spherical", "^lgamma", "^xlog1py$", "^entr$", "^frexp$", "^ldexp$", "^nextafter$", "^gcd$", "^lcm$"}},
  {"functions and base classes of the recurrent layers, which are in nn", {"lstm", "LSTM", "^gru", "^GRU", "rnn", "RNN"}},
  {"three-dimensional layers", {"3d$", "3d_with_indices$", "3D$", "[Vv]olumetric"}},
  {"internal to PyTorch: names of dims, names for compilers and devices", {"named", "^names$", "^refine_names", "^rename", "^align_", "^has_names", "^unsafe_", "^batch_norm_", "^native_", "cudnn", "miopen", "mps", "^ipu", "^xpu", "^hpu", "^mtia", "^vulkan", "_copy$", "^sym_", "^fused_moving", "^fake_quant",
    "^_", "^storage", "^untyped_storage", "^data_ptr$", "^share_memory", "^is_shared", "^is_set_to", "^set_$", "^resize", "^module_load", "^apply_$", "^map", "^record_stream", "^reinforce", "^register_post", "^backward$", "^is_inference", "^is_signed", "^is_nonzero", "^get_device", "^element_size",
    "^const_data", "^dim_order", "^detach_$", "^layer_stack", "^group_norm_", "^constant_pad", "^feature_", "has_torch_function", "^handle_torch", "^boolean_dispatch", "assert", "^multi_head_attention_forward", "^embedding_renorm", "^type", "^nelement$", "^ndimension$", "^cpu$", "^cuda$"}},
}
local function reason_of(name)
  for i, r in ipairs(reasons) do
    for _, p in ipairs(r[2]) do if name:find(p) then return i end end
  end
  return #reasons + 1
end
local spaces = {
  {"torch", tycho}, {"Tensor", core.methods}, {"nn.functional", tycho.nn.functional}, {"linalg", tycho.linalg}, {"fft", tycho.fft}, {"nn", tycho.nn}, {"optim", tycho.optim}, {"optim.lr_scheduler", tycho.optim.lr_scheduler}}
-- What Lua has another name or form for.
local otherwise = {arange = "range", ["where"] = "where", long = "long", ["repeat"] = "tile", stride = "stride", is_tensor = "is_tensor", requires_grad_ = "requires_grad_"}
local cover = {"# Coverage", "", "PyTorch's functions, methods, layers and optimizers (`docs/torch_names.txt`, made by `scripts/torch_names.py`) beside Tycho's. Made by `make docs`.", ""}
for _, space in ipairs(spaces) do
  local have, lack, total = {}, {}, 0
  for line in io.lines(here .. "/docs/torch_names.txt") do
    local where, name = line:match("^(%S+) (%S+)$")
    if where == space[1] then
      total = total + 1
      local found, there = pcall(function() return space[2][name] end)                -- some are found when they are asked for
      if found and there ~= nil and name ~= "arange" or otherwise[name] and rawget(space[2], otherwise[name]) ~= nil then have[#have + 1] = name
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
    if lack[r] then table.insert(cover, ("Not there, %s (%d): %s\n"):format(reasons[r] and reasons[r][1] or "a gap", #lack[r], table.concat(lack[r], ", "))) end
  end
end

local check, old = arg[1] == "--check", false
for name, lines in pairs {["docs/ops.md"] = md, ["docs/tycho.d.lua"] = cats, ["docs/coverage.md"] = cover, ["docs/reference.md"] = reference.lines(here)} do
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
