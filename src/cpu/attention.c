/* softmax(q k^T * scale + mask) v, tile by tile, so that memory grows with the length and not with its square.
 *
 * Idea (Dao et al. 2022): for a tile of queries, keep each row's running maximum and sum while tiles of keys pass; backward computes the
 * probabilities again from the rows' log-sum-exp. Dropout's row (n, h, i) takes its random blocks of the stream (core/math.h) from the
 * offset in the third result, so that backward draws the same ones.
 * Invariant: a thread takes a tile of queries, or in backward a head, and writes only its own results. */
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
  const ty_tensor *q, *kk, *v, *mask;
  bool causal;
  double scale, drop;
  uint64_t seed, offset;
  const ty_loops *l;
} job;

static char *head_of(const ty_tensor *t, const job *j, int64_t i) {
  return (char *)ty_data(t) + (i / j->h * t->stride[0] + i % j->h * t->stride[1]) * ty_itemsize(t);
}

/* Elements between a head's rows: heads are row-major matrices. */
static int64_t ld(const ty_tensor *t) { return t->shape[2] > 1 ? t->stride[2] : TY_MAX(t->shape[3], 1); }

/* s (nq x nk) = the scores of queries from q0 on and keys from k0 on, without the factor that is returned */
static double scores(const job *j, int64_t head, int64_t q0, int64_t nq, int64_t k0, int64_t nk, char *s) {
  int k = j->k;
  ty_gemm(k, 0, 1, nq, nk, j->d, head_of(j->q, j, head) + q0 * ld(j->q) * j->size, ld(j->q),
    head_of(j->kk, j, head) + k0 * ld(j->kk) * j->size, ld(j->kk), 0, s, nk);
  if (!j->mask && j->scale > 0) return j->scale;
  j->l->affine[k](s, s, nq * nk, j->scale, 0);
  if (j->mask) {
    const ty_tensor *m = j->mask;
    char *p = head_of(m, j, head);
    for (int64_t a = 0; a < nq; a++)
      for (int64_t b = 0; b < nk; b++) {
        const char *e = p + ((q0 + a) * m->stride[2] + (k0 + b) * m->stride[3]) * ty_itemsize(m);
        if (m->dtype == TY_BOOL) { if (!*e) put(s, k, a * nk + b, -INFINITY); }
        else put(s, k, a * nk + b, at(s, k, a * nk + b) + at(e, k, 0));
      }
  }
  return 1;
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

static void forward_tile(const job *j, int64_t head, int64_t q0, char *work, const ty_tensor *o, const ty_tensor *lse) {
  int k = j->k, size = j->size;
  int64_t nq = TY_MIN(j->tq, j->lq - q0);
  char *s = work, *acc = s + j->tq * j->tk * size;
  double top[TQ_MOST], sum[TQ_MOST];
  for (int64_t a = 0; a < nq; a++) { top[a] = -INFINITY; sum[a] = 0; }
  memset(acc, 0, (size_t)(nq * j->dv * size));
  for (int64_t k0 = 0, end = last_key(j, q0 + nq); k0 < end; k0 += j->tk) {
    int64_t nk = TY_MIN(j->tk, end - k0);
    double factor = scores(j, head, q0, nq, k0, nk, s);
    for (int64_t a = 0; a < nq; a++) {
      char *row = s + a * nk * size;
      int64_t n = seen(j, q0 + a, k0, nk);
      double m = -INFINITY;
      if (n) j->l->row[TY_OP_amax][k](&m, row, n);
      m = scaled(j, m, factor);
      m = m != m ? m : TY_MAX(m, top[a]);
      double shift = m == -INFINITY ? 0 : m, old = top[a] == -INFINITY ? 0 : exp(top[a] - shift);
      double part = j->l->exp_sum[k](row, row, n, factor, shift);
      clear(j, row, n, nk);
      if (old != 1 && sum[a] != 0) j->l->affine[k](acc + a * j->dv * size, acc + a * j->dv * size, j->dv, old, 0);
      sum[a] = sum[a] * old + part;
      top[a] = m;
      if (j->drop > 0) drop_row(j, head, q0 + a, k0, nk, row);
    }
    ty_gemm(k, 0, 0, nq, j->dv, nk, s, nk, head_of(j->v, j, head) + k0 * ld(j->v) * size, ld(j->v), 1, acc, j->dv);
  }
  for (int64_t a = 0; a < nq; a++) {
    bool none = sum[a] == 0;             /* no key to attend to: the result is 0, as PyTorch's */
    char *dst = head_of(o, j, head) + (q0 + a) * o->stride[2] * size;
    j->l->affine[k](dst, acc + a * j->dv * size, j->dv, none ? 0 : 1 / sum[a], 0);
    put(ty_data(lse), k, head * j->lq + q0 + a, none ? INFINITY : top[a] + log(sum[a]));
  }
}

/* t, or a copy of it, with the elements of a row contiguous. */
static ty_status with_rows(ty_ctx *ctx, ty_tensor *t, ty_tensor **out) {
  bool rows = (t->shape[3] <= 1 || t->stride[3] == 1) && (t->shape[2] <= 1 || (t->stride[2] >= t->shape[3] && t->stride[2] <= INT32_MAX));
  if (!rows) return ty_contiguous(ctx, t, out);
  *out = ty_retain(t);
  return TY_OK;
}

static ty_status prepare(ty_call *c, int first, job *j, ty_tensor *held[3]) {
  ty_status s = TY_OK;
  for (int i = 0; i < 3; i++) held[i] = NULL;
  for (int i = 0; i < 3 && s == TY_OK; i++) s = with_rows(c->ctx, c->in[first + i].t, &held[i]);
  if (s != TY_OK) return s;
  const ty_tensor *q = held[0];
  *j = (job){.k = ty_loop_type_of((ty_dtype)q->dtype), .heads = q->shape[0] * q->shape[1], .h = q->shape[1],
             .lq = q->shape[2], .lk = held[1]->shape[2], .d = q->shape[3], .dv = held[2]->shape[3], .q = q,
             .kk = held[1], .v = held[2], .mask = c->in[first + 3].t, .causal = c->at[TY_AT_attention_causal].i,
             .scale = c->at[TY_AT_attention_scale].f,
             .drop = c->at[TY_AT_attention_dropout].f, .l = ty_cpu_loops()};
  j->size = ty_loop_size[j->k];
  j->tq = j->lq >= 2048 ? TQ_MOST : 64;     /* as measured: the scores of a tile stay within the second-level cache */
  j->tk = j->lk >= 512 ? 256 : 128;
  return TY_OK;
}

static ty_status forward(ty_call *c) {
  ty_tensor *held[3];
  job j = {0};
  ty_status s = prepare(c, 0, &j, held);
  int64_t *rng = ty_data(c->out[2]), tiles = s == TY_OK ? (j.lq + j.tq - 1) / j.tq : 0;
  if (s == TY_OK && j.drop > 0) {
    const ty_generator g = ty_cpu_take(c->ctx, (uint64_t)(j.heads * j.lq) * ty_drop_blocks(j.lk));
    j.seed = g.seed;
    j.offset = g.offset;
  }
  rng[0] = (int64_t)j.seed;
  rng[1] = (int64_t)j.offset;
  int threads = s == TY_OK ? ty_threads_for(j.heads * j.lq * j.lk * TY_MAX(j.d, 1) / 8) : 1;
  size_t need = (size_t)((j.tq * j.tk + j.tq * j.dv) * j.size + 64);
  char *work = s == TY_OK ? ty_scratch(need * (size_t)threads) : NULL;
  if (s == TY_OK && !work) s = ty_no_memory(c->ctx, c->op->shown);
  if (s == TY_OK) {
    if (threads > 1) {
      #pragma omp parallel for num_threads(threads) schedule(dynamic)
      for (int64_t i = 0; i < j.heads * tiles; i++)
        forward_tile(&j, i / tiles, i % tiles * j.tq, work + need * (size_t)omp_get_thread_num(), c->out[0], c->out[1]);
    } else for (int64_t i = 0; i < j.heads * tiles; i++) forward_tile(&j, i / tiles, i % tiles * j.tq, work, c->out[0], c->out[1]);
  }
  ty_scratch_free(work);
  for (int i = 0; i < 3; i++) ty_release(held[i]);
  return s;
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
      double factor = scores(j, head, q0, nq, k0, nk, p);
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
        j->l->affine_times[k](row, row, p + a * nk * size, n, j->scale, -delta[a] * j->scale);
        clear(j, row, n, nk);
      }
      ty_gemm(k, 0, 0, nq, j->d, nk, dp, nk, kh + k0 * ld(j->kk) * size, ld(j->kk), 1, dst[0] + q0 * ld(out[0]) * size, ld(out[0]));
      ty_gemm(k, 1, 0, nk, j->d, nq, dp, nk, qh + q0 * ld(j->q) * size, ld(j->q), 1, dst[1] + k0 * ld(out[1]) * size, ld(out[1]));
    }
  }
}

static ty_status backward(ty_call *c) {     /* grad, q, k, v, mask, out, lse, rng */
  ty_tensor *held[3], *g = NULL, *o = NULL;
  job j = {0};
  ty_status s = prepare(c, 1, &j, held);
  if (s == TY_OK) s = with_rows(c->ctx, c->in[0].t, &g);
  if (s == TY_OK) s = with_rows(c->ctx, c->in[5].t, &o);
  if (s == TY_OK) {
    const int64_t *rng = ty_data(c->in[7].t);
    j.seed = (uint64_t)rng[0];
    j.offset = (uint64_t)rng[1];
    int threads = TY_MIN(ty_threads_for(j.heads * j.lq * j.lk * TY_MAX(j.d, 1) / 4), (int)TY_MAX(j.heads, 1));
    size_t need = (size_t)(3 * j.tq * j.tk * j.size + 64);
    char *work = ty_scratch(need * (size_t)threads);
    if (!work) s = ty_no_memory(c->ctx, c->op->shown);
    else if (threads > 1) {
      #pragma omp parallel for num_threads(threads) schedule(dynamic)
      for (int64_t i = 0; i < j.heads; i++) backward_head(&j, i, work + need * (size_t)omp_get_thread_num(), g, o, c->in[6].t, c->out);
    } else for (int64_t i = 0; i < j.heads; i++) backward_head(&j, i, work, g, o, c->in[6].t, c->out);
    ty_scratch_free(work);
  }
  for (int i = 0; i < 3; i++) ty_release(held[i]);
  ty_release(g);
  ty_release(o);
  return s;
}

static ty_status run(ty_call *c) { return c->op->id == TY_OP_attention ? forward(c) : backward(c); }
ty_status ty_cpu_attention(ty_call *c) { return ty_widened(c, run); }
