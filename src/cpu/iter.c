/* Walking several tensors of one (broadcast) shape together.
 *
 * Idea: order the dims by the first operand's strides, merge dims that are one run in every operand, then hand out runs along the
 * innermost dim; threads share the elements evenly. Where an operand lies across (a transposed matrix), short runs are handed out tile by
 * tile, so that the cache lines that one run loads serve the next runs too. Invariant: every element is handed out once. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"

int ty_threads_for(int64_t work) {
  const int64_t most = work / TY_GRAIN;
  return most < 2 || omp_in_parallel() ? 1 : (int)TY_MIN(most, ty_get_num_threads());
}

void ty_iter_init(ty_iter *it, const int64_t *shape, int ndim) {
  it->nop = 0;
  it->ndim = ndim;
  it->numel = it->each = 1;
  memcpy(it->shape, shape, sizeof(int64_t) * (size_t)ndim);
  for (int i = 0; i < ndim; i++) it->numel *= shape[i];
}

void ty_iter_add(ty_iter *it, void *data, int size, const int64_t *stride, const int64_t *shape, int ndim) {
  int k = it->nop++, lead = it->ndim - ndim;
  it->data[k] = data;
  it->size[k] = size;
  for (int i = 0; i < it->ndim; i++) it->stride[k][i] = i < lead || shape[i - lead] == 1 ? 0 : stride[i - lead];
}

/* The counter's strides are those of a contiguous tensor of one byte an element, in whatever order the dims are walked. */
int ty_iter_counter(ty_iter *it, const int64_t *shape) {
  static char nowhere;
  int64_t stride[TY_MAXDIM], n = 1;
  for (int d = it->ndim - 1; d >= 0; d--) { stride[d] = n; n *= shape[d]; }
  ty_iter_add(it, &nowhere, 1, stride, shape, it->ndim);
  return it->nop - 1;
}

int64_t ty_iter_count(const ty_iter *it, int op, const char *ptr) { return (intptr_t)ptr - (intptr_t)it->data[op]; }

void ty_iter_tensor(ty_iter *it, const ty_tensor *t) { ty_iter_add(it, ty_data(t), ty_itemsize(t), t->stride, t->shape, t->ndim); }

static bool before(const ty_iter *it, int a, int b) {  /* dim a belongs outside dim b */
  for (int k = 0; k < it->nop; k++) {
    int64_t x = llabs(it->stride[k][a]), y = llabs(it->stride[k][b]);
    if (x && y && x != y) return x > y;
  }
  return false;
}

static void swap_dims(ty_iter *it, int a, int b) {
  int64_t t = it->shape[a]; it->shape[a] = it->shape[b]; it->shape[b] = t;
  for (int k = 0; k < it->nop; k++) { t = it->stride[k][a]; it->stride[k][a] = it->stride[k][b]; it->stride[k][b] = t; }
}

#define SHORT 8            /* runs of fewer elements cost more to hand out than to compute */

void ty_iter_done(ty_iter *it) {
  int n = 0;
  for (int i = 0; i < it->ndim; i++)              /* dims of size 1 say nothing */
    if (it->shape[i] != 1) {
      if (n != i) swap_dims(it, n, i);
      n++;
    }
  it->ndim = n;
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && before(it, j, j - 1); j--) swap_dims(it, j, j - 1);
  int d = 0;
  for (int i = 1; i < n; i++) {
    bool merge = true;
    for (int k = 0; k < it->nop; k++) merge = merge && it->stride[k][d] == it->stride[k][i] * it->shape[i];
    if (merge) {
      it->shape[d] *= it->shape[i];
      for (int k = 0; k < it->nop; k++) it->stride[k][d] = it->stride[k][i];
    } else {
      d++;
      if (d != i) swap_dims(it, d, i);
    }
  }
  if (n) it->ndim = d + 1;
  if (d > 0 && it->shape[d] < SHORT && it->shape[d - 1] >= 2 * SHORT) swap_dims(it, d, d - 1);     /* long runs, even if not contiguous */
  if (!n) { it->ndim = 1; it->shape[0] = 1; for (int k = 0; k < it->nop; k++) it->stride[k][0] = 0; }
}

static void each(const ty_iter *it, int64_t lo, int64_t hi, ty_run run, void *arg) {
  int64_t at[TY_MAXDIM], inner = it->shape[it->ndim - 1], stride[TY_ITER_MAX], rest = lo;
  char *ptr[TY_ITER_MAX];
  int last = it->ndim - 1;
  for (int k = 0; k < it->nop; k++) { ptr[k] = it->data[k]; stride[k] = it->stride[k][last]; }
  for (int i = last; i >= 0; i--) {
    at[i] = rest % it->shape[i];
    rest /= it->shape[i];
    for (int k = 0; k < it->nop; k++) ptr[k] += at[i] * it->stride[k][i] * it->size[k];
  }
  while (lo < hi) {
    int64_t n = TY_MIN(inner - at[last], hi - lo);
    run(arg, ptr, stride, n);
    lo += n;
    if (lo >= hi) break;
    for (int k = 0; k < it->nop; k++) ptr[k] -= at[last] * stride[k] * it->size[k];
    at[last] = 0;
    for (int i = last - 1; i >= 0; i--) {          /* carry */
      bool wrap = ++at[i] == it->shape[i];
      for (int k = 0; k < it->nop; k++) ptr[k] += (wrap ? 1 - it->shape[i] : 1) * it->stride[k][i] * it->size[k];
      if (!wrap) break;
      at[i] = 0;
    }
  }
}

#define TILE 64            /* elements along each side of a tile */
#define LONG 1024          /* a strided run of so many elements exceeds what caches and TLB hold until the next run */
#define LINE 64            /* bytes of a cache line */

/* A dim, not the innermost, along which some operand's cache lines lie; -1: none. */
static int across(const ty_iter *it) {
  int last = it->ndim - 1;
  if (it->shape[last] < LONG) return -1;
  for (int k = 0; k < it->nop; k++) {
    if (llabs(it->stride[k][last]) * it->size[k] < LINE) continue;
    for (int d = 0; d < last; d++)
      if (it->stride[k][d] && llabs(it->stride[k][d]) * it->size[k] < LINE && it->shape[d] >= 8) return d;
  }
  return -1;
}

/* lo and hi count tiles. */
static void each_tile(const ty_iter *it, int d, int64_t lo, int64_t hi, ty_tile tile, void *arg) {
  int last = it->ndim - 1;
  int64_t cols = (it->shape[last] + TILE - 1) / TILE, rows = (it->shape[d] + TILE - 1) / TILE, stride[TY_ITER_MAX], step[TY_ITER_MAX];
  char *ptr[TY_ITER_MAX];
  for (int k = 0; k < it->nop; k++) { stride[k] = it->stride[k][last]; step[k] = it->stride[k][d]; }
  for (int64_t t = lo; t < hi; t++) {
    int64_t col = t % cols * TILE, row = t / cols % rows * TILE, rest = t / cols / rows;
    for (int k = 0; k < it->nop; k++) ptr[k] = it->data[k] + (col * stride[k] + row * step[k]) * it->size[k];
    for (int i = last - 1; i >= 0; i--) {
      if (i == d) continue;
      for (int k = 0; k < it->nop; k++) ptr[k] += rest % it->shape[i] * it->stride[k][i] * it->size[k];
      rest /= it->shape[i];
    }
    tile(arg, ptr, stride, step, TY_MIN(TILE, it->shape[last] - col), TY_MIN(TILE, it->shape[d] - row));
  }
}

void ty_iter_tiles(const ty_iter *it, int d, ty_tile tile, void *arg) {
  if (it->numel == 0) return;
  int64_t n = it->shape[it->ndim - 1], m = it->shape[d], all = it->numel / n / m * ((n + TILE - 1) / TILE) * ((m + TILE - 1) / TILE);
  int threads = ty_threads_for(it->numel);
  if (threads == 1) { each_tile(it, d, 0, all, tile, arg); return; }
  #pragma omp parallel num_threads(threads)
  {
    int64_t me = omp_get_thread_num(), of = omp_get_num_threads();
    each_tile(it, d, all * me / of, all * (me + 1) / of, tile, arg);
  }
}

typedef struct { const ty_iter *it; ty_run run; void *arg; } rows;

static void each_row(void *arg, char *const *from, const int64_t *stride, const int64_t *step, int64_t n, int64_t m) {
  const rows *r = arg;
  char *ptr[TY_ITER_MAX];
  memcpy(ptr, from, sizeof(char *) * (size_t)r->it->nop);
  for (int64_t i = 0; i < m; i++) {
    r->run(r->arg, ptr, stride, n);
    for (int k = 0; k < r->it->nop; k++) ptr[k] += step[k] * r->it->size[k];
  }
}

void ty_iter_each(const ty_iter *it, ty_run run, void *arg) {
  if (it->numel == 0) return;
  int d = across(it);
  if (d >= 0) { ty_iter_tiles(it, d, each_row, &(rows){it, run, arg}); return; }
  int threads = ty_threads_for(it->numel * it->each);
  if (threads == 1) { each(it, 0, it->numel, run, arg); return; }
  #pragma omp parallel num_threads(threads)
  {
    int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
    int64_t lo = it->numel * me / all, hi = it->numel * (me + 1) / all;
    if (me && it->each == 1) lo = lo / 16 * 16;    /* shares begin on cache lines */
    if (me + 1 < all && it->each == 1) hi = hi / 16 * 16;
    each(it, lo, hi, run, arg);
  }
}

void ty_each_line(ty_tensor *const *t, int nt, int dim, int64_t work, ty_line fn, void *arg) {
  const ty_tensor *x = t[0];
  int64_t lines = 1;
  for (int i = 0; i < x->ndim; i++)
    if (i != dim) lines *= x->shape[i];
  #pragma omp parallel for num_threads(ty_threads_for(work)) schedule(static)
  for (int64_t l = 0; l < lines; l++) {
    char *ptr[TY_ITER_MAX];
    int64_t rest = l;
    for (int k = 0; k < nt; k++) ptr[k] = ty_data(t[k]);
    for (int i = x->ndim - 1; i >= 0; i--) {
      if (i == dim) continue;
      int64_t at = rest % x->shape[i];
      rest /= x->shape[i];
      for (int k = 0; k < nt; k++) ptr[k] += at * t[k]->stride[i] * ty_itemsize(t[k]);
    }
    fn(arg, ptr, l);
  }
}
