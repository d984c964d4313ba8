/* Transposes: square blocks in registers (exchange.h); part of loops.c, so built for each instruction set. */
#include <stdint.h>
#include <string.h>
#include "exchange.h"

/* Elements are moved as integers of their size. What the same rows hold FURTHER bytes further on is prefetched, since the processor doesn't
 * follow so many rows: as measured, half the time of large copies. Not inlined: within larger loops gcc warns of accesses that can't
 * happen. */
#define FURTHER 256
#define TRANSPOSE(size, T, K) \
  typedef T block_##size __attribute__((vector_size(K * size))); \
  typedef T any_##size __attribute__((may_alias, aligned(size < 4 ? size : 4))); \
  static __attribute__((noinline, noclone)) \
  void transpose_##size(void *o_, int64_t os, const void *x_, int64_t xs, int64_t n, int64_t m) { \
    any_##size *o = o_; const any_##size *x = x_; \
    if (n < K || m < K) for (int64_t j = 0; j < m; j++) for (int64_t i = 0; i < n; i++) o[j * os + i] = x[i * xs + j]; \
    else for (int64_t i = 0; i < n; i = NEXT_BLOCK(i, n, K)) for (int64_t j = 0; j < m; j = NEXT_BLOCK(j, m, K)) { \
      block_##size a[K], b[K]; \
      for (int k = 0; k < K; k++) { \
        __builtin_prefetch((const char *)(x + (i + k) * xs + j) + FURTHER); \
        memcpy(&a[k], x + (i + k) * xs + j, sizeof a[k]); \
      } \
      EXCHANGE_##size##_##K(a, b) \
      for (int k = 0; k < K; k++) { \
        __builtin_prefetch((char *)(o + (j + k) * os + i) + FURTHER, 1); \
        memcpy(o + (j + k) * os + i, &b[k], sizeof b[k]); \
      } } }
TRANSPOSE(1, uint8_t, 16)
TRANSPOSE(2, uint16_t, 8)
#ifdef __AVX__
TRANSPOSE(4, uint32_t, 8)
TRANSPOSE(8, uint64_t, 4)
#else
TRANSPOSE(4, uint32_t, 4)
TRANSPOSE(8, uint64_t, 2)
#endif
TY_INLINE void transpose_words(size_t size, void *o, int64_t os, const void *x, int64_t xs, int64_t n, int64_t m) {     /* size: 4 or 8 */
  (size == 4 ? transpose_4 : transpose_8)(o, os, x, xs, n, m);
}
