/* Transposes of square blocks in registers: EXCHANGE_size_K(a, b) turns the K vectors a of K elements of so many bytes into the vectors b,
 * and may overwrite a. Wider ones than an instruction set has are slow there. */
#ifndef TY_EXCHANGE_H
#define TY_EXCHANGE_H

#define MIX(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#define NEXT_BLOCK(i, n, K) ((i) + (K) < (n) ? TY_MIN((i) + (K), (n) - (K)) : (n))     /* the last block may overlap */

/* Interleaves the elements of each vector and the one half a block further down; log2(K) such steps are a transpose. */
#define TURNS(a, b, K, LOW, HIGH) \
  for (int k = 0; k < K / 2; k++) { b[2 * k] = MIX(a[k], a[k + K / 2], LOW); b[2 * k + 1] = MIX(a[k], a[k + K / 2], HIGH); }
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define TURNS_16(a, b) TURNS(a, b, 16, LOW_16, HIGH_16) TURNS(b, a, 16, LOW_16, HIGH_16) TURNS(a, b, 16, LOW_16, HIGH_16) \
  TURNS(b, a, 16, LOW_16, HIGH_16) memcpy(b, a, sizeof a);
#define TURNS_8(a, b) TURNS(a, b, 8, LOW_8, HIGH_8) TURNS(b, a, 8, LOW_8, HIGH_8) TURNS(a, b, 8, LOW_8, HIGH_8)
#define EXCHANGE_1_16 TURNS_16
#define EXCHANGE_2_8 TURNS_8
#define EXCHANGE_4_16 TURNS_16
#define EXCHANGE_8_8 TURNS_8

/* AVX mixes within halves of 16 bytes: pairs of rows, pairs of pairs, then halves. */
#define EXCHANGE_4_8(a, b) \
  for (int k = 0; k < 8; k += 2) { \
    b[k] = MIX(a[k], a[k + 1], 0, 8, 1, 9, 4, 12, 5, 13); \
    b[k + 1] = MIX(a[k], a[k + 1], 2, 10, 3, 11, 6, 14, 7, 15); \
  } \
  for (int k = 0; k < 8; k++) a[k] = k % 2 ? MIX(b[k / 4 * 4 + k % 4 / 2], b[k / 4 * 4 + k % 4 / 2 + 2], 2, 3, 10, 11, 6, 7, 14, 15) \
                                           : MIX(b[k / 4 * 4 + k % 4 / 2], b[k / 4 * 4 + k % 4 / 2 + 2], 0, 1, 8, 9, 4, 5, 12, 13); \
  for (int k = 0; k < 4; k++) { \
    b[k] = MIX(a[k], a[k + 4], 0, 1, 2, 3, 8, 9, 10, 11); \
    b[k + 4] = MIX(a[k], a[k + 4], 4, 5, 6, 7, 12, 13, 14, 15); \
  }
#define EXCHANGE_8_4(a, b) \
  for (int k = 0; k < 4; k += 2) { b[k] = MIX(a[k], a[k + 1], 0, 4, 2, 6); b[k + 1] = MIX(a[k], a[k + 1], 1, 5, 3, 7); } \
  for (int k = 0; k < 4; k++) a[k] = k < 2 ? MIX(b[k], b[k + 2], 0, 1, 4, 5) : MIX(b[k - 2], b[k], 2, 3, 6, 7); \
  for (int k = 0; k < 4; k++) b[k] = a[k];

#define EXCHANGE_4_4(a, b) \
  for (int k = 0; k < 4; k += 2) { b[k] = MIX(a[k], a[k + 1], 0, 4, 1, 5); b[k + 1] = MIX(a[k], a[k + 1], 2, 6, 3, 7); } \
  for (int k = 0; k < 4; k++) a[k] = k % 2 ? MIX(b[k / 2], b[k / 2 + 2], 2, 3, 6, 7) : MIX(b[k / 2], b[k / 2 + 2], 0, 1, 4, 5); \
  for (int k = 0; k < 4; k++) b[k] = a[k];
#define EXCHANGE_8_2(a, b) b[0] = MIX(a[0], a[1], 0, 2); b[1] = MIX(a[0], a[1], 1, 3);
#endif
