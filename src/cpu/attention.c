/* softmax(q k^T * scale + mask) v, tile by tile, so that memory grows with the length and not with its square.
 *
 * Idea (Dao et al. 2022): for a tile of queries, keep each row's running maximum and sum while tiles of keys pass; backward computes the
 * probabilities again from the rows' log-sum-exp. Dropout's row (n, h, i) takes its random blocks of the stream (core/math.h) from the
 * offset in the third result, so that backward draws the same ones.
 * Invariant: a thread takes a tile of queries, or in backward a head, and writes only its own results.
 * 16-bit operands: forward converts a tile at a time, so that a query of one row doesn't cost a copy of all keys; backward's operands are
 * converted as a whole. Where the processor multiplies bfloat16, tiles of it are multiplied, beside rows and columns of zeros
 * (ty_dnnl_tile). */
#include <math.h>
#include <omp.h>
#include <string.h>
#include "cpu.h"
#include "math.h"

#define TQ_MOST 128

typedef struct {
  ty_loop_type k;
  int size;
  int64_t heads, h, lq, lk, d, dv, tq, tk;      /* tq, tk: queries and keys of a tile */
  int64_t wd, wdv;                              /* d and dv as rows of a tile hold them: rounded up where the products take bfloat16 */
  bool native, causal;                          /* native: products of bfloat16 */
  const ty_tensor *q, *kk, *v, *mask, *dmask;   /* dmask: the mask's gradient, if it is wanted */
  double scale, drop;
  uint64_t seed, offset;
  const ty_loops *l;
} job;

static char *head_of(const ty_tensor *t, const job *j, int64_t i) {
  return (char *)ty_data(t) + (i / j->h * t->stride[0] + i % j->h * t->stride[1]) * ty_itemsize(t);
}

/* Elements between a head's rows: heads are row-major matrices. */
static int64_t ld(const ty_tensor *t) { return t->shape[2] > 1 ? t->stride[2] : TY_MAX(t->shape[3], 1); }

/* Some rows of a head, in the dtype of the products, `ld` elements apart. */
typedef struct { const char *at; int64_t ld; } rows;

/* Rows first .. first + n - 1 of a head: where they are, or converted, or beside zeros up to row `filled`, in `to`, w elements each. */
static rows rows_of(const job *j, const ty_tensor *t, int64_t head, int64_t first, int64_t n, int64_t w, int64_t filled, char *to) {
  const ty_dtype d = t->dtype;
  const int64_t apart = ld(t), width = t->shape[3];
  const char *from = head_of(t, j, head) + first * apart * ty_itemsize(t);
  if (!ty_is_16bit(d)) return (rows){from, apart};
  if (!j->native) {
    if (apart == width) j->l->load[d][j->k](to, from, 1, n * width);
    else for (int64_t i = 0; i < n; i++) j->l->load[d][j->k](to + i * w * j->size, from + i * apart * 2, 1, width);
    return (rows){to, w};
  }
  ty_tile_rows((void *)to, w, filled, d, from, apart, n, width);
  return (rows){to, w};
}

/* A tile: nq queries of a head from q0 on, nk keys from k0 on. */
typedef struct { int64_t head, q0, nq, k0, nk; } place;

/* Scales scores, rows of which are w elements apart, and adds the mask's part; or gives the factor that is left to be taken. */
static double finish_scores(const job *j, const place *t, char *s, int64_t w) {
  const ty_tensor *m = j->mask;
  if (!m && j->scale > 0) return j->scale;
  if (!m) { j->l->affine[j->k](s, s, t->nq * w, j->scale, 0); return 1; }
  for (int64_t a = 0; a < t->nq; a++) {
    const char *row = head_of(m, j, t->head) + ((t->q0 + a) * m->stride[2] + t->k0 * m->stride[3]) * ty_itemsize(m);
    j->l->masked[j->k](s + a * w * j->size, row, m->dtype == TY_BOOL, m->stride[3], t->nk, j->scale);
  }
  return 1;
}

/* s (nq x nk) = a tile's scores, without the factor that is returned */
static double scores(const job *j, const place *t, rows q, rows keys, char *s) {
  ty_gemm(j->k, 0, 1, t->nq, t->nk, j->d, q.at, q.ld, keys.at, keys.ld, 0, s, t->nk);
  return finish_scores(j, t, s, t->nk);
}

/* A score times factor, rounded as exp_sum rounds it, so that no score of a row exceeds the row's maximum. */
static double scaled(const job *j, double x, double factor) { return j->k == TY_IN_F32 ? (double)((float)factor * (float)x) : factor * x; }

/* How many of the nk keys from k0 on query i sees: the first ones. */
static int64_t seen(const job *j, int64_t i, int64_t k0, int64_t nk) { return j->causal ? TY_MAX(TY_MIN(nk, i - k0 + 1), 0) : nk; }

static void clear(const job *j, char *row, int64_t from, int64_t to) { memset(row + from * j->size, 0, (size_t)((to - from) * j->size)); }

/* Applies dropout to row[b], keys k0 + b of query i: 0, or the value scaled by 1 / (1 - drop). */
static void drop_row(const job *j, int64_t head, int64_t i, int64_t k0, int64_t nk, char *row) {
  const uint64_t first = j->offset + (uint64_t)(head * j->lq + i) * ty_drop_blocks(j->lk);
  const uint32_t least = ty_least_half(j->drop);
  const double by = 1 / (1 - j->drop);
  uint32_t r[4] = {0};
  for (int64_t b = 0; b < nk; b++) {
    const int64_t key = k0 + b;
    if (b == 0 || key % 8 == 0) ty_philox(j->seed, first + (uint64_t)key / 8, r);
    put(row, j->k, b, ty_half_word(r, key) >= least ? at(row, j->k, b) * (j->k == TY_IN_F32 ? (double)(float)by : by) : 0);
  }
}

static int64_t last_key(const job *j, int64_t q_end) { return j->causal ? TY_MIN(j->lk, q_end) : j->lk; }

/* A thread's memory for a tile of forward: scores, results, and as 16-bit operands need: rows of q, k, v, and probabilities. */
typedef struct { size_t acc, q, k, v, p, all; } room;
static room room_of(const job *j) {
  const bool half = ty_is_16bit(j->q->dtype);
  const size_t operand = j->native ? 2 : half ? (size_t)j->size : 0;
  room r = {.acc = (size_t)(j->tq * j->tk * j->size)};
  r.q = r.acc + (size_t)(j->tq * j->wdv * j->size);
  r.k = r.q + (size_t)(j->tq * j->wd) * operand;
  r.v = r.k + (size_t)(j->tk * j->wd) * operand;
  r.p = r.v + (size_t)(j->tk * j->wdv) * operand;
  r.all = r.p + (j->native ? (size_t)(j->tq * j->tk) * 2 : 0) + 64;
  return r;
}

/* Turns the scores of a tile's query a into probabilities that aren't divided by their sum yet, and scales what the query has so far
 * (acc, sum) to its new maximum (top). */
static void to_probabilities(const job *j, const place *t, int64_t a, double factor, char *row, char *acc, double *top, double *sum) {
  const int k = j->k;
  const int64_t n = seen(j, t->q0 + a, t->k0, t->nk);
  const double m = TY_MAX(scaled(j, j->l->top[k](row, n), factor), *top);       /* of NaN, exp_sum makes NaN */
  const double shift = m == -INFINITY ? 0 : m, old = *top == -INFINITY ? 0 : exp(*top - shift);
  const double part = j->l->exp_sum[k](row, row, n, factor, shift);
  clear(j, row, n, t->nk);
  if (old != 1 && *sum != 0) j->l->affine[k](acc, acc, j->dv, old, 0);
  *sum = *sum * old + part;
  *top = m;
  if (j->drop > 0) drop_row(j, t->head, t->q0 + a, t->k0, t->nk, row);
}

/* False: the products of bfloat16 aren't to be had. */
static bool forward_tile(const job *j, int64_t head, int64_t q0, char *work, const ty_tensor *o, const ty_tensor *lse) {
  const int k = j->k, size = j->size;
  const room part = room_of(j);
  const int64_t nq = TY_MIN(j->tq, j->lq - q0), rq = ty_up(nq, 16);
  char *s = work, *acc = s + part.acc;
  uint16_t *p = (void *)(s + part.p);
  double top[TQ_MOST], sum[TQ_MOST];
  for (int64_t a = 0; a < nq; a++) { top[a] = -INFINITY; sum[a] = 0; }
  memset(acc, 0, (size_t)((j->native ? rq : nq) * j->wdv * size));
  const rows q = rows_of(j, j->q, head, q0, nq, j->wd, rq, s + part.q);
  for (int64_t k0 = 0, end = last_key(j, q0 + nq); k0 < end; k0 += j->tk) {
    const int64_t nk = TY_MIN(j->tk, end - k0), w = j->native ? ty_up(nk, 32) : nk;
    const place t = {head, q0, nq, k0, nk};
    const rows keys = rows_of(j, j->kk, head, k0, nk, j->wd, w, s + part.k), values = rows_of(j, j->v, head, k0, nk, j->wdv, w, s + part.v);
    double factor;
    if (j->native) {
      if (!ty_dnnl_tile(rq, w, j->wd, (const void *)q.at, false, (const void *)keys.at, true, false, (float *)(void *)s)) return false;
      factor = finish_scores(j, &t, s, w);
    } else factor = scores(j, &t, q, keys, s);
    for (int64_t a = 0; a < nq; a++)
      to_probabilities(j, &t, a, factor, s + a * w * size, acc + a * j->wdv * size, &top[a], &sum[a]);
    if (j->native) {
      ty_tile_rows(p, w, rq, TY_F32, s, w, nq, nk);
      if (!ty_dnnl_tile(rq, j->wdv, w, p, false, (const void *)values.at, false, true, (float *)(void *)acc)) return false;
    } else ty_gemm(k, 0, 0, nq, j->dv, nk, s, nk, values.at, values.ld, 1, acc, j->wdv);
  }
  for (int64_t a = 0; a < nq; a++) {
    const bool none = sum[a] == 0;         /* no key to attend to: the result is 0, as PyTorch's */
    char *row = acc + a * j->wdv * size, *dst = head_of(o, j, head) + (q0 + a) * o->stride[2] * ty_itemsize(o);
    const bool half = ty_is_16bit(o->dtype);
    j->l->affine[k](half ? row : dst, row, j->dv, none ? 0 : 1 / sum[a], 0);
    if (half) j->l->store[o->dtype][k](dst, 1, row, j->dv);
    put(ty_data(lse), k, head * j->lq + q0 + a, none ? INFINITY : top[a] + log(sum[a]));
  }
  return true;
}

/* t, or a copy of it, with the elements of a row contiguous. */
static ty_status with_rows(ty_ctx *ctx, ty_tensor *t, ty_tensor **out) {
  bool rows = (t->shape[3] <= 1 || t->stride[3] == 1) && (t->shape[2] <= 1 || (t->stride[2] >= t->shape[3] && t->stride[2] <= INT32_MAX));
  if (!rows) return ty_contiguous(ctx, t, out);
  *out = ty_retain(t);
  return TY_OK;
}

/* Tiles, as measured: the scores of one stay within the second-level cache. native: the operands are bfloat16. */
static void divide(job *j, bool native) {
  j->native = native && j->lq >= 16 && ty_tile_pays(j->lq, j->lk, j->d);
  j->wd = j->native ? ty_up(j->d, 32) : j->d;
  j->wdv = j->native ? ty_up(j->dv, 32) : j->dv;
  j->tq = j->lq >= 2048 || j->native ? TQ_MOST : 64;
  const bool converted = ty_is_16bit(j->q->dtype) && !j->native;        /* keys of few queries: within the first-level cache */
  j->tk = converted && j->lq < 16 ? 64 : j->lk >= 512 ? 256 : 128;
}

static ty_status prepare(ty_call *c, int first, job *j, ty_tensor *held[3]) {
  ty_status s = TY_OK;
  for (int i = 0; i < 3; i++) held[i] = NULL;
  for (int i = 0; i < 3 && s == TY_OK; i++) s = with_rows(c->ctx, c->in[first + i].t, &held[i]);
  if (s != TY_OK) return s;
  const ty_tensor *q = held[0];
  const ty_dtype d = q->dtype;
  *j = (job){.k = ty_loop_type_of(ty_compute_dtype(d)), .heads = q->shape[0] * q->shape[1], .h = q->shape[1],
             .lq = q->shape[2], .lk = held[1]->shape[2], .d = q->shape[3], .dv = held[2]->shape[3], .q = q,
             .kk = held[1], .v = held[2], .mask = c->in[first + 3].t, .causal = c->at[TY_AT_attention_causal].i,
             .scale = c->at[TY_AT_attention_scale].f,
             .drop = c->at[TY_AT_attention_dropout].f, .l = ty_cpu_loops()};
  j->size = ty_loop_size[j->k];
  divide(j, d == TY_BF16);
  return TY_OK;
}

static bool forward_tiles(const job *j, const ty_call *c, int threads, size_t need, char *work) {
  const int64_t tiles = (j->lq + j->tq - 1) / j->tq;
  bool ok = true;
  if (threads > 1) {
    #pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(&& : ok)
    for (int64_t i = 0; i < j->heads * tiles; i++)
      ok = ok && forward_tile(j, i / tiles, i % tiles * j->tq, work + need * (size_t)omp_get_thread_num(), c->out[0], c->out[1]);
    return ok;
  }
  for (int64_t i = 0; ok && i < j->heads * tiles; i++) ok = forward_tile(j, i / tiles, i % tiles * j->tq, work, c->out[0], c->out[1]);
  return ok;
}

static ty_status forward(ty_call *c) {
  ty_tensor *held[3], *mask = NULL;
  job j = {0};
  ty_status s = prepare(c, 0, &j, held);
  if (s == TY_OK && j.mask && ty_is_16bit(j.mask->dtype)) {
    s = ty_cast(c->ctx, c->in[3].t, TY_F32, &mask);
    j.mask = mask;
  }
  int64_t *rng = ty_data(c->out[2]);
  if (s == TY_OK && j.drop > 0) {
    const ty_generator g = ty_cpu_take(c->ctx, (uint64_t)(j.heads * j.lq) * ty_drop_blocks(j.lk));
    j.seed = g.seed;
    j.offset = g.offset;
  }
  rng[0] = (int64_t)j.seed;
  rng[1] = (int64_t)j.offset;
  while (s == TY_OK) {
    const int threads = ty_threads_for(j.heads * j.lq * j.lk * TY_MAX(j.d, 1) / 8);
    const size_t need = room_of(&j).all;
    char *work = ty_scratch(need * (size_t)threads);
    const bool done = work && forward_tiles(&j, c, threads, need, work);
    if (!work && !j.native) s = ty_no_memory(c->ctx, c->op->shown);
    ty_scratch_free(work);
    if (done || !j.native) break;
    divide(&j, false);                     /* oneDNN couldn't, or there isn't that much memory */
  }
  for (int i = 0; i < 3; i++) ty_release(held[i]);
  ty_release(mask);
  return s;
}

/* dp = ds for n keys of a query, from k0 on: p (dp - delta), which is the mask's gradient, times the scale. */
static void slopes(const job *j, int64_t head, int64_t query, int64_t k0, int64_t n, double delta, const void *p, void *dp) {
  if (!j->dmask) { j->l->affine_times[j->k](dp, dp, p, n, j->scale, -delta * j->scale); return; }
  char *of_mask = head_of(j->dmask, j, head) + (query * j->lk + k0) * j->size;
  j->l->affine_times[j->k](of_mask, dp, p, n, 1, -delta);
  j->l->affine[j->k](dp, of_mask, n, j->scale, 0);
}

/* One head's gradients. For each pair of tiles: p = exp(scores - lse), dv += p^T g, ds = p (g v^T - delta), dq += ds k,
   dk += ds^T q. */
static void backward_head(const job *j, int64_t head, char *work, const ty_tensor *g, const ty_tensor *o,
  const ty_tensor *lse, ty_tensor *const *out) {
  int k = j->k, size = j->size;
  char *p = work, *dp = p + j->tq * j->tk * size, *gh = head_of(g, j, head), *oh = head_of(o, j, head), *dst[3];
  const char *qh = head_of(j->q, j, head), *kh = head_of(j->kk, j, head), *vh = head_of(j->v, j, head);
  for (int i = 0; i < 3; i++) {
    dst[i] = head_of(out[i], j, head);
    for (int64_t a = 0; a < out[i]->shape[2]; a++) clear(j, dst[i] + a * ld(out[i]) * size, 0, out[i]->shape[3]);
  }
  for (int64_t q0 = 0; q0 < j->lq; q0 += j->tq) {
    int64_t nq = TY_MIN(j->tq, j->lq - q0);
    double delta[TQ_MOST];
    for (int64_t a = 0; a < nq; a++) {
      double s1 = 0, s2 = 0;
      j->l->dots[k](gh + (q0 + a) * ld(g) * size, oh + (q0 + a) * ld(o) * size, j->dv, 0, &s1, &s2);
      delta[a] = s2;
    }
    for (int64_t k0 = 0, end = last_key(j, q0 + nq); k0 < end; k0 += j->tk) {
      int64_t nk = TY_MIN(j->tk, end - k0);
      const rows q = {qh + q0 * ld(j->q) * size, ld(j->q)}, keys = {kh + k0 * ld(j->kk) * size, ld(j->kk)};
      const place t = {head, q0, nq, k0, nk};
      const double factor = scores(j, &t, q, keys, p);
      for (int64_t a = 0; a < nq; a++) {
        char *row = p + a * nk * size;
        int64_t n = seen(j, q0 + a, k0, nk);
        j->l->exp_sum[k](row, row, n, factor, at(ty_data(lse), k, head * j->lq + q0 + a));
        clear(j, row, n, nk);
      }
      ty_gemm(k, 0, 1, nq, nk, j->dv, gh + q0 * ld(g) * size, ld(g), vh + k0 * ld(j->v) * size, ld(j->v), 0, dp, nk);
      char *kept = p;
      if (j->drop > 0) {                   /* dv takes the probabilities after dropout, ds those before it */
        kept = dp + j->tq * j->tk * size;
        memcpy(kept, p, (size_t)(nq * nk * size));
        for (int64_t a = 0; a < nq; a++) {
          drop_row(j, head, q0 + a, k0, nk, kept + a * nk * size);
          drop_row(j, head, q0 + a, k0, nk, dp + a * nk * size);
        }
      }
      ty_gemm(k, 1, 0, nk, j->dv, nq, kept, nk, gh + q0 * ld(g) * size, ld(g), 1, dst[2] + k0 * ld(out[2]) * size, ld(out[2]));
      for (int64_t a = 0; a < nq; a++) {
        char *row = dp + a * nk * size;
        int64_t n = seen(j, q0 + a, k0, nk);
        slopes(j, head, q0 + a, k0, n, delta[a], p + a * nk * size, row);
        clear(j, row, n, nk);
      }
      ty_gemm(k, 0, 0, nq, j->d, nk, dp, nk, kh + k0 * ld(j->kk) * size, ld(j->kk), 1, dst[0] + q0 * ld(out[0]) * size, ld(out[0]));
      ty_gemm(k, 1, 0, nk, j->d, nq, dp, nk, qh + q0 * ld(j->q) * size, ld(j->q), 1, dst[1] + k0 * ld(out[1]) * size, ld(out[1]));
    }
  }
}

/* The same by products of bfloat16. A head's keys, values and their gradients are in the thread's memory as a whole, a tile of queries'
 * beside them. */
typedef struct { float *dk, *dv, *dq, *p, *dp, *kept; uint16_t *k, *v, *q, *g, *p16, *ds16; size_t all; } whole_head;
static whole_head whole_head_in(const job *j, const char *work) {       /* work NULL: for the size */
  const size_t keys = (size_t)ty_up(j->lk, 32), tq = (size_t)j->tq, pair = tq * (size_t)j->tk, wd = (size_t)j->wd, wdv = (size_t)j->wdv;
  const size_t wide[] = {keys * wd, keys * wdv, tq * wd, pair, pair, j->drop > 0 ? pair : 0},
    half[] = {keys * wd, keys * wdv, tq * wd, tq * wdv, pair, pair};
  whole_head r;
  float **f[] = {&r.dk, &r.dv, &r.dq, &r.p, &r.dp, &r.kept};
  uint16_t **h[] = {&r.k, &r.v, &r.q, &r.g, &r.p16, &r.ds16};
  size_t used = 0;
  for (int i = 0; i < 6; i++) { *f[i] = (void *)((uintptr_t)work + used); used += wide[i] * sizeof(float); }
  for (int i = 0; i < 6; i++) { *h[i] = (void *)((uintptr_t)work + used); used += half[i] * sizeof(uint16_t); }
  r.all = used + 64;
  return r;
}

static void put_rows(const job *j, ty_tensor *t, int64_t head, int64_t first, int64_t n, const float *from, int64_t w) {
  for (int64_t i = 0; i < n; i++)
    memcpy(head_of(t, j, head) + (first + i) * ld(t) * j->size, from + i * w, (size_t)t->shape[3] * sizeof(float));
}

static bool native_backward_head(const job *j, int64_t head, char *work, const ty_tensor *g, const ty_tensor *o, const ty_tensor *lse,
  ty_tensor *const *out) {
  const int k = j->k;
  const whole_head r = whole_head_in(j, work);
  const int64_t all = ty_up(j->lk, 32);
  const float *qh = (const void *)head_of(j->q, j, head), *gh = (const void *)head_of(g, j, head), *oh = (const void *)head_of(o, j, head);
  ty_tile_rows(r.k, j->wd, all, TY_F32, head_of(j->kk, j, head), ld(j->kk), j->lk, j->d);
  ty_tile_rows(r.v, j->wdv, all, TY_F32, head_of(j->v, j, head), ld(j->v), j->lk, j->dv);
  memset(r.dk, 0, sizeof *r.dk * (size_t)(all * j->wd));
  memset(r.dv, 0, sizeof *r.dv * (size_t)(all * j->wdv));
  for (int64_t q0 = 0; q0 < j->lq; q0 += j->tq) {
    const int64_t nq = TY_MIN(j->tq, j->lq - q0), rq = ty_up(nq, 32);
    ty_tile_rows(r.q, j->wd, rq, TY_F32, qh + q0 * ld(j->q), ld(j->q), nq, j->d);
    ty_tile_rows(r.g, j->wdv, rq, TY_F32, gh + q0 * ld(g), ld(g), nq, j->dv);
    memset(r.dq, 0, sizeof *r.dq * (size_t)(rq * j->wd));
    double delta[TQ_MOST] = {0}, unused = 0;
    for (int64_t a = 0; a < nq; a++)
      j->l->dots[k](gh + (q0 + a) * ld(g), oh + (q0 + a) * ld(o), j->dv, 0, &unused, &delta[a]);
    for (int64_t k0 = 0, end = last_key(j, q0 + nq); k0 < end; k0 += j->tk) {
      const int64_t nk = TY_MIN(j->tk, end - k0), w = ty_up(nk, 32);
      const uint16_t *keys = r.k + k0 * j->wd, *values = r.v + k0 * j->wdv;
      if (!ty_dnnl_tile(rq, w, j->wd, r.q, false, keys, true, false, r.p) ||
          !ty_dnnl_tile(rq, w, j->wdv, r.g, false, values, true, false, r.dp)) return false;
      const place t = {head, q0, nq, k0, nk};
      const double factor = finish_scores(j, &t, (char *)r.p, w);
      for (int64_t a = 0; a < nq; a++) {
        float *p = r.p + a * w, *dp = r.dp + a * w, *kept = p;
        const int64_t n = seen(j, q0 + a, k0, nk);
        j->l->exp_sum[k](p, p, n, factor, at(ty_data(lse), k, head * j->lq + q0 + a));
        clear(j, (char *)p, n, w);
        if (j->drop > 0) {                 /* dv takes the probabilities after dropout, ds those before it */
          kept = memcpy(r.kept, p, (size_t)nk * sizeof(float));
          drop_row(j, head, q0 + a, k0, nk, (char *)kept);
          drop_row(j, head, q0 + a, k0, nk, (char *)dp);
        }
        ty_tile_rows(r.p16 + a * w, w, 1, TY_F32, kept, w, 1, nk);
        slopes(j, head, q0 + a, k0, n, delta[a], p, dp);
        ty_tile_rows(r.ds16 + a * w, w, 1, TY_F32, dp, w, 1, n);
      }
      memset(r.p16 + nq * w, 0, (size_t)((rq - nq) * w) * sizeof *r.p16);
      memset(r.ds16 + nq * w, 0, (size_t)((rq - nq) * w) * sizeof *r.ds16);
      if (!ty_dnnl_tile(w, j->wdv, rq, r.p16, true, r.g, false, true, r.dv + k0 * j->wdv) ||
          !ty_dnnl_tile(rq, j->wd, w, r.ds16, false, keys, false, true, r.dq) ||
          !ty_dnnl_tile(w, j->wd, rq, r.ds16, true, r.q, false, true, r.dk + k0 * j->wd)) return false;
    }
    put_rows(j, out[0], head, q0, nq, r.dq, j->wd);
  }
  put_rows(j, out[1], head, 0, j->lk, r.dk, j->wd);
  put_rows(j, out[2], head, 0, j->lk, r.dv, j->wdv);
  return true;
}

static bool gradient_of_head(const job *j, int64_t head, char *work, const ty_call *c, const ty_tensor *g, const ty_tensor *o) {
  if (j->dmask && j->causal) clear(j, head_of(j->dmask, j, head), 0, j->lq * j->lk);         /* what no query sees stays 0 */
  if (j->native) return native_backward_head(j, head, work, g, o, c->in[6].t, c->out);
  backward_head(j, head, work, g, o, c->in[6].t, c->out);
  return true;
}

/* grad, q, k, v, mask, out, lse, rng, in float32 or float64; native: they were bfloat16 */
static ty_status gradients(ty_call *c, bool native) {
  ty_tensor *held[3], *g = NULL, *o = NULL;
  job j = {0};
  ty_status s = prepare(c, 1, &j, held);
  if (s == TY_OK) s = with_rows(c->ctx, c->in[0].t, &g);
  if (s == TY_OK) s = with_rows(c->ctx, c->in[5].t, &o);
  if (s == TY_OK) {
    const int64_t *rng = ty_data(c->in[7].t);
    j.seed = (uint64_t)rng[0];
    j.offset = (uint64_t)rng[1];
    j.dmask = c->op->id == TY_OP_attention_backward_with_mask ? c->out[3] : NULL;
    divide(&j, native);
  }
  while (s == TY_OK) {
    const int threads = TY_MIN(ty_threads_for(j.heads * j.lq * j.lk * TY_MAX(j.d, 1) / 4), (int)TY_MAX(j.heads, 1));
    const size_t need = j.native ? whole_head_in(&j, NULL).all : (size_t)(3 * j.tq * j.tk * j.size + 64);
    char *work = ty_scratch(need * (size_t)threads);
    bool done = work != NULL;
    if (!work) s = j.native ? TY_OK : ty_no_memory(c->ctx, c->op->shown);
    else if (threads > 1) {
      #pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(&& : done)
      for (int64_t i = 0; i < j.heads; i++) done = done && gradient_of_head(&j, i, work + need * (size_t)omp_get_thread_num(), c, g, o);
    } else for (int64_t i = 0; done && i < j.heads; i++) done = gradient_of_head(&j, i, work, c, g, o);
    ty_scratch_free(work);
    if (done || !j.native) break;
    divide(&j, false);                     /* oneDNN couldn't, or there isn't that much memory */
  }
  for (int i = 0; i < 3; i++) ty_release(held[i]);
  ty_release(g);
  ty_release(o);
  return s;
}
static ty_status backward(ty_call *c) { return gradients(c, false); }
static ty_status native_backward(ty_call *c) { return gradients(c, true); }

ty_status ty_cpu_attention(ty_call *c) {
  if (c->op->id == TY_OP_attention) return forward(c);
  return ty_widened(c, c->in[1].t->dtype == TY_BF16 ? native_backward : backward);
}
