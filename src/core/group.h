/* Processes that compute together: groups of them, and what carries tensors from one to another.
 *
 * Idea: the op `collective` exchanges tensors within a group. In the host's memory a transport does it, a library that
 * is opened at run time (src/mpi); GPUs have their own way (src/cuda/group.c) and use the transport to find each other.
 * Ranks count from 0, as the outside numbers them.
 * Invariant: all processes of a group call the same collectives in the same order; nothing here can see whether they do. */
#ifndef TY_GROUP_H
#define TY_GROUP_H
#include "tycho.h"

#define TY_MAXGROUP 64

#define TY_COLLECTIVES(X) X(ALL_REDUCE, "all_reduce") X(REDUCE, "reduce") X(BROADCAST, "broadcast") X(ALL_GATHER, "all_gather") \
  X(REDUCE_SCATTER, "reduce_scatter") X(ALL_TO_ALL, "all_to_all") X(SEND, "send") X(RECV, "recv")
#define TY_REDUCTIONS(X) X(BY_SUM, "sum") X(BY_MEAN, "mean") X(BY_PRODUCT, "product") X(BY_MIN, "min") X(BY_MAX, "max")
typedef enum { TY_COLLECTIVES(TY_AS_NUMBER) } ty_collective;
typedef enum { TY_REDUCTIONS(TY_AS_NUMBER) } ty_reduction;

/* One exchange as a transport gets it: contiguous memory, which stays until it is done. in and out are the same, or don't overlap. */
typedef struct {
  ty_collective kind;
  ty_reduction reduction;
  ty_dtype dtype;
  int peer, tag;           /* REDUCE, BROADCAST: the root; SEND, RECV: the other; tags tell messages between two apart */
  const void *in;          /* RECV: NULL */
  void *out;               /* SEND: NULL */
  int64_t n;               /* elements: of the tensor, or, where each process gives or gets a part, of a part */
} ty_message;

/* What each process gets of a group. comm, gpu: the transport's record of it, and a GPU library's, which it makes when
   it first needs one. */
typedef struct { int rank, size; void *comm, *gpu[TY_MAXGPU]; } ty_group;

/* A library's own: its functions give NULL, or what went wrong. Calls come from any thread. */
typedef struct {
  int rank, size, local_rank, local_size;                          /* among all processes, and among those of this machine */
  /* by all processes; *comm NULL: this one isn't among them */
  const char *(*group_new)(const int *ranks, int n, void **comm, int *rank);
  /* the same processes once more: what they say there doesn't mix with the rest */
  const char *(*again)(void *comm, void **out);
  const char *(*start)(void *comm, int size, const ty_message *m, void **request);
  const char *(*test)(void *request, bool *done);                  /* once done, or failed, the request is gone */
} ty_transport;
typedef const char *(*ty_transport_open)(uint32_t interface, const ty_transport **out);

/* The library's transport is that of the process from now on; its processes are group 0. */
void ty_groups_open(const ty_transport *t);
const ty_transport *ty_group_transport(void);                      /* NULL: none has been opened */
ty_status ty_group_new(ty_ctx *ctx, const int *ranks, int n, int *id);   /* by all processes; the id is the same in all */
ty_status ty_group_again(ty_ctx *ctx, const ty_group *g, ty_group *out);   /* by its processes: the same once more */
ty_group *ty_group_at(int64_t id);                                 /* NULL: there is none, or this process isn't in it */
/* seconds: how long a wait may take. compare: before each exchange the processes tell each other what they are about to
   do, and an error says where they differ. */
void ty_groups_set(double seconds, bool compare);

/* *request becomes NULL once it is done; wait: until then. */
ty_status ty_exchange_test(ty_ctx *ctx, void **request, bool wait);
/* Start, and wait. pending: it failed for the time it took, and uses the message's memory still, which mustn't be released. */
ty_status ty_exchange(ty_ctx *ctx, const ty_group *g, const ty_message *m, bool *pending);

/* The op's work on the CPU, begun: x, attributes as the op's, out of the result's shape (x itself: in place). What it
 * reads and writes is *in and *out, new references to be kept until it is done. */
ty_status ty_collective_start(ty_ctx *ctx, ty_tensor *x, ty_attr *at, ty_tensor *to, void **request, ty_tensor **in, ty_tensor **out);

/* Where they compare: whether all processes of the group are about to do the same. */
ty_status ty_exchange_agreed(ty_ctx *ctx, const ty_group *g, const ty_message *m);

/* The op's call as a message; in, out: references to contiguous tensors, NULL where the process gives or gets none. */
ty_status ty_message_of(ty_call *c, ty_message *m, ty_tensor **in, ty_tensor **out);
#endif
