std = "luajit"
max_line_length = false
files["spec"] = {std = "+busted"}
files["examples/neovim.lua"] = {read_globals = {"vim"}}
files["lua/tycho/grad"] = {ignore = {"212"}}       -- rules name what they need, in one order
self = false
