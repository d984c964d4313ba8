/* Every loop over contiguous elements that should become vector code.
 *
 * Idea: the Makefile builds this file once for each instruction set (TY_ISA names it) and cpu.c picks one table when the
 * backend is first used. Pointwise loops and reductions come from ops.def: there is no second list. Invariants: no
 * allocation, no errors; operands don't overlap except that o may be one of them exactly. */
#include <string.h>
#include "cells.h"
#include "cpu.h"
#include "convert16.h"
#include "special.h"
#include "transpose.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

/* ---- pointwise: one function for each row and type ---- */
#define M(f) PASTE(f##_, S)
#define POINT(n, name, expr) \
  static void PASTE(PASTE(point_##name, _), S)(void *o_, const void *a_, const void *b_, const void *c_, int64_t n_, \
                                                   double p_, double q_) { \
    T *o = o_; ARGS##n; const T p = TO_T(p_), q = TO_T(q_); \
    (void)p; (void)q; (void)b_; (void)c_; \
    for (int64_t i = 0; i < n_; i++) { LOADS##n; o[i] = (T)(expr); } }
/* A quick pass over each piece where the near form holds, else the exact one. */
#define PIECE 512
#define DIVIDE(name) \
  static void PASTE(PASTE(point_##name, _), S)(void *o_, const void *a_, const void *b_, const void *c_, int64_t n_, \
                                                   double p_, double q_) { \
    (void)c_; (void)p_; (void)q_; \
    for (int64_t from = 0; from < n_; from += PIECE) { \
      T *o = (T *)o_ + from; const T *as = (const T *)a_ + from, *bs = (const T *)b_ + from; \
      const int n = (int)TY_MIN(n_ - from, PIECE); int far = 0; \
      for (int i = 0; i < n; i++) far |= !(M(abs)(as[i] / bs[i]) < TY_NEAR); \
      if (far) for (int i = 0; i < n; i++) o[i] = M(name)(as[i], bs[i]); \
      else for (int i = 0; i < n; i++) o[i] = M(near_##name)(as[i], bs[i]); } }
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

/* ---- reductions: LANES partial results side by side, then one, by halves (as everywhere here: an op gives the same
   bits alone and in a fused kernel) ---- */
#define LANES TY_LANES
#define SIDE 16
#define SHORT 16                 /* elements of a row that is turned */
#define EACH_OF(n, i) _Pragma("omp simd") for (int i = 0; i < n; i++)          /* else it is unrolled before it is made vector code */
/* A row's last elements, fewer than LANES, with `none` behind them: by masked loads where there are such. */
#define TAIL(T, t, s, rest, none) \
  T t[LANES]; \
  { const T *restrict s_ = (s); const int rest_ = (int)(rest); \
    for (int j_ = 0; j_ < LANES; j_++) t[j_] = j_ < rest_ ? s_[j_] : (T)(none); }
#define HALF(j, h, n, what) { enum { h = n }; for (int j = 0; j < n; j++) what; }
#define HALVES(j, h, what) HALF(j, h, 16, what) HALF(j, h, 8, what) HALF(j, h, 4, what) HALF(j, h, 2, what) HALF(j, h, 1, what)
#define REDUCTION(name, INIT, MAP, COMB, FIN) \
  /* a row as far as it is joined within vectors */ \
  TY_INLINE void PASTE(PASTE(eight_##name, _), S)(A *eight, const T *xs, int64_t n) { \
    T lane[LANES]; A wide[LANES]; int64_t i = 0; \
    EACH_OF(LANES, j) lane[j] = (T)(INIT); \
    for (; i + LANES <= n; i += LANES) \
      EACH_OF(LANES, j) { T x = xs[i + j], acc = lane[j]; x = MAP; lane[j] = (T)(COMB); } \
    if (i < n) {                                /* INIT changes nothing */ \
      TAIL(T, last, xs + i, n - i, INIT); \
      EACH_OF(LANES, j) { T x = last[j], acc = lane[j]; x = MAP; lane[j] = (T)(COMB); } } \
    EACH_OF(LANES, j) wide[j] = (A)lane[j]; \
    EACH_OF(16, j) wide[j] = PASTE(merge_##name, PASTE(_, SA))(wide[j], wide[j + 16]); \
    EACH_OF(8, j) eight[j] = PASTE(merge_##name, PASTE(_, SA))(wide[j], wide[j + 8]); } \
  static void PASTE(PASTE(row_##name, _), S)(void *out, const void *x, int64_t n) { \
    A eight[8]; \
    PASTE(PASTE(eight_##name, _), S)(eight, x, n); \
    for (int h = 4; h; h /= 2) for (int j = 0; j < h; j++) eight[j] = PASTE(merge_##name, PASTE(_, SA))(eight[j], eight[j + h]); \
    *(A *)out = eight[0]; } \
  /* as row_, of rows one after another: SIDE of them side by side, short ones from the start on, others when each is a vector */ \
  static void PASTE(PASTE(rows_##name, _), S)(void *out, const void *x_, int64_t rows, int64_t n) { \
    const T *xs = x_; A *o = out, none; T turned[SHORT][SIDE]; A side[SHORT][SIDE], eight[SIDE * 8]; \
    { T x = (T)(INIT), acc = x; x = MAP; none = (A)(T)(COMB); } \
    for (; rows > 0; rows -= SIDE, xs += SIDE * n, o += SIDE) { \
      const int m = (int)TY_MIN(rows, SIDE), k = n <= SHORT ? (int)n : 8; \
      if (m < SIDE) { memset(turned, 0, sizeof turned); memset(eight, 0, sizeof eight); } \
      if (n <= SHORT) { \
        if (sizeof(T) == 4) transpose_4(turned, SIDE, xs, n, m, n); \
        else transpose_8(turned, SIDE, xs, n, m, n); \
        for (int j = 0; j < k; j++) \
          EACH_OF(SIDE, i) { \
            T x = turned[j][i], acc = (T)(INIT); x = MAP; \
            side[j][i] = PASTE(merge_##name, PASTE(_, SA))((A)(T)(COMB), none); } } \
      else { \
        for (int i = 0; i < m; i++) PASTE(PASTE(eight_##name, _), S)(eight + i * 8, xs + i * n, n); \
        transpose_8(side, SIDE, eight, 8, SIDE, 8); } \
      for (int h = SHORT / 2; h; h /= 2) for (int j = 0; j < h && j + h < k; j++) \
        EACH_OF(SIDE, i) side[j][i] = PASTE(merge_##name, PASTE(_, SA))(side[j][i], side[j + h][i]); \
      memcpy(o, side, (size_t)m * sizeof *o); } } \
  static void PASTE(PASTE(column_##name, _), S)(void *acc_, const void *x_, int64_t n) { \
    T *accs = acc_; const T *xs = x_; \
    for (int64_t i = 0; i < n; i++) { T x = xs[i], acc = accs[i]; x = MAP; accs[i] = (T)(COMB); } } \
  static void PASTE(PASTE(column_init_##name, _), S)(void *acc_, int64_t n) { \
    T *accs = acc_; for (int64_t i = 0; i < n; i++) accs[i] = (T)(INIT); } \
  static void PASTE(PASTE(combine_##name, _), S)(void *acc_, const void *x_, int64_t n) { \
    A *accs = acc_; const A *xs = x_; for (int64_t i = 0; i < n; i++) accs[i] = PASTE(merge_##name, PASTE(_, SA))(accs[i], xs[i]); } \
  static void PASTE(PASTE(init_##name, _), S)(void *acc_, int64_t n) { \
    A *accs = acc_; for (int64_t i = 0; i < n; i++) accs[i] = (A)(INIT); } \
  static void PASTE(PASTE(finish_##name, _), S)(void *acc_, int64_t m, double n) { \
    A *accs = acc_; (void)n; for (int64_t i = 0; i < m; i++) accs[i] = PASTE(last_##name, PASTE(_, SA))(accs[i], n); }
/* In the accumulator's type: how two partial results combine, and the last step. */
#define MERGE(name, COMB, FIN) \
  TY_INLINE T PASTE(merge_##name, PASTE(_, S))(T acc, T x) { return (T)(COMB); } \
  TY_INLINE T PASTE(last_##name, PASTE(_, S))(T acc, double n) { (void)n; return (T)(FIN); }

#define T double
#define S f64
#define REDUCE(name, dt, ac, dm, init, map, comb, fin, dc) MERGE(name, comb, fin)
#include "ops.def"
#undef T
#undef S
#define T int64_t
#define S i64
#define REDUCE(name, dt, ac, dm, init, map, comb, fin, dc) MERGE(name, comb, fin)
#include "ops.def"
#undef T
#undef S

#define TO_T(v) (T)(v)
#define T float
#define S f32
#define A double
#define SA f64
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) FLOATS_##dt(n, name, ex)
#define DIVISION(name, sg, dt, ac, dm, ex, dc) DIVIDE(name)
#define REDUCE(name, dt, ac, dm, init, map, comb, fin, dc) REDUCTION(name, init, map, comb, fin)
#include "ops.def"
#undef T
#undef S
#define T double
#define S f64
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) FLOATS_##dt(n, name, ex)
#define DIVISION(name, sg, dt, ac, dm, ex, dc) DIVIDE(name)
#define REDUCE(name, dt, ac, dm, init, map, comb, fin, dc) REDUCTION(name, init, map, comb, fin)
#include "ops.def"
#undef T
#undef S
#undef A
#undef SA
#undef TO_T
#define TO_T(v) ty_whole(v)
#define T int64_t
#define S i64
#define A int64_t
#define SA i64
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) INTS_##dt(n, name, ex)
#define REDUCE(name, dt, ac, dm, init, map, comb, fin, dc) REDUCTION(name, init, map, comb, fin)
#include "ops.def"
#undef T
#undef S
#undef A
#undef SA
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
#define CONVERT_INT(name, D, toint, to) \
  LOAD(name, D, 0, float, AS_IS, AS_IS) LOAD(name, D, 1, double, AS_IS, AS_IS) LOAD(name, D, 2, int64_t, AS_IS, AS_IS) \
  STORE(name, D, 0, float, toint) STORE(name, D, 1, double, toint) STORE(name, D, 2, int64_t, to)
CONVERT_FLOAT(f32, float, AS_IS, AS_IS)
CONVERT_FLOAT(f64, double, AS_IS, AS_IS)
#ifndef __F16C__            /* else convert16.h has them */
LOAD(f16, uint16_t, 0, float, FROM_F16, AS_IS) STORE(f16, uint16_t, 0, float, TO_F16)
#endif
CONVERT_MORE(f16, uint16_t, FROM_F16, TO_F16)
CONVERT_FLOAT(bf16, uint16_t, FROM_BF16, TO_BF16)
CONVERT_INT(i32, int32_t, TO_WHOLE, AS_IS)
CONVERT_INT(i64, int64_t, TO_WHOLE, AS_IS)
CONVERT_INT(u8, uint8_t, TO_WHOLE, AS_IS)
CONVERT_INT(logical, uint8_t, TO_BOOL, TO_BOOL)

/* ---- values that stand for rows ---- */
#define REPEAT_N(N) for (int64_t r = 0; r < rows; r++) for (int64_t j = 0; j < (N); j++) o[r * (N) + j] = x[r * step]; break
#define REPEAT(name, T) \
  static void name(void *o_, const void *x_, int64_t step, int64_t n, int64_t rows) { \
    T *restrict o = o_; const T *restrict x = x_; \
    switch (n) {                           /* short ones that compilers know the length of take half the time */ \
      case 2: REPEAT_N(2); \
      case 3: REPEAT_N(3); \
      case 4: REPEAT_N(4); \
      case 8: REPEAT_N(8); \
      case 16: REPEAT_N(16); \
      default: REPEAT_N(n); } }
REPEAT(repeat_4, uint32_t)
REPEAT(repeat_8, uint64_t)

#define LOGIC(e) for (int64_t i = 0; i < n; i++) o[i] = (uint8_t)(e); return
static void logic_of_bits(uint8_t *o, const uint8_t *a, const uint8_t *b, int64_t n, int how) {
  switch (how) {
    case TY_LOGIC_AND: LOGIC(a[i] & b[i]);
    case TY_LOGIC_OR: LOGIC(a[i] | b[i]);
    default: LOGIC(a[i] ^ b[i]);
  }
}
static void logic_of_bools(uint8_t *o, const uint8_t *a, const uint8_t *b, int64_t n, int how) {
  switch (how) {
    case TY_LOGIC_AND: LOGIC((a[i] != 0) & (b[i] != 0));
    case TY_LOGIC_OR: LOGIC((a[i] | b[i]) != 0);
    case TY_LOGIC_XOR: LOGIC((a[i] != 0) ^ (b[i] != 0));
    default: LOGIC(a[i] == 0);
  }
}

/* ---- softmax, normalisation, optimizers: for float and double ---- */

#define SUM_LANES(s, lane) do { \
    double wide_[LANES]; \
    for (int j_ = 0; j_ < LANES; j_++) wide_[j_] = (double)lane[j_]; \
    HALVES(j_, h_, wide_[j_] += wide_[j_ + h_]) \
    s += wide_[0]; } while (0)
#define FAMILY(k, T, X) \
  static T sum_##k(const T *x, int64_t n) {  /* of one block */ \
    T a[LANES] = {0}; int64_t i = 0; double s = 0; \
    for (; i + LANES <= n; i += LANES) for (int j = 0; j < LANES; j++) a[j] += x[i + j]; \
    if (i < n) { TAIL(T, xl, x + i, n - i, 0); for (int j = 0; j < LANES; j++) a[j] += xl[j]; } \
    SUM_LANES(s, a); \
    return (T)s; } \
  static T dot_##k(const T *x, const T *y, int64_t n) { \
    T a[LANES] = {0}; int64_t i = 0; double s = 0; \
    for (; i + LANES <= n; i += LANES) for (int j = 0; j < LANES; j++) a[j] += x[i + j] * y[i + j]; \
    if (i < n) { \
      TAIL(T, xl, x + i, n - i, 0); \
      TAIL(T, yl, y + i, n - i, 0); \
      for (int j = 0; j < LANES; j++) a[j] += xl[j] * yl[j]; } \
    SUM_LANES(s, a); \
    return (T)s; } \
  static double total_##k(const T *x, int64_t n) {  /* as the op sum adds */ \
    double s = 0; const int64_t most = TY_PART_OF(n); \
    for (int64_t i = 0; i < n; i += most) { double part; row_sum_##X(&part, x + i, TY_MIN(most, n - i)); s += part; } \
    return s; } \
  static double total_square_##k(const T *x, int64_t n, T shift) { \
    double s = 0; const int64_t most = TY_PART_OF(n); \
    for (int64_t i = 0; i < n;) { \
      T a[LANES] = {0}; int64_t e = TY_MIN(n, i + most); double part = 0; \
      for (; i + LANES <= e; i += LANES) for (int j = 0; j < LANES; j++) { T d = x[i + j] - shift; a[j] += d * d; } \
      for (int j = 0; i < e; i++, j++) { T d = x[i] - shift; a[j] += d * d; } \
      SUM_LANES(part, a); s += part; } \
    return s; } \
  static void row_moments_##k(const void *x, int64_t n, double eps, bool centered, double *mean, double *rstd) { \
    const T m = centered ? (T)(total_##k(x, n) / (double)n) : 0, v = (T)(total_square_##k(x, n, m) / (double)n); \
    *mean = m; *rstd = 1 / sqrt_##X(v + (T)eps); } \
  static void softmax_##k(void *o_, const void *x_, int64_t n, int lg) { \
    T *o = o_; const T *x = x_; T lane[LANES], m = -INFINITY, buf[TY_PART]; double sum = 0; int64_t i = 0; \
    for (int j = 0; j < LANES; j++) lane[j] = -INFINITY; \
    for (; i + LANES <= n; i += LANES) for (int j = 0; j < LANES; j++) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j]; \
    for (; i < n; i++) lane[0] = x[i] > lane[0] ? x[i] : lane[0]; \
    for (int j = 0; j < LANES; j++) m = lane[j] > m ? lane[j] : m;  /* a NaN shows in the sum */ \
    if (m == -INFINITY) m = 0;  /* all masked: exp gives 0, the quotient NaN, as PyTorch */ \
    for (i = 0; i < n; i += TY_PART) { \
      int64_t w = TY_MIN(TY_PART, n - i); const T *xs = x + i; T *b = lg ? buf : o + i; \
      for (int64_t j = 0; j < w; j++) b[j] = ty_exp_down_##X(xs[j] - m); \
      sum += total_##k(b, w); } \
    if (lg) { T l = log_##X((T)sum); for (i = 0; i < n; i++) o[i] = (x[i] - m) - l; } \
    else { T r = 1 / (T)sum; for (i = 0; i < n; i++) o[i] *= r; } } \
  static void softmax_backward_##k(void *o_, const void *g_, const void *y_, int64_t n, int lg) { \
    T *o = o_; const T *g = g_, *y = y_; double sum = 0; \
    if (lg) sum = total_##k(g, n); \
    else for (int64_t i = 0; i < n; i += TY_PART) sum += (double)dot_##k(g + i, y + i, TY_MIN(TY_PART, n - i)); \
    const T s = (T)sum; \
    if (lg) for (int64_t i = 0; i < n; i++) o[i] = g[i] - ty_exp_down_##X(y[i]) * s; \
    else for (int64_t i = 0; i < n; i++) o[i] = y[i] * (g[i] - s); } \
  static void moments_##k(const void *x_, int64_t n, double shift, double *s1, double *s2) { \
    const T *x = x_; T h = (T)shift; \
    for (int64_t i = 0; i < n;) { \
      T a[LANES] = {0}, b[LANES] = {0}; int64_t e = TY_MIN(n, i + 2048); \
      for (; i + LANES <= e; i += LANES) for (int j = 0; j < LANES; j++) { T d = x[i + j] - h; a[j] += d; b[j] += d * d; } \
      for (int j = 0; i < e; i++, j++) { T d = x[i] - h; a[j] += d; b[j] += d * d; } \
      SUM_LANES(*s1, a); SUM_LANES(*s2, b); } } \
  static void moments_columns_##k(const void *x_, int64_t rows, int64_t n, const void *h_, void *s1_, void *s2_) { \
    const T *x = x_, *h = h_; T *restrict s1 = s1_, *restrict s2 = s2_; \
    for (; rows > 0; rows--, x += n) for (int64_t i = 0; i < n; i++) { T d = x[i] - h[i]; s1[i] += d; s2[i] += d * d; } } \
  static void dots_##k(const void *g_, const void *x_, int64_t n, double shift, double *s1, double *s2) { \
    const T *g = g_, *x = x_; T h = (T)shift; \
    for (int64_t i = 0; i < n;) { \
      T a[LANES] = {0}, b[LANES] = {0}; int64_t e = TY_MIN(n, i + 2048); \
      for (; i + LANES <= e; i += LANES) for (int j = 0; j < LANES; j++) { a[j] += g[i + j]; b[j] += g[i + j] * (x[i + j] - h); } \
      for (int j = 0; i < e; i++, j++) { a[j] += g[i]; b[j] += g[i] * (x[i] - h); } \
      SUM_LANES(*s1, a); SUM_LANES(*s2, b); } } \
  static void dots_columns_##k(const void *g_, const void *x_, int64_t rows, int64_t n, const void *h_, void *s1_, void *s2_) { \
    const T *g = g_, *x = x_, *h = h_; T *restrict s1 = s1_, *restrict s2 = s2_; \
    for (; rows > 0; rows--, g += n, x += n) for (int64_t i = 0; i < n; i++) { s1[i] += g[i]; s2[i] += g[i] * (x[i] - h[i]); } } \
  static void affine_##k(void *o_, const void *x_, int64_t n, double a_, double b_) { \
    T *o = o_; const T *x = x_; T a = (T)a_, b = (T)b_; for (int64_t i = 0; i < n; i++) o[i] = a * x[i] + b; } \
  static void affine_times_##k(void *o_, const void *x_, const void *y_, int64_t n, double a_, double b_) { \
    T *o = o_; const T *x = x_, *y = y_; T a = (T)a_, b = (T)b_; for (int64_t i = 0; i < n; i++) o[i] = (a * x[i] + b) * y[i]; } \
  static double exp_sum_##k(void *o_, const void *x_, int64_t n, double a_, double shift) { \
    T *o = o_; const T *x = x_; T a = (T)a_, h = (T)shift; double sum = 0; \
    if (n <= LANES) {                      /* the same sum, without a way through memory */ \
      T e[LANES]; \
      for (int j = 0; j < LANES; j++) e[j] = j < n ? ty_exp_down_##X(a * x[j] - h) : 0; \
      for (int j = 0; j < LANES; j++) if (j < n) o[j] = e[j]; \
      SUM_LANES(sum, e); \
      return (double)(T)sum; } \
    for (int64_t i = 0; i < n; i += 256) { \
      const int64_t w = TY_MIN(256, n - i); \
      for (int64_t j = i; j < i + w; j++) o[j] = ty_exp_down_##X(a * x[j] - h); \
      sum += (double)sum_##k(o + i, w); } \
    return sum; } \
  static void centered_##k(void *o_, const void *x_, int64_t n, double m_, double a_, double b_) { \
    T *o = o_; const T *x = x_; T m = (T)m_, a = (T)a_, b = (T)b_; for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m) * a + b; } \
  static void centered_columns_##k(void *o_, const void *x_, int64_t rows, int64_t n, const void *m_, const void *a_, const void *b_) { \
    T *restrict o = o_; const T *x = x_, *m = m_, *a = a_, *b = b_; \
    for (; rows > 0; rows--, o += n, x += n) for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m[i]) * a[i] + b[i]; } \
  static void affine2_##k(void *o_, const void *g_, const void *x_, int64_t n, double a_, double b_, double c_) { \
    T *o = o_; const T *g = g_, *x = x_; T a = (T)a_, b = (T)b_, c = (T)c_; \
    for (int64_t i = 0; i < n; i++) o[i] = a * g[i] + b * x[i] + c; } \
  static void affine2_columns_##k(void *o_, const void *g_, const void *x_, int64_t rows, int64_t n, const void *a_, \
                                  const void *b_, const void *c_) { \
    T *restrict o = o_; const T *g = g_, *x = x_, *a = a_, *b = b_, *c = c_; \
    for (; rows > 0; rows--, o += n, g += n, x += n) for (int64_t i = 0; i < n; i++) o[i] = a[i] * g[i] + b[i] * x[i] + c[i]; } \
  static void layer_norm_##k(void *o_, const void *x_, const void *w_, const void *b_, int64_t n, double mean, double rstd) { \
    T *o = o_; const T *x = x_, *w = w_, *b = b_; T m = (T)mean, r = (T)rstd; \
    if (w && b) for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m) * r * w[i] + b[i]; \
    else if (w) for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m) * r * w[i]; \
    else if (b) for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m) * r + b[i]; \
    else for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m) * r; } \
  static void rms_norm_##k(void *o_, const void *x_, const void *w_, int64_t n, double rstd) { \
    T *o = o_; const T *x = x_, *w = w_; T r = (T)rstd; \
    if (w) for (int64_t i = 0; i < n; i++) o[i] = x[i] * r * w[i]; \
    else for (int64_t i = 0; i < n; i++) o[i] = x[i] * r; } \
  static void rms_norm_backward_##k(void *dx_, void *dw_, const void *g_, const void *x_, const void *w_, int64_t n, double rstd) { \
    T *dx = dx_, *dw = dw_; const T *g = g_, *x = x_, *w = w_; T r = (T)rstd, gw[256]; double s = 0; \
    for (int64_t i = 0; i < n; i += 256) { \
      int64_t e = TY_MIN(256, n - i); const T *gs = g + i, *xs = x + i; T *dws = dw + i; \
      for (int64_t j = 0; j < e; j++) dws[j] += gs[j] * xs[j] * r; \
      for (int64_t j = 0; j < e; j++) gw[j] = w ? gs[j] * w[i + j] : gs[j]; \
      s += (double)dot_##k(gw, xs, e); } \
    T m = (T)(s / (double)n) * r * r; \
    if (w) for (int64_t i = 0; i < n; i++) dx[i] = r * (g[i] * w[i] - x[i] * m); \
    else for (int64_t i = 0; i < n; i++) dx[i] = r * (g[i] - x[i] * m); } \
  static void layer_norm_backward_##k(void *dx_, void *dw_, void *db_, const void *g_, const void *x_, const void *w_, \
                                      int64_t n, double mean, double rstd) { \
    T *dx = dx_, *dw = dw_, *db = db_; const T *g = g_, *x = x_, *w = w_; T m = (T)mean, r = (T)rstd; \
    T gw[256], h[256]; double sa = 0, sb = 0; \
    for (int64_t i = 0; i < n; i += 256) { \
      int64_t e = TY_MIN(256, n - i); const T *gs = g + i, *xs = x + i; T *dws = dw + i, *dbs = db + i; \
      for (int64_t j = 0; j < e; j++) h[j] = (xs[j] - m) * r; \
      for (int64_t j = 0; j < e; j++) { dws[j] += gs[j] * h[j]; dbs[j] += gs[j]; } \
      for (int64_t j = 0; j < e; j++) gw[j] = w ? gs[j] * w[i + j] : gs[j]; \
      sa += (double)sum_##k(gw, e); sb += (double)dot_##k(gw, h, e); } \
    T ma = (T)(sa / (double)n), mb = (T)(sb / (double)n); \
    if (w) for (int64_t i = 0; i < n; i++) dx[i] = r * (g[i] * w[i] - ma - (x[i] - m) * r * mb); \
    else for (int64_t i = 0; i < n; i++) dx[i] = r * (g[i] - ma - (x[i] - m) * r * mb); }
FAMILY(0, float, f32)
FAMILY(1, double, f64)

/* ---- optimizers' steps: a loop for each rule and the states that it has (optim_formulas.h) ---- */

#define STEP(T, X, op, has) \
  case 8 * (op) + (has): \
    for (int64_t i = 0; i < n; i++) { \
      T v[3] = {(has) & 1 ? a[i] : 0, (has) & 2 ? b[i] : 0, (has) & 4 ? c[i] : 0}; \
      p[i] = ty_step_##X(op, has, &r, g[i], p[i], v); \
      if ((has) & 1) a[i] = v[0]; \
      if ((has) & 2) b[i] = v[1]; \
      if ((has) & 4) c[i] = v[2]; } \
    break;
#define STEPS(k, T, X) \
  static void step_##k(int op, void *const *lists, int64_t n, const ty_step_rates *rates) { \
    T *p = lists[0], *a = lists[2], *b = lists[3], *c = lists[4]; const T *g = lists[1]; const ty_step_rates r = *rates; \
    switch (8 * op + (a ? 1 : 0) + (b ? 2 : 0) + (c ? 4 : 0)) { \
      STEP(T, X, TY_OP_sgd_step, 0) STEP(T, X, TY_OP_sgd_step, 1) \
      STEP(T, X, TY_OP_rmsprop_step, 1) STEP(T, X, TY_OP_rmsprop_step, 3) \
      STEP(T, X, TY_OP_rmsprop_step, 5) STEP(T, X, TY_OP_rmsprop_step, 7) \
      STEP(T, X, TY_OP_adagrad_step, 1) STEP(T, X, TY_OP_adadelta_step, 3) \
      STEP(T, X, TY_OP_adamw_step, 3) STEP(T, X, TY_OP_adamw_step, 7) \
      STEP(T, X, TY_OP_nadam_step, 3) STEP(T, X, TY_OP_radam_step, 3) STEP(T, X, TY_OP_adamax_step, 3) } }
STEPS(0, float, f32)
STEPS(1, double, f64)

/* ---- random numbers ---- */

static void keep(float *o, const uint32_t *r, double drop, int64_t n) {
  const uint32_t least = ty_least_kept(drop);
  for (int64_t i = 0; i < n; i++) o[i] = r[i] >> 8 >= least ? 1.0f : 0.0f;
}
static void philox(uint32_t *out, uint64_t seed, uint64_t block, int64_t blocks) {
  for (int64_t i = 0; i < blocks; i++) ty_philox(seed, block + (uint64_t)i, out + 4 * i);
}

/* Pairs of words become pairs of normal numbers; n is even. By columns, so that the compiler takes several at once. */
static void normal(float *restrict out, const uint32_t *restrict words, int64_t n) {
  float a[64], b[64];
  for (int64_t at = 0; at < n; at += 128) {
    const int m = (int)TY_MIN(64, (n - at) / 2);
    for (int i = 0; i < m; i++) ty_normal2(words[at + 2 * i], words[at + 2 * i + 1], &a[i], &b[i]);
    for (int i = 0; i < m; i++) { out[at + 2 * i] = a[i]; out[at + 2 * i + 1] = b[i]; }
  }
}

/* ---- recurrent layers: n units at one step; b: y's bias; c: the cell, changed; s: where to leave what backward needs ---- */

#define RECURRENT(k, T, S) \
  static void rnn_##k(T *restrict o, const T *restrict x, const T *restrict y, const T *restrict b, int64_t n, int relu) { \
    if (relu) for (int64_t i = 0; i < n; i++) { const T v = x[i] + (y[i] + b[i]); o[i] = v < 0 ? 0 : v; } \
    else for (int64_t i = 0; i < n; i++) o[i] = tanh_##S(x[i] + (y[i] + b[i])); } \
  static void gru_##k(T *restrict o, T *restrict s, const T *restrict x, const T *restrict y, const T *restrict b, \
                      const T *restrict h, int64_t n) { \
    for (int64_t i = 0; i < n; i++) { \
      const T xs[3] = {x[i], x[n + i], x[2 * n + i]}, ys[3] = {y[i] + b[i], y[n + i] + b[n + i], y[2 * n + i] + b[2 * n + i]}; \
      T v[4]; \
      o[i] = ty_gru_##S(xs, ys, h[i], v); \
      s[i] = v[0]; s[n + i] = v[1]; s[2 * n + i] = v[2]; s[3 * n + i] = v[3]; } } \
  static void lstm_##k(T *restrict o, T *restrict c, T *restrict s, const T *restrict x, const T *restrict y, \
                       const T *restrict b, int64_t n) { \
    for (int64_t i = 0; i < n; i++) { \
      const T xs[4] = {x[i], x[n + i], x[2 * n + i], x[3 * n + i]}, \
              ys[4] = {y[i] + b[i], y[n + i] + b[n + i], y[2 * n + i] + b[2 * n + i], y[3 * n + i] + b[3 * n + i]}; \
      T v[5]; \
      o[i] = ty_lstm_##S(xs, ys, c[i], v); \
      s[i] = v[0]; s[n + i] = v[1]; s[2 * n + i] = v[2]; s[3 * n + i] = v[3]; s[4 * n + i] = v[4]; c[i] = v[4]; } } \
  static void recurrent_##k(int kind, const ty_cell *a, int64_t n) { \
    if (kind == TY_LSTM) lstm_##k(a->o, a->c, a->s, a->x, a->y, a->b, n); \
    else if (kind == TY_GRU) gru_##k(a->o, a->s, a->x, a->y, a->b, a->h, n); \
    else rnn_##k(a->o, a->x, a->y, a->b, n, kind == TY_RNN_RELU); } \
  static void rnn_back_##k(T *restrict dh, T *restrict dx, const T *restrict g, const T *restrict o, int64_t n, int relu) { \
    if (relu) for (int64_t i = 0; i < n; i++) { dx[i] = o[i] > 0 ? dh[i] + g[i] : 0; dh[i] = 0; } \
    else for (int64_t i = 0; i < n; i++) { dx[i] = (dh[i] + g[i]) * (1 - o[i] * o[i]); dh[i] = 0; } } \
  static void gru_back_##k(T *restrict dh, T *restrict dx, T *restrict dy, const T *restrict g, const T *restrict s, \
                           const T *restrict h, int64_t n) { \
    for (int64_t i = 0; i < n; i++) { \
      const T v[4] = {s[i], s[n + i], s[2 * n + i], s[3 * n + i]}; \
      T d = dh[i] + g[i], dxs[3], dys[3]; \
      ty_gru_back_##S(v, h[i], &d, dxs, dys); \
      dx[i] = dxs[0]; dx[n + i] = dxs[1]; dx[2 * n + i] = dxs[2]; \
      dy[i] = dys[0]; dy[n + i] = dys[1]; dy[2 * n + i] = dys[2]; \
      dh[i] = d; } } \
  static void lstm_back_##k(T *restrict dh, T *restrict dc, T *restrict dx, const T *restrict g, const T *restrict s, \
                            const T *restrict c, int64_t n) { \
    for (int64_t i = 0; i < n; i++) { \
      const T v[5] = {s[i], s[n + i], s[2 * n + i], s[3 * n + i], s[4 * n + i]}; \
      T d = dh[i] + g[i], e = dc[i], ds[4]; \
      ty_lstm_back_##S(v, c[i], &d, &e, ds); \
      dx[i] = ds[0]; dx[n + i] = ds[1]; dx[2 * n + i] = ds[2]; dx[3 * n + i] = ds[3]; dh[i] = d; dc[i] = e; } } \
  static void recurrent_backward_##k(int kind, const ty_cell_back *a, int64_t n) { \
    if (kind == TY_LSTM) lstm_back_##k(a->dh, a->dc, a->dx, a->g, a->s, a->c, n); \
    else if (kind == TY_GRU) gru_back_##k(a->dh, a->dx, a->dy, a->g, a->s, a->h, n); \
    else rnn_back_##k(a->dh, a->dx, a->g, a->o, n, kind == TY_RNN_RELU); }
RECURRENT(0, float, f32)
RECURRENT(1, double, f64)

/* ---- the table ---- */

#define ROW_FLOAT(name) [TY_OP_##name] = {point_##name##_f32, point_##name##_f64, NULL},
#define ROW_SAME(name) [TY_OP_##name] = {point_##name##_f32, point_##name##_f64, point_##name##_i64},
#define ROW_WHOLE(name) [TY_OP_##name] = {NULL, NULL, point_##name##_i64},
#define ROW_BOOL ROW_SAME
#define ROW_FIRST ROW_SAME
#define ROW_WHERE ROW_SAME
#define BY_TYPE(f, name) [TY_OP_##name] = {f##_##name##_f32, f##_##name##_f64, f##_##name##_i64},
#define BY_DTYPE(f) {[TY_F32] = {f##_f32_0, f##_f32_1, f##_f32_2}, [TY_F64] = {f##_f64_0, f##_f64_1, f##_f64_2}, \
  [TY_F16] = {f##_f16_0, f##_f16_1, f##_f16_2}, [TY_BF16] = {f##_bf16_0, f##_bf16_1, f##_bf16_2}, \
  [TY_I32] = {f##_i32_0, f##_i32_1, f##_i32_2}, [TY_I64] = {f##_i64_0, f##_i64_1, f##_i64_2}, \
  [TY_U8] = {f##_u8_0, f##_u8_1, f##_u8_2}, [TY_BOOL] = {f##_logical_0, f##_logical_1, f##_logical_2}}
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
extern const ty_pool_loop PASTE(ty_pool_loops_, TY_ISA)[4][2];
extern const ty_column_loops PASTE(ty_column_loops_, TY_ISA);
extern const ty_sample_loops PASTE(ty_sample_loops_, TY_ISA);
extern const ty_depthwise_loops PASTE(ty_depthwise_loops_, TY_ISA);
extern const ty_fourier_loops PASTE(ty_fourier_loops_, TY_ISA);
extern const ty_distance_loops PASTE(ty_distance_loops_, TY_ISA);
extern const ty_loops PASTE(ty_loops_, TY_ISA);
const ty_loops PASTE(ty_loops_, TY_ISA) = {
  .isa = TEXT(TY_ISA),
  .pointwise = {
#define POINTWISE(n, name, sg, dt, ac, dm, ex, dc) ROW_##dt(name)
#include "ops.def"
  },
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
  .softmax = {softmax_0, softmax_1},
  .softmax_backward = {softmax_backward_0, softmax_backward_1},
  .row_moments = {row_moments_0, row_moments_1},
  .moments = {moments_0, moments_1},
  .moments_columns = {moments_columns_0, moments_columns_1},
  .dots = {dots_0, dots_1},
  .dots_columns = {dots_columns_0, dots_columns_1},
  .affine = {affine_0, affine_1},
  .affine_times = {affine_times_0, affine_times_1},
  .exp_sum = {exp_sum_0, exp_sum_1},
  .centered = {centered_0, centered_1},
  .centered_columns = {centered_columns_0, centered_columns_1},
  .affine2 = {affine2_0, affine2_1},
  .affine2_columns = {affine2_columns_0, affine2_columns_1},
  .layer_norm = {layer_norm_0, layer_norm_1},
  .layer_norm_backward = {layer_norm_backward_0, layer_norm_backward_1},
  .rms_norm = {rms_norm_0, rms_norm_1},
  .rms_norm_backward = {rms_norm_backward_0, rms_norm_backward_1},
  .step = {step_0, step_1},
  .transpose = {transpose_4, transpose_8},
  .recurrent = {recurrent_0, recurrent_1},
  .recurrent_backward = {recurrent_backward_0, recurrent_backward_1},
  .philox = philox,
  .logic = {logic_of_bits, logic_of_bools},
  .repeat = {repeat_4, repeat_8},
  .normal = normal,
  .keep = keep,
  .pool = PASTE(ty_pool_loops_, TY_ISA),
  .columns = &PASTE(ty_column_loops_, TY_ISA),
  .sample = &PASTE(ty_sample_loops_, TY_ISA),
  .distance = &PASTE(ty_distance_loops_, TY_ISA),
  .depthwise = &PASTE(ty_depthwise_loops_, TY_ISA),
  .fourier = &PASTE(ty_fourier_loops_, TY_ISA),
};
