/* Pointwise ops: every row of ops.def whose expression is a scalar's.
 *
 * Idea: where all operands have one dtype and the result's layout, a thread computes 16 bytes of neighbours (dense). Else it computes four
 * elements, or one, found by strides and converted from and to any dtype (strided_fours, strided). dense is built for each dtype, the
 * others for each type computed in. Invariant: the thread that writes an element has read its operands, so a result may be one of the
 * operands. */
#include "rows.cuh"
#include "special.h"

#define THREADS 256

/* ---- the expressions, for each type computed in ---- */
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define M(f) PASTE(f##_, S)
#define EXPRESSION(name, expr) \
  struct PASTE(name##_op_, S) { \
    static __device__ __forceinline__ T run(T a, T b, T c, T p, T q) { \
      const T x = a; \
      (void)x; (void)b; (void)c; (void)p; (void)q; \
      return (T)(expr); } };
#define REAL_SAME EXPRESSION
#define REAL_FLOAT EXPRESSION
#define REAL_BOOL EXPRESSION
#define REAL_FIRST EXPRESSION
#define REAL_WHERE EXPRESSION
#define REAL_WHOLE(name, expr)
#define INTEGER_SAME EXPRESSION
#define INTEGER_FLOAT(name, expr)
#define INTEGER_BOOL EXPRESSION
#define INTEGER_FIRST EXPRESSION
#define INTEGER_WHERE EXPRESSION
#define INTEGER_WHOLE EXPRESSION
#define T float
#define S f32
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) REAL_##dt(name, ex)
#include "ops.def"
#undef T
#undef S
#define T double
#define S f64
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) REAL_##dt(name, ex)
#include "ops.def"
#undef T
#undef S
#define T int64_t
#define S i64
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) INTEGER_##dt(name, ex)
#include "ops.def"
#undef T
#undef S
struct convert { template <class T> static __device__ __forceinline__ T run(T a, T, T, T, T) { return a; } };

/* ---- kernels ---- */

template <class T> static __device__ __forceinline__ T number(const ty_k_operand &o);
template <> __device__ __forceinline__ float number<float>(const ty_k_operand &o) {
  const float v = o.p ? load<float>(o.p, o.dtype, 0) : (float)o.f;
  return o.rounded == 1 + TY_F16 ? half_to_float(float_to_half(v)) : o.rounded == 1 + TY_BF16 ? ty_bf16_to_f32(ty_f32_to_bf16(v)) : v;
}
template <> __device__ __forceinline__ double number<double>(const ty_k_operand &o) { return o.p ? load<double>(o.p, o.dtype, 0) : o.f; }
template <> __device__ __forceinline__ int64_t number<int64_t>(const ty_k_operand &o) { return o.p ? load<int64_t>(o.p, o.dtype, 0) : o.i; }

struct truth { uint8_t b; };
template <> struct stored<truth> { template <class T> static __device__ __forceinline__ truth out(T v) { return {(uint8_t)(v != 0)}; } };

/* All operands are D and dense, or numbers; the result is R and dense. */
template <class D, class R> struct neighbours { static constexpr int EACH = 16 / (sizeof(D) > sizeof(R) ? sizeof(D) : sizeof(R)); };
template <class F, class T, class D, class R> __global__ void __launch_bounds__(THREADS) dense(const ty_k_point a) {
  constexpr int EACH = neighbours<D, R>::EACH;
  const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * EACH;
  if (i >= a.n) return;
  const bool whole = a.n - i >= EACH;
  const T p = as<T>::of(a.p), q = as<T>::of(a.q);
  typename word_of<EACH * sizeof(D)>::type read[3];        /* unpacked after all reads: else one waits for another */
  pack<D, EACH> v[3];
  T same[3];
  pack<R, EACH> r;
  if (whole) {
#pragma unroll
    for (int k = 0; k < 3; k++)
      if (k < a.nin && a.o[k + 1].how != TY_K_NUMBER) {
        const D *const p = (const D *)a.o[k + 1].p + i;
        TY_ALIGNED(p, sizeof read[k]);
        read[k] = *(const typename word_of<EACH * sizeof(D)>::type *)p;
      }
  } else {
#pragma unroll
    for (int k = 0; k < 3; k++)
      if (k < a.nin && a.o[k + 1].how != TY_K_NUMBER) {
#pragma unroll
        for (int e = 0; e < EACH; e++) v[k].d[e] = ((const D *)a.o[k + 1].p)[i + e < a.n ? i + e : i];
        memcpy(&read[k], &v[k], sizeof v[k]);
      }
  }
#pragma unroll
  for (int k = 0; k < 3; k++) {
    same[k] = k < a.nin && a.o[k + 1].how == TY_K_NUMBER ? number<T>(a.o[k + 1]) : (T)0;
    memcpy(&v[k], &read[k], sizeof v[k]);
  }
#pragma unroll
  for (int e = 0; e < EACH; e++) {         /* past the end too, though not stored: without a branch all stays in registers */
    T x[3];
#pragma unroll
    for (int k = 0; k < 3; k++) x[k] = k < a.nin && a.o[k + 1].how != TY_K_NUMBER ? (T)stored<D>::in(v[k].d[e]) : same[k];
    r.d[e] = stored<R>::out(F::run(x[0], x[1], x[2], p, q));
  }
  if (whole) put_pack((R *)a.o[0].p + i, r);
  else {
#pragma unroll                           /* a loop over their number would put them into memory, even where all are stored at once */
    for (int e = 0; e < EACH; e++) if (i + e < a.n) ((R *)a.o[0].p)[i + e] = r.d[e];
  }
}

template <class F, class T> __global__ void __launch_bounds__(THREADS) strided(const ty_k_point a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n) return;
  int64_t rest = i, at[4] = {0, 0, 0, 0};
  for (int d = a.ndim - 1; d >= 0; d--) {  /* no dims where all is dense */
    const int64_t c = innermost(rest, a.shape[d], a.n > INT32_MAX);
#pragma unroll
    for (int k = 0; k < 4; k++) at[k] += c * a.o[k].stride[d];
  }
  T x[3];
#pragma unroll
  for (int k = 0; k < 3; k++) {
    x[k] = 0;
    if (k >= a.nin) continue;
    x[k] = a.o[k + 1].how == TY_K_NUMBER ? number<T>(a.o[k + 1])
      : load<T>(a.o[k + 1].p, a.o[k + 1].dtype, a.o[k + 1].how == TY_K_DENSE ? i : at[k + 1]);
  }
  store(a.o[0].p, a.o[0].dtype, a.o[0].how == TY_K_DENSE ? i : at[0], F::run(x[0], x[1], x[2], as<T>::of(a.p), as<T>::of(a.q)));
}

/* strided for four neighbours, which lie without gaps in each operand or are one element of it. */
template <class F> __global__ void __launch_bounds__(THREADS) strided_fours(const ty_k_point a) {
  const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * 4;
  if (i >= a.n) return;
  int64_t rest = i, at[4] = {0, 0, 0, 0};
  for (int d = a.ndim - 1; d >= 0; d--) {
    const int64_t c = innermost(rest, a.shape[d], a.n > INT32_MAX);
#pragma unroll
    for (int k = 0; k < 4; k++) at[k] += c * a.o[k].stride[d];
  }
  float x[3][4];
#pragma unroll
  for (int k = 0; k < 3; k++) {
    x[k][0] = 0;
    if (k >= a.nin) continue;
    const ty_k_operand &o = a.o[k + 1];
    const bool one = o.how == TY_K_NUMBER || (o.how == TY_K_STRIDED && o.stride[a.ndim - 1] == 0);
    if (o.how == TY_K_NUMBER) x[k][0] = number<float>(o);
    else if (one) x[k][0] = load<float>(o.p, o.dtype, at[k + 1]);
    else load_four(x[k], o.p, o.dtype, o.how == TY_K_DENSE ? i : at[k + 1]);
    if (one) x[k][1] = x[k][2] = x[k][3] = x[k][0];
  }
  float y[4];
#pragma unroll
  for (int e = 0; e < 4; e++) y[e] = F::run(x[0][e], x[1][e], x[2][e], (float)a.p, (float)a.q);
  store_four(a.o[0].p, a.o[0].dtype, a.o[0].how == TY_K_DENSE ? i : at[0], y);
}

static bool in_fours(const ty_k_point *a) {
  const int last = a->ndim - 1;
  bool fit = (last < 0 ? a->n : a->shape[last]) % 4 == 0;
  if (a->n == 1) return false;             /* no dim is left to say how operands lie */
  for (int k = 0; k <= a->nin; k++) {
    const ty_k_operand *o = &a->o[k];
    if (o->how == TY_K_NUMBER) continue;
    const bool one = k && o->how == TY_K_STRIDED && o->stride[last] == 0;
    fit = fit && (one || (fours(o->p, o->dtype) && (o->how == TY_K_DENSE || o->stride[last] == 1)));
    for (int d = 0; d < last && o->how == TY_K_STRIDED && !one; d++) fit = fit && o->stride[d] % 4 == 0;
  }
  return fit;
}

/* ---- launcher ---- */

template <class F, class T, class D, class R> static cudaError_t launch_dense(const ty_k_point *a, cudaStream_t s) {
  const ty_k_point args = *a;
  auto kernel = dense<F, T, D, R>;
  constexpr int each = neighbours<D, R>::EACH;
  return TY_LAUNCH(kernel, blocks_for(a->n, THREADS * each), THREADS, s, args);
}

/* Whether all operands but numbers are dense, have dtype d (the result: r) and begin at multiples of 16 bytes. */
static bool all_dense(const ty_k_point *a, int d, int r) {
  for (int k = 0; k <= a->nin; k++) {
    const ty_k_operand *o = &a->o[k];
    if (o->how == TY_K_NUMBER) continue;
    if (o->how != TY_K_DENSE || o->dtype != (k ? d : r) || (uintptr_t)o->p % 16) return false;
  }
  return true;
}

#define DENSE(dtype, D) \
  if (all_dense(a, dtype, LOGICAL ? TY_BOOL : dtype)) return launch_dense<F, T, D, typename choose<LOGICAL, D>::type>(a, s);
template <bool LOGICAL, class D> struct choose { typedef D type; };
template <class D> struct choose<true, D> { typedef truth type; };
template <class F, class T> static cudaError_t launch_strided(const ty_k_point *a, cudaStream_t s) {
  const ty_k_point args = *a;
  auto kernel = strided<F, T>;
  return TY_LAUNCH(kernel, blocks_for(a->n, THREADS), THREADS, s, args);
}
template <class F, bool LOGICAL> static cudaError_t launch_f32(const ty_k_point *a, cudaStream_t s) {
  typedef float T;
  DENSE(TY_F32, float) DENSE(TY_F16, half16) DENSE(TY_BF16, brain16)
  const ty_k_point args = *a;
  return in_fours(a) ? TY_LAUNCH(strided_fours<F>, blocks_for(a->n, THREADS * 4), THREADS, s, args) : launch_strided<F, T>(a, s);
}
template <class F, bool LOGICAL> static cudaError_t launch_f64(const ty_k_point *a, cudaStream_t s) {
  typedef double T;
  DENSE(TY_F64, double)
  return launch_strided<F, T>(a, s);
}
template <class F, bool LOGICAL> static cudaError_t launch_i64(const ty_k_point *a, cudaStream_t s) {
  typedef int64_t T;
  DENSE(TY_I64, int64_t)
  return launch_strided<F, T>(a, s);
}

#define REAL(name, logical) a->k == TY_IN_F64 ? launch_f64<name##_op_f64, logical>(a, s) : launch_f32<name##_op_f32, logical>(a, s)
#define ANY(name, logical) a->k == TY_IN_I64 ? launch_i64<name##_op_i64, logical>(a, s) : REAL(name, logical)
#define LAUNCH_SAME(name) ANY(name, false)
#define LAUNCH_FIRST(name) ANY(name, false)
#define LAUNCH_WHERE(name) ANY(name, false)
#define LAUNCH_BOOL(name) ANY(name, true)
#define LAUNCH_FLOAT(name) REAL(name, false)
#define LAUNCH_WHOLE(name) launch_i64<name##_op_i64, false>(a, s)

cudaError_t ty_k_pointwise(const ty_k_point *a, cudaStream_t s) {
  switch (a->op) {
    case -1:
      return a->k == TY_IN_I64 ? launch_i64<convert, false>(a, s) : a->k == TY_IN_F64 ? launch_f64<convert, false>(a, s)
        : launch_f32<convert, false>(a, s);
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) case TY_OP_##name: return LAUNCH_##dt(name);
#include "ops.def"
    default: return cudaErrorInvalidValue;
  }
}
