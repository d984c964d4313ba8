/* Reductions.
 *
 * Idea: sort dims into kept and reduced ones. Where the dim innermost in memory is reduced, each result combines a row;
 * where it is kept, whole rows are combined element by element. Invariant: partial results are float64 (or int64) but
 * within a part of a row, at fixed borders, so that neither accuracy nor the bits depend on the number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"

#define LONG 192                 /* elements: rows from this length on are reduced one by one, shorter ones several at a time */

typedef struct { int n; int64_t shape[TY_MAXDIM], stride[TY_MAXDIM], total; } dims;

/* Inserts a dim; the outermost come first: dims of stride 0 (repeated memory), then larger strides. */
static void add_dim(dims *d, int64_t shape, int64_t stride) {
  int i = d->n++;
  for (; i > 0 && d->stride[i - 1] && (!stride || llabs(d->stride[i - 1]) < llabs(stride)); i--) {
    d->shape[i] = d->shape[i - 1];
    d->stride[i] = d->stride[i - 1];
  }
  d->shape[i] = shape;
  d->stride[i] = stride;
  d->total *= shape;
}

static void merge_dims(dims *d) {
  int m = 0;
  for (int i = 1; i < d->n; i++)
    if (d->stride[m] == d->stride[i] * d->shape[i]) { d->shape[m] *= d->shape[i]; d->stride[m] = d->stride[i]; }
    else { m++; d->shape[m] = d->shape[i]; d->stride[m] = d->stride[i]; }
  if (d->n) d->n = m + 1;
}

/* Offset in elements of position i in the first n dims. */
static int64_t offset_of(const dims *d, int n, int64_t i) {
  int64_t off = 0;
  for (int k = n - 1; k >= 0; k--) { off += i % d->shape[k] * d->stride[k]; i /= d->shape[k]; }
  return off;
}

typedef struct {
  int id, k, size, out_size;       /* sizes of elements, bytes */
  dims keep, red;
  int64_t work;                    /* elements read */
  const ty_loops *l;
  const char *x;
  char *o;
  void (*load)(void *, const void *, int64_t, int64_t);
  void (*store)(void *, int64_t, const void *, int64_t);
  bool direct;                     /* x is in the loops' own type */
  ty_dtype dtype, compute;                 /* of x, of the loops */
} reduction;

/* acc = combination of elements lo..hi of the reduced dims at x */
static void reduce_row(const reduction *r, const char *x, int64_t lo, int64_t hi, void *acc) {
  const int64_t most = TY_PART_OF(r->red.total);
  int64_t inner = r->red.n ? r->red.shape[r->red.n - 1] : 1, st = r->red.n ? r->red.stride[r->red.n - 1] : 1;
  double buf[TY_PART], part;
  r->l->init[r->id][r->k](acc, 1);
  while (lo < hi) {
    int64_t at = lo % inner, n = TY_MIN(inner - at, hi - lo);
    const char *p = x + (offset_of(&r->red, r->red.n - 1, lo / inner) + at * st) * r->size;
    bool straight = r->direct && st == 1;
    if (!straight || !ty_picks(r->id)) n = TY_MIN(n, most);
    if (!straight) { r->load(buf, p, st, n); p = (const char *)buf; }
    r->l->row[r->id][r->k](&part, p, n);
    r->l->combine[r->id][r->k](acc, &part, 1);
    lo += n;
  }
}

/* acc[0..n) = combinations over all reduced positions of n neighbours at x */
static void reduce_columns(const reduction *r, const char *x, int64_t stride, int64_t n, double *acc) {
  const int last = r->red.n - 1;
  const int64_t inner = last < 0 ? 1 : r->red.shape[last], step = last < 0 ? 0 : r->red.stride[last];
  const bool straight = r->direct && stride == 1;
  double part[TY_BLOCK], wide[TY_BLOCK], buf[TY_BLOCK];
  const int64_t size = ty_loop_size[r->k], together = TY_MAX((int64_t)sizeof buf / (n * size), 1);         /* rows that fit into buf */
  const ty_loops *l = r->l;
  if (!r->red.total) l->init[r->id][r->k](acc, n);
  for (int64_t i = 0; i < r->red.total;) {
    const int64_t begin = i, e = TY_MIN(r->red.total, i + 128);
    double *const to = begin ? wide : acc;                 /* in the accumulator's type */
    void *const sum = r->k == TY_IN_F32 ? part : to;
    l->column_init[r->id][r->k](sum, n);
    while (i < e) {
      const int64_t run = TY_MIN(inner - i % inner, e - i), rows = straight ? run : TY_MIN(run, together);
      const char *p = x + (offset_of(&r->red, last, i / inner) + i % inner * step) * r->size;
      for (int64_t j = 0; j < rows && !straight; j++) r->load((char *)buf + j * n * size, p + j * step * r->size, stride, n);
      l->column[r->id][r->k](sum, straight ? p : (const char *)buf, n, rows, straight ? step : n);
      i += rows;
    }
    if (r->k == TY_IN_F32) l->load[TY_F32][TY_IN_F64](to, part, 1, n);
    if (begin) l->combine[r->id][r->k](acc, wide, n);
  }
}

#define NARROW 64                /* at most so many columns are too few for a loop's vectors */
#define NARROW_PARTS 16          /* a fixed number, whatever the threads */

/* acc[0..n) = combinations over `rows` contiguous rows of n elements: several rows are taken as one wide row, whose parts are then combined
 * by halves. */
static void reduce_narrow(const reduction *r, const char *x, int64_t rows, int64_t n, double *acc) {
  reduction wide = *r;
  double all[2 * NARROW];
  int64_t fold = 1;
  while (2 * fold * n <= 2 * NARROW && 2 * fold <= rows) fold *= 2;
  const int64_t rest = rows % fold;
  wide.red = (dims){.n = 1, .shape = {rows / fold}, .stride = {n * fold}, .total = rows / fold};
  reduce_columns(&wide, x, 1, n * fold, all);
  for (int64_t h = fold / 2; h; h /= 2) r->l->combine[r->id][r->k](all, all + h * n, h * n);
  memcpy(acc, all, sizeof *acc * (size_t)n);
  if (!rest) return;
  wide.red = (dims){.n = 1, .shape = {rest}, .stride = {n}, .total = rest};
  reduce_columns(&wide, x + (rows - rest) * n * r->size, 1, n, all);
  r->l->combine[r->id][r->k](acc, all, n);
}

/* Stores the n results from the i-th on, from acc, which it changes. */
static void finish(const reduction *r, int64_t i, double *acc, int64_t n) {
  r->l->finish[r->id][r->k](acc, n, (double)r->red.total);
  r->store(r->o + i * r->out_size, 1, acc, n);
}

#define CONVERTED 128            /* columns of a tile that has to be converted: the buffer then takes several of its rows */

/* The innermost dim is kept: tiles of columns at once. */
static void by_columns(const reduction *r) {
  const dims *keep = &r->keep;
  const int64_t inner = keep->shape[keep->n - 1], stride = keep->stride[keep->n - 1], outer = keep->total / inner;
  const int64_t most = r->direct && stride == 1 ? TY_BLOCK : CONVERTED;
  int64_t tiles = (inner + most - 1) / most;
  if (inner > 64 && outer * tiles < ty_get_num_threads()) tiles = ty_get_num_threads();   /* narrower tiles, so that each thread has one */
  const int64_t width = (inner + tiles - 1) / tiles;
  const bool narrow = inner <= NARROW && stride == 1 && r->red.n == 1 && r->red.stride[0] == inner;     /* rows without gaps */
  #pragma omp parallel for num_threads(ty_threads_for(r->work)) schedule(static)
  for (int64_t t = 0; t < outer * tiles; t++) {
    const int64_t at = t % tiles * width, n = TY_MIN(width, inner - at);
    double acc[TY_BLOCK];
    if (n <= 0) continue;
    const char *x = r->x + (offset_of(keep, keep->n - 1, t / tiles) + at * stride) * r->size;
    if (narrow) reduce_narrow(r, x, r->red.total, n, acc);
    else reduce_columns(r, x, stride, n, acc);
    finish(r, t / tiles * inner + at, acc, n);
  }
}

/* Few columns of many rows, without gaps. */
static void by_narrow_columns(const reduction *r) {
  const int64_t n = r->keep.total, rows = r->red.total, parts = TY_MIN(TY_MAX(rows / 1024, 1), NARROW_PARTS);
  double acc[NARROW_PARTS][NARROW];
  #pragma omp parallel for num_threads(ty_threads_for(r->work)) schedule(static)
  for (int64_t p = 0; p < parts; p++) {
    const int64_t first = rows * p / parts;
    reduce_narrow(r, r->x + first * n * r->size, rows * (p + 1) / parts - first, n, acc[p]);
  }
  for (int64_t p = 1; p < parts; p++) r->l->combine[r->id][r->k](acc[0], acc[p], n);
  finish(r, 0, acc[0], n);
}

/* Gathers m rows from the at-th on, contiguous, in the loop's type. */
static void gather(const reduction *r, int64_t at, int64_t m, char *to) {
  const dims *keep = &r->keep;
  const int64_t n = r->red.total, inner = keep->shape[keep->n - 1], step = keep->stride[keep->n - 1];
  while (m > 0) {
    const int64_t j = at % inner, rows = TY_MIN(TY_MIN(m, inner - j), TY_MAX(TY_BLOCK / n, 1));
    const char *from = r->x + (offset_of(keep, keep->n - 1, at / inner) + j * step) * r->size;
    ty_gather_rows(to, from, r->dtype, r->compute, r->red.stride[0], n, step, rows);
    to += rows * n * ty_loop_size[r->k];
    at += rows;
    m -= rows;
  }
}

/* Rows of at most TY_PART elements: the loops take many at once, in place if they are contiguous. */
static void by_short_rows(const reduction *r, bool contiguous) {
  const int64_t n = r->red.total, rows = TY_MIN(TY_PART / n, TY_BLOCK), blocks = (r->keep.total + rows - 1) / rows;
  #pragma omp parallel for num_threads(ty_threads_for(r->work)) schedule(static)
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t at = b * rows, m = TY_MIN(rows, r->keep.total - at);
    const char *p = r->x + at * n * r->size;
    double buf[TY_PART], acc[TY_BLOCK], part[TY_BLOCK];
    if (!contiguous) gather(r, at, m, (char *)buf);
    else if (!r->direct) r->load(buf, p, 1, m * n);
    if (!contiguous || !r->direct) p = (const char *)buf;
    if (n < LONG || ty_picks(r->id)) r->l->rows[r->id][r->k](part, p, m, n);
    else for (int64_t i = 0; i < m; i++) r->l->row[r->id][r->k](&part[i], p + i * n * ty_loop_size[r->k], n);
    r->l->init[r->id][r->k](acc, m);
    r->l->combine[r->id][r->k](acc, part, m);
    finish(r, at, acc, m);
  }
}

static void by_rows(const reduction *r) {
  #pragma omp parallel for num_threads(ty_threads_for(r->work)) schedule(static)
  for (int64_t i = 0; i < r->keep.total; i++) {
    double acc;
    reduce_row(r, r->x + offset_of(&r->keep, r->keep.n, i) * r->size, 0, r->red.total, &acc);
    finish(r, i, &acc, 1);
  }
}

/* Few results: threads share each row, cut at fixed borders. */
static ty_status by_parts_of_rows(const ty_call *c, const reduction *r) {
  const int64_t parts = (r->red.total + 65535) / 65536;
  double *acc = ty_scratch(sizeof(double) * (size_t)parts);
  if (!acc) return ty_no_memory(c->ctx, c->op->shown);
  for (int64_t i = 0; i < r->keep.total; i++) {
    const char *row = r->x + offset_of(&r->keep, r->keep.n, i) * r->size;
    #pragma omp parallel for num_threads(ty_threads_for(r->work)) schedule(static)
    for (int64_t p = 0; p < parts; p++) reduce_row(r, row, p * 65536, TY_MIN(r->red.total, (p + 1) * 65536), &acc[p]);
    for (int64_t p = 1; p < parts; p++) r->l->combine[r->id][r->k](&acc[0], &acc[p], 1);
    finish(r, i, acc, 1);
  }
  ty_scratch_free(acc);
  return TY_OK;
}

/* any and all over rows of contiguous bytes: a search, which may end early. */
static void search_rows(const reduction *r) {
  const size_t n = (size_t)r->red.total;
  #pragma omp parallel for num_threads(ty_threads_for(r->work / 8)) schedule(static)
  for (int64_t i = 0; i < r->keep.total; i++) {
    const char *x = r->x + offset_of(&r->keep, r->keep.n, i);
    r->o[i] = r->id == TY_OP_all ? !memchr(x, 0, n) : x[0] || memcmp(x, x + 1, n - 1);
  }
}

static uint8_t byte_extreme(const uint8_t *x, int64_t n, bool max) {
  uint8_t low = x[0], high = x[0];
  if (max) {
    #pragma omp simd reduction(max: high)
    for (int64_t j = 1; j < n; j++) high = TY_MAX(high, x[j]);
  } else {
    #pragma omp simd reduction(min: low)
    for (int64_t j = 1; j < n; j++) low = TY_MIN(low, x[j]);
  }
  return max ? high : low;
}

/* amax and amin over rows of contiguous bytes; of few rows, parts. */
static void byte_extremes(const reduction *r) {
  enum { PARTS = 16, MOST = 256 };
  const int threads = ty_threads_for(r->work / 8);
  const int64_t rows = r->keep.total, n = r->red.total, parts = rows < TY_MIN(threads, MOST) && n > 1 << 16 ? PARTS : 1;
  const bool max = r->id == TY_OP_amax;
  uint8_t some[PARTS * MOST], *o = parts > 1 ? some : (uint8_t *)r->o;
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t t = 0; t < rows * parts; t++) {
    const int64_t from = n * (t % parts) / parts, to = n * (t % parts + 1) / parts;
    o[t] = byte_extreme((const uint8_t *)r->x + offset_of(&r->keep, r->keep.n, t / parts) + from, to - from, max);
  }
  for (int64_t i = 0; i < rows && parts > 1; i++) ((uint8_t *)r->o)[i] = byte_extreme(some + i * parts, parts, max);
}

static reduction reduction_of(const ty_call *c) {
  const ty_tensor *x = c->in[0].t, *o = c->out[0];
  const ty_attr *a = &c->at[TY_AT_sum_dim];
  const ty_loops *l = ty_cpu_loops();
  unsigned mask = a->set ? 0 : (1u << x->ndim) - 1;
  for (int i = 0; a->set && i < a->n; i++) mask |= x->ndim ? 1u << a->v[i] : 0;
  reduction r = {.id = c->op->id, .k = ty_loop_type_of(c->compute), .size = ty_itemsize(x), .out_size = ty_itemsize(o),
    .keep = {.total = 1}, .red = {.total = 1}, .l = l, .x = ty_data(x), .o = ty_data(o), .direct = x->dtype == c->compute,
    .dtype = x->dtype, .compute = c->compute};
  r.load = l->load[x->dtype][r.k];
  r.store = l->store[o->dtype][r.k == TY_IN_I64 ? TY_IN_I64 : TY_IN_F64];
  for (int i = 0; i < x->ndim; i++)
    if (x->shape[i] == 1) continue;
    else if (mask >> i & 1) add_dim(&r.red, x->shape[i], x->stride[i]);
    else {                                  /* kept dims stay in the result's order */
      r.keep.shape[r.keep.n] = x->shape[i];
      r.keep.stride[r.keep.n++] = x->stride[i];
      r.keep.total *= x->shape[i];
    }
  merge_dims(&r.red);
  merge_dims(&r.keep);
  r.work = r.red.total * r.keep.total;
  return r;
}

static int64_t innermost(const dims *d) { return d->n ? llabs(d->stride[d->n - 1]) : INT64_MAX; }

/* The shape decides between the ways, not the number of threads, so that the bits don't depend on that. */
ty_status ty_cpu_reduce(ty_call *c) {
  const reduction r = reduction_of(c);
  const int64_t kept = innermost(&r.keep), reduced = innermost(&r.red);
  const bool contiguous = r.keep.n <= 1 && (r.keep.n == 0 || r.keep.stride[0] == r.red.total);      /* row after row */
  if (r.keep.total == 0) return TY_OK;
  if (r.size == 1 && r.red.n == 1 && r.red.stride[0] == 1 && r.red.total >= 16 && ty_picks(r.id)) {
    if (r.id == TY_OP_any || r.id == TY_OP_all) search_rows(&r);
    else byte_extremes(&r);
    return TY_OK;
  }
  if (r.keep.n == 1 && kept == 1 && r.keep.total <= NARROW && r.red.n == 1 && r.red.stride[0] == r.keep.total && r.red.total >= 64)
    by_narrow_columns(&r);
  else if (kept <= 1 && (reduced == 0 || kept < reduced)) by_columns(&r);
  else if (r.keep.total >= 16 && r.red.n == 1 && r.red.total > 0 && r.red.stride[0] == 1 &&
           r.red.total <= (contiguous ? TY_PART : LONG)) by_short_rows(&r, contiguous);
  else if (r.keep.total >= 16 || r.work < TY_GRAIN * 2) by_rows(&r);
  else return by_parts_of_rows(c, &r);
  return TY_OK;
}
