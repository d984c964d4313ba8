/* Fused kernels on the CPU: a block of elements goes through all nodes before the next block begins.
 *
 * Idea: nodes are computed by the loops that single ops use, on blocks that stay in the first-level cache; a tensor that needs no conversion is
 * read and written where it is. Invariant: a block is computed node by node in their order, so that a tensor changed in place is read before it
 * is written. */
#include <string.h>
#include "cpu.h"
#include "fused.h"

_Static_assert(TY_ITER_MAX >= TY_FUSED_TENSORS, "a kernel's tensors are walked together");
#define BUFFERS 40

typedef struct {
  ty_loop loop;                                                /* OP */
  void (*load)(void *, const void *, int64_t, int64_t);        /* from the node's dtype to what it is held in */
  void (*put)(void *, int64_t, const void *, int64_t);         /* and back */
  void (*convert)(void *, int64_t, const void *, int64_t);     /* CONVERT: from what in[0] is held in to the dtype */
  double number;                                               /* NUMBER: its bits, as held */
  int buffer;
  bool exact, rounds;                                          /* held as in memory; computed too finely for the dtype */
} part;

typedef struct {
  const ty_fused *f;
  ty_iter it;
  part part[TY_FUSED_NODES];
} kernel;

typedef struct { const void *in[TY_FUSED_NODES]; bool filled[TY_FUSED_NODES]; double buf[BUFFERS][TY_BLOCK], narrow[TY_BLOCK]; } blocks;

/* in: each node's block; filled: it holds one value for all */
static void source(const kernel *w, int i, blocks *b, char *const *ptr, const int64_t *stride, int64_t at, int64_t m) {
  const ty_fused_node *n = &w->f->node[i];
  const part *q = &w->part[i];
  void *own = b->buf[q->buffer];
  if (b->filled[i]) return;
  b->in[i] = own;
  if (n->kind == TY_F_NUMBER) {
    if (n->compute == TY_F32) { float v; memcpy(&v, &q->number, 4); for (int64_t j = 0; j < m; j++) ((float *)own)[j] = v; }
    else for (int64_t j = 0; j < m; j++) memcpy((double *)own + j, &q->number, 8);
    b->filled[i] = true;
    return;
  }
  const char *src = ptr[n->tensor] + at * stride[n->tensor] * w->it.size[n->tensor];
  if (q->exact && stride[n->tensor] == 1) { b->in[i] = src; return; }
  q->load(own, src, stride[n->tensor], m);
  b->filled[i] = stride[n->tensor] == 0;
}

static void compute(const kernel *w, int i, blocks *b, char *const *ptr, const int64_t *stride, int64_t at, int64_t m) {
  const ty_fused_node *n = &w->f->node[i];
  const part *q = &w->part[i];
  const void **in = b->in;
  const int64_t step = n->to >= 0 ? stride[n->to] : 0;
  char *dst = n->to >= 0 ? ptr[n->to] + at * step * w->it.size[n->to] : NULL;
  void *own = b->buf[q->buffer], *o = step == 1 && q->exact ? (void *)dst : own;
  if (n->kind == TY_F_OP) q->loop(o, in[n->in[0]], n->nin > 1 ? in[n->in[1]] : NULL, n->nin > 2 ? in[n->in[2]] : NULL, m, n->p, n->q);
  else if (q->exact) q->convert(o, 1, in[n->in[0]], m);
  in[i] = o;
  if (q->rounds) {
    void *low = step == 1 ? (void *)dst : b->narrow;
    if (n->kind == TY_F_OP) q->put(low, 1, own, m);
    else q->convert(low, 1, in[n->in[0]], m);
    if (n->used || step != 1) q->load(own, low, 1, m);
    if (step == 1) return;
  }
  if (dst && o != dst) q->put(dst, step, own, m);
}

static void run(void *arg, char *const *ptr, const int64_t *stride, int64_t n) {
  const kernel *w = arg;
  blocks b;
  memset(b.filled, 0, sizeof(bool) * (size_t)w->f->nnode);
  for (int64_t at = 0; at < n; at += TY_BLOCK) {
    const int64_t m = TY_MIN(TY_BLOCK, n - at);
    for (int i = 0; i < w->f->nnode; i++) {
      if (w->f->node[i].kind == TY_F_OP || w->f->node[i].kind == TY_F_CONVERT) compute(w, i, &b, ptr, stride, at, m);
      else source(w, i, &b, ptr, stride, at, m);
    }
  }
}

static void prepare(part *q, const ty_fused *f, int i) {
  const ty_loops *l = ty_cpu_loops();
  const ty_fused_node *n = &f->node[i];
  const int k = ty_k(n->compute);
  q->exact = n->dtype == n->compute;
  q->rounds = ty_fused_rounds(n);
  q->load = l->load[n->dtype][k];
  q->put = l->store[n->dtype][k];
  if (n->kind == TY_F_OP) q->loop = l->pointwise[n->op->id][k];
  if (n->kind == TY_F_CONVERT) q->convert = l->store[n->dtype][ty_k(f->node[n->in[0]].compute)];
  if (n->kind != TY_F_NUMBER) return;
  if (k == 2 && n->number.kind != TY_FLOAT) memcpy(&q->number, &n->number.i, 8);
  else ty_set(&q->number, n->compute, n->number.f);
}

static bool is_source(const ty_fused_node *n) { return n->kind == TY_F_TENSOR || n->kind == TY_F_NUMBER; }

/* A buffer for each node, given on after the node's last use; those of sources stay, for what is the same in all blocks. False: too many. */
static bool share_buffers(kernel *w) {
  const ty_fused *f = w->f;
  int last[TY_FUSED_NODES], until[BUFFERS], sources = 0;
  for (int i = 0; i < f->nnode; i++) {
    last[i] = i;
    for (int k = 0; k < f->node[i].nin; k++) last[f->node[i].in[k]] = i;
  }
  for (int i = 0; i < f->nnode; i++)
    if (is_source(&f->node[i])) w->part[i].buffer = sources++;
  for (int i = 0; i < BUFFERS; i++) until[i] = -1;
  for (int i = 0; i < f->nnode; i++) {
    if (is_source(&f->node[i])) continue;
    int at = sources;
    while (at < BUFFERS && until[at] >= i) at++;
    if (at >= BUFFERS) return false;
    until[at] = last[i];
    w->part[i].buffer = at;
  }
  return sources < BUFFERS;
}

ty_status ty_cpu_fuse(ty_ctx *ctx, const ty_backend *b, ty_fused *f) {
  (void)b;
  kernel *w = ty_malloc(sizeof *w);
  if (!w) return ty_error(ctx, "out of memory"), TY_OOM;
  f->kernel = w;
  w->f = f;
  ty_iter_init(&w->it, f->shape, f->ndim);
  for (int t = 0; t < f->ntensor; t++) ty_iter_add(&w->it, NULL, ty_dtype_size[f->tensor[t].dtype], f->tensor[t].stride, f->shape, f->ndim);
  ty_iter_done(&w->it);
  for (int i = 0; i < f->nnode; i++) prepare(&w->part[i], f, i);
  return share_buffers(w) ? TY_OK : ty_error(ctx, "too many values at a time");
}

ty_status ty_cpu_fused(ty_ctx *ctx, const ty_backend *b, ty_fused *f) {
  (void)ctx;
  (void)b;
  kernel *w = f->kernel;
  for (int t = 0; t < f->ntensor; t++) w->it.data[t] = ty_data(f->tensor[t].t);
  ty_iter_each(&w->it, run, w);
  return TY_OK;
}

void ty_cpu_fused_free(ty_fused *f) { ty_free(f->kernel); }
