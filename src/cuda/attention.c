/* Attention, by the first of these ways that takes the call: few queries by an own kernel; cuDNN; 16 bits by the own tensor-core kernel
 * (dropout, what cuDNN refuses); matrix products; the own kernel by tiles.
 *
 * Idea: as products (float32, wide heads), the scores of some heads at a time are in memory, as many heads as fill a device. Scores are
 * float32 also for 16-bit operands.
 * Invariant: dropout's random numbers, and rows that see no key, are the same in every way (kernels/attention.cuh). */
#include <string.h>
#include "dnn.h"

#define SCORES ((int64_t)32 << 20)      /* in memory at once: the products of fewer heads leave most of a large GPU idle */
#define SHORT 64                        /* for up to so many queries and keys the tiles need one launch, and little time */

static ty_k_heads heads_of(const ty_tensor *t) {
  ty_k_heads h = {.p = ty_data(t)};
  memcpy(h.stride, t->stride, sizeof h.stride);
  return h;
}

/* ---- by a library ---- */

ty_status ty_give(ty_call *c, int gpu, const ty_k_attention *a, cudaStream_t s, ty_given *x) {
  const int64_t n = x->k.shape[0] * x->k.shape[1] * x->k.shape[2] * x->k.ld;
  if (a->mask.p) {
    TY_TRY(ty_cuda_new(c, gpu, TY_F32, 1, &n, &x->bias));
    x->k.bias = ty_data(x->bias);
    TY_TRY(ty_cuda_launched(c, gpu, ty_k_attention_bias(a, &x->k, s)));
  }
  return TY_OK;
}

void ty_given_end(ty_given *x) { ty_release(x->bias); }

/* n of a's batches, from `first` on */
static ty_k_attention batches_of(const ty_k_attention *a, int64_t first, int64_t n) {
  ty_k_attention b = *a;
  ty_k_heads *const t[9] = {&b.q, &b.k, &b.v, &b.o, &b.g, &b.dq, &b.dk, &b.dvalue, &b.mask};
  for (int i = 0; i < 9; i++) {
    const int64_t size = (int64_t)ty_dtype_size[i == 8 ? a->mask_dtype : a->dtype];
    if (t[i]->p) t[i]->p = (const char *)t[i]->p + first * t[i]->stride[0] * size;
  }
  b.lse = (float *)a->lse + first * a->h * a->lq;
  b.heads = n * a->h;
  return b;
}

/* How many batches a library call takes, given the room for masks and the library's limit, spread evenly; 0: not even one. */
static int64_t batches_at_once(const ty_k_attention *a) {
  const ty_given x = ty_given_of(a);
  const int64_t batches = a->heads / a->h, most = ty_dnn_given_at_once();
  int64_t n = TY_MIN(batches, TY_DNN_BATCHES);
  if (a->mask.p) {
    const int64_t numbers = x.k.shape[1] * x.k.shape[2] * x.k.ld;
    const bool spread = a->g.p && a->mask.stride[2] == 0;      /* the same for all queries: each gets a copy */
    if (numbers > (spread ? most : INT32_MAX)) return 0;
    if (x.k.shape[0] > 1) n = TY_MIN(n, most / TY_MAX(numbers, 1));
  }
  const int64_t runs = n ? (batches + n - 1) / n : 0;
  return runs ? (batches + runs - 1) / runs : 0;
}

static ty_status by_library(ty_call *c, int gpu, const ty_k_attention *a, ty_stream *s, bool *taken) {
  const int64_t batches = a->heads / a->h, n = batches_at_once(a);
  *taken = n > 0 && ty_core->flags->cudnn_sdp;
  for (int64_t i = 0; i < batches && *taken; i += n) {
    const ty_k_attention b = batches_of(a, i, TY_MIN(n, batches - i));
    TY_TRY(ty_dnn_attend(c, gpu, &b, s, taken));
  }
  return *taken && a->mask.p && !a->g.p ? ty_cuda_launched(c, gpu, ty_k_attention_unseen(a, s->s)) : TY_OK;
}

/* ---- as products ---- */

/* A matrix for each head, step elements apart. made: NULL, or the tensor made for them, to be released. */
typedef struct { ty_tensor *made; ty_dtype dtype; char *p; int64_t rows, cols, ld, step; } matrices;

/* The matrices of t: in place where BLAS can read them, else of a copy. */
static ty_status matrices_of(ty_call *c, const ty_tensor *t, matrices *m) {
  const bool in_line = t->stride[3] == 1 && t->stride[2] >= t->shape[3] &&
    (t->shape[0] == 1 || t->shape[1] == 1 || t->stride[0] == t->stride[1] * t->shape[1]);
  if (!in_line) {
    TY_TRY(ty_contiguous(c->ctx, (ty_tensor *)t, &m->made));
    t = m->made;
  }
  m->dtype = t->dtype;
  m->p = ty_data(t);
  m->rows = t->shape[2];
  m->cols = t->shape[3];
  m->ld = TY_MAX(t->stride[2], m->cols);
  m->step = t->shape[1] == 1 ? t->stride[0] : t->stride[1];
  return TY_OK;
}

/* New matrices of dtype d for n heads. */
static ty_status new_matrices(ty_call *c, int gpu, ty_dtype d, int64_t n, int64_t rows, int64_t cols, matrices *m) {
  const int64_t shape[3] = {n, rows, cols};
  TY_TRY(ty_cuda_new(c, gpu, d, 3, shape, &m->made));
  m->dtype = d;
  m->p = ty_data(m->made);
  m->rows = rows;
  m->cols = m->ld = cols;
  m->step = rows * cols;
  return TY_OK;
}

/* Matrices for a result: its own where it is contiguous, else new ones, for into_result to copy there. */
static ty_status matrices_for(ty_call *c, int gpu, ty_tensor *o, matrices *m) {
  return ty_is_contiguous(o) ? matrices_of(c, o, m)
    : new_matrices(c, gpu, o->dtype, o->shape[0] * o->shape[1], o->shape[2], o->shape[3], m);
}

static cudaError_t into_result(const ty_tensor *o, const matrices *m, cudaStream_t s) {
  if (!m->made) return cudaSuccess;
  ty_tensor whole = *o;                    /* m as o sees it */
  whole.storage = m->made->storage;
  whole.offset = m->made->offset;
  for (int d = 3; d >= 0; d--) whole.stride[d] = d == 3 ? 1 : whole.stride[d + 1] * whole.shape[d + 1];
  return ty_cuda_convert(o, &whole, s);
}

/* of_chunk: m holds the current chunk's heads alone, else all heads */
typedef struct { const matrices *m; bool turned, of_chunk; } factor;
/* to = a b, for n heads from `first` on */
static ty_status multiply(ty_call *c, int gpu, int64_t first, int64_t n, factor a, factor b, factor to) {
  bool sums;
#define AT(f) (f.m->p + (f.of_chunk ? 0 : first * f.m->step * (int64_t)ty_dtype_size[f.m->dtype]))
  const ty_k_product p = {.dtype = a.m->dtype, .wide = to.m->dtype != a.m->dtype, .ta = a.turned, .tb = b.turned, .batch = n,
    .m = to.m->rows, .n = to.m->cols, .k = a.turned ? a.m->rows : a.m->cols, .lda = a.m->ld, .ldb = b.m->ld, .stride_a = a.m->step,
    .stride_b = b.m->step, .a = AT(a), .b = AT(b), .c = AT(to)};
#undef AT
  return ty_cuda_multiply(c, gpu, &p, &sums);
}

/* Matrix i of m as it is, or transposed; from S on they are a chunk's. */
#define OF(i) (factor){&m[i], false, i >= S}
#define TURNED(i) (factor){&m[i], true, i >= S}

/* *done false: there was no memory, and nothing has been written. */
static ty_status by_products(ty_call *c, int gpu, const ty_k_attention *a, cudaStream_t s, bool *done) {
  /* operands, results; for a chunk of heads the scores S and DP, which become P and DS, in place where the dtype is the same */
  enum { Q, K, V, G, O, DQ, DK, DV, S, DP, P, DS, ALL };
  const bool back = a->g.p, same = !ty_is_16bit(a->dtype);
  const int64_t each = a->lq * a->lk, chunk = TY_MIN(TY_MAX(SCORES / each, 1), a->heads);
  const ty_dtype d = a->dtype, stat = same ? d : TY_F32;
  const ty_operand *in = c->in + back;
  const int first = back ? DQ : O, results = back ? 3 : 1, scores = back ? 2 : 1;
  matrices m[ALL] = {0};
  ty_status st = TY_OK;
  for (int i = Q; i <= V && st == TY_OK; i++) st = matrices_of(c, in[i].t, &m[i]);
  if (st == TY_OK && back) st = matrices_of(c, c->in[0].t, &m[G]);
  for (int i = 0; i < results && st == TY_OK; i++) st = matrices_for(c, gpu, c->out[i], &m[first + i]);
  for (int i = 0; i < scores && st == TY_OK; i++) {
    st = new_matrices(c, gpu, stat, chunk, a->lq, a->lk, &m[S + i]);
    if (st == TY_OK && !same) st = new_matrices(c, gpu, d, chunk, a->lq, a->lk, &m[P + i]);
    if (same) { m[P + i] = m[S + i]; m[P + i].made = NULL; }
  }
  *done = st != TY_OOM;
  for (int64_t h = 0; h < a->heads && st == TY_OK; h += chunk) {
    const int64_t n = TY_MIN(chunk, a->heads - h);
    const ty_k_attention_scores r = {.a = a, .head = h, .heads = n, .scores = m[S].p, .dp = m[DP].p, .p = m[P].p, .ds = m[DS].p};
    st = multiply(c, gpu, h, n, OF(Q), TURNED(K), OF(S));
    if (st == TY_OK && back) st = multiply(c, gpu, h, n, OF(G), TURNED(V), OF(DP));
    if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_attention_rows(&r, s));
    if (st == TY_OK && !back) st = multiply(c, gpu, h, n, OF(P), OF(V), OF(O));
    if (st == TY_OK && back) st = multiply(c, gpu, h, n, OF(DS), OF(K), OF(DQ));
    if (st == TY_OK && back) st = multiply(c, gpu, h, n, TURNED(DS), OF(Q), OF(DK));
    if (st == TY_OK && back) st = multiply(c, gpu, h, n, TURNED(P), OF(G), OF(DV));
  }
  for (int i = 0; i < results && st == TY_OK; i++) st = ty_cuda_launched(c, gpu, into_result(c->out[i], &m[first + i], s));
  for (int i = 0; i < ALL; i++) ty_release(m[i].made);
  return *done ? st : TY_OK;
}

/* The mask's gradient, row-major, from the deltas: as products, for it has as many numbers as the scores. */
static ty_status mask_gradient(ty_call *c, int gpu, ty_k_attention a, cudaStream_t s) {
  enum { Q, K, V, G, S, DP, ALL };
  const int64_t each = a.lq * a.lk, chunk = TY_MIN(TY_MAX(SCORES / each, 1), a.heads);
  const ty_tensor *const in[4] = {c->in[1].t, c->in[2].t, c->in[3].t, c->in[0].t};
  const ty_dtype d = a.dtype;
  char *const out = ty_data(c->out[3]);
  matrices m[ALL] = {0};
  if (a.dv == 0) return ty_cuda_launched(c, gpu, ty_cuda_fill_number(c->out[3], ty_operand_int(0), s));
  a.slope = 1;
  ty_status st = TY_OK;
  for (int i = Q; i <= G && st == TY_OK; i++) st = matrices_of(c, in[i], &m[i]);
  for (int i = S; i <= DP && st == TY_OK; i++) st = new_matrices(c, gpu, ty_compute_dtype(d), chunk, a.lq, a.lk, &m[i]);
  if (st == TY_OK && a.d == 0) st = ty_cuda_launched(c, gpu, ty_cuda_fill_number(m[S].made, ty_operand_int(0), s));
  for (int64_t h = 0; h < a.heads && st == TY_OK; h += chunk) {
    const int64_t n = TY_MIN(chunk, a.heads - h);
    const ty_k_attention_scores r = {.a = &a, .head = h, .heads = n, .scores = m[S].p, .dp = m[DP].p,
      .ds = out + h * each * (int64_t)ty_dtype_size[d]};
    if (a.d) st = multiply(c, gpu, h, n, OF(Q), TURNED(K), OF(S));
    if (st == TY_OK) st = multiply(c, gpu, h, n, OF(G), TURNED(V), OF(DP));
    if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_attention_rows(&r, s));
  }
  for (int i = 0; i < ALL; i++) ty_release(m[i].made);
  return st;
}

static ty_status of_few(ty_call *c, int gpu, ty_k_attention *a, cudaStream_t s) {
  ty_tensor *parts = NULL;
  if (a->sections > 1) {
    const int64_t n = a->heads * a->lq * a->sections * (a->dv + 2);
    TY_TRY(ty_cuda_new(c, gpu, ty_compute_dtype(a->dtype), 1, &n, &parts));
    a->parts = ty_data(parts);
  }
  const ty_status st = ty_cuda_launched(c, gpu, ty_k_attend_few(a, s));
  ty_release(parts);
  return st;
}

static ty_status attend(ty_call *c, int gpu, const ty_k_attention *a, cudaStream_t s) {
  const int64_t each = a->lq * a->lk;
  const bool small = each == 0 || (a->lq <= SHORT && a->lk <= SHORT);
  bool done = false;
  if (ty_k_attention_mma(a)) return ty_cuda_launched(c, gpu, ty_k_attend_mma(a, s));
  if (a->g.p) TY_TRY(ty_cuda_launched(c, gpu, ty_k_attention_deltas(a, s)));
  if (!small && each <= TY_SCORES_IN_MEMORY && a->d > 0 && a->dv > 0) TY_TRY(by_products(c, gpu, a, s, &done));
  return done ? TY_OK : ty_cuda_launched(c, gpu, ty_k_attend(a, s));
}

ty_status ty_cuda_attention(ty_call *c) {
  const bool back = c->op->id != TY_OP_attention, with_mask = c->op->id == TY_OP_attention_backward_with_mask;
  const ty_operand *in = c->in + back;
  const ty_tensor *q = in[0].t, *k = in[1].t, *v = in[2].t, *mask = in[3].t;
  ty_tensor *delta = NULL;
  bool taken = false;
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  const double scale = c->at[TY_AT_attention_scale].f, dropout = c->at[TY_AT_attention_dropout].f;
  ty_k_attention a = {.dtype = q->dtype, .causal = (int)c->at[TY_AT_attention_causal].i, .scale = scale, .slope = scale,
                      .dropout = dropout, .kept = 1 / (1 - dropout), .least = ty_least_half(dropout),
                      .heads = q->shape[0] * q->shape[1], .h = q->shape[1], .lq = q->shape[2], .lk = k->shape[2],
                      .d = q->shape[3], .dv = v->shape[3], .q = heads_of(q), .k = heads_of(k), .v = heads_of(v)};
  if (mask) { a.mask = heads_of(mask); a.mask_dtype = mask->dtype; }
  if (!back) {
    a.o = heads_of(c->out[0]);
    a.lse = ty_data(c->out[1]);
    a.rng = ty_data(c->out[2]);
    if (a.heads * a.lq == 0) return TY_OK;
    const bool few = ty_k_attention_few(&a);
    if (a.dropout > 0)                     /* else rng isn't read */
      TY_TRY(ty_cuda_launched(c, gpu, ty_generator_end(gpu, ty_k_attention_begin(&a, ty_generator_begin(c->ctx, gpu), s))));
    if (!few) TY_TRY(by_library(c, gpu, &a, ty_stream_of(c->ctx, gpu), &taken));
    if (taken) return TY_OK;
    return few ? of_few(c, gpu, &a, s) : attend(c, gpu, &a, s);
  }
  a.g = heads_of(c->in[0].t);
  a.o = heads_of(c->in[5].t);
  a.lse = ty_data(c->in[6].t);
  a.rng = ty_data(c->in[7].t);
  a.dq = heads_of(c->out[0]);
  a.dk = heads_of(c->out[1]);
  a.dvalue = heads_of(c->out[2]);
  if (a.heads * a.lq * a.lk == 0) {        /* no query or no key */
    for (int i = 0; i < c->op->nout; i++) TY_TRY(ty_cuda_launched(c, gpu, ty_cuda_fill_number(c->out[i], ty_operand_int(0), s)));
    return TY_OK;
  }
  TY_TRY(by_library(c, gpu, &a, ty_stream_of(c->ctx, gpu), &taken));
  if (taken && !with_mask) return TY_OK;
  const ty_meta m = {.dtype = c->in[6].t->dtype, .ndim = 1, .shape = {a.heads * a.lq}};
  TY_TRY(ty_empty(c->ctx, &ty_gpus[gpu], &m, &delta));
  a.delta = ty_data(delta);
  ty_status st = taken ? ty_cuda_launched(c, gpu, ty_k_attention_deltas(&a, s)) : attend(c, gpu, &a, s);
  if (st == TY_OK && with_mask) st = mask_gradient(c, gpu, a, s);
  ty_release(delta);
  return st;
}
