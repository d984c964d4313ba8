/* The op `collective` on a GPU: into the current stream, without waiting.
 *
 * Idea: a group's communicator for a GPU is made when the first of its tensors there is exchanged; the processes agree
 * on it over the transport. Invariant: this is the same call in all of them, so none waits in vain. */
#include "ccl.h"

static ty_status communicator(ty_call *c, int gpu, ty_group *g, void **out) {
  ty_ccl_id id;
  if (!g->gpu[gpu]) {
    TY_TRY(ty_refuse_capture(c->ctx, "distributed: the first exchange of a group"));
    if (g->rank == 0) TY_TRY(ty_ccl_new_id(c->ctx, &id));
    const ty_message tell = {TY_BROADCAST, TY_BY_SUM, TY_U8, 0, 0, &id, &id, sizeof id};
    TY_TRY(ty_exchange(c->ctx, g, &tell));
    TY_TRY(ty_ccl_open(c->ctx, gpu, &id, g, &g->gpu[gpu]));
  }
  *out = g->gpu[gpu];
  return TY_OK;
}

ty_status ty_cuda_collective(ty_call *c) {
  ty_group *g = ty_group_at(c->at[TY_AT_GROUP].i);
  ty_message m;
  ty_tensor *in, *out;
  void *comm;
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_begin(c, &gpu, &s));
  TY_TRY(communicator(c, gpu, g, &comm));
  ty_status st = ty_message_of(c, &m, &in, &out);
  if (st == TY_OK) st = ty_exchange_agreed(c->ctx, g, &m);
  if (st == TY_OK && in) ty_uses(ty_stream_of(c->ctx, gpu), in->storage);          /* it may be a copy */
  if (st == TY_OK) st = ty_ccl_exchange(c->ctx, gpu, comm, g, &m, s);
  ty_release(in);
  ty_release(out);
  return st;
}
