-- What the fuzzers keep (spec/fuzz/corpus; `make fuzz`) goes through the readers as users call them: a value or an
-- error that names the file.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"

-- The machine's instructions, in an archive of their own.
local function load_pickle(path)
  local archive, none = helper.folder() .. "/pickle.pt", tycho.zeros(0, {dtype = "uint8", device = "cpu"})
  core.zip_write(archive, {"a/data.pkl", "a/data/0"}, {helper.read_file(path), ("\1\2\3\4"):rep(16)}, {none, none})
  local ok, v = pcall(tycho.load, archive)
  os.execute("rm -r " .. archive:match "^(.*)/")
  if not ok then error((tostring(v):gsub(archive, function() return path end)), 0) end
end

local readers = {pickle = load_pickle, npy = tycho.load_npy,
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
