/* What training is made of: softmax, cross-entropy, optimizer steps. */
#include <math.h>
#include "cuda.h"

/* ---- softmax ---- */

ty_status ty_cuda_softmax(ty_call *c) {
  const ty_tensor *o = c->out[0];
  const bool back = c->nin == 2;
  const int dim = (int)c->at[0].i;
  int gpu;
  cudaStream_t s;
  ty_tensor *a = NULL, *b = NULL, *r = NULL;
  ty_k_lines k = {.dtype = o->dtype, .log = c->op->id == TY_OP_log_softmax || c->op->id == TY_OP_log_softmax_backward};
  TY_TRY(ty_begin(c, &gpu, &s));
  if (ty_numel(o) == 0) return TY_OK;
  ty_lines_of(o, dim, &k.lines, &k.n, &k.inner);
  ty_status st = ty_contiguous(c->ctx, c->in[0].t, &a);
  if (st == TY_OK && back) st = ty_contiguous(c->ctx, c->in[1].t, &b);
  if (st == TY_OK && !ty_is_contiguous(o)) st = ty_new(c, gpu, (ty_dtype)o->dtype, o->ndim, o->shape, &r);
  if (st == TY_OK) {
    k.x = ty_data(back ? b : a);
    k.g = back ? ty_data(a) : NULL;
    k.o = ty_data(r ? r : o);
    cudaError_t e = ty_k_softmax(&k, s);
    if (e == cudaSuccess && r) e = ty_convert(o, r, s);
    st = ty_launched(c, gpu, e);
  }
  ty_release(a);
  ty_release(b);
  ty_release(r);
  return st;
}

/* ---- cross-entropy ---- */

ty_status ty_cuda_loss(ty_call *c) {
  const bool back = c->op->id == TY_OP_cross_entropy_backward;
  const ty_tensor *y = c->in[back ? 2 : 1].t, *g = back ? c->in[0].t : NULL;
  ty_tensor *x = NULL, *w = NULL, *wt = c->in[back ? 4 : 2].t;
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_begin(c, &gpu, &s));
  ty_status st = ty_contiguous(c->ctx, c->in[back ? 1 : 0].t, &x);
  if (st == TY_OK && wt) st = ty_contiguous(c->ctx, wt, &w);
  if (st == TY_OK && ty_numel(x)) {
    const ty_k_entropy k = {.op = c->op->id, .dtype = x->dtype, .rows = x->shape[0], .n = x->shape[1], .ignore = c->at[0].i, .label_step = y->stride[0], .g_step = g ? g->stride[0] : 0,
      .smoothing = c->at[1].f, .x = ty_data(x), .weight = w ? ty_data(w) : NULL, .g = g ? ty_data(g) : NULL, .labels = ty_data(y), .o = ty_data(c->out[0]),
      .lse = back ? ty_data(c->in[3].t) : ty_data(c->out[1]), .fault = ty_fault_of(gpu)};
    st = ty_launched(c, gpu, ty_k_cross_entropy(&k, s));
  }
  ty_release(x);
  ty_release(w);
  return st;
}

/* ---- optimizer steps ---- */

#define LISTS 5

/* Elements of the lists' members that lie alike can be updated where they lie. */
static bool alike(const ty_tensor *a, const ty_tensor *b) {
  for (int i = 0; i < a->ndim; i++)
    if (a->shape[i] > 1 && a->stride[i] != b->stride[i]) return false;
  return a->dtype == b->dtype;
}

static ty_status launch(ty_call *c, int gpu, ty_k_step *k, cudaStream_t s) {
  ty_status st = k->count ? ty_launched(c, gpu, ty_k_optim(k, s)) : TY_OK;
  k->count = 0;
  return st;
}

static ty_status steps(ty_call *c, int gpu, cudaStream_t s) {
  const ty_attr *a = c->at;
  const int lists = c->op->nin, id = c->op->id, count = c->span[0].count;
  ty_k_step k = {.op = id};
  if (id == TY_OP_sgd_step) { k.lr = a[0].f; k.momentum = a[1].f; k.a = a[2].f; k.weight_decay = a[3].f; k.nesterov = (int)a[4].i; k.first = (int)a[5].i; k.maximize = (int)a[6].i; }
  else if (id == TY_OP_rmsprop_step) { k.lr = a[0].f; k.a = a[1].f; k.eps = a[2].f; k.weight_decay = a[3].f; k.momentum = a[4].f; k.maximize = (int)a[5].i; }
  else if (id == TY_OP_adagrad_step) { k.lr = a[0].f; k.eps = a[1].f; k.weight_decay = a[2].f; k.maximize = (int)a[3].i; }
  else {
    k.lr = a[0].f; k.a = a[1].f; k.b = a[2].f; k.eps = a[3].f; k.weight_decay = a[4].f;
    k.correction1 = 1 - pow(a[1].f, a[5].f);
    k.correction2 = 1 - pow(a[2].f, a[5].f);
    k.decoupled = (int)a[6].i;
    k.maximize = (int)a[7].i;
  }
  ty_status st = TY_OK;
  for (int i = 0; i < count && st == TY_OK; i++) {
    ty_tensor *t[LISTS] = {NULL}, *use[LISTS] = {NULL};
    bool direct = true;
    for (int l = 0; l < lists; l++) {
      if (c->span[l].count) t[l] = c->in[c->span[l].start + i].t;
      if (t[l]) direct = direct && alike(t[0], t[l]);
    }
    direct = direct && ty_is_dense(t[0]);
    if (k.count == TY_K_TENSORS || (k.count && k.dtype != t[0]->dtype) || !direct) st = launch(c, gpu, &k, s);
    k.dtype = t[0]->dtype;
    for (int l = 0; l < LISTS && st == TY_OK; l++) {
      use[l] = t[l];
      if (t[l] && !direct) {               /* through contiguous copies of the parameter's dtype */
        use[l] = NULL;
        st = ty_new(c, gpu, (ty_dtype)t[0]->dtype, t[l]->ndim, t[l]->shape, &use[l]);
        if (st == TY_OK) st = ty_launched(c, gpu, ty_convert(use[l], t[l], s));
      }
      k.p[l][k.count] = use[l] ? ty_data(use[l]) : NULL;
    }
    k.n[k.count++] = ty_numel(t[0]);
    if (!direct) {
      if (st == TY_OK) st = launch(c, gpu, &k, s);
      for (int l = 0; l < lists; l++) {
        if (st == TY_OK && t[l] && c->op->param[l].mutated) st = ty_launched(c, gpu, ty_convert(t[l], use[l], s));
        ty_release(use[l]);
      }
    }
  }
  return st == TY_OK ? launch(c, gpu, &k, s) : st;
}

/* The 2-norm of all tensors' elements: each one's norm, then the norm of those. */
static ty_status norm_of_all(ty_call *c, int gpu, cudaStream_t s) {
  ty_tensor *parts;
  const bool wide = c->out[0]->dtype == TY_F64;
  const ty_meta m = {.dtype = wide ? TY_F64 : TY_F32, .ndim = 1, .shape = {c->nin}};
  TY_TRY(ty_empty(c->ctx, ty_device_of(c->out[0]), &m, &parts));
  ty_status st = TY_OK;
  for (int i = 0; i < c->nin && st == TY_OK; i++) st = ty_reduce_into(c, gpu, s, TY_OP_norm2, c->in[i].t, (char *)ty_data(parts) + i * ty_itemsize(parts), (ty_dtype)m.dtype);
  if (st == TY_OK) st = ty_reduce_into(c, gpu, s, TY_OP_norm2, parts, ty_data(c->out[0]), (ty_dtype)c->out[0]->dtype);
  ty_release(parts);
  return st;
}

ty_status ty_cuda_optim(ty_call *c) {
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_begin(c, &gpu, &s));
  if (c->op->id == TY_OP_multi_norm) return norm_of_all(c, gpu, s);
  if (c->op->id != TY_OP_multi_scale) return steps(c, gpu, s);
  const ty_operand scale = c->in[c->span[1].start];
  ty_status st = TY_OK;
  for (int i = 0; i < c->span[0].count && st == TY_OK; i++) st = ty_scale_by(c, gpu, s, c->in[c->span[0].start + i].t, scale);
  return st;
}
