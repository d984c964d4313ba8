/* Sorting: sort, topk, unique, searchsorted, bincount.
 *
 * Idea: elements become unsigned keys that order as the elements do (NaN last, -0 as 0), so that one stable sort of keys with
 * their positions serves every dtype: by radix, whose passes that change nothing are skipped, or by insertion when short. */
#include <string.h>
#include "cpu.h"
#include "shape.h"

static inline uint64_t key_of(const void *v, ty_loop_type k, int64_t i) {
  uint64_t key;
  if (k == TY_IN_F32) {
    float x = ((const float *)v)[i];
    uint32_t u;
    x = x == 0 ? 0 : x;
    memcpy(&u, &x, 4);
    return x != x ? UINT32_MAX : u >> 31 ? (uint32_t)~u : u | 0x80000000u;
  }
  if (k == TY_IN_F64) {
    double x = ((const double *)v)[i];
    x = x == 0 ? 0 : x;
    memcpy(&key, &x, 8);
    return x != x ? UINT64_MAX : key >> 63 ? ~key : key | (uint64_t)1 << 63;
  }
  return (uint64_t)((const int64_t *)v)[i] ^ (uint64_t)1 << 63;
}

static uint64_t all_ones(ty_loop_type k) { return k == TY_IN_F32 ? UINT32_MAX : UINT64_MAX; }

static void keys_of(const void *v, ty_loop_type k, int64_t n, bool descending, ty_pair *out) {
  uint64_t flip = descending ? all_ones(k) : 0;
  for (int64_t i = 0; i < n; i++) out[i] = (ty_pair){key_of(v, k, i) ^ flip, i};
}

/* Sorts a; b is as large. Stable. */
void ty_sort_pairs(ty_pair *a, ty_pair *b, int64_t n, int bits) {
  if (n <= 40) {
    for (int64_t i = 1; i < n; i++) {
      ty_pair c = a[i];
      int64_t j = i;
      for (; j > 0 && a[j - 1].key > c.key; j--) a[j] = a[j - 1];
      a[j] = c;
    }
    return;
  }
  int digit = n < 4096 ? 8 : 11;
  int64_t count[2048];
  ty_pair *from = a, *to = b;
  uint64_t differ = 0;
  for (int64_t i = 1; i < n; i++) differ |= a[i].key ^ a[0].key;
  for (int shift = 0; shift < bits; shift += digit) {
    uint64_t mask = ((uint64_t)1 << digit) - 1;
    if (!(differ >> shift & mask)) continue;
    memset(count, 0, sizeof(int64_t) << digit);
    for (int64_t i = 0; i < n; i++) count[from[i].key >> shift & mask]++;
    int64_t sum = 0;
    for (uint64_t d = 0; d <= mask; d++) { int64_t c = count[d]; count[d] = sum; sum += c; }
    for (int64_t i = 0; i < n; i++) to[count[from[i].key >> shift & mask]++] = from[i];
    ty_pair *t = from; from = to; to = t;
  }
  if (from != a) memcpy(a, from, sizeof(ty_pair) * (size_t)n);
}

/* The same for keys that are random: the bits that tell most of them apart by radix, the rest by insertion. */
void ty_sort_random_pairs(ty_pair *a, ty_pair *b, int64_t n) {
  ty_pair *from = a, *to = b;
  int bits = 0;
  int64_t count[2048];
  while (bits < 64 && (int64_t)1 << bits < n) bits += 11;
  for (int shift = 64 - TY_MIN(bits, 64); shift < 64; shift += 11) {
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++) count[from[i].key >> shift & 2047]++;
    int64_t sum = 0;
    for (int d = 0; d < 2048; d++) { int64_t c = count[d]; count[d] = sum; sum += c; }
    for (int64_t i = 0; i < n; i++) to[count[from[i].key >> shift & 2047]++] = from[i];
    ty_pair *t = from; from = to; to = t;
  }
  for (int64_t i = 1; i < n; i++) {
    const ty_pair c = from[i];
    int64_t j = i;
    for (; j > 0 && from[j - 1].key > c.key; j--) from[j] = from[j - 1];
    from[j] = c;
  }
  if (from != a) memcpy(a, from, sizeof(ty_pair) * (size_t)n);
}

static int bits_of(ty_loop_type k) { return k == TY_IN_F32 ? 32 : 64; }

#define WORSE(x, y) ((x).key > (y).key || ((x).key == (y).key && (x).at > (y).at))
static void sink(ty_pair *a, int64_t i, int64_t end) {
  ty_pair c = a[i];
  for (int64_t child; (child = 2 * i + 1) < end; i = child) {
    if (child + 1 < end && WORSE(a[child + 1], a[child])) child++;
    if (!WORSE(a[child], c)) break;
    a[i] = a[child];
  }
  a[i] = c;
}

/* The first in order, so many, into a: a heap of the best so far, the worst on top. */
static void smallest(ty_pair *a, const void *v, ty_loop_type k, int64_t n, int64_t many, bool descending) {
  uint64_t flip = descending ? all_ones(k) : 0;
  keys_of(v, k, many, descending, a);
  for (int64_t i = many / 2 - 1; i >= 0; i--) sink(a, i, many);
  const float *x = v;
  float bar = k == TY_IN_F32 ? x[a[0].at] : 0;     /* a glance at the number spares most elements their key; NaN passes */
  for (int64_t i = many; i < n; i++) {
    if (k == TY_IN_F32 && (descending ? x[i] <= bar : x[i] >= bar)) continue;
    uint64_t key = key_of(v, k, i) ^ flip;
    if (key >= a[0].key) continue;
    a[0] = (ty_pair){key, i};
    sink(a, 0, many);
    if (k == TY_IN_F32) bar = x[a[0].at];
  }
  for (int64_t end = many - 1; end > 0; end--) { ty_pair c = a[0]; a[0] = a[end]; a[end] = c; sink(a, 0, end); }
}

/* ---- along a dim ---- */

typedef struct {
  ty_call *c;
  ty_loop_type k;
  int size;
  int64_t n, take, stride, ostride, istride;
  bool descending;
  ty_dtype dtype;
  _Atomic bool failed;
} lines;

static void line_order(void *arg, char *const *ptr, int64_t line) {
  lines *w = arg;
  (void)line;
  bool few = w->take < w->n / 8, direct = w->stride == 1 && w->dtype == ty_loop_dtype[w->k];
  int64_t pairs = few ? w->take : 2 * w->n;
  ty_pair *a = ty_scratch(sizeof(ty_pair) * (size_t)pairs + (direct ? 0 : 8 * (size_t)w->n));
  if (!a) { w->failed = true; return; }
  const void *values = direct ? (void *)ptr[0] : a + pairs;
  if (!direct) ty_cpu_loops()->load[w->dtype][w->k](a + pairs, ptr[0], w->stride, w->n);
  if (few) smallest(a, values, w->k, w->n, w->take, w->descending);
  else {
    keys_of(values, w->k, w->n, w->descending, a);
    ty_sort_pairs(a, a + w->n, w->n, bits_of(w->k));
  }
  for (int64_t i = 0; i < w->take; i++) {
    memcpy(ptr[1] + i * w->ostride * w->size, ptr[0] + a[i].at * w->stride * w->size, (size_t)w->size);
    ((int64_t *)ptr[2])[i * w->istride] = a[i].at + 1;
  }
  ty_scratch_free(a);
}

static ty_status order(ty_call *c, int dim, bool descending) {
  ty_tensor *t[3] = {c->in[0].t, c->out[0], c->out[1]}, flat[3];
  for (int i = 0; i < 3; i++)
    if (t[i]->ndim == 0) { flat[i] = *t[i]; flat[i].ndim = 1; flat[i].shape[0] = flat[i].stride[0] = 1; t[i] = &flat[i]; }
  lines w = {.c = c, .k = ty_loop_type_of(c->compute), .size = ty_itemsize(t[0]), .n = t[0]->shape[dim], .take = t[1]->shape[dim],
             .stride = t[0]->stride[dim], .ostride = t[1]->stride[dim], .istride = t[2]->stride[dim],
             .descending = descending, .dtype = (ty_dtype)t[0]->dtype};
  if (c->op->id == TY_OP_topk && !c->in[0].t->ndim) w.take = c->at[TY_AT_topk_k].i;
  if (ty_numel(t[1]) == 0 || w.take == 0) return TY_OK;
  ty_each_line(t, 3, dim, ty_numel(t[0]) * 16, line_order, &w);
  return w.failed ? ty_no_memory(c->ctx, c->op->shown) : TY_OK;
}

/* ---- unique ---- */

static ty_status unique(ty_call *c) {
  ty_tensor *x;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  int64_t n = ty_numel(x), found = 0, *inverse = ty_data(c->out[1]);
  const ty_loop_type k = ty_loop_type_of(c->compute);
  const int size = ty_itemsize(x);
  ty_pair *a = ty_scratch((sizeof(ty_pair) * 2 + 8) * (size_t)TY_MAX(n, 1));
  ty_status s = a ? TY_OK : ty_no_memory(c->ctx, c->op->shown);
  if (s == TY_OK) {
    void *values = a + 2 * n;
    ty_cpu_loops()->load[x->dtype][k](values, ty_data(x), 1, n);
    keys_of(values, k, n, false, a);
    ty_sort_pairs(a, a + n, n, bits_of(k));
    uint64_t nan = k == TY_IN_F32 ? UINT32_MAX : k == TY_IN_F64 ? UINT64_MAX : 0;   /* no NaN equals another */
    for (int64_t i = 0; i < n; i++) {
      const bool first = i == 0 || a[i].key != a[i - 1].key || (k < 2 && a[i].key == nan);
      if (first) a[n + found++] = (ty_pair){.at = i};      /* where each begins */
      inverse[a[i].at] = found;
    }
    ty_meta values_meta = {.dtype = x->dtype, .ndim = 1, .shape = {found}}, counts_meta = {.dtype = TY_I64, .ndim = 1, .shape = {found}};
    s = ty_empty(c->ctx, x->storage->backend, &values_meta, &c->out[0]);
    if (s == TY_OK) s = ty_empty(c->ctx, x->storage->backend, &counts_meta, &c->out[2]);
  }
  if (s == TY_OK && n) {
    char *out = ty_data(c->out[0]);
    int64_t *counts = ty_data(c->out[2]);
    for (int64_t u = 0; u < found; u++) {
      const int64_t from = a[n + u].at, to = u + 1 < found ? a[n + u + 1].at : n;
      memcpy(out + u * size, (char *)ty_data(x) + a[from].at * size, (size_t)size);
      counts[u] = to - from;
    }
  }
  ty_scratch_free(a);
  ty_release(x);
  return s;
}

/* ---- searchsorted, bincount ---- */

/* How many of n ascending elements come before y: all that are less, or, right, not greater; NaN is the largest. Without branches, which
 * nobody could foresee. */
#define BEFORE(S, T) \
  static int64_t before_##S(const void *row, int64_t n, const void *at, bool right) { \
    const T *a = row, y = *(const T *)at; int64_t first = 0; \
    if (y != y && right) return n; \
    for (int64_t half; n > 1; n -= half) { \
      half = n / 2; \
      const T x = a[first + half - 1]; \
      first += -(int64_t)(y != y ? x == x : right ? x <= y : x < y) & half; } \
    if (n) { const T x = a[first]; first += y != y ? x == x : right ? x <= y : x < y; } \
    return first; }
BEFORE(f32, float)
BEFORE(f64, double)
BEFORE(i64, int64_t)

static ty_status as_loops_take(ty_call *c, ty_tensor *t, ty_tensor **out) {
  ty_tensor *cast;
  TY_TRY(ty_cast(c->ctx, t, ty_compute_dtype((ty_dtype)t->dtype), &cast));
  const ty_status s = ty_contiguous(c->ctx, cast, out);
  ty_release(cast);
  return s;
}

static ty_status searchsorted(ty_call *c) {
  static int64_t (*const before[TY_NLOOPTYPE])(const void *, int64_t, const void *, bool) = {before_f32, before_f64, before_i64};
  ty_tensor *s, *v;
  const bool right = c->at[TY_AT_searchsorted_right].i;
  TY_TRY(as_loops_take(c, c->in[0].t, &s));
  const ty_status st = as_loops_take(c, c->in[1].t, &v);
  if (st != TY_OK) { ty_release(s); return st; }
  const ty_loop_type k = ty_loop_type_of((ty_dtype)s->dtype);
  const int size = ty_loop_size[k];
  const int64_t n = s->shape[s->ndim - 1], per = v->ndim ? v->shape[v->ndim - 1] : 1, total = ty_numel(v);
  int64_t *out = ty_data(c->out[0]);
  #pragma omp parallel for num_threads(ty_threads_for(total * 32)) schedule(static)
  for (int64_t i = 0; i < total; i++)
    out[i] = 1 + before[k]((char *)ty_data(s) + (s->ndim > 1 ? i / per * n : 0) * size, n, (char *)ty_data(v) + i * size, right);
  ty_release(s);
  ty_release(v);
  return TY_OK;
}

static ty_status bincount(ty_call *c) {
  const ty_tensor *w = c->in[1].t;
  ty_tensor *ids;
  TY_TRY(ty_cast(c->ctx, c->in[0].t, TY_I64, &ids));
  const int64_t n = ids->shape[0], step = ids->stride[0], *id = ty_data(ids);
  int64_t top = c->at[TY_AT_bincount_minlength].i, bad = n;
  for (int64_t i = n - 1; i >= 0; i--) {
    const int64_t v = id[i * step];
    if (v < 1 || v > (int64_t)1 << 40) bad = i;
    top = TY_MAX(top, v);
  }
  ty_status s = TY_OK;
  if (bad < n) {
    const int64_t v = id[bad * step];
    s = v == 0 ? ty_fail(c, "id 0 in argument 1: ids begin at 1")
      : ty_fail(c, "id %lld in argument 1 is %s", (long long)v, v < 0 ? "negative" : "too large");
  }
  const ty_dtype d = !w ? TY_I64 : w->dtype == TY_F32 ? TY_F32 : TY_F64;
  const ty_meta m = {.dtype = d, .ndim = 1, .shape = {top}};
  if (s == TY_OK) s = ty_empty(c->ctx, c->in[0].t->storage->backend, &m, &c->out[0]);
  if (s == TY_OK && top) {
    char *out = ty_data(c->out[0]);
    memset(out, 0, c->out[0]->storage->nbytes);
    if (!w) for (int64_t i = 0; i < n; i++) ((int64_t *)(void *)out)[id[i * step] - 1]++;
    else
      for (int64_t i = 0; i < n; i++) {
        char *q = out + (id[i * step] - 1) * ty_dtype_size[d];
        ty_set(q, d, ty_get(q, d) + ty_get((char *)ty_data(w) + i * w->stride[0] * ty_itemsize(w), (ty_dtype)w->dtype));
      }
  }
  ty_release(ids);
  return s;
}

ty_status ty_cpu_sort(ty_call *c) {
  switch (c->op->id) {
    case TY_OP_sort: return order(c, (int)c->at[TY_AT_sort_dim].i, c->at[TY_AT_sort_descending].i);
    case TY_OP_topk: return order(c, (int)c->at[TY_AT_topk_dim].i, c->at[TY_AT_topk_largest].i);
    case TY_OP_unique_values: return unique(c);
    case TY_OP_searchsorted: return searchsorted(c);
    default: return bincount(c);
  }
}
