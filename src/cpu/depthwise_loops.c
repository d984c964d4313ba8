/* The loops of a depthwise convolution's weight gradient, float32; built once for each instruction set, as loops.c is.
 *
 * Idea: channels lie side by side, so that a vector holds LANES of them; the sums of several taps stay in registers along a row of the
 * result's gradient. Invariant: where the last vector would be short it starts earlier, so that some channels are computed twice. */
#include <string.h>
#include "cpu.h"
#include "typed.h"

/* No other backend has to give these sums to the bit: multiplication and addition may be fused. */
#pragma GCC optimize("fp-contract=fast")

#define LANES (TY_VECTOR / (int)sizeof(float))
#define MOST 9                   /* taps that are summed at once */
typedef float V __attribute__((vector_size(LANES * sizeof(float))));

TY_INLINE V load(const float *p) { V v; memcpy(&v, p, sizeof v); return v; }
TY_INLINE void store(float *p, V v) { memcpy(p, &v, sizeof v); }

/* Adds pixels lo .. hi - 1, for which all n taps read within the picture, for the vector of channels from ch on. */
TY_INLINE void add(const ty_depthwise *d, const ty_tap *tap, const int n, int64_t lo, int64_t hi, int64_t ch, float *sums) {
  V sum[MOST];
  for (int t = 0; t < n; t++) sum[t] = (V){0};
  for (int64_t p = lo; p < hi; p++) {
    const V g = load(d->g + p * d->c + ch);
    for (int t = 0; t < n; t++) sum[t] += g * load(d->x + tap[t].at + p * d->step + ch);
  }
  for (int t = 0; t < n; t++) {
    float *o = sums + tap[t].index * LANES;
    store(o, load(o) + sum[t]);
  }
}

static void of_vector(const ty_depthwise *d, int64_t ch, float *sums) {
  const int groups = (d->taps + MOST - 1) / MOST;
  for (int i = 0, t = 0; i < groups; i++) {
    const ty_tap *tap = d->tap + t;
    const int n = d->taps * (i + 1) / groups - t;
    int64_t lo = 0, hi = d->n;             /* pixels for which all n taps read within the picture; the ends are added tap by tap */
    t += n;
    for (int j = 0; j < n; j++) { lo = TY_MAX(lo, tap[j].lo); hi = TY_MIN(hi, tap[j].hi); }
    if (lo >= hi) lo = hi = d->n;
    switch (n) {
      case 9: add(d, tap, 9, lo, hi, ch, sums); break;
      case 8: add(d, tap, 8, lo, hi, ch, sums); break;
      case 7: add(d, tap, 7, lo, hi, ch, sums); break;
      case 6: add(d, tap, 6, lo, hi, ch, sums); break;
      case 5: add(d, tap, 5, lo, hi, ch, sums); break;
      case 4: add(d, tap, 4, lo, hi, ch, sums); break;
      default: for (int j = 0; j < n; j++) add(d, tap + j, 1, lo, hi, ch, sums);
    }
    for (int j = 0; j < n; j++) {
      add(d, tap + j, 1, tap[j].lo, TY_MIN(lo, tap[j].hi), ch, sums);
      add(d, tap + j, 1, TY_MAX(hi, tap[j].lo), tap[j].hi, ch, sums);
    }
  }
}

static void slopes(const ty_depthwise *d, int64_t vector, int64_t vectors, int64_t each, float *sums) {
  for (int64_t v = 0; v < vectors; v++) of_vector(d, TY_MIN((vector + v) * LANES, d->c - LANES), sums + v * each);
}

const ty_depthwise_loops PASTE(ty_depthwise_loops_, TY_ISA) = {.lanes = LANES, .slopes = slopes};
