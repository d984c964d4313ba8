/* Small matrix products, for which BLAS takes as long to get ready as to compute; built once for each instruction set, as loops.c is.
 *
 * Idea: a tile of the result, up to MOST_ROWS rows by two vectors, stays in registers while all of a's columns pass. b is read in place
 * where its rows fill the vectors or a part of one can be read, else copied, two vectors wide. Invariant: every element is the sum in
 * order of k. */
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
#else
#define MOST_ROWS 6
#endif

/* take and give: the first n elements of a vector in memory. */
#ifdef __AVX512F__
#define PARTS true
#define MASK(n) ((1u << (n)) - 1)          /* constant where n is, and then no mask is used */
TY_INLINE __m512 take_f32(const float *p, int64_t n) { return n == 16 ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps((__mmask16)MASK(n), p); }
TY_INLINE __m512d take_f64(const double *p, int64_t n) { return n == 8 ? _mm512_loadu_pd(p) : _mm512_maskz_loadu_pd((__mmask8)MASK(n), p); }
TY_INLINE void give_f32(float *p, __m512 v, int64_t n) { _mm512_mask_storeu_ps(p, (__mmask16)MASK(n), v); }
TY_INLINE void give_f64(double *p, __m512d v, int64_t n) { _mm512_mask_storeu_pd(p, (__mmask8)MASK(n), v); }
#else
#define PARTS false
#endif
#define LOOPS "product_loops.h"
#include "floats.h"

const ty_product_loop PASTE(ty_product_loops_, TY_ISA)[2] = {product_f32, product_f64};
