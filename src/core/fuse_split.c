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
    step *k = &r->step[i], y = *k;
    y.call.op = &ty_ops[TY_OP_batch_norm_apply];
    y.call.nin = y.call.op->nin;
    y.call.in = ty_malloc(sizeof(ty_operand) * (size_t)y.call.nin);
    y.call.at = ty_malloc(sizeof(ty_attr));
    y.vin = ty_malloc(sizeof(int) * (size_t)y.call.nin);
    if (!y.call.in || !y.call.at || !y.vin) {
      ty_free(y.call.in);
      ty_free(y.call.at);
      ty_free(y.vin);
      return ty_program_no_memory(ctx);
    }
    const int from[5] = {k->vin[0], k->vout[1], k->vout[2], k->vin[3], k->vin[4]};
    for (int j = 0; j < y.call.nin; j++) {
      y.vin[j] = from[j];
      y.call.in[j] = (ty_operand){.kind = from[j] >= 0 ? TY_TENSOR : TY_NONE};
    }
    for (int j = 1; j < TY_MAXOUT; j++) y.vout[j] = -1;
    k->vout[0] = -1;
    memmove(k + 2, k + 1, sizeof(step) * (size_t)(r->nstep - i - 1));
    r->step[i + 1] = y;
    r->nstep++;
    for (int e = 0; e < r->nevent; e++) r->event[e].first += r->event[e].first > i;
  }
  return TY_OK;
}
