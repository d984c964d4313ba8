/* The passes of Fourier transforms; built once for each instruction set, as loops.c is.
 *
 * Idea: real and imaginary parts lie apart, and of each the same element of several transforms side by side: a vector holds one element of
 * each, or neighbours that a pass treats alike. Only the forward sign is here: the other one swaps real and imaginary parts.
 * A pass of factor r: y[q + s (r p + j)] = w^(p j) times sum over k of x[q + s (p + k m)] e^(-2 pi i j k / r); p < m, q < s. */
#include <string.h>
#include "cpu.h"

/* Sums of products, which no other backend repeats to the bit: may be fused. */
#pragma GCC optimize("fp-contract=fast")

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#if defined __AVX512F__
#define WIDTH 64
#elif defined __AVX__
#define WIDTH 32
#else
#define WIDTH 16
#endif
typedef float wide_float __attribute__((vector_size(WIDTH), aligned(4), may_alias));
typedef double wide_double __attribute__((vector_size(WIDTH), aligned(8), may_alias));
typedef float four_float __attribute__((vector_size(16), aligned(4), may_alias));
typedef double four_double __attribute__((vector_size(32), aligned(8), may_alias));

#define MOST 13                  /* a pass's factor */
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

/* A pass of factor R over elements of V, T or a vector of it. */
#define PASS(V, T) \
  TY_INLINE void PASTE(pass_, V)(const int R, const T *xr, const T *xi, T *yr, T *yi, int64_t m, int64_t s, const T *w, int64_t step) { \
    for (int64_t p = 0; p < m; p++) { \
      T wr[MOST], wi[MOST]; \
      for (int j = 1; j < R; j++) { wr[j] = w[2 * p * j * step]; wi[j] = w[2 * p * j * step + 1]; } \
      for (int64_t q = 0; q < s; q += (int64_t)(sizeof(V) / sizeof(T))) { \
        V ar[MOST], ai[MOST], br[MOST], bi[MOST]; \
        for (int k = 0; k < R; k++) { \
          ar[k] = *(const V *)(xr + q + s * (p + k * m)); \
          ai[k] = *(const V *)(xi + q + s * (p + k * m)); } \
        if (R == 2) { \
          br[0] = ar[0] + ar[1]; bi[0] = ai[0] + ai[1]; \
          br[1] = ar[0] - ar[1]; bi[1] = ai[0] - ai[1]; \
        } else if (R == 4) { \
          const V er = ar[0] + ar[2], ei = ai[0] + ai[2], fr = ar[0] - ar[2], fi = ai[0] - ai[2]; \
          const V gr = ar[1] + ar[3], gi = ai[1] + ai[3], hr = ai[1] - ai[3], hi = ar[3] - ar[1];      /* h: times -i */ \
          br[0] = er + gr; bi[0] = ei + gi; \
          br[1] = fr + hr; bi[1] = fi + hi; \
          br[2] = er - gr; bi[2] = ei - gi; \
          br[3] = fr - hr; bi[3] = fi - hi; \
        } else {                                       /* odd: pairs of elements from both ends make pairs of sums */ \
          br[0] = ar[0]; bi[0] = ai[0]; \
          for (int k = 1; k <= R / 2; k++) { br[0] += ar[k] + ar[R - k]; bi[0] += ai[k] + ai[R - k]; } \
          for (int j = 1; j <= R / 2; j++) { \
            V cr = ar[0], ci = ai[0], dr = {0}, di = {0}; \
            for (int k = 1; k <= R / 2; k++) { \
              const T c = (T)circle[R][j * k % R][0], sn = (T)circle[R][j * k % R][1]; \
              cr += c * (ar[k] + ar[R - k]); ci += c * (ai[k] + ai[R - k]); \
              dr += sn * (ai[k] - ai[R - k]); di += sn * (ar[R - k] - ar[k]); } \
            br[j] = cr + dr; bi[j] = ci + di; \
            br[R - j] = cr - dr; bi[R - j] = ci - di; } } \
        *(V *)(yr + q + s * R * p) = br[0]; \
        *(V *)(yi + q + s * R * p) = bi[0]; \
        for (int j = 1; j < R; j++) { \
          *(V *)(yr + q + s * (R * p + j)) = br[j] * wr[j] - bi[j] * wi[j]; \
          *(V *)(yi + q + s * (R * p + j)) = br[j] * wi[j] + bi[j] * wr[j]; } } } }

#define FOURIER(n_, T) \
  PASS(T, T) PASS(four_##T, T) PASS(wide_##T, T) \
  TY_INLINE void by_width_##n_(const int R, const T *xr, const T *xi, T *yr, T *yi, int64_t m, int64_t s, const T *w, int64_t step) { \
    if (s % (int64_t)(WIDTH / sizeof(T)) == 0) PASTE(pass_wide_, T)(R, xr, xi, yr, yi, m, s, w, step); \
    else if (s % 4 == 0) PASTE(pass_four_, T)(R, xr, xi, yr, yi, m, s, w, step); \
    else PASTE(pass_, T)(R, xr, xi, yr, yi, m, s, w, step); } \
  static void pass_##n_(int radix, const void *xr, const void *xi, void *yr, void *yi, int64_t m, int64_t s, const void *w, \
                        int64_t step) { \
    switch (radix) { \
      case 2: by_width_##n_(2, xr, xi, yr, yi, m, s, w, step); break; \
      case 3: by_width_##n_(3, xr, xi, yr, yi, m, s, w, step); break; \
      case 4: by_width_##n_(4, xr, xi, yr, yi, m, s, w, step); break; \
      case 5: by_width_##n_(5, xr, xi, yr, yi, m, s, w, step); break; \
      case 7: by_width_##n_(7, xr, xi, yr, yi, m, s, w, step); break; \
      case 11: by_width_##n_(11, xr, xi, yr, yi, m, s, w, step); break; \
      default: by_width_##n_(13, xr, xi, yr, yi, m, s, w, step); } } \
  static void parts_##n_(void *restrict re_, void *restrict im_, const void *restrict pairs_, int64_t n) { \
    T *re = re_, *im = im_; const T *pairs = pairs_; \
    for (int64_t i = 0; i < n; i++) { re[i] = pairs[2 * i]; im[i] = pairs[2 * i + 1]; } } \
  static void pairs_##n_(void *restrict pairs_, const void *restrict re_, const void *restrict im_, int64_t n) { \
    const T *re = re_, *im = im_; T *pairs = pairs_; \
    for (int64_t i = 0; i < n; i++) { pairs[2 * i] = re[i]; pairs[2 * i + 1] = im[i]; } } \
  static void untangle_##n_(void *restrict pairs_, const void *re_, const void *im_, const void *w_, int64_t h, int64_t s, \
                            double between) { \
    const T *re = re_, *im = im_, *w = w_; T *pairs = pairs_; \
    for (int64_t k = 0; k <= h; k++) { \
      const T *ar = re + k % h * s, *ai = im + k % h * s, *br = re + (h - k) % h * s, *bi = im + (h - k) % h * s; \
      const T f = (T)(k == 0 || k == h ? 0.5 : 0.5 * between), c = k < h ? w[2 * k] : -1, d = k < h ? w[2 * k + 1] : 0; \
      for (int64_t q = 0; q < s; q++) { \
        const T er = ar[q] + br[q], ei = ai[q] - bi[q], ur = ai[q] + bi[q], ui = br[q] - ar[q];      /* u: times -i */ \
        pairs[2 * (k * s + q)] = f * (er + ur * c - ui * d); \
        pairs[2 * (k * s + q) + 1] = f * (ei + ur * d + ui * c); } } } \
  static void tangle_##n_(void *restrict re_, void *restrict im_, const void *restrict pairs_, const void *w_, int64_t h, int64_t s, \
                          double between) { \
    T *re = re_, *im = im_; const T *pairs = pairs_, *w = w_; \
    for (int64_t k = 0; k < h; k++) { \
      const T *a = pairs + 2 * k * s, *b = pairs + 2 * (h - k) * s; \
      const T f = k == 0 ? 1 : (T)between, g = k == 0 ? 0 : f, c = w[2 * k], d = -w[2 * k + 1]; \
      for (int64_t q = 0; q < s; q++) { \
        const T er = f * (a[2 * q] + b[2 * q]), ei = g * (a[2 * q + 1] - b[2 * q + 1]); \
        const T ur = f * (a[2 * q] - b[2 * q]), ui = g * (a[2 * q + 1] + b[2 * q + 1]); \
        re[k * s + q] = er - (ur * d + ui * c); \
        im[k * s + q] = ei + (ur * c - ui * d); } } }
FOURIER(0, float)
FOURIER(1, double)

const ty_fourier_loops PASTE(ty_fourier_loops_, TY_ISA) = {
  .pass = {pass_0, pass_1}, .parts = {parts_0, parts_1}, .pairs = {pairs_0, pairs_1}, .untangle = {untangle_0, untangle_1},
  .tangle = {tangle_0, tangle_1},
};
