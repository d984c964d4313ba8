-- Trains within Neovim, which stays responsive: each turn of the event loop does a few training steps. :TychoLoss shows the loss,
-- :TychoStop ends the training. Any host that calls Lua again and again can do so: a game, once a frame.
--
--   nvim -c "luafile examples/neovim.lua"
local tycho = require "tycho"
local nn, optim = tycho.nn, tycho.optim
tycho.set_num_threads(1)                                          -- leaves the other cores to the editor

-- the data: two spirals, a class each
local n = 500
local angle = tycho.rand(2 * n):mul(3 * math.pi)
local side = tycho.cat {tycho.ones(n), tycho.ones(n):neg()}
local x = tycho.stack({angle:cos(), angle:sin()}, 2) * (angle * side):unsqueeze(2) / 10
local y = side:lt(0):long() + 1

local net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
local optimizer = optim.AdamW(net:parameters(), {lr = 3e-3})
local step, loss, timer = 0, nil, vim.loop.new_timer()

local function train()
  loss = tycho.cross_entropy(net(x), y)
  optimizer:zero_grad()
  loss:backward()
  optimizer:step()
  step = step + 1
end

local function stop()
  if not timer:is_closing() then timer:close() end
end

timer:start(0, 1, vim.schedule_wrap(function()
  local enough = vim.loop.hrtime() + 8e6                          -- 8 ms, then the editor's turn
  while step < 2000 and vim.loop.hrtime() < enough do train() end
  if step == 2000 then stop() end
end))
vim.api.nvim_create_user_command("TychoLoss", function()
  local right = tycho.no_grad(net, x):argmax(2):eq(y):double():mean():item()
  print(("step %d, loss %.4f, right %.3f"):format(step, loss and loss:item() or 0 / 0, right))
end, {})
vim.api.nvim_create_user_command("TychoStop", stop, {})
