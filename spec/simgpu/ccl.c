/* Exchanges among simulated GPUs of several processes (ccl.h): ty_exchange carries them out when their turn in the stream comes.
 *
 * Idea: each communicator has its own group, so that messages of streams never meet the host's. Invariant: as on a device, only the stream
 * waits, and memory is touched only in its turn. */
#include <string.h>
#include "ccl.h"

/* From sim.cpp. sim_task runs f(arg) in the stream; sim_fault makes the device fail, with what went wrong. */
cudaError_t sim_task(cudaStream_t s, void (*f)(void *arg), void *arg);
void sim_fault(const char *what);

ty_status ty_ccl_new_id(ty_ctx *ctx, ty_ccl_id *id) {
  (void)ctx;
  memset(id, 7, sizeof *id);
  return TY_OK;
}

ty_status ty_ccl_open(ty_ctx *ctx, int gpu, const ty_ccl_id *id, const ty_group *g, void **comm) {
  (void)gpu;
  if (id->bytes[100] != 7) return ty_error(ctx, "distributed: this id is none");
  ty_group *own = ty_malloc(sizeof *own);
  if (!own) return ty_no_memory(ctx, "distributed");
  *comm = own;                             /* never freed */
  return ty_group_again(ctx, g, own);
}

typedef struct { const ty_group *group; ty_message m; } task;

static void carry_out(void *arg) {
  const task *t = arg;
  ty_ctx own = {0};
  bool pending;
  if (ty_exchange(&own, t->group, &t->m, &pending) != TY_OK) sim_fault(own.err);
}

ty_status ty_ccl_exchange(ty_ctx *ctx, int gpu, void *comm, const ty_group *g, const ty_message *m, cudaStream_t s) {
  (void)g;
  task *t = ty_malloc(sizeof *t);          /* never freed: a graph may repeat it */
  if (!t) return ty_no_memory(ctx, "distributed");
  *t = (task){comm, *m};
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  CUDA(ctx, gpu, sim_task(s, carry_out, t));
  return TY_OK;
}
