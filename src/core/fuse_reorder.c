/* Steps that have less to do in another order, or nothing.
 *
 * Idea: a maximum of relu's results comes from a place where relu's input was above 0, or is 0 itself; so relu's
 * gradient may be taken of the pooled values, which are few, before it is spread over all. Invariant: what either order
 * gives is the same, to the bit. */
#include <string.h>
#include "fuse.h"

/* The step before `before` that alone writes what value v is, or -1. */
int ty_maker_of(const ty_program *p, int v, int before) {
  int found = -1;
  for (int i = 0; i < before; i++) {
    if (!ty_writes(p, &p->step[i], p->value[v].store)) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

static int readers(const ty_program *p, int store) {
  int n = 0;
  for (int i = 0; i < p->nstep; i++)
    for (int j = 0; j < p->step[i].call.nin; j++) n += p->step[i].vin[j] >= 0 && p->value[p->step[i].vin[j]].store == store;
  return n;
}

static bool written_between(const ty_program *p, int v, int from, int to) {
  for (int i = from + 1; i < to; i++)
    if (ty_writes(p, &p->step[i], p->value[v].store)) return true;
  return false;
}

static bool same_layout(const ty_tensor *a, const ty_tensor *b) {
  return a->dtype == b->dtype && TY_SAME_SHAPE(a, b) && !memcmp(a->stride, b->stride, sizeof(int64_t) * a->ndim);
}

/* Step at is relu_backward(max_pool2d_backward(g, places), y), places and pooled being max_pool2d_indices(y): then it
   becomes max_pool2d_backward(relu_backward(g, pooled), places). */
static void relu_before_pool(ty_program *p, int at) {
  step *relu = &p->step[at];
  if (relu->call.op->id != TY_OP_relu_backward || relu->vin[0] < 0 || relu->vin[1] < 0) return;
  const int spread = relu->vin[0], y = relu->vin[1], result = relu->vout[0], back = ty_maker_of(p, spread, at);
  store *st = &p->store[p->value[spread].store];
  if (back < 0 || p->step[back].call.op->id != TY_OP_max_pool2d_backward || p->step[back].vout[0] != spread) return;
  step *pool = &p->step[back];
  const int g = pool->vin[0], places = pool->vin[1], forward = places < 0 ? -1 : ty_maker_of(p, places, back);
  if (g < 0 || forward < 0 || p->step[forward].call.op->id != TY_OP_max_pool2d_indices ||
      p->step[forward].vin[0] != y || p->step[forward].vout[1] != places)
    return;
  const int pooled = p->step[forward].vout[0];
  if (pooled < 0 || written_between(p, pooled, forward, at) || written_between(p, y, forward, at)) return;
  const ty_tensor *small = &p->value[pooled].like;
  value *v = &p->value[spread];
  if (!st->internal || st->visible || st->value != spread || v->next >= 0 || readers(p, v->store) != 1 ||
      p->value[result].store == v->store)
    return;
  if (!same_layout(&v->like, &p->value[result].like) || !ty_is_dense(small) || small->dtype != v->like.dtype) return;
  v->like.ndim = small->ndim;
  v->like.offset = 0;
  memcpy(v->like.shape, small->shape, sizeof small->shape);
  memcpy(v->like.stride, small->stride, sizeof small->stride);
  st->nbytes = (size_t)(ty_numel(small) * ty_itemsize(small));
  relu->vin[0] = g;
  relu->vin[1] = pooled;
  relu->vout[0] = spread;
  pool->vin[0] = spread;
  pool->vout[0] = result;
  const step first = *relu;
  *relu = *pool;
  *pool = first;
}

/* Step at is 1 times a value, as backward begins: who reads the product reads the value. */
static void skip_one(ty_program *p, int at) {
  const step *mul = &p->step[at], *fill;
  if (mul->call.op->id != TY_OP_mul || mul->vin[0] < 0 || mul->vin[1] < 0) return;
  const int one = ty_maker_of(p, mul->vin[0], at), v = mul->vin[1], product = mul->vout[0];
  if (one < 0 || (fill = &p->step[one])->call.op->id != TY_OP_fill || fill->vout[0] != mul->vin[0] ||
      !ty_is_number(&fill->call.in[1]) || fill->call.in[1].f != 1)
    return;
  if (!same_layout(&p->value[v].like, &p->value[product].like) || ty_maker_of(p, product, p->nstep) != at) return;
  for (int i = at + 1; i < p->nstep && !ty_writes(p, &p->step[i], p->value[v].store); i++)
    for (int j = 0; j < p->step[i].call.nin; j++)
      if (p->step[i].vin[j] == product && !ty_mutates(&p->step[i].call, j)) p->step[i].vin[j] = v;
}

void ty_fuse_exchange(ty_program *p) {
  for (int i = 0; i < p->nstep; i++) {
    relu_before_pool(p, i);
    skip_one(p, i);
  }
}
