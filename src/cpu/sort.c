/* Sorting: sort, topk, order_statistics, unique, searchsorted, bincount.
 *
 * Idea: elements become unsigned keys in the same order (NaN last, -0 as 0), so that one stable sort of keys with their positions serves
 * every dtype: by radix, skipping passes that change nothing, or by insertion for few. Where key and position fit into one word, words are
 * sorted, else pairs. Sorted keys are turned back into elements, which is faster than reading the elements in their new order. Of order
 * statistics, only elements that share their first bits with a wanted one are sorted, or none. */
#include <string.h>
#include "cpu.h"
#include "shape.h"

static inline uint64_t key_of(const void *v, ty_loop_type k, int64_t i) {
  uint64_t key;
  if (k == TY_IN_F32) {
    float x = ((const float *)v)[i];
    uint32_t u;
    x += 0.0f;
    memcpy(&u, &x, 4);
    u ^= (uint32_t)((int32_t)u >> 31) | 0x80000000u;       /* no branch, which signs in no order would mislead */
    return x != x ? UINT32_MAX : u;
  }
  if (k == TY_IN_F64) {
    double x = ((const double *)v)[i];
    x += 0.0;
    memcpy(&key, &x, 8);
    key ^= (uint64_t)((int64_t)key >> 63) | (uint64_t)1 << 63;
    return x != x ? UINT64_MAX : key;
  }
  return (uint64_t)((const int64_t *)v)[i] ^ (uint64_t)1 << 63;
}

/* out[i] = the element of the key. False: the key's element isn't unique (0, NaN). */
static inline bool element_of(uint64_t key, ty_loop_type k, void *out, int64_t i) {
  if (k == TY_IN_F32) {
    const uint32_t u = key >> 31 ? (uint32_t)key & 0x7fffffff : ~(uint32_t)key;
    memcpy((float *)out + i, &u, 4);
    return key != 0x80000000u && key != UINT32_MAX;
  }
  if (k == TY_IN_F64) {
    const uint64_t u = key >> 63 ? key & ~((uint64_t)1 << 63) : ~key;
    memcpy((double *)out + i, &u, 8);
    return key != (uint64_t)1 << 63 && key != UINT64_MAX;
  }
  ((uint64_t *)out)[i] = key ^ (uint64_t)1 << 63;
  return true;
}

static uint64_t all_ones(ty_loop_type k) { return k == TY_IN_F32 ? UINT32_MAX : UINT64_MAX; }

static void keys_of(const void *v, ty_loop_type k, int64_t n, bool descending, ty_pair *out) {
  uint64_t flip = descending ? all_ones(k) : 0;
  for (int64_t i = 0; i < n; i++) out[i] = (ty_pair){key_of(v, k, i) ^ flip, i};
}

#define SMALL 40                   /* up to so many elements, insertion is faster */
#define DIGIT(n) ((n) < 4096 ? 8 : 11)
/* Sorts a by bits from .. to - 1 of its keys; b: as much room. */
#define SORT(T, KEY, from, to) \
  if (n <= SMALL) { \
    for (int64_t i = 1; i < n; i++) { \
      const T c = a[i]; \
      int64_t j = i; \
      for (; j > 0 && KEY(a[j - 1]) > KEY(c); j--) a[j] = a[j - 1]; \
      a[j] = c; } \
    return a; } \
  int64_t count[2048]; \
  uint64_t differ = 0; \
  for (int64_t i = 1; i < n; i++) differ |= KEY(a[i]) ^ KEY(a[0]); \
  for (int shift = from; shift < (to); shift += DIGIT(n)) { \
    const uint64_t mask = ((uint64_t)1 << TY_MIN(DIGIT(n), (to) - shift)) - 1; \
    if (!(differ >> shift & mask)) continue; \
    memset(count, 0, sizeof *count * (size_t)(mask + 1)); \
    for (int64_t i = 0; i < n; i++) count[KEY(a[i]) >> shift & mask]++; \
    int64_t sum = 0; \
    for (uint64_t d = 0; d <= mask; d++) { const int64_t c = count[d]; count[d] = sum; sum += c; } \
    for (int64_t i = 0; i < n; i++) b[count[KEY(a[i]) >> shift & mask]++] = a[i]; \
    T *t = a; a = b; b = t; } \
  return a;
#define PAIRS_KEY(p) (p).key
#define WORDS_KEY(w) (w)           /* insertion compares whole words, whose lower bits are the position */
ty_pair *ty_sort_pairs(ty_pair *a, ty_pair *b, int64_t n) { SORT(ty_pair, PAIRS_KEY, 0, 64) }
uint64_t *ty_sort_words(uint64_t *a, uint64_t *b, int64_t n, int from, int to) { SORT(uint64_t, WORDS_KEY, from, to) }

int ty_bits_for(uint64_t most) { return most ? 64 - __builtin_clzll(most) : 0; }

/* Sorted keys with their positions, as words or as pairs. A word has the position in its `low` lower bits, above it the key's bits without
 * those that all keys have in common. */
typedef struct { const uint64_t *word; const ty_pair *pair; int low; uint64_t common; void *spare; } ordered;
static inline uint64_t ordered_key(const ordered *o, int64_t i) { return o->word ? o->word[i] >> o->low | o->common : o->pair[i].key; }
static inline int64_t ordered_at(const ordered *o, int64_t i) {
  return o->word ? (int64_t)(o->word[i] & (((uint64_t)1 << o->low) - 1)) : o->pair[i].at;
}

/* The bits in which keys of n elements differ, the lowest `width`; above them all keys have `common`. */
typedef struct { uint64_t flip, common, own; int width; } key_range;
static key_range range_of(uint64_t differ, uint64_t first, uint64_t flip) {
  const int width = ty_bits_for(differ);
  const uint64_t own = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
  return (key_range){.flip = flip, .common = first & ~own, .own = own, .width = width};
}

static key_range key_range_of(const void *v, ty_loop_type k, int64_t n, uint64_t flip) {
  const uint64_t first = n ? key_of(v, k, 0) : 0;
  uint64_t differ = 0;
  for (int64_t i = 1; i < n; i++) differ |= key_of(v, k, i) ^ first;
  return range_of(differ, first ^ flip, flip);
}

/* Keys by their first bits; those whose bucket isn't wanted are left out of a sort. */
typedef struct { int shift; uint8_t *wanted; int64_t many; } buckets;
static inline int64_t bucket_of(const buckets *b, uint64_t own) { return (int64_t)(own >> b->shift); }

/* room: ROOM(k, n) words; afterwards, spare has at least n words. some: all elements where NULL. */
#define ROOM(k, n) (((k) == TY_IN_F32 && (n) < (int64_t)1 << 32 ? 2 : 4) * (n))
static ordered sort_range(void *room, const void *v, ty_loop_type k, int64_t n, const key_range *r, const buckets *some) {
  const int low = ty_bits_for((uint64_t)n);
  int64_t many = 0;
  if (r->width + low > 64) {
    ty_pair *a = room;
    for (int64_t i = 0; i < n; i++) {
      const uint64_t key = key_of(v, k, i) ^ r->flip;
      a[many] = (ty_pair){key, i};
      many += some ? some->wanted[bucket_of(some, key & r->own)] : 1;
    }
    ty_pair *sorted = ty_sort_pairs(a, a + n, many);
    return (ordered){.pair = sorted, .spare = sorted == a ? a + n : a};
  }
  uint64_t *word = room;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t own = (key_of(v, k, i) ^ r->flip) & r->own;
    word[many] = own << low | (uint64_t)i;
    many += some ? some->wanted[bucket_of(some, own)] : 1;
  }
  uint64_t *sorted = ty_sort_words(word, word + n, many, low, low + r->width);
  return (ordered){.word = sorted, .low = low, .common = r->common, .spare = sorted == word ? word + n : word};
}

static ordered sort_keys(void *room, const void *v, ty_loop_type k, int64_t n, bool descending) {
  const uint64_t flip = descending ? all_ones(k) : 0;
  const key_range r = k == TY_IN_F32 ? range_of(UINT32_MAX, 0, flip) : key_range_of(v, k, n, flip);
  return sort_range(room, v, k, n, &r, NULL);
}

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

/* a = the first `many` in order, by a heap of the best so far with the worst on top. */
static void smallest(ty_pair *a, const void *v, ty_loop_type k, int64_t n, int64_t many, bool descending) {
  uint64_t flip = descending ? all_ones(k) : 0;
  keys_of(v, k, many, descending, a);
  for (int64_t i = many / 2 - 1; i >= 0; i--) sink(a, i, many);
  const float *x = v;
  float bar = k == TY_IN_F32 ? x[a[0].at] : 0;     /* comparing numbers first spares most elements their key; NaN passes */
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
  ty_loop_type k;
  int64_t n, take, stride, rstride, ostride, istride;      /* take: how many elements of a line are results */
  bool descending;
  ty_dtype dtype;
  _Atomic bool failed;
  _Atomic int64_t bad;                                     /* a rank out of range; 1: none */
} lines;

/* A line as loops take it: in place if it is contiguous and in the loops' own type, else converted into room. */
static const void *loaded(const lines *w, const char *p, void *room) {
  if (w->stride == 1 && w->dtype == ty_loop_dtype[w->k]) return p;
  ty_cpu_loops()->load[w->dtype][w->k](room, p, w->stride, w->n);
  return room;
}

/* out[i] = the element at position j of o. */
static inline void give(const ordered *o, int64_t j, const void *values, ty_loop_type k, uint64_t flip, void *out, int64_t i) {
  if (!element_of(ordered_key(o, j) ^ flip, k, out, i))
    memcpy((char *)out + i * ty_loop_size[k], (const char *)values + ordered_at(o, j) * ty_loop_size[k], (size_t)ty_loop_size[k]);
}

static void line_order(void *arg, char *const *ptr, int64_t line) {
  lines *w = arg;
  (void)line;
  const ty_loop_type k = w->k;
  const bool few = w->take < w->n / 8;
  const int64_t words = few ? 3 * w->take : ROOM(k, w->n);
  uint64_t *room = ty_scratch(8 * (size_t)(words + w->n));
  if (!room) { w->failed = true; return; }
  const void *values = loaded(w, ptr[0], room + words);
  ordered o = {.pair = (void *)room, .spare = room + 2 * w->take};
  if (few) smallest((ty_pair *)room, values, k, w->n, w->take, w->descending);
  else o = sort_keys(room, values, k, w->n, w->descending);
  void *out = w->dtype == ty_loop_dtype[k] && w->ostride == 1 ? ptr[1] : o.spare;
  int64_t *indices = (int64_t *)ptr[2];
  for (int64_t i = 0; i < w->take; i++) {
    give(&o, i, values, k, w->descending ? all_ones(k) : 0, out, i);
    indices[i * w->istride] = ordered_at(&o, i) + 1;
  }
  if (out != ptr[1]) ty_cpu_loops()->store[w->dtype][k](ptr[1], w->ostride, out, w->take);
  ty_scratch_free(room);
}

#define BUCKET_BITS(n) ((n) < 20 ? 0 : (n) < 512 ? 5 : (n) < 4096 ? 8 : (n) < 1 << 18 ? 11 : 14)

/* Marks the buckets of the ranks in b->wanted, and writes each rank's into bucket[]. less: how many elements that are less than a
 * bucket's are in buckets that aren't wanted. */
static void mark_buckets(const lines *w, const void *values, const key_range *r, buckets *b, const int64_t *rank, int64_t *bucket,
                         int64_t *less) {
  memset(b->wanted, 0, (size_t)b->many);
  memset(less, 0, 8 * (size_t)b->many);
  for (int64_t i = 0; i < w->n; i++) less[bucket_of(b, key_of(values, w->k, i) & r->own)]++;
  for (int64_t i = 0, sum = 0; i < b->many; i++) { const int64_t c = less[i]; less[i] = sum; sum += c; }
  for (int64_t i = 0; i < w->take; i++) {
    int64_t at = 0;                      /* the last bucket with fewer elements before it than the rank */
    for (int64_t step = b->many / 2; step; step /= 2) at += less[at + step] < rank[i * w->rstride] ? step : 0;
    bucket[i * w->istride] = at;
    b->wanted[at] = 1;
  }
  int64_t kept = 0;
  for (int64_t i = 0; i < b->many; i++) {
    const int64_t before = less[i], next = i + 1 < b->many ? less[i + 1] : w->n;
    less[i] = before - kept;
    if (b->wanted[i]) kept += next - before;
  }
}

#define FEW_RANKS 2                /* so many ranks of up to RANKED elements, which stay in a core's caches, are found each for itself */
#define RANKED 65536
/* out[i], indices[i]: the element of rank i of a line's values, and its position. room: ROOM words, and TY_RANKED_UNIT. */
static void rank_each(const lines *w, const void *values, const int64_t *rank, void *room, void *out, int64_t *indices) {
  const size_t size = ty_loop_size[w->k];
  for (int64_t i = 0; i < w->take; i++) {
    const int64_t at = ty_cpu_loops()->ranked[w->k](values, w->n, rank[i * w->rstride], room);
    memcpy((char *)out + (size_t)i * size, (const char *)values + (size_t)at * size, size);
    indices[i * w->istride] = at + 1;
  }
}
/* The same by sorting those that share a bucket with a wanted one. out: room for the elements, and 2 words a bucket. */
static void rank_all(const lines *w, const void *values, const int64_t *rank, void *room, void *out, int64_t *indices) {
  const int bits = BUCKET_BITS(w->n);
  const key_range r = key_range_of(values, w->k, w->n, 0);
  int64_t *less = (int64_t *)out + w->take;
  buckets b = {.shift = TY_MAX(r.width - bits, 0), .wanted = (uint8_t *)(less + ((int64_t)1 << bits)), .many = (int64_t)1 << bits};
  if (bits) mark_buckets(w, values, &r, &b, rank, indices, less);      /* until they are known, indices hold buckets */
  const ordered o = sort_range(room, values, w->k, w->n, &r, bits ? &b : NULL);
  for (int64_t i = 0; i < w->take; i++) {
    const int64_t at = rank[i * w->rstride] - 1 - (bits ? less[indices[i * w->istride]] : 0);
    give(&o, at, values, w->k, 0, out, i);
    indices[i * w->istride] = ordered_at(&o, at) + 1;
  }
}

static void line_statistics(void *arg, char *const *ptr, int64_t line) {
  lines *w = arg;
  (void)line;
  const ty_loop_type k = w->k;
  const int64_t words = ROOM(k, w->n) + TY_RANKED_UNIT, *rank = (int64_t *)ptr[1];
  for (int64_t i = 0; i < w->take; i++) {
    const int64_t r = rank[i * w->rstride];
    if (r < 1 || r > w->n) { w->bad = r; return; }
  }
  uint64_t *room = ty_scratch(8 * (size_t)(words + w->n + w->take + 2 * ((int64_t)1 << BUCKET_BITS(w->n))));
  if (!room) { w->failed = true; return; }
  const void *values = loaded(w, ptr[0], room + words);
  void *out = room + words + w->n;
  (w->take <= FEW_RANKS && w->n <= RANKED ? rank_each : rank_all)(w, values, rank, room, out, (int64_t *)ptr[3]);
  ty_cpu_loops()->store[w->dtype][k](ptr[2], w->ostride, out, w->take);
  ty_scratch_free(room);
}

static ty_status order(ty_call *c, int dim, bool descending) {
  ty_tensor *t[3] = {c->in[0].t, c->out[0], c->out[1]}, flat[3];
  for (int i = 0; i < 3; i++)
    if (t[i]->ndim == 0) { flat[i] = *t[i]; flat[i].ndim = 1; flat[i].shape[0] = flat[i].stride[0] = 1; t[i] = &flat[i]; }
  lines w = {.k = ty_loop_type_of(c->compute), .n = t[0]->shape[dim], .take = t[1]->shape[dim],
             .stride = t[0]->stride[dim], .ostride = t[1]->stride[dim], .istride = t[2]->stride[dim],
             .descending = descending, .dtype = t[0]->dtype};
  if (c->op->id == TY_OP_topk && !c->in[0].t->ndim) w.take = c->at[TY_AT_topk_k].i;
  if (ty_numel(t[1]) == 0 || w.take == 0) return TY_OK;
  ty_each_line(t, 3, dim, ty_numel(t[0]) * 16, line_order, &w);
  return w.failed ? ty_no_memory(c->ctx, c->op->shown) : TY_OK;
}

static ty_status order_statistics(ty_call *c) {
  ty_tensor *t[4] = {c->in[0].t, c->in[1].t, c->out[0], c->out[1]};
  const int dim = (int)c->at[TY_AT_order_statistics_dim].i;
  lines w = {.k = ty_loop_type_of(c->compute), .n = t[0]->shape[dim], .take = t[1]->shape[dim], .stride = t[0]->stride[dim],
             .rstride = t[1]->stride[dim], .ostride = t[2]->stride[dim], .istride = t[3]->stride[dim],
             .dtype = t[0]->dtype, .bad = 1};
  if (ty_numel(t[2]) == 0) return TY_OK;
  ty_each_line(t, 4, dim, ty_numel(t[0]) * 4, line_statistics, &w);
  if (w.bad != 1) return ty_fail(c, "rank %lld must be in 1..%lld", (long long)w.bad, (long long)w.n);
  return w.failed ? ty_no_memory(c->ctx, c->op->shown) : TY_OK;
}

/* ---- unique ---- */

static ty_status unique(ty_call *c) {
  ty_tensor *x;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  int64_t n = ty_numel(x), found = 0, *inverse = ty_data(c->out[1]);
  const ty_loop_type k = ty_loop_type_of(c->compute);
  const int size = ty_itemsize(x);
  uint64_t *room = ty_scratch(8 * (size_t)(ROOM(k, n) + TY_MAX(n, 1)));
  ordered o = {0};
  int64_t *begins = NULL;
  ty_status s = room ? TY_OK : ty_no_memory(c->ctx, c->op->shown);
  if (s == TY_OK) {
    void *values = room + ROOM(k, n);
    ty_cpu_loops()->load[x->dtype][k](values, ty_data(x), 1, n);
    o = sort_keys(room, values, k, n, false);
    begins = o.spare;
    const uint64_t nan = k == TY_IN_F32 ? UINT32_MAX : k == TY_IN_F64 ? UINT64_MAX : 0;   /* no NaN equals another */
    for (int64_t i = 0; i < n; i++) {
      const uint64_t key = ordered_key(&o, i);
      if (i == 0 || key != ordered_key(&o, i - 1) || (ty_is_float_loop(k) && key == nan)) begins[found++] = i;
      inverse[ordered_at(&o, i)] = found;
    }
    ty_meta values_meta = {.dtype = x->dtype, .ndim = 1, .shape = {found}}, counts_meta = {.dtype = TY_I64, .ndim = 1, .shape = {found}};
    s = ty_empty(c->ctx, x->storage->backend, &values_meta, &c->out[0]);
    if (s == TY_OK) s = ty_empty(c->ctx, x->storage->backend, &counts_meta, &c->out[2]);
  }
  if (s == TY_OK && n) {
    char *out = ty_data(c->out[0]);
    int64_t *counts = ty_data(c->out[2]);
    for (int64_t u = 0; u < found; u++) {
      const int64_t from = begins[u], to = u + 1 < found ? begins[u + 1] : n;
      memcpy(out + u * size, (char *)ty_data(x) + ordered_at(&o, from) * size, (size_t)size);
      counts[u] = to - from;
    }
  }
  ty_scratch_free(room);
  ty_release(x);
  return s;
}

/* ---- searchsorted, bincount ---- */

/* How many of n ascending elements come before y: those that are less, or, with right, not greater; NaN is the largest. Without branches,
 * which couldn't be predicted. */
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
  TY_TRY(ty_cast(c->ctx, t, ty_compute_dtype(t->dtype), &cast));
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
  const ty_loop_type k = ty_loop_type_of(s->dtype);
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

/* o[id[i] - 1] += w[i], float32 or float64 */
#define ADD_WEIGHTS(T, name) \
  static void name(T *o, const int64_t *id, int64_t step, const T *w, int64_t wstep, int64_t n) { \
    for (int64_t i = 0; i < n; i++) o[id[i * step] - 1] += w[i * wstep]; }
ADD_WEIGHTS(float, add_f32)
ADD_WEIGHTS(double, add_f64)
#undef ADD_WEIGHTS

static ty_status bincount(ty_call *c) {
  const ty_dtype d = !c->in[1].t ? TY_I64 : c->in[1].t->dtype == TY_F32 ? TY_F32 : TY_F64;
  ty_tensor *ids, *w = NULL;
  TY_TRY(ty_cast(c->ctx, c->in[0].t, TY_I64, &ids));
  const int64_t n = ids->shape[0], step = ids->stride[0], *id = ty_data(ids);
  int64_t least = 1, most = 0;
  for (int64_t i = 0; i < n; i++) {
    least = TY_MIN(least, id[i * step]);
    most = TY_MAX(most, id[i * step]);
  }
  ty_status s = TY_OK;
  const int64_t top = TY_MAX(c->at[TY_AT_bincount_minlength].i, most);
  if (least < 1 || most > TY_BINCOUNT_MOST) {
    int64_t bad = 0;
    while (id[bad * step] >= 1 && id[bad * step] <= TY_BINCOUNT_MOST) bad++;
    const int64_t v = id[bad * step];
    s = v == 0 ? ty_fail(c, "id 0 in argument 1: ids begin at 1")
      : ty_fail(c, "id %lld in argument 1 is %s", (long long)v, v < 0 ? "negative" : "too large");
  }
  const ty_meta m = {.dtype = d, .ndim = 1, .shape = {top}};
  if (s == TY_OK && c->in[1].t) s = ty_cast(c->ctx, c->in[1].t, d, &w);
  if (s == TY_OK) s = ty_empty(c->ctx, c->in[0].t->storage->backend, &m, &c->out[0]);
  if (s == TY_OK && top) {
    void *out = ty_data(c->out[0]);
    memset(out, 0, c->out[0]->storage->nbytes);
    if (!w) for (int64_t i = 0; i < n; i++) ((int64_t *)out)[id[i * step] - 1]++;
    else if (d == TY_F32) add_f32(out, id, step, ty_data(w), w->stride[0], n);
    else add_f64(out, id, step, ty_data(w), w->stride[0], n);
  }
  ty_release(ids);
  ty_release(w);
  return s;
}

ty_status ty_cpu_sort(ty_call *c) {
  switch (c->op->id) {
    case TY_OP_sort: return order(c, (int)c->at[TY_AT_sort_dim].i, c->at[TY_AT_sort_descending].i);
    case TY_OP_topk: return order(c, (int)c->at[TY_AT_topk_dim].i, c->at[TY_AT_topk_largest].i);
    case TY_OP_order_statistics: return order_statistics(c);
    case TY_OP_unique_values: return unique(c);
    case TY_OP_searchsorted: return searchsorted(c);
    default: return bincount(c);
  }
}
