/* Devices: what a backend gives the core, and the CPU's random generator.
 *
 * Idea: a device is a table of functions; one entry runs all ops of a class. Invariant: nothing above a backend depends on how a device
 * works: it calls these entries, and leaves out those that are NULL. */
#ifndef TY_BACKEND_H
#define TY_BACKEND_H

#include "op.h"

#define TY_MAXGPU 16
#define TY_JOINED 32     /* calls in one launch (ty_backend.joint) */

typedef struct ty_fused ty_fused;        /* fused.h */
/* What a backend's joint entry can do at once (fuse_joint.c). */
typedef enum { TY_JOINT_NONE, TY_JOINT_CASTS, TY_JOINT_POOL, TY_JOINT_POOL_BACKWARD, TY_JOINT_NORM_BACKWARD, TY_JOINT_LOSS,
  TY_JOINT_STEP } ty_joint;

typedef ty_status (*ty_kernel)(ty_call *c);
typedef struct { uint64_t seed, offset; } ty_generator;

/* A device: the CPU, or one GPU. */
struct ty_backend {
  char name[12];                       /* "cpu", "cuda:0" */
  int gpu;                             /* its number, -1: the CPU */
  void *(*alloc)(ty_ctx *ctx, const ty_backend *b, size_t nbytes, void **block);     /* NULL: out of memory */
  void (*free)(const ty_backend *b, void *p, size_t nbytes, void *block);
  void (*empty_cache)(const ty_backend *b);
  void (*memory)(const ty_backend *b, char *text, size_t size);   /* NULL or: what an out-of-memory error says of the device */
  bool (*channels_last)(ty_dtype d);   /* whether convolutions in dtype d give channels-last results; NULL: never */
  bool filters_last;                    /* such convolutions also read filters channels-last, and give filters' gradients so */
  /* From here to queue_id: GPUs only. transfer copies n bytes from s to d, one of which is on this device, in the
   * current stream's order. With host memory it returns when they are copied, unless that is pinned and wait is false. */
  ty_status (*transfer)(ty_ctx *ctx, const ty_backend *b, ty_storage *d, size_t to, const ty_storage *s, size_t from, size_t n, bool wait);
  ty_status (*read)(ty_ctx *ctx, const ty_storage *src, size_t at, void *dst, size_t n);   /* to the host's memory; waits */
  ty_status (*seed)(ty_ctx *ctx, const ty_backend *b, ty_generator g);                     /* sets the generator; get_seed reads it */
  ty_status (*get_seed)(ty_ctx *ctx, const ty_backend *b, ty_generator *g);
  void (*uses)(ty_ctx *ctx, const ty_backend *b, ty_storage *s);   /* a graph in the current stream uses s */
  /* held gets fresh's memory, and its own contents there, and fresh held's memory. False: not now, another stream may read that. */
  bool (*trade)(ty_ctx *ctx, const ty_backend *b, ty_storage *held, ty_storage *fresh);
  void (*settle)(ty_ctx *ctx, const ty_storage *s);       /* the current stream, which will write to s, waits for others' use of it */
  void (*join)(ty_ctx *ctx, const ty_backend *b, void *stream);    /* the current stream waits for what stream has been given so far */
  /* The current stream's or capture's id; nothing orders writes and reads between two ids. */
  uint64_t (*queue_id)(ty_ctx *ctx, const ty_backend *b);
  ty_kernel run[TY_NCLASS];            /* one entry for each class; NULL: unsupported */
  /* Kernels of several pointwise ops (fused.h); NULL: the backend has none. fuse makes f ready, fused runs it. Where fuse gives
     TY_ERR, the steps run one by one. */
  ty_status (*fuse)(ty_ctx *ctx, const ty_backend *b, ty_fused *f);
  ty_status (*fused)(ty_ctx *ctx, const ty_backend *b, ty_fused *f);
  void (*fused_free)(ty_fused *f);
  /* Does the calls of several ops in few launches (fuse_joint.c says which), or NULL. Tensors between the calls may be NULL. */
  ty_status (*joint)(ty_ctx *ctx, const ty_backend *b, ty_joint kind, ty_call *const *call, int n);
};

extern const ty_backend ty_cpu;
void ty_set_num_threads(int n);
int ty_get_num_threads(void);
bool ty_native_bf16(int set);          /* whether the CPU's products take bfloat16 without widening it; set: 0 or 1 decides, -1 asks */

/* The devices: [0] is the CPU, [1 + n] GPU n. Attributes of type device hold these indices. */
extern const ty_backend *ty_devices[2 + TY_MAXGPU];    /* ends with NULL */
/* ty_move_into copies src's elements into dst; devices, dtypes and strides may differ. ty_move gives t, contiguous, on b. */
ty_status ty_move_into(ty_ctx *ctx, ty_tensor *dst, ty_tensor *src, bool non_blocking);
ty_status ty_move(ty_ctx *ctx, ty_tensor *t, const ty_backend *b, ty_tensor **out);

/* ---- random numbers ---- */

/* The CPU's generator that ctx draws from: its state; its state before it advances by `blocks` blocks; sets it to g. */
ty_generator ty_cpu_generator(ty_ctx *ctx);
ty_generator ty_cpu_take(ty_ctx *ctx, uint64_t blocks);
void ty_cpu_seed(ty_ctx *ctx, ty_generator g);
/* The largest number of dtype d below high, but at least low: a draw from [low, high) could round to high otherwise. */
double ty_uniform_most(double low, double high, ty_dtype d);
#endif
