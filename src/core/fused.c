/* Makes fused kernels (fused.h) of groups of steps.
 *
 * Idea: steps are taken in order. A pointwise step becomes a node, a normalisation the nodes of its formula. The maker knows each
 * value's current node, so a step reads an earlier step's result without memory. Invariant: memory is read before it is written. */
#include <string.h>
#include "fuse.h"

typedef struct { int value, node; } current;   /* the value's content at this point */

typedef struct {
  ty_recording *r;
  ty_fused *f;
  bool full;               /* too many nodes or tensors */
  bool row;                /* the step at hand works on one value per row */
  ty_dtype compute;        /* the type that emit computes in */
  current cur[TY_FUSED_NODES];
  int ncur;
} maker;

static int new_node(maker *m, ty_fused_node n) {
  if (m->f->nnode == TY_FUSED_NODES) { m->full = true; return 0; }
  n.to = -1;
  m->f->node[m->f->nnode] = n;
  return m->f->nnode++;
}

/* Whether a tensor has one value per row, or one in all. */
static bool by_rows(const ty_fused *f, const ty_fused_tensor *t) {
  for (int i = f->ndim - f->nred; i < f->ndim; i++)
    if (t->stride[i] && f->shape[i] > 1) return false;
  return f->nred > 0;
}

/* The node of value v, which has one element per channel (the second dim). */
static int channels_of(maker *m, int v, ty_dtype compute) {
  ty_fused *f = m->f;
  const ty_tensor *t = &m->r->value[v].like;
  for (int i = 0; i < m->ncur; i++) m->full = m->full || ty_same_elements(m->r, m->cur[i].value, v);     /* made here, not by channel */
  if (f->ntensor == TY_FUSED_TENSORS || m->full) { m->full = true; return 0; }
  const int k = f->ntensor++;
  f->tensor[k] = (ty_fused_tensor){.value = v, .dtype = t->dtype, .channels = true};
  f->tensor[k].stride[1] = f->shape[1] == 1 ? 0 : t->stride[0];
  return new_node(m, (ty_fused_node){.kind = TY_F_TENSOR, .dtype = t->dtype, .compute = compute, .tensor = (int8_t)k,
    .row = by_rows(f, &f->tensor[k])});
}

/* The index of v's tensor. row: one value per row. The same memory with other strides is another tensor. */
static int tensor_of(maker *m, int v, bool row) {
  ty_fused *f = m->f;
  const ty_tensor *t = &m->r->value[v].like;
  const int ndim = row ? f->ndim - f->nred : f->ndim;    /* kernel dims that it spans */
  ty_fused_tensor x = {.value = v, .dtype = t->dtype, .row = row};
  int64_t n = 1;
  for (int i = 0; i < ndim; i++) n *= f->shape[i];
  if (ty_numel(t) == n && ty_is_contiguous(t)) ty_contiguous_strides(f->shape, ndim, x.stride);      /* its shape may differ */
  else
    for (int i = 0; i < t->ndim; i++) {
      const int d = i + f->ndim - t->ndim;
      if (d >= 0 && d < ndim) x.stride[d] = t->shape[i] == 1 ? 0 : t->stride[i];
    }
  for (int i = 0; i < f->ntensor; i++)
    if (!f->tensor[i].channels && f->tensor[i].row == row && ty_same_elements(m->r, f->tensor[i].value, v) &&
        !memcmp(f->tensor[i].stride, x.stride, sizeof x.stride))
      return i;
  if (f->ntensor == TY_FUSED_TENSORS) { m->full = true; return 0; }
  f->tensor[f->ntensor] = x;
  return f->ntensor++;
}

static int convert(maker *m, int n, ty_dtype d, ty_dtype compute, bool row) {
  return new_node(m, (ty_fused_node){.kind = TY_F_CONVERT, .nin = 1, .in = {(int8_t)n}, .dtype = d, .compute = compute, .row = row});
}

/* Node n as a value of dtype d, held in compute. */
static int as(maker *m, int n, ty_dtype d, ty_dtype compute) {
  const ty_fused_node *x = &m->f->node[n];
  return x->dtype == d && x->compute == compute ? n : convert(m, n, d, compute, x->row);
}
static int as_computed(maker *m, int n, ty_dtype compute) { return as(m, n, m->f->node[n].dtype, compute); }

/* The node of value v's current content, held in compute. */
static int read_value(maker *m, int v, ty_dtype compute) {
  for (int i = m->ncur - 1; i >= 0; i--)
    if (ty_same_elements(m->r, m->cur[i].value, v)) return as_computed(m, m->cur[i].node, compute);
  const int t = tensor_of(m, v, m->row);
  for (int i = 0; i < m->f->nnode; i++)
    if (m->f->node[i].kind == TY_F_TENSOR && m->f->node[i].tensor == t && m->f->node[i].compute == compute) return i;
  return new_node(m, (ty_fused_node){.kind = TY_F_TENSOR, .dtype = m->r->value[v].like.dtype, .compute = compute,
    .tensor = (int8_t)t, .row = by_rows(m->f, &m->f->tensor[t])});
}

static int number(maker *m, ty_operand v, ty_dtype compute, ty_dtype rounded) {
  if (rounded != compute) v = ty_operand_float(ty_rounded(v.f, rounded));
  return new_node(m, (ty_fused_node){.kind = TY_F_NUMBER, .dtype = compute, .compute = compute, .number = v});
}

/* ---- formulas ---- */

/* An op over nodes held in m->compute; b, c: -1 where it has fewer operands. row: its result has one value per row. */
static int emit(maker *m, ty_op_id id, bool row, int a, int b, int c) {
  ty_fused_node n = {.kind = TY_F_OP, .nin = (uint8_t)(1 + (b >= 0) + (c >= 0)), .in = {(int8_t)a, (int8_t)b, (int8_t)c},
    .dtype = m->compute, .compute = m->compute, .op = &ty_ops[id], .row = row};
  n.p = id == TY_OP_add || id == TY_OP_sub || id == TY_OP_addcmul ? 1 : 0;      /* alpha, value */
  return new_node(m, n);
}

static int total(maker *m, ty_op_id id, int x) {
  return new_node(m,
    (ty_fused_node){.kind = TY_F_REDUCE, .nin = 1, .in = {(int8_t)x}, .dtype = m->compute, .compute = m->compute,
    .op = &ty_ops[id], .row = true});
}

/* As the kernels of src/cpu and kernels/softmax.cu: exponentials of at most 0. */
static int softmax(maker *m, const step *k) {
  const int id = k->call.op->id, x = read_value(m, k->vin[0], m->compute);
  if (k->call.nin == 1) {
    const int d = emit(m, TY_OP_sub, false, x, total(m, TY_OP_amax, x), -1), e = emit(m, TY_OP_exp_down, false, d, -1, -1),
      s = total(m, TY_OP_sum, e);
    return id == TY_OP_softmax ? emit(m, TY_OP_mul, false, e, emit(m, TY_OP_reciprocal, true, s, -1, -1), -1)
      : emit(m, TY_OP_sub, false, d, emit(m, TY_OP_log, true, s, -1, -1), -1);
  }
  const int y = read_value(m, k->vin[1], m->compute);
  if (id == TY_OP_softmax_backward)
    return emit(m, TY_OP_mul, false, y,
      emit(m, TY_OP_sub, false, x, total(m, TY_OP_sum, emit(m, TY_OP_mul, false, x, y, -1)), -1), -1);
  return emit(m, TY_OP_sub, false, x, emit(m, TY_OP_mul, false, emit(m, TY_OP_exp_down, false, y, -1, -1), total(m, TY_OP_sum, x), -1), -1);
}

/* out: y, then the statistics */
static void norm(maker *m, const step *k, int *out) {
  const bool layer = k->call.op->id == TY_OP_layer_norm_stats;
  const int x = read_value(m, k->vin[0], m->compute), mean = layer ? total(m, TY_OP_mean, x) : -1;
  const int d = layer ? emit(m, TY_OP_sub, false, x, mean, -1) : x, ms = total(m, TY_OP_mean, emit(m, TY_OP_square, false, d, -1, -1));
  const int rstd = emit(m, TY_OP_rsqrt, true,
    emit(m, TY_OP_add, true, ms,
      number(m, ty_operand_float(k->call.at[TY_AT_layer_norm_stats_eps].f), m->compute, m->compute), -1), -1, -1);
  int y = emit(m, TY_OP_mul, false, d, rstd, -1);
  if (k->vin[1] >= 0) y = emit(m, TY_OP_mul, false, y, read_value(m, k->vin[1], m->compute), -1);
  if (layer && k->vin[2] >= 0) y = emit(m, TY_OP_add, false, y, read_value(m, k->vin[2], m->compute), -1);
  out[0] = y;
  out[1] = layer ? mean : rstd;
  out[2] = rstd;
}

/* (x - mean) (rstd weight) + bias */
static int batch_norm(maker *m, const step *k) {
  const int d = emit(m, TY_OP_sub, false, read_value(m, k->vin[0], m->compute), channels_of(m, k->vin[1], m->compute), -1);
  int a = channels_of(m, k->vin[2], m->compute);
  if (k->vin[3] >= 0) a = emit(m, TY_OP_mul, false, channels_of(m, k->vin[3], m->compute), a, -1);
  return k->vin[4] < 0 ? emit(m, TY_OP_mul, false, d, a, -1) : emit(m, TY_OP_addcmul, false, channels_of(m, k->vin[4], m->compute), d, a);
}

static void dropout(maker *m, const step *k, int *out) {
  const double drop = k->call.at[TY_AT_dropout_mask_p].f;
  const int x = read_value(m, k->vin[0], m->compute);
  out[1] = new_node(m, (ty_fused_node){.kind = TY_F_KEEP, .dtype = TY_BOOL, .compute = TY_F32, .p = drop});
  const int scaled = emit(m, TY_OP_mul, false, x, number(m, ty_operand_float(drop < 1 ? 1 / (1 - drop) : 0), m->compute, m->compute), -1);
  out[0] = emit(m, TY_OP_where, false, as_computed(m, out[1], m->compute), scaled, number(m, ty_operand_float(0), m->compute, m->compute));
}

/* ---- steps ---- */

static int pointwise(maker *m, const step *k, ty_dtype d) {
  const ty_call *c = &k->call;
  const ty_op *op = c->op;
  if (ty_is_copy(op->id)) {
    const int i = op->id == TY_OP_copy;
    const ty_dtype from = k->vin[i] >= 0 ? ty_compute_dtype(m->r->value[k->vin[i]].like.dtype) : ty_compute_dtype(d);
    const int n = k->vin[i] >= 0 ? read_value(m, k->vin[i], from) : number(m, c->in[i], from, from);
    return convert(m, n, d, ty_compute_dtype(d), m->row);
  }
  ty_fused_node n = {.kind = TY_F_OP, .nin = (uint8_t)c->nin, .dtype = d, .compute = c->compute, .op = op, .row = m->row};
  for (int i = c->nin - 1; i >= 0; i--)    /* an operand that isn't read is replaced by the next one */
    n.in[i] = !ty_reads(op, i) ? n.in[i + 1]
      : (int8_t)(k->vin[i] >= 0 ? read_value(m, k->vin[i], c->compute)
      : number(m, c->in[i], c->compute, ty_rounds_numbers(c) ? c->common : c->compute));
  if (op->nattr > 0) n.p = ty_parameter(c, 0);
  if (op->nattr > 1) n.q = ty_parameter(c, 1);
  return new_node(m, n);
}

static void compute_step(maker *m, const step *k, int *out) {
  const ty_op *op = k->call.op;
  const ty_dtype d = m->r->value[k->vout[0]].like.dtype;
  m->row = m->f->nred && op->cls != TY_C_REDUCE && ty_numel(&m->r->value[k->vout[0]].like) != m->f->numel;
  m->compute = ty_compute_dtype(d);
  if (op->cls == TY_C_POINTWISE || ty_is_copy(op->id)) out[0] = pointwise(m, k, d);
  else if (op->cls == TY_C_SOFTMAX) out[0] = softmax(m, k);
  else if (op->id == TY_OP_batch_norm_apply) out[0] = batch_norm(m, k);
  else if (op->cls == TY_C_NORM) norm(m, k, out);
  else if (op->cls == TY_C_RANDOM) dropout(m, k, out);
  else {
    const int x = read_value(m, k->vin[0], k->call.compute);
    out[0] = new_node(m,
      (ty_fused_node){.kind = TY_F_REDUCE, .nin = 1, .in = {(int8_t)x}, .dtype = d, .compute = ty_compute_dtype(d),
      .op = op, .row = true});
  }
  for (int j = 0; j < op->nout && op->cls != TY_C_POINTWISE; j++) {
    const ty_dtype o = m->r->value[k->vout[j]].like.dtype;
    out[j] = as(m, out[j], o, j ? m->f->node[out[j]].compute : ty_compute_dtype(o));
  }
}

/* Removes nodes that nobody uses. */
static void sweep(ty_fused *f) {
  int place[TY_FUSED_NODES], n = 0;
  bool needed[TY_FUSED_NODES];
  for (int i = 0; i < f->nnode; i++) { needed[i] = f->node[i].to >= 0; f->node[i].used = false; }
  for (int i = f->nnode - 1; i >= 0; i--) {
    needed[i] = needed[i] || f->node[i].kind == TY_F_KEEP;           /* it moves the generator on */
    for (int k = 0; needed[i] && k < f->node[i].nin; k++) needed[f->node[i].in[k]] = f->node[f->node[i].in[k]].used = true;
  }
  for (int i = 0; i < f->nnode; i++) {
    if (!needed[i]) continue;
    place[i] = n;
    f->node[n] = f->node[i];
    for (int k = 0; k < f->node[n].nin; k++) f->node[n].in[k] = (int8_t)place[f->node[n].in[k]];
    n++;
  }
  f->nnode = n;
}

/* Whether a tensor's elements lie in logical order. */
static bool in_order(const ty_fused *f, const ty_fused_tensor *t) {
  int64_t want[TY_MAXDIM];
  ty_contiguous_strides(f->shape, f->ndim, want);
  for (int d = 0; d < f->ndim; d++)
    if (f->shape[d] > 1 && t->stride[d] != want[d]) return false;
  return true;
}

/* Removes tensors that no node uses, and puts written ones first. Dropout counts by the first one's elements: it needs one in logical
   order there. */
static void order_tensors(ty_fused *f) {
  int place[TY_FUSED_TENSORS], n = 0;
  ty_fused_tensor was[TY_FUSED_TENSORS];
  const bool counts = !f->nred && ty_fused_keeps(f, f->nnode);
  memcpy(was, f->tensor, sizeof was);
  for (int i = 0; i < f->ntensor; i++) place[i] = -1;
  for (int pass = counts ? 0 : 1; pass < 4; pass++)      /* written in order, written by elements, written by rows, read */
    for (int i = 0; i < f->nnode; i++) {
      const int t = pass == 3 ? f->node[i].tensor : f->node[i].to;
      if ((pass == 3 && f->node[i].kind != TY_F_TENSOR) || t < 0 || place[t] >= 0 || (pass < 2 && was[t].row) ||
          (pass == 0 && !in_order(f, &was[t])))
        continue;
      f->tensor[n] = was[t];
      f->tensor[n].written = pass < 3;
      place[t] = n++;
    }
  for (int i = 0; i < f->nnode; i++) {
    if (f->node[i].kind == TY_F_TENSOR) f->node[i].tensor = (int8_t)place[f->node[i].tensor];
    if (f->node[i].to >= 0) f->node[i].to = (int8_t)place[f->node[i].to];
  }
  f->ntensor = n;
}

static bool stored(const store *st) { return !st->unwritten || st->held; }

/* Node n becomes value v's content. stores: also in memory, if v is stored. */
static bool set_value(maker *m, int v, int n, bool stores) {
  int at = 0;
  while (at < m->ncur && !ty_same_elements(m->r, m->cur[at].value, v)) at++;
  if (at == TY_FUSED_NODES) return false;
  if (at < m->ncur) m->f->node[m->cur[at].node].to = -1;             /* overwritten */
  else m->ncur++;
  m->cur[at] = (current){v, n};
  if (stores && stored(&m->r->store[m->r->value[v].store])) {
    const ty_fused_node *x = &m->f->node[n];
    if (x->to >= 0) n = m->cur[at].node = convert(m, n, x->dtype, x->compute, x->row);     /* it is stored elsewhere */
    m->f->node[n].to = (int8_t)tensor_of(m, v, m->f->node[n].row);
  }
  return true;
}

/* Whether each tensor has a single stride along a row: `along`. */
static bool even_rows(ty_fused *f) {
  for (int t = 0; t < f->ntensor; t++) {
    ty_fused_tensor *x = &f->tensor[t];
    int64_t expected = -1;
    for (int d = f->ndim - 1; d >= f->ndim - f->nred; d--) {
      if (f->shape[d] == 1) continue;
      if (expected == -1) x->along = x->stride[d];
      else if (x->stride[d] != expected) return false;
      expected = x->stride[d] * f->shape[d];
    }
  }
  return true;
}

/* Fills in the kernel. NULL, or why there can be none. */
static const char *make(maker *m, const group *g) {
  for (int i = 0; i < g->nstep && !m->full; i++) {
    const step *k = &m->r->step[g->step[i]];
    int out[TY_MAXOUT] = {-1, -1, -1, -1};
    compute_step(m, k, out);
    for (int j = 0; j < TY_MAXOUT && !m->full; j++)
      if (k->vout[j] >= 0 && !set_value(m, k->vout[j], out[j], i >= g->nagain)) m->full = true;
  }
  if (m->full) return "too many values or tensors";
  sweep(m->f);
  order_tensors(m->f);
  if (m->f->nred && !even_rows(m->f)) return "elements of a row are not in order";
  if (!m->f->nred && ty_fused_keeps(m->f, m->f->nnode) && !(m->f->ntensor && in_order(m->f, &m->f->tensor[0])))
    return "dropout's elements are not in order";
  return NULL;
}

static void free_kernel(ty_fused *f, const ty_backend *b) {
  if (f && f->kernel) b->fused_free(f);
  ty_free(f);
}

static void kernel_shape(ty_fused *f, const group *g) {
  memset(f, 0, sizeof *f);
  f->ndim = g->ndim;
  f->nred = g->nred;
  f->numel = f->inner = 1;
  memcpy(f->shape, g->shape, sizeof f->shape);
  for (int i = 0; i < f->ndim; i++) f->numel *= f->shape[i];
  for (int i = 0; i < f->nred; i++) f->inner *= f->shape[f->ndim - 1 - i];
}

/* Whether the group needs a kernel: several steps, or one whose result isn't stored. */
static bool needs_kernel(const ty_recording *r, const group *g) {
  return !g->joint && !g->single && (g->nstep > 1 || (g->pointwise && r->store[r->value[r->step[g->step[0]].vout[0]].store].unwritten));
}

/* Whether someone holds what the joint kernel doesn't store. */
static bool holds_inner(ty_recording *r, const group *g) {
  for (int i = 0; i < g->nstep; i++)
    for (int j = 0; j < TY_MAXOUT; j++) {
      const store *st = ty_stored_by(r, g, i, j);
      if (st && st->unwritten && st->held) return true;
    }
  return false;
}

/* Makes the group's kernel, in place of the one it has. If there can be none, all its steps' results are stored. */
static ty_status make_one(ty_ctx *ctx, ty_recording *r, group *g) {
  const ty_backend *b = r->step[g->step[0]].backend;
  ty_fused *f = NULL;
  ty_status s = TY_OK;
  if (g->joint && holds_inner(r, g)) {
    g->joint = TY_JOINT_NONE;
    s = ty_error(ctx, "an intermediate result is still held");
  }
  if (s == TY_OK && needs_kernel(r, g)) {
    if (!(f = ty_malloc(sizeof *f))) return ty_program_no_memory(ctx);
    kernel_shape(f, g);
    maker m = {.r = r, .f = f};
    const char *why = make(&m, g);
    s = why ? ty_error(ctx, "%s", why) : f->nnode ? b->fuse(ctx, b, f) : TY_OK;
  }
  if (s != TY_OK) {
    free_kernel(f, b);
    f = NULL;
    if (s != TY_ERR) return s;
    snprintf(g->why, sizeof g->why, "%.*s", (int)sizeof g->why - 1, ctx->err);
    for (int i = 0; i < g->nstep; i++)     /* run one by one: each reads what others store */
      for (int j = 0; j < TY_MAXOUT; j++)
        if (ty_stored_by(r, g, i, j)) ty_stored_by(r, g, i, j)->unwritten = false;
    g->single = true;
  }
  free_kernel(g->fused, b);
  g->fused = f;
  return TY_OK;
}

ty_status ty_fuse_make(ty_ctx *ctx, ty_recording *r) {
  r->unmade = true;
  for (bool again = true; again;) {        /* where one is given up, others must store what it reads */
    again = false;
    for (int i = 0; i < r->ngroup; i++) {
      const bool was = r->group[i].single;
      TY_TRY(make_one(ctx, r, &r->group[i]));
      again = again || r->group[i].single != was;
    }
  }
  r->unmade = false;
  return TY_OK;
}

void ty_fuse_places(ty_recording *r) {
  for (int i = 0; i < r->ngroup; i++)
    for (int k = 0; r->group[i].fused && k < r->group[i].fused->ntensor; k++)
      r->group[i].fused->tensor[k].t = r->value[r->group[i].fused->tensor[k].value].t;
}

void ty_fuse_free(ty_recording *r) {
  for (int i = 0; i < r->ngroup; i++) {
    free_kernel(r->group[i].fused, r->step[r->group[i].step[0]].backend);
    ty_free(r->group[i].step);
  }
  ty_free(r->group);
}
