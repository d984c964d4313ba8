/* Splits the pointwise part off a step, so that it can be fused with what follows.
 *
 * Idea: batch_norm_stats computes its input's moments and then goes over it once more. Where a pointwise step, or a pooling that a joint
 * kernel can do (fuse_joint.c), reads the result, this second pass becomes a step of its own, batch_norm_apply. Invariant: a step that has
 * been split gives all its results but the first. */
#include <string.h>
#include "fuse.h"

static bool worth(const ty_recording *r, int at) {
  const step *k = &r->step[at];
  if (k->call.op->id != TY_OP_batch_norm_stats || k->vout[0] < 0 || !k->backend->fuse ||
      ty_numel(&r->value[k->vout[0]].like) == 0)
    return false;
  for (int i = at + 1; i < r->nstep; i++) {
    const step *q = &r->step[i];
    for (int j = 0; j < q->call.nin; j++)
      if (q->vin[j] == k->vout[0] &&
          (q->call.op->cls == TY_C_POINTWISE || ty_is_copy(q->call.op->id) ||
            (q->call.op->id == TY_OP_max_pool2d_indices && q->backend->joint)))
        return true;
  }
  return false;
}

ty_status ty_fuse_split(ty_ctx *ctx, ty_recording *r) {
  for (int i = 0; i < r->nstep; i++) {
    if (!worth(r, i)) continue;
    if (!ty_grow(&r->step, r->nstep + 1, &r->step_room, sizeof(step))) return ty_program_no_memory(ctx);
    step *k = &r->step[i], y;
    const int from[] = {k->vin[0], k->vout[1], k->vout[2], k->vin[3], k->vin[4]};
    enum { N = sizeof from / sizeof *from };
    ty_operand in[N];
    for (int j = 0; j < N; j++) in[j] = (ty_operand){.kind = from[j] >= 0 ? TY_TENSOR : TY_NONE};
    ty_call c = k->call;
    c.op = &ty_ops[TY_OP_batch_norm_apply];
    c.nin = N;
    c.in = in;
    if (!ty_step_init(&y, &c)) return ty_program_no_memory(ctx);
    memcpy(y.vin, from, sizeof from);
    y.backend = k->backend;
    y.run = k->run;
    y.vout[0] = k->vout[0];
    k->vout[0] = -1;
    memmove(k + 2, k + 1, sizeof(step) * (size_t)(r->nstep - i - 1));
    r->step[i + 1] = y;
    r->nstep++;
    for (int e = 0; e < r->nevent; e++) r->event[e].first += r->event[e].first > i;
  }
  return TY_OK;
}
