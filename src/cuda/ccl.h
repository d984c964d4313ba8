/* The backend's interface to exchanges among GPUs of several processes, implemented by NCCL (nccl.c) or the simulation.
 *
 * A communicator belongs to one GPU and one group of processes. Exchanges are queued on a stream, in the same order in
 * all processes; pointers are to device memory. */
#ifndef TY_CCL_H
#define TY_CCL_H
#include "cuda.h"
#include "group.h"

typedef struct { char bytes[128]; } ty_ccl_id;               /* one process makes it, and gives it to the others */
ty_status ty_ccl_new_id(ty_ctx *ctx, ty_ccl_id *id);
/* Called by all processes of the group; waits for them. */
ty_status ty_ccl_open(ty_ctx *ctx, int gpu, const ty_ccl_id *id, const ty_group *g, void **comm);
ty_status ty_ccl_exchange(ty_ctx *ctx, int gpu, void *comm, const ty_group *g, const ty_message *m, cudaStream_t s);
#endif
