-- Several processes: each case of spec/fixtures/processes.lua, started by mpirun. Equal to one process with all the data.
local tycho = require "tycho"
local helper = require "spec.helper"

local simulated = helper.device == "cpu" or tycho.cuda.get_device_name(0):find "simulated"
-- NCCL takes no GPU twice in one host: where there are too few, each process is told that it is a host of its own.
local apart = not simulated and tycho.cuda.device_count() < 3
-- What n processes print, and how they end.
local function run(case, n, more)
  local allowed = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \z
    OMPI_MCA_btl_vader_single_copy_mechanism=none OMP_NUM_THREADS=1"
  local each = "luajit spec/fixtures/processes.lua " .. case
  if apart then
    allowed = allowed .. " NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1"
    each = ("sh -c 'NCCL_HOSTID=$OMPI_COMM_WORLD_RANK exec %s'"):format(each)
  end
  local p = io.popen((more or "") .. ("%s timeout 120 mpirun --oversubscribe -n %d %s 2>&1; echo ended $?"):format(allowed, n, each))
  local text = p:read "*a"
  p:close()
  return text
end

describe("several processes", function()
  if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- they are run by the stock luajit
  if not tycho.distributed.is_available() or not io.popen("command -v mpirun"):read "*l" then
    pending "need tycho/mpi.so and mpirun"
    return
  end
  for _, case in ipairs {"reductions", "movement", "values", "gradients", "parallel", "comm_hooks", "accumulation", "unused",
      "scaler", "buffers", "compiled", "replays", "batch_norm", "sampler", "refusals", "wrapping", "joining",
      "sharded", "sharded_more", "sharded_any", "sharded_use", "zero"} do
    it("agree: " .. case, function()
      local text = run(case, 2)
      assert.truthy(text:find("process 0 of 2: sound", 1, true) and
        text:find("process 1 of 2: sound", 1, true) and text:find "ended 0", text)
    end)
  end
  it("form groups", function()
    local text = run("groups", 3)
    assert.truthy(text:find("process 2 of 3: sound", 1, true) and text:find "ended 0", text)
  end)
  it("shard by one and by three", function()
    for _, n in ipairs {1, 3} do
      local text = run("sharded_any", n)
      assert.truthy(text:find(("process %d of %d: sound"):format(n - 1, n), 1, true) and text:find "ended 0", text)
    end
  end)
  it("are one without mpirun #cpu", function()
    local p = io.popen [[luajit -e 'local d = require("tycho").distributed
      d.init_process_group()
      local x = require("tycho").ones(2)
      d.all_reduce(x)
      print(d.get_world_size(), x[1])' 2>/dev/null]]
    assert.equal("1\t1\n", p:read "*a")
    p:close()
  end)
  it("must have models of one build", function()
    local text = run("unlike", 2)
    assert.truthy(text:find("parameter 1 is weight: float32 3x2 here and weight: float32 2x2 in process 0", 1, true) and
      not text:find "ended 0", text)
  end)
  it("compare what they are about to do", function()
    local text = run("disorder", 2, "TYCHO_DEBUG=distributed ")
    assert.truthy(text:find("process 0 of 2: sound", 1, true) and text:find("process 1 of 2: sound", 1, true), text)
  end)
  it("end when one of them fails #cpu", function()
    local text = run("failure", 2)
    assert.truthy(text:find("a mistake of this process", 1, true) and not text:find "ended 0" and not text:find "ended 124", text)
  end)
  it("say when another doesn't come #cpu", function()
    local text = run("patience", 2)
    assert.truthy(text:find("patient", 1, true) and not text:find("lacks", 1, true) and not text:find("no error", 1, true), text)
  end)

  it("need init_process_group first", function()
    helper.fails("call init_process_group() first", tycho.distributed.all_reduce, tycho.zeros(1))
    helper.fails("call init_process_group() first", tycho.distributed.get_rank)
    assert.is_false(tycho.distributed.is_initialized())
  end)
end)
