/* Windows that step by s along the width, seen as windows that step by one: s neighbouring columns are one column of s times the channels.
 * Channels-last, rows of x are such columns once they begin with their padding; filters have taps of s columns.
 * Invariant: sums run over the same products, and zeros; so results differ by rounding alone. */
#include <string.h>
#include "cpu.h"

/* bfloat16 x (n,ch,h,width), channels-last, as rows of `columns` steps. */
void ty_steps_of_rows(const ty_steps *v, const uint16_t *x, uint16_t *to) {
  const int64_t row = v->columns * v->step * v->ch, first = TY_MIN(v->padding * v->ch, row),
    have = TY_MIN(v->width * v->ch, row - first);
  #pragma omp parallel for num_threads(ty_threads_for(v->rows * row)) schedule(static)
  for (int64_t i = 0; i < v->rows; i++) {
    memset(to + i * row, 0, 2 * (size_t)first);
    memcpy(to + i * row + first, x + i * v->width * v->ch, 2 * (size_t)have);
    memset(to + i * row + first + have, 0, 2 * (size_t)(row - first - have));
  }
}

/* Filters (o,ch,kh,kw) as (o, step * ch, kh, taps), both contiguous. */
void ty_steps_of_filters(const ty_steps *v, const uint16_t *w, uint16_t *to) {
  const int64_t s = v->step, lines = v->ch * v->kh;
  #pragma omp parallel for num_threads(ty_threads_for(v->o * s * lines * v->taps)) schedule(static)
  for (int64_t i = 0; i < v->o * s; i++) {
    const int64_t p = i % s;               /* of the columns of a step */
    const uint16_t *from = w + i / s * lines * v->kw + p;
    uint16_t *at = to + i * lines * v->taps;
    for (int64_t k = 0; k < v->taps; k++)
      if (k * s + p < v->kw) for (int64_t r = 0; r < lines; r++) at[r * v->taps + k] = from[r * v->kw + k * s];
      else for (int64_t r = 0; r < lines; r++) at[r * v->taps + k] = 0;
  }
}
