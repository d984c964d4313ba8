# Tycho. `make demo` and `make test` install what is missing (through apt), build, and run; the rest builds only.
#
#   make            build/tycho/core.so
#   make demo       train examples/fashion_mnist.lua        make test       the specs, under busted
#   make lint       luacheck, -Werror, layering laws        make bench      timings, beside PyTorch where there is one
#   make test-asan, make test-valgrind                      make golden     golden files, from PyTorch
#   make docs       docs/ops.md and the editor stubs, from the op table

CC      ?= gcc
LUAJIT  ?= luajit
BUILD   ?= build
TRIPLET := $(shell $(CC) -print-multiarch 2>/dev/null)
BLAS    ?= /usr/lib/$(TRIPLET)/openblas-openmp
LUA_INCDIR ?= $(shell pkg-config --variable=includedir luajit 2>/dev/null)

# Contraction is off so that a*b+c means the same everywhere; whole numbers wrap.
CFLAGS  ?= -O2 -g
override CFLAGS += -std=gnu11 -fPIC -fopenmp -fvisibility=hidden -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off \
  -Wall -Wextra -iquote src/core -iquote src/cpu -iquote src/io -iquote src/lua -I$(LUA_INCDIR) -I/usr/include/$(TRIPLET)/openblas-openmp
LDFLAGS += -shared -fopenmp -Wl,-z,nodelete -Wl,-rpath,$(BLAS) -L$(BLAS)
LDLIBS  += -lopenblas -ldnnl -ljansson -lspng -lz -lm

SRC  := $(filter-out src/cpu/loops.c,$(wildcard src/core/*.c src/cpu/*.c src/io/*.c src/lua/*.c))
OBJ  := $(SRC:src/%.c=$(BUILD)/%.o)
# The vector loops are built once for each instruction set; one is picked at run time.
ISAS := base
ISA_base :=
ifneq ($(filter x86_64%,$(TRIPLET)),)
ISAS += avx2 avx512
ISA_avx2 := -march=haswell
ISA_avx512 := -march=skylake-avx512 -mprefer-vector-width=512
endif
OBJ  += $(ISAS:%=$(BUILD)/cpu/loops_%.o)
HDR  := $(wildcard src/*/*.h src/core/*.def)

export LUA_PATH  = $(CURDIR)/lua/?.lua;$(CURDIR)/lua/?/init.lua;$(CURDIR)/?.lua;;
export LUA_CPATH = $(CURDIR)/$(BUILD)/?.so;;

all: $(BUILD)/tycho/core.so

$(BUILD)/tycho/core.so: $(OBJ)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(LDFLAGS) $(LDLIBS)

$(BUILD)/%.o: src/%.c $(HDR)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c $< -o $@

$(BUILD)/cpu/loops_%.o: src/cpu/loops.c $(HDR)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -O3 $(ISA_$*) -DTY_ISA=$* -c $< -o $@

clean:
	rm -rf build build-*

.PHONY: all clean
