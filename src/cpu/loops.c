/* The loops over contiguous elements that should become vector code.
 *
 * Idea: the Makefile builds this file once for each instruction set (TY_ISA names it), and cpu.c picks one table when the
 * backend is first used. Pointwise loops and reductions come from ops.def: there is no second list. Invariants: no
 * allocation, no errors; operands don't overlap, except that o may be exactly one of them. */
#include <string.h>
#include "cells.h"
#include "cpu.h"
#include "convert16.h"
#include "special.h"
#include "transpose.h"
#include "typed.h"

/* ---- pointwise: one function for each row and type ---- */
#define M(f) FN(f)               /* in ops.def's expressions */
#define POINT(n, name, expr) \
  static void FN(point_##name)(void *o_, const void *a_, const void *b_, const void *c_, int64_t n_, double p_, double q_) { \
    T *o = o_; ARGS##n; const T p = TO_T(p_), q = TO_T(q_); \
    (void)p; (void)q; (void)b_; (void)c_; \
    for (int64_t i = 0; i < n_; i++) { LOADS##n; o[i] = (T)(expr); } }
/* Computes each piece by the quick form near_<name> where `near` holds for all its elements, else by the exact form. near: a condition on
 * as[i] and bs[i]; then the operands, in terms of these too. */
#define PIECE 512
#define NEARLY(name, near, ...) \
  static void FN(point_##name)(void *o_, const void *a_, const void *b_, const void *c_, int64_t n_, double p_, double q_) { \
    (void)c_; (void)p_; (void)q_; \
    for (int64_t from = 0; from < n_; from += PIECE) { \
      T *o = (T *)o_ + from; const T *as = (const T *)a_ + from, *bs = b_ ? (const T *)b_ + from : NULL; (void)bs; \
      const int n = (int)TY_MIN(n_ - from, PIECE); int far = 0; \
      for (int i = 0; i < n; i++) far |= !(near); \
      if (far) for (int i = 0; i < n; i++) o[i] = M(name)(__VA_ARGS__); \
      else for (int i = 0; i < n; i++) o[i] = M(near_##name)(__VA_ARGS__); } }
#define DIVIDED(name) NEARLY(name, M(abs)(as[i] / bs[i]) < TY_NEAR, as[i], bs[i])
#define TURNED(name) NEARLY(name, M(abs)(as[i]) <= (T)TY_NEAR_ANGLE, as[i])
#define ARGS1 const T *xs = a_
#define ARGS2 const T *as = a_, *bs = b_
#define ARGS3 const T *as = a_, *bs = b_, *cs = c_
#define LOADS1 const T x = xs[i]
#define LOADS2 const T a = as[i], b = bs[i]; (void)a
#define LOADS3 const T a = as[i], b = bs[i], c = cs[i]
#define FLOATS_SAME(n, name, expr) POINT(n, name, expr)
#define FLOATS_FLOAT(n, name, expr) POINT(n, name, expr)
#define FLOATS_BOOL(n, name, expr) POINT(n, name, expr)
#define FLOATS_FIRST(n, name, expr) POINT(n, name, expr)
#define FLOATS_WHERE(n, name, expr) POINT(n, name, expr)
#define FLOATS_WHOLE(n, name, expr)
#define INTS_SAME(n, name, expr) POINT(n, name, expr)
#define INTS_BOOL(n, name, expr) POINT(n, name, expr)
#define INTS_FIRST(n, name, expr) POINT(n, name, expr)
#define INTS_WHERE(n, name, expr) POINT(n, name, expr)
#define INTS_WHOLE(n, name, expr) POINT(n, name, expr)
#define INTS_FLOAT(n, name, expr)   /* computed in floating point only */

/* ---- reductions ---- */

#define LANES TY_LANES
#define SIDE 16
#define SHORT 32                 /* rows of fewer elements are transposed; LANES at least */
#define EACH_OF(n, i) _Pragma("omp simd") for (int i = 0; i < n; i++)          /* else gcc unrolls it before it can vectorize it */
/* A row's last elements, fewer than LANES, filled up with `none`: by masked loads where the processor has them. */
#define TAIL(T, t, s, rest, none) \
  T t[LANES]; \
  { const T *restrict s_ = (s); const int rest_ = (int)(rest); \
    for (int j_ = 0; j_ < LANES; j_++) t[j_] = j_ < rest_ ? s_[j_] : (T)(none); }
#define HALF(j, h, n, what) { enum { h = n }; for (int j = 0; j < n; j++) what; }
#define HALVES(j, h, what) HALF(j, h, 16, what) HALF(j, h, 8, what) HALF(j, h, 4, what) HALF(j, h, 2, what) HALF(j, h, 1, what)
/* The functions of a reduction in ops.def, for each type; the accumulator's join partial results. */
#define OPERATION(name, start, map, join, last) \
  TY_INLINE T FN(start_##name)(void) { return (T)(start); } \
  TY_INLINE T FN(map_##name)(T x) { return (T)(map); } \
  TY_INLINE T FN(join_##name)(T acc, T x) { return (T)(join); } \
  TY_INLINE T FN(last_##name)(T acc, double n) { (void)n; return (T)(last); }

/* ---- made for each type: pointwise loops and reductions; for floating types also row loops and recurrent layers ---- */

#define IN_A(name) PASTE(name##_, SA)
#define T double
#define S f64
#define A double
#define SA f64
#define TO_T(v) (T)(v)
#define WORD uint64_t
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) FLOATS_##dt(n, name, ex)
#define DIVISION(name, sg, dt, ac, dm, ex, dc) DIVIDED(name)
#define ANGLE(name, sg, dt, ac, dm, ex, dc) TURNED(name)
#define REDUCE(name, sg, dt, ac, dm, start, map, join, last, dc) OPERATION(name, start, map, join, last)
#include "ops.def"
#include "extremes.h"
#include "reduce_loops.h"
#include "row_loops.h"
#include "recurrent_loops.h"
#undef T
#undef S
#undef WORD
#define T float
#define S f32
#define WORD uint32_t
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) FLOATS_##dt(n, name, ex)
#define DIVISION(name, sg, dt, ac, dm, ex, dc) DIVIDED(name)
#define REDUCE(name, sg, dt, ac, dm, start, map, join, last, dc) OPERATION(name, start, map, join, last)
#include "ops.def"
#include "extremes.h"
#include "reduce_loops.h"
#include "row_loops.h"
#include "recurrent_loops.h"
#undef T
#undef S
#undef WORD
#undef A
#undef SA
#undef TO_T
#define T int64_t
#define S i64
#define A int64_t
#define SA i64
#define TO_T(v) ty_whole(v)
#define extremes_of_i64(...) 0   /* integers take one comparison anyway */
#define extremes_of_rows_i64(...) false
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) INTS_##dt(n, name, ex)
#define REDUCE(name, sg, dt, ac, dm, start, map, join, last, dc) OPERATION(name, start, map, join, last)
#include "ops.def"
#include "reduce_loops.h"
#undef T
#undef S
#undef A
#undef SA
#undef TO_T

/* Pointwise loops on bytes, where operands and results are bytes. The result is the low byte of the 64-bit result, which depends on the
 * operands' low bytes alone, unless parameters are limits. */
TY_INLINE int abs_u8(int x) { return x; }
TY_INLINE int floor_u8(int x) { return x; }
TY_INLINE int ceil_u8(int x) { return x; }
TY_INLINE int round_u8(int x) { return x; }
TY_INLINE int trunc_u8(int x) { return x; }
TY_INLINE int isinf_u8(int x) { (void)x; return 0; }
TY_INLINE int isfinite_u8(int x) { (void)x; return 1; }
TY_INLINE int signbit_u8(int x) { (void)x; return 0; }
TY_INLINE int max_u8(int a, int b) { return a > b ? a : b; }
TY_INLINE int min_u8(int a, int b) { return a < b ? a : b; }
TY_INLINE int clamp_u8(int x, int p, int q) { return min_u8(max_u8(x, p), q); }
TY_INLINE int floor_divide_u8(int a, int b) { return b ? a / b : 0; }
TY_INLINE int remainder_u8(int a, int b) { return b ? a % b : 0; }
TY_INLINE int fmod_u8(int a, int b) { return remainder_u8(a, b); }
TY_INLINE int64_t pow_u8(int a, int b) { return pow_i64(a, b); }
TY_INLINE int64_t gcd_u8(int a, int b) { return gcd_i64(a, b); }
TY_INLINE int64_t lcm_u8(int a, int b) { return lcm_i64(a, b); }
#define T uint8_t
#define S u8
#define TO_T(v) (T)ty_whole(v)
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) INTS_##dt(n, name, ex)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"       /* x < 0 */
#include "ops.def"
#pragma GCC diagnostic pop
#undef T
#undef S
#undef TO_T

/* ---- conversions between storage dtypes and loop types ---- */

#define AS_IS(x) (x)
#define FROM_BF16(x) ty_bf16_to_f32(x)
#define FROM_F16(x) ty_f16_to_f32(x)
#define TO_BF16(x) ty_f32_to_bf16((float)(x))
#define TO_F16(x) ty_f32_to_f16((float)(x))
#define TO_BOOL(x) ((x) != 0)
#define TO_WHOLE(x) \
  ((x) != (x) ? 0 : (x) >= (__typeof__(x))9.2233720368547758e18 ? INT64_MAX \
   : (x) <= (__typeof__(x))-9.2233720368547758e18 ? INT64_MIN : (int64_t)(x))
#define LOAD(name, D, k, T, from, to) \
  static void load_##name##_##k(void *d_, const void *s_, int64_t st, int64_t n) { \
    T *d = d_; const D *s = s_; \
    if (st == 1) for (int64_t i = 0; i < n; i++) d[i] = (T)to(from(s[i])); \
    else if (st == 0) { T v = (T)to(from(*s)); for (int64_t i = 0; i < n; i++) d[i] = v; } \
    else for (int64_t i = 0; i < n; i++) d[i] = (T)to(from(s[i * st])); }
#define STORE(name, D, k, T, to) \
  static void store_##name##_##k(void *d_, int64_t st, const void *s_, int64_t n) { \
    D *d = d_; const T *s = s_; \
    if (st == 1) for (int64_t i = 0; i < n; i++) d[i] = (D)to(s[i]); \
    else for (int64_t i = 0; i < n; i++) d[i * st] = (D)to(s[i]); }
#define CONVERT_MORE(name, D, from, to) \
  LOAD(name, D, 1, double, from, AS_IS) LOAD(name, D, 2, int64_t, from, TO_WHOLE) \
  STORE(name, D, 1, double, to) STORE(name, D, 2, int64_t, to)
#define CONVERT_FLOAT(name, D, from, to) \
  LOAD(name, D, 0, float, from, AS_IS) STORE(name, D, 0, float, to) CONVERT_MORE(name, D, from, to)
/* Floats to integers: vectors convert those that fit into 32 bits. */
#define STORE_WHOLE(name, D, k, T) \
  static void store_##name##_##k(void *d_, int64_t st, const void *s_, int64_t n) { \
    D *d = d_; const T *s = s_; \
    int64_t i = 0; \
    for (; st == 1 && i + LANES <= n; i += LANES) { \
      int fit = 1; \
      EACH_OF(LANES, j) fit &= (s[i + j] < (T)0x1p31) & (s[i + j] > (T)-0x1p31); \
      if (fit) { EACH_OF(LANES, j) d[i + j] = (D)(int32_t)s[i + j]; } \
      else for (int j = 0; j < LANES; j++) d[i + j] = (D)TO_WHOLE(s[i + j]); \
    } \
    for (; i < n; i++) d[i * st] = (D)TO_WHOLE(s[i]); }
#define LOAD_ALL(name, D) \
  LOAD(name, D, 0, float, AS_IS, AS_IS) LOAD(name, D, 1, double, AS_IS, AS_IS) LOAD(name, D, 2, int64_t, AS_IS, AS_IS)
#define CONVERT_INT(name, D) \
  LOAD_ALL(name, D) STORE_WHOLE(name, D, 0, float) STORE_WHOLE(name, D, 1, double) STORE(name, D, 2, int64_t, AS_IS)
CONVERT_FLOAT(f32, float, AS_IS, AS_IS)
CONVERT_FLOAT(f64, double, AS_IS, AS_IS)
#ifndef HAS_CONVERT16       /* else convert16.h has them */
LOAD(f16, uint16_t, 0, float, FROM_F16, AS_IS) STORE(f16, uint16_t, 0, float, TO_F16)
#endif
CONVERT_MORE(f16, uint16_t, FROM_F16, TO_F16)
CONVERT_FLOAT(bf16, uint16_t, FROM_BF16, TO_BF16)
CONVERT_INT(i32, int32_t)
CONVERT_INT(i64, int64_t)
CONVERT_INT(u8, uint8_t)
LOAD_ALL(logical, uint8_t) STORE(logical, uint8_t, 0, float, TO_BOOL) STORE(logical, uint8_t, 1, double, TO_BOOL)
STORE(logical, uint8_t, 2, int64_t, TO_BOOL)
LOAD(bytes, uint8_t, as_they_are, uint8_t, AS_IS, AS_IS) STORE(bytes, uint8_t, as_they_are, uint8_t, AS_IS)

/* ---- products of a 16-bit row with a few float32 rows ---- */

/* bfloat16 numbers are taken two at a time from 32-bit words, without moving them: of each LANES the even ones first, the order that
 * beside_order (matmul.c) gives v. */
typedef uint32_t pair_of_16 __attribute__((may_alias, aligned(2)));
#define BESIDE(m, WIDE) case m: { \
    float lane[m][WIDE] = {{0}}; \
    for (; i < whole; i += WIDE) { \
      float t[WIDE]; \
      for (int q = 0; q < WIDE; q += LANES) { \
        const pair_of_16 *p = (const void *)(w + i + q); \
        if (bf16) EACH_OF(LANES / 2, j) { \
          t[q + j] = ty_float(p[j] << 16); \
          t[q + LANES / 2 + j] = ty_float(p[j] & 0xffff0000u); } \
        else { LOAD_LANES(t + q, w + i + q); } } \
      for (int r = 0; r < m; r++) EACH_OF(WIDE, j) lane[r][j] += v[r * n + i + j] * t[j]; } \
    for (int r = 0; r < m; r++) { \
      for (int q = LANES; q < WIDE; q += LANES) EACH_OF(LANES, j) lane[r][j] += lane[r][j + q]; \
      HALVES(j, h, lane[r][j] += lane[r][j + h]) \
      out[r] = lane[r][0]; \
      for (int64_t k = i; k < n; k++) out[r] += v[r * n + k] * (bf16 ? ty_bf16_to_f32(w[k]) : ty_f16_to_f32(w[k])); } } \
    break;
TY_INLINE void beside(float *out, const float *v, int rows, const uint16_t *w, int64_t n, bool bf16) {
  const int64_t whole = n / TY_BESIDE_WHOLE * TY_BESIDE_WHOLE;
  int64_t i = 0;
  switch (rows) { BESIDE(1, TY_BESIDE_WHOLE) BESIDE(2, LANES) BESIDE(3, LANES) BESIDE(4, LANES) }
}
static void beside_f16(float *out, const float *v, int rows, const uint16_t *w, int64_t n) { beside(out, v, rows, w, n, false); }
static void beside_bf16(float *out, const float *v, int rows, const uint16_t *w, int64_t n) { beside(out, v, rows, w, n, true); }

/* ---- values repeated to rows ---- */
#define REPEAT_N(N) for (int64_t r = 0; r < rows; r++) for (int64_t j = 0; j < (N); j++) o[r * (N) + j] = x[r * step]; break
#define REPEAT(name, T) \
  static void name(void *o_, const void *x_, int64_t step, int64_t n, int64_t rows) { \
    T *restrict o = o_; const T *restrict x = x_; \
    switch (n) {                           /* short rows of a constant length take half the time */ \
      case 2: REPEAT_N(2); \
      case 3: REPEAT_N(3); \
      case 4: REPEAT_N(4); \
      case 8: REPEAT_N(8); \
      case 16: REPEAT_N(16); \
      default: REPEAT_N(n); } }
#define BACKWARD(name, T) \
  static void name(void *o_, const void *x_, int64_t n) { \
    T *restrict o = o_; const T *restrict x = x_; \
    for (int64_t i = 0; i < n; i++) o[i] = x[-i]; }
BACKWARD(backward_1, uint8_t)
BACKWARD(backward_2, uint16_t)
BACKWARD(backward_4, uint32_t)
BACKWARD(backward_8, uint64_t)
REPEAT(repeat_4, uint32_t)
REPEAT(repeat_8, uint64_t)

/* ---- optimizers' steps: a loop for each rule and set of states (optim_formulas.h) ---- */

#define STEP(T, X, op, has) \
  case 8 * (op) + (has): \
    for (int64_t i = 0; i < n; i++) { \
      T v[3] = {(has) & 1 ? a[i] : 0, (has) & 2 ? b[i] : 0, (has) & 4 ? c[i] : 0}; \
      p[i] = ty_step_##X(op, has, &r, g[i], p[i], v); \
      if ((has) & 1) a[i] = v[0]; \
      if ((has) & 2) b[i] = v[1]; \
      if ((has) & 4) c[i] = v[2]; } \
    break;
#define STEPS(T, X) \
  static void step_##X(int op, void *const *lists, int64_t n, const ty_step_rates *rates) { \
    T *p = lists[0], *a = lists[2], *b = lists[3], *c = lists[4]; const T *g = lists[1]; const ty_step_rates r = *rates; \
    switch (8 * op + (a ? 1 : 0) + (b ? 2 : 0) + (c ? 4 : 0)) { \
      STEP(T, X, TY_OP_sgd_step, 0) STEP(T, X, TY_OP_sgd_step, 1) \
      STEP(T, X, TY_OP_rmsprop_step, 1) STEP(T, X, TY_OP_rmsprop_step, 3) \
      STEP(T, X, TY_OP_rmsprop_step, 5) STEP(T, X, TY_OP_rmsprop_step, 7) \
      STEP(T, X, TY_OP_adagrad_step, 1) STEP(T, X, TY_OP_adadelta_step, 3) \
      STEP(T, X, TY_OP_adamw_step, 3) STEP(T, X, TY_OP_adamw_step, 7) \
      STEP(T, X, TY_OP_nadam_step, 3) STEP(T, X, TY_OP_radam_step, 3) STEP(T, X, TY_OP_adamax_step, 3) } }
STEPS(float, f32)
STEPS(double, f64)

/* ---- signs of 16 bits ---- */

#define SIGN(name, expr) \
  static void name##_16(void *o_, const void *x_, const void *b, const void *c, int64_t n, double p, double q) { \
    uint16_t *o = o_; const uint16_t *x = x_; \
    (void)b; (void)c; (void)p; (void)q; \
    for (int64_t i = 0; i < n; i++) o[i] = x[i] expr; }
SIGN(neg, ^ 0x8000)
SIGN(abs, & 0x7fff)

/* ---- positions ---- */

/* A block at a time, so that vector code may see whether it is there. */
#define POSITION(T, A, suffix) static int64_t position_##suffix(const void *x_, int64_t n, const void *value) { \
  enum { BLOCK = 64 }; \
  const T *x = x_, v = (T)*(const A *)value; \
  int64_t i = 0; \
  if (v != v) { while (i < n && x[i] == x[i]) i++; return i; } \
  for (; i + BLOCK <= n; i += BLOCK) { \
    int any = 0; \
    EACH_OF(BLOCK, j) any |= x[i + j] == v; \
    if (any) break; \
  } \
  while (i < n && x[i] != v) i++; \
  return i; \
}
POSITION(float, double, f32)
POSITION(double, double, f64)
POSITION(int64_t, int64_t, i64)

/* Elements become integers in the same order. Of a few, how many come before each is counted. Else the rank-th lies in least .. most; how
 * many are below the middle says in which half, and the half ends at an element: that takes some log2(n) rounds. No branch depends on an
 * element, which couldn't be predicted. */
#define RANKED(T, I, U, suffix, TO_KEY) static int64_t ranked_##suffix(const void *x_, int64_t n, int64_t rank, void *keys) { \
  enum { UNIT = TY_RANKED_UNIT }; \
  const T *x = x_; \
  const I last = (I)((U)-1 >> 1), first = -last - 1; \
  const int64_t all = (n + UNIT - 1) / UNIT * UNIT; \
  I *key = keys, least = last, most = first; \
  _Pragma("omp simd reduction(min:least) reduction(max:most)") \
  for (int64_t i = 0; i < n; i++) { const T v = x[i]; TO_KEY; least = k < least ? k : least; most = k > most ? k : most; key[i] = k; } \
  for (int64_t i = n; i < all; i++) key[i] = last; \
  if (n <= UNIT) { \
    I before[UNIT] = {0}; \
    for (int j = 0; j < n; j++) { \
      const I k = key[j]; \
      EACH_OF(UNIT, i) before[i] += (k < key[i]) | ((k == key[i]) & (j < i)); } \
    for (int64_t i = 0; i < n; i++) if (before[i] == rank - 1) return i; } \
  while (least < most) { \
    const I middle = (I)((U)least + ((U)most - (U)least) / 2 + 1); \
    I below = first, from = last, count = 0; \
    _Pragma("omp simd reduction(+:count) reduction(max:below) reduction(min:from)") \
    for (int64_t i = 0; i < all; i++) { \
      const I k = key[i], low = k < middle ? k : first, high = k < middle ? last : k; \
      count += k < middle; \
      below = low > below ? low : below; \
      from = high < from ? high : from; } \
    if (count < rank) least = from; else most = below; } \
  for (int64_t i = 0; i < n; i++) rank -= key[i] < least; \
  for (int64_t i = 0; i < n; i++) if (key[i] == least && --rank == 0) return i; \
  return n; }
#define FLOAT_KEY(I, bits, none) \
  I k; const __typeof__(v) at = v + 0; memcpy(&k, &at, sizeof k); k ^= (k >> (bits - 1)) & none; k = v != v ? none : k
RANKED(float, int32_t, uint32_t, f32, FLOAT_KEY(int32_t, 32, INT32_MAX))
RANKED(double, int64_t, uint64_t, f64, FLOAT_KEY(int64_t, 64, INT64_MAX))
RANKED(int64_t, int64_t, uint64_t, i64, const int64_t k = v)

static bool places(int64_t *restrict o, const int64_t *restrict index, int64_t n, int64_t size, int64_t least, int64_t stride, bool add) {
  const uint64_t first = (uint64_t)least, last = (uint64_t)size, step = (uint64_t)stride;      /* any index: unsigned numbers wrap */
  uint64_t bad = 0;
#define PLACES(op, by) for (int64_t i = 0; i < n; i++) { \
    const uint64_t v = (uint64_t)index[i]; \
    bad |= (uint64_t)(v == 0) | (v - first) >> 63 | (last - v) >> 63; \
    o[i] op (int64_t)((v - 1 + (-(v >> 63) & (last + 1))) by); \
  }
  if (add) PLACES(+=, * step)
  else if (stride == 1) PLACES(=, )
  else PLACES(=, * step)
#undef PLACES
  return !bad;
}

/* ---- random numbers ---- */

static void keep(float *o, const uint32_t *r, double drop, int64_t n) {
  const uint32_t least = ty_least_kept(drop);
  for (int64_t i = 0; i < n; i++) o[i] = r[i] >> 8 >= least ? 1.0f : 0.0f;
}
/* Several blocks at once: the same word of each side by side. */
static void philox(uint32_t *out, uint64_t seed, uint64_t block, int64_t blocks) {
  enum { SIDE_BY_SIDE = 16 };
  int64_t i = 0;
  for (; i + SIDE_BY_SIDE <= blocks; i += SIDE_BY_SIDE) {
    uint32_t c[4][SIDE_BY_SIDE], k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int j = 0; j < SIDE_BY_SIDE; j++) {
      const uint64_t at = block + (uint64_t)(i + j);
      c[0][j] = (uint32_t)at;
      c[1][j] = (uint32_t)(at >> 32);
      c[2][j] = c[3][j] = 0;
    }
    for (int round = 0; round < 10; round++) {
      EACH_OF(SIDE_BY_SIDE, j) ty_philox_round(&c[0][j], &c[1][j], &c[2][j], &c[3][j], k0, k1);
      ty_philox_next(&k0, &k1);
    }
    for (int j = 0; j < SIDE_BY_SIDE; j++)
      for (int k = 0; k < 4; k++) out[4 * (i + j) + k] = c[k][j];
  }
  for (; i < blocks; i++) ty_philox(seed, block + (uint64_t)i, out + 4 * i);
}

/* Pairs of words become pairs of normal numbers; n is even. Split into two arrays, so that the compiler vectorizes it. */
static void normal(float *restrict out, const uint32_t *restrict words, int64_t n) {
  float a[64], b[64];
  for (int64_t at = 0; at < n; at += 128) {
    const int m = (int)TY_MIN(64, (n - at) / 2);
    for (int i = 0; i < m; i++) ty_normal2(words[at + 2 * i], words[at + 2 * i + 1], &a[i], &b[i]);
    for (int i = 0; i < m; i++) { out[at + 2 * i] = a[i]; out[at + 2 * i + 1] = b[i]; }
  }
}

/* ---- the table ---- */

#define ROW_FLOAT(name) [TY_OP_##name] = {point_##name##_f32, point_##name##_f64, NULL},
#define ROW_SAME(name) [TY_OP_##name] = {point_##name##_f32, point_##name##_f64, point_##name##_i64},
#define ROW_WHOLE(name) [TY_OP_##name] = {NULL, NULL, point_##name##_i64},
#define ROW_BOOL ROW_SAME
#define ROW_FIRST ROW_SAME
#define ROW_WHERE ROW_SAME
#define BOTH(f) .f = {f##_f32, f##_f64}
#define BY_TYPE(f, name) [TY_OP_##name] = {f##_##name##_f32, f##_##name##_f64, f##_##name##_i64},
#define BY_DTYPE(f) {[TY_F32] = {f##_f32_0, f##_f32_1, f##_f32_2}, [TY_F64] = {f##_f64_0, f##_f64_1, f##_f64_2}, \
  [TY_F16] = {f##_f16_0, f##_f16_1, f##_f16_2}, [TY_BF16] = {f##_bf16_0, f##_bf16_1, f##_bf16_2}, \
  [TY_I32] = {f##_i32_0, f##_i32_1, f##_i32_2}, [TY_I64] = {f##_i64_0, f##_i64_1, f##_i64_2}, \
  [TY_U8] = {f##_u8_0, f##_u8_1, f##_u8_2}, [TY_BOOL] = {f##_logical_0, f##_logical_1, f##_logical_2}}
extern const ty_pool_loop PASTE(ty_pool_loops_, TY_ISA)[TY_POOL_LOOPS][2];
extern const ty_column_loops PASTE(ty_column_loops_, TY_ISA);
extern const ty_sample_loops PASTE(ty_sample_loops_, TY_ISA);
extern const ty_product_loop PASTE(ty_product_loops_, TY_ISA)[2], PASTE(ty_dot_loops_, TY_ISA)[2];
extern const ty_depthwise_loops PASTE(ty_depthwise_loops_, TY_ISA);
extern const ty_fourier_loops PASTE(ty_fourier_loops_, TY_ISA);
extern const ty_distance_loops PASTE(ty_distance_loops_, TY_ISA);
extern const ty_matrix_loops PASTE(ty_matrix_loops_, TY_ISA);
extern const ty_loops PASTE(ty_loops_, TY_ISA);
const ty_loops PASTE(ty_loops_, TY_ISA) = {
  .pointwise = {
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) ROW_##dt(name)
#include "ops.def"
  },
  .bytes = {
#define BYTES_SAME(name) [TY_OP_##name] = point_##name##_u8,
#define BYTES_BOOL BYTES_SAME
#define BYTES_FIRST BYTES_SAME
#define BYTES_WHERE BYTES_SAME
#define BYTES_WHOLE BYTES_SAME
#define BYTES_FLOAT(name)
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) BYTES_##dt(name)
#include "ops.def"
  },
  .load_bytes = load_bytes_as_they_are,
  .store_bytes = store_bytes_as_they_are,
  .load = BY_DTYPE(load),
  .store = BY_DTYPE(store),
  .row = {
#define REDUCE(name, ...) BY_TYPE(row, name)
#include "ops.def"
  },
  .rows = {
#define REDUCE(name, ...) BY_TYPE(rows, name)
#include "ops.def"
  },
  .column = {
#define REDUCE(name, ...) BY_TYPE(column, name)
#include "ops.def"
  },
  .column_init = {
#define REDUCE(name, ...) BY_TYPE(column_init, name)
#include "ops.def"
  },
  .combine = {
#define REDUCE(name, ...) BY_TYPE(combine, name)
#include "ops.def"
  },
  .init = {
#define REDUCE(name, ...) BY_TYPE(init, name)
#include "ops.def"
  },
  .finish = {
#define REDUCE(name, ...) BY_TYPE(finish, name)
#include "ops.def"
  },
  .position = {position_f32, position_f64, position_i64}, .ranked = {ranked_f32, ranked_f64, ranked_i64},
  .places = places,
  BOTH(masked),
  BOTH(top),
  BOTH(softmax),
  BOTH(softmax_backward),
  BOTH(row_moments),
  BOTH(moments_of_rows),
  BOTH(moments),
  BOTH(moments_columns),
  BOTH(dots),
  BOTH(dots_columns),
  BOTH(affine),
  BOTH(affine_times),
  BOTH(exp_sum),
  BOTH(centered),
  BOTH(centered_columns),
  BOTH(affine2),
  BOTH(affine2_columns),
  BOTH(layer_norm),
  BOTH(layer_norm_backward),
  BOTH(layer_norm_means),
  BOTH(layer_norm_slopes),
  BOTH(rms_norm),
  BOTH(rms_norm_backward),
  BOTH(step),
  BOTH(add_rows),
  .transpose = {transpose_1, transpose_2, transpose_4, transpose_8},
  .backward = {backward_1, backward_2, backward_4, backward_8},
  BOTH(recurrent),
  BOTH(recurrent_backward),
  .beside = {beside_f16, beside_bf16},
  .philox = philox,
  .repeat = {repeat_4, repeat_8},
  .normal = normal,
  .keep = keep,
  .sign = {neg_16, abs_16},
  .pool = PASTE(ty_pool_loops_, TY_ISA),
  .columns = &PASTE(ty_column_loops_, TY_ISA),
  .sample = &PASTE(ty_sample_loops_, TY_ISA),
  .distance = &PASTE(ty_distance_loops_, TY_ISA),
  .matrix = &PASTE(ty_matrix_loops_, TY_ISA),
  .product = PASTE(ty_product_loops_, TY_ISA), .dot_products = PASTE(ty_dot_loops_, TY_ISA),
  .depthwise = &PASTE(ty_depthwise_loops_, TY_ISA),
  .fourier = &PASTE(ty_fourier_loops_, TY_ISA),
};
