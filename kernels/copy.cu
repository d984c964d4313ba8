/* Copies on one device: conversions between like layouts, fills and transposes; all other copies are pointwise.cu's.
 *
 * Idea: where both sides are dense in one order, a thread converts several neighbours at once; where each side is contiguous along another
 * dim, tiles pass through shared memory, so that reads and writes both go along memory. Invariant: each element is read and written
 * once. */
#include "rows.cuh"

#define THREADS 256
#define TILE 64

/* ---- conversions ---- */

/* elements per thread */
template <class D, class R> struct casting {
  static constexpr int EACH = 16 / (sizeof(D) < sizeof(R) ? sizeof(D) : sizeof(R));
};

template <class D, class R> __global__ void __launch_bounds__(THREADS) cast(const D *x, R *o, int64_t n) {
  constexpr int EACH = casting<D, R>::EACH, X = 16 / sizeof(D), O = 16 / sizeof(R);
  const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * EACH;
  if (i + EACH > n) {
    for (int64_t j = i; j < n; j++) o[j] = stored<R>::out(stored<D>::in(x[j]));
    return;
  }
  pack<D, X> p[EACH / X];
  pack<R, O> q[EACH / O];
#pragma unroll
  for (int k = 0; k < EACH / X; k++) p[k] = take_pack<D, X>(x + i + k * X);
#pragma unroll
  for (int e = 0; e < EACH; e++) q[e / O].d[e % O] = stored<R>::out(stored<D>::in(p[e / X].d[e % X]));
#pragma unroll
  for (int k = 0; k < EACH / O; k++) put_pack(o + i + k * O, q[k]);
}

template <class D, class R> static cudaError_t launch_cast(const void *x, void *o, int64_t n, cudaStream_t s) {
  constexpr int EACH = casting<D, R>::EACH;
  auto kernel = cast<D, R>;
  const D *from = (const D *)x;
  R *to = (R *)o;
  return TY_LAUNCH(kernel, blocks_for(n, THREADS * EACH), THREADS, s, from, to, n);
}

template <class D> static cudaError_t cast_from(const void *x, void *o, int dtype, int64_t n, cudaStream_t s) {
  return dtype == TY_F32 ? launch_cast<D, float>(x, o, n, s) : dtype == TY_F16 ? launch_cast<D, half16>(x, o, n, s)
    : launch_cast<D, brain16>(x, o, n, s);
}

/* ---- fills ---- */

static __global__ void __launch_bounds__(THREADS) fill(uint4 *o, uint4 v, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) o[i] = v;
}
template <class W> __global__ void __launch_bounds__(THREADS) fill_each(W *o, W v, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) o[i] = v;
}

template <class W> static cudaError_t launch_fill(void *to, uint64_t bits, int64_t n, cudaStream_t s) {
  W *o = (W *)to;
  const W v = (W)bits;
  if ((uintptr_t)to % 16 == 0 && n * sizeof(W) % 16 == 0) {
    uint64_t whole = bits;
    for (size_t k = sizeof(W); k < 8; k *= 2) whole |= whole << 8 * k;
    const uint4 all = {(unsigned)whole, (unsigned)(whole >> 32), (unsigned)whole, (unsigned)(whole >> 32)};
    uint4 *const wide = (uint4 *)to;
    const int64_t m = n * (int64_t)sizeof(W) / 16;
    return TY_LAUNCH(fill, blocks_for(m, THREADS), THREADS, s, wide, all, m);
  }
  auto kernel = fill_each<W>;
  return TY_LAUNCH(kernel, blocks_for(n, THREADS), THREADS, s, o, v, n);
}

cudaError_t ty_k_fill(void *o, int size, uint64_t bits, int64_t n, cudaStream_t s) {
  return size == 1 ? launch_fill<uint8_t>(o, bits, n, s) : size == 2 ? launch_fill<uint16_t>(o, bits, n, s)
    : size == 4 ? launch_fill<uint32_t>(o, bits, n, s) : launch_fill<uint64_t>(o, bits, n, s);
}

/* ---- transposes: x is contiguous along dim d of the walk, the result along the last one ---- */

template <class W> __global__ void __launch_bounds__(THREADS) turn(const ty_k_point a, int d) {
  __shared__ W tile[TILE][TILE + 1];
  const int last = a.ndim - 1, lane = threadIdx.x % 32, line = threadIdx.x / 32;
  const int64_t across = a.shape[d], along = a.shape[last], wide = (along + TILE - 1) / TILE, high = (across + TILE - 1) / TILE;
  int64_t rest = blockIdx.x, from = 0, to = 0;
  const int64_t c = rest % wide * TILE, r = rest / wide % high * TILE;
  rest /= wide * high;
  for (int k = last - 1; k >= 0; k--) {
    if (k == d) continue;
    const int64_t at = rest % a.shape[k];
    rest /= a.shape[k];
    to += at * a.o[0].stride[k];
    from += at * a.o[1].stride[k];
  }
  const W *const x = (const W *)a.o[1].p + from;
  W *const o = (W *)a.o[0].p + to;
#pragma unroll
  for (int y = line; y < TILE; y += THREADS / 32)
#pragma unroll
    for (int i = lane; i < TILE; i += 32)
      if (c + y < along && r + i < across) tile[y][i] = x[(c + y) * a.o[1].stride[last] + (r + i)];
  __syncthreads();
#pragma unroll
  for (int y = line; y < TILE; y += THREADS / 32)
#pragma unroll
    for (int i = lane; i < TILE; i += 32)
      if (r + y < across && c + i < along) o[(r + y) * a.o[0].stride[d] + (c + i)] = tile[i][y];
}

template <class W> static cudaError_t launch_turn(const ty_k_point *p, int d, cudaStream_t s) {
  const ty_k_point a = *p;
  const int64_t across = a.shape[d], along = a.shape[a.ndim - 1];
  const int64_t tiles = (across + TILE - 1) / TILE * ((along + TILE - 1) / TILE) * (a.n / (across * along));
  auto kernel = turn<W>;
  return TY_LAUNCH(kernel, blocks_for(tiles, 1), THREADS, s, a, d);
}

/* ---- the choice of a kernel ---- */

cudaError_t ty_k_copy(const ty_k_point *a, int size, cudaStream_t s) {
  const ty_k_operand *o = &a->o[0], *x = &a->o[1];
  const int last = a->ndim - 1;
  if (last == 0 && o->stride[0] == 1 && x->stride[0] == 1) {
    if (o->dtype == x->dtype) return cudaMemcpyAsync(o->p, x->p, (size_t)(a->n * size), cudaMemcpyDeviceToDevice, s);
    if (short_float(o->dtype) && short_float(x->dtype) && ((uintptr_t)o->p | (uintptr_t)x->p) % 16 == 0)
      return x->dtype == TY_F32 ? cast_from<float>(x->p, o->p, o->dtype, a->n, s) : x->dtype == TY_F16
        ? cast_from<half16>(x->p, o->p, o->dtype, a->n, s) : cast_from<brain16>(x->p, o->p, o->dtype, a->n, s);
  }
  if (last > 0 && o->dtype == x->dtype && o->stride[last] == 1 && a->shape[last] >= 8)
    for (int d = 0; d < last; d++)
      if (x->stride[d] == 1 && a->shape[d] >= 8 && x->stride[last] > 1)
        return size == 1 ? launch_turn<uint8_t>(a, d, s) : size == 2 ? launch_turn<uint16_t>(a, d, s)
          : size == 4 ? launch_turn<uint32_t>(a, d, s) : launch_turn<uint64_t>(a, d, s);
  return ty_k_pointwise(a, s);
}
