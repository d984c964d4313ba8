/* NVRTC and the driver's kernel loader (rtc.h), by the host's compiler: the source, after definitions of CUDA's keywords, becomes a shared
 * object.
 *
 * Idea: the object reaches the simulation through two function pointers that it gets when it is opened. TY_SIM_MORE: further compiler
 * options, for sanitizers. */
#include <dlfcn.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include "sim.h"

#define RTC_WHY 400
typedef struct { void *fused, *each; } ty_rtc;

static const char HEAD[] =
  "#include <vector_types.h>\n#include <cstring>\n#undef __global__\n#undef __device__\n#undef __forceinline__\n#undef __launch_bounds__\n"
  "#define __global__\n#define __device__\n#define __forceinline__ inline\n#define __launch_bounds__(...)\n"
  "#define __shared__ static thread_local\n"
  "struct sim_place { uint3 thread, block; dim3 block_dim, grid_dim; };\n"
  "static sim_place *(*sim_where)();\nstatic void (*sim_wait)();\n"
  "#define threadIdx (sim_where()->thread)\n#define blockIdx (sim_where()->block)\n"
  "#define blockDim (sim_where()->block_dim)\n#define gridDim (sim_where()->grid_dim)\n"
  "#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)\n#define __syncthreads() sim_wait()\n"
  "static inline unsigned atomicAdd(unsigned *p, unsigned v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }\n"
  "#define TY_ALIGNED(p, n) do { if ((uintptr_t)(p) % (n)) __builtin_trap(); } while (0)\n"
  "static thread_local unsigned long long sim_exchanged[1024];\n"
  "template <class T> static inline T sim_exchange(T v, unsigned t, unsigned from) {\n"
  "  memcpy(&sim_exchanged[t], &v, sizeof v);\n  sim_wait();\n  memcpy(&v, &sim_exchanged[from], sizeof v);\n  sim_wait();\n  return v;\n}\n"
  "static inline unsigned sim_thread() { return threadIdx.x + threadIdx.y * blockDim.x; }\n"
  "template <class T> static inline T __shfl_sync(unsigned, T v, unsigned lane, unsigned width) {\n"
  "  const unsigned t = sim_thread();\n  return sim_exchange(v, t, t - t % width + lane);\n}\n"
  "template <class T> static inline T __shfl_down_sync(unsigned, T v, unsigned down) {\n"
  "  const unsigned t = sim_thread();\n  return sim_exchange(v, t, t % 32 + down < 32 ? t + down : t);\n}\n"
  "extern \"C\" void sim_link(sim_place *(*where)(), void (*wait)()) { sim_where = where; sim_wait = wait; }\n";
static const char TAIL[] =
  "extern \"C\" void sim_fused(const void *a) { fused(*(const arguments *)a); }\n";
static const char TAIL_EACH[] = "extern \"C\" void sim_fused_each(const void *a) { fused_each(*(const arguments *)a); }\n";

static std::string more() { const char *s = getenv("TY_SIM_MORE"); return s ? s : ""; }

extern "C" const char *ty_rtc_version() {
  static const std::string version = "simulated NVRTC " __VERSION__ " " + more();
  return version.c_str();
}

static std::string temporary(const char *suffix) {
  const char *dir = getenv("TMPDIR");
  static int n;
  return std::string(dir ? dir : "/tmp") + "/tycho-" + std::to_string(getpid()) + "-" + std::to_string(n++) + suffix;
}

static bool write_all(const std::string &path, const char *p, size_t n) {
  FILE *f = fopen(path.c_str(), "wb");
  const bool ok = f && fwrite(p, 1, n, f) == n;
  return f && fclose(f) == 0 && ok;
}

extern "C" bool ty_rtc_compile(const char *source, const char *, char **image, size_t *n, char *why) {
  const std::string cpp = temporary(".cpp"), so = temporary(".so"), log = temporary(".log");
  std::string early;                       /* CUDA's headers come first: HEAD would break them */
  for (const char *header : {"#include <cuda_fp16.h>\n", "#include <cuda_bf16.h>\n"}) if (strstr(source, header)) early += header;
  const std::string text = early + HEAD + source + TAIL + (strstr(source, "fused_each(") ? TAIL_EACH : "");
  const std::string command =
    "g++ -std=c++17 -O1 -g0 -w -fPIC -shared -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off -I" CUDA_INCLUDE " " +
    more() + " -o " + so + " " + cpp + " > " + log + " 2>&1";
  bool ok = write_all(cpp, text.data(), text.size()) && system(command.c_str()) == 0;
  FILE *f = fopen((ok ? so : log).c_str(), "rb");
  if (f) {
    std::vector<char> all;
    for (int c; (c = getc(f)) != EOF;) all.push_back((char)c);
    fclose(f);
    if (ok && (*image = (char *)malloc(all.size()))) memcpy(*image, all.data(), *n = all.size());
    else snprintf(why, RTC_WHY, "%.*s", (int)std::min(all.size(), (size_t)RTC_WHY - 1), all.data());
  } else ok = false;
  for (const std::string &p : {cpp, so, log}) unlink(p.c_str());
  return ok && *image;
}

static sim_place *where() { return sim_here; }

extern "C" bool ty_rtc_load(const char *image, size_t n, ty_rtc *out, char *why) {
  const std::string so = temporary(".so");
  void *lib = write_all(so, image, n) ? dlopen(so.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(so.c_str());
  auto link = lib ? (void (*)(sim_place *(*)(), void (*)()))dlsym(lib, "sim_link") : nullptr;
  if (!link) { snprintf(why, RTC_WHY, "the simulation can't open the kernel"); return false; }
  link(where, sim_barrier);
  out->fused = dlsym(lib, "sim_fused");
  out->each = dlsym(lib, "sim_fused_each");
  return out->fused;
}

extern "C" cudaError_t ty_rtc_launch(void *kernel, const unsigned *grid, const unsigned *block, const void *args, size_t size,
  cudaStream_t s) {
  const std::vector<char> copy((const char *)args, (const char *)args + size);
  const auto run = (void (*)(const void *))kernel;
  return sim_launch(dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2]), s, [=] { run(copy.data()); });
}
