/* Steps that a backend does at once, by a kernel of its own.
 *
 * Idea: max_pool2d goes over what relu leaves of what batch_norm makes, and reads it once: so it can make it where it reads it, and in backward
 * what reaches batch_norm's input can be found where it is read. Invariant: what lies between the steps is read by them alone; where someone
 * holds it, they run one by one. */
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

static bool images(const ty_program *p, int v, int dtype) { return v >= 0 && p->value[v].like.ndim == 4 && p->value[v].like.dtype == dtype; }

/* batch_norm_apply, relu (or not), max_pool2d_indices, clone (or not): what is pooled, in another layout */
static int pool(const ty_program *p, const int *touches, int at, int *step) {
  const int pooled = p->step[at].vout[0], relu = made_for(p, touches, at, 0, TY_OP_relu), norm = made_for(p, touches, relu < 0 ? at : relu, 0, TY_OP_batch_norm_apply);
  int n = 0;
  if (norm < 0 || pooled < 0 || !images(p, p->step[norm].vin[0], p->value[pooled].like.dtype) || !images(p, pooled, p->value[pooled].like.dtype)) return 0;
  step[n++] = norm;
  if (relu >= 0) step[n++] = relu;
  step[n++] = at;
  for (int i = at + 1; i < p->nstep && i < at + 8; i++)
    if (p->step[i].call.op->id == TY_OP_clone && p->step[i].vin[0] == pooled && images(p, p->step[i].vout[0], p->value[pooled].like.dtype)) {
      step[n++] = i;
      break;
    }
  return n;
}

/* relu_backward of pooled values (or not), max_pool2d_backward, batch_norm_backward */
static int pool_backward(const ty_program *p, const int *touches, int at, int *step) {
  const int x = p->step[at].vin[1], spread = made_for(p, touches, at, 0, TY_OP_max_pool2d_backward);
  if (spread < 0 || !images(p, x, p->value[p->step[at].vin[0]].like.dtype) || !p->step[spread].call.at[1].set) return 0;
  const int relu = made_for(p, touches, spread, 0, TY_OP_relu_backward), dtype = p->value[x].like.dtype;
  int n = 0;
  if (relu >= 0 && (!images(p, p->step[relu].vin[0], dtype) || !images(p, p->step[relu].vin[1], dtype))) return 0;
  if (relu < 0 && !images(p, p->step[spread].vin[0], dtype)) return 0;
  if (relu >= 0) step[n++] = relu;
  step[n++] = spread;
  step[n++] = at;
  return n;
}

/* The steps, in order, that the backend does at once of which the main one is at; how many, 0: none. touches: of each store, by all steps. */
int ty_joint_at(const ty_program *p, const int *touches, int at, int *step, ty_joint *kind) {
  const int op = p->step[at].call.op->id;
  if (!p->step[at].backend->joint) return 0;
  *kind = op == TY_OP_max_pool2d_indices ? TY_JOINT_POOL : TY_JOINT_POOL_BACKWARD;
  return op == TY_OP_max_pool2d_indices ? pool(p, touches, at, step) : op == TY_OP_batch_norm_backward ? pool_backward(p, touches, at, step) : 0;
}
