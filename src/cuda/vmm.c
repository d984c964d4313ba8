/* Device memory by ranges of addresses, which get memory piece by piece: the driver's virtual memory management (CUDA 10.2 and later).
 *
 * Idea: a range of addresses is reserved once, and costs nothing; pieces of it are given memory and lose it again. The driver is opened at
 * the first use, since tycho/cuda.so doesn't link it. Invariants: a piece is one allocation of the driver's, so that it can lose its memory
 * alone; its handle is dropped at once, and the mapping alone keeps the memory. spec/simgpu has these functions for its own memory. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include "cuda.h"

#define DRIVER(X) \
  X(cuMemGetAllocationGranularity) X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap) \
  X(cuMemSetAccess) X(cuDeviceGet) X(cuDeviceGetAttribute)
#define POINTER(f) static __typeof__(&f) p_##f;
DRIVER(POINTER)

static bool there;
static void open_driver(void) {
  void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!lib) return;
#define FROM_LIB(f) if (!(p_##f = (__typeof__(&f))dlsym(lib, #f))) return;
  DRIVER(FROM_LIB)
  there = true;
}

static CUmemAllocationProp on(int gpu) {
  return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu}};
}

char *ty_vmm_reserve(int gpu, size_t n, size_t piece) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const CUmemAllocationProp what = on(gpu);
  CUdeviceptr p = 0;
  CUdevice device;
  size_t unit;
  int can = 0;
  pthread_once(&once, open_driver);
  if (!there || p_cuDeviceGet(&device, gpu) != CUDA_SUCCESS) return NULL;
  p_cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device);
  if (!can || p_cuMemGetAllocationGranularity(&unit, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS) return NULL;
  if (piece % unit) return NULL;
  return p_cuMemAddressReserve(&p, n, piece, 0, 0) == CUDA_SUCCESS ? (char *)(uintptr_t)p : NULL;
}

void ty_vmm_release(char *p, size_t n) { p_cuMemAddressFree((CUdeviceptr)(uintptr_t)p, n); }

bool ty_vmm_map(int gpu, char *p, size_t n) {
  const CUmemAllocationProp what = on(gpu);
  CUmemGenericAllocationHandle memory;
  if (p_cuMemCreate(&memory, n, &what, 0) != CUDA_SUCCESS) return false;
  const bool mapped = p_cuMemMap((CUdeviceptr)(uintptr_t)p, n, 0, memory, 0) == CUDA_SUCCESS;
  p_cuMemRelease(memory);
  return mapped;
}

bool ty_vmm_open_to(int gpu, char *p, size_t n) {
  const CUmemAccessDesc access = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return p_cuMemSetAccess((CUdeviceptr)(uintptr_t)p, n, &access, 1) == CUDA_SUCCESS;
}

void ty_vmm_unmap(char *p, size_t n) { p_cuMemUnmap((CUdeviceptr)(uintptr_t)p, n); }
