/* Transposes: square blocks in registers, by exchanging halves of pairs of rows; part of loops.c, so built for each instruction set. */
#include <stdint.h>
#include <string.h>

#define MIX(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#define NEXT_BLOCK(i, n, K) ((i) + (K) < (n) ? TY_MIN((i) + (K), (n) - (K)) : (n))     /* the last block may overlap */
/* Elements are moved as integers of their size. What the same rows hold FURTHER bytes further on is prefetched, since the processor doesn't
 * follow so many rows: as measured, half the time of large copies. Not inlined: within larger loops gcc warns of accesses that can't
 * happen. */
#define FURTHER 256
#define TRANSPOSE(size, T, K, EXCHANGE) \
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
      EXCHANGE \
      for (int k = 0; k < K; k++) { \
        __builtin_prefetch((char *)(o + (j + k) * os + i) + FURTHER, 1); \
        memcpy(o + (j + k) * os + i, &b[k], sizeof b[k]); \
      } } }
/* Interleaves the elements of each row and the row half a block further down; log2(K) such steps are a transpose. */
#define TURNS(a, b, K, LOW, HIGH) \
  for (int k = 0; k < K / 2; k++) { b[2 * k] = MIX(a[k], a[k + K / 2], LOW); b[2 * k + 1] = MIX(a[k], a[k + K / 2], HIGH); }
#define LOW_2 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_2 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_1 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_1 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
TRANSPOSE(1, uint8_t, 16, TURNS(a, b, 16, LOW_1, HIGH_1) TURNS(b, a, 16, LOW_1, HIGH_1) TURNS(a, b, 16, LOW_1, HIGH_1)
  TURNS(b, a, 16, LOW_1, HIGH_1) memcpy(b, a, sizeof a);)
TRANSPOSE(2, uint16_t, 8, TURNS(a, b, 8, LOW_2, HIGH_2) TURNS(b, a, 8, LOW_2, HIGH_2) TURNS(a, b, 8, LOW_2, HIGH_2))
#ifdef __AVX__
TRANSPOSE(4, uint32_t, 8,
  for (int k = 0; k < 8; k += 2) {
    b[k] = MIX(a[k], a[k + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[k + 1] = MIX(a[k], a[k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int k = 0; k < 8; k++) a[k] = k % 2 ? MIX(b[k / 4 * 4 + k % 4 / 2], b[k / 4 * 4 + k % 4 / 2 + 2], 2, 3, 10, 11, 6, 7, 14, 15)
                                           : MIX(b[k / 4 * 4 + k % 4 / 2], b[k / 4 * 4 + k % 4 / 2 + 2], 0, 1, 8, 9, 4, 5, 12, 13);
  for (int k = 0; k < 4; k++) {
    b[k] = MIX(a[k], a[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    b[k + 4] = MIX(a[k], a[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  })
TRANSPOSE(8, uint64_t, 4,
  for (int k = 0; k < 4; k += 2) { b[k] = MIX(a[k], a[k + 1], 0, 4, 2, 6); b[k + 1] = MIX(a[k], a[k + 1], 1, 5, 3, 7); }
  for (int k = 0; k < 4; k++) a[k] = k < 2 ? MIX(b[k], b[k + 2], 0, 1, 4, 5) : MIX(b[k - 2], b[k], 2, 3, 6, 7);
  for (int k = 0; k < 4; k++) b[k] = a[k];)
#else
TRANSPOSE(4, uint32_t, 4,
  for (int k = 0; k < 4; k += 2) { b[k] = MIX(a[k], a[k + 1], 0, 4, 1, 5); b[k + 1] = MIX(a[k], a[k + 1], 2, 6, 3, 7); }
  for (int k = 0; k < 4; k++) a[k] = k % 2 ? MIX(b[k / 2], b[k / 2 + 2], 2, 3, 6, 7) : MIX(b[k / 2], b[k / 2 + 2], 0, 1, 4, 5);
  for (int k = 0; k < 4; k++) b[k] = a[k];)
TRANSPOSE(8, uint64_t, 2, b[0] = MIX(a[0], a[1], 0, 2); b[1] = MIX(a[0], a[1], 1, 3);)
#endif
TY_INLINE void transpose_words(size_t size, void *o, int64_t os, const void *x, int64_t xs, int64_t n, int64_t m) {     /* size: 4 or 8 */
  (size == 4 ? transpose_4 : transpose_8)(o, os, x, xs, n, m);
}
