/* What kernels include instead of CUDA's headers when they are built for the host (kernels/device.cuh): CUDA's language extensions as C++.
 *
 * Idea: a block's threads are fibers of one host thread; shared memory is thread_local there. Invariant: a kernel executes the same
 * statements as on a device, barriers included; warps run in no particular order. */
#ifndef TY_SIM_H
#define TY_SIM_H
#include <cuda_runtime_api.h>
#include <cmath>
#include <cstdint>
#include <functional>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static thread_local
#define __launch_bounds__(...)

struct sim_place { uint3 thread, block; dim3 block_dim, grid_dim; };
extern thread_local sim_place *sim_here;
#define threadIdx (sim_here->thread)
#define blockIdx (sim_here->block)
#define blockDim (sim_here->block_dim)
#define gridDim (sim_here->grid_dim)

#define TY_ALIGNED(p, n) do { if ((uintptr_t)(p) % (n)) __builtin_trap(); } while (0)    /* ends the kernel, as a device's fault does */
void sim_barrier();
static inline void __syncthreads() { sim_barrier(); }
static inline unsigned sim_thread() { return sim_here->thread.x + sim_here->thread.y * sim_here->block_dim.x; }
/* Returns v of every thread of the block, by sim_thread(); valid until the caller's next barrier. All threads of the block call it, since
   it has a barrier. */
extern thread_local unsigned char sim_shared[1024 * 32];
template <class T> static inline const T *sim_share(const T &v) {
  static_assert(sizeof(T) <= 32, "some registers");
  __builtin_memcpy(sim_shared + sim_thread() * sizeof v, &v, sizeof v);
  sim_barrier();
  return (const T *)sim_shared;
}
template <class T> static inline T sim_exchange(T v, unsigned from) {
  const T got = sim_share(v)[from];
  sim_barrier();
  return got;
}
template <class T> static inline T __shfl_sync(unsigned, T v, unsigned lane, unsigned width) {
  const unsigned t = sim_thread();
  return sim_exchange(v, t - t % width + lane);
}
template <class T> static inline T __shfl_down_sync(unsigned, T v, unsigned down) {
  const unsigned t = sim_thread();
  return sim_exchange(v, t % 32 + down < 32 ? t + down : t);
}
template <class T> static inline T __shfl_up_sync(unsigned, T v, unsigned up) {
  const unsigned t = sim_thread();
  return sim_exchange(v, t % 32 >= up ? t - up : t);
}
template <class T> static inline T __shfl_xor_sync(unsigned, T v, unsigned far) { return sim_exchange(v, sim_thread() ^ far); }
static inline int __any_sync(unsigned, int v) {
  const int *const warp = sim_share(v) + sim_thread() / 32 * 32;
  int any = 0;
  for (int lane = 0; lane < 32; lane++) any |= warp[lane];
  sim_barrier();
  return any;
}
/* Fibers switch only at barriers, so none comes between; against threads of other streams the host's atomics help. */
template <class T> static inline T sim_add(T *p, T v) {
  T old = *p, next;
  do next = old + v; while (!__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
static inline unsigned atomicAdd(unsigned *p, unsigned v) { return sim_add(p, v); }
static inline float atomicAdd(float *p, float v) { return sim_add(p, v); }
static inline double atomicAdd(double *p, double v) { return sim_add(p, v); }
static inline int atomicAdd(int *p, int v) { return sim_add(p, v); }
static inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) { return sim_add(p, v); }
static inline unsigned atomicCAS(unsigned *p, unsigned seen, unsigned next) {
  __atomic_compare_exchange_n(p, &seen, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return seen;
}
static inline unsigned atomicMax(unsigned *p, unsigned v) {
  unsigned old = *p;
  while (old < v && !__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
uint64_t sim_random();
/* Runs a block; false: some of its threads wait at a barrier, others have returned. */
bool sim_block(dim3 grid, dim3 block, uint3 at, const std::function<void()> &thread);
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
cudaError_t sim_launch(dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> thread);
#endif
