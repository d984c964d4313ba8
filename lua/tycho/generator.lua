-- Random generators of a program's own, beside each device's: draws from one don't affect the others. A generator is its state, two int64
-- (seed, offset) on its device. On the CPU the calling coroutine, and those that it resumes, draw from that memory for the duration of a
-- call. On a GPU the state replaces the device's own, in the order of the current stream, and is written back: the host doesn't wait, and a
-- graph's replays continue from its last draw.
local core = require "tycho.core"
local options = require "tycho.options"
local no_grad = require("tycho.modes").no_grad
local fail, gpu = options.fail, core.gpu
local Generator = {}
local class = {__index = Generator, __tostring = function(g) return ("Generator(device=%s)"):format(g.device) end}

local function is_generator(v) return getmetatable(v) == class end

-- Generator(device="cpu"): a random generator separate from the device's. Functions that draw take it as {generator = g}: randn, uniform_,
-- randperm, nn.init, random_split, DataLoader, samplers. After the same manual_seed it gives the same numbers as the device's own.
local function new(_, device)
  device = options.named("Generator", "device", device)
  local ok, x = pcall(core.ops.empty, {0}, {device = device or "cpu"})
  if not ok then fail("%s", (options.bare(x):gsub("^empty: argument %d", "Generator: argument 1"):gsub("^empty", "Generator"))) end
  return setmetatable({device = x.device}, class):manual_seed(67280421310721)
end

-- Calls fn(...), whose ops on the generator's device draw from this generator, and gives fn's results.
function Generator:draw(fn, ...)
  if type(fn) ~= "function" then fail("draw: argument 1 must be a function, got %s", options.shown(fn)) end
  if self.device == "cpu" then
    local function ended() core.draw_end(self._state) end
    core.draw_begin(self._state)
    return options.finally(ended, fn, ...)
  end
  local on = {device = self.device}
  local before = core.ops.rng_state(on)
  core.ops.set_rng_state(self._state)
  return options.finally(function()
    no_grad(core.methods.copy_, self._state, core.ops.rng_state(on))
    core.ops.set_rng_state(before)
  end, fn, ...)
end
-- Restarts from a seed, a whole number from 0; returns the generator.
function Generator:manual_seed(seed)
  options.whole("manual_seed", "argument 1 (seed)", seed, 0)
  return self:set_state {seed, 0}
end
-- The generator's last seed.
function Generator:initial_seed() return self:get_state()[1] end
-- Restarts from a seed taken from the system's clock, and returns the seed.
function Generator:seed()
  local seed = core.mix_seeds(math.floor(core.now() * 1e9) % 2 ^ 52, os.time()) % 2 ^ 52
  self:manual_seed(seed)
  return seed
end
-- The state for set_state: a list of seed and offset.
function Generator:get_state() return core.methods.totable(self._state) end
-- Continues from a state that get_state gave; gives the generator.
function Generator:set_state(state)
  local seed, offset = options.rng_state(state)
  state = core.methods.to(core.from_value({seed, offset}, "int64"), self.device)
  if self._state then no_grad(core.methods.copy_, self._state, state)    -- a graph uses that memory
  else self._state = core.keep(state) end
  return self
end
-- A table with the generator's state, for checkpoints.
function Generator:state_dict() return {state = self:get_state()} end
-- Continues from what state_dict gave.
function Generator:load_state_dict(d)
  if type(d) ~= "table" or d.state == nil then fail("load_state_dict: argument 1 must be a generator's state, got %s", options.shown(d)) end
  self:set_state(d.state)
end
-- Another generator in the same state.
function Generator:clone_state()
  return setmetatable({device = self.device, _state = core.keep(core.ops.clone(self._state))}, class)
end

options.colon(Generator, "generator", is_generator)

-- The option `generator` of `who`, checked, its device too.
local function of(who, g, device)
  if not is_generator(g) then fail("%s: generator must be a Generator, got %s", who, options.shown(g)) end
  if device and device ~= g.device then fail("%s: the generator is on %s, the numbers are drawn on %s", who, g.device, device) end
  return g
end

-- f, which draws random numbers, with the additional option {generator = g}.
local function drawing(who, f)
  return function(...)
    local n = select("#", ...)
    local o = n > 0 and select(n, ...) or nil
    local g = type(o) == "table" and rawget(o, "generator")
    if not g then return f(...) end
    local args, rest, like = {...}, {}, nil
    for i = n - 1, 1, -1 do if core.is_tensor(args[i]) then like = args[i].device end end
    for k, v in pairs(o) do if k ~= "generator" then rest[k] = v end end
    if next(rest) == nil then n = n - 1 else args[n] = rest end
    local device = rest.device or like or gpu.default_device()
    return of(who, g, device == "cuda" and "cuda:" .. gpu.current_device() or device):draw(f, unpack(args, 1, n))
  end
end

-- A seed from the options: seed itself, or one that their generator draws now. Both together are an error.
local function seed_of(who, o)
  if o.seed then options.whole(who, "seed", o.seed, 0) end
  if not o.generator then return o.seed end
  if o.seed then fail("%s: seed and generator exclude each other", who) end
  return of(who, o.generator, "cpu"):draw(core.ops.randint, 0, 2 ^ 52, {1}, {device = "cpu"}):item()
end

return {Generator = setmetatable({}, {__call = new}), is_generator = is_generator, seed_of = seed_of, drawing = drawing}
