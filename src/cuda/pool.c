/* Pooling, resizing, grid_sample and distances: geometry to the kernels' structs. Invariant: results lie as the infer rule has them; the
 * kernels of pooling and resizing take any strides, the others contiguous operands. */
#include "cuda.h"
#include "grid_points.h"

void ty_plane_strides(const ty_tensor *t, int64_t s[4]) {
  const int k = t->ndim - 3;
  s[0] = k ? t->stride[0] : 0;
  for (int i = 0; i < 3; i++) s[i + 1] = t->stride[k + i];
}

static bool goes_back(int id) {
  return id == TY_OP_max_pool2d_backward || id == TY_OP_avg_pool2d_backward || id == TY_OP_adaptive_avg_pool2d_backward;
}

/* The geometry of a call: pixels, windows, and the places of maxima. */
void ty_pooling_of(const ty_call *c, const ty_tensor *large, const ty_tensor *small, const ty_tensor *places, ty_k_pooling *k) {
  const int id = c->op->id, d = large->ndim - 3;
  const bool back = goes_back(id);
  const bool max = id == TY_OP_max_pool2d_indices || id == TY_OP_max_pool2d_backward || id == TY_OP_adaptive_max_pool2d_indices;
  const ty_windows v = ty_windows_of(c);
  *k = (ty_k_pooling){.dtype = large->dtype, .max = max, .back = back, .n = d ? large->shape[0] : 1,
    .c = large->shape[d], .h = large->shape[d + 1], .w = large->shape[d + 2], .oh = small->shape[d + 1],
    .ow = small->shape[d + 2], .adaptive = !v.kernel[0], .include_pad = v.include_pad, .divisor = v.divisor,
    .x = ty_data(large), .y = ty_data(small),
    .places = places ? ty_data(places) : NULL};
  for (int i = 0; i < 2; i++) {
    k->kernel[i] = v.kernel[i];
    k->stride[i] = v.stride[i];
    k->padding[i] = v.padding[i];
    k->dilation[i] = v.dilation[i];
  }
  ty_plane_strides(large, k->xs);
  ty_plane_strides(small, k->ys);
  if (places) ty_plane_strides(places, k->is);
}

ty_status ty_cuda_pool(ty_call *c) {
  const int id = c->op->id;
  const bool back = goes_back(id);
  const ty_tensor *places = id == TY_OP_max_pool2d_backward ? c->in[1].t : c->op->nout > 1 ? c->out[1] : NULL;
  int gpu;
  cudaStream_t s;
  ty_k_pooling k;
  TY_TRY(ty_begin(c, &gpu, &s));
  ty_pooling_of(c, back ? c->out[0] : c->in[0].t, back ? c->in[0].t : c->out[0], places, &k);
  return ty_numel(c->out[0]) ? ty_launched(c, gpu, ty_k_pool(&k, s)) : TY_OK;
}

ty_status ty_cuda_resize(ty_call *c) {
  const bool back = c->op->id == TY_OP_resize_backward;
  const ty_tensor *x = back ? c->out[0] : c->in[0].t, *y = back ? c->in[0].t : c->out[0];
  const ty_sampling_options how = ty_sampling_options_of(c);
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_begin(c, &gpu, &s));
  ty_k_resizing k = {.dtype = x->dtype, .mode = how.mode, .corners = how.corners, .back = back, .n = x->shape[0],
                     .c = x->shape[1], .in = {x->shape[2], x->shape[3]}, .out = {y->shape[2], y->shape[3]},
                     .factor = {how.factor[0], how.factor[1]}, .x = ty_data(x), .y = ty_data(y)};
  ty_plane_strides(x, k.xs);
  ty_plane_strides(y, k.ys);
  return ty_numel(c->out[0]) ? ty_launched(c, gpu, ty_k_resize(&k, s)) : TY_OK;
}

ty_status ty_cuda_sample(ty_call *c) {
  const int id = c->op->id;
  const ty_sample_kind kind = id == TY_OP_grid_sample_take ? TY_SAMPLE_TAKE :
    id == TY_OP_grid_sample_slopes ? TY_SAMPLE_SLOPES : TY_SAMPLE_SPREAD;
  const ty_sampling_options how = ty_sampling_options_of(c);
  ty_tensor *in[3] = {NULL}, *o = c->out[0];
  ty_status st = TY_OK;
  int gpu;
  cudaStream_t s;
  if (ty_numel(o) == 0) return TY_OK;
  for (int i = 0; i < c->nin && st == TY_OK; i++) st = ty_contiguous(c->ctx, c->in[i].t, &in[i]);
  if (st == TY_OK) st = ty_begin(c, &gpu, &s);
  if (st == TY_OK) {
    const ty_tensor *x = kind == TY_SAMPLE_TAKE ? in[0] : kind == TY_SAMPLE_SLOPES ? in[1] : o;
    const ty_tensor *y = kind == TY_SAMPLE_TAKE ? o : in[0];
    const ty_tensor *grid = in[kind == TY_SAMPLE_SLOPES ? 2 : 1];
    const ty_k_sampling k = {.kind = kind, .dtype = o->dtype, .nearest = how.mode == TY_GRID_NEAREST, .padding = how.padding,
      .corners = how.corners, .ordered = ty_core->flags->deterministic,
      .n = x->shape[0], .c = x->shape[1], .h = x->shape[2], .w = x->shape[3],
      .points = grid->shape[1] * grid->shape[2], .x = ty_data(x), .y = ty_data(y), .slopes = ty_data(o), .grid = ty_data(grid)};
    const size_t bytes = (size_t)(ty_numel(o) * ty_itemsize(o));
    if (kind == TY_SAMPLE_SPREAD) st = ty_launched(c, gpu, cudaMemsetAsync(ty_data(o), 0, bytes, s));
    if (st == TY_OK && k.points) st = ty_launched(c, gpu, ty_k_sample(&k, s));
  }
  for (int i = 0; i < 3; i++) ty_release(in[i]);
  return st;
}

ty_status ty_cuda_distance(ty_call *c) {
  const bool back = c->op->id == TY_OP_distances_backward;
  ty_tensor *in[4] = {NULL}, *o = c->out[0];
  ty_status st = TY_OK;
  int gpu;
  cudaStream_t s;
  if (ty_numel(o) == 0) return TY_OK;
  for (int i = 0; i < c->nin && st == TY_OK; i++) st = ty_contiguous(c->ctx, c->in[i].t, &in[i]);
  if (st == TY_OK) st = ty_begin(c, &gpu, &s);
  if (st == TY_OK) {
    const ty_tensor *a = in[back], *b = in[back + 1];
    ty_k_distance k = {.dtype = o->dtype, .batch = 1, .n = a->shape[a->ndim - 2], .m = b->shape[b->ndim - 2], .d = a->shape[a->ndim - 1],
      .p = back ? c->at[TY_AT_distances_backward_p].f : c->at[TY_AT_distances_p].f, .a = ty_data(a), .b = ty_data(b), .o = ty_data(o)};
    for (int i = 0; i < a->ndim - 2; i++) k.batch *= a->shape[i];
    if (back) {
      k.g = ty_data(in[0]);
      k.norms = ty_data(in[3]);
    }
    st = ty_launched(c, gpu, ty_k_distances(&k, s));
  }
  for (int i = 0; i < 4; i++) ty_release(in[i]);
  return st;
}
