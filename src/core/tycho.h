/* Tycho's core, as the binding and the backends see it: tensors, the op table, apply, devices, the tape.
 *
 * Idea: every operation is a row of ops.def, and every call of one passes ty_apply(), which checks the arguments, infers
 * shapes and dtypes, allocates the results, runs the backend and records the call. The core knows no Lua and no device library.
 *
 * Invariants: a function that can fail returns a ty_status and leaves a sentence in ctx->err; nothing aborts. Dims and offsets count from
 * 0 in the core; index *tensors* (labels, argmax) hold indices from 1, as users see them, and error texts count dims so. */
#ifndef TYCHO_H
#define TYCHO_H

#include "tensor.h"
#include "op.h"
#include "backend.h"
#include "autograd.h"

#define TY_VERSION "0.1.0"
#define TY_ERRLEN 512

/* fork() waits for this static lock, so that a child finds it free. */
#define TY_HELD_AT_FORK(lock) \
  static void hold_##lock(void) { pthread_mutex_lock(&lock); } \
  static void let_go_##lock(void) { pthread_mutex_unlock(&lock); } \
  __attribute__((constructor)) static void watch_##lock(void) { pthread_atfork(hold_##lock, let_go_##lock, let_go_##lock); }

/* What the core asks of its client (the Lua binding). */
typedef struct {
  /* Runs node's gradient rule: gin[i] for each operand i with needs[i]; NULL means zero. */
  ty_status (*rule)(ty_ctx *ctx, ty_node *node, ty_tensor **gout, const bool *needs, ty_tensor **gin);
  /* Runs the hooks of that key: on *grad, which they may replace; or, with grad NULL, after leaf has got its .grad. */
  ty_status (*hook)(ty_ctx *ctx, uint64_t key, ty_tensor **grad, ty_tensor *leaf);
  ty_status (*history)(ty_ctx *ctx, ty_tensor *grad);      /* a leaf's .grad has a history now, by a pass with create_graph */
  /* saved_tensors_hooks: pack makes *out of t, which the tape saves (a leaf itself, else an alias); unpack makes a tensor of it again */
  ty_status (*pack)(ty_ctx *ctx, ty_tensor *t, bool leaf, ty_hooks **out);
  ty_status (*unpack)(ty_ctx *ctx, const ty_hooks *packed, ty_tensor **out);
  void (*reclaim)(ty_ctx *ctx);        /* out of memory: collects garbage */
  /* The line that the user's program is at, "train.lua:12: ", or "". Returns the name of the function that it calls there, where that is
     one of the library's made of ops; else NULL. */
  const char *(*where)(ty_ctx *ctx, char *text, size_t size);
} ty_host;

/* Called before and after each kernel is started. call: NULL for a kernel of several steps, and for a graph. */
typedef struct ty_profiler {
  void (*begin)(struct ty_profiler *p, ty_ctx *ctx, const char *name, const ty_backend *b, const ty_call *call);
  void (*end)(struct ty_profiler *p, ty_ctx *ctx);
} ty_profiler;
/* Called around a kernel's start; end takes what begin gives: NULL where no profile is being taken. */
ty_profiler *ty_profile_begin(ty_ctx *ctx, const char *name, const ty_backend *b, const ty_call *call);
void ty_profile_end(ty_ctx *ctx, ty_profiler *told);

struct ty_ctx {
  bool grad_enabled;
  bool scaled;                         /* a backward pass that begins now is part of a pass with scaled gradients (GradScaler) */
  bool retains;                        /* the innermost backward pass keeps its graph */
  uint8_t autocast[2];                 /* [0] on the CPU, [1] on GPUs: 0 off, else 1 + the 16-bit dtype */
  uint64_t packs;                      /* key of the saved_tensors_hooks in force; 0: none */
  int device;                          /* default device of new tensors, an index into ty_devices; negative: the current GPU */
  int gpu;                             /* number of the current GPU */
  void *stream[TY_MAXGPU];             /* each GPU's current stream; NULL: its default stream */
  void *mempool;                       /* of new GPU memory (gpu.h); NULL: the general one */
  ty_tensor *rng;                      /* the CPU's draws come from these two int64, seed and offset (not held); NULL: from the process's */
  ty_program *program;                 /* the program that records or compares this coroutine's calls (program.h); else NULL */
  const struct ty_vmap *vmap;          /* the innermost vmap (vmap.h); NULL: none */
  struct ty_recall *recall;            /* results that a checkpoint keeps, or takes (recall.h); NULL: none */
  const ty_host *host;
  void *host_data;
  ty_account *account;
  char err[TY_ERRLEN];
};

double ty_now(void);                   /* seconds of a monotonic clock */

static inline int ty_default_device(const ty_ctx *ctx) { return ctx->device < 0 ? 1 + ctx->gpu : ctx->device; }
#endif
