/* Infer rules of convolution, pooling, resizing and grid_sample, which work on the last two dims. Results are channels-last in memory
 * where the backend is faster so, or where the operand is. As in shape.c, the rules make every check of arguments. */
#include <string.h>
#include "shape.h"

static void pair(int64_t v[2], const ty_attr *a) { v[0] = a->v[0]; v[1] = a->v[1]; }

static void convolves(ty_windows *w, const ty_attr *stride, const ty_attr *padding, const ty_attr *dilation, const ty_attr *groups) {
  pair(w->stride, stride);
  pair(w->padding, padding);
  pair(w->dilation, dilation);
  w->groups = groups->i;
}
/* no kernel size: the gradient of an adaptive pool, whose windows stay 0 */
static void pools(ty_windows *w, const ty_attr *kernel, const ty_attr *stride, const ty_attr *padding, const ty_attr *ceil_mode) {
  if (!kernel->set) return;
  pair(w->kernel, kernel);
  pair(w->stride, stride->set ? stride : kernel);
  pair(w->padding, padding);
  w->ceil_mode = ceil_mode->i;
}

ty_windows ty_windows_of(const ty_call *c) {
#define AT(op, name) (&c->at[TY_AT_##op##_##name])
#define CONVOLUTION(op) convolves(&w, AT(op, stride), AT(op, padding), AT(op, dilation), AT(op, groups))
#define POOL(op) pools(&w, AT(op, kernel_size), AT(op, stride), AT(op, padding), AT(op, ceil_mode))
#define MEAN(op) POOL(op); w.include_pad = AT(op, count_include_pad)->i; w.divisor = AT(op, divisor_override)->i
  ty_windows w = {.dilation = {1, 1}, .groups = 1};
  switch (c->op->id) {
    case TY_OP_conv2d: CONVOLUTION(conv2d); break;
    case TY_OP_conv2d_backward_input: CONVOLUTION(conv2d_backward_input); break;
    case TY_OP_conv2d_backward_weight: CONVOLUTION(conv2d_backward_weight); break;
    case TY_OP_max_pool2d_indices: case TY_OP_max_pool2d_values:
      w.max = true; POOL(max_pool2d_indices); pair(w.dilation, AT(max_pool2d_indices, dilation)); break;
    case TY_OP_max_pool2d_backward:
      w.max = w.back = true; POOL(max_pool2d_backward); pair(w.dilation, AT(max_pool2d_backward, dilation)); break;
    case TY_OP_avg_pool2d: MEAN(avg_pool2d); break;
    case TY_OP_avg_pool2d_backward: w.back = true; MEAN(avg_pool2d_backward); break;
    case TY_OP_adaptive_max_pool2d_indices: w.max = true; break;
    case TY_OP_adaptive_avg_pool2d_backward: w.back = true; break;
    default: break;
  }
  return w;
#undef AT
#undef CONVOLUTION
#undef POOL
#undef MEAN
}

/* ---- convolution ---- */

static ty_status conv_size(ty_call *c, const ty_windows *w, int64_t in, int64_t kernel, int dim, int64_t *out) {
  const int64_t s = w->stride[dim], p = w->padding[dim], d = w->dilation[dim];
  if (s < 1 || d < 1 || p < 0)
    return ty_fail(c, "stride %lld and dilation %lld must be at least 1, padding %lld at least 0",
      (long long)s, (long long)d, (long long)p);
  if (s > 1 << 20 || d > 1 << 20 || p > 1 << 20 || kernel > 1 << 30) return ty_fail(c, "kernel, stride, dilation or padding is too large");
  int64_t span = in + 2 * p - d * (kernel - 1) - 1;
  if (span < 0)
    return ty_fail(c, "the kernel of size %lld (dilation %lld) is larger than the padded input of size %lld",
      (long long)kernel, (long long)d, (long long)(in + 2 * p));
  *out = span / s + 1;
  return TY_OK;
}

/* The logical order stays N, C, H, W; in memory channels are last where the backend is faster so. */
static void conv_layout(ty_call *c) {
  ty_meta *m = &c->meta[0];
  const ty_backend *b = c->in[0].t->storage->backend;
  if (b->channels_last && b->channels_last(m->dtype)) ty_lay_channels_last(m);
}

void ty_lay_channels_last(ty_meta *m) {
  m->has_stride = m->own_layout = true;
  ty_channels_last_strides(m->shape, m->ndim, m->stride);
}

ty_status ty_infer_conv2d(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *w = c->in[1].t, *b = c->in[2].t;
  const ty_windows windows = ty_windows_of(c);
  const int64_t groups = windows.groups;
  int64_t shape[4];
  for (int i = 0; i < 3; i++) {
    TY_TRY(ty_need_float(c, i));
    if (i) TY_TRY(ty_need_same_dtype(c, i, 0));
  }
  TY_TRY(ty_need_dims(c, 0, 4));
  TY_TRY(ty_need_dims(c, 1, 4));
  TY_TRY(ty_need_dims(c, 2, 1));
  if (groups < 1 || w->shape[0] % groups)
    return ty_fail(c, "groups %lld doesn't divide the %lld output channels of argument 2", (long long)groups, (long long)w->shape[0]);
  if (x->shape[1] != w->shape[1] * groups)
    return ty_fail(c, "argument 1 has shape %s; dim 2 must be %lld to match argument 2 of shape %s with groups %lld",
      ty_shape_of(x), (long long)(w->shape[1] * groups), ty_shape_of(w), (long long)groups);
  if (b && b->shape[0] != w->shape[0])
    return ty_fail(c, "argument 3 has shape %s; it must have %lld elements to match argument 2 of shape %s",
      ty_shape_of(b), (long long)w->shape[0], ty_shape_of(w));
  if (w->shape[2] < 1 || w->shape[3] < 1) return ty_fail(c, "argument 2 of shape %s has an empty kernel", ty_shape_of(w));
  shape[0] = x->shape[0];
  shape[1] = w->shape[0];
  TY_TRY(conv_size(c, &windows, x->shape[2], w->shape[2], 0, &shape[2]));
  TY_TRY(conv_size(c, &windows, x->shape[3], w->shape[3], 1, &shape[3]));
  ty_set_shape(&c->meta[0], x->dtype, 4, shape);
  conv_layout(c);
  return TY_OK;
}

/* x, w: shapes of conv2d's operands; size: the one whose gradient is asked for. Operand 1, grad, must have the shape of conv2d's result. */
static ty_status conv_gradient(ty_call *c, const int64_t *x, const int64_t *w, const int64_t *size) {
  const ty_tensor *g = c->in[0].t;
  const ty_windows windows = ty_windows_of(c);
  const int64_t groups = windows.groups;
  int64_t oh, ow;
  for (int i = 0; i < 2; i++) {
    TY_TRY(ty_need_float(c, i));
    TY_TRY(ty_need_dims(c, i, 4));
  }
  TY_TRY(ty_need_same_dtype(c, 1, 0));
  for (int i = 0; i < 4; i++)
    if (size[i] < 0) return ty_fail(c, "size %s is negative", ty_shape_text(size, 4));
  TY_TRY(conv_size(c, &windows, x[2], w[2], 0, &oh));
  TY_TRY(conv_size(c, &windows, x[3], w[3], 1, &ow));
  if (groups < 1 || w[0] % groups || w[2] < 1 || w[3] < 1 || x[1] != w[1] * groups ||
      g->shape[0] != x[0] || g->shape[1] != w[0] || g->shape[2] != oh || g->shape[3] != ow)
    return ty_fail(c, "a gradient of shape %s doesn't belong to an input of shape %s and a weight of shape %s",
      ty_shape_of(g), ty_shape_text(x, 4), ty_shape_text(w, 4));
  ty_set_shape(&c->meta[0], g->dtype, 4, size);
  return TY_OK;
}

ty_status ty_infer_conv2d_weight(ty_call *c) {
  const ty_attr *size = &c->at[TY_AT_conv2d_backward_weight_size];
  if (size->n != 4 || c->in[1].t->ndim != 4) return ty_fail(c, "size and argument 2 must have 4 dims");
  TY_TRY(conv_gradient(c, c->in[1].t->shape, size->v, size->v));
  if (c->in[0].t->storage->backend->filters_last) conv_layout(c);
  return TY_OK;
}

ty_status ty_infer_conv2d_input(ty_call *c) {
  const ty_attr *size = &c->at[TY_AT_conv2d_backward_input_size];
  if (size->n != 4 || c->in[1].t->ndim != 4) return ty_fail(c, "size and argument 2 must have 4 dims");
  TY_TRY(conv_gradient(c, size->v, c->in[1].t->shape, size->v));
  conv_layout(c);
  return TY_OK;
}

/* ---- pooling: over the last two dims of 3 or 4 ---- */

/* A channels-last operand, also one that the user laid out, gives a channels-last result: an own_layout, so that view() copies it. */
static void pool_layout(ty_meta *m, const ty_tensor *x) {
  if (x->ndim == 4 && !ty_is_contiguous(x) && ty_is_channels_last(x)) ty_lay_channels_last(m);
}

/* *out: how many windows fit dim k of the last two, of n elements. */
static ty_status pool_windows(ty_call *c, const ty_windows *w, int k, int64_t n, int64_t *out) {
  const int64_t kernel = w->kernel[k], s = w->stride[k], p = w->padding[k], d = w->dilation[k];
  if (kernel < 1 || s < 1 || p < 0 || p > kernel / 2 || kernel > 1 << 20 || s > 1 << 20 || d < 1 || d > 1 << 20)
    return ty_fail(c,
      "kernel_size %lld, stride %lld and dilation %lld must be at least 1, padding %lld at most half the kernel",
      (long long)kernel, (long long)s, (long long)d, (long long)p);
  const int64_t reach = d * (kernel - 1) + 1, free = n + 2 * p - reach;
  if (free < 0 && !(w->ceil_mode && free > -s))
    return ty_fail(c, "the window of size %lld is larger than the padded input of size %lld",
      (long long)reach, (long long)(n + 2 * p));
  *out = (free + (w->ceil_mode ? s - 1 : 0)) / s + 1;
  if (w->ceil_mode && (*out - 1) * s >= n + p) (*out)--;   /* the last window must begin inside */
  if (*out < 1) return ty_fail(c, "no window of size %lld begins within the input of size %lld", (long long)reach, (long long)n);
  return TY_OK;
}

ty_status ty_infer_pool(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  const ty_windows w = ty_windows_of(c);
  int64_t shape[4];
  if (x->ndim != 3 && x->ndim != 4) return ty_fail(c, "argument 1 must have 3 or 4 dims, got shape %s", ty_shape_of(x));
  TY_TRY(ty_need_float(c, 0));
  if (c->op->id == TY_OP_avg_pool2d && c->at[TY_AT_avg_pool2d_divisor_override].set && !w.divisor)
    return ty_fail(c, "divisor_override must not be 0");
  memcpy(shape, x->shape, sizeof(int64_t) * x->ndim);
  for (int k = 0; k < 2; k++) {
    if (x->shape[x->ndim - 2 + k] < 1) return ty_fail(c, "argument 1 of shape %s has nothing to pool", ty_shape_of(x));
    int64_t n = x->shape[x->ndim - 2 + k], *out = &shape[x->ndim - 2 + k];
    if (c->op->id == TY_OP_adaptive_avg_pool2d_windows || c->op->id == TY_OP_adaptive_max_pool2d_indices) {
      const int64_t *size = c->at[TY_AT_adaptive_avg_pool2d_windows_output_size].v;
      if (size[k] < 1 || n < 1)
        return ty_fail(c, "output size %s and input shape %s must not be empty", ty_shape_text(size, 2), ty_shape_of(x));
      *out = size[k];
      continue;
    }
    TY_TRY(pool_windows(c, &w, k, n, out));
  }
  ty_set_shape(&c->meta[0], x->dtype, x->ndim, shape);
  pool_layout(&c->meta[0], x);
  c->meta[1] = c->meta[0];                 /* positions, where the op gives them */
  c->meta[1].dtype = TY_I64;
  return TY_OK;
}

ty_status ty_infer_pool_backward(ty_call *c) {
  const ty_tensor *g = c->in[0].t, *idx = c->op->id == TY_OP_max_pool2d_backward ? c->in[1].t : NULL;
  ty_attr *size = &c->at[TY_AT_max_pool2d_backward_size];
  bool fits = (size->n == 3 || size->n == 4) && g->ndim == size->n;
  for (int i = 0; fits && i < size->n; i++) fits = size->v[i] >= 0 && (i >= size->n - 2 || g->shape[i] == size->v[i]);
  if (!fits)
    return ty_fail(c, "a gradient of shape %s doesn't belong to an input of shape %s", ty_shape_of(g), ty_shape_text(size->v, size->n));
  TY_TRY(ty_need_float(c, 0));
  if (idx) {
    TY_TRY(ty_need_dtype(c, 1, TY_I64));
    if (!TY_SAME_SHAPE(idx, g)) return ty_fail(c, "indices have shape %s, the gradient %s", ty_shape_of(idx), ty_shape_of(g));
  }
  ty_set_shape(&c->meta[0], c->in[0].t->dtype, size->n, size->v);
  pool_layout(&c->meta[0], idx ? idx : g);
  const ty_windows w = ty_windows_of(c);
  if (!w.kernel[0]) return TY_OK;          /* adaptive: the sizes, or the indices, say all */
  for (int k = 0; k < 2; k++) {
    const int d = size->n - 2 + k;
    int64_t n;
    TY_TRY(pool_windows(c, &w, k, size->v[d], &n));
    if (n != g->shape[d])
      return ty_fail(c, "a gradient of shape %s doesn't belong to an input of shape %s and these windows",
        ty_shape_of(g), ty_shape_text(size->v, size->n));
  }
  return TY_OK;
}

ty_sampling_options ty_sampling_options_of(const ty_call *c) {
#define AT(op, name) c->at[TY_AT_##op##_##name]
#define GRID(op) .padding = (int)AT(op, padding_mode).i, .corners = AT(op, align_corners).i
#define RESIZE(op) .mode = (int)AT(op, mode).i, .corners = AT(op, align_corners).i, .factor = {AT(op, factor_h).f, AT(op, factor_w).f}
  switch (c->op->id) {
    case TY_OP_resize: return (ty_sampling_options){RESIZE(resize)};
    case TY_OP_resize_backward: return (ty_sampling_options){RESIZE(resize_backward)};
    case TY_OP_grid_sample_take: return (ty_sampling_options){.mode = (int)AT(grid_sample_take, mode).i, GRID(grid_sample_take)};
    case TY_OP_grid_sample_backward_grid: return (ty_sampling_options){GRID(grid_sample_backward_grid)};     /* bilinear */
    default: return (ty_sampling_options){.mode = (int)AT(grid_sample_backward_x, mode).i, GRID(grid_sample_backward_x)};
  }
#undef AT
#undef GRID
#undef RESIZE
}

/* ---- grid_sample: pictures (N, C, H, W) at the points of grids (N, Ho, Wo, 2) ---- */

/* x: the pictures' shape; grid: the grid's slot; y: the slot of a gradient for the values at its points (-1: none) */
static ty_status samples(ty_call *c, const int64_t x[4], int grid, int y) {
  const ty_tensor *g = c->in[grid].t;
  for (int i = 0; i < c->nin; i++) {
    TY_TRY(ty_need_float(c, i));
    TY_TRY(ty_need_dims(c, i, 4));
    TY_TRY(ty_need_same_dtype(c, i, 0));
  }
  if (x[2] < 1 || x[3] < 1 || x[0] < 0 || x[1] < 0) return ty_fail(c, "pictures of shape %s have no pixels", ty_shape_text(x, 4));
  if (x[2] > INT32_MAX / x[3]) return ty_fail(c, "pictures of shape %s are too large", ty_shape_text(x, 4));
  if (g->shape[0] != x[0] || g->shape[3] != 2)
    return ty_fail(c, "argument %d has shape %s; it must be (%lld, height, width, 2) to match pictures of shape %s", ty_position(c, grid),
      ty_shape_of(g), (long long)x[0], ty_shape_text(x, 4));
  const int64_t want[4] = {x[0], x[1], g->shape[1], g->shape[2]};
  if (y >= 0 && memcmp(c->in[y].t->shape, want, sizeof want))
    return ty_fail(c, "a gradient of shape %s doesn't belong to a grid of shape %s", ty_shape_of(c->in[y].t), ty_shape_of(g));
  return TY_OK;
}
ty_status ty_infer_grid_sample(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *g = c->in[1].t;
  TY_TRY(ty_need_dims(c, 0, 4));
  TY_TRY(samples(c, x->shape, 1, -1));
  ty_set_shape(&c->meta[0], x->dtype, 4, (const int64_t[4]){x->shape[0], x->shape[1], g->shape[1], g->shape[2]});
  return TY_OK;
}
ty_status ty_infer_grid_sample_backward_grid(ty_call *c) {
  TY_TRY(ty_need_dims(c, 1, 4));
  TY_TRY(samples(c, c->in[1].t->shape, 2, 0));
  ty_set_shape(&c->meta[0], c->in[0].t->dtype, 4, c->in[2].t->shape);
  return TY_OK;
}
ty_status ty_infer_grid_sample_backward_x(ty_call *c) {
  const ty_attr *shape = &c->at[TY_AT_grid_sample_backward_x_shape];
  if (shape->n != 4) return ty_fail(c, "a picture's shape has 4 sizes, got %d", shape->n);
  TY_TRY(samples(c, shape->v, 1, 0));
  ty_set_shape(&c->meta[0], c->in[0].t->dtype, 4, shape->v);
  return TY_OK;
}

/* ---- resizing: the last two of 4 dims ---- */

ty_status ty_infer_resize(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  TY_TRY(ty_need_float(c, 0));
  TY_TRY(ty_need_dims(c, 0, 4));
  int64_t shape[4] = {x->shape[0], x->shape[1], c->at[TY_AT_resize_size].v[0], c->at[TY_AT_resize_size].v[1]};
  for (int i = 2; i < 4; i++)
    if (shape[i] < 1 || x->shape[i] < 1)
      return ty_fail(c, "an image of shape %s can't become %lldx%lld", ty_shape_of(x), (long long)shape[2], (long long)shape[3]);
  ty_set_shape(&c->meta[0], x->dtype, 4, shape);
  pool_layout(&c->meta[0], x);
  return TY_OK;
}

ty_status ty_infer_resize_backward(ty_call *c) {
  const ty_tensor *g = c->in[0].t;
  const ty_attr *size = &c->at[TY_AT_resize_backward_shape];
  TY_TRY(ty_need_float(c, 0));
  bool fits = g->ndim == 4 && size->n == 4 && size->v[0] == g->shape[0] && size->v[1] == g->shape[1] && size->v[2] > 0 && size->v[3] > 0;
  if (!fits || g->shape[2] != c->at[TY_AT_resize_backward_size].v[0] || g->shape[3] != c->at[TY_AT_resize_backward_size].v[1])
    return ty_fail(c, "a gradient of shape %s doesn't belong to an image of shape %s", ty_shape_of(g),
      ty_shape_text(size->v, size->n));
  ty_set_shape(&c->meta[0], g->dtype, 4, size->v);
  pool_layout(&c->meta[0], g);
  return TY_OK;
}
