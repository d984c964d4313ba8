/* Sums of rows of a weight: each row of the result adds up the rows that a bag of ids names (embedding_bag).
 *
 * Idea: rows are added where they lie, in the loops' type, without being gathered first; 16-bit rows are converted some at a time.
 * Invariants: ids are checked before anything is written; a bag's rows are added in their order. */
#include <string.h>
#include "cpu.h"
#include "shape.h"

#define SOME 8                   /* 16-bit rows that are converted at once */

typedef struct {
  const char *weight, *scale;              /* scale NULL: 1 */
  const int64_t *id, *start;
  char *o;
  int64_t n, bags, width, padding;
  int size;
  ty_dtype dtype;
  ty_loop_type k;
} bags;

static const char *row_of(const bags *w, int64_t i) { return w->weight + (w->id[i] - 1) * w->width * w->size; }

/* Sums columns from .. from + width - 1 of bag b. */
static void add_up(const bags *w, const ty_loops *l, int64_t b, int64_t from, int64_t width) {
  const int64_t first = TY_MAX(w->start[b] - 1, 0), end = b + 1 < w->bags ? TY_MIN(w->start[b + 1] - 1, w->n) : w->n;
  char *o = w->o + (b * w->width + from) * w->size;
  if (w->dtype == ty_loop_dtype[w->k]) {
    l->add_rows[w->k](o, w->weight + from * w->size, w->width, w->id + first, TY_MAX(end - first, 0),
      w->scale ? w->scale + first * w->size : NULL, w->padding, width);
    return;
  }
  static const int64_t all[SOME + 1] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  float rows[(SOME + 1) * TY_BLOCK], sum[TY_BLOCK], scale[SOME + 1];      /* row 0: the sum so far */
  memset(sum, 0, sizeof sum);
  for (int64_t i = first; i < end;) {
    int m = 1;
    memcpy(rows, sum, sizeof(float) * (size_t)width);
    scale[0] = 1;
    for (; m <= SOME && i < end; i++) {
      if (w->id[i] == w->padding) continue;
      l->load[w->dtype][w->k](rows + m * width, row_of(w, i) + from * w->size, 1, width);
      if (w->scale) l->load[w->dtype][w->k](scale + m, w->scale + i * w->size, 1, 1);
      m++;
    }
    l->add_rows[w->k](sum, rows, width, all, m, w->scale ? scale : NULL, 0, width);
  }
  l->store[w->dtype][w->k](o, 1, sum, width);
}

static ty_status run(ty_call *c, bags *w) {
  const ty_loops *l = ty_cpu_loops();
  const int64_t rows = c->in[0].t->shape[0];
  for (int64_t i = 0; i < w->n; i++)
    if (w->id[i] < 1 || w->id[i] > rows) return ty_fail(c, "id %lld is out of range 1 to %lld", (long long)w->id[i], (long long)rows);
  #pragma omp parallel for num_threads(ty_threads_for(w->n * w->width)) schedule(static)
  for (int64_t b = 0; b < w->bags; b++)
    for (int64_t from = 0; from < w->width; from += TY_BLOCK) add_up(w, l, b, from, TY_MIN(w->width - from, TY_BLOCK));
  return TY_OK;
}

ty_status ty_cpu_bag(ty_call *c) {
  ty_tensor *t[4] = {NULL};                /* the operands, contiguous */
  ty_status s = ty_contiguous_operands(c, t);
  if (s == TY_OK) {
    const ty_tensor *weight = t[0];
    bags w = {.weight = ty_data(weight), .scale = t[3] ? ty_data(t[3]) : NULL, .id = ty_data(t[1]), .start = ty_data(t[2]),
      .o = ty_data(c->out[0]), .n = t[1]->shape[0], .bags = t[2]->shape[0], .width = weight->shape[1], .size = ty_itemsize(weight),
      .padding = c->at[TY_AT_bag_padding].i, .dtype = weight->dtype, .k = weight->dtype == TY_F64 ? TY_IN_F64 : TY_IN_F32};
    s = run(c, &w);
  }
  for (int i = 0; i < 4; i++) ty_release(t[i]);
  return s;
}
