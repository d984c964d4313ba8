-- Recurrent layers: RNN, LSTM, GRU and their cells, with PyTorch's weight names and gate order.
--
-- Idea: the input's contribution to the gates is one product for all steps; the part that depends on the previous step is the op recurrent,
-- which runs all steps, or a cell's op. States are additional arguments and results:
-- local y, h, c = lstm(x, h0, c0).
local core = require "tycho.core"
local check, fail = require("tycho.options").check, require("tycho.options").fail
local ops, M = core.ops, core.methods
local init = require "tycho.nn.init_functions"
local module = require "tycho.nn.module"
local modes = require "tycho.modes"
local F = require "tycho.nn.functional"
local sequences = require "tycho.nn.sequences"
local lib = require "tycho.nn.layer"
local layer, arguments, whole = lib.layer, lib.arguments, lib.whole

-- Each kind: the number of gates, of states, and op, its name for the op if that isn't the nonlinearity.
local KINDS = {RNN = {gates = 1, states = 1}, LSTM = {gates = 4, states = 2, op = "lstm"}, GRU = {gates = 3, states = 1, op = "gru"}}

-- All steps. x (L,N,gates*H): the input's contribution to the gates -> hidden states (L,N,H), the last one, the last cell hr: an LSTM's
-- projection of hidden states, for which the op isn't used
local function run(self, kind, x, w, b, h, c, reverse, hr)
  if hr then
    local out, steps = {}, x.shape[1]
    for k = 1, steps do
      local t = reverse and steps + 1 - k or k
      local i, f, g, o = unpack(M.chunk(M.select(x, 1, t) + ops.linear(h, w, b), 4, -1))
      c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
      h = ops.linear(ops.sigmoid(o) * ops.tanh(c), hr)
      out[t] = h
    end
    return ops.stack(out, 1), h, c
  end
  local out = ops.recurrent(x, w, b, h, c, kind.op or self.nonlinearity, {reverse = reverse})
  if kind.states == 2 then c, out = M.select(out, 1, -1), ops.slice(out, 1, 1, -2) end
  return out, M.select(out, 1, reverse and 1 or -1), c
end

-- projected: the size of hidden states, if it isn't `hidden`
local function weights(self, kind, inputs, hidden, bias, suffix, projected)
  local bound = 1 / math.sqrt(hidden)
  local function new(...) return module.Parameter(init.uniform_(ops.empty(...), -bound, bound)) end
  self["weight_ih" .. suffix] = new(kind.gates * hidden, inputs)        -- one by one: parameters are in the order of assignment
  self["weight_hh" .. suffix] = new(kind.gates * hidden, projected or hidden)
  if bias then
    self["bias_ih" .. suffix] = new(kind.gates * hidden)
    self["bias_hh" .. suffix] = new(kind.gates * hidden)
  end
  if projected then self["weight_hr" .. suffix] = new(projected, hidden) end
end

local function nonlinearity(name, o)
  local v = o.nonlinearity
  if v ~= nil and v ~= "tanh" and v ~= "relu" then fail("%s: nonlinearity must be tanh or relu, got %s", name, tostring(v)) end
  return v
end

-- Both states may come in one list, like PyTorch's pair, or by name; all or none.
local function states_of(name, kind, h, c)
  if type(h) == "table" and not core.is_tensor(h) and next(h) ~= nil and h[1] == nil then
    check(name, h, kind.states == 2 and {hx = true, h0 = true, c0 = true} or {hx = true, h0 = true})
    h, c = h.hx or h.h0, h.c0
  end
  if type(h) == "table" and not core.is_tensor(h) then
    if #h > kind.states then fail("%s: takes %d state, got a list of %d", name, kind.states, #h) end
    h, c = h[1], h[2]
  end
  if kind.states == 2 and (h == nil) ~= (c == nil) then
    fail(name .. ": give both states, as h, c or {h, c}, or neither; they are returned as two values, h, c")
  end
  return h, c
end

-- x has dims, or dims + 1 with a batch
local function check_input(name, x, dims, size)
  if not core.is_tensor(x) or M.dim(x) < dims or M.dim(x) > dims + 1 or x.shape[M.dim(x)] ~= size then
    fail("%s: the input must have %d or %d dims, the last of size %d, got %s", name, dims, dims + 1, size,
      core.is_tensor(x) and "shape " .. tostring(x.shape) or type(x))
  end
end

local function state(name, what, given, shape, x)
  if not given and modes.now.tracing then      -- of x's dtype, which may differ when the trace runs
    local step = (#shape == 3 or M.dim(x) == 3) and M.select(x, 1, 1) or x
    local one = ops.fill(M.narrow(step, -1, 1, 1), 0)
    return M.expand(#shape == 3 and M.unsqueeze(one, 1) or one, shape)
  end
  if not given then return ops.zeros(shape, {dtype = x.dtype, device = x.device}) end
  if not core.is_tensor(given) or tostring(given.shape) ~= table.concat(shape, "x") then
    fail("%s: %s must be a tensor of shape %s, got %s", name, what, table.concat(shape, "x"),
      core.is_tensor(given) and "shape " .. tostring(given.shape) or type(given))
  end
  if given.dtype ~= x.dtype and not core.autocast(x.device ~= "cpu") then
    fail("%s: %s has dtype %s; it must be %s as the input's", name, what, given.dtype, x.dtype)
  end
  return given
end

for name, kind in pairs(KINDS) do
  local Layer = layer(name)
  local nonlinear = name == "RNN" and "nonlinearity=tanh, " or ""
  -- The states to return: one, or two.
  local function left(h, c)
    if kind.states == 2 then return h, c end
    return h
  end

  -- x (L, N, input_size), or (N, L, input_size) with batch_first; also without N; or a packed sequence. local y, h, c = lstm(x, h0, c0);
  -- local y, h = gru(x, h0): y (L, N, D*H) has the last layer's states of all steps, h and c (D*num_layers, N, H) those of the last step; D
  -- is 2 if bidirectional, else 1. h0 and c0 are zeros unless given. dropout: between layers, in training. RNN has nonlinearity="tanh" or
  -- "relu" before bias; LSTM has a last argument proj_size=0, the size to which hidden states are projected (not cells).
  function Layer:init(...)
    local o = arguments(name,
      "input_size, hidden_size, num_layers=1, " .. nonlinear ..
        "bias=true, batch_first=false, dropout=0, bidirectional=false" .. (name == "LSTM" and ", proj_size=0" or ""), ...)
    local inputs, hidden = whole(name, "input_size", o.input_size), whole(name, "hidden_size", o.hidden_size)
    self.input_size, self.hidden_size, self.num_layers = inputs, hidden, whole(name, "num_layers", o.num_layers)
    self.batch_first, self.dropout, self.bidirectional, self.nonlinearity = o.batch_first, o.dropout, o.bidirectional, nonlinearity(name, o)
    if type(o.dropout) ~= "number" or not (o.dropout >= 0 and o.dropout <= 1) then
      fail(name .. ": dropout must be in 0..1, got " .. tostring(o.dropout))
    end
    if o.proj_size and (type(o.proj_size) ~= "number" or o.proj_size % 1 ~= 0 or o.proj_size < 0 or o.proj_size >= hidden) then
      fail("LSTM: proj_size must be a whole number from 0, below hidden_size %d, got %s", hidden, lib.shown(o.proj_size))
    end
    self.proj_size = o.proj_size or 0
    local ways, projected = o.bidirectional and 2 or 1, self.proj_size > 0 and self.proj_size or nil
    for l = 0, self.num_layers - 1 do
      for way = 1, ways do
        weights(self, kind, l == 0 and inputs or ways * (projected or hidden), hidden, o.bias,
          "_l" .. l .. (way == 2 and "_reverse" or ""), projected)
      end
    end
  end

  -- x (L,N,E), batch_first: (N,L,E), or (L,E); states (layers * ways, N, H), or (layers * ways, H) -> y (L,N, ways * H), states. x may be
  -- packed (nn.utils.rnn): then y is too. An LSTM's states are h and c: y, h, c = lstm(x, h, c), or lstm(x, {h, c}), lstm(x, {hx = {h,
  -- c}}).
  function Layer:forward(x, h0, c0)
    local pack = sequences.is(x) and x
    if pack then x = pack.data end
    h0, c0 = states_of(name, kind, h0, c0)
    check_input(name, x, 2, self.input_size)
    local alone = not pack and M.dim(x) == 2
    if alone then x = M.unsqueeze(x, 2)
    elseif self.batch_first and not pack then x = M.transpose(x, 1, 2) end
    local n, H, ways = pack and pack.batch_sizes[1] or x.shape[2], self.hidden_size, self.bidirectional and 2 or 1
    if x.shape[1] == 0 then fail(name .. ": the input must have at least one step") end
    local function shape(size) return alone and {self.num_layers * ways, size} or {self.num_layers * ways, n, size} end
    local h_in, c_in = state(name, "argument 2 (h0)", h0, shape(self.proj_size > 0 and self.proj_size or H), x),
      kind.states == 2 and state(name, "argument 3 (c0)", c0, shape(H), x) or nil
    if alone then h_in, c_in = M.unsqueeze(h_in, 2), c_in and M.unsqueeze(c_in, 2) end
    if pack then h_in, c_in = sequences.reordered(h_in, pack.sorted_indices), sequences.reordered(c_in, pack.sorted_indices) end
    local last_h, last_c = {}, {}
    for l = 0, self.num_layers - 1 do
      local sides = {}
      for way = 1, ways do
        local k, suffix = l * ways + way, "_l" .. l .. (way == 2 and "_reverse" or "")
        local w, b, hr = self["weight_hh" .. suffix], self["bias_hh" .. suffix], self["weight_hr" .. suffix]
        local all = ops.linear(x, self["weight_ih" .. suffix], self["bias_ih" .. suffix])
        local function along(part, h, c, reverse) return run(self, kind, part, w, b, h, c, reverse, hr) end
        local first_h, first_c = M.select(h_in, 1, k), c_in and M.select(c_in, 1, k)
        if pack then sides[way], last_h[k], last_c[k] = sequences.recur(pack, all, first_h, first_c, way == 2, along)
        else sides[way], last_h[k], last_c[k] = along(all, first_h, first_c, way == 2) end
      end
      x = ways == 2 and ops.cat(sides, -1) or sides[1]
      if l < self.num_layers - 1 and self.dropout > 0 then x = F.dropout(x, self.dropout, {training = self.training}) end
    end
    local h, c = ops.stack(last_h, 1), c_in and ops.stack(last_c, 1) or nil
    if alone then return M.squeeze(x, 2), left(M.squeeze(h, 2), c and M.squeeze(c, 2)) end
    if pack then
      return sequences.with(pack, x), left(sequences.reordered(h, pack.unsorted_indices), sequences.reordered(c, pack.unsorted_indices))
    end
    return self.batch_first and M.transpose(x, 1, 2) or x, left(h, c)
  end
  -- Does nothing; the parameters need no flattening.
  function Layer:flatten_parameters() return self end
  function Layer:extra_repr()
    return ("%d, %d"):format(self.input_size, self.hidden_size) ..
      (self.num_layers > 1 and ", num_layers=" .. self.num_layers or "") .. (self.bias_ih_l0 and "" or ", bias=false") ..
      (self.batch_first and ", batch_first=true" or "") .. (self.dropout > 0 and (", dropout=%g"):format(self.dropout) or "") ..
      (self.bidirectional and ", bidirectional=true" or "") .. (self.proj_size > 0 and ", proj_size=" .. self.proj_size or "")
  end

  local Cell = layer(name .. "Cell")
  -- One step: local h, c = lstm_cell(x, h, c); local h = gru_cell(x, h): x (N, input_size), states (N, hidden_size), zeros unless given;
  -- also without N.
  function Cell:init(...)
    local o = arguments(name .. "Cell", "input_size, hidden_size, bias=true" .. (name == "RNN" and ", nonlinearity=tanh" or ""), ...)
    local inputs, hidden = whole(name .. "Cell", "input_size", o.input_size), whole(name .. "Cell", "hidden_size", o.hidden_size)
    self.input_size, self.hidden_size, self.nonlinearity = inputs, hidden, nonlinearity(name .. "Cell", o)
    weights(self, kind, inputs, hidden, o.bias, "")
  end
  function Cell:forward(x, h, c)
    h, c = states_of(name .. "Cell", kind, h, c)
    check_input(name .. "Cell", x, 1, self.input_size)
    local alone = M.dim(x) == 1
    if alone then x, h, c = M.unsqueeze(x, 1), h and M.unsqueeze(h, 1), c and M.unsqueeze(c, 1) end
    local shape = {x.shape[1], self.hidden_size}
    h = state(name .. "Cell", "argument 2 (h)", h, shape, x)
    c = kind.states == 2 and state(name .. "Cell", "argument 3 (c)", c, shape, x) or nil
    local _
    _, h, c = run(self, kind, M.unsqueeze(ops.linear(x, self.weight_ih, self.bias_ih), 1), self.weight_hh, self.bias_hh, h, c)
    if alone then return left(M.squeeze(h, 1), c and M.squeeze(c, 1)) end
    return left(h, c)
  end
  function Cell:extra_repr()
    return ("%d, %d%s%s"):format(self.input_size, self.hidden_size, self.bias_ih and "" or ", bias=false",
      self.nonlinearity and self.nonlinearity ~= "tanh" and ", nonlinearity=" .. self.nonlinearity or "")
  end
end
