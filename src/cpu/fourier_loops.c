/* The passes of Fourier transforms; built once for each instruction set, as loops.c is.
 *
 * Idea: real and imaginary parts lie apart; in each, the same element of several transforms is side by side, so that a vector holds one
 * element of each, or neighbours that a pass treats alike. Only the forward sign is here: the other one swaps real and imaginary parts.
 * A pass of factor r: y[q + s (r p + j)] = w^(p j) times sum over k of x[q + s (p + k m)] e^(-2 pi i j k / r); p < m, q < s. */
#include <string.h>
#include "cpu.h"
#include "exchange.h"
#include "fourier.h"
#include "typed.h"

/* No other backend has to give these sums to the bit: multiplication and addition may be fused. */
#pragma GCC optimize("fp-contract=fast")

#if defined __AVX512F__
#define WIDTH 64
#elif defined __AVX__
#define WIDTH 32
#else
#define WIDTH 16
#endif
typedef float wide_float __attribute__((vector_size(WIDTH), aligned(4), may_alias));
typedef double wide_double __attribute__((vector_size(WIDTH), aligned(8), may_alias));
typedef float eight_float __attribute__((vector_size(32), aligned(4), may_alias));
typedef double eight_double __attribute__((vector_size(64), aligned(8), may_alias));
typedef float four_float __attribute__((vector_size(16), aligned(4), may_alias));
typedef double four_double __attribute__((vector_size(32), aligned(8), may_alias));

#define MOST TY_FOURIER_BUILT
/* cos and sin of 2 pi k / r */
static const double circle[MOST + 1][MOST][2] = {
  [3] = {{1, 0}, {-0.49999999999999978, 0.86602540378443871}, {-0.50000000000000044, -0.86602540378443837}},
  [5] = {{1, 0}, {0.30901699437494745, 0.95105651629515353}, {-0.80901699437494734, 0.58778525229247325},
    {-0.80901699437494756, -0.58778525229247303}, {0.30901699437494723, -0.95105651629515364}},
  [7] = {{1, 0}, {0.62348980185873359, 0.7818314824680298}, {-0.22252093395631434, 0.97492791218182362},
    {-0.90096886790241903, 0.43388373911755823}, {-0.90096886790241915, -0.43388373911755801},
    {-0.22252093395631459, -0.97492791218182362}, {0.62348980185873337, -0.78183148246802991}},
  [11] = {{1, 0}, {0.84125353283118121, 0.54064081745559756}, {0.41541501300188644, 0.90963199535451833},
    {-0.142314838273285, 0.9898214418809328}, {-0.65486073394528499, 0.75574957435425827}, {-0.95949297361449737, 0.28173255684142967},
    {-0.95949297361449748, -0.28173255684142939}, {-0.65486073394528521, -0.75574957435425816},
    {-0.14231483827328523, -0.98982144188093268}, {0.41541501300188605, -0.90963199535451855},
    {0.84125353283118121, -0.54064081745559744}},
  [13] = {{1, 0}, {0.88545602565320991, 0.46472317204376851}, {0.56806474673115592, 0.82298386589365635},
    {0.12053668025532301, 0.99270887409805397}, {-0.35460488704253545, 0.93501624268541483}, {-0.74851074817110119, 0.66312265824079519},
    {-0.97094181742605201, 0.23931566428755768}, {-0.97094181742605212, -0.23931566428755743},
    {-0.7485107481711013, -0.66312265824079497}, {-0.3546048870425359, -0.93501624268541472}, {0.1205366802553232, -0.99270887409805397},
    {0.56806474673115481, -0.82298386589365702}, {0.88545602565321002, -0.4647231720437684}},
};

/* split and join by square blocks of K lines and K / 2 pairs, K elements in so many bytes; lines >= K, m >= K / 2. block: integers, as
 * exchange.h moves; reals: the same as T, anywhere */
#define UNROLLED _Pragma("GCC unroll 16")
#define BY_BLOCKS(bytes, T, t, bits, size, K) \
  typedef uint##bits##_t block_##bytes##_##t __attribute__((vector_size(bytes))); \
  typedef T reals_##bytes##_##t __attribute__((vector_size(bytes), aligned(size), may_alias)); \
  static void split_##bytes##_##t(T *re, T *im, const T *x, int64_t stride, int64_t lines, int64_t m, T scale) { \
    for (int64_t i = 0; i < lines; i = NEXT_BLOCK(i, lines, K)) for (int64_t j = 0; j < m; j = NEXT_BLOCK(j, m, K / 2)) { \
      block_##bytes##_##t a[K], b[K]; \
      UNROLLED for (int k = 0; k < K; k++) { \
        a[k] = (block_##bytes##_##t)(*(const reals_##bytes##_##t *)(x + (i + k) * stride + 2 * j) * scale); \
      } \
      EXCHANGE_##size##_##K(a, b) \
      UNROLLED for (int k = 0; k < K; k++) { \
        *(reals_##bytes##_##t *)((k % 2 ? im : re) + (j + k / 2) * lines + i) = (reals_##bytes##_##t)b[k]; \
      } \
    } \
  } \
  static void join_##bytes##_##t(T *o, int64_t stride, const T *re, const T *im, int64_t lines, int64_t m) { \
    for (int64_t i = 0; i < lines; i = NEXT_BLOCK(i, lines, K)) for (int64_t j = 0; j < m; j = NEXT_BLOCK(j, m, K / 2)) { \
      block_##bytes##_##t a[K], b[K]; \
      UNROLLED for (int k = 0; k < K; k++) { \
        a[k] = (block_##bytes##_##t)*(const reals_##bytes##_##t *)((k % 2 ? im : re) + (j + k / 2) * lines + i); \
      } \
      EXCHANGE_##size##_##K(a, b) \
      UNROLLED for (int k = 0; k < K; k++) *(reals_##bytes##_##t *)(o + (i + k) * stride + 2 * j) = (reals_##bytes##_##t)b[k]; \
    } \
  }
BY_BLOCKS(16, float, f32, 32, 4, 4)
BY_BLOCKS(16, double, f64, 64, 8, 2)
#if WIDTH >= 32
BY_BLOCKS(32, float, f32, 32, 4, 8)
BY_BLOCKS(32, double, f64, 64, 8, 4)
#endif
#if WIDTH >= 64
BY_BLOCKS(64, float, f32, 32, 4, 16)
BY_BLOCKS(64, double, f64, 64, 8, 8)
#define BLOCKS(X) X(64) X(32) X(16)
#elif WIDTH >= 32
#define BLOCKS(X) X(32) X(16)
#else
#define BLOCKS(X) X(16)
#endif

/* o = the transpose of b (8 x 8), in registers or, where vectors are narrower than a row, one by one */
#define TURNED(bytes, T, t, size) \
  TY_INLINE void turned_##t(T *o, eight_##T *b) { \
    block_##bytes##_##t x[8], y[8]; \
    memcpy(x, b, sizeof x); \
    EXCHANGE_##size##_8(x, y) \
    memcpy(o, y, sizeof y); \
  }
#define TURNED_SINGLY(T, t) \
  TY_INLINE void turned_##t(T *o, eight_##T *b) { for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) o[8 * i + j] = b[j][i]; }
#if WIDTH >= 32
TURNED(32, float, f32, 4)
#else
TURNED_SINGLY(float, f32)
#endif
#if WIDTH >= 64
TURNED(64, double, f64, 8)
#else
TURNED_SINGLY(double, f64)
#endif

#define LOOPS "fourier_loops.h"
#include "floats.h"

const ty_fourier_loops PASTE(ty_fourier_loops_, TY_ISA) = {
  .pass = {pass_f32, pass_f64}, .split = {split_f32, split_f64}, .join = {join_f32, join_f64},
  .split_rows = {split_rows_f32, split_rows_f64},
  .join_rows = {join_rows_f32, join_rows_f64}, .untangle = {untangle_f32, untangle_f64}, .tangle = {tangle_f32, tangle_f64},
  .products = {products_f32, products_f64},
};
