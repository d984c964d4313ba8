/* Fused kernels on the CPU: a block of elements goes through all nodes before the next block begins.
 *
 * Idea: nodes are computed by the loops that single ops use, on blocks that stay in the cache; a tensor that needs no conversion is
 * read and written in place. Where rows are reduced, or short, a block is as many rows as fit, at least one; a value that there is one of
 * per row is then spread over a block for the nodes that need it so. Invariant: a block is computed node by node, in the nodes' order, so
 * that a tensor changed in place is read before it is written. */
#include <omp.h>
#include <string.h>
#include "cpu.h"
#include "fused.h"

_Static_assert(TY_ITER_MAX > TY_FUSED_TENSORS, "a kernel's tensors are walked together");
_Static_assert(TY_PART >= TY_FUSED_ROW, "a row is added up as a single op adds it up");
#define BUFFERS 40
#define APART 24           /* 8-byte places between buffers: blocks 4 KB apart would share the same few cache lines */
#define SHORT 32           /* elements: several rows up to this length make a block, whatever gathering them costs */

typedef struct {
  ty_loop loop;                                                /* OP */
  void (*load)(void *, const void *, int64_t, int64_t);        /* from the node's dtype to its compute dtype */
  void (*put)(void *, int64_t, const void *, int64_t);         /* and back */
  /* to the dtype; CONVERT: from in[0]'s compute dtype; REDUCE: from the accumulator */
  void (*convert)(void *, int64_t, const void *, int64_t);
  double number;                                               /* NUMBER: its bits in the compute dtype */
  ty_generator drawn;                                          /* KEEP: the generator's state for this run */
  int buffer, spread_buffer;
  bool exact, rounds;                                          /* dtype and compute dtype are one; values have to be rounded to the dtype */
  bool spread;                                                 /* one value a row, which other nodes need as a block */
  bool steady;                                                 /* depends on numbers and channels alone: may be the same in all blocks */
} part;

typedef struct {
  const ty_fused *f;
  ty_iter it;
  int counter;                                                 /* where rows are reduced: the operand that counts rows */
  int64_t width, within[TY_FUSED_TENSORS];                     /* > 0: the walk is over rows of so many elements; within: strides in rows */
  bool wide;                                                   /* some node is computed in 8 bytes */
  int buffers;
  char *room;                                                  /* where rows are reduced: `each` bytes for each thread */
  size_t each;
  part part[TY_FUSED_NODES];
} kernel;

/* in: each node's block; spread: blocks of values that there is one of per row; filled: the block is right for later blocks too (one
   value, or the same row again); size: bytes of a buffer in buf; first, step: the logical index of the block's first element (where rows
   are reduced: row) and its increment, by which dropout draws */
typedef struct {
  const void *in[TY_FUSED_NODES], *spread[TY_FUSED_NODES];
  bool filled[TY_FUSED_NODES];
  size_t size;
  char *buf, *narrow;
  int64_t first, step;
} blocks;

/* p[0..n) = the value, in dtype compute, which may be at p itself. */
static void fill(void *p, ty_dtype compute, const void *value, int64_t n) {
  ty_cpu_loops()->load[compute][ty_loop_type_of(compute)](p, value, 0, n);
}

/* Whether the walk's elements are contiguous in tensor t. */
static bool is_dense(const kernel *w, const ty_fused_node *n, int t, int64_t step) {
  return w->width && !n->row ? w->within[t] == 1 && step == w->width : step == 1;
}

static void spread(const kernel *w, int i, blocks *b, int64_t rows) {
  const bool eight = ty_loop_size[ty_loop_type_of(w->f->node[i].compute)] == 8;
  void *to = b->buf + b->size * (size_t)w->part[i].spread_buffer;
  ty_cpu_loops()->repeat[eight](to, b->in[i], 1, w->width, rows);
  b->spread[i] = to;
}

static void source(const kernel *w, int i, blocks *b, char *const *ptr, const int64_t *stride, int64_t at, int64_t m) {
  const ty_fused_node *n = &w->f->node[i];
  const part *q = &w->part[i];
  void *own = b->buf + b->size * (size_t)q->buffer;
  if (b->filled[i]) return;
  b->in[i] = own;
  if (n->kind == TY_F_NUMBER) {
    fill(own, n->compute, &q->number, m);
    b->filled[i] = true;
    return;
  }
  const int64_t step = stride[n->tensor];
  const char *src = ptr[n->tensor] + at * step * ty_dtype_size[n->dtype];
  if (q->exact && is_dense(w, n, n->tensor, step)) b->in[i] = src;
  else if (n->row) q->load(own, src, step, m / w->width);
  else if (w->width)
    ty_gather_rows(own, src, n->dtype, n->compute, w->within[n->tensor], w->width, step, m / w->width);
  else q->load(own, src, step, m);
  b->filled[i] = step == 0 && !n->row;
  if (q->spread) spread(w, i, b, m / w->width);
}

/* 1 where element from + j step of the kernel is kept */
static void keep(const part *q, double drop, float *o, uint64_t from, int64_t step, int64_t m) {
  uint32_t word[4 * 128];
  for (int64_t j = 0; j < m;) {
    const uint64_t e = from + (uint64_t)(j * step), block = e / 4;
    /* one by one where a run goes across the logical order; such runs are short */
    const int64_t skip = (int64_t)(e % 4), n = step == 1 ? TY_MIN(m - j, 4 * 128 - skip) : 1;
    ty_cpu_loops()->philox(word, q->drawn.seed, q->drawn.offset + block, (skip + n + 3) / 4);
    ty_cpu_loops()->keep(o + j, word + skip, drop, n);
    j += n;
  }
}

/* at counts what the walk is over: elements, or rows */
static void keep_block(const kernel *w, int i, const blocks *b, float *o, int64_t at, int64_t m) {
  const part *q = &w->part[i];
  const double drop = w->f->node[i].p;
  const int64_t first = b->first + at * b->step, width = w->width;
  if (!width) keep(q, drop, o, (uint64_t)first, b->step, m);
  else if (b->step == 1) keep(q, drop, o, (uint64_t)(first * width), 1, m);
  else for (int64_t r = 0; r < m / width; r++) keep(q, drop, o + r * width, (uint64_t)((first + r * b->step) * width), 1, width);
}

static void reduce(const kernel *w, int i, const void *x, void *o, int64_t rows) {
  const ty_loops *l = ty_cpu_loops();
  const int id = w->f->node[i].op->id, k = ty_loop_type_of(w->f->node[w->f->node[i].in[0]].compute);
  double acc[TY_BLOCK], part[TY_BLOCK];
  l->init[id][k](acc, rows);
  for (int64_t r = 0; r < rows; r++) l->row[id][k](&part[r], (const char *)x + r * w->width * ty_loop_size[k], w->width);
  l->combine[id][k](acc, part, rows);
  l->finish[id][k](acc, rows, (double)w->width);
  w->part[i].convert(o, 1, acc, rows);
}

/* Stores m elements of a block into the tensor that node i writes. */
static void scatter(const kernel *w, int i, char *dst, int64_t step, const void *own, int64_t m) {
  const ty_fused_node *n = &w->f->node[i];
  const part *q = &w->part[i];
  if (!w->width || n->row) { q->put(dst, step, own, m); return; }
  if (is_dense(w, n, n->to, step)) { q->put(dst, 1, own, m); return; }
  const int64_t wide = ty_loop_size[ty_loop_type_of(n->compute)], bytes = ty_dtype_size[n->dtype];
  for (int64_t r = 0; r < m / w->width; r++)
    q->put(dst + r * step * bytes, w->within[n->to], (const char *)own + r * w->width * wide, w->width);
}

/* at counts what the walk is over: elements, or rows; m counts elements. */
static void compute(const kernel *w, int i, blocks *b, char *const *ptr, const int64_t *stride, int64_t at, int64_t m) {
  const ty_fused_node *n = &w->f->node[i];
  const part *q = &w->part[i];
  const int64_t step = n->to >= 0 ? stride[n->to] : 0, rows = w->width ? m / w->width : 0;
  char *dst = n->to >= 0 ? ptr[n->to] + at * step * ty_dtype_size[n->dtype] : NULL;
  const bool dense = n->to >= 0 && is_dense(w, n, n->to, step);
  void *own = b->buf + b->size * (size_t)q->buffer, *o = dense && q->exact ? (void *)dst : own;
  const void *in[3] = {NULL};
  for (int k = 0; k < n->nin; k++)
    in[k] = w->part[n->in[k]].spread && (!n->row || n->kind == TY_F_REDUCE) ? b->spread[n->in[k]] : b->in[n->in[k]];
  if (n->row) m = rows;
  if (b->filled[i]) return;
  b->in[i] = o;
  if (n->kind == TY_F_OP) q->loop(o, in[0], in[1], in[2], m, n->p, n->q);
  else if (n->kind == TY_F_KEEP) keep_block(w, i, b, own, at, m);
  else if (n->kind == TY_F_REDUCE) { if (q->exact) reduce(w, i, in[0], o, rows); }
  else if (q->exact) q->convert(o, 1, in[0], m);
  if (q->rounds) {
    void *low = dense ? (void *)dst : b->narrow;
    if (n->kind == TY_F_OP) q->put(low, 1, own, m);
    else if (n->kind == TY_F_REDUCE) reduce(w, i, in[0], low, rows);
    else q->convert(low, 1, in[0], m);
    if (n->used || !dense) q->load(own, low, 1, m);
    dst = dense ? NULL : dst;
  }
  if (dst && o != dst) scatter(w, i, dst, step, own, m);
  if (q->spread) spread(w, i, b, rows);
  b->filled[i] = q->steady;
  for (int k = 0; k < n->nin; k++) b->filled[i] = b->filled[i] && b->filled[n->in[k]];
}

static bool is_source(const ty_fused_node *n) { return n->kind == TY_F_TENSOR || n->kind == TY_F_NUMBER; }

static void run_block(const kernel *w, blocks *b, char *const *ptr, const int64_t *stride, int64_t at, int64_t m) {
  for (int i = 0; i < w->f->nnode; i++) (is_source(&w->f->node[i]) ? source : compute)(w, i, b, ptr, stride, at, m);
}

static void run(void *arg, char *const *ptr, const int64_t *stride, int64_t n) {
  const kernel *w = arg;
  double buf[BUFFERS][TY_BLOCK + APART] __attribute__((aligned(64))), narrow[TY_BLOCK] __attribute__((aligned(64)));
  blocks b = {.size = sizeof buf[0], .buf = (char *)buf, .narrow = (char *)narrow};
  b.first = (ptr[0] - w->it.data[0]) / w->it.size[0] / TY_MAX(w->width, 1);
  b.step = w->width ? 1 : stride[0];
  const int64_t each = w->width ? w->width : 1, block = TY_BLOCK / each;
  for (int64_t at = 0; at < n; at += block) run_block(w, &b, ptr, stride, at, TY_MIN(block, n - at) * each);
}

/* n rows that are reduced; the walk's last operand counts rows in logical order. */
static void run_rows(void *arg, char *const *ptr, const int64_t *stride, int64_t n) {
  const kernel *w = arg;
  char *room = w->room + w->each * (size_t)omp_get_thread_num();
  const size_t size = w->each / (size_t)(w->buffers + 1);
  blocks b = {.size = size, .buf = room + size, .narrow = room};
  b.first = ty_iter_count(&w->it, w->counter, ptr[w->counter]);
  b.step = stride[w->counter];
  const int64_t block = TY_MAX(TY_BLOCK / w->width, 1);
  for (int64_t at = 0; at < n; at += block) run_block(w, &b, ptr, stride, at, TY_MIN(block, n - at) * w->width);
}

static void prepare(kernel *w, int i) {
  const ty_fused *f = w->f;
  part *q = &w->part[i];
  const ty_loops *l = ty_cpu_loops();
  const ty_fused_node *n = &f->node[i];
  const int k = ty_loop_type_of(n->compute), from = n->nin ? ty_loop_type_of(f->node[n->in[0]].compute) : 0;
  q->exact = n->dtype == n->compute;
  q->rounds = ty_fused_rounds(n);
  q->load = l->load[n->dtype][k];
  q->put = l->store[n->dtype][k];
  if (n->kind == TY_F_OP) q->loop = l->pointwise[n->op->id][k];
  if (n->kind == TY_F_CONVERT) q->convert = l->store[n->dtype][from];
  if (n->kind == TY_F_REDUCE) q->convert = l->store[n->dtype][from == 2 ? 2 : 1];
  q->steady = n->kind == TY_F_NUMBER || (n->kind == TY_F_TENSOR && f->tensor[n->tensor].channels) ||
    ((n->kind == TY_F_OP || n->kind == TY_F_CONVERT) && !n->row && n->to < 0);
  for (int j = 0; j < n->nin; j++) q->steady = q->steady && w->part[n->in[j]].steady;
  for (int j = i + 1; j < f->nnode && n->row && !q->spread; j++)
    for (int a = 0; a < f->node[j].nin; a++)
      q->spread = q->spread || (f->node[j].in[a] == i && (!f->node[j].row || f->node[j].kind == TY_F_REDUCE));
  if (n->kind != TY_F_NUMBER) return;
  if (k == TY_IN_I64 && n->number.kind != TY_FLOAT) memcpy(&q->number, &n->number.i, 8);
  else ty_set(&q->number, n->compute, n->number.f);
}

/* Gives each node a buffer, which another node gets after the node's last use; sources and steady nodes keep theirs. False: too many. */
static bool share_buffers(kernel *w) {
  const ty_fused *f = w->f;
  int last[TY_FUSED_NODES], until[BUFFERS], sources = 0;
  for (int i = 0; i < f->nnode; i++) {
    last[i] = i;
    for (int k = 0; k < f->node[i].nin; k++) last[f->node[i].in[k]] = i;
  }
  for (int i = 0; i < f->nnode; i++)
    if (is_source(&f->node[i]) || w->part[i].steady) w->part[i].buffer = sources++;
  w->buffers = sources;
  for (int i = 0; i < BUFFERS; i++) until[i] = -1;
  for (int i = 0; i < f->nnode; i++) {
    if (is_source(&f->node[i]) || w->part[i].steady) continue;
    int at = sources;
    while (at < BUFFERS && until[at] >= i) at++;
    if (at >= BUFFERS) return false;
    until[at] = last[i];
    w->part[i].buffer = at;
    w->buffers = TY_MAX(w->buffers, at + 1);
  }
  for (int i = 0; i < f->nnode; i++)
    if (w->part[i].spread) w->part[i].spread_buffer = w->buffers++;     /* only where rows are reduced, whose buffers aren't limited */
  return sources < BUFFERS;
}

/* Whether blocks should be made of dim d's rows: if these are short, or, up to half a block, if no tensor has to be gathered. */
static bool are_short(const kernel *w, int d, int outer) {
  const ty_iter *it = &w->it;
  const int64_t n = it->shape[d];
  bool dense = true, some = false;
  for (int t = 0; t < it->nop; t++) {
    some = some || (it->stride[t][d] == 1 && it->stride[t][outer] == n);
    dense = dense && (it->stride[t][outer] == 0 ? !w->f->tensor[t].written : it->stride[t][d] == 1 && it->stride[t][outer] == n);
  }
  return n > 1 && some && (dense ? n <= TY_BLOCK / 2 : n <= SHORT);
}

/* Makes the walk one over rows, where are_short says so. */
static void walk_rows(kernel *w) {
  ty_iter *it = &w->it;
  const int last = it->ndim - 1;
  for (int d = last; last > 0 && d >= last - 1; d--) {
    const int outer = 2 * last - 1 - d;                        /* the other of the two innermost */
    if (!are_short(w, d, outer)) continue;
    if (ty_fused_keeps(w->f, w->f->nnode) && !(it->stride[0][d] == 1 && it->stride[0][outer] == it->shape[d])) continue;
    w->width = it->shape[d];
    for (int t = 0; t < it->nop; t++) {
      w->within[t] = it->stride[t][d];
      it->stride[t][last - 1] = it->stride[t][outer];
    }
    it->shape[last - 1] = it->shape[outer];
    it->ndim--;
    it->numel /= w->width;
    it->each = w->width;
    return;
  }
}

/* The walk over rows that are reduced. */
static void walk_reduced(kernel *w) {
  const ty_fused *f = w->f;
  const int n = f->ndim - f->nred;
  ty_iter_init(&w->it, f->shape, n);
  for (int t = 0; t < f->ntensor; t++) {
    ty_iter_add(&w->it, NULL, ty_dtype_size[f->tensor[t].dtype], f->tensor[t].stride, f->shape, n);
    w->within[t] = f->tensor[t].along;
  }
  w->counter = ty_iter_counter(&w->it, f->shape);
  ty_iter_done(&w->it);
  w->width = w->it.each = f->inner;
}

ty_status ty_cpu_fuse(ty_ctx *ctx, const ty_backend *b, ty_fused *f) {
  (void)b;
  kernel *w = ty_malloc(sizeof *w);
  if (!w) return ty_no_memory(ctx, NULL);
  memset(w, 0, sizeof *w);
  f->kernel = w;
  w->f = f;
  if (f->nred) walk_reduced(w);
  else {
    ty_iter_init(&w->it, f->shape, f->ndim);
    for (int t = 0; t < f->ntensor; t++)
      ty_iter_add(&w->it, NULL, ty_dtype_size[f->tensor[t].dtype], f->tensor[t].stride, f->shape, f->ndim);
    ty_iter_done(&w->it);
    walk_rows(w);
  }
  for (int i = 0; i < f->nnode; i++) {
    prepare(w, i);
    w->wide = w->wide || f->node[i].compute != TY_F32;
  }
  return share_buffers(w) ? TY_OK : ty_error(ctx, "too many values at a time");
}

ty_status ty_cpu_fused(ty_ctx *ctx, const ty_backend *b, ty_fused *f) {
  (void)b;
  kernel *w = f->kernel;
  for (int t = 0; t < f->ntensor; t++) w->it.data[t] = ty_data(f->tensor[t].t);
  for (int i = 0; i < f->nnode; i++)
    if (f->node[i].kind == TY_F_KEEP) w->part[i].drawn = ty_cpu_take(ctx, (uint64_t)(f->numel + 3) / 4);
  if (!f->nred) { ty_iter_each(&w->it, run, w); return TY_OK; }
  w->each = (size_t)TY_MAX(f->inner, TY_BLOCK) * (w->wide ? 8 : 4) * (size_t)(w->buffers + 1);
  w->room = ty_scratch(w->each * (size_t)ty_threads_for(f->numel));
  if (!w->room) return ty_no_memory(ctx, "compile");
  ty_iter_each(&w->it, run_rows, w);
  ty_scratch_free(w->room);
  return TY_OK;
}

void ty_cpu_fused_free(ty_fused *f) { ty_free(f->kernel); }
