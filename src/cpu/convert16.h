/* float16 to float32 and back by the processor's own instructions, where it has them; part of loops.c. They round as math.h's
 * conversions do, in half the time; only a NaN's bits may differ. LOAD_n and STORE_n convert n contiguous elements. */
#include "math.h"

#ifdef __F16C__
#include <immintrin.h>
#define HAS_CONVERT16
#define LOAD_8(d, s) _mm256_storeu_ps(d, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(s))))
#define STORE_8(d, s) _mm_storeu_si128((void *)(d), _mm256_cvtps_ph(_mm256_loadu_ps(s), _MM_FROUND_TO_NEAREST_INT))
#ifdef __AVX512F__
#define LOAD_16(d, s) _mm512_storeu_ps(d, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(s))))
#define STORE_16(d, s) _mm256_storeu_si256((void *)(d), _mm512_cvtps_ph(_mm512_loadu_ps(s), _MM_FROUND_TO_NEAREST_INT))
#endif
#elif defined __aarch64__ && defined __ARM_NEON
#include <arm_neon.h>
#define HAS_CONVERT16
#define LOAD_4(d, s) vst1q_f32(d, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(s))))
#define STORE_4(d, s) vst1_u16(d, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(s))))
#define LOAD_8(d, s) (LOAD_4(d, s), LOAD_4((d) + 4, (s) + 4))
#define STORE_8(d, s) (STORE_4(d, s), STORE_4((d) + 4, (s) + 4))
#endif

/* TY_LANES contiguous elements. */
#ifdef LOAD_16
#define LOAD_LANES(d, s) (LOAD_16(d, s), LOAD_16((d) + 16, (s) + 16))
#elif defined HAS_CONVERT16
#define LOAD_LANES(d, s) (LOAD_8(d, s), LOAD_8((d) + 8, (s) + 8), LOAD_8((d) + 16, (s) + 16), LOAD_8((d) + 24, (s) + 24))
#else
#define LOAD_LANES(d, s) for (int j_ = 0; j_ < TY_LANES; j_++) (d)[j_] = ty_f16_to_f32((s)[j_])
#endif

#ifdef HAS_CONVERT16
static void load_f16_0(void *d_, const void *s_, int64_t st, int64_t n) {
  float *d = d_;
  const uint16_t *s = s_;
  int64_t i = 0;
#ifdef LOAD_16
  for (; st == 1 && i + 16 <= n; i += 16) LOAD_16(d + i, s + i);
#endif
  for (; st == 1 && i + 8 <= n; i += 8) LOAD_8(d + i, s + i);
  for (; i < n; i++) d[i] = ty_f16_to_f32(s[i * st]);
}
static void store_f16_0(void *d_, int64_t st, const void *s_, int64_t n) {
  uint16_t *d = d_;
  const float *s = s_;
  int64_t i = 0;
#ifdef STORE_16
  for (; st == 1 && i + 16 <= n; i += 16) STORE_16(d + i, s + i);
#endif
  for (; st == 1 && i + 8 <= n; i += 8) STORE_8(d + i, s + i);
  for (; i < n; i++) d[i * st] = ty_f32_to_f16(s[i]);
}
#endif
