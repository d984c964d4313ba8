/* The op `collective` on a GPU: queued on the current stream, without waiting.
 *
 * Idea: a group's communicator for a GPU is made at the first exchange of a tensor there; the processes agree on it over the
 * transport. Invariants: that is the same call in all processes, so none waits in vain; a device's exchanges run one after
 * another, whatever their groups and streams, since two at once may wait for each other. */
#include "ccl.h"

/* NCCL waits for all processes without end; so they meet over the transport first, which has a time limit. */
static ty_status barrier(ty_ctx *ctx, ty_group *g) {
  uint8_t *here = ty_malloc(1);
  bool pending;
  if (!here) return ty_no_memory(ctx, "distributed");
  *here = 1;
  const ty_message all = {TY_ALL_REDUCE, TY_BY_MAX, TY_U8, 0, 0, here, here, 1};
  const ty_status st = ty_exchange(ctx, g, &all, &pending);
  if (!pending) ty_free(here);
  return st;
}

static ty_status open_link(ty_call *c, int gpu, ty_group *g, void **comm) {
  struct { ty_ccl_id id; bool made; } first = {.made = false}, *told;
  bool pending;
  *comm = g->gpu[gpu];
  if (*comm) return TY_OK;
  TY_TRY(ty_refuse_capture(c->ctx, "distributed: the first exchange of a group"));
  const ty_status made = g->rank == 0 ? ty_ccl_new_id(c->ctx, &first.id) : TY_OK;
  first.made = made == TY_OK;
  told = ty_malloc(sizeof *told);
  if (!told) return ty_no_memory(c->ctx, "distributed");
  *told = first;
  const ty_message tell = {TY_BROADCAST, TY_BY_SUM, TY_U8, 0, 0, told, told, sizeof *told};
  const ty_status heard = ty_exchange(c->ctx, g, &tell, &pending);        /* tells a failure too, so that no process waits */
  first = *told;
  if (!pending) ty_free(told);
  if (made != TY_OK) return made;
  TY_TRY(heard);
  if (!first.made) return ty_error(c->ctx, "distributed: the first process of the group couldn't begin");
  TY_TRY(barrier(c->ctx, g));
  TY_TRY(ty_ccl_open(c->ctx, gpu, &first.id, g, comm));
  g->gpu[gpu] = *comm;
  return TY_OK;
}

static ty_status divide(ty_call *c, int gpu, const ty_message *m, int by, cudaStream_t s) {
  const ty_k_point a = {.op = TY_OP_div, .k = TY_IN_F32, .nin = 2, .n = m->n, .o = {{.p = m->out, .dtype = m->dtype, .how = TY_K_DENSE},
    {.p = m->out, .dtype = m->dtype, .how = TY_K_DENSE}, {.how = TY_K_NUMBER, .f = by}}};
  return m->n ? ty_cuda_launched(c, gpu, ty_k_pointwise(&a, s)) : TY_OK;
}

ty_status ty_cuda_collective(ty_call *c) {
  ty_group *g = ty_group_at(c->at[TY_AT_collective_group].i);
  ty_message m;
  ty_tensor *in, *out;
  void *comm;
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  TY_TRY(open_link(c, gpu, g, &comm));
  ty_stream *const here = ty_stream_of(c->ctx, gpu);
  ty_status st = ty_message_of(c, &m, &in, &out);
  if (st == TY_OK) st = ty_exchange_agreed(c->ctx, g, &m);
  if (st == TY_OK && in) ty_cuda_uses(here, in->storage);           /* it may be a copy */
  /* NCCL's mean multiplies by 1 / size in the tensors' dtype: in bfloat16 that factor itself is off by up to 0.4 % */
  const bool divides = st == TY_OK && m.reduction == TY_BY_MEAN && m.dtype == TY_BF16 && (g->size & (g->size - 1));
  if (divides) m.reduction = TY_BY_SUM;
  if (st == TY_OK) {
    ty_turn_begin(TY_EXCHANGES, here);
    st = ty_ccl_exchange(c->ctx, gpu, comm, g, &m, s);
    ty_turn_end(TY_EXCHANGES, gpu);
  }
  if (st == TY_OK && divides && (m.kind != TY_REDUCE || m.peer == g->rank)) st = divide(c, gpu, &m, g->size, s);
  ty_release(in);
  ty_release(out);
  return st;
}
