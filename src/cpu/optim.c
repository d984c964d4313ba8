/* Optimizer steps over lists of tensors: one call updates every parameter. Tensors that agree in layout are updated where
 * they lie; others through contiguous copies in the loop's type. */
#include <math.h>
#include <string.h>
#include "cpu.h"

#define LISTS 5
typedef struct { ty_tensor *t, *use; bool back; } part;   /* use: what the loop reads and writes; t is NULL where a list is left out */

static bool same_layout(const ty_tensor *a, const ty_tensor *b) {
  for (int i = 0; i < a->ndim; i++)
    if (a->shape[i] != 1 && a->stride[i] != b->stride[i]) return false;
  return a->dtype == b->dtype && ty_is_dense(b);
}

static ty_status step(ty_call *c, part *p, int n) {
  ty_dtype d = ty_compute_dtype((ty_dtype)p[0].t->dtype);
  int k = ty_k(d);
  bool direct = p[0].t->dtype == d && ty_is_dense(p[0].t);
  ty_status s = TY_OK;
  for (int i = 1; i < n; i++) direct = direct && (!p[i].t || same_layout(p[0].t, p[i].t));
  for (int i = 0; i < n && s == TY_OK; i++) {
    if (!p[i].t) continue;
    if (direct) { p[i].use = ty_retain(p[i].t); continue; }
    ty_meta m;
    ty_meta_of(p[i].t, &m);
    m.dtype = d;
    s = ty_empty(c->ctx, p[i].t->storage->backend, &m, &p[i].use);
    if (s == TY_OK) s = ty_copy_into(c->ctx, p[i].use, p[i].t);
  }
  if (s == TY_OK) {
    const ty_attr *a = c->at;
    const ty_loops *l = ty_cpu_loops();
    int64_t total = ty_numel(p[0].t), chunk = 16384, size = ty_ksize[k];
    ty_sgd sgd;
    ty_adam adam;
    ty_rmsprop rms;
    int id = c->op->id;
    if (id == TY_OP_sgd_step) sgd = (ty_sgd){a[0].f, a[1].f, a[2].f, a[3].f, (int)a[4].i, (int)a[5].i, (int)a[6].i};
    else if (id == TY_OP_rmsprop_step) rms = (ty_rmsprop){a[0].f, a[1].f, a[2].f, a[3].f, a[4].f, (int)a[5].i};
    else if (id == TY_OP_adagrad_step) rms = (ty_rmsprop){a[0].f, 0, a[1].f, a[2].f, 0, (int)a[3].i};
    else adam = (ty_adam){a[0].f, a[1].f, a[2].f, a[3].f, a[4].f, 1 - pow(a[1].f, a[5].f), 1 - pow(a[2].f, a[5].f), (int)a[6].i, (int)a[7].i};
    #pragma omp parallel for num_threads(ty_threads_for(total * 2)) schedule(static)
    for (int64_t at = 0; at < total; at += chunk) {
      int64_t m = TY_MIN(chunk, total - at);
      char *q[LISTS] = {NULL};
      for (int i = 0; i < n; i++)
        if (p[i].use) q[i] = (char *)ty_data(p[i].use) + at * size;
      if (id == TY_OP_sgd_step) l->sgd[k](q[0], q[1], q[2], m, &sgd);
      else if (id == TY_OP_rmsprop_step) l->rmsprop[k](q[0], q[1], q[2], q[3], q[4], m, &rms);
      else if (id == TY_OP_adagrad_step) l->adagrad[k](q[0], q[1], q[2], m, &rms);
      else l->adam[k](q[0], q[1], q[2], q[3], q[4], m, &adam);
    }
    for (int i = 0; i < n && !direct && s == TY_OK; i++)
      if (p[i].back && p[i].t) s = ty_copy_into(c->ctx, p[i].t, p[i].use);
  }
  for (int i = 0; i < n; i++) { ty_release(p[i].use); p[i].use = NULL; }
  return s;
}

static ty_status norm_of_all(ty_call *c) {
  double sum = 0;
  for (int i = 0; i < c->nin; i++) {
    ty_attr at[2] = {{0}};
    ty_operand in[1] = {ty_op_tensor(c->in[i].t)};
    ty_call k = {.ctx = c->ctx, .op = &ty_ops[TY_OP_norm2], .in = in, .nin = 1, .at = at};
    ty_meta m = {.dtype = c->in[i].t->dtype == TY_F64 ? TY_F64 : TY_F32};
    TY_TRY(ty_empty(c->ctx, c->in[i].t->storage->backend, &m, &k.out[0]));
    k.compute = ty_compute_dtype((ty_dtype)c->in[i].t->dtype);
    ty_status s = ty_cpu_reduce(&k);
    double v = ty_get(ty_data(k.out[0]), (ty_dtype)m.dtype);
    ty_release(k.out[0]);
    TY_TRY(s);
    sum += v * v;
  }
  ty_set(ty_data(c->out[0]), (ty_dtype)c->out[0]->dtype, sqrt(sum));
  return TY_OK;
}

ty_status ty_cpu_optim(ty_call *c) {
  if (c->op->id == TY_OP_multi_norm) return norm_of_all(c);
  ty_span s0 = c->span[0];
  if (c->op->id == TY_OP_multi_scale) {
    for (int i = 0; i < s0.count; i++) {
      ty_operand in[2] = {c->in[s0.start + i], c->in[c->span[1].start]};
      ty_call k = {.ctx = c->ctx, .op = &ty_ops[TY_OP_mul], .in = in, .nin = 2, .at = c->at};
      k.out[0] = in[0].t;
      k.compute = ty_compute_dtype((ty_dtype)in[0].t->dtype);
      TY_TRY(ty_cpu_pointwise(&k));
    }
    return TY_OK;
  }
  int lists = c->op->nin;
  for (int i = 0; i < s0.count; i++) {
    part p[LISTS] = {{0}};
    for (int k = 0; k < lists; k++)
      if (c->span[k].count) p[k] = (part){c->in[c->span[k].start + i].t, NULL, c->op->param[k].mutated};
    TY_TRY(step(c, p, lists));
  }
  return TY_OK;
}
