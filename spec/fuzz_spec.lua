-- What the fuzzers keep (spec/fuzz/corpus; `make fuzz`) goes through the readers as users call them: a value or an error that names the file.
local tycho = require "tycho"
local core = require "tycho.core"

local readers = {
  safetensors = tycho.load, idx = core.read_idx, picture = tycho.data.read_image, zip = tycho.load_npz, csv = tycho.data.read_csv,
  records = function(path) return core.read_records(path, 1, 3, 4, 4) end, array = tycho.load_npy}

describe("corpus", function()
  for name, read in pairs(readers) do
    it(name .. " crashes nothing", function()
      local n = 0
      for _, file in ipairs(assert(core.list_folder("spec/fuzz/corpus/" .. name))) do
        local path = "spec/fuzz/corpus/" .. name .. "/" .. file
        local ok, e = pcall(read, path)
        if not ok then assert.truthy(type(e) == "string" and e:find(path, 1, true), tostring(e)) end
        n = n + 1
      end
      assert.is_true(n > 0)
    end)
  end
end)
