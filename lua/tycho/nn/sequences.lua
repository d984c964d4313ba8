-- Sequences of different lengths: padded, or packed as PyTorch packs them: step after step, each with the sequences that last so long.
--
-- Idea: packed sequences are sorted, longest first, so that a step's sequences are the first ones of the step before. data: (sum of
-- lengths, *); batch_sizes: a list of the number of sequences in each step; sorted_indices, unsorted_indices: vectors of which sequence is
-- at each place, and of each sequence's place; nil: in the given order.
local core = require "tycho.core"
local options = require "tycho.options"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local functions = lib.functions
local fail = options.fail
local sequences = {}

---- padding ----
-- pad_sequence(list, batch_first=false, padding_value=0, padding_side="right"): joins tensors (L_i, *) to one (L, N, *), or (N, L, *),
-- where L is the longest one's.
function sequences.pad_sequence(list, ...)
  local o = options.arguments("pad_sequence", "batch_first=false, padding_value=0, padding_side=right", ...)
  if type(list) ~= "table" or next(list) == nil then fail("pad_sequence: argument 1 must be a list of tensors, at least one") end
  options.items("pad_sequence", "argument 1", list)
  if o.padding_side ~= "right" and o.padding_side ~= "left" then
    fail("pad_sequence: padding_side must be right or left, got %s", tostring(o.padding_side))
  end
  local most, out = 0, {}
  for i, x in ipairs(list) do
    if not core.is_tensor(x) or M.dim(x) == 0 then
      fail("pad_sequence: item %d must be a tensor of at least 1 dim, got %s", i,
        core.is_tensor(x) and "a 0-dim tensor" or type(x))
    end
    most = math.max(most, x.shape[1])
  end
  for i, x in ipairs(list) do
    local missing, pad = most - x.shape[1], {}
    for k = 1, 2 * M.dim(x) do pad[k] = 0 end
    pad[2 * M.dim(x) - (o.padding_side == "left" and 1 or 0)] = missing
    out[i] = missing > 0 and functions.pad(x, pad, {value = o.padding_value}) or x
  end
  return ops.stack(out, o.batch_first and 1 or 2)
end

-- unpad_sequence(padded, lengths, batch_first=false): the list of sequences that pad_sequence was given.
function sequences.unpad_sequence(padded, lengths, ...)
  local o = options.arguments("unpad_sequence", "batch_first=false", ...)
  lengths = core.is_tensor(lengths) and M.totable(lengths) or lengths
  if not core.is_tensor(padded) or type(lengths) ~= "table" then
    fail("unpad_sequence: a tensor and the sequences' lengths are needed, got %s and %s", options.shown(padded), options.shown(lengths))
  end
  local out = {}
  local L = padded.shape[o.batch_first and 2 or 1]
  for i, n in ipairs(lengths) do
    options.whole("unpad_sequence", "length " .. i, n, 0)
    if n > L then fail("unpad_sequence: length %d is %d, the padded sequences have %d", i, n, L) end
  end
  for i, n in ipairs(lengths) do out[i] = ops.slice(M.select(padded, o.batch_first and 1 or 2, i), 1, 1, n) end
  return out
end

---- packed sequences ----
local Packed = {}
Packed.__index = Packed
Packed.__tostring = function(p) return ("PackedSequence of %d sequences, data %s"):format(p.batch_sizes[1], tostring(p.data.shape)) end
function sequences.is(v) return type(v) == "table" and getmetatable(v) == Packed end

-- Sequences of the same lengths with other data.
function sequences.with(p, data)
  return setmetatable({data = data, batch_sizes = p.batch_sizes, sorted_indices = p.sorted_indices,
    unsorted_indices = p.unsorted_indices}, Packed)
end
-- As a tensor's to: moved to a device, or converted to a dtype.
function Packed:to(...)
  local p = sequences.with(self, M.to(self.data, ...))
  for _, k in ipairs {"sorted_indices", "unsorted_indices"} do p[k] = self[k] and M.to(self[k], p.data.device) end
  return p
end

-- PackedSequence(data (sum of lengths, *), batch_sizes, sorted_indices=, unsorted_indices=): sequences that are packed already; or those of
-- a packed one with other data: rnn.PackedSequence(embedding(p.data), p.batch_sizes, p.sorted_indices, p.unsorted_indices). batch_sizes: a
-- list, or a tensor.
function sequences.PackedSequence(data, sizes, ...)
  local o = options.arguments("PackedSequence", "sorted_indices=nil, unsorted_indices=nil", ...)
  if core.is_tensor(sizes) then sizes = M.cpu(sizes):totable() elseif type(sizes) == "table" then sizes = {unpack(sizes)} end
  local total = 0
  if not core.is_tensor(data) or type(sizes) ~= "table" or #sizes == 0 then
    fail("PackedSequence: a tensor and a list of the steps' batch sizes are needed, got %s and %s", options.shown(data),
      options.shown(sizes))
  end
  for t, n in ipairs(sizes) do
    if type(n) ~= "number" or n % 1 ~= 0 or n < 1 or n > (sizes[t - 1] or n) then
      fail("PackedSequence: batch_sizes must be whole numbers from 1, none larger than the one before; item %d is %s", t, options.shown(n))
    end
    total = total + n
  end
  if M.dim(data) == 0 or data.shape[1] ~= total then
    fail("PackedSequence: argument 1 has shape %s; dim 1 must be %d, the sum of batch_sizes", tostring(data.shape), total)
  end
  local sorted, unsorted = o.sorted_indices, o.unsorted_indices
  if sorted and not unsorted then unsorted = functions.argsort(sorted) end
  if unsorted and not sorted then sorted = functions.argsort(unsorted) end
  return setmetatable({data = data, batch_sizes = sizes, sorted_indices = sorted, unsorted_indices = unsorted}, Packed)
end

-- Groups consecutive steps with the same sequences, as {at (first row of data), steps, batch}.
function sequences.runs(p)
  local out, at = {}, 1
  for _, n in ipairs(p.batch_sizes) do
    local last = out[#out]
    if last and last.batch == n then last.steps = last.steps + 1 else out[#out + 1] = {at = at, steps = 1, batch = n} end
    at = at + n
  end
  return out
end

local function vector(list, device) return M.to(core.from_value(list, "int64"), device) end
-- The numbers of sorted_indices as a list; those made here are known without a wait for a GPU.
local lists = setmetatable({}, {__mode = "k"})
local function list_of(indices)
  return M._version(indices) == 0 and lists[indices] or M.cpu(indices):totable()
end

-- pack_padded_sequence(x, lengths, batch_first=false, enforce_sorted=true): packs x (L, N, *), or (N, L, *), by each sequence's length, a
-- list or a tensor, for recurrent layers. enforce_sorted: the longest must come first.
function sequences.pack_padded_sequence(x, ...)
  local o = options.arguments("pack_padded_sequence", "lengths, batch_first=false, enforce_sorted=true", ...)
  local lengths = o.lengths
  if not core.is_tensor(x) or M.dim(x) < 2 then
    fail("pack_padded_sequence: argument 1 must be a tensor of at least 2 dims, got %s",
      core.is_tensor(x) and "shape " .. tostring(x.shape) or type(x))
  end
  if o.batch_first then x = M.transpose(x, 1, 2) end
  local most, n = x.shape[1], x.shape[2]
  lengths = core.is_tensor(lengths) and lib.list_of(lengths) or lengths
  if type(lengths) ~= "table" or #lengths ~= n then
    fail("pack_padded_sequence: argument 2 (lengths) must be %d whole numbers, one for each sequence", n)
  end
  local order, back, sorted = {}, {}, true
  if #lengths == 0 then fail("pack_padded_sequence: there must be at least one sequence, got none") end
  for i, v in ipairs(lengths) do
    if type(v) ~= "number" or v % 1 ~= 0 or v < 1 or v > most then
      fail("pack_padded_sequence: length %d is %s; it must be whole, from 1 to %d", i, tostring(v), most)
    end
    sorted = sorted and (i == 1 or v <= lengths[i - 1])
    order[i] = i
  end
  if o.enforce_sorted and not sorted then
    fail("pack_padded_sequence: the lengths must be sorted, longest first, unless {enforce_sorted = false} is given")
  end
  table.sort(order, function(a, b) return lengths[a] > lengths[b] or (lengths[a] == lengths[b] and a < b) end)
  for place, i in ipairs(order) do back[i] = place end
  local sizes, rows, lasting = {}, {}, n
  for t = 1, lengths[order[1]] do
    while lengths[order[lasting]] < t do lasting = lasting - 1 end
    sizes[t] = lasting
    for i = 1, lasting do rows[#rows + 1] = (t - 1) * n + order[i] end
  end
  local sorted_indices = not o.enforce_sorted and vector(order, x.device) or nil
  if sorted_indices then lists[sorted_indices] = order end
  return setmetatable({data = ops.index(M.flatten(x, 1, 2), {vector(rows, x.device)}, 1), batch_sizes = sizes,
    sorted_indices = sorted_indices, unsorted_indices = sorted_indices and vector(back, x.device)}, Packed)
end

-- pack_sequence(list, enforce_sorted=true): packs a list of (L_i, *).
function sequences.pack_sequence(list, ...)
  local o = options.arguments("pack_sequence", "enforce_sorted=true", ...)
  local lengths = {}
  local x = sequences.pad_sequence(list)
  for i, v in ipairs(list) do lengths[i] = v.shape[1] end
  return sequences.pack_padded_sequence(x, lengths, {enforce_sorted = o.enforce_sorted})
end

-- pad_packed_sequence(packed, batch_first=false, padding_value=0, total_length=): the padded tensor, (L, N, *) or (N, L, *), and the
-- lengths, an int64 vector on the CPU. total_length: L, if it is to be larger than the longest.
function sequences.pad_packed_sequence(p, ...)
  local o = options.arguments("pad_packed_sequence", "batch_first=false, padding_value=0, total_length=nil", ...)
  if not sequences.is(p) then fail("pad_packed_sequence: argument 1 must be a PackedSequence, got %s", options.shown(p)) end
  if o.total_length ~= nil then options.whole("pad_packed_sequence", "total_length", o.total_length, 1) end
  local n, steps = p.batch_sizes[1], o.total_length or #p.batch_sizes
  if steps * n > 2 ^ 31 then fail("pad_packed_sequence: total_length is too large, %d", steps) end
  if steps < #p.batch_sizes then
    fail("pad_packed_sequence: total_length must be at least %d, the longest sequence's, got %s", #p.batch_sizes,
      tostring(steps))
  end
  local order = p.sorted_indices and list_of(p.sorted_indices)
  local rows, lengths, at, missing = {}, {}, 0, #p.data + 1
  for i = 1, steps * n do rows[i] = missing end
  for t, size in ipairs(p.batch_sizes) do
    for i = 1, size do
      local which = order and order[i] or i
      rows[(t - 1) * n + which], lengths[which] = at + i, t
    end
    at = at + size
  end
  local none = M.fill_(M.new_empty(p.data, {1, unpack(p.data.shape, 2)}), o.padding_value)
  local x = M.unflatten(ops.index(ops.cat({p.data, none}, 1), {vector(rows, p.data.device)}, 1), 1, {steps, n})
  return o.batch_first and M.transpose(x, 1, 2) or x, core.from_value(lengths, "int64")
end

-- The list of (L_i, *) that pack_sequence was given.
function sequences.unpack_sequence(p)
  local x, lengths = sequences.pad_packed_sequence(p, {batch_first = true})
  return sequences.unpad_sequence(x, lengths, {batch_first = true})
end

-- Runs a recurrent layer along a packed sequence. all: (rows, gates), the input's contribution to the gates; h0, c0: (N,H). fn(x
-- (steps,batch,gates), h, c, reverse) gives hidden states, the last one, the last cell. Gives hidden states as rows, and each sequence's
-- last states.
function sequences.recur(p, all, h0, c0, reverse, fn)
  local runs, outs = sequences.runs(p), {}
  local ended_h, ended_c = {}, {}
  local function part(x, from, to) return x and ops.slice(x, 1, from, to) end
  local h, c, rows = h0, c0, reverse and 0 or p.batch_sizes[1]
  for k = reverse and #runs or 1, reverse and 1 or #runs, reverse and -1 or 1 do
    local r = runs[k]
    if reverse then                        -- shorter sequences join in
      if rows == 0 then h, c = part(h0, 1, r.batch), part(c0, 1, r.batch)
      else h, c = ops.cat({h, part(h0, rows + 1, r.batch)}, 1), c and ops.cat({c, part(c0, rows + 1, r.batch)}, 1) end
    elseif r.batch < rows then             -- or have ended
      table.insert(ended_h, 1, part(h, r.batch + 1, rows))
      if c then table.insert(ended_c, 1, part(c, r.batch + 1, rows)) end
      h, c = part(h, 1, r.batch), part(c, 1, r.batch)
    end
    rows = r.batch
    local y
    y, h, c = fn(M.unflatten(part(all, r.at, r.at + r.steps * r.batch - 1), 1, {r.steps, r.batch}), h, c, reverse)
    outs[k] = M.flatten(y, 1, 2)
  end
  return ops.cat(outs, 1), ops.cat({h, unpack(ended_h)}, 1), c and ops.cat({c, unpack(ended_c)}, 1)
end

-- Reorders the sequences, which are dim 2.
function sequences.reordered(x, indices) return indices and x and ops.index(x, {indices}, 2) or x end

return sequences
