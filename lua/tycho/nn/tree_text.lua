-- A module as text: the tree of the modules in it, as tostring() gives it. A layer describes itself by extra_repr(). order_of(m): the names
-- of its parts; part(m, name): a part; shown_name(name): its public name. See module.lua.
return function(order_of, part, shown_name)
  local function describe(self, indent, within)
    local lines = {}
    if within[self] then return self._name .. "(...)" end      -- a module may contain its own container
    within[self] = true
    local first, last, same                -- members of a list that look alike are shown once: (0-2): 3 x Linear(...)
    local function tell()
      if not same then return end
      lines[#lines + 1] = first == last and ("%s  (%s): %s"):format(indent, first, same) or
        ("%s  (%s-%s): %d x %s"):format(indent, first, last, last - first + 1, same)
    end
    for _, name in ipairs(order_of(self)) do
      local kind, text = self._kinds[name], nil
      if kind == "module" then text = describe(part(self, name), indent .. "  ", within)
      elseif kind == "parameter" and self._tells_parameters then
        local p = part(self, name)
        text = ("Parameter of size %s, %s on %s"):format(tostring(p.shape), p.dtype, p.device)
      end
      if text and text == same and self._folds and type(name) == "number" then last = shown_name(name)
      elseif text then
        tell()
        first, last, same = shown_name(name), shown_name(name), text
      end
    end
    tell()
    within[self] = nil
    local extra = self.extra_repr and self:extra_repr() or ""
    if #lines == 0 then return self._name .. "(" .. extra .. ")" end
    if extra ~= "" then table.insert(lines, 1, indent .. "  " .. extra) end
    return self._name .. "(\n" .. table.concat(lines, "\n") .. "\n" .. indent .. ")"
  end
  return describe
end
