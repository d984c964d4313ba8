/* Compiles kernels with NVRTC and loads them with the driver; see rtc.h.
 *
 * Idea: both libraries are opened when the first kernel is made, so that tycho/cuda.so can be opened without them.
 * Invariant: a kernel is loaded on the device before its first launch, which may be captured in a graph. */
#define _GNU_SOURCE             /* dladdr */
#include <cuda.h>
#include <dlfcn.h>
#include <limits.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rtc.h"

#define NVRTC(X) \
  X(nvrtcVersion) X(nvrtcCreateProgram) X(nvrtcDestroyProgram) X(nvrtcCompileProgram) \
  X(nvrtcGetProgramLogSize) X(nvrtcGetProgramLog) X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN) X(nvrtcGetPTXSize) X(nvrtcGetPTX) \
  X(nvrtcGetNumSupportedArchs) X(nvrtcGetSupportedArchs)
#define DRIVER(X) X(cuLibraryLoadData) X(cuLibraryGetKernel) X(cuKernelGetFunction) X(cuLaunchKernel)

#define FMAD "--fmad=false"     /* for the same bits as everywhere else */
#define POINTER(f) static __typeof__(&f) p_##f;
NVRTC(POINTER)
DRIVER(POINTER)

static bool open_nvrtc(void) {
  char name[40];
  snprintf(name, sizeof name, "libnvrtc.so.%d", CUDART_VERSION / 1000);
  void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!lib) lib = dlopen("libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
  if (!lib) return false;
#define FROM_LIB(f) if (!(p_##f = (__typeof__(&f))dlsym(lib, #f))) return false;
  NVRTC(FROM_LIB)
  return true;
}

static CUresult (*p_cuFuncLoad)(CUfunction);             /* since CUDA 12.4 */

static bool open_driver(void) {
  void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!lib) return false;
  DRIVER(FROM_LIB)
  p_cuFuncLoad = (CUresult (*)(CUfunction))dlsym(lib, "cuFuncLoad");
  return true;
}

const char *ty_rtc_version(void) {         /* rtc.c asks under its lock */
  static char text[40];
  static int state;                        /* 0: not asked yet, 1: there, 2: not there */
  int major, minor;
  if (!state) {
    state = open_nvrtc() && p_nvrtcVersion(&major, &minor) == NVRTC_SUCCESS ? 1 : 2;
    if (state == 1) snprintf(text, sizeof text, "NVRTC %d.%d " FMAD, major, minor);
  }
  return state == 1 ? text : NULL;
}

/* Finds CUDA's headers, for sources that include them: by the environment, beside NVRTC, as Python's packages have them, or in a usual
   place. False: not found. */
static bool headers(char *path, size_t room) {
  const char *home[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), NULL, NULL, "/usr/local/cuda", "/usr"};
  char beside[PATH_MAX - 24], package[PATH_MAX];
  Dl_info nvrtc;
  if (dladdr((void *)(uintptr_t)p_nvrtcVersion, &nvrtc) && nvrtc.dli_fname) {
    snprintf(beside, sizeof beside, "%s", nvrtc.dli_fname);
    char *end = strrchr(beside, '/');
    if (end) {
      snprintf(end, sizeof beside - (size_t)(end - beside), "/..");
      home[2] = beside;
      snprintf(package, sizeof package, "%s/../cuda_runtime", beside);
      home[3] = package;
    }
  }
  for (unsigned i = 0; i < sizeof home / sizeof *home; i++) {
    if (!home[i] || snprintf(path, room, "%s/include/cuda_fp16.h", home[i]) >= (int)room || access(path, R_OK)) continue;
    *strrchr(path, '/') = 0;
    return true;
  }
  return false;
}

/* The newest architecture that NVRTC knows and that isn't newer than this; 0: unknown. */
static int known_up_to(int arch) {
  int list[100], n = 0, best = 0;
  if (p_nvrtcGetNumSupportedArchs(&n) != NVRTC_SUCCESS || n > (int)(sizeof list / sizeof *list)) return 0;
  if (p_nvrtcGetSupportedArchs(list) != NVRTC_SUCCESS) return 0;
  for (int i = 0; i < n; i++) best = list[i] <= arch ? TY_MAX(best, list[i]) : best;
  return best;
}

bool ty_rtc_compile(const char *source, const char *arch, char **image, size_t *n, char *why) {
  const int wanted = atoi(arch + strlen("sm_")), known = known_up_to(wanted);
  const bool later = known && known != wanted;           /* the driver compiles the PTX of an older one for the device */
  char option[40], path[PATH_MAX], include[PATH_MAX + 20], more[PATH_MAX + 30];
  const char *options[6] = {option, FMAD, "--std=c++17", "-w", include, more};
  int noption = 4;
  nvrtcProgram p;
  size_t log = 0;
  if (strstr(source, "#include") && headers(path, sizeof path)) {
    snprintf(include, sizeof include, "--include-path=%s", path);
    snprintf(more, sizeof more, "--include-path=%s/cccl", path);       /* since CUDA 13 */
    noption = 6;
  }
  if (later) snprintf(option, sizeof option, "--gpu-architecture=compute_%d", known);
  else snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
  if (p_nvrtcCreateProgram(&p, source, "fused.cu", 0, NULL, NULL) != NVRTC_SUCCESS) {
    snprintf(why, TY_RTC_WHY, "NVRTC is out of memory");
    return false;
  }
  bool ok = p_nvrtcCompileProgram(p, noption, options) == NVRTC_SUCCESS;
  if (!ok && p_nvrtcGetProgramLogSize(p, &log) == NVRTC_SUCCESS) {
    char *text = malloc(log + 1);
    if (text && p_nvrtcGetProgramLog(p, text) == NVRTC_SUCCESS) snprintf(why, TY_RTC_WHY, "NVRTC: %.*s", TY_RTC_WHY - 20, text);
    free(text);
  }
  ok = ok && (later ? p_nvrtcGetPTXSize : p_nvrtcGetCUBINSize)(p, n) == NVRTC_SUCCESS && (*image = malloc(*n)) &&
    (later ? p_nvrtcGetPTX : p_nvrtcGetCUBIN)(p, *image) == NVRTC_SUCCESS;
  p_nvrtcDestroyProgram(&p);
  return ok;
}

static void *entry_of(CUlibrary lib, const char *name) {
  CUkernel k;
  CUfunction f;
  if (p_cuLibraryGetKernel(&k, lib, name) != CUDA_SUCCESS || p_cuKernelGetFunction(&f, k) != CUDA_SUCCESS) return NULL;
  if (p_cuFuncLoad) p_cuFuncLoad(f);
  return f;
}

bool ty_rtc_load(const char *image, size_t n, ty_rtc *out, char *why) {
  static int state;
  CUlibrary lib;
  if (!state) state = open_driver() ? 1 : 2;
  if (state == 2) { snprintf(why, TY_RTC_WHY, "there is no driver that loads kernels"); return false; }
  if (p_cuLibraryLoadData(&lib, image, NULL, NULL, 0, NULL, NULL, 0) != CUDA_SUCCESS) {
    snprintf(why, TY_RTC_WHY, "the driver refuses the kernel");
    return false;
  }
  /* asked for only if it is there: else the driver has been seen to fail */
  const bool has_each = memmem(image, n, "fused_each", 10);
  out->fused = entry_of(lib, "fused");
  out->each = has_each ? entry_of(lib, "fused_each") : NULL;
  if (out->fused && (out->each || !has_each)) return true;               /* the library stays, as its kernels do */
  snprintf(why, TY_RTC_WHY, "the driver finds no entry of the kernel");
  return false;
}

cudaError_t ty_rtc_launch(void *kernel, const unsigned grid[3], const unsigned block[3], const void *args, size_t size, cudaStream_t s) {
  void *params[] = {(void *)(uintptr_t)args};
  (void)size;
  /* the driver's and the runtime's error numbers agree */
  return (cudaError_t)p_cuLaunchKernel(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, s, params, NULL);
}
