/* Reorders or removes steps so that less work is left.
 *
 * Idea: a maximum over relu's results is 0, or comes from an element at which relu's input was above 0. So relu's gradient can be taken of
 * the few pooled values, before pooling's gradient spreads it. A result that is only copied to another place, as the gradients of a
 * projection's three slices are, is written there directly. Invariant: all results stay the same, to the bit. */
#include <string.h>
#include "fuse.h"

/* Whether operand j, or result j - nin, reads a store (writes: writes one). */
static bool uses_store(const ty_recording *r, const step *k, int j, bool writes, int *store) {
  const int v = j < k->call.nin ? k->vin[j] : k->vout[j - k->call.nin];
  if (v < 0) return false;
  *store = r->value[v].store;
  return j >= k->call.nin ? writes : writes ? ty_mutates_operand(&k->call, j) : ty_reads(k->call.op, j);
}
void ty_uses_free(ty_uses *u) {
  ty_free(u->first);
  ty_free(u->step);
  *u = (ty_uses){NULL, NULL};
}
ty_status ty_find_uses(ty_ctx *ctx, const ty_recording *r, bool writes, ty_uses *u) {
  const size_t n = sizeof(int) * (size_t)(r->nstore + 2);
  int store, *last = ty_malloc(n);         /* by store: the last step that was found to use it */
  ty_uses_free(u);
  bool ok = last && (u->first = ty_malloc(n));
  if (ok) memset(u->first, 0, n);
  for (int pass = 0; pass < 2 && ok; pass++) {           /* counts, one place further; then fills, which moves each first to its end */
    memset(last, -1, n);
    for (int i = 0; i < r->nstep; i++) {
      const step *k = &r->step[i];
      for (int j = 0; j < k->call.nin + TY_MAXOUT; j++) {
        if (!uses_store(r, k, j, writes, &store) || last[store] == i) continue;
        last[store] = i;
        if (pass) u->step[u->first[store + 1]++] = i;
        else u->first[store + 2]++;
      }
    }
    if (pass) break;
    for (int i = 1; i < r->nstore + 2; i++) u->first[i] += u->first[i - 1];
    ok = (u->step = ty_malloc(sizeof(int) * (size_t)(u->first[r->nstore + 1] + 1)));
  }
  ty_free(last);
  if (ok) return TY_OK;
  ty_uses_free(u);
  return ty_program_no_memory(ctx);
}

/* The only step before `before` that writes v's store, or -1. */
int ty_maker_of(const ty_recording *r, int v, int before) {
  const int *at = r->writes.first + r->value[v].store, *step = r->writes.step + at[0], n = at[1] - at[0];
  return n > 0 && step[0] < before && (n == 1 || step[1] >= before) ? step[0] : -1;
}

static int reads_of(const ty_recording *r, const step *k, int store) {
  int n = 0;
  for (int j = 0; j < k->call.nin; j++) n += k->vin[j] >= 0 && r->value[k->vin[j]].store == store;
  return n;
}

static int readers(const ty_recording *r, int store) {
  int n = 0;
  for (int i = 0; i < r->nstep; i++) n += reads_of(r, &r->step[i], store);
  return n;
}

static bool written_between(const ty_recording *r, int v, int from, int to) {
  for (int i = from + 1; i < to; i++)
    if (ty_writes(r, &r->step[i], r->value[v].store)) return true;
  return false;
}

/* If step `at` is relu_backward(max_pool2d_backward(g, places), y), where pooled, places = max_pool2d_indices(y), it becomes
   max_pool2d_backward(relu_backward(g, pooled), places). */
static bool relu_before_pool(ty_recording *r, int at) {
  step *relu = &r->step[at];
  if (relu->call.op->id != TY_OP_relu_backward || relu->vin[0] < 0 || relu->vin[1] < 0) return false;
  const int spread = relu->vin[0], y = relu->vin[1], result = relu->vout[0], back = ty_maker_of(r, spread, at);
  store *st = &r->store[r->value[spread].store];
  if (back < 0 || r->step[back].call.op->id != TY_OP_max_pool2d_backward || r->step[back].vout[0] != spread) return false;
  step *pool = &r->step[back];
  const int g = pool->vin[0], places = pool->vin[1], forward = places < 0 ? -1 : ty_maker_of(r, places, back);
  if (g < 0 || forward < 0 || r->step[forward].call.op->id != TY_OP_max_pool2d_indices ||
      r->step[forward].vin[0] != y || r->step[forward].vout[1] != places)
    return false;
  const int pooled = r->step[forward].vout[0];
  if (pooled < 0 || written_between(r, pooled, forward, at) || written_between(r, y, forward, at)) return false;
  const ty_tensor *small = &r->value[pooled].like;
  value *v = &r->value[spread];
  if (!st->internal || st->visible || st->value != spread || v->next >= 0 || readers(r, v->store) != 1 ||
      r->value[result].store == v->store)
    return false;
  if (!ty_same_layout(&v->like, &r->value[result].like) || !ty_is_dense(small) || small->dtype != v->like.dtype) return false;
  v->like.ndim = small->ndim;
  v->like.offset = 0;
  memcpy(v->like.shape, small->shape, sizeof small->shape);
  memcpy(v->like.stride, small->stride, sizeof small->stride);
  st->nbytes = ty_nbytes(small);
  relu->vin[0] = g;
  relu->vin[1] = pooled;
  relu->vout[0] = spread;
  pool->vin[0] = spread;
  pool->vout[0] = result;
  const step first = *relu;
  *relu = *pool;
  *pool = first;
  return true;
}

/* If step `at` multiplies a value by 1, as at backward's begin, readers of the product read the value instead. */
static void skip_one(ty_recording *r, int at) {
  const step *mul = &r->step[at], *fill;
  if (mul->call.op->id != TY_OP_mul || mul->vin[0] < 0 || mul->vin[1] < 0) return;
  const int one = ty_maker_of(r, mul->vin[0], at), v = mul->vin[1], product = mul->vout[0];
  if (one < 0 || (fill = &r->step[one])->call.op->id != TY_OP_fill || fill->vout[0] != mul->vin[0] ||
      !ty_is_number(&fill->call.in[1]) || fill->call.in[1].f != 1)
    return;
  if (!ty_same_layout(&r->value[v].like, &r->value[product].like) || ty_maker_of(r, product, r->nstep) != at) return;
  for (int i = at + 1; i < r->nstep && !ty_writes(r, &r->step[i], r->value[v].store); i++)
    for (int j = 0; j < r->step[i].call.nin; j++)
      if (r->step[i].vin[j] == product && !ty_mutates_operand(&r->step[i].call, j)) r->step[i].vin[j] = v;
}

/* made and seen are two geometries of one dense memory. *result: made's geometry if that memory's elements move to where place puts seen's.
 * False: no strides describe this, or its rows would not be contiguous and aligned as in memory of their own. */
static bool in_place_of(const ty_tensor *made, const ty_tensor *seen, const ty_tensor *place, ty_tensor *result) {
  int64_t taken[TY_MAXDIM] = {0};          /* by dim of seen: the largest index that made's dims reach in it */
  const int64_t line = 16 / ty_itemsize(made);
  if (!ty_is_dense(seen) || !ty_is_dense(made) || made->offset != seen->offset || place->offset % line) return false;
  *result = *made;
  result->offset = place->offset;
  for (int i = 0; i < made->ndim; i++) {
    if (made->shape[i] <= 1) continue;
    int d = -1;
    for (int k = 0; k < seen->ndim; k++)
      if (seen->shape[k] > 1 && seen->stride[k] <= made->stride[i] && (d < 0 || seen->stride[k] > seen->stride[d])) d = k;
    if (d < 0 || made->stride[i] % seen->stride[d]) return false;
    const int64_t times = made->stride[i] / seen->stride[d];
    taken[d] += times * (made->shape[i] - 1);
    if (taken[d] >= seen->shape[d]) return false;
    result->stride[i] = times * place->stride[d];
    if (result->stride[i] % line && !(made->stride[i] == 1 && result->stride[i] == 1)) return false;
  }
  return true;
}

static void remove_step(ty_recording *r, int at) {
  step *k = &r->step[at];
  ty_step_free(k);
  memmove(k, k + 1, sizeof(step) * (size_t)(--r->nstep - at));
  for (int e = 0; e < r->nevent; e++) r->event[e].first -= r->event[e].first > at;
}

/* If step `at` copies a result of attention_backward that nobody else reads, attention_backward writes to the copy's place. *gone: the copy
 * was removed. */
static ty_status give_in_place(ty_ctx *ctx, ty_recording *r, int at, bool *gone) {
  const step *copy = &r->step[at];
  *gone = false;
  if (copy->call.op->id != TY_OP_copy || copy->vin[1] < 0) return TY_OK;
  const int from = copy->vin[1], to = copy->vout[0], store_to = r->value[to].store, back = ty_maker_of(r, from, at);
  store *st = &r->store[r->value[from].store];
  const int op = back < 0 ? -1 : r->step[back].call.op->id;
  if ((op != TY_OP_attention_backward && op != TY_OP_attention_backward_with_mask) || !st->internal || st->visible ||
      readers(r, r->value[from].store) != 1 || !r->store[store_to].internal || r->value[from].like.dtype != r->value[to].like.dtype ||
      !TY_SAME_SHAPE(&r->value[from].like, &r->value[to].like))
    return TY_OK;
  step *make = &r->step[back];
  int which = -1;
  for (int j = 0; j < TY_MAXOUT; j++)
    if (make->vout[j] >= 0 && r->value[make->vout[j]].store == r->value[from].store) which = j;
  for (int i = back; i < at; i++)
    if (reads_of(r, &r->step[i], store_to) || (i > back && ty_writes(r, &r->step[i], store_to))) return TY_OK;
  if (which > 2) return TY_OK;             /* the mask's */
  value there = {.store = store_to, .next = r->store[store_to].value};
  if (!in_place_of(&r->value[make->vout[which]].like, &r->value[from].like, &r->value[to].like, &there.like)) return TY_OK;
  if (!ty_grow(&r->value, r->nvalue + 1, &r->value_room, sizeof(value))) return ty_program_no_memory(ctx);
  r->value[r->nvalue] = there;
  make->vout[which] = r->store[store_to].value = r->nvalue++;
  st->unwritten = true;
  remove_step(r, at);
  *gone = true;
  return TY_OK;
}

ty_status ty_fuse_exchange(ty_ctx *ctx, ty_recording *r) {
  TY_TRY(ty_find_uses(ctx, r, true, &r->writes));
  for (int i = 0; i < r->nstep; i++) {
    bool gone;
    if (relu_before_pool(r, i)) TY_TRY(ty_find_uses(ctx, r, true, &r->writes));
    skip_one(r, i);
    TY_TRY(give_in_place(ctx, r, i, &gone));
    if (gone) TY_TRY(ty_find_uses(ctx, r, true, &r->writes));
    i -= gone;
  }
  return TY_OK;
}
