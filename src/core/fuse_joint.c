/* Steps that a backend does at once, by a kernel of its own.
 *
 * Idea: max_pool2d goes over what relu leaves (of what batch_norm makes), and reads it once: so it can make it where it
 * reads it, and in backward what reaches batch_norm's input, or relu's, can be found where it is read. A norm of rows takes
 * a 16-bit gradient as it is, and adds what went past it. A loss and its gradient read the same rows. The last block of an
 * optimizer's step can do the scaler's update. Invariant: what lies between the steps is read by them alone; where someone
 * holds it, they run one by one. */
#include <string.h>
#include "fuse.h"

/* Whether value v lies between two steps, and nobody else touches it. */
static bool between(const ty_program *p, const int *touches, int v) {
  const store *st = &p->store[p->value[v].store];
  return st->internal && st->value == v && p->value[v].next < 0 && touches[p->value[v].store] == 2;
}

/* The step of that op which alone makes what step at reads as its i-th operand, and for it alone; or -1. */
static int made_for(const ty_program *p, const int *touches, int at, int i, ty_op_id op) {
  const int v = p->step[at].vin[i], maker = v < 0 || !between(p, touches, v) ? -1 : ty_maker_of(p, v, at);
  return maker >= 0 && p->step[maker].call.op->id == (int)op && p->step[maker].vout[0] == v ? maker : -1;
}

static bool images(const ty_program *p, int v, int dtype) {
  return v >= 0 && p->value[v].like.ndim == 4 && p->value[v].like.dtype == dtype;
}

/* batch_norm_apply, relu (or one of them), max_pool2d_indices, clone (or not): what is pooled, in another layout */
static int pool(const ty_program *p, const int *touches, int at, int *step) {
  const int pooled = p->step[at].vout[0], relu = made_for(p, touches, at, 0, TY_OP_relu),
    norm = made_for(p, touches, relu < 0 ? at : relu, 0, TY_OP_batch_norm_apply);
  int n = 0;
  if (norm >= 0) step[n++] = norm;
  if (relu >= 0) step[n++] = relu;
  if (n == 0 || pooled < 0 || !images(p, p->step[step[0]].vin[0], p->value[pooled].like.dtype) ||
      !images(p, pooled, p->value[pooled].like.dtype))
    return 0;
  step[n++] = at;
  for (int i = at + 1; i < p->nstep && i < at + 8; i++)
    if (p->step[i].call.op->id == TY_OP_clone && p->step[i].vin[0] == pooled &&
        images(p, p->step[i].vout[0], p->value[pooled].like.dtype)) {
      step[n++] = i;
      break;
    }
  return n;
}

/* relu_backward of pooled values (or not), max_pool2d_backward, batch_norm_backward */
static int norm_backward(const ty_program *p, const int *touches, int at, int *step) {
  const int x = p->step[at].vin[1], spread = made_for(p, touches, at, 0, TY_OP_max_pool2d_backward);
  if (spread < 0 || !images(p, x, p->value[p->step[at].vin[0]].like.dtype) || !ty_windows_of(&p->step[spread].call).kernel[0]) return 0;
  const int relu = made_for(p, touches, spread, 0, TY_OP_relu_backward), dtype = p->value[x].like.dtype;
  int n = 0;
  if (relu >= 0 && (!images(p, p->step[relu].vin[0], dtype) || !images(p, p->step[relu].vin[1], dtype))) return 0;
  if (relu < 0 && !images(p, p->step[spread].vin[0], dtype)) return 0;
  if (relu >= 0) step[n++] = relu;
  step[n++] = spread;
  step[n++] = at;
  return n;
}

/* relu_backward of pooled values, max_pool2d_backward, whose result goes to no batch_norm_backward that would take it */
static int pool_backward(const ty_program *p, const int *touches, int at, int *step) {
  const int spread = p->step[at].vout[0], relu = made_for(p, touches, at, 0, TY_OP_relu_backward);
  if (relu < 0 || spread < 0 || !ty_windows_of(&p->step[at].call).kernel[0]) return 0;
  const int dtype = p->value[spread].like.dtype;
  if (!images(p, spread, dtype) || !images(p, p->step[relu].vin[0], dtype) || !images(p, p->step[relu].vin[1], dtype)) return 0;
  for (int i = at + 1; i < p->nstep; i++)
    if (p->step[i].call.op->id == TY_OP_batch_norm_backward && p->step[i].vin[0] == spread && norm_backward(p, touches, i, step)) return 0;
  step[0] = relu;
  step[1] = at;
  return 2;
}

static bool in_order(const ty_program *p, int v, int dtype) {
  return v >= 0 && ty_is_contiguous(&p->value[v].like) && p->value[v].like.dtype == dtype;
}

/* The step that adds what value v, which is made for it, is to value *other, of the same shape and in the same order; or -1. */
static int sum_with(const ty_program *p, const int *touches, int v, int from, int *other) {
  const int dtype = p->value[v].like.dtype;
  if (!between(p, touches, v)) return -1;
  for (int i = from + 1; i < p->nstep; i++) {
    const step *k = &p->step[i];
    if (k->call.op->id != TY_OP_add || (k->vin[0] != v && k->vin[1] != v)) continue;
    *other = k->vin[k->vin[0] == v];
    return *other != v && in_order(p, *other, dtype) && in_order(p, k->vout[0], dtype) && k->call.at[TY_AT_add_alpha].f == 1 &&
      TY_SAME_SHAPE(&p->value[*other].like, &p->value[v].like) ? i : -1;
  }
  return -1;
}

/* The step that copies value v in its order to 16 bits (dtype, if that is one), before it changes; or -1. */
static int copy_in_16_bits(const ty_program *p, int v, int dtype, int from) {
  for (int i = from + 1; i < p->nstep; i++) {
    const step *k = &p->step[i];
    const ty_tensor *o = k->call.op->id == TY_OP_cast && k->vin[0] == v ? &p->value[k->vout[0]].like : NULL;
    if (o && ty_is_16bit((ty_dtype)o->dtype) && (o->dtype == dtype || !ty_is_16bit((ty_dtype)dtype)) && ty_is_contiguous(o)) return i;
    if (ty_writes(p, k, p->value[v].store)) return -1;
  }
  return -1;
}

/* The gradient's cast from 16 bits, layer_norm_backward or RMS's, the sum of what it gives and what went past the norm, that in 16 bits;
 * at least one of these beside the norm's. */
static int rows_backward(const ty_program *p, const int *touches, int at, int *step) {
  const int x = p->step[at].vin[1], given = p->step[at].vout[0], dtype = x < 0 ? -1 : p->value[x].like.dtype;
  if (given < 0 || !in_order(p, given, dtype)) return 0;
  int n = 0, past, cast = made_for(p, touches, at, 0, TY_OP_cast), g = cast < 0 ? dtype : p->value[p->step[cast].vin[0]].like.dtype;
  if (cast >= 0 && (dtype != TY_F32 || !ty_is_16bit((ty_dtype)g))) { cast = -1; g = dtype; }
  const int sum = sum_with(p, touches, given, at, &past), copy = dtype == TY_F32
    ? copy_in_16_bits(p, sum < 0 ? given : p->step[sum].vout[0], g, sum < 0 ? at : sum) : -1;
  if (cast >= 0) step[n++] = cast;
  step[n++] = at;
  if (sum >= 0) step[n++] = sum;
  if (copy >= 0) step[n++] = copy;
  return n > 1 ? n : 0;
}

/* cross_entropy_mean, and the gradient of what it took */
static int loss(const ty_program *p, int at, int *found) {
  const step *back = &p->step[at];
  const int maker = back->vin[3] < 0 ? -1 : ty_maker_of(p, back->vin[3], at);
  if (maker < 0 || p->step[maker].call.op->id != TY_OP_cross_entropy_mean) return 0;
  const step *k = &p->step[maker];
  const bool same = k->vin[0] == back->vin[1] && k->vin[1] == back->vin[2] && k->vin[2] == back->vin[5] &&
    k->vout[1] == back->vin[3] && k->vout[2] == back->vin[4];
  const ty_loss_options a = ty_loss_options_of(&k->call), b = ty_loss_options_of(&back->call);
  if (!same || k->vout[0] < 0 || a.ignore_index != b.ignore_index || a.label_smoothing != b.label_smoothing) return 0;
  found[0] = maker;
  found[1] = at;
  return 2;
}

/* The value of a step's operand of that name, which is no list; -1: it has none. */
static int operand(const step *k, const char *name) {
  for (int j = 0; j < k->call.op->nparam; j++)
    if (!strcmp(k->call.op->param[j].name, name) && k->call.span[k->call.op->param[j].slot].count)
      return k->vin[k->call.span[k->call.op->param[j].slot].start];
  return -1;
}

/* An optimizer's step, and then the update of its scaler, which has no other optimizer. */
static int scaled_step(const ty_program *p, int at, int *step) {
  const ty_span found = p->step[at].call.span[0];
  for (int i = at - 1; i >= 0 && found.count == 1; i--) {
    if (p->step[i].call.op->cls != TY_C_OPTIM || operand(&p->step[i], "found") != p->step[at].vin[found.start] ||
        operand(&p->step[i], "step") < 0)
      continue;
    step[0] = i;
    step[1] = at;
    return 2;
  }
  return 0;
}

/* The steps, in order, that the backend does at once of which the main one is at; how many, 0: none. touches: of each
   store, by all steps. */
int ty_joint_at(const ty_program *p, const int *touches, int at, int *step, ty_joint *kind) {
  if (!p->step[at].backend->joint) return 0;
  switch (p->step[at].call.op->id) {
    case TY_OP_max_pool2d_indices: *kind = TY_JOINT_POOL; return pool(p, touches, at, step);
    case TY_OP_batch_norm_backward: *kind = TY_JOINT_POOL_BACKWARD; return norm_backward(p, touches, at, step);
    case TY_OP_max_pool2d_backward: *kind = TY_JOINT_POOL_BACKWARD; return pool_backward(p, touches, at, step);
    case TY_OP_layer_norm_backward:
    case TY_OP_rms_norm_backward: *kind = TY_JOINT_NORM_BACKWARD; return rows_backward(p, touches, at, step);
    case TY_OP_cross_entropy_mean_backward: *kind = TY_JOINT_LOSS; return loss(p, at, step);
    case TY_OP_amp_update: *kind = TY_JOINT_STEP; return scaled_step(p, at, step);
    default: return 0;
  }
}
