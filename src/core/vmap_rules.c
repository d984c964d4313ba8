/* How each op's operands are laid out for one call on all examples (vmap.h).
 *
 * Idea: the examples' dim comes first. So an op that counts dims from the end needs no change, and dims that an argument names go up by
 * one. An op on batches (of pictures, rows, queries) takes the examples as part of its batch. */
#include <string.h>
#include "vmap.h"

static ty_status permute(ty_ctx *ctx, ty_tensor *t, const int64_t *dims, ty_tensor **out) {
  ty_attr at = {.set = true, .n = t->ndim};
  memcpy(at.v, dims, sizeof(int64_t) * t->ndim);
  return ty_call_op2(ctx, TY_OP_permute, ty_operand_tensor(t), (ty_operand){0}, &at, NULL, out);
}

/* Moves t's n dims from `from` on to `to`. */
static ty_status move_dims(ty_ctx *ctx, ty_tensor *t, int from, int n, int to, ty_tensor **out) {
  int64_t dims[TY_MAXDIM];
  int k = 0, rest = 0;
  for (int i = 0; i < t->ndim; i++) {
    if (i >= to && i < to + n) { dims[i] = from + k++; continue; }
    if (rest == from) rest += n;
    dims[i] = rest++;
  }
  return permute(ctx, t, dims, out);
}
/* Calls another op on the examples. */
static ty_status binary(ty_vmap_call *m, ty_op_id id, ty_tensor *a, ty_tensor *b, ty_tensor **out) {
  return ty_call_op2(m->one.ctx, id, ty_operand_tensor(a), ty_operand_tensor(b), NULL, NULL, out);
}
static ty_status spread_all(ty_vmap_call *m) {
  for (int i = 0; i < m->one.nin; i++) TY_TRY(ty_vmap_spread(m, i));
  return TY_OK;
}
static ty_status with_rank(ty_vmap_call *m, int i, int rank) {
  ty_vmap_plainly(m, i);
  return ty_vmap_laid_for(m, i, rank);
}

/* Adds one to each dim that an argument names. */
static void shift_dims(ty_vmap_call *m) {
  for (int k = 0; k < m->one.op->nparam; k++) {
    const ty_param *p = &m->one.op->param[k];
    if (p->type != TY_P_DIM && p->type != TY_P_DIMS) continue;
    ty_attr *a = &m->at[p->slot];
    *a = m->plain[p->slot];
    if (!a->set) continue;
    if (p->type == TY_P_DIM) a->i++;
    else for (int i = 0; i < a->n; i++) a->v[i]++;
  }
}

static int highest_rank(const ty_vmap_call *m) {
  int rank = 0;
  for (int i = 0; i < m->one.nin; i++) if (ty_vmap_example(m, i)) rank = TY_MAX(rank, ty_vmap_example(m, i)->ndim);
  return rank;
}

/* Takes off the dims of size 1 that operand i's examples have before the last `rank`: a copy's source may have them. */
static ty_status without_lead(ty_vmap_call *m, int i, int rank) {
  const ty_tensor *t = ty_vmap_example(m, i), *all = m->w[i].t;
  int64_t size[TY_MAXDIM];
  ty_tensor *v;
  int n = 0;
  if (!t || t->ndim <= rank) return TY_OK;
  for (int d = 0; d < all->ndim; d++)
    if (d < all->ndim - t->ndim || d >= all->ndim - rank) size[n++] = all->shape[d];
  TY_TRY(ty_view(m->one.ctx, m->w[i].t, n, size, &v));
  ty_vmap_take(m, i, v);
  return TY_OK;
}

/* In dtype promotion 0-dim examples give way to tensors with dims, but their whole, which has a dim, doesn't: so the result may need a
 * cast to the dtype that examples give. */
static ty_status pointwise(ty_vmap_call *m, ty_tensor *into, ty_tensor **out) {
  const bool first = m->one.op->dtype == TY_D_FIRST || m->one.op->id == TY_OP_copy;
  const int rank = m->one.op->id == TY_OP_copy ? m->one.meta[0].ndim : highest_rank(m);
  const uint8_t dtype = m->one.meta[0].dtype;
  ty_tensor *all, *cast;
  for (int i = 0; i < m->one.nin; i++) {
    if (i == 0 && first) TY_TRY(ty_vmap_spread(m, 0));
    else ty_vmap_plainly(m, i);
    TY_TRY(without_lead(m, i, rank));
    TY_TRY(ty_vmap_laid_for(m, i, rank));
  }
  if (into) return ty_vmap_run(m, into, out);
  TY_TRY(ty_vmap_apply(m, &all));
  if (all->dtype != dtype) {
    ty_attr at[2] = {{.set = true, .i = dtype}, {.set = true, .i = TY_PRESERVE}};
    const ty_status s = ty_call_op2(m->one.ctx, TY_OP_cast, ty_operand_tensor(all), (ty_operand){0}, at, NULL, &cast);
    ty_release(all);
    TY_TRY(s);
    all = cast;
  }
  return ty_vmap_results(m, &all, out);
}

static ty_status reduce(ty_vmap_call *m, ty_tensor **out) {
  const ty_tensor *x = ty_vmap_example(m, 0);
  ty_attr *dims = &m->at[TY_AT_sum_dim];
  shift_dims(m);
  ty_vmap_plainly(m, 0);
  if (x->ndim == 0) {                      /* reduces over a new dim of 1 */
    const int64_t size[2] = {m->map->size, 1};
    ty_tensor *v;
    TY_TRY(ty_view(m->one.ctx, x->whole, 2, size, &v));
    ty_vmap_take(m, 0, v);
    m->at[TY_AT_sum_keepdim].i = 0;
    *dims = (ty_attr){.set = true, .n = 1, .v = {1}};
  } else if (!dims->set) {
    *dims = (ty_attr){.set = true, .n = x->ndim};
    for (int d = 0; d < x->ndim; d++) dims->v[d] = d + 1;
  }
  return ty_vmap_run(m, NULL, out);
}

static ty_status views(ty_vmap_call *m, ty_tensor **out) {
  const ty_tensor *x = ty_vmap_example(m, 0);
  ty_attr *size = &m->at[TY_AT_view_size];               /* also expand's size and permute's dims */
  ty_vmap_plainly(m, 0);
  switch (m->one.op->id) {
    case TY_OP_view: case TY_OP_expand: case TY_OP_permute:
      *size = m->plain[TY_AT_view_size];
      if (size->n == TY_MAXDIM) return ty_error(m->one.ctx, "vmap: %s to %d dims leaves no room for one more", m->one.op->shown, size->n);
      memmove(size->v + 1, size->v, sizeof(int64_t) * size->n++);
      size->v[0] = m->map->size;
      if (m->one.op->id == TY_OP_expand) TY_TRY(ty_vmap_laid_for(m, 0, size->n - 1));
      if (m->one.op->id == TY_OP_permute) for (int d = 0; d <= x->ndim; d++) size->v[d] = d ? size->v[d] + 1 : 0;
      break;
    case TY_OP_as_strided: {                             /* each example is contiguous */
      ty_attr *stride = &m->at[TY_AT_as_strided_stride];
      if (!ty_is_contiguous(x->whole))
        return ty_error(m->one.ctx, "vmap: as_strided: the examples must lie one after another in memory: map a contiguous tensor");
      if (size->n == TY_MAXDIM) return ty_error(m->one.ctx, "vmap: as_strided to %d dims leaves no room for one more", size->n);
      memmove(stride->v + 1, stride->v, sizeof(int64_t) * stride->n++);
      memmove(size->v + 1, size->v, sizeof(int64_t) * size->n++);
      size->v[0] = m->map->size;
      stride->v[0] = ty_numel(x);
      break;
    }
    default: shift_dims(m);
  }
  return ty_vmap_run(m, NULL, out);
}

/* As a batched product. A mapped vector becomes a row or a column, and its dim of 1 is dropped at the end. */
static ty_status matmul(ty_vmap_call *m, ty_tensor **out) {
  ty_ctx *ctx = m->one.ctx;
  const int rank = TY_MAX(highest_rank(m), 2);
  ty_tensor *all, *v;
  for (int i = 0; i < 2; i++) {
    const ty_tensor *t = ty_vmap_example(m, i), *other = ty_vmap_example(m, 1 - i);
    int64_t size[TY_MAXDIM] = {m->map->size};
    ty_vmap_plainly(m, i);
    if (!ty_vmap_maps(m, t)) continue;
    if (i == 0 && !ty_vmap_maps(m, other) && other->ndim <= 2) continue;      /* one matrix for the rows of all examples */
    if (rank == TY_MAXDIM) return ty_error(ctx, "vmap: matmul: %d dims leave no room for one more", rank);
    const int n = TY_MAX(t->ndim, 2);
    for (int d = 0; d < rank; d++) size[1 + d] = 1;
    for (int d = 0; d < t->ndim; d++) size[1 + rank - n + (i == 0 ? n - t->ndim : 0) + d] = t->shape[d];
    TY_TRY(ty_view(ctx, t->whole, rank + 1, size, &v));
    ty_vmap_take(m, i, v);
  }
  TY_TRY(ty_vmap_apply(m, &all));
  int64_t size[TY_MAXDIM] = {m->map->size};
  memcpy(size + 1, m->one.meta[0].shape, sizeof(int64_t) * m->one.meta[0].ndim);
  const ty_status s = ty_view(ctx, all, m->one.meta[0].ndim + 1, size, &v);      /* without a vector's dim */
  ty_release(all);
  return s == TY_OK ? ty_vmap_results(m, &v, out) : s;
}

static ty_status linear(ty_vmap_call *m, ty_tensor **out) {
  ty_tensor *x = ty_vmap_example(m, 0), *w = ty_vmap_example(m, 1), *b = ty_vmap_example(m, 2), *t, *y;
  if (!ty_vmap_maps(m, w) && !ty_vmap_maps(m, b)) {
    for (int i = 0; i < 3; i++) ty_vmap_plainly(m, i);
    return ty_vmap_run(m, NULL, out);
  }
  const int64_t swapped[2] = {1, 0};
  TY_TRY(permute(m->one.ctx, w, swapped, &t));
  ty_status s = binary(m, TY_OP_matmul, x, t, &y);
  ty_release(t);
  if (s != TY_OK || !b) { *out = y; return s; }
  s = binary(m, TY_OP_add, y, b, out);
  ty_release(y);
  return s;
}

/* If each example has filters of its own, they become groups of one convolution on a GPU: x (N, B C, H, W), filters (B O, C / groups, ...);
 * the bias is added after. On the CPU many groups take longer than many calls. */
static ty_status conv2d(ty_vmap_call *m, ty_tensor **out) {
  ty_ctx *ctx = m->one.ctx;
  ty_tensor *x = ty_vmap_example(m, 0), *w = ty_vmap_example(m, 1), *bias = ty_vmap_example(m, 2), *b, *v, *y, *all;
  if (!ty_vmap_maps(m, w) && !ty_vmap_maps(m, bias)) {
    TY_TRY(ty_vmap_merged(m, 0));
    ty_vmap_plainly(m, 1);
    ty_vmap_plainly(m, 2);
    return ty_vmap_run_merged(m, out);
  }
  if (ty_device_of(x)->gpu < 0) return ty_vmap_each(m, out);
  const int64_t n = m->map->size, shape[4] = {x->shape[0], n * x->shape[1], x->shape[2], x->shape[3]};
  const ty_meta *one = &m->one.meta[0];
  TY_TRY(ty_vmap_spread(m, 0));
  TY_TRY(move_dims(ctx, m->w[0].t, 0, 1, 1, &v));
  ty_vmap_take(m, 0, v);
  TY_TRY(ty_reshape(ctx, m->w[0].t, 4, shape, &v));
  ty_vmap_take(m, 0, v);
  TY_TRY(ty_vmap_merged(m, 1));
  m->w[2] = (ty_operand){0};
  m->at[TY_AT_conv2d_groups].i = m->plain[TY_AT_conv2d_groups].i * n;
  TY_TRY(ty_vmap_apply(m, &all));
  const int64_t apart[5] = {one->shape[0], n, one->shape[1], one->shape[2], one->shape[3]};
  ty_status s = ty_reshape(ctx, all, 5, apart, &v);
  ty_release(all);
  TY_TRY(s);
  s = move_dims(ctx, v, 1, 1, 0, &all);
  ty_release(v);
  if (s != TY_OK || !bias) return s == TY_OK ? ty_vmap_results(m, &all, out) : s;
  TY_TRY(ty_vmap_results(m, &all, &y));
  const int64_t planes[3] = {bias->shape[0], 1, 1};
  s = ty_view(ctx, bias, 3, planes, &b);
  if (s == TY_OK) { s = binary(m, TY_OP_add, y, b, out); ty_release(b); }
  ty_release(y);
  return s;
}

/* An index tensor that gives each example its own part of x: 1 to the number of examples, along the first of 1 + rank dims. */
static ty_status count_examples(ty_vmap_call *m, int rank, ty_tensor **out) {
  ty_attr at[TY_MAXATTR] = {[TY_AT_range_first] = {.set = true, .f = 1}, [TY_AT_range_last] = {.set = true, .f = (double)m->map->size},
    [TY_AT_range_step] = {.set = true, .f = 1}, [TY_AT_range_dtype] = {.set = true, .i = TY_I64}, [TY_AT_range_device] = {.set = true}};
  int64_t size[TY_MAXDIM] = {m->map->size};
  ty_tensor *r;
  at[TY_AT_range_device].i = 1 + ty_device_of(ty_vmap_example(m, 0))->gpu;
  for (int d = 0; d < rank; d++) size[1 + d] = 1;
  TY_TRY(ty_apply(m->one.ctx, &ty_ops[TY_OP_range], NULL, 0, NULL, at, NULL, &r));
  const ty_status s = ty_view(m->one.ctx, r, rank + 1, size, out);
  ty_release(r);
  return s;
}

/* index, and index_put, which has a value before the indices. list: the indices' slot, 1 or 2. */
static ty_status index_by(ty_vmap_call *m, int list, ty_tensor *into, ty_tensor **out) {
  const ty_span of = m->one.span[list];
  const ty_attr *dims = &m->plain[TY_AT_index_dims];     /* also index_put's */
  const int place = ty_index_place(dims), n = of.count;
  bool together = true, mapped = false;
  int rank = 0;
  for (int i = 0; i < n; i++) {
    rank = TY_MAX(rank, ty_vmap_example(m, of.start + i)->ndim);
    mapped = mapped || ty_vmap_maps(m, ty_vmap_example(m, of.start + i));
    together = together && dims->v[i] == dims->v[0] + i;
  }
  const int rest = ty_vmap_example(m, 0)->ndim - n;                /* how many dims of x aren't indexed */
  if (list == 2 && (!together || (mapped && place))) return ty_vmap_each(m, out);
  ty_attr *at = &m->at[TY_AT_index_dims];
  *at = *dims;
  for (int i = 0; i < n; i++) TY_TRY(with_rank(m, of.start + i, rank));
  ty_tensor *all = NULL, *v;
  if (list == 1 && !ty_vmap_maps(m, ty_vmap_example(m, 0))) {         /* one x for all: the examples' dim is the first of the index dims */
    ty_vmap_plainly(m, 0);
    TY_TRY(ty_vmap_apply(m, &all));
    const ty_status s = move_dims(m->one.ctx, all, place, 1, 0, &v);
    ty_release(all);
    return s == TY_OK ? ty_vmap_results(m, &v, out) : s;
  }
  TY_TRY(ty_vmap_spread(m, 0));
  if (list == 2) TY_TRY(with_rank(m, 1, rank + rest));
  for (int i = 0; i < n; i++) at->v[i]++;
  if (!mapped) {
    if (list == 2) return ty_vmap_run(m, into, out);
    TY_TRY(ty_vmap_apply(m, &all));
    const ty_status s = together ? (v = ty_retain(all), TY_OK) : move_dims(m->one.ctx, all, rank, 1, 0, &v);
    ty_release(all);
    return s == TY_OK ? ty_vmap_results(m, &v, out) : s;
  }
  if (n == TY_MAXDIM) return ty_vmap_each(m, out);
  /* one more index: the examples' number */
  ty_operand more[TY_MAXDIM + 2];
  ty_span span[TY_MAXPARAM];
  memcpy(span, m->span, sizeof span);
  memcpy(more, m->w, sizeof *more * (size_t)of.start);
  memcpy(more + of.start + 1, m->w + of.start, sizeof *more * (size_t)n);
  TY_TRY(count_examples(m, rank, &v));
  more[of.start] = ty_operand_tensor(v);
  span[list].count++;
  memmove(at->v + 1, at->v, sizeof(int64_t) * (size_t)n);
  at->v[0] = 0;
  at->n++;
  ty_status s = ty_apply(m->one.ctx, m->one.op, more, m->one.nin + 1, span, m->at, into, &all);
  ty_release(v);
  TY_TRY(s);
  if (into) { ty_release(all); return TY_OK; }
  s = list == 1 && together && place ? move_dims(m->one.ctx, all, 1, rank, 1 + place, &v) : (v = ty_retain(all), TY_OK);
  ty_release(all);
  return s == TY_OK ? ty_vmap_results(m, &v, out) : s;
}

/* The examples may form one batch where the statistics are fixed, or are each row's or group's own. */
static ty_status norm(ty_vmap_call *m, ty_tensor **out) {
  const int id = m->one.op->id;
  const bool rows = id == TY_OP_layer_norm_stats || id == TY_OP_rms_norm_stats, batch = id == TY_OP_group_norm_stats ||
    id == TY_OP_batch_norm_apply || (id == TY_OP_batch_norm_stats && !m->asked[TY_AT_batch_norm_stats_training].i);
  bool own = false;
  for (int i = 1; i < m->one.nin; i++) own = own || ty_vmap_maps(m, ty_vmap_example(m, i));
  if (own || !(rows || batch)) return ty_vmap_each(m, out);
  for (int i = 1; i < m->one.nin; i++) ty_vmap_plainly(m, i);
  if (rows) { ty_vmap_plainly(m, 0); return ty_vmap_run(m, NULL, out); }
  TY_TRY(ty_vmap_merged(m, 0));
  return ty_vmap_run_merged(m, out);
}

/* Pictures (N, C, H, W); or, for pools, (C, H, W), where the examples are the batch. */
static ty_status pictures(ty_vmap_call *m, ty_tensor **out) {
  const bool batch = ty_vmap_example(m, 0)->ndim == 4;
  for (int i = 0; i < m->one.nin; i++) TY_TRY(batch ? ty_vmap_merged(m, i) : ty_vmap_spread(m, i));
  return batch ? ty_vmap_run_merged(m, out) : ty_vmap_run(m, NULL, out);
}

static ty_status attention(ty_vmap_call *m, ty_tensor **out) {
  if (ty_vmap_example(m, 3)) return ty_vmap_each(m, out);        /* masks broadcast in ways of their own */
  for (int i = 0; i < 3; i++) TY_TRY(ty_vmap_merged(m, i));
  return ty_vmap_run_merged(m, out);
}

static ty_status draw(ty_vmap_call *m, ty_tensor *into, ty_tensor **out) {
  if (m->one.op->id == TY_OP_multinomial || m->one.op->id == TY_OP_augment) return ty_vmap_each(m, out);
  TY_TRY(spread_all(m));
  return ty_vmap_run(m, into, out);
}

static bool has_sizes(const ty_op *op) {    /* an argument holds all sizes of a result, as in ops for gradients */
  bool has = false;
  for (int k = 0; k < op->nparam; k++) has = has || op->param[k].type == TY_P_INTS;
  return has;
}

ty_status ty_vmap_rule(ty_vmap_call *m, ty_tensor *into, ty_tensor **out) {
  const ty_op *op = m->one.op;
  const ty_tensor *first = m->one.nin ? ty_vmap_example(m, 0) : NULL;
  switch (op->cls) {
    case TY_C_POINTWISE: return pointwise(m, into, out);
    case TY_C_REDUCE: return reduce(m, out);
    case TY_C_VIEW: return views(m, out);
    case TY_C_RANDOM: return draw(m, into, out);
    case TY_C_POOL: case TY_C_RESIZE: case TY_C_SAMPLE: return has_sizes(op) ? ty_vmap_each(m, out) : pictures(m, out);
    case TY_C_NORM: return norm(m, out);
    case TY_C_INDEX:
      if (op->id == TY_OP_index || op->id == TY_OP_index_put) return index_by(m, op->id == TY_OP_index ? 1 : 2, into, out);
      if (op->id == TY_OP_bag || first->ndim == 0) return ty_vmap_each(m, out);
      break;                               /* gather, scatter */
    case TY_C_MATMUL:
      if (op->id == TY_OP_matmul) return matmul(m, out);
      return op->id == TY_OP_linear ? linear(m, out) : ty_vmap_each(m, out);
    case TY_C_CONV: return op->id == TY_OP_conv2d ? conv2d(m, out) : ty_vmap_each(m, out);
    case TY_C_ATTENTION: return op->id == TY_OP_attention ? attention(m, out) : ty_vmap_each(m, out);
    case TY_C_LOSS:
      if (op->id != TY_OP_cross_entropy_rows || ty_vmap_maps(m, ty_vmap_example(m, 2))) return ty_vmap_each(m, out);
      for (int i = 0; i < 2; i++) TY_TRY(ty_vmap_merged(m, i));
      ty_vmap_plainly(m, 2);
      return ty_vmap_run_merged(m, out);
    case TY_C_COPY:
      if (op->id == TY_OP_copy) return pointwise(m, into, out);
      if (op->id == TY_OP_strided_take || op->id == TY_OP_strided_put || (op->id == TY_OP_flip && first->ndim == 0))
        return ty_vmap_each(m, out);
      if (op->id == TY_OP_clone || op->id == TY_OP_cast) {
        ty_attr *format = &m->at[op->id == TY_OP_cast];
        if (format->i == TY_CHANNELS_LAST) format->i = TY_PRESERVE;
      }
      break;
    case TY_C_FOURIER:
      if (op->id == TY_OP_pairs_product) return pointwise(m, into, out);
      break;
    case TY_C_LINALG: case TY_C_DECOMPOSE: case TY_C_DISTANCE: case TY_C_MOVE: break;
    case TY_C_CAT:                         /* cat skips empty vectors, which have another rank */
      for (int i = 1; i < m->one.nin; i++) if (ty_vmap_example(m, i)->ndim != first->ndim) return ty_vmap_each(m, out);
      break;
    case TY_C_SORT:
      if (op->id != TY_OP_sort && op->id != TY_OP_topk && op->id != TY_OP_order_statistics) return ty_vmap_each(m, out);
      /* fall through */
    case TY_C_REDUCE_INDEX: case TY_C_SCAN: case TY_C_SOFTMAX:
      if (first->ndim == 0) return ty_vmap_each(m, out);
      break;
    default: return ty_vmap_each(m, out);
  }
  shift_dims(m);
  TY_TRY(spread_all(m));
  return ty_vmap_run(m, into, out);
}
