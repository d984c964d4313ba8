/* Small matrix products, for which BLAS takes as long to get ready as to compute; built once for each instruction set, as loops.c is.
 *
 * Idea: a tile of the result, up to MOST_ROWS rows by two vectors, stays in registers while all of a's columns pass. b is read in place
 * where its rows fill the vectors or a part of one can be read, else copied, two vectors wide. Every element is the sum in order
 * of k.
 *
 * dot_products, of rows of a with rows of b, for few rows and a large b: vectors along k are summed, DOT_ROWS by DOT_COLUMNS results at a
 * time. b is read once, the next rows ahead, while as many columns of a as fit stay in the cache. */
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif
#include "cpu.h"
#include "typed.h"

/* No other backend has to give these sums to the bit: multiplication and addition may be fused. */
#pragma GCC optimize("fp-contract=fast")

/* 12 sums, 2 vectors of b and one of a: 16 registers have room for them; AVX-512 has 32 */
#ifdef __AVX512F__
#define MOST_ROWS 12
#define DOT_ROWS 6
#else
#define MOST_ROWS 6
#define DOT_ROWS 3
#endif
#define DOT_COLUMNS 4
#define CACHED (128 << 10)       /* bytes of a that dot products take at once */

/* take and give: the first n elements of a vector in memory. */
#ifdef __AVX512F__
#define PARTS true
#define MASK(n) ((1u << (n)) - 1)          /* constant where n is, and then no mask is used */
TY_INLINE __m512 take_f32(const float *p, int64_t n) { return n == 16 ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps((__mmask16)MASK(n), p); }
TY_INLINE __m512d take_f64(const double *p, int64_t n) { return n == 8 ? _mm512_loadu_pd(p) : _mm512_maskz_loadu_pd((__mmask8)MASK(n), p); }
TY_INLINE void give_f32(float *p, __m512 v, int64_t n) { _mm512_mask_storeu_ps(p, (__mmask16)MASK(n), v); }
TY_INLINE void give_f64(double *p, __m512d v, int64_t n) { _mm512_mask_storeu_pd(p, (__mmask8)MASK(n), v); }
/* the totals of four vectors: their elements are added two by two, in pairs of vectors */
TY_INLINE void four_totals_f32(float *o, const __m512 *v) {
  const __m512 x = _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1])),
    y = _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3])),
    z = _mm512_add_ps(_mm512_shuffle_ps(x, y, 0x44), _mm512_shuffle_ps(x, y, 0xEE));
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(z), _mm512_extractf32x8_ps(z, 1));
  _mm_storeu_ps(o, _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1)));
}
TY_INLINE void four_totals_f64(double *o, const __m512d *v) {
  for (int i = 0; i < 4; i += 2) {
    const __m512d x = _mm512_add_pd(_mm512_unpacklo_pd(v[i], v[i + 1]), _mm512_unpackhi_pd(v[i], v[i + 1]));
    const __m256d h = _mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd(x, 1));
    _mm_storeu_pd(o + i, _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1)));
  }
}
#else
#define PARTS false
#endif
#define LOOPS "product_loops.h"
#include "floats.h"

const ty_product_loop PASTE(ty_product_loops_, TY_ISA)[2] = {product_f32, product_f64};
const ty_product_loop PASTE(ty_dot_loops_, TY_ISA)[2] = {dot_products_f32, dot_products_f64};
