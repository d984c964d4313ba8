# Tycho. `make demo` and `make test` install what is missing (through apt), build, and run; the rest builds only.
#
#   make            build/tycho/core.so
#   make demo       train examples/fashion_mnist.lua        make test       the specs, under busted
#   make lint       luacheck, -Werror, layering laws        make bench      timings, beside PyTorch where there is one
#   make test-asan, test-valgrind, test-crash               make golden     golden files, from PyTorch
#   make            also makes build/tycho/mpi.so, where mpicc is
#   make cuda       build/tycho/cuda.so, where nvcc is          make test-sim   GPU specs on a simulated GPU, where CUDA's headers are
#   make test-sim-full, test-sim-asan, test-plans, test-sources, test-gpu, sanitize-gpu, bench-gpu: see docs/contributing.md
#   make docs       docs/ops.md, docs/reference.md, editor stubs

CC      ?= gcc
LUAJIT  ?= luajit
BUILD   ?= build
TRIPLET := $(shell $(CC) -print-multiarch 2>/dev/null)
BLAS    ?= /usr/lib/$(TRIPLET)/openblas-openmp
LUA_INCDIR ?= $(shell pkg-config --variable=includedir luajit 2>/dev/null)

# Contraction is off, so that a*b+c gives the same bits everywhere; integers wrap.
CFLAGS  ?= -O2 -g
override CFLAGS += -std=gnu11 -fPIC -fopenmp -fvisibility=hidden -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off \
  -Wall -Wextra -DTY_INTERFACE=$(INTERFACE)u -iquote src/core -iquote src/cpu -iquote src/io -iquote src/lua -I$(LUA_INCDIR) -I/usr/include/$(TRIPLET)/openblas-openmp
override LDFLAGS += -shared -fopenmp -Wl,-z,nodelete -Wl,-rpath,$(BLAS) -L$(BLAS)
LDLIBS  += -lopenblas -ldnnl -ljansson -lspng -lturbojpeg -lxxhash -lzip -lz -lm -ldl

SRC  := $(filter-out %loops.c,$(wildcard src/core/*.c src/cpu/*.c src/io/*.c src/lua/*.c))
OBJ  := $(SRC:src/%.c=$(BUILD)/%.o)
# The vector loops are built once for each instruction set; one is picked at run time.
ISAS := base
ISA_base :=
ifneq ($(filter x86_64%,$(TRIPLET)),)
ISAS += avx2 avx512
ISA_avx2 := -march=haswell
ISA_avx512 := -march=skylake-avx512 -mprefer-vector-width=512
endif
LOOPS := loops pool_loops product_loops column_loops sample_loops depthwise_loops fourier_loops distance_loops matrix_loops
OBJ  += $(foreach f,$(LOOPS),$(ISAS:%=$(BUILD)/cpu/$(f)_%.o))
# without attributes.h, which is made from ops.def, perhaps only in this run
INTERFACE := $(shell cat $(filter-out src/core/attributes.h,$(wildcard src/core/*.h)) src/core/*.def | cksum | cut -d' ' -f1)
HDR  := $(wildcard src/*/*.h src/core/*.def)

export LUA_PATH  = $(CURDIR)/lua/?.lua;$(CURDIR)/lua/?/init.lua;$(CURDIR)/?.lua;;
export LUA_CPATH = $(CURDIR)/$(BUILD)/?.so;;

PREFIX_LUA ?= /usr/local/share/lua/5.1
PREFIX_LIB ?= /usr/local/lib/lua/5.1
BUSTED  = $(LUAJIT) $(shell command -v busted)
# How many spec files are tested at a time. With ARGS (files or options for busted) one process runs all.
JOBS   ?= $(shell nproc)
SPLIT   = $(if $(ARGS),0,$(JOBS))
BUILD_PACKAGES = gcc libc6-dev pkg-config luajit libluajit-5.1-dev libopenblas-openmp-dev libdnnl-dev libjansson-dev libspng-dev libturbojpeg0-dev libxxhash-dev libzip-dev zlib1g-dev
TEST_PACKAGES  = lua-busted libopenmpi-dev openmpi-bin
LINT_PACKAGES  = lua-check
DEMO_PACKAGES  = dataset-fashion-mnist

# Names each target that is built; V=1 shows the whole command.
ifeq ($(V),)
SAY = @printf '%-5s %s\n'
RUN = @
else
SAY = @:
RUN =
endif

ifeq ($(LUA_INCDIR),)
ifeq ($(filter demo test lint clean uninstall,$(MAKECMDGOALS)),)
$(info There are no headers of LuaJIT here: `make demo` and `make test` install what is missing, or see docs/install.md.)
endif
endif

all: $(BUILD)/tycho/core.so

$(BUILD)/tycho/core.so: $(OBJ)
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(RUN)$(CC) -o $@ $^ -Wl,--wrap=GOMP_parallel $(LDFLAGS) $(LDLIBS)

src/core/attributes.h: src/core/ops.def scripts/attributes
	scripts/attributes $< >$@.new && mv $@.new $@

$(BUILD)/%.o: src/%.c $(HDR)
	@mkdir -p $(@D)
	$(SAY) CC $@
	$(RUN)$(CC) $(CFLAGS) -c $< -o $@

$(BUILD)/cpu/copy.o $(BUILD)/cpu/index.o $(BUILD)/cpu/nonzero.o $(BUILD)/cpu/random.o $(BUILD)/cpu/resize.o $(BUILD)/io/picture.o $(BUILD)/io/warp.o: CFLAGS += -O3     # these have inner loops of their own

define VECTOR
$(BUILD)/cpu/$(1)_%.o: src/cpu/$(1).c $(HDR)
	@mkdir -p $$(@D)
	$$(SAY) CC $$@
	$$(RUN)$(CC) $$(CFLAGS) -O3 $$(ISA_$$*) -DTY_ISA=$$* -c $$< -o $$@
endef
$(foreach f,$(LOOPS),$(eval $(call VECTOR,$(f))))

# ---- the library for several processes, where there is MPI's compiler ----

MPICC ?= $(shell command -v mpicc 2>/dev/null)
ifneq ($(MPICC),)
all: $(BUILD)/tycho/mpi.so
endif

$(BUILD)/tycho/mpi.so: src/mpi/mpi.c $(HDR)
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(RUN)$(MPICC) $(CFLAGS) -fno-openmp $< -o $@ -shared -Wl,-z,nodelete

# ---- the GPU library, where there is nvcc; and its simulation, where there are CUDA's headers ----

CUDA_HOME ?= $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v nvcc 2>/dev/null)))
NVCC := $(CUDA_HOME)/bin/nvcc
CUDA_ARCHS ?= 80 89 90
CUDA_C  := $(wildcard src/cuda/*.c) src/core/error.c
KERNELS := $(wildcard kernels/*.cu)
CUDA_HDR := $(HDR) $(wildcard kernels/*.h)
KERNEL_HDR := $(wildcard kernels/*.h kernels/*.cuh) $(addprefix src/core/,names.h elementary.h math.h special.h draws.h cells.h optim_formulas.h augment.h taps.h grid_points.h fourier.h distances.h pivots.h ops.def)    # all that kernels see
CUDNN_HOME ?= $(CUDA_HOME)
CUDA_INC := -iquote kernels -iquote src/cuda -iquote $(BUILD)/cuda -I$(CUDA_HOME)/include -I$(CUDNN_HOME)/include $(if $(NCCL_HOME),-I$(NCCL_HOME)/include)
CUDA_LIB := $(foreach d,$(CUDA_HOME)/lib64 $(CUDA_HOME)/lib $(CUDNN_HOME)/lib,-L$(d) -Wl,-rpath,$(d))
GENCODE  := $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))

ifneq ($(CUDA_HOME),)
cuda: all $(BUILD)/tycho/cuda.so
endif

$(BUILD)/tycho/cuda.so: $(CUDA_C:src/%.c=$(BUILD)/%.o) $(KERNELS:%.cu=$(BUILD)/%.o)
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(RUN)$(CXX) -o $@ $^ -shared -Wl,-z,nodelete,--no-undefined $(CUDA_LIB) -lcudart -lcublasLt -lcudnn -lz -ldl

# the texts that sources made at run time begin with, as strings
define TEXT
$(BUILD)/cuda/$(1)_text.h: $(2)
	@mkdir -p $$(@D)
	@{ echo '#define TY_$(3)_TEXT \'; sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$$$/\\n" \\/' $$<; echo '""'; } > $$@
$(BUILD)/cuda/source.o: $(BUILD)/cuda/$(1)_text.h
endef
$(eval $(call TEXT,elementary,src/core/elementary.h,ELEMENTARY))
$(eval $(call TEXT,math,src/core/math.h,MATH))
$(eval $(call TEXT,special,src/core/special.h,SPECIAL))
$(eval $(call TEXT,block,kernels/block.cuh,BLOCK))
$(eval $(call TEXT,fused,kernels/fused.cuh,FUSED))

$(BUILD)/cuda/%.o: src/cuda/%.c $(CUDA_HDR)
	@mkdir -p $(@D)
	$(SAY) CC $@
	$(RUN)$(CC) $(CFLAGS) $(CUDA_INC) -c $< -o $@

$(BUILD)/kernels/%.o: kernels/%.cu $(KERNEL_HDR)
	@mkdir -p $(@D)
	$(SAY) NVCC $@
	$(RUN)$(NVCC) -std=c++17 -O3 --fmad=false $(GENCODE) -Xcompiler -fPIC,-fvisibility=hidden,-iquote,src/core,-iquote,kernels -c $< -o $@

SIM := $(BUILD)/sim
comma := ,
SIM_FLAGS = -DCUDA_INCLUDE=\"$(CUDA_HOME)/include\" $(SIM_MORE) -g -fPIC -fvisibility=hidden -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off -Wall -Wextra -Wno-unknown-pragmas -DTY_SIM -iquote src/core -iquote spec/simgpu $(CUDA_INC)

# spec/simgpu replaces the files that call NVIDIA's libraries
SIM_OBJ := $(patsubst src/%.c,$(BUILD)/%.o,$(filter-out src/cuda/blas_lt.c src/cuda/nvrtc.c src/cuda/nccl.c src/cuda/vmm.c src/cuda/dnn_%,$(CUDA_C))) $(KERNELS:%.cu=$(SIM)/%.o) $(patsubst %,$(SIM)/%.o,sim fibers rtc libraries ccl product attend)

$(SIM)/tycho/cuda.so: $(SIM_OBJ)
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(RUN)$(CXX) -o $@ $^ -shared -pthread -lz -ldl -Wl,-z,nodelete $(if $(SIM_MORE),,-Wl$(comma)--no-undefined) $(SIM_MORE)

$(SIM)/kernels/%.o: kernels/%.cu $(KERNEL_HDR) spec/simgpu/sim.h
	@mkdir -p $(@D)
	$(SAY) CXX $@
	$(RUN)$(CXX) -std=c++17 -O1 $(SIM_FLAGS) -x c++ -c $< -o $@

$(SIM)/planted: spec/simgpu/planted.cpp $(SIM)/sim.o $(SIM)/fibers.o $(KERNEL_HDR)
	@mkdir -p $(@D)
	$(SAY) CXX $@
	$(RUN)$(CXX) -std=c++17 -O1 $(SIM_FLAGS) $< $(SIM)/sim.o $(SIM)/fibers.o -o $@ -pthread

$(SIM)/libraries.o $(SIM)/ccl.o: $(SIM)/%.o: spec/simgpu/%.c $(CUDA_HDR)
	@mkdir -p $(@D)
	$(SAY) CC $@
	$(RUN)$(CC) $(CFLAGS) $(CUDA_INC) -c $< -o $@

$(SIM)/product.o $(SIM)/attend.o: $(SIM)/%.o: spec/simgpu/%.cpp $(KERNEL_HDR) spec/simgpu/sim.h
	@mkdir -p $(@D)
	$(SAY) CXX $@
	$(RUN)$(CXX) -std=c++17 -O1 $(SIM_FLAGS) -iquote kernels -c $< -o $@

$(SIM)/%.o: spec/simgpu/%.cpp spec/simgpu/sim.h
	@mkdir -p $(@D)
	$(SAY) CXX $@
	$(RUN)$(CXX) -std=c++17 -O2 $(SIM_FLAGS) -c $< -o $@

# Lockstep: every access of the host to device memory faults; asynchronous: missing waits show. SEED=n for another order.
SEED ?= $(shell date +%j)
SIM_ENV = TYCHO_TEST_DEVICE=cuda TYCHO_CACHE="$(CURDIR)/$(SIM)/kernels-cache" TYCHO_SIM_SEED=$(SEED) TYCHO_CUDA_LIBRARY="$(CURDIR)/$(SIM)/tycho/cuda.so"
ifneq ($(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h),)
test-sim:
	@$(MAKE) --no-print-directory test-sim-lockstep
	@$(MAKE) --no-print-directory test-sim-async

# Both modes share the fused kernels that the host's compiler has built.
test-sim-lockstep: all $(SIM)/tycho/cuda.so $(SIM)/planted
	@echo "simulated GPU, seed $(SEED)"
	@TYCHO_SIM_SEED=$(SEED) $(SIM)/planted
	@$(SIM_ENV) TYCHO_SIM=lockstep scripts/specs $(BUILD)/sim-lockstep.log $(SPLIT) $(BUSTED) --exclude-tags=cpu,long $(ARGS)

test-sim-async: all $(SIM)/tycho/cuda.so
	@SPECS="$(filter-out %golden_spec.lua,$(wildcard spec/*_spec.lua))" $(SIM_ENV) TYCHO_SIM=async scripts/specs $(BUILD)/sim-async.log $(SPLIT) $(BUSTED) --exclude-tags=cpu,long $(ARGS)

# 20 seeds, then under sanitizers: hours.
test-sim-full:
	@for s in $$(seq 1 20); do TYCHO_SIM_WHOLE=1 $(MAKE) --no-print-directory test-sim SEED=$$s || exit 1; done
	@$(MAKE) --no-print-directory test-sim-asan
else
test-sim test-sim-full test-sim-lockstep test-sim-async:
	@echo "test-sim: no CUDA headers here (CUDA_HOME); nothing was tested"
endif

# The same specs on hardware, GPU_JOBS files at a time, since each takes memory there. The library is brought up to date first, unless
# BUILT is set: then a finished one was brought along.
GPU_JOBS ?= 6
test-gpu: all
	@if [ -n "$(CUDA_HOME)" ] && [ -z "$(BUILT)" ]; then $(MAKE) --no-print-directory cuda; fi
	TYCHO_TEST_DEVICE=cuda scripts/specs $(BUILD)/gpu.log $(if $(ARGS),0,$(GPU_JOBS)) $(BUSTED) --exclude-tags=cpu,long $(ARGS)

# The same under compute-sanitizer, each tensor in memory of its own; some files take minutes. TOOL: memcheck, racecheck, initcheck,
# synccheck; SPECS="spec/rows_spec.lua ..." selects files; PARTS=8 spreads the cases of each file over so many processes.
TOOL ?= memcheck
sanitize-gpu: all
	TYCHO_CUDA_CACHE=0 TYCHO_TEST_DEVICE=cuda scripts/specs $(BUILD)/$(TOOL).log $(GPU_JOBS) \
	  compute-sanitizer --tool $(TOOL) --error-exitcode 9 --print-limit 10 $(BUSTED) --exclude-tags=cpu,long

# Whether NVRTC compiles every fused kernel that the specs have made on the simulated GPU.
$(BUILD)/sources: spec/simgpu/sources.c src/cuda/nvrtc.c $(CUDA_HDR)
	$(SAY) CC $@
	$(RUN)$(CC) $(filter-out -fPIC -fvisibility=hidden,$(CFLAGS)) $(CUDA_INC) $(filter %.c,$^) -o $@ $(CUDA_LIB) -lcudart -ldl

ifneq ($(wildcard $(CUDA_HOME)/include/nvrtc.h),)
test-sources: $(BUILD)/sources
	@$< $(CURDIR)/$(SIM)/kernels-cache
else
test-sources:
	@echo "test-sources: no NVRTC here (CUDA_HOME); nothing was tested"
endif

# Whether cuDNN has plans for what Tycho asks for, on an H200; needs no device, but a libcuda.so.1: a driver's, or the toolkit's stub.
$(BUILD)/plans: spec/simgpu/plans.c src/cuda/dnn_conv.c src/cuda/dnn_attention.c src/cuda/dnn_plan.c src/cuda/timed_plans.c $(CUDA_HDR)
	@mkdir -p $(BUILD)/stub
	@ln -sf $(firstword $(wildcard $(CUDA_HOME)/lib64/stubs/libcuda.so $(CUDA_HOME)/lib/stubs/libcuda.so)) $(BUILD)/stub/libcuda.so.1
	$(SAY) CC $@
	$(RUN)$(CC) $(filter-out -fPIC -fvisibility=hidden,$(CFLAGS)) -Wno-unused-function $(CUDA_INC) $(filter-out %dnn_plan.c,$(filter %.c,$^)) -o $@ $(CUDA_LIB) -lcudnn -lcudart -pthread

ifneq ($(wildcard $(CUDNN_HOME)/include/cudnn_graph.h),)
test-plans: $(BUILD)/plans
	@LD_LIBRARY_PATH="$$LD_LIBRARY_PATH:$(CURDIR)/$(BUILD)/stub" $<
else
test-plans:
	@echo "test-plans: no cuDNN here (CUDNN_HOME); nothing was tested"
endif

# ---- what users run: packages first, then make again, since the paths above depend on them ----

# All cores, unless make was given -j.
AT_ONCE = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

demo:
	@scripts/need "make demo" $(BUILD_PACKAGES) $(DEMO_PACKAGES)
	@$(MAKE) --no-print-directory $(AT_ONCE) all
	$(LUAJIT) examples/fashion_mnist.lua $(ARGS)

test:
	@scripts/need "make test" $(BUILD_PACKAGES) $(TEST_PACKAGES)
	@$(MAKE) --no-print-directory $(AT_ONCE) run-specs

run-specs: all
	@scripts/specs $(BUILD)/specs.log $(SPLIT) $(BUSTED) $(ARGS)

# Has a build of its own, in which warnings are errors.
LINT_BUILD ?= build-lint
lint:
	@scripts/need "make lint" $(BUILD_PACKAGES) $(LINT_PACKAGES)
	@$(MAKE) --no-print-directory BUILD=$(LINT_BUILD) CFLAGS="-O2 -g -Werror" all
	@scripts/lint

# ---- sanitizers: a small host closes its state, so that leaks show; see spec/host.c ----

ASAN = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -DTY_NO_CACHE
# use_tls=0: the search for leaks doesn't enter threads' own storage, where gcc 12's sanitizer fails with glibc 2.36.
ASAN_ENV = TYCHO_BUILD=build-asan LSAN_OPTIONS=suppressions=spec/lsan.supp:print_suppressions=0:use_tls=0 ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 LUA_CPATH="$(CURDIR)/build-asan/?.so;;"
test-asan:
	@scripts/need "make test-asan" $(BUILD_PACKAGES) $(TEST_PACKAGES)
	@$(MAKE) --no-print-directory BUILD=build-asan CFLAGS="$(ASAN)" LDFLAGS="-fsanitize=address,undefined" build-asan/tycho/core.so build-asan/host
	$(ASAN_ENV) \
	  scripts/specs build-asan/specs.log $(SPLIT) build-asan/host $(shell command -v busted) $(ARGS)

# The same with the simulated GPU: kernels' accesses are checked too, each tensor in an allocation of its own.
test-sim-asan:
	@$(MAKE) --no-print-directory BUILD=build-asan CFLAGS="$(ASAN)" LDFLAGS="-fsanitize=address,undefined" SIM_MORE="-fsanitize=address,undefined -fno-sanitize-recover=undefined" \
	  build-asan/tycho/core.so build-asan/host build-asan/sim/tycho/cuda.so
	$(ASAN_ENV) TYCHO_TEST_DEVICE=cuda TYCHO_CUDA_CACHE=0 TYCHO_CACHE="$(CURDIR)/build-asan/sim/kernels-cache" TY_SIM_MORE="-fsanitize=address,undefined -fno-sanitize-recover=undefined" TYCHO_SIM_SEED=$(SEED) TYCHO_CUDA_LIBRARY="$(CURDIR)/build-asan/sim/tycho/cuda.so" \
	  scripts/specs build-asan/sim.log $(SPLIT) build-asan/host $(shell command -v busted) --exclude-tags=cpu,long $(ARGS)

build-asan/host: spec/host.c
	@mkdir -p $(@D)
	$(SAY) CC $@
	$(RUN)$(CC) $(filter-out -fPIC -fvisibility=hidden,$(CFLAGS)) -fsanitize=address,undefined $< -o $@ -rdynamic -lluajit-5.1 -fopenmp

# The readers of files under libFuzzer with ASan and UBSan, RUNS inputs each; needs clang. The specs replay spec/fuzz/corpus.
FUZZ    = safetensors idx records picture array zip csv pickle npy
RUNS   ?= 1000000
FUZZ_IO = $(addprefix src/io/,$(addsuffix .c,safetensors idx records picture transform warp colour archive file csv)) spec/fuzz/core.c
$(BUILD)/fuzz/%: spec/fuzz/fuzz.c $(FUZZ_IO) $(HDR)
	@mkdir -p $(@D)
	clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -fwrapv -DFUZZ_$* -iquote src/core -iquote src/io $(filter %.c,$^) -o $@ -ljansson -lspng -lturbojpeg -lxxhash -lzip -lz -lm
$(BUILD)/fuzz/pickle $(BUILD)/fuzz/npy: $(BUILD)/fuzz/%: spec/fuzz/lua.c
	@mkdir -p $(@D)
	clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -DFUZZ_$* -I$(LUA_INCDIR) $< -o $@ -rdynamic -lluajit-5.1 -lz
fuzz: all $(FUZZ:%=$(BUILD)/fuzz/%)
	@for t in $(FUZZ); do mkdir -p $(BUILD)/fuzz/found/$$t; \
	  case $$t in pickle|npy) export ASAN_OPTIONS=detect_leaks=0;; esac; \
	  $(BUILD)/fuzz/$$t -runs=$(RUNS) -max_len=4096 -rss_limit_mb=4096 -malloc_limit_mb=2048 -print_final_stats=1 $(BUILD)/fuzz/found/$$t spec/fuzz/corpus/$$t >$(BUILD)/fuzz/$$t.log 2>&1 \
	    && echo "$$t: $$(grep -o 'number_of_executed_units: *[0-9]*' $(BUILD)/fuzz/$$t.log | grep -o '[0-9]*') inputs, no finding" || { tail -30 $(BUILD)/fuzz/$$t.log; exit 1; }; done

# The threads of loaders and checkpoints under ThreadSanitizer.
test-tsan:
	@mkdir -p $(BUILD)/tsan
	$(CC) -g -O1 -std=gnu11 -fsanitize=thread -fwrapv -iquote src/core -iquote src/io spec/fuzz/threads.c spec/fuzz/core.c $(addprefix src/io/,$(addsuffix .c,loader source picture transform warp colour checkpoint safetensors archive file)) \
	  -o $(BUILD)/tsan/threads -ljansson -lspng -lturbojpeg -lxxhash -lzip -lz -lm -pthread
	$(BUILD)/tsan/threads 1000 $(BUILD)/tsan

# Kills a training run 500 times, makes each system call of a save fail in turn, and damages a checkpoint by 100,000 flipped bits and
# 10,000 truncations.
KILLS ?= 500
test-crash: all
	TYCHO_KILLS=$(KILLS) TYCHO_FLIPS=$(shell expr $(KILLS) \* 200) $(BUSTED) spec/crash_spec.lua spec/checkpoint_spec.lua

# A short run: some spec files, without their long cases.
test-valgrind:
	@scripts/need "make test-valgrind" $(BUILD_PACKAGES) $(TEST_PACKAGES) valgrind
	@$(MAKE) --no-print-directory all build/host
	TYCHO_BUILD=build OMP_NUM_THREADS=1 valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite --suppressions=spec/valgrind.supp \
	  build/host $(shell command -v busted) --exclude-tags=long spec/tensor_spec.lua spec/autograd_spec.lua spec/nn_spec.lua spec/layers_spec.lua spec/attention_spec.lua \
	  $(foreach s,tensors functions modules autograd optim,spec/regression_$(s)_spec.lua)

build/host: spec/host.c
	@mkdir -p $(@D)
	$(SAY) CC $@
	$(RUN)$(CC) $(filter-out -fPIC -fvisibility=hidden,$(CFLAGS)) $< -o $@ -rdynamic -lluajit-5.1

# ---- for developers ----

bench: all
	$(LUAJIT) bench/bench.lua $(ARGS)

bench-gpu: all
	$(LUAJIT) bench/gpu.lua $(ARGS)
	$(LUAJIT) bench/gpu_steps.lua $(ARGS)

docs: all
	$(LUAJIT) scripts/docs.lua

# Golden values from PyTorch; PYTHON is one with torch, numpy and safetensors.
PYTHON ?= python3
golden: all
	$(PYTHON) spec/make_golden.py
	-$(PYTHON) spec/golden_printing.py
	-$(PYTHON) spec/golden_amp.py
	-$(PYTHON) spec/golden_transforms.py
	-$(PYTHON) spec/golden_files.py
	-$(PYTHON) spec/golden_tensorboard.py
	-$(PYTHON) spec/golden_samples.py
	-$(PYTHON) spec/golden_files.py --check

install: all
	@$(MAKE) --no-print-directory uninstall        # removes what an older version installed
	install -d $(PREFIX_LUA) $(PREFIX_LIB)/tycho
	cp -r lua/tycho $(PREFIX_LUA)/
	install -m 755 $(BUILD)/tycho/core.so $(PREFIX_LIB)/tycho/core.so
	for l in cuda mpi; do if [ -e $(BUILD)/tycho/$$l.so ]; then install -m 755 $(BUILD)/tycho/$$l.so $(PREFIX_LIB)/tycho/$$l.so; fi; done

uninstall:
	@[ "$(realpath $(PREFIX_LUA))" != "$(realpath lua)" ] || { echo "PREFIX_LUA is $(PREFIX_LUA), the folder of the sources" >&2; exit 1; }
	rm -rf $(PREFIX_LUA)/tycho $(PREFIX_LIB)/tycho

clean:
	rm -rf build build-*

.PHONY: all cuda demo test test-sim test-sim-full test-sim-lockstep test-sim-async test-plans test-sources run-specs lint test-asan test-sim-asan test-valgrind test-crash test-tsan fuzz test-gpu sanitize-gpu bench bench-gpu docs golden install uninstall clean
