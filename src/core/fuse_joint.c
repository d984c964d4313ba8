/* Finds steps for which a backend has one hand-written kernel.
 *
 * Idea: max_pool2d reads each result of relu (or batch_norm, or both) once, so its kernel can compute that result where it reads it; in
 * backward, the gradient that pooling gives can likewise be computed where it is read. The gradient of a row norm can read a 16-bit
 * gradient directly and add the gradient that bypassed the norm. A loss and its gradient read the same rows. An optimizer step's last
 * block can do the scaler's update. Invariant: a value between two of the steps is read by them alone; if someone holds it, the steps
 * run one by one. */
#include <string.h>
#include "fuse.h"

/* Whether v is alone in its store and only two steps touch it: its maker and its reader. */
static bool between(const ty_recording *r, const int *touches, int v) {
  const store *st = &r->store[r->value[v].store];
  return st->internal && st->value == v && r->value[v].next < 0 && touches[r->value[v].store] == 2;
}

/* The step of that op that makes operand i of step `at`, and makes it for this step alone; or -1. */
static int made_for(const ty_recording *r, const int *touches, int at, int i, ty_op_id op) {
  const int v = r->step[at].vin[i], maker = v < 0 || !between(r, touches, v) ? -1 : ty_maker_of(r, v, at);
  return maker >= 0 && r->step[maker].call.op->id == (int)op && r->step[maker].vout[0] == v ? maker : -1;
}

static bool images(const ty_recording *r, int v, int dtype) {
  return v >= 0 && r->value[v].like.ndim == 4 && r->value[v].like.dtype == dtype;
}

/* batch_norm_apply, relu or both; max_pool2d_indices; maybe a clone, which puts the pooled values into another layout */
static int pool(const ty_recording *r, const int *touches, int at, int *step) {
  const int pooled = r->step[at].vout[0], relu = made_for(r, touches, at, 0, TY_OP_relu),
    norm = made_for(r, touches, relu < 0 ? at : relu, 0, TY_OP_batch_norm_apply);
  int n = 0;
  if (norm >= 0) step[n++] = norm;
  if (relu >= 0) step[n++] = relu;
  if (n == 0 || pooled < 0 || !images(r, r->step[step[0]].vin[0], r->value[pooled].like.dtype) ||
      !images(r, pooled, r->value[pooled].like.dtype))
    return 0;
  step[n++] = at;
  for (int i = at + 1; i < r->nstep && i < at + 8; i++)
    if (r->step[i].call.op->id == TY_OP_clone && r->step[i].vin[0] == pooled &&
        images(r, r->step[i].vout[0], r->value[pooled].like.dtype)) {
      step[n++] = i;
      break;
    }
  return n;
}

/* maybe relu_backward of pooled values; max_pool2d_backward; batch_norm_backward */
static int norm_backward(const ty_recording *r, const int *touches, int at, int *step) {
  const int x = r->step[at].vin[1], spread = made_for(r, touches, at, 0, TY_OP_max_pool2d_backward);
  if (spread < 0 || !images(r, x, r->value[r->step[at].vin[0]].like.dtype) || !ty_windows_of(&r->step[spread].call).kernel[0]) return 0;
  const int relu = made_for(r, touches, spread, 0, TY_OP_relu_backward), dtype = r->value[x].like.dtype;
  int n = 0;
  if (relu >= 0 && (!images(r, r->step[relu].vin[0], dtype) || !images(r, r->step[relu].vin[1], dtype))) return 0;
  if (relu < 0 && !images(r, r->step[spread].vin[0], dtype)) return 0;
  if (relu >= 0) step[n++] = relu;
  step[n++] = spread;
  step[n++] = at;
  return n;
}

/* relu_backward of pooled values; max_pool2d_backward. Not if norm_backward takes the latter. */
static int pool_backward(const ty_recording *r, const int *touches, int at, int *step) {
  const int spread = r->step[at].vout[0], relu = made_for(r, touches, at, 0, TY_OP_relu_backward);
  if (relu < 0 || spread < 0 || !ty_windows_of(&r->step[at].call).kernel[0]) return 0;
  const int dtype = r->value[spread].like.dtype;
  if (!images(r, spread, dtype) || !images(r, r->step[relu].vin[0], dtype) || !images(r, r->step[relu].vin[1], dtype)) return 0;
  for (int i = at + 1; i < r->nstep; i++)
    if (r->step[i].call.op->id == TY_OP_batch_norm_backward && r->step[i].vin[0] == spread && norm_backward(r, touches, i, step)) return 0;
  step[0] = relu;
  step[1] = at;
  return 2;
}

static bool in_order(const ty_recording *r, int v, int dtype) {
  return v >= 0 && ty_is_contiguous(&r->value[v].like) && r->value[v].like.dtype == dtype;
}

/* The step that adds v, which is made for it alone, to *other, contiguous and of the same shape; or -1. */
static int sum_with(const ty_recording *r, const int *touches, int v, int from, int *other) {
  const int dtype = r->value[v].like.dtype;
  if (!between(r, touches, v)) return -1;
  for (int i = from + 1; i < r->nstep; i++) {
    const step *k = &r->step[i];
    if (k->call.op->id != TY_OP_add || (k->vin[0] != v && k->vin[1] != v)) continue;
    *other = k->vin[k->vin[0] == v];
    return *other != v && in_order(r, *other, dtype) && in_order(r, k->vout[0], dtype) && k->call.at[TY_AT_add_alpha].f == 1 &&
      TY_SAME_SHAPE(&r->value[*other].like, &r->value[v].like) ? i : -1;
  }
  return -1;
}

/* The step that casts v, before it changes, to a contiguous 16-bit tensor (of dtype, if that has 16 bits); or -1. */
static int copy_in_16_bits(const ty_recording *r, int v, int dtype, int from) {
  for (int i = from + 1; i < r->nstep; i++) {
    const step *k = &r->step[i];
    const ty_tensor *o = k->call.op->id == TY_OP_cast && k->vin[0] == v ? &r->value[k->vout[0]].like : NULL;
    if (o && ty_is_16bit(o->dtype) && (o->dtype == dtype || !ty_is_16bit(dtype)) && ty_is_contiguous(o)) return i;
    if (ty_writes(r, k, r->value[v].store)) return -1;
  }
  return -1;
}

/* The cast of the incoming gradient from 16 bits; layer_norm_backward or rms_norm_backward; the sum of its result and the gradient that
 * bypassed the norm; the 16-bit copy of that. At least one beside the norm's. */
static int rows_backward(const ty_recording *r, const int *touches, int at, int *step) {
  const int x = r->step[at].vin[1], given = r->step[at].vout[0], dtype = x < 0 ? -1 : r->value[x].like.dtype;
  if (given < 0 || !in_order(r, given, dtype)) return 0;
  int n = 0, past, cast = made_for(r, touches, at, 0, TY_OP_cast), g = cast < 0 ? dtype : r->value[r->step[cast].vin[0]].like.dtype;
  if (cast >= 0 && (dtype != TY_F32 || !ty_is_16bit(g))) { cast = -1; g = dtype; }
  const int sum = sum_with(r, touches, given, at, &past), copy = dtype == TY_F32
    ? copy_in_16_bits(r, sum < 0 ? given : r->step[sum].vout[0], g, sum < 0 ? at : sum) : -1;
  if (cast >= 0) step[n++] = cast;
  step[n++] = at;
  if (sum >= 0) step[n++] = sum;
  if (copy >= 0) step[n++] = copy;
  return n > 1 ? n : 0;
}

/* cross_entropy_mean, and cross_entropy_mean_backward of the same operands */
static int loss(const ty_recording *r, int at, int *found) {
  const step *back = &r->step[at];
  const int maker = back->vin[3] < 0 ? -1 : ty_maker_of(r, back->vin[3], at);
  if (maker < 0 || r->step[maker].call.op->id != TY_OP_cross_entropy_mean) return 0;
  const step *k = &r->step[maker];
  const bool same = k->vin[0] == back->vin[1] && k->vin[1] == back->vin[2] && k->vin[2] == back->vin[5] &&
    k->vout[1] == back->vin[3] && k->vout[2] == back->vin[4];
  const ty_loss_options a = ty_loss_options_of(&k->call), b = ty_loss_options_of(&back->call);
  if (!same || k->vout[0] < 0 || a.ignore_index != b.ignore_index || a.label_smoothing != b.label_smoothing) return 0;
  found[0] = maker;
  found[1] = at;
  return 2;
}

/* The value of a step's operand of that name (not a list); -1: none. */
static int operand(const step *k, const char *name) {
  for (int j = 0; j < k->call.op->nparam; j++)
    if (!strcmp(k->call.op->param[j].name, name) && k->call.span[k->call.op->param[j].slot].count)
      return k->vin[k->call.span[k->call.op->param[j].slot].start];
  return -1;
}

/* An optimizer's step, and the update of its scaler, which serves no other optimizer. */
static int scaled_step(const ty_recording *r, int at, int *step) {
  const ty_span found = r->step[at].call.span[0];
  for (int i = at - 1; i >= 0 && found.count == 1; i--) {
    if (r->step[i].call.op->cls != TY_C_OPTIM || operand(&r->step[i], "found") != r->step[at].vin[found.start] ||
        operand(&r->step[i], "step") < 0)
      continue;
    step[0] = i;
    step[1] = at;
    return 2;
  }
  return 0;
}

/* Writes to step, in order, the steps of the joint kernel whose main step is `at`; gives their number, 0: none. touches: as in groups of
   fuse.c. */
int ty_joint_at(const ty_recording *r, const int *touches, int at, int *step, ty_joint *kind) {
  if (!r->step[at].backend->joint) return 0;
  switch (r->step[at].call.op->id) {
    case TY_OP_max_pool2d_indices: *kind = TY_JOINT_POOL; return pool(r, touches, at, step);
    case TY_OP_batch_norm_backward: *kind = TY_JOINT_POOL_BACKWARD; return norm_backward(r, touches, at, step);
    case TY_OP_max_pool2d_backward: *kind = TY_JOINT_POOL_BACKWARD; return pool_backward(r, touches, at, step);
    case TY_OP_layer_norm_backward:
    case TY_OP_rms_norm_backward: *kind = TY_JOINT_NORM_BACKWARD; return rows_backward(r, touches, at, step);
    case TY_OP_cross_entropy_mean_backward: *kind = TY_JOINT_LOSS; return loss(r, at, step);
    case TY_OP_amp_update: *kind = TY_JOINT_STEP; return scaled_step(r, at, step);
    default: return 0;
  }
}
