-- The examples' command-line arguments: arguments{name = default, ...} returns a table of their values. --name VALUE sets an argument, to
-- a number where its default is one; --name alone sets one whose default is false. --help prints the program's opening comment.
return function(defaults)
  local options, i = {}, 1
  for name, default in pairs(defaults) do options[name] = default end
  local function stop(message)
    io.stderr:write(message, "; --help lists the arguments\n")
    os.exit(2)
  end
  while arg[i] do
    local name = arg[i]:match "^%-%-(.+)$"
    if name == "help" then
      for line in io.lines(arg[0]) do
        if not line:find "^%-%-" then os.exit(0) end
        print((line:gsub("^%-%- ?", "")))
      end
    end
    if not name or defaults[name] == nil then stop("unknown argument " .. arg[i]) end
    options[name] = true
    if defaults[name] ~= false then
      i = i + 1
      options[name] = arg[i]
      if type(defaults[name]) == "number" then options[name] = tonumber(arg[i]) end
      if options[name] == nil then stop(("--%s needs a %s"):format(name, type(defaults[name]) == "number" and "number" or "value")) end
    end
    i = i + 1
  end
  return options
end
