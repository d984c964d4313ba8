/* Reductions, index reductions, scans and softmax.
 *
 * Idea of the reductions: sort dims into kept and reduced. Where the innermost memory is reduced, each result is a row's
 * combination; where it is kept, whole rows are combined element by element. Partial results are float64 (or int64),
 * at fixed borders, so that neither accuracy nor the bits depend on the number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"

#define LONG 192                 /* elements from which on a row is reduced by itself: shorter ones go several at a time */

typedef struct { int n; int64_t shape[TY_MAXDIM], stride[TY_MAXDIM], total; } dims;

/* The outermost first: those that repeat the same memory (stride 0), then those of the larger strides. */
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

/* Elements from the start to position i of the dims, the last of which may be left out. */
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
    n = TY_MIN(n, most);
    if (!straight) { r->load(buf, p, st, n); p = (const char *)buf; }
    r->l->row[r->id][r->k](&part, p, n);
    r->l->combine[r->id][r->k](acc, &part, 1);
    lo += n;
  }
}

/* acc[0..n) = combinations over all reduced positions of n neighbours at x */
static void reduce_columns(const reduction *r, const char *x, int64_t stride, int64_t n, void *acc) {
  double part[TY_BLOCK], wide[TY_BLOCK], buf[TY_BLOCK];
  const ty_loops *l = r->l;
  l->init[r->id][r->k](acc, n);
  for (int64_t i = 0; i < r->red.total;) {
    int64_t e = TY_MIN(r->red.total, i + 128);
    l->column_init[r->id][r->k](part, n);
    for (; i < e; i++) {
      const char *p = x + offset_of(&r->red, r->red.n, i) * r->size;
      if (!r->direct || stride != 1) { r->load(buf, p, stride, n); p = (const char *)buf; }
      l->column[r->id][r->k](part, p, n);
    }
    if (r->k == TY_IN_F32) l->load[TY_F32][TY_IN_F64](wide, part, 1, n);
    l->combine[r->id][r->k](acc, r->k == TY_IN_F32 ? wide : part, n);
  }
}

#define NARROW 64                /* columns that are too few for a loop's vectors */
#define NARROW_PARTS 16          /* a fixed number, whatever the threads */

/* acc[0..n) = combinations of so many rows of n neighbours, one row after another: several are taken for one wide row. */
static void reduce_narrow(const reduction *r, const char *x, int64_t rows, int64_t n, double *acc) {
  const int64_t fold = TY_MAX(TY_MIN(TY_BLOCK / n, rows), 1), rest = rows % fold;
  reduction wide = *r;
  double all[TY_BLOCK];
  wide.red = (dims){.n = 1, .shape = {rows / fold}, .stride = {n * fold}, .total = rows / fold};
  reduce_columns(&wide, x, 1, n * fold, all);
  memcpy(acc, all, sizeof *acc * (size_t)n);
  for (int64_t i = 1; i < fold; i++) r->l->combine[r->id][r->k](acc, all + i * n, n);
  if (!rest) return;
  wide.red.shape[0] = wide.red.total = 1;
  reduce_columns(&wide, x + (rows - rest) * n * r->size, 1, n * rest, all);
  for (int64_t i = 0; i < rest; i++) r->l->combine[r->id][r->k](acc, all + i * n, n);
}

/* The n results from the i-th on, of acc, which is changed. */
static void finish(const reduction *r, int64_t i, double *acc, int64_t n) {
  r->l->finish[r->id][r->k](acc, n, (double)r->red.total);
  r->store(r->o + i * r->out_size, 1, acc, n);
}

/* Neighbours are kept: tiles of them at once. */
static void by_columns(const reduction *r) {
  const dims *keep = &r->keep;
  const int64_t inner = keep->shape[keep->n - 1], stride = keep->stride[keep->n - 1], outer = keep->total / inner;
  int64_t tiles = (inner + TY_BLOCK - 1) / TY_BLOCK;
  if (inner > 64 && outer * tiles < ty_get_num_threads()) tiles = ty_get_num_threads();   /* narrower tiles, so that each thread has one */
  const int64_t width = (inner + tiles - 1) / tiles;
  #pragma omp parallel for num_threads(ty_threads_for(r->work)) schedule(static)
  for (int64_t t = 0; t < outer * tiles; t++) {
    const int64_t at = t % tiles * width, n = TY_MIN(width, inner - at);
    double acc[TY_BLOCK];
    if (n <= 0) continue;
    reduce_columns(r, r->x + (offset_of(keep, keep->n - 1, t / tiles) + at * stride) * r->size, stride, n, acc);
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

/* Rows of at most TY_PART elements, one after another in memory: the loops take many at once. */
static void by_short_rows(const reduction *r) {
  const int64_t n = r->red.total, rows = TY_MIN(TY_PART / n, TY_BLOCK), blocks = (r->keep.total + rows - 1) / rows;
  #pragma omp parallel for num_threads(ty_threads_for(r->work)) schedule(static)
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t at = b * rows, m = TY_MIN(rows, r->keep.total - at);
    const char *p = r->x + at * n * r->size;
    double buf[TY_PART], acc[TY_BLOCK], part[TY_BLOCK];
    if (!r->direct) { r->load(buf, p, 1, m * n); p = (const char *)buf; }
    if (n < LONG) r->l->rows[r->id][r->k](part, p, m, n);
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

/* Few results: threads share each, at fixed borders. */
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

static reduction reduction_of(const ty_call *c) {
  const ty_tensor *x = c->in[0].t, *o = c->out[0];
  const ty_attr *a = &c->at[TY_AT_sum_dim];
  const ty_loops *l = ty_cpu_loops();
  unsigned mask = a->set ? 0 : (1u << x->ndim) - 1;
  for (int i = 0; a->set && i < a->n; i++) mask |= x->ndim ? 1u << a->v[i] : 0;
  reduction r = {.id = c->op->id, .k = ty_loop_type_of(c->compute), .size = ty_itemsize(x), .out_size = ty_itemsize(o),
    .keep = {.total = 1}, .red = {.total = 1}, .l = l, .x = ty_data(x), .o = ty_data(o), .direct = x->dtype == c->compute};
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
  r.work = r.red.total * r.keep.total;
  return r;
}

static int64_t innermost(const dims *d) { return d->n ? llabs(d->stride[d->n - 1]) : INT64_MAX; }

/* The shape decides between the ways, not the number of threads: the bits follow. */
ty_status ty_cpu_reduce(ty_call *c) {
  const reduction r = reduction_of(c);
  const int64_t kept = innermost(&r.keep), reduced = innermost(&r.red);
  if (r.keep.total == 0) return TY_OK;
  if (r.keep.n == 1 && kept == 1 && r.keep.total <= NARROW && r.red.n == 1 && r.red.stride[0] == r.keep.total && r.red.total >= 64)
    by_narrow_columns(&r);
  else if (kept <= 1 && (reduced == 0 || kept < reduced)) by_columns(&r);
  else if (r.keep.total >= 16 && r.red.n == 1 && r.red.total > 0 && r.red.total <= TY_PART && r.red.stride[0] == 1 &&
           ty_is_contiguous(c->in[0].t)) by_short_rows(&r);
  else if (r.keep.total >= 16 || r.work < TY_GRAIN * 2) by_rows(&r);
  else return by_parts_of_rows(c, &r);
  return TY_OK;
}

/* ---- along one dim, line by line ---- */

typedef struct {
  ty_call *c;
  ty_loop_type k;
  int size[3];
  int64_t n, stride[3];
  const ty_loops *l;
  ty_dtype dtype[3];
  _Atomic bool failed;
} lines;

/* Where the extreme stands: NaN wins, the first of equals. The value comes from vector code; then it is looked for, a block at a
 * time. */
#define FIND(T, A) { \
    const T *x = v; A best_; \
    w->l->row[id][w->k](&best_, v, w->n); \
    const T best = (T)best_; \
    for (int64_t i = 0; i < w->n; i += 64) { \
      int64_t e = TY_MIN(w->n, i + 64); int any = 0; \
      for (int64_t j = i; j < e; j++) any |= (x[j] == best) | (x[j] != x[j]); \
      for (int64_t j = i; any && j < e; j++) if ((best != best ? x[j] != x[j] : x[j] == best)) return j; } \
    return 0; }
static int64_t extreme(const lines *w, const void *v, bool max) {
  int id = max ? TY_OP_amax : TY_OP_amin;
  if (w->k == TY_IN_F32) FIND(float, double)
  if (w->k == TY_IN_F64) FIND(double, double)
  FIND(int64_t, int64_t)
}

/* Lines that are already what the loops take need no memory of their own. */
static bool straight_line(const lines *w, int i) {
  return w->stride[i] == 1 && w->dtype[i] == ty_loop_dtype[w->k];
}

static const void *load_line(lines *w, int i, const char *p, void *buf) {
  if (straight_line(w, i)) return p;
  w->l->load[w->dtype[i]][w->k](buf, p, w->stride[i], w->n);
  return buf;
}

static void line_extreme(void *arg, char *const *ptr, int64_t line) {
  lines *w = arg;
  void *buf = straight_line(w, 0) ? NULL : ty_scratch((size_t)w->n * 8);
  if (!buf && !straight_line(w, 0)) { w->failed = true; return; }
  int64_t at = extreme(w, load_line(w, 0, ptr[0], buf), w->c->op->id == TY_OP_max_dim);
  memcpy((char *)ty_data(w->c->out[0]) + line * w->size[0], ptr[0] + at * w->stride[0] * w->size[0], (size_t)w->size[0]);
  ((int64_t *)ty_data(w->c->out[1]))[line] = at + 1;
  ty_scratch_free(buf);
}

/* Running combinations; floats in float64. */
static void line_scan(void *arg, char *const *ptr, int64_t line) {
  lines *w = arg;
  int id = w->c->op->id;
  (void)line;
  if (id == TY_OP_cumsum && w->dtype[0] == TY_F32 && w->dtype[1] == TY_F32) {   /* no detour */
    const float *x = (const float *)(void *)ptr[0];
    float *o = (float *)(void *)ptr[1];
    double acc = 0;
    for (int64_t i = 0; i < w->n; i++) o[i * w->stride[1]] = (float)(acc += (double)x[i * w->stride[0]]);
    return;
  }
  void *buf = ty_scratch((size_t)w->n * 8);
  if (!buf) { w->failed = true; return; }
  bool product = id == TY_OP_cumprod;
  if (w->k == TY_IN_I64) {
    int64_t acc = product, *v = buf;
    w->l->load[w->dtype[0]][2](buf, ptr[0], w->stride[0], w->n);
    for (int64_t i = 0; i < w->n; i++) v[i] = acc = (int64_t)(product ? (uint64_t)acc * (uint64_t)v[i] : (uint64_t)acc + (uint64_t)v[i]);
  } else {
    double acc = id == TY_OP_logcumsumexp ? -INFINITY : product, *v = buf;
    w->l->load[w->dtype[0]][1](buf, ptr[0], w->stride[0], w->n);
    if (id == TY_OP_cumsum) for (int64_t i = 0; i < w->n; i++) v[i] = acc += v[i];
    else if (product) for (int64_t i = 0; i < w->n; i++) v[i] = acc *= v[i];
    else for (int64_t i = 0; i < w->n; i++) {
      double top = acc > v[i] ? acc : v[i];
      v[i] = acc = acc != acc ? acc : isinf(top) ? top : top + log1p(exp(-fabs(acc - v[i])));
    }
  }
  w->l->store[w->dtype[1]][w->k == TY_IN_I64 ? TY_IN_I64 : TY_IN_F64](ptr[1], w->stride[1], buf, w->n);
  ty_scratch_free(buf);
}

/* Running extreme: values of any dtype are copied, their positions written. */
#define RUNNING(T, BETTER) { \
    const T *x = v; \
    for (int64_t i = 0, at = 0; i < w->n; i++) { \
      if (x[i] != x[i] || (x[at] == x[at] && x[i] BETTER x[at])) at = i; \
      pos[i * st] = at + 1; } return; }
static void running(const lines *w, const void *v, int64_t *pos, int64_t st, bool max) {
  if (w->k == TY_IN_F32) { if (max) RUNNING(float, >=) RUNNING(float, <=) }
  if (w->k == TY_IN_F64) { if (max) RUNNING(double, >=) RUNNING(double, <=) }
  if (max) RUNNING(int64_t, >=) RUNNING(int64_t, <=)
}

static void line_running(void *arg, char *const *ptr, int64_t line) {
  lines *w = arg;
  void *buf = ty_scratch((size_t)w->n * 8);
  (void)line;
  if (!buf) { w->failed = true; return; }
  int64_t *pos = (int64_t *)(void *)ptr[2];
  running(w, load_line(w, 0, ptr[0], buf), pos, w->stride[2], w->c->op->id == TY_OP_cummax);
  for (int64_t i = 0; i < w->n; i++)
    memcpy(ptr[1] + i * w->stride[1] * w->size[1], ptr[0] + (pos[i * w->stride[2]] - 1) * w->stride[0] * w->size[0], (size_t)w->size[0]);
  ty_scratch_free(buf);
}

/* dx[i] = sum over j >= i of g[j] * the product of x[0..j] without x[i], in one pass each for what lies before, at and behind
 * the first zero; behind the second one all gradients are 0. */
static void line_cumprod_backward(void *arg, char *const *ptr, int64_t line) {
  lines *w = arg;
  int64_t n = w->n, zero = n;
  double *g = ty_scratch((size_t)n * 32), *x = g + n, *d = g + 2 * n, *out = g + 3 * n;
  (void)line;
  if (!g) { w->failed = true; return; }
  w->l->load[w->dtype[0]][1](g, ptr[0], w->stride[0], n);
  w->l->load[w->dtype[1]][1](x, ptr[1], w->stride[1], n);
  double acc = 1;
  for (int64_t i = 0; i < n; i++) {
    if (x[i] == 0 && zero == n) zero = i;
    out[i] = acc *= x[i];
    d[i] = 0;
  }
  double tail = 0;
  for (int64_t i = TY_MIN(zero, n) - 1; i >= 0; i--) d[i] = (tail += g[i] * out[i]) / x[i];
  if (zero < n) {
    double rest = zero ? out[zero - 1] : 1, sum = 0;
    for (int64_t j = zero; j < n; j++) {
      if (j > zero) rest *= x[j];
      sum += g[j] * rest;
    }
    d[zero] = sum;
  }
  w->l->store[w->dtype[2]][1](ptr[2], w->stride[2], d, n);
  ty_scratch_free(g);
}

static void line_softmax(void *arg, char *const *ptr, int64_t line) {
  lines *w = arg;
  int id = w->c->op->id, back = w->c->nin == 2, o = back ? 2 : 1, lg = id == TY_OP_log_softmax || id == TY_OP_log_softmax_backward;
  size_t bytes = (size_t)w->n * ty_loop_size[w->k];
  bool none = straight_line(w, 0) && straight_line(w, 1) && (!back || straight_line(w, 2));
  char *buf = none ? NULL : ty_scratch(bytes * 3);
  (void)line;
  if (!buf && !none) { w->failed = true; return; }
  const void *a = load_line(w, 0, ptr[0], buf), *b = back ? load_line(w, 1, ptr[1], buf ? buf + bytes : NULL) : NULL;
  bool straight = straight_line(w, o);
  void *dst = straight ? ptr[o] : buf + 2 * bytes;
  if (back) w->l->softmax_backward[w->k](dst, a, b, w->n, lg);
  else w->l->softmax[w->k](dst, a, w->n, lg);
  if (!straight) w->l->store[w->dtype[o]][w->k](ptr[o], w->stride[o], dst, w->n);
  ty_scratch_free(buf);
}

/* Lines that lie side by side, across memory, many at a time as they are: where loops for columns take the dtypes. t: operands and results,
   those without the dim with stride 0 there; the first `same` of them must be of the loops' type. False: nothing was done. */
typedef void (*columns_run)(const lines *w, char *const *ptr, int64_t n);
static bool run_columns(lines *w, const ty_tensor *t, int nt, int same, int dim, columns_run run) {
  const ty_dtype type = ty_loop_dtype[w->k];
  const ty_tensor *x = &t[0];
  int side = -1;
  for (int k = 0; k < same; k++) if (t[k].dtype != type) return false;
  for (int d = 0; d < x->ndim; d++) {
    bool fits = d != dim && x->shape[d] >= 16;
    for (int k = 0; k < nt; k++) fits = fits && t[k].stride[d] == 1;
    if (fits) side = d;
  }
  if (side < 0 || ty_numel(x) == 0) return false;
  const int64_t many = ((int64_t)1 << 18) / (w->n * ty_itemsize(x));         /* so that a tile stays within the cache */
  const int64_t most = TY_MIN(TY_COLUMNS / TY_MIN(w->n, TY_LANES) / 16 * 16, TY_BLOCK), width = TY_MIN(TY_MAX(many / 16 * 16, 16), most);
  const int64_t tiles = (x->shape[side] + width - 1) / width, jobs = ty_numel(x) / w->n / x->shape[side] * tiles;
  #pragma omp parallel for num_threads(ty_threads_for(ty_numel(x) * 2)) schedule(static)
  for (int64_t job = 0; job < jobs; job++) {
    const int64_t at = job % tiles * width;
    int64_t rest = job / tiles;
    char *ptr[3];
    for (int k = 0; k < nt; k++) ptr[k] = (char *)ty_data(&t[k]) + at * ty_itemsize(&t[k]);
    for (int d = x->ndim - 1; d >= 0; d--) {
      if (d == dim || d == side) continue;
      for (int k = 0; k < nt; k++) ptr[k] += rest % x->shape[d] * t[k].stride[d] * ty_itemsize(&t[k]);
      rest /= x->shape[d];
    }
    run(w, ptr, TY_MIN(width, x->shape[side] - at));
  }
  return true;
}

/* Short lines, one after another in memory, turned some at a time, so that they lie side by side. t, same: as above; results without
   the dim aren't turned. False: nothing was done. */
#define FEW 100
static bool run_turned(const lines *w, const ty_tensor *t, int nt, int inputs, int same, columns_run run) {
  const int64_t n = w->n, all = ty_numel(&t[0]) / n;
  const int size = ty_loop_size[w->k];
  if (n < 2 || n > FEW || all < 16) return false;
  for (int k = 0; k < nt; k++) {
    ty_tensor whole = t[k];
    if (k >= inputs && whole.stride[whole.ndim - 1] == 0) whole.ndim--;          /* a result without the dim */
    else if (k >= same) return false;
    if ((k < same && t[k].dtype != ty_loop_dtype[w->k]) || !ty_is_contiguous(&whole)) return false;
  }
  const int64_t width = TY_MIN(TY_COLUMNS / n / 16 * 16, TY_BLOCK), jobs = (all + width - 1) / width;
  lines turned = *w;
  for (int k = 0; k < nt; k++) turned.stride[k] = width;
  #pragma omp parallel for num_threads(ty_threads_for(ty_numel(&t[0]) * 2)) schedule(static)
  for (int64_t job = 0; job < jobs; job++) {
    double room[2][TY_COLUMNS];
    const int64_t at = job * width, m = TY_MIN(width, all - at);
    char *ptr[3], *line[3];
    for (int k = 0; k < nt; k++) {
      const bool turn = t[k].stride[t[k].ndim - 1];
      line[k] = (char *)ty_data(&t[k]) + at * (turn ? n : 1) * ty_itemsize(&t[k]);
      ptr[k] = turn ? (char *)room[k < inputs ? k : 0] : line[k];      /* a result takes the first operand's place */
      if (turn && k < inputs) w->l->transpose[size == 8](ptr[k], width, line[k], n, m, n);
    }
    run(&turned, ptr, m);
    for (int k = inputs; k < nt; k++)
      if (ptr[k] != line[k]) w->l->transpose[size == 8](line[k], n, ptr[k], width, n, m);
  }
  return true;
}

static void columns_softmax(const lines *w, char *const *ptr, int64_t n) {
  const int id = w->c->op->id, lg = id == TY_OP_log_softmax || id == TY_OP_log_softmax_backward;
  const ty_column_loops *l = w->l->columns;
  if (w->c->nin == 1) l->softmax[w->k](ptr[1], w->stride[1], ptr[0], w->stride[0], w->n, n, lg);
  else l->softmax_backward[w->k](ptr[2], w->stride[2], ptr[0], w->stride[0], ptr[1], w->stride[1], w->n, n, lg);
}
static void columns_cumsum(const lines *w, char *const *ptr, int64_t n) {
  w->l->columns->cumsum[w->k](ptr[1], w->stride[1], ptr[0], w->stride[0], w->n, n);
}
static void columns_extreme(const lines *w, char *const *ptr, int64_t n) {
  w->l->columns->extreme[w->k](ptr[1], (int64_t *)(void *)ptr[2], ptr[0], w->stride[0], w->n, n, w->c->op->id == TY_OP_max_dim);
}

/* Lines that lie side by side, across memory, are turned a few at a time, so that each cache line is read and written
   once. False: nothing was done. */
#define BUNCH 16
static bool run_bunches(lines *w, ty_tensor *const *t, int nt, int inputs, int dim, ty_line fn) {
  const ty_tensor *x = t[0];
  const int64_t ld = w->n + 16;            /* not a power of 2, whose lines would push each other out of the cache */
  const size_t room = (size_t)ld * BUNCH * 8;
  int side = -1;
  bool across = false;
  for (int k = 0; k < nt; k++) across = across || w->stride[k] != 1;
  for (int d = 0; d < x->ndim; d++) {
    bool fits = d != dim && x->shape[d] >= 8;
    for (int k = 0; k < nt && fits; k++) fits = t[k]->stride[d] == 1 && (w->size[k] == 4 || w->size[k] == 8);
    if (fits) side = d;
  }
  if (side < 0 || !across || w->n < 4 || room * (size_t)nt > (size_t)1 << 22) return false;
  lines one = {.c = w->c, .k = w->k, .l = w->l, .n = w->n};
  for (int k = 0; k < nt; k++) { one.size[k] = w->size[k]; one.stride[k] = 1; one.dtype[k] = w->dtype[k]; }
  const int64_t bunches = (x->shape[side] + BUNCH - 1) / BUNCH, jobs = ty_numel(x) / w->n / x->shape[side] * bunches;
  #pragma omp parallel num_threads(ty_threads_for(ty_numel(x) * 4))
  {
    char *buf = ty_scratch(room * (size_t)nt);
    if (!buf) one.failed = true;
    #pragma omp for schedule(static)
    for (int64_t job = 0; job < jobs; job++) {
      char *ptr[3], *line[3];
      const int64_t at = job % bunches * BUNCH, m = TY_MIN(BUNCH, x->shape[side] - at);
      int64_t rest = job / bunches;
      if (!buf) continue;
      for (int k = 0; k < nt; k++) ptr[k] = (char *)ty_data(t[k]) + at * w->size[k];
      for (int d = x->ndim - 1; d >= 0; d--) {
        if (d == dim || d == side) continue;
        for (int k = 0; k < nt; k++) ptr[k] += rest % x->shape[d] * t[k]->stride[d] * w->size[k];
        rest /= x->shape[d];
      }
      for (int k = 0; k < inputs; k++) w->l->transpose[w->size[k] == 8](buf + (size_t)k * room, ld, ptr[k], w->stride[k], w->n, m);
      for (int64_t j = 0; j < m; j++) {
        for (int k = 0; k < nt; k++) line[k] = buf + (size_t)k * room + j * ld * w->size[k];
        fn(&one, line, 0);
      }
      for (int k = inputs; k < nt; k++) w->l->transpose[w->size[k] == 8](ptr[k], w->stride[k], buf + (size_t)k * room, ld, m, w->n);
    }
    ty_scratch_free(buf);
  }
  w->failed = one.failed;
  return true;
}

/* Lines run over the operands and so many of the results as have their shape. */
static ty_status run_lines(ty_call *c, int dim, ty_dtype compute, int results, ty_line fn, columns_run columns) {
  ty_tensor *t[3], all[3];                 /* all: results that lack the dim too */
  int nt = 0;
  lines w = {.c = c, .k = ty_loop_type_of(compute), .l = ty_cpu_loops()};
  ty_tensor flat[3];                       /* 0-dim tensors as lines of one */
  for (int i = 0; i < c->nin + results; i++) {
    ty_tensor *x = i < c->nin ? c->in[i].t : c->out[i - c->nin];
    if (x->ndim == 0) { flat[i] = *x; flat[i].ndim = 1; flat[i].shape[0] = flat[i].stride[0] = 1; x = &flat[i]; }
    w.size[nt] = ty_itemsize(x);
    w.stride[nt] = x->stride[dim];
    w.dtype[nt] = (ty_dtype)x->dtype;
    t[nt++] = x;
  }
  w.n = t[0]->shape[dim];
  if (ty_numel(t[0]) == 0) return TY_OK;
  if (w.n > 1 && w.n < INT32_MAX && columns) {
    const int n = c->nin + c->op->nout, same = results ? n : 2;
    for (int k = 0; k < n; k++) {
      all[k] = k < c->nin ? *c->in[k].t : *c->out[k - c->nin];
      if (k < nt) continue;
      for (int d = all[k].ndim++; d > dim; d--) { all[k].shape[d] = all[k].shape[d - 1]; all[k].stride[d] = all[k].stride[d - 1]; }
      all[k].shape[dim] = w.n;
      all[k].stride[dim] = 0;
    }
    if (w.stride[0] != 1 && run_columns(&w, all, n, same, dim, columns)) return TY_OK;
    if (dim == t[0]->ndim - 1 && run_turned(&w, all, n, c->nin, same, columns)) return TY_OK;
  }
  if (!results || !run_bunches(&w, t, nt, c->nin, dim, fn)) ty_each_line(t, nt, dim, ty_numel(t[0]) * 4, fn, &w);
  return w.failed ? ty_no_memory(c->ctx, c->op->shown) : TY_OK;
}

ty_status ty_cpu_reduce_index(ty_call *c) {
  return run_lines(c, (int)c->at[TY_AT_max_dim_dim].i, c->compute, 0, line_extreme, columns_extreme);
}
ty_status ty_cpu_scan(ty_call *c) {
  bool back = c->op->id == TY_OP_cumprod_backward;
  return run_lines(c, (int)c->at[TY_AT_cumsum_dim].i, c->compute, c->op->nout,
    back ? line_cumprod_backward : c->op->nout == 2 ? line_running : line_scan,
    c->op->id == TY_OP_cumsum && c->compute != TY_I64 ? columns_cumsum : NULL);
}
ty_status ty_cpu_softmax(ty_call *c) {
  const int dim = (int)c->at[TY_AT_softmax_dim].i;
  ty_tensor *given = c->in[0].t, *grad = given;
  /* a sum's gradient: lines side by side need all of it */
  if (c->nin == 2 && ty_overlaps_itself(given)) TY_TRY(ty_contiguous(c->ctx, given, &grad));
  c->in[0].t = grad;
  const ty_status s = run_lines(c, dim, ty_compute_dtype((ty_dtype)grad->dtype), 1, line_softmax, columns_softmax);
  c->in[0].t = given;
  if (grad != given) ty_release(grad);
  return s;
}
