/* Groups of processes that compute together, and the exchange of tensors within a group.
 *
 * Idea: the op `collective` exchanges tensors within a group. For CPU tensors a transport does this, a library opened at run time
 * (src/mpi). GPUs have their own library (src/cuda/group.c), and use the transport to set it up. Ranks count from 0, as in MPI.
 * Invariant: all processes of a group call the same collectives in the same order; this is not checked unless ty_groups_set asks for it. */
#ifndef TY_GROUP_H
#define TY_GROUP_H
#include "tycho.h"

#define TY_MAXGROUP 64

#define TY_COLLECTIVES(X) X(ALL_REDUCE, "all_reduce") X(REDUCE, "reduce") X(BROADCAST, "broadcast") X(ALL_GATHER, "all_gather") \
  X(REDUCE_SCATTER, "reduce_scatter") X(ALL_TO_ALL, "all_to_all") X(SEND, "send") X(RECV, "recv")
#define TY_REDUCTIONS(X) X(BY_SUM, "sum") X(BY_MEAN, "mean") X(BY_PRODUCT, "product") X(BY_MIN, "min") X(BY_MAX, "max")
typedef enum { TY_COLLECTIVES(TY_AS_NUMBER) } ty_collective;
typedef enum { TY_REDUCTIONS(TY_AS_NUMBER) } ty_reduction;

/* One exchange, as a transport gets it. in and out are contiguous, stay valid until it is done, and are the same or don't overlap. */
typedef struct {
  ty_collective kind;
  ty_reduction reduction;
  ty_dtype dtype;
  int peer, tag;           /* peer: the root of REDUCE, BROADCAST; the other process of SEND, RECV; tag: tells their messages apart */
  const void *in;          /* RECV: NULL */
  void *out;               /* SEND: NULL */
  int64_t n;               /* elements of the operand; of one process's part for REDUCE_SCATTER, ALL_TO_ALL */
} ty_message;

/* A process's view of a group. comm: the transport's handle (NULL: group 0); gpu: the GPU library's, made when first needed. */
typedef struct { int rank, size; void *comm, *gpu[TY_MAXGPU]; } ty_group;

/* What a transport library provides. Its functions return NULL or an error message, and are called from any thread. */
typedef struct {
  int rank, size, local_rank, local_size;                          /* among all processes; among those of this machine */
  /* called by all processes; *comm NULL: this one isn't in ranks */
  const char *(*group_new)(const int *ranks, int n, void **comm, int *rank);
  /* a second handle for the same processes, whose messages don't mix with comm's */
  const char *(*again)(void *comm, void **out);
  const char *(*start)(void *comm, int size, const ty_message *m, void **request);
  const char *(*test)(void *request, bool *done);                  /* frees the request if it is done or has failed */
} ty_transport;
typedef const char *(*ty_transport_open)(uint32_t interface, const ty_transport **out);

/* Makes t the process's transport, whose processes are group 0. Later calls change nothing. */
void ty_groups_open(const ty_transport *t);
const ty_transport *ty_group_transport(void);                      /* NULL: none has been opened */
ty_status ty_group_new(ty_ctx *ctx, const int *ranks, int n, int *id);   /* called by all processes; all get the same id */
ty_status ty_group_again(ty_ctx *ctx, const ty_group *g, ty_group *out);   /* see again; called by g's processes */
ty_group *ty_group_at(int64_t id);                                 /* NULL: there is none, or this process isn't in it */
/* seconds: how long a wait may take. compare: before each collective the processes exchange what they are about to do; a difference is an
   error. */
void ty_groups_set(double seconds, bool compare);

/* *request becomes NULL once it is done or has failed. wait: returns only then, or after the timeout, with an error. */
ty_status ty_exchange_test(ty_ctx *ctx, void **request, bool wait);
/* Starts, and waits. *pending: it timed out and still uses the message's memory, which must not be released. */
ty_status ty_exchange(ty_ctx *ctx, const ty_group *g, const ty_message *m, bool *pending);

/* Starts the op on the CPU, with operand x and attributes at; `to` has the result's shape (x itself: in place). *in, *out: new references
 * to what it reads and writes, to be kept until it is done. */
ty_status ty_collective_start(ty_ctx *ctx, ty_tensor *x, ty_attr *at, ty_tensor *to, void **request, ty_tensor **in, ty_tensor **out);

/* If compare is set: an error unless all processes of the group are about to do the same. */
ty_status ty_exchange_agreed(ty_ctx *ctx, const ty_group *g, const ty_message *m);

/* The op's call as a message. in, out: new references to the contiguous operand and result; *in NULL for RECV. */
ty_status ty_message_of(ty_call *c, ty_message *m, ty_tensor **in, ty_tensor **out);
#endif
