/* Index ops. Index tensors hold 1-based positions. In index and index_put, which users' brackets become, negative ones count from the
 * end, unless they are ids (embeddings).
 *
 * Idea: as on a GPU (src/cuda/index.c), a walk over the small tensor, each of whose elements has a place in the large one. Invariant:
 * indices are checked before anything is written; but gather checks line by line, and drops its result at a bad index. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"
#include "shape.h"

/* ---- index, index_put ---- */

typedef struct {
  int64_t n;                 /* index positions */
  int64_t *offset;           /* of each: the element offset in x */
  ty_tensor rest;            /* x without the indexed dims */
  int place, inum;           /* the first index dim in the result, and their number */
} plan;

/* Writes, or with add adds, the offsets of n contiguous indices of a dim. False: an index is out of range, and the offsets are useless. */
static bool offsets_of(int64_t *offset, const int64_t *index, int64_t n, int64_t size, int64_t least, int64_t stride, bool add) {
  const ty_loops *l = ty_cpu_loops();
  const int64_t some = 4096;
  bool fine = true;
  #pragma omp parallel for num_threads(ty_threads_for(n)) schedule(static) reduction(&& : fine)
  for (int64_t i = 0; i < n; i += some) {
    const bool these = l->places(offset + i, index + i, TY_MIN(n - i, some), size, least, stride, add);
    fine = fine && these;
  }
  return fine;
}

static ty_status make_plan(ty_call *c, const ty_tensor *x, int list, int64_t result_ndim, const int64_t *result_shape, plan *p) {
  const ty_attr *dims = &c->at[TY_AT_index_dims];
  const ty_operand *idx = c->in + c->span[list].start;
  const bool ids = c->op->id == TY_OP_index && c->at[TY_AT_index_ids].i;         /* ids don't count from the end */
  p->place = ty_index_place(dims);
  p->rest = *x;
  p->rest.ndim = 0;
  for (int i = 0; i < x->ndim; i++) {
    bool indexed = false;
    for (int j = 0; j < dims->n; j++) indexed = indexed || dims->v[j] == i;
    if (indexed) continue;
    p->rest.shape[p->rest.ndim] = x->shape[i];
    p->rest.stride[p->rest.ndim++] = x->stride[i];
  }
  p->inum = (int)result_ndim - p->rest.ndim;
  const int64_t *ishape = result_shape + p->place;
  p->n = 1;
  for (int i = 0; i < p->inum; i++) p->n *= ishape[i];
  p->offset = ty_scratch(sizeof(int64_t) * (size_t)TY_MAX(p->n, 1));
  if (!p->offset) return ty_no_memory(c->ctx, c->op->shown);
  for (int j = 0; j < dims->n; j++) {
    const ty_tensor *t = idx[j].t;
    int64_t d = dims->v[j], size = x->shape[d], st = x->stride[d];
    bool straight = ty_is_contiguous(t) && ty_numel(t) == p->n;      /* nothing broadcasts */
    if (straight && offsets_of(p->offset, ty_data(t), p->n, size, ids ? 1 : -size, st, j > 0)) continue;
    for (int64_t i = 0; i < p->n; i++) {
      int64_t rest = i, off = straight ? i : 0;
      for (int k = p->inum - 1, q = straight ? -1 : t->ndim - 1; q >= 0; k--, q--) {
        if (t->shape[q] != 1) off += rest % ishape[k] * t->stride[q];
        rest /= ishape[k];
      }
      int64_t v = ((const int64_t *)ty_data(t))[off];
      if (v == 0 || v > size || v < (ids ? 1 : -size)) {
        ty_scratch_free(p->offset);
        return v == 0 ? ty_fail(c, "index 0 for dim %lld: indices begin at 1", (long long)d + 1)
          : ids ? ty_fail(c, "index %lld is out of range 1 to %lld", (long long)v, (long long)size)
          : ty_fail(c, "index %lld is out of range for dim %lld of shape %s", (long long)v, (long long)d + 1, ty_shape_of(x));
      }
      p->offset[i] = (j ? p->offset[i] : 0) + (v < 0 ? v + size : v - 1) * st;
    }
  }
  return TY_OK;
}

/* The result-shaped tensor r at index position i: a view over the rest dims. */
static ty_tensor result_at(const plan *p, const ty_tensor *r, int64_t i) {
  ty_tensor v = *r;
  v.ndim = 0;
  for (int k = p->inum - 1; k >= 0; k--) {
    int d = p->place + k;
    v.offset += i % r->shape[d] * r->stride[d];
    i /= r->shape[d];
  }
  for (int k = 0; k < r->ndim; k++) {
    if (k >= p->place && k < p->place + p->inum) continue;
    v.shape[v.ndim] = r->shape[k];
    v.stride[v.ndim++] = r->stride[k];
  }
  return v;
}

static ty_status copy_at(ty_call *c, ty_tensor *dst, ty_tensor *src, bool add) {
  ty_call k = {.ctx = c->ctx, .op = &ty_ops[add ? TY_OP_add : TY_OP_copy], .nin = 2};
  ty_operand in[2] = {ty_operand_tensor(dst), ty_operand_tensor(src)};
  ty_attr at[1] = {{.set = true, .f = 1}};
  k.in = in;
  k.at = at;
  k.out[0] = dst;
  k.compute = ty_compute_dtype(dst->dtype);
  return add ? ty_cpu_pointwise(&k) : ty_cpu_copy(&k);
}

/* The result begins as a copy of x; for in-place ops it is x. */
static ty_status begin(ty_call *c) { return c->out[0]->storage == c->in[0].t->storage ? TY_OK : copy_at(c, c->out[0], c->in[0].t, false); }

static bool rest_is_run(const plan *p) { return ty_is_contiguous(&p->rest); }

/* Sees x, whose indexed dims follow one another, as outer x size x inner contiguous elements, and the result as outer x n x inner; false:
 * they don't lie so. */
typedef struct { int64_t outer, size, inner; } slabs;
static bool as_slabs(const ty_call *c, const ty_tensor *x, const ty_tensor *result, slabs *s) {
  const ty_attr *dims = &c->at[TY_AT_index_dims];
  const int64_t d = dims->v[0], end = d + dims->n;
  if (!ty_is_contiguous(x) || !ty_is_contiguous(result)) return false;
  for (int i = 1; i < dims->n; i++) if (dims->v[i] != d + i) return false;
  *s = (slabs){1, 1, 1};
  for (int i = 0; i < x->ndim; i++) *(i < d ? &s->outer : i < end ? &s->size : &s->inner) *= x->shape[i];
  return true;
}

#define EACH(T) for (int64_t i = 0; i < n; i++) ((T *)to)[i] = ((const T *)from)[offset[i]]
static void pick(char *to, const char *from, const int64_t *offset, int64_t n, int64_t size) {
  if (size == 4) EACH(uint32_t);
  else if (size == 8) EACH(uint64_t);
  else if (size == 2) EACH(uint16_t);
  else EACH(uint8_t);
}
#undef EACH

/* Stretches of offsets that follow one another: n elements (of inner) from `from` go to `to`. Returns their number; s NULL: only counts. */
typedef struct { int64_t to, from, n; } stretch;
static int64_t stretches_of(const plan *p, int64_t inner, stretch *s) {
  int64_t n = 0;
  for (int64_t i = 0; i < p->n; i++)
    if (i && p->offset[i] == p->offset[i - 1] + inner) { if (s) s[n - 1].n++; }
    else if (s) s[n++] = (stretch){i, p->offset[i], 1};
    else n++;
  return n;
}
static void move(char *to, const char *from, int64_t bytes) {
  if (bytes < 16 || bytes > 256) memcpy(to, from, (size_t)bytes);
  else ty_move_few(to, from, bytes);
}

#define AHEAD 8                  /* rows are read in no order: so they are prefetched so many rows ahead */

static ty_status take_out(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  ty_tensor *o = c->out[0];
  ty_status done = TY_OK;
  slabs s;
  plan p;
  TY_TRY(make_plan(c, x, 1, o->ndim, o->shape, &p));
  int64_t row = ty_numel(&p.rest), size = ty_itemsize(x);
  if (p.place == 0 && rest_is_run(&p)) {
    const char *src = ty_data(x);
    char *dst = ty_data(o);
    const int64_t some = row == 1 ? 1024 : 1;
    #pragma omp parallel for num_threads(ty_threads_for(p.n * row)) schedule(static)
    for (int64_t i = 0; i < p.n; i += some) {
      if (row == 1) pick(dst + i * size, src, p.offset + i, TY_MIN(p.n - i, some), size);
      else {
        for (int64_t at = 0; i + AHEAD < p.n && at < TY_MIN(row * size, 512); at += 64)
          __builtin_prefetch(src + p.offset[i + AHEAD] * size + at);
        memcpy(dst + i * row * size, src + p.offset[i] * size, (size_t)(row * size));
      }
    }
  } else if (as_slabs(c, x, o, &s)) {
    const char *src = ty_data(x);
    char *dst = ty_data(o);
    const int64_t run = s.inner * size;
    const int64_t n = stretches_of(&p, s.inner, NULL);
    const bool singly = s.inner == 1 && n * 4 > p.n;
    stretch *all = singly ? NULL : ty_scratch(sizeof *all * (size_t)TY_MAX(n, 1));
    if (all) stretches_of(&p, s.inner, all);
    else if (!singly) done = ty_no_memory(c->ctx, c->op->shown);
    #pragma omp parallel for num_threads(ty_threads_for(s.outer * p.n * s.inner)) schedule(static)
    for (int64_t b = 0; b < (done == TY_OK ? s.outer : 0); b++) {
      const char *from = src + b * s.size * run;
      char *to = dst + b * p.n * run;
      if (singly) pick(to, from, p.offset, p.n, size);
      else for (int64_t i = 0; i < n; i++) {
        const stretch *r = &all[i];
        if (size == 4 && r->n * s.inner == 1) ((uint32_t *)to)[r->to] = ((const uint32_t *)from)[r->from];
        else move(to + r->to * run, from + r->from * size, r->n * run);
      }
    }
    ty_scratch_free(all);
  } else
    for (int64_t i = 0; i < p.n && row && done == TY_OK; i++) {
      ty_tensor from = p.rest, to = result_at(&p, o, i);
      from.offset += p.offset[i];
      done = copy_at(c, &to, &from, false);
    }
  ty_scratch_free(p.offset);
  return done;
}

/* Which of n threads owns an offset: evenly spread, without a division. */
static int64_t owner(int64_t offset, int64_t n) {
  return (int64_t)((uint32_t)((uint64_t)offset * 0x9E3779B97F4A7C15u >> 48) * (uint32_t)n >> 16);
}

/* Writes or adds element i of from (step apart) at p's offset i, for the offsets that thread me of `all` owns. */
#define PUT(T, op) { \
    for (int64_t i = 0; i < p->n; i++) \
      if (all == 1 || owner(p->offset[i], all) == me) ((T *)to)[p->offset[i]] op ((const T *)from)[i * step]; \
    return; }
static void put_elements(const plan *p, char *to, const char *from, int64_t step, int size, bool add, int64_t me, int64_t all) {
  if (add) switch (size) {                 /* float32 or float64 */
    case 4: PUT(float, +=)
    default: PUT(double, +=)
  }
  switch (size) {
    case 1: PUT(uint8_t, =)
    case 2: PUT(uint16_t, =)
    case 4: PUT(uint32_t, =)
    default: PUT(uint64_t, =)
  }
}
#undef PUT

/* Writes (or adds) rows of b at p's offsets. One thread owns each offset, so that rows that meet there are combined in order, whatever
 * the number of threads. */
static void put_rows(const plan *p, ty_tensor *o, const ty_tensor *b, int64_t row, bool add) {
  int threads = ty_threads_for(p->n * row), k = ty_loop_type_of(o->dtype), size = ty_itemsize(o);
  ty_loop plus = ty_cpu_loops()->pointwise[TY_OP_add][k];
  const bool in_order = p->place == 0 && ty_is_contiguous(b), one = b->ndim > 0 && (p->inum == 1 || in_order);
  const int64_t step = in_order ? row : one ? b->stride[0] : 0;            /* from row to row of b */
  #pragma omp parallel num_threads(threads) if (threads > 1)
  {
    int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
    if (row == 1 && one) put_elements(p, ty_data(o), ty_data(b), step, size, add, me, all);
    else for (int64_t i = 0; i < p->n; i++) {
      if (all > 1 && owner(p->offset[i], all) != me) continue;
      char *dst = (char *)ty_data(o) + p->offset[i] * size;
      const char *src;
      if (one) src = (const char *)ty_data(b) + i * step * size;
      else { ty_tensor v = result_at(p, b, i); src = ty_data(&v); }
      if (add) plus(dst, dst, src, NULL, row, 1, 0);
      else memcpy(dst, src, (size_t)(row * size));
    }
  }
}

/* The same where the indexed dims aren't first: what meets at one place belongs to one slab, and so to one thread. */
static void put_slabs(const plan *p, const slabs *s, ty_tensor *o, const ty_tensor *b, bool add) {
  const int size = ty_itemsize(o);
  const int64_t run = s->inner * size;
  const ty_loop plus = ty_cpu_loops()->pointwise[TY_OP_add][ty_loop_type_of(o->dtype)];
  char *dst = ty_data(o);
  const char *src = ty_data(b);
  #pragma omp parallel for num_threads(ty_threads_for(s->outer * p->n * s->inner)) schedule(static)
  for (int64_t k = 0; k < s->outer; k++) {
    char *to = dst + k * s->size * run;
    const char *from = src + k * p->n * run;
    if (s->inner == 1 && add && o->dtype == TY_F32)
      for (int64_t i = 0; i < p->n; i++) ((float *)to)[p->offset[i]] += ((const float *)from)[i];
    else for (int64_t i = 0; i < p->n; i++) {
      char *at = to + p->offset[i] * size;
      if (add) plus(at, at, from + i * run, NULL, s->inner, 1, 0);
      else memcpy(at, from + i * run, (size_t)run);
    }
  }
}

/* A view of v that is broadcast to the indexed shape, which is what index would give. */
static ty_status broadcast_value(ty_call *c, const ty_tensor *v, ty_tensor *b) {
  ty_call k = *c;
  ty_attr at[1] = {c->at[TY_AT_index_put_dims]};
  k.op = &ty_ops[TY_OP_index];
  k.at = at;
  k.span[1] = c->span[2];
  TY_TRY(k.op->infer(&k));
  *b = *v;
  b->ndim = (uint8_t)k.meta[0].ndim;
  for (int i = 0; i < b->ndim; i++) {
    const int q = i - (b->ndim - v->ndim);
    b->shape[i] = k.meta[0].shape[i];
    b->stride[i] = q < 0 || v->shape[q] == 1 ? 0 : v->stride[q];
  }
  return TY_OK;
}

/* Replaces *b by a contiguous copy: b may repeat memory, as a sum's gradient does. *laid: to be released. */
static ty_status lay_out(ty_call *c, ty_tensor *b, ty_tensor **laid) {
  ty_meta m = {.dtype = b->dtype, .ndim = b->ndim};
  memcpy(m.shape, b->shape, sizeof m.shape);
  TY_TRY(ty_empty(c->ctx, c->out[0]->storage->backend, &m, laid));
  TY_TRY(ty_copy_into(c->ctx, *laid, b));
  *b = **laid;
  return TY_OK;
}

/* o[the plan's positions] = b, or + b: by rows of b, by slabs, or one position after another. number: b is one, without a backend. */
static ty_status put_plan(ty_call *c, const plan *p, ty_tensor *b, bool add, bool number) {
  ty_tensor *o = c->out[0], *laid = NULL;
  const int64_t row = ty_numel(&p->rest);
  const ty_dtype d = o->dtype;
  const int n = b->ndim;
  slabs by;
  TY_TRY(begin(c));
  if (!row) return TY_OK;
  const bool fits = !add || d == TY_F32 || d == TY_F64, by_rows = fits && p->place == 0 && rest_is_run(p);
  const bool by_slabs = fits && !by_rows && as_slabs(c, o, o, &by);
  bool rows = by_rows && (row == 1 || (n > p->inum && b->stride[n - 1] == 1));
  for (int k = p->inum; rows && k < n - 1; k++) rows = b->stride[k] == b->stride[k + 1] * b->shape[k + 1];
  ty_status s = TY_OK;
  if ((by_rows ? !rows : by_slabs && !ty_is_contiguous(b)) && !number) {
    s = lay_out(c, b, &laid);
    rows = by_rows;
  }
  if (s == TY_OK && rows) put_rows(p, o, b, row, add);
  else if (s == TY_OK && by_slabs && ty_is_contiguous(b)) put_slabs(p, &by, o, b, add);
  else for (int64_t i = 0; i < p->n && s == TY_OK; i++) {
    ty_tensor dst = p->rest, src = result_at(p, b, i);
    dst.storage = o->storage;
    dst.offset = o->offset + p->offset[i];
    s = copy_at(c, &dst, &src, add);
  }
  ty_release(laid);
  return s;
}

static ty_status put_in(ty_call *c) {
  const ty_dtype d = c->in[0].t->dtype;
  double number;
  ty_storage store = {.data = &number};
  ty_tensor num = {.dtype = d, .storage = &store}, *v = c->in[1].t, *same = NULL, b;
  if (v) TY_TRY(ty_cast(c->ctx, v, d, &same));
  else ty_set_operand(&number, d, c->in[1]);
  plan p;
  ty_status s = broadcast_value(c, v ? same : &num, &b);
  if (s == TY_OK) s = make_plan(c, c->out[0], 2, b.ndim, b.shape, &p);     /* the result has x's shape, but its own strides */
  if (s == TY_OK) {
    s = put_plan(c, &p, &b, c->at[TY_AT_index_put_accumulate].i, !v);
    ty_scratch_free(p.offset);
  }
  ty_release(same);
  return s;
}

/* ---- gather, scatter: index has as many dims as x ---- */

static ty_status bad_index(ty_call *c, int64_t v, const ty_tensor *x) {
  return v == 0 ? ty_fail(c, "index 0 in argument 'index': indices begin at 1")
                : ty_fail(c, "index %lld in argument 'index' is out of range for dim %lld of shape %s", (long long)v,
                (long long)c->at[TY_AT_gather_dim].i + 1, ty_shape_of(x));
}

/* A walk over lines of the index tensor, along its last dim unless that is short. Each line begins at a place in idx, in large (x or the
 * result, without the indexed dim's part) and in src. */
typedef struct {
  const ty_tensor *idx, *large, *src;
  int d, along;
  int64_t n, lines, istep, lstep, sstep, dstep;    /* strides along a line; dstep: the indexed dim's stride in large */
} walk;

static walk walk_of(const ty_call *c, const ty_tensor *large, const ty_tensor *src) {
  const ty_tensor *idx = c->in[1].t;
  int along = idx->ndim - 1, d = (int)c->at[TY_AT_gather_dim].i;
  walk w = {.idx = idx, .large = large, .src = src, .d = d, .along = along, .n = 1, .lines = 1};
  if (along < 0) return w;
  if (idx->shape[along] < 8)
    for (int i = along - 1; i >= 0; i--) if (idx->shape[i] > idx->shape[along]) along = i;
  for (int i = 0; i < idx->ndim; i++) *(i == along ? &w.n : &w.lines) *= idx->shape[i];
  w.along = along;
  w.istep = idx->stride[along];
  w.lstep = along == d ? 0 : large->stride[along];
  w.sstep = src ? src->stride[along] : 0;
  w.dstep = large->stride[d];
  return w;
}

typedef struct { int64_t line, at[TY_MAXDIM], i, l, s; } place;      /* at: its position in the other dims; i, l, s: in idx, large, src */

static void move_by(const walk *w, place *p, int dim, int64_t steps) {
  p->at[dim] += steps;
  p->i += steps * w->idx->stride[dim];
  if (dim != w->d) p->l += steps * w->large->stride[dim];
  if (w->src) p->s += steps * w->src->stride[dim];
}

static place place_of(const walk *w, int64_t line) {
  place p = {.line = line};
  for (int k = w->idx->ndim - 1; k >= 0 && line > 0; k--) {
    if (k == w->along) continue;
    move_by(w, &p, k, line % w->idx->shape[k]);
    line /= w->idx->shape[k];
  }
  return p;
}

/* The next line. */
static void step(const walk *w, place *p) {
  p->line++;
  for (int k = w->idx->ndim - 1; k >= 0; k--) {
    if (k == w->along) continue;
    move_by(w, p, k, 1);
    if (p->at[k] < w->idx->shape[k]) return;
    move_by(w, p, k, -p->at[k]);
  }
}

/* A thread's share: some of the lines, or, where these are few or may meet, a part of each line. */
typedef struct { int64_t first, end, from, to; } share;
static share share_of(const walk *w, bool of_lines, int t, int threads) {
  return of_lines ? (share){w->lines * t / threads, w->lines * (t + 1) / threads, 0, w->n}
    : (share){0, w->lines, w->n * t / threads, w->n * (t + 1) / threads};
}

static int64_t limit_of(const ty_call *c, const ty_tensor *x) { return x->ndim ? x->shape[c->at[TY_AT_gather_dim].i] : 1; }

/* Whether one of the line's indices from .. to - 1 is bad. */
static bool is_bad(const walk *w, const place *at, int64_t from, int64_t to, int64_t limit) {
  const int64_t *p = (const int64_t *)ty_data(w->idx) + at->i;
  int64_t bad = 0;                         /* collects sign bits, which vectorizes also without AVX */
  if (w->istep == 0) to = TY_MIN(to, from + 1);
  if (w->istep == 1) for (int64_t j = from; j < to; j++) bad |= (p[j] - 1) | (limit - p[j]);
  else for (int64_t j = from; j < to; j++) bad |= (p[j * w->istep] - 1) | (limit - p[j * w->istep]);
  return bad < 0;
}

/* The error for a line's first bad index. */
static ty_status bad_line(ty_call *c, const walk *w, int64_t line, const ty_tensor *x) {
  const int64_t *p = (const int64_t *)ty_data(w->idx) + place_of(w, line).i, limit = limit_of(c, x);
  while (*p >= 1 && *p <= limit) p += w->istep;
  return bad_index(c, *p, x);
}

/* Gives the indices as int64, or the error if one is bad. */
static ty_status check_indices(ty_call *c, const ty_tensor *idx, const ty_tensor *x, ty_tensor **out) {
  TY_TRY(ty_cast(c->ctx, (ty_tensor *)idx, TY_I64, out));
  const int64_t limit = limit_of(c, x);
  ty_operand in[2] = {c->in[0], ty_operand_tensor(*out)};
  ty_call k = *c;
  k.in = in;
  const walk w = walk_of(&k, x, NULL);
  int64_t first = w.lines;                 /* the first line with a bad index */
  const int threads = ty_threads_for(w.lines * w.n);
  #pragma omp parallel for num_threads(threads) schedule(static) reduction(min : first)
  for (int t = 0; t < threads; t++) {
    const share all = share_of(&w, w.lines >= threads, t, threads);
    for (place at = place_of(&w, all.first); at.line < all.end; step(&w, &at))
      if (is_bad(&w, &at, all.from, all.to, limit)) first = TY_MIN(first, at.line);
  }
  if (first == w.lines) return TY_OK;
  const ty_status s = bad_line(c, &w, first, x);
  ty_release(*out);
  return s;
}

/* even: the line runs along dim, and all is contiguous: the usual case */
#define MOVE(T) \
  T *q = (T *)large + l, *r = (T *)small + s; const int64_t *at = p; \
  if (even && gather) for (int64_t j = from; j < to; j++) r[j] = q[at[j] - 1]; \
  else if (even) for (int64_t j = from; j < to; j++) q[at[j] - 1] = r[j]; \
  else if (gather) for (int64_t j = from; j < to; j++) r[j * w->sstep] = q[j * w->lstep + (at[j * w->istep] - 1) * w->dstep]; \
  else for (int64_t j = from; j < to; j++) q[j * w->lstep + (at[j * w->istep] - 1) * w->dstep] = r[j * w->sstep]
/* How a written element is combined with the one that is there. */
typedef enum {
  PUT, ADD, COMBINE, PROD = COMBINE + TY_COMBINE_PROD, AMAX = COMBINE + TY_COMBINE_AMAX, AMIN = COMBINE + TY_COMBINE_AMIN
} meeting;
#define TOGETHER(a, b, S) \
  (how == ADD ? (a) + (b) : how == PROD ? (a) * (b) : how == AMAX ? max_##S((a), (b)) : min_##S((a), (b)))
#define MEET(T, S) \
  if (even && how == ADD) { \
    T *q = (T *)large + l; const T *r = (const T *)small + s; \
    for (int64_t j = from; j < to; j++) q[p[j] - 1] += r[j]; \
  } else for (int64_t j = from; j < to; j++) { \
    T *q = (T *)large + l + j * w->lstep + (p[j * w->istep] - 1) * w->dstep; \
    *q = TOGETHER(*q, ((const T *)small)[s + j * w->sstep], S); }

/* For lines in which one index serves all elements, as where an index is expanded: writes a share of whole rows. */
static void put_rows_at(const walk *w, const share *all, char *large, const char *small, int size, meeting how, ty_dtype d) {
  static const ty_op_id op_of[] = {[ADD] = TY_OP_add, [PROD] = TY_OP_mul, [AMAX] = TY_OP_maximum, [AMIN] = TY_OP_minimum};
  const int64_t *p = ty_data(w->idx), n = all->to - all->from;
  const ty_loop join = how == PUT ? NULL : ty_cpu_loops()->pointwise[op_of[how]][ty_loop_type_of(d)];
  for (place at = place_of(w, all->first); at.line < all->end; step(w, &at)) {
    char *q = large + (at.l + all->from + (p[at.i] - 1) * w->dstep) * size;
    const char *r = small + (at.s + all->from) * size;
    if (join) join(q, q, r, NULL, n, 1, 0);
    else memcpy(q, r, (size_t)(n * size));
  }
}

/* Moves elements from .. to - 1 of a line, one way or the other. */
static void move_line(const walk *w, const place *line, int64_t from, int64_t to, char *large, char *small, int size,
  bool gather, meeting how, ty_dtype d) {
  const int64_t *p = (const int64_t *)ty_data(w->idx) + line->i, l = line->l, s = line->s;
  const bool even = w->istep == 1 && w->sstep == 1 && w->dstep == 1 && w->lstep == 0;
  if (gather && !w->istep && w->lstep == 1 && w->sstep == 1)              /* one index for the line: copies a row */
    memcpy(small + (s + from) * size, large + (l + from + (*p - 1) * w->dstep) * size, (size_t)((to - from) * size));
  else if (how != PUT && d == TY_F32) { MEET(float, f32) }
  else if (how != PUT && d == TY_F64) { MEET(double, f64) }
  else if (how != PUT)
    for (int64_t j = from; j < to; j++) {
      char *q = large + (l + j * w->lstep + (p[j * w->istep] - 1) * w->dstep) * size, *r = small + (s + j * w->sstep) * size;
      if (ty_is_float(d)) ty_set(q, d, TOGETHER(ty_get(q, d), ty_get(r, d), f64));
      else if (how == AMAX || how == AMIN) ty_set_int(q, d, TOGETHER(ty_get_int(q, d), ty_get_int(r, d), i64));
      else {
        const uint64_t a = (uint64_t)ty_get_int(q, d), b = (uint64_t)ty_get_int(r, d);
        ty_set_int(q, d, (int64_t)(how == ADD ? a + b : a * b));
      }
    }
  else if (size == 4) { MOVE(uint32_t); }
  else if (size == 8) { MOVE(uint64_t); }
  else if (size == 2) { MOVE(uint16_t); }
  else { MOVE(uint8_t); }
}

static ty_status gather(ty_call *c) {      /* each line's indices are checked before their use */
  ty_tensor *idx, *x = c->in[0].t, *o = c->out[0];
  TY_TRY(ty_cast(c->ctx, c->in[1].t, TY_I64, &idx));
  ty_operand in[2] = {c->in[0], ty_operand_tensor(idx)};
  ty_call k = *c;
  k.in = in;
  const walk w = walk_of(&k, x, o);
  const int threads = ty_threads_for(w.lines * w.n * 2);
  const int64_t limit = limit_of(c, x);
  int64_t first = w.lines;
  #pragma omp parallel for num_threads(threads) schedule(static) reduction(min : first)
  for (int t = 0; t < threads; t++) {
    const share all = share_of(&w, w.lines >= threads, t, threads);
    for (place at = place_of(&w, all.first); at.line < all.end; step(&w, &at))
      if (is_bad(&w, &at, all.from, all.to, limit)) first = TY_MIN(first, at.line);
      else move_line(&w, &at, all.from, all.to, ty_data(x), ty_data(o), ty_itemsize(x), true, PUT, x->dtype);
  }
  const ty_status s = first < w.lines ? bad_line(c, &w, first, x) : TY_OK;
  ty_release(idx);
  return s;
}

/* scatter, scatter_add, scatter_combine: in order, so that the last of equal indices wins. Lines along dim don't meet, so threads share
 * the lines; other lines may meet, so each thread takes a part of every line. */
static ty_status scatter(ty_call *c) {
  ty_tensor *idx, *x = c->in[0].t, *o = c->out[0], *src = c->in[2].t;
  TY_TRY(check_indices(c, c->in[1].t, x, &idx));
  ty_status s = begin(c);
  int64_t number;
  ty_storage store = {.data = &number};
  ty_tensor num = {.dtype = x->dtype, .storage = &store};    /* a number: no steps */
  if (!src) {
    ty_set_operand(&number, x->dtype, c->in[2]);
    src = &num;
  }
  ty_operand in[2] = {c->in[0], ty_operand_tensor(idx)};
  ty_call k = *c;
  k.in = in;
  const walk w = walk_of(&k, o, src);
  const int threads = s == TY_OK ? ty_threads_for(w.lines * w.n) : 0;
  const bool own = w.d == w.along;
  const int id = c->op->id, size = ty_itemsize(x);
  const ty_dtype d = x->dtype;
  const meeting how = id == TY_OP_scatter ? PUT : id == TY_OP_scatter_add ? ADD : (meeting)(COMBINE + c->at[TY_AT_scatter_combine_how].i);
  const bool rows = w.istep == 0 && w.lstep == 1 && w.sstep == 1 && (how == PUT || d == TY_F32 || d == TY_F64);
  #pragma omp parallel for num_threads(TY_MAX(threads, 1)) schedule(static) if (threads > 1)
  for (int t = 0; t < threads; t++) {
    const share all = share_of(&w, own, t, threads);
    if (rows) { put_rows_at(&w, &all, ty_data(o), ty_data(src), size, how, d); continue; }
    for (place at = place_of(&w, all.first); at.line < all.end; step(&w, &at))
      move_line(&w, &at, all.from, all.to, ty_data(o), ty_data(src), size, false, how, d);
  }
  ty_release(idx);
  return s;
}

ty_status ty_cpu_index(ty_call *c) {
  switch (c->op->id) {                       /* 16-bit floats that meet are combined in float32, and rounded once */
    case TY_OP_index: return take_out(c);
    case TY_OP_index_put: return c->at[TY_AT_index_put_accumulate].i ? ty_widened(c, put_in) : put_in(c);
    case TY_OP_gather: return gather(c);
    case TY_OP_nonzero: return ty_cpu_nonzero(c);
    case TY_OP_bag: return ty_cpu_bag(c);
    case TY_OP_scatter: return scatter(c);
    default: return ty_widened(c, scatter);   /* scatter_add, scatter_combine */
  }
}
