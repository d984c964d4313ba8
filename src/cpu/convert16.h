/* float16 as float32 and back by the processor's own instructions, for instruction sets that have them; part of loops.c. They round as
 * math.h's conversions do, in half the time; only a NaN's bits may differ. */
#ifdef __F16C__
#include <immintrin.h>
#include "math.h"

static void load_f16_0(void *d_, const void *s_, int64_t st, int64_t n) {
  float *d = d_;
  const uint16_t *s = s_;
  int64_t i = 0;
#ifdef __AVX512F__
  if (st == 1) for (; i + 16 <= n; i += 16) _mm512_storeu_ps(d + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(s + i))));
#endif
  if (st == 1) for (; i + 8 <= n; i += 8) _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(s + i))));
  for (; i < n; i++) d[i] = ty_f16_to_f32(s[i * st]);
}
static void store_f16_0(void *d_, int64_t st, const void *s_, int64_t n) {
  uint16_t *d = d_;
  const float *s = s_;
  int64_t i = 0;
#ifdef __AVX512F__
  for (; st == 1 && i + 16 <= n; i += 16)
    _mm256_storeu_si256((void *)(d + i), _mm512_cvtps_ph(_mm512_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; st == 1 && i + 8 <= n; i += 8)
    _mm_storeu_si128((void *)(d + i), _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; i++) d[i * st] = ty_f32_to_f16(s[i]);
}
#endif
