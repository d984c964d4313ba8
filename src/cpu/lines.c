/* Ops along one dim: positions of extremes; running sums, products and extremes; softmax.
 *
 * Idea: lines are computed one by one, each first converted to the loops' type where needed; or, where lines lie side by side in memory,
 * some at a time (column_loops.c), transposed first where that pays. Invariant: a line's result is the same whichever way is taken. */
#include <math.h>
#include <string.h>
#include "cpu.h"

typedef struct {
  ty_call *c;
  ty_loop_type k;
  int size[3];
  int64_t n, stride[3];
  const ty_loops *l;
  ty_dtype dtype[3];
  _Atomic bool failed;
} lines;

/* An extreme and its position: NaN wins, and the first of equals. */
typedef struct { union { double f; int64_t i; } v; int64_t at; } found;
static found extreme(const lines *w, const void *v, int64_t n, bool max) {
  found e;
  w->l->row[max ? TY_OP_amax : TY_OP_amin][w->k](&e.v, v, n);
  e.at = w->l->position[w->k](v, n, &e.v);
  return e;
}
/* Whether a wins over b, which stands before it. */
static bool wins(const lines *w, const found *a, const found *b, bool max) {
  if (w->k == TY_IN_I64) return max ? a->v.i > b->v.i : a->v.i < b->v.i;
  return !isnan(b->v.f) && (isnan(a->v.f) || (max ? a->v.f > b->v.f : a->v.f < b->v.f));
}

/* Whether operand i's lines are contiguous and of the loops' type already. */
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
  const bool max = w->c->op->id == TY_OP_max_dim, straight = straight_line(w, 0);
  const int64_t step = w->stride[0] * w->size[0], most = straight ? w->n : TY_BLOCK;
  int64_t buf[TY_BLOCK];
  found best = {.at = 0};
  for (int64_t from = 0; from < w->n; from += most) {
    const int64_t n = TY_MIN(most, w->n - from);
    if (!straight) w->l->load[w->dtype[0]][w->k](buf, ptr[0] + from * step, w->stride[0], n);
    found e = extreme(w, straight ? (const void *)ptr[0] : buf, n, max);
    e.at += from;
    if (from == 0 || wins(w, &e, &best, max)) best = e;
  }
  memcpy((char *)ty_data(w->c->out[0]) + line * w->size[0], ptr[0] + best.at * step, (size_t)w->size[0]);
  ((int64_t *)ty_data(w->c->out[1]))[line] = best.at + 1;
}

/* Running sums or products of x, accumulated in A. */
#define CHAIN(T, A) \
  static void chain_##T(const T *x, int64_t xs, T *o, int64_t os, int64_t n, bool product) { \
    A acc = product; \
    if (product) for (int64_t i = 0; i < n; i++) o[i * os] = (T)(acc = acc * (A)x[i * xs]); \
    else for (int64_t i = 0; i < n; i++) o[i * os] = (T)(acc = acc + (A)x[i * xs]); }
CHAIN(float, double)
CHAIN(double, double)
CHAIN(int64_t, int64_t)
#undef CHAIN

/* The scan where operand and result are of one loop type already. False: they aren't. */
static bool chained(const lines *w, char *const *ptr, bool product) {
  const int64_t xs = w->stride[0], os = w->stride[1], n = w->n;
  void *x = ptr[0], *o = ptr[1];
  if (w->dtype[0] != w->dtype[1]) return false;
  switch (w->dtype[0]) {
    case TY_F32: chain_float(x, xs, o, os, n, product); return true;
    case TY_F64: chain_double(x, xs, o, os, n, product); return true;
    case TY_I64: chain_int64_t(x, xs, o, os, n, product); return true;
    default: return false;
  }
}

/* A running sum, product or logcumsumexp; floats in float64. */
static void line_scan(void *arg, char *const *ptr, int64_t line) {
  lines *w = arg;
  const int id = w->c->op->id;
  const bool product = id == TY_OP_cumprod;
  (void)line;
  if (id != TY_OP_logcumsumexp && chained(w, ptr, product)) return;
  void *buf = ty_scratch((size_t)w->n * 8);
  if (!buf) { w->failed = true; return; }
  if (w->k == TY_IN_I64) {
    int64_t acc = product, *v = buf;
    w->l->load[w->dtype[0]][TY_IN_I64](buf, ptr[0], w->stride[0], w->n);
    for (int64_t i = 0; i < w->n; i++) v[i] = acc = (int64_t)(product ? (uint64_t)acc * (uint64_t)v[i] : (uint64_t)acc + (uint64_t)v[i]);
  } else {
    double acc = id == TY_OP_logcumsumexp ? -INFINITY : product, *v = buf;
    w->l->load[w->dtype[0]][TY_IN_F64](buf, ptr[0], w->stride[0], w->n);
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

/* Running extremes of v: writes their positions and, unless o is NULL, values. */
#define RUNNING(T, BETTER) { \
    const T *x = v; \
    T best = x[0], *out = o; \
    for (int64_t i = 0, at = 0; i < w->n; i++) { \
      if (x[i] != x[i] || (best == best && x[i] BETTER best)) { at = i; best = x[i]; } \
      if (out) out[i * w->stride[1]] = best; \
      pos[i * w->stride[2]] = at + 1; } return; }
static void running(const lines *w, const void *v, void *o, int64_t *pos, bool max) {
  if (w->k == TY_IN_F32) { if (max) RUNNING(float, >=) RUNNING(float, <=) }
  if (w->k == TY_IN_F64) { if (max) RUNNING(double, >=) RUNNING(double, <=) }
  if (max) RUNNING(int64_t, >=) RUNNING(int64_t, <=)
}

#define AT_POSITIONS(T) \
  for (int64_t i = 0; i < w->n; i++) \
    ((T *)(void *)ptr[1])[i * w->stride[1]] = ((const T *)(const void *)ptr[0])[(pos[i * w->stride[2]] - 1) * w->stride[0]];
static void line_running(void *arg, char *const *ptr, int64_t line) {
  lines *w = arg;
  const bool straight = straight_line(w, 0), max = w->c->op->id == TY_OP_cummax;
  int64_t *pos = (int64_t *)(void *)ptr[2];
  (void)line;
  if (straight) { running(w, ptr[0], ptr[1], pos, max); return; }
  void *buf = ty_scratch((size_t)w->n * 8);
  if (!buf) { w->failed = true; return; }
  running(w, load_line(w, 0, ptr[0], buf), NULL, pos, max);
  switch (w->size[0]) {                                  /* a value is copied from where it is: bits of any dtype stay */
    case 1: AT_POSITIONS(uint8_t) break;
    case 2: AT_POSITIONS(uint16_t) break;
    case 4: AT_POSITIONS(uint32_t) break;
    default: AT_POSITIONS(uint64_t) break;
  }
  ty_scratch_free(buf);
}

/* dx[i] = the sum over j >= i of g[j] times the product of x[0..j] without x[i]. One pass for the elements before the first zero, one for
 * the zero itself; behind it all gradients are 0. */
static void line_cumprod_backward(void *arg, char *const *ptr, int64_t line) {
  lines *w = arg;
  int64_t n = w->n, zero = n;
  double *g = ty_scratch((size_t)n * 32), *x = g + n, *d = g + 2 * n, *out = g + 3 * n;
  (void)line;
  if (!g) { w->failed = true; return; }
  w->l->load[w->dtype[0]][TY_IN_F64](g, ptr[0], w->stride[0], n);
  w->l->load[w->dtype[1]][TY_IN_F64](x, ptr[1], w->stride[1], n);
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
  w->l->store[w->dtype[2]][TY_IN_F64](ptr[2], w->stride[2], d, n);
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

/* Computes lines that lie side by side, many at a time, where the column loops take the dtypes, or those that 16-bit numbers are converted
   to. t: operands and results; results without the dim have stride 0 there; the first `same` are of the loops' type, or converted. False:
   nothing was done. */
typedef void (*columns_run)(const lines *w, char *const *ptr, int64_t n);
static bool run_columns(lines *w, const ty_tensor *t, int nt, int same, int dim, columns_run run) {
  const ty_dtype type = ty_loop_dtype[w->k];
  const ty_tensor *x = &t[0];
  int side = -1, converted = 0;
  for (int k = 0; k < same; k++) {
    if (t[k].dtype == type) continue;
    if (!ty_is_16bit(t[k].dtype) || type != TY_F32) return false;
    converted++;
  }
  for (int d = 0; d < x->ndim; d++) {
    bool fits = d != dim && x->shape[d] >= 16;
    for (int k = 0; k < nt; k++) fits = fits && t[k].stride[d] == 1;
    if (fits) side = d;
  }
  if (side < 0 || ty_numel(x) == 0) return false;
  const int64_t many = ((int64_t)1 << 18) / (w->n * ty_loop_size[w->k]);     /* so that a tile stays within the cache */
  const int64_t most = TY_MIN(TY_COLUMNS / TY_MIN(w->n, TY_LANES) / 16 * 16, TY_BLOCK), width = TY_MIN(TY_MAX(many / 16 * 16, 16), most);
  const int64_t tiles = (x->shape[side] + width - 1) / width, jobs = ty_numel(x) / w->n / x->shape[side] * tiles;
  const int64_t row = width * ty_loop_size[w->k];
  const size_t room = (size_t)(w->n * row);
  if (converted && room * (size_t)nt > (size_t)1 << 22) return false;
  #pragma omp parallel num_threads(ty_threads_for(ty_numel(x) * 2))
  {
    char *const wide = converted ? ty_scratch(room * (size_t)nt) : NULL;
    lines own = {.c = w->c, .k = w->k, .n = w->n, .l = w->l};
    if (converted && !wide) w->failed = true;
    #pragma omp for schedule(static)
    for (int64_t job = 0; job < jobs; job++) {
      const int64_t at = job % tiles * width, m = TY_MIN(width, x->shape[side] - at);
      int64_t rest = job / tiles;
      char *ptr[3], *given[3];
      if (converted && !wide) continue;
      for (int k = 0; k < nt; k++) given[k] = (char *)ty_data(&t[k]) + at * ty_itemsize(&t[k]);
      for (int d = x->ndim - 1; d >= 0; d--) {
        if (d == dim || d == side) continue;
        for (int k = 0; k < nt; k++) given[k] += rest % x->shape[d] * t[k].stride[d] * ty_itemsize(&t[k]);
        rest /= x->shape[d];
      }
      for (int k = 0; k < nt; k++) {
        const bool turn = k < same && t[k].dtype != type;
        ptr[k] = turn ? wide + (size_t)k * room : given[k];
        own.stride[k] = turn && t[k].stride[dim] ? width : t[k].stride[dim];
        if (!turn || k >= w->c->nin) continue;
        for (int64_t i = 0; i < w->n; i++)
          w->l->load[t[k].dtype][w->k](ptr[k] + i * row, given[k] + i * t[k].stride[dim] * ty_itemsize(&t[k]), 1, m);
      }
      run(&own, ptr, m);
      for (int k = w->c->nin; k < same; k++) {
        if (ptr[k] == given[k]) continue;
        for (int64_t i = 0; i < (own.stride[k] ? w->n : 1); i++)
          w->l->store[t[k].dtype][w->k](given[k] + i * t[k].stride[dim] * ty_itemsize(&t[k]), 1, ptr[k] + i * row, m);
      }
    }
    ty_scratch_free(wide);
  }
  return true;
}

/* Computes short contiguous lines: some at a time are transposed, so that they lie side by side. t, same: as above; results without
   the dim aren't transposed. False: nothing was done. */
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
      if (turn && k < inputs) TY_OF_SIZE(w->l->transpose, size)(ptr[k], width, line[k], n, m, n);
    }
    run(&turned, ptr, m);
    for (int k = inputs; k < nt; k++)
      if (ptr[k] != line[k]) TY_OF_SIZE(w->l->transpose, size)(line[k], n, ptr[k], width, n, m);
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

/* Computes lines that lie side by side one by one, after transposing a few at a time, so that each cache line is read and
   written once, also where lines whose elements are a power of 2 apart evict each other. False: nothing was done. */
#define BUNCH 16           /* least lines at a time */
#define CACHE_LINE 64      /* bytes */
static bool run_bunches(lines *w, ty_tensor *const *t, int nt, int inputs, int dim, ty_line fn) {
  const ty_tensor *x = t[0];
  const int64_t ld = w->n + 16;            /* not a power of 2, by which lines would evict each other from the cache */
  int64_t least = 8, most = 1;             /* bytes of an element */
  for (int k = 0; k < nt; k++) { least = TY_MIN(least, w->size[k]); most = TY_MAX(most, w->size[k]); }
  const int64_t bunch = TY_MAX(BUNCH, CACHE_LINE / least);
  const size_t room = (size_t)(ld * bunch * most);
  int side = -1;
  bool across = false;
  for (int k = 0; k < nt; k++) across = across || w->stride[k] != 1;
  for (int d = 0; d < x->ndim; d++) {
    bool fits = d != dim && x->shape[d] >= 8;
    for (int k = 0; k < nt && fits; k++) fits = t[k]->stride[d] == 1;
    if (fits) side = d;
  }
  if (side < 0 || !across || w->n < 4 || room * (size_t)nt > (size_t)1 << 22) return false;
  lines one = {.c = w->c, .k = w->k, .l = w->l, .n = w->n};
  for (int k = 0; k < nt; k++) { one.size[k] = w->size[k]; one.stride[k] = 1; one.dtype[k] = w->dtype[k]; }
  const int64_t bunches = (x->shape[side] + bunch - 1) / bunch, jobs = ty_numel(x) / w->n / x->shape[side] * bunches;
  #pragma omp parallel num_threads(ty_threads_for(ty_numel(x) * 4))
  {
    char *buf = ty_scratch(room * (size_t)nt);
    if (!buf) one.failed = true;
    #pragma omp for schedule(static)
    for (int64_t job = 0; job < jobs; job++) {
      char *ptr[3], *line[3];
      const int64_t at = job % bunches * bunch, m = TY_MIN(bunch, x->shape[side] - at);
      int64_t rest = job / bunches;
      if (!buf) continue;
      for (int k = 0; k < nt; k++) ptr[k] = (char *)ty_data(t[k]) + at * w->size[k];
      for (int d = x->ndim - 1; d >= 0; d--) {
        if (d == dim || d == side) continue;
        for (int k = 0; k < nt; k++) ptr[k] += rest % x->shape[d] * t[k]->stride[d] * w->size[k];
        rest /= x->shape[d];
      }
      for (int k = 0; k < inputs; k++) TY_OF_SIZE(w->l->transpose, w->size[k])(buf + (size_t)k * room, ld, ptr[k], w->stride[k], w->n, m);
      for (int64_t j = 0; j < m; j++) {
        for (int k = 0; k < nt; k++) line[k] = buf + (size_t)k * room + j * ld * w->size[k];
        fn(&one, line, 0);
      }
      for (int k = inputs; k < nt; k++) TY_OF_SIZE(w->l->transpose, w->size[k])(ptr[k], w->stride[k], buf + (size_t)k * room, ld, m, w->n);
    }
    ty_scratch_free(buf);
  }
  w->failed = one.failed;
  return true;
}

/* Runs fn, or columns where it can, over all lines. results: how many results have the operands' shape. */
static ty_status run_lines(ty_call *c, int dim, ty_dtype compute, int results, ty_line fn, columns_run columns) {
  ty_tensor *t[3], all[3];                 /* all: also the results that lack the dim */
  int nt = 0;
  lines w = {.c = c, .k = ty_loop_type_of(compute), .l = ty_cpu_loops()};
  ty_tensor flat[3];                       /* 0-dim tensors as lines of one */
  for (int i = 0; i < c->nin + results; i++) {
    ty_tensor *x = i < c->nin ? c->in[i].t : c->out[i - c->nin];
    if (x->ndim == 0) { flat[i] = *x; flat[i].ndim = 1; flat[i].shape[0] = flat[i].stride[0] = 1; x = &flat[i]; }
    w.size[nt] = ty_itemsize(x);
    w.stride[nt] = x->stride[dim];
    w.dtype[nt] = x->dtype;
    t[nt++] = x;
  }
  w.n = t[0]->shape[dim];
  if (ty_numel(t[0]) == 0) return TY_OK;
  if (w.n > 1 && w.n < INT32_MAX && columns) {
    const int n = c->nin + c->op->nout, same = results ? n : 2;
    for (int k = 0; k < n; k++) {
      all[k] = k < c->nin ? *c->in[k].t : *c->out[k - c->nin];
      if (k < nt) continue;
      if (all[k].ndim < t[0]->ndim)        /* no keepdim */
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
/* The operands' dims are walked in the order of the result's memory. */
ty_status ty_cpu_softmax(ty_call *c) {
  ty_tensor *given = c->in[0].t, *grad = given, t[3];
  ty_operand in[2];
  ty_call turned = *c;
  /* an expanded gradient, as a sum's: lines that lie side by side need it laid out */
  if (c->nin == 2 && ty_overlaps_itself(given)) TY_TRY(ty_contiguous(c->ctx, given, &grad));
  t[0] = *c->out[0];
  t[1] = *grad;
  if (c->nin == 2) t[2] = *c->in[1].t;
  const int dim = ty_turn_to_memory(t, c->nin + 1, (int)c->at[TY_AT_softmax_dim].i);
  turned.out[0] = &t[0];
  turned.in = in;
  for (int i = 0; i < c->nin; i++) in[i] = ty_operand_tensor(&t[i + 1]);
  const ty_status s = run_lines(&turned, dim, ty_compute_dtype(grad->dtype), 1, line_softmax, columns_softmax);
  if (grad != given) ty_release(grad);
  return s;
}
