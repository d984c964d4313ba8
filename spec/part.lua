-- One part of each spec file's cases, for tools under which a whole file takes too long: busted --helper=spec/part.lua, with PART=k/n in
-- the environment, runs each n-th case from the k-th on. Every case is in one part: n runs cover the file.
local k, n = (os.getenv "PART" or "1/1"):match "^(%d+)/(%d+)$"
k, n = assert(tonumber(k), "PART must be k/n"), tonumber(n)
assert(k >= 1 and k <= n, "PART must be k/n, with k from 1 to n")
local cases = 0
require("busted").subscribe({"register", "it"}, function()
  cases = cases + 1
  return nil, cases % n == k % n
end, {priority = 1})
