/* Tycho's core, as the binding and the backends see it: tensors, the op table, apply, the tape.
 *
 * Idea: every operation is a row of ops.def, and every call of one passes ty_apply(), which checks the arguments, infers
 * shapes and dtypes, allocates the results, runs the backend and records the call. The core knows no Lua and no device library.
 *
 * Invariants: a function that can fail returns a ty_status and leaves a sentence in ctx->err; nothing aborts. Dims and offsets count from
 * 0 in the core; index *tensors* (labels, argmax) hold indices from 1, as users see them, and error texts count dims so. */
#ifndef TYCHO_H
#define TYCHO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TY_VERSION "0.1.0"
#define TY_MAXDIM 8      /* dims of a tensor */
#define TY_MAXPARAM 17   /* parameters of an op */
#define TY_MAXATTR 14    /* those that are not tensors */
#define TY_MAXOUT 4      /* results of an op */
#define TY_MOST ((int64_t)1 << 48)  /* elements of a tensor, repeated ones included: keeps sums and products of sizes within int64 */
#define TY_ERRLEN 512
#define TY_SMALL 64      /* data of up to this many bytes lies in ty_storage itself */
#define TY_MAXGPU 16
#define TY_JOINED 32     /* calls in one launch (ty_backend.joint) */

typedef enum { TY_OK = 0, TY_ERR = 1, TY_OOM = 2 } ty_status;

#define TY_TRY(e) do { ty_status ty_s_ = (e); if (ty_s_ != TY_OK) return ty_s_; } while (0)
#define TY_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TY_MAX(a, b) ((a) > (b) ? (a) : (b))

/* ---- dtypes ---- */

#include "attributes.h"
#include "names.h"

static const char *const ty_dtype_names[TY_NDTYPE] __attribute__((unused)) = {"float32", "float16", "bfloat16",
  "float64", "int32", "int64", "uint8", "bool"};
static const uint8_t ty_dtype_size[TY_NDTYPE] __attribute__((unused)) = {4, 2, 2, 8, 4, 8, 1, 1};
static inline bool ty_is_float(ty_dtype d) { return d <= TY_F64; }
static inline bool ty_is_16bit(ty_dtype d) { return d == TY_F16 || d == TY_BF16; }
int ty_dtype_find(const char *name);                     /* -1: no such dtype */
/* Whether dtype d can hold the number v, by PyTorch's rules: negative numbers wrap in uint8, whole dtypes drop the fraction,
   and floats and bool take any number. */
static inline bool ty_fits(double v, ty_dtype d) {
  if (ty_is_float(d) || d == TY_BOOL) return true;
  return d == TY_U8 ? v > -256 && v < 256 : d == TY_I32 ? v > -2147483649.0 && v < 2147483648.0
    : v >= -9223372036854775808.0 && v < 9223372036854775808.0;
}
ty_dtype ty_promote(ty_dtype a, ty_dtype b);             /* PyTorch's table, for tensors of one category (ty_result_dtype) */
/* The dtype that a pointwise loop computes in: float32, float64 or int64. Loops convert storage dtypes block by block. */
static inline ty_dtype ty_compute_dtype(ty_dtype d) { return d == TY_F64 ? TY_F64 : ty_is_float(d) ? TY_F32 : TY_I64; }

/* ---- numbers, operands, attributes ---- */

typedef enum { TY_NONE, TY_TENSOR, TY_INT, TY_FLOAT, TY_BOOLEAN } ty_kind;

typedef struct ty_tensor ty_tensor;
typedef struct ty_node ty_node;
typedef struct ty_program ty_program;

/* One operand: a tensor, a plain number (a 0-dim tensor whose dtype gives way to the tensors'), or left out (TY_NONE). */
typedef struct {
  ty_kind kind;
  ty_tensor *t;
  double f;
  int64_t i;
} ty_operand;

static inline ty_operand ty_op_tensor(ty_tensor *t) { return (ty_operand){t ? TY_TENSOR : TY_NONE, t, 0, 0}; }
static inline ty_operand ty_op_int(int64_t i) { return (ty_operand){TY_INT, NULL, (double)i, i}; }
static inline ty_operand ty_op_float(double f) { return (ty_operand){TY_FLOAT, NULL, f, (int64_t)0}; }

/* One attribute (an argument that is not a tensor). The parameter's type decides which member of the union is used. */
typedef struct {
  bool set;                /* false: the argument was left out and has no default */
  uint8_t n;               /* dims, sizes, ints, pair, triple: the length of v; any: a ty_kind */
  union { int64_t i; double f; int64_t v[TY_MAXDIM]; };
} ty_attr;

/* an attribute of type any that is a number */
static inline ty_operand ty_any_number(const ty_attr *a) { return a->n == TY_FLOAT ? ty_op_float(a->f) : ty_op_int(a->i); }

/* ---- memory ---- */

/* The owner of foreign memory whose storage has ended; key is what the client knows the owner by. */
typedef struct ty_dropped { struct ty_dropped *next; uint64_t key; } ty_dropped;
/* The bytes that one client (a Lua state) holds; they drive its garbage collector. Lives as long as the client and its storages. */
typedef struct {
  atomic_int refs;
  atomic_llong bytes, peak, collected;   /* bytes now; their peak; bytes that the client's collector freed since it last set this to 0 */
  atomic_bool recorded;    /* the tape has grown since the client last cleared this */
  _Atomic(ty_dropped *) dropped;         /* any thread pushes; the client pops, and releases the owners */
  struct ty_profiler *profiler;          /* for all contexts of the client; NULL: no profile is being taken */
  struct ty_program *active;             /* in all its contexts: programs in the middle of a call, the newest first */
} ty_account;

typedef struct ty_backend ty_backend;
typedef struct ty_fused ty_fused;        /* fused.h */
/* What a backend's joint entry can do at once (fuse_joint.c). */
typedef enum { TY_JOINT_NONE, TY_JOINT_CASTS, TY_JOINT_POOL, TY_JOINT_POOL_BACKWARD, TY_JOINT_NORM_BACKWARD, TY_JOINT_LOSS,
  TY_JOINT_STEP } ty_joint;

/* A graph's launches, each of which rewrites the storages that the graph made; they share it. ready: it is captured. */
typedef struct { atomic_int refs; atomic_uint count; atomic_bool ready; } ty_launches;

typedef struct ty_storage {
  atomic_int refs;         /* in units of tensor.c: use ty_storage_retain, ty_storage_release, ty_storage_holders */
  atomic_int lent;         /* holders that ty_storage_holders leaves out, as they give way: value.grad_of in program_parts.h */
  atomic_uint version;     /* counts changes in place; a saved tensor compares it */
  uint16_t pending;        /* changes in place that a compiled call has promised, and whose steps have not run yet */
  const ty_program *program;   /* the compiled function whose value lies here, rewritten by each run; else NULL */
  bool exposed;            /* others have its address, or own the memory: contents may change without a new version */
  bool fixed;              /* a graph, other than those of `program`, has its address */
  ty_launches *launches;   /* of the graph that made it, or NULL; each launch counts as a change */
  uint64_t id;             /* never used twice: with version, a key for what is derived from the contents */
  const ty_backend *backend;
  void *data;
  void *block;             /* the backend's own record of the memory */
  size_t nbytes;
  ty_account *account;
  void (*drop)(void *owner);  /* foreign memory: called when the storage ends; NULL: the memory is ours */
  void *owner;
  struct ty_storage *within;  /* the storage, kept alive, that this one's memory is a part of (ty_within); else NULL */
  _Alignas(16) char small[TY_SMALL];  /* CPU: data of up to TY_SMALL bytes */
} ty_storage;

typedef struct ty_shadow ty_shadow;

/* A tensor's hooks in Lua, found by key. drop, where set, tells the hooks' owner that they have gone. idle: none is to be called so far. */
typedef struct { uint64_t key; void (*drop)(void *owner); void *owner; bool idle; } ty_hooks;

/* A strided view of a storage. offset and strides count elements. */
struct ty_tensor {
  atomic_int refs;
  uint8_t dtype, ndim;
  bool requires_grad;      /* a leaf that collects .grad; a result has a node instead */
  bool unrecorded;         /* a view, made under no_grad, of a tensor that needs grad: a change would go unseen */
  bool own_layout;         /* the op chose the strides (a convolution's channels-last): view() lays it anew or copies, never fails */
  bool copied;             /* such a copy; a change in place would miss the original, so it is refused */
  bool handed_on;          /* an argument that an autograd.Function returned as it came: a change in place is refused */
  bool scaled;             /* a leaf's gradient, of a loss that a GradScaler multiplied */
  bool in_block;           /* lies in one piece of memory with a storage (tensor.c) */
  uint64_t detached;       /* the number of the detach() that made it, counted over the process; else 0 */
  uint32_t map;            /* within vmap: the id of the vmap that whole belongs to */
  ty_tensor *whole;        /* within vmap: the tensor of all examples, while this one shows one example's shape; else NULL (vmap.c) */
  ty_storage *storage;
  int64_t offset;
  ty_node *node;           /* the recorded call that made it, where a gradient flows; else NULL */
  int out;                 /* which result of that call */
  uint32_t history;        /* counts recorded changes; a view's node is up to date while this equals base->history */
  ty_tensor *base;         /* views: the tensor that they are a view of, itself no view */
  ty_tensor *grad;
  ty_hooks *hooks;         /* leaves: their hooks; a result's hooks are in its node */
  ty_shadow *shadow;       /* parameters: the 16-bit copy that autocast made (autocast.c) */
  int64_t shape[TY_MAXDIM], stride[TY_MAXDIM];
};

/* ---- the op table ---- */

typedef enum { TY_P_TENSOR, TY_P_OPERAND, TY_P_TENSORS, TY_P_INT, TY_P_NUMBER, TY_P_BOOL, TY_P_DIM, TY_P_DIMS, TY_P_SIZES,
               TY_P_INTS, TY_P_PAIR, TY_P_TRIPLE, TY_P_DTYPE, TY_P_ENUM, TY_P_STRING, TY_P_DEVICE, TY_P_ANY, TY_P_NTYPES } ty_ptype;

typedef struct {
  char name[28];
  uint8_t type;            /* ty_ptype */
  uint8_t slot;            /* its place among the operands, or among the attributes */
  bool optional, keyword, mutated;
  ty_attr def;             /* the default, where .set */
  char choices[96];        /* TY_P_ENUM: "none,mean,sum" */
} ty_param;

/* Classes of ops: one entry of a backend (ty_backend.run) does all ops of a class. */
#define TY_CLASSES(X) X(C_POINTWISE, "pointwise") X(C_REDUCE, "reduce") X(C_REDUCE_INDEX, "reduce_index") X(C_SCAN, "scan") \
  X(C_VIEW, "view") X(C_MOVE, "move") X(C_COPY, "copy") X(C_FILL, "fill") X(C_RANDOM, "random") X(C_MATMUL, "matmul") \
  X(C_LINALG, "linalg") X(C_FOURIER, "fourier") X(C_SOFTMAX, "softmax") X(C_INDEX, "index") X(C_SORT, "sort") X(C_CAT, "cat") \
  X(C_CONV, "conv") X(C_POOL, "pool") X(C_RESIZE, "resize") X(C_SAMPLE, "sample") X(C_DISTANCE, "distance") X(C_NORM, "norm") \
  X(C_ATTENTION, "attention") \
  X(C_RECURRENT, "recurrent") X(C_LOSS, "loss") X(C_ALIGN, "align") X(C_OPTIM, "optim") X(C_COLLECTIVE, "collective")
typedef enum { TY_CLASSES(TY_AS_NUMBER) TY_NCLASS } ty_class;

typedef enum { TY_D_SAME, TY_D_FLOAT, TY_D_BOOL, TY_D_FIRST, TY_D_WHERE, TY_D_WHOLE } ty_dtype_rule;
typedef enum { TY_A_FP16, TY_A_FP32, TY_A_WIDEST } ty_autocast;

typedef struct ty_call ty_call;

typedef struct ty_op {
  const char *name, *sig, *domain, *doc, *expr;
  ty_class cls;
  ty_dtype_rule dtype;
  ty_autocast cast;
  ty_status (*infer)(ty_call *c);      /* shapes and dtypes of the results; also checks the arguments */
  ty_status (*made)(ty_call *c);       /* functions made of ops (view_functions.c): calls ops, and puts the result in c->out[0] */
  const char *shown;                   /* the name in error texts */
  int id, nparam, nin, nattr, nout;
  int lead;                            /* how many parameters at the front are single tensors or operands */
  bool has_list;                       /* takes a list of tensors */
  bool mutates;                        /* changes the operands that are marked "!" */
  bool in_place;                       /* has a form that changes its first operand */
  int device;                          /* slot of the attribute that names the results' device; -1: none */
  int cast_first;                      /* slot of the attribute whose dtype operand 1 is cast to first; -1: none */
  /* From the gradient rules. Bit i of diff: operand i has a rule, which needs the operands whose bits are in save_in[i] and
   * the results whose bits are in save_out[i], so a call saves these. All tensors of a list share their slot's bit. */
  uint32_t diff, save_in[TY_MAXPARAM];
  uint8_t save_out[TY_MAXPARAM];
  ty_param param[TY_MAXPARAM];         /* must be last: for functions written in Lua only nparam of them are allocated */
} ty_op;

extern ty_op ty_ops[TY_NOP];            /* device libraries reach it through ty_call.op only */
extern ty_op ty_shape_functions[];       /* functions made of ops (view_functions.c); the last has no name */
ty_status ty_ops_init(char *err);                        /* parses the signatures once; err: TY_ERRLEN bytes */
double ty_parameter(const ty_call *c, int slot);         /* an attribute as a number, whatever its type */
ty_op *ty_op_find(const char *name);
const char *ty_op_name(int id);                          /* the name in error texts */
const ty_param *ty_op_param(const ty_op *op, const char *name);
ty_status ty_sig_parse(const char *sig, ty_op *into, char *err);
/* The one of list's n names that is nearest to name, or NULL where none is near. */
const char *ty_nearest(const char *name, const char *const *list, int n);

/* One result before it exists, as an infer rule describes it; on the tape: an operand or a result. */
typedef struct {
  uint8_t dtype, ndim, device;         /* device: set by ty_meta_of alone, an index into ty_devices */
  bool has_stride, own_layout;
  int64_t shape[TY_MAXDIM], stride[TY_MAXDIM];
} ty_meta;

typedef struct { int start, count; } ty_span;

typedef struct ty_ctx ty_ctx;
/* One call on its way through apply; backends get it, too. */
struct ty_call {
  ty_ctx *ctx;
  ty_op *op;
  ty_operand *in;          /* operand slot i is in[i]; in an op with lists: the span[i].count operands from in[span[i].start] on */
  int nin;                 /* length of in */
  ty_span span[TY_MAXPARAM];
  ty_attr *at;
  ty_dtype compute;        /* the dtype that loops compute in, where the infer rule sets one */
  ty_dtype common;         /* pointwise: the operands' promoted dtype */
  uint8_t late;            /* bit j: the size of result j depends on the data, so the kernel makes it */
  struct ty_recall *recall;            /* the checkpoint's list, if the call is its function's; else NULL */
  ty_tensor *settings;     /* a replayed optimizer step: the tensor that holds its numbers (optim_formulas.h); NULL: they are in at */
  ty_meta meta[TY_MAXOUT];
  ty_tensor *out[TY_MAXOUT];
};

/* An optimizer step's operands that aren't lists. lists: how many lists there are beside copies; copies: where that one stands. */
typedef struct { int lists; ty_span copies; ty_tensor *step, *found, *scale; ty_operand lr; } ty_optim_operands;
ty_optim_operands ty_optim_operands_of(const ty_call *c);
/* The i-th parameter, its gradient and states: t[k] from list k, NULL where that is left out. copy: its 16-bit copy, or NULL; shadow:
   autocast's. direct: updated where they lie, which the backend decides; else in working copies of dtype d. */
#define TY_OPTIM_LISTS 5
typedef struct { ty_tensor *t[TY_OPTIM_LISTS], *copy; bool shadow, direct; } ty_optim_member;
ty_optim_member ty_optim_member_of(const ty_call *c, const ty_optim_operands *step, int i);
size_t ty_optim_working_bytes(const ty_optim_member *m, ty_dtype d);
struct ty_optim_settings;
void ty_optim_settings_of(const ty_call *c, struct ty_optim_settings *out);    /* optim_formulas.h */
/* A recurrent layer's call. kept: values that each unit saves in each step for backward; n: batch size; h: units. */
typedef struct { ty_recurrent_kind kind; int gates, kept; bool reverse; int64_t steps, n, h; } ty_recurrence;
ty_recurrence ty_recurrence_of(const ty_call *c);
struct ty_augment;
/* The windows of a convolution or a pool, forward or backward, over the last two dims. kernel: pools only; 0 where the sizes
   decide the windows (adaptive). */
typedef struct { int64_t kernel[2], stride[2], padding[2], dilation[2], groups, divisor; bool ceil_mode, include_pad; } ty_windows;
ty_windows ty_windows_of(const ty_call *c);
/* The options of any op of grid_sample or interpolate. */
typedef struct { int mode, padding; bool corners; double factor[2]; } ty_sampling_options;
ty_sampling_options ty_sampling_options_of(const ty_call *c);
/* The options of any op of cross_entropy; in all of them these are the first attributes. */
typedef struct { int64_t ignore_index; double label_smoothing; } ty_loss_options;
static inline ty_loss_options ty_loss_options_of(const ty_call *c) {
  return (ty_loss_options){c->at[TY_AT_cross_entropy_rows_ignore_index].i, c->at[TY_AT_cross_entropy_rows_label_smoothing].f};
}
void ty_augment_of(const ty_call *c, struct ty_augment *out);   /* the op augment's geometry (augment.h) */

/* Where the tensors of an operand slot stand in ty_call.in: those of a list, or the one. */
static inline ty_span ty_span_of(const ty_op *op, const ty_span *span, int slot) { return op->has_list ? span[slot] : (ty_span){slot, 1}; }
void ty_keep_mark(ty_tensor *t, const ty_op *op);         /* op has changed t, which may be a scaled gradient */
/* Whether numbers among the operands are rounded to c->common first. As in PyTorch, x:eq(0.1) on a 16-bit x compares with 0.1
   in x's dtype. */
static inline bool ty_rounds_numbers(const ty_call *c) {
  return ty_is_16bit(c->common) && (c->op->dtype == TY_D_BOOL || c->op->id == TY_OP_maximum || c->op->id == TY_OP_minimum);
}
/* Calls fn for each operand that the op changes. */
static inline void ty_each_mutated(const ty_call *c, void (*fn)(ty_tensor *t, const ty_op *op)) {
  for (int k = 0; c->op->mutates && k < c->op->nparam; k++) {
    if (!c->op->param[k].mutated) continue;
    const ty_span s = ty_span_of(c->op, c->span, c->op->param[k].slot);
    for (int i = 0; i < s.count; i++)
      if (c->in[s.start + i].t) fn(c->in[s.start + i].t, c->op);
  }
}

/* ---- backends ---- */

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

/* ---- context ---- */

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
  void (*where)(ty_ctx *ctx, char *text, size_t size);     /* the line that the user's program is at, "train.lua:12: ", or "" */
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
  const struct ty_vmap *map;            /* the innermost vmap (vmap.h); NULL: none */
  struct ty_recall *recall;            /* results that a checkpoint keeps, or takes (recall.h); NULL: none */
  const ty_host *host;
  void *host_data;
  ty_account *account;
  char err[TY_ERRLEN];
};

static inline int ty_default_device(const ty_ctx *ctx) { return ctx->device < 0 ? 1 + ctx->gpu : ctx->device; }

ty_status ty_error(ty_ctx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* As ty_error, after the op's name: "matmul: ...". */
ty_status ty_fail(ty_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Gives TY_OOM with the text "who: out of memory"; who may be NULL. */
ty_status ty_no_memory(ty_ctx *ctx, const char *who);
/* "2x3", or "()" for no dims; in one of a thread's eight buffers, so good until its eighth call from now. */
const char *ty_shape_text(const int64_t *shape, int ndim);
static inline const char *ty_shape_of(const ty_tensor *t);

/* ---- tensors ---- */

void *ty_malloc(size_t n);             /* for structs; NULL when out of memory, or when a test makes it fail */
void ty_free(void *p);
long ty_debug_fail_alloc(long n, long times);  /* the n-th allocation from now and times - 1 after it fail; 0: none; gives the n left */

ty_status ty_empty(ty_ctx *ctx, const ty_backend *b, const ty_meta *m, ty_tensor **out);
/* exposed, until the caller knows that nobody else has the memory */
ty_status ty_from_memory(ty_ctx *ctx, void *data, size_t nbytes, const ty_meta *m, void (*drop)(void *), void *owner, ty_tensor **out);
/* A tensor of n bytes in memory's storage, with a storage of its own. ty_move_within moves that, without its contents. */
ty_status ty_within(ty_ctx *ctx, ty_tensor *memory, size_t n, ty_tensor **out);
void ty_move_within(ty_storage *s, ty_tensor *memory);
ty_tensor *ty_retain(ty_tensor *t);
void ty_release(ty_tensor *t);         /* NULL is allowed; never recurses deeply */
void ty_storage_retain(ty_storage *s);
void ty_storage_release(ty_storage *s);
void ty_swap_memory(ty_storage *a, ty_storage *b);       /* equal sizes, one device, neither foreign */
uint64_t ty_next_node(void);           /* the seq of the next node to be recorded */
uint64_t ty_next_storage(void);        /* the id of the next storage; ids grow */
int ty_storage_holders(const ty_storage *s);   /* how many tensors and others hold it, those in lent not counted */
void ty_hooks_free(ty_hooks *h);
void ty_account_release(ty_account *a);
/* A second tensor of the same storage and geometry, without history. NULL: out of memory. */
ty_tensor *ty_alias(const ty_tensor *t);
int64_t ty_numel(const ty_tensor *t);
bool ty_is_contiguous(const ty_tensor *t);
/* ndim is at least 2. */
static inline void ty_channels_last_strides(const int64_t *shape, int ndim, int64_t *stride) {
  int64_t n = TY_MAX(shape[1], 1);
  for (int i = ndim - 1; i >= 2; i--) { stride[i] = n; n *= TY_MAX(shape[i], 1); }
  stride[0] = n;
  stride[1] = 1;
}
/* a and b point to anything with ndim and shape (ty_tensor, ty_meta). */
#define TY_SAME_SHAPE(a, b) ((a)->ndim == (b)->ndim && !memcmp((a)->shape, (b)->shape, sizeof(int64_t) * (size_t)(a)->ndim))
bool ty_copies_to(const ty_tensor *src, const ty_tensor *x);  /* whether x:copy_(src) takes src's shape; shape.c */
/* Whether two tensors of one storage see the same elements in the same way. */
static inline bool ty_same_geometry(const ty_tensor *a, const ty_tensor *b) {
  return a->offset == b->offset && a->dtype == b->dtype && TY_SAME_SHAPE(a, b) && !memcmp(a->stride, b->stride, sizeof(int64_t) * a->ndim);
}
bool ty_is_dense(const ty_tensor *t);  /* no holes and no overlap; dims in any order */
void ty_sort_dims(const ty_tensor *t, int order[TY_MAXDIM]);   /* t's dims, the largest stride first */
int ty_turn_to_memory(ty_tensor *t, int n, int dim);   /* permutes the dims of t[0..n) to t[0]'s order in memory; gives dim's new place */
bool ty_is_channels_last(const ty_tensor *t);  /* (N, C, ...): C innermost in memory, the other dims in order, dense */
bool ty_overlaps_itself(const ty_tensor *t);
void ty_contiguous_strides(const int64_t *shape, int ndim, int64_t *stride);
void ty_meta_of(const ty_tensor *t, ty_meta *m);         /* shape, dtype and device; strides are left open */
static inline const ty_backend *ty_device_of(const ty_tensor *t) { return t->storage->backend; }
static inline uint32_t ty_storage_version(const ty_storage *s) {
  return atomic_load_explicit(&s->version, memory_order_relaxed) +
         (s->launches ? atomic_load_explicit(&s->launches->count, memory_order_relaxed) : 0);
}
static inline uint32_t ty_version(const ty_tensor *t) { return ty_storage_version(t->storage); }
static inline void ty_launches_release(ty_launches *l) { if (l && atomic_fetch_sub(&l->refs, 1) == 1) free(l); }
static inline void ty_changed(ty_tensor *t) { atomic_fetch_add_explicit(&t->storage->version, 1, memory_order_relaxed); }
static inline int ty_itemsize(const ty_tensor *t) { return ty_dtype_size[t->dtype]; }
static inline size_t ty_nbytes(const ty_tensor *t) { return (size_t)(ty_numel(t) * ty_itemsize(t)); }      /* of its elements */
static inline void *ty_data(const ty_tensor *t) { return (char *)t->storage->data + t->offset * ty_dtype_size[t->dtype]; }
static inline const char *ty_shape_of(const ty_tensor *t) { return ty_shape_text(t->shape, t->ndim); }
/* A contiguous tensor of like's shape and dtype d at byte *at of memory, and *at moves past it. It holds no reference, so it lasts no
   longer than a call. For working copies. */
static inline size_t ty_laid_bytes(const ty_tensor *like, ty_dtype d) { return ((size_t)ty_numel(like) * ty_dtype_size[d] + 63) / 64 * 64; }
ty_tensor ty_lay(const ty_tensor *memory, size_t *at, const ty_tensor *like, ty_dtype d);
/* The strides under which t has another shape without a copy; false: there are none. */
bool ty_view_strides(const ty_tensor *t, const int64_t *shape, int ndim, int64_t *stride);
/* Replaces one -1 in shape by the size that numel leaves for it; fails where shape doesn't have numel elements. */
ty_status ty_fill_size(ty_call *c, int64_t numel, int64_t *shape, int ndim);
ty_status ty_broadcast(ty_call *c, int64_t *shape, int *ndim, const ty_tensor *t, const ty_tensor *first);
double ty_get(const void *p, ty_dtype d);                /* one element as a double; exact to 2^53 */
int64_t ty_get_int(const void *p, ty_dtype d);
void ty_set(void *p, ty_dtype d, double v);
void ty_set_int(void *p, ty_dtype d, int64_t v);
static inline double ty_rounded(double v, ty_dtype d) {    /* v rounded to dtype d */
  uint64_t bits;
  ty_set(&bits, d, v);
  return ty_get(&bits, d);
}

/* ---- apply ---- */

/* Runs op on in[] with at[] and gives op->nout new references in out[]. span: where each slot's operands stand in in (NULL: no
 * lists). into: the in-place form: the first result is written into this tensor, and out[0] is into, retained. */
ty_status ty_apply(ty_ctx *ctx, ty_op *op, ty_operand *in, int nin, const ty_span *span, ty_attr *at, ty_tensor *into, ty_tensor **out);
/* For backends and the core: unrecorded ops on whole tensors. Results are new references. */
ty_status ty_contiguous(ty_ctx *ctx, ty_tensor *t, ty_tensor **out);
ty_status ty_lines(ty_ctx *ctx, ty_tensor *t, int64_t n, ty_tensor **out, int64_t *apart);   /* as lines of n contiguous elements */
ty_status ty_lay_in_order(ty_ctx *ctx, ty_tensor *t, bool *done);   /* makes t contiguous in place; *done false: refused */
/* A call's operands, contiguous. out: c->nin entries, NULL before; the caller releases them, after a failure too. */
static inline ty_status ty_contiguous_operands(const ty_call *c, ty_tensor **out) {
  ty_status s = TY_OK;
  for (int i = 0; i < c->nin && s == TY_OK; i++)
    if (c->in[i].t) s = ty_contiguous(c->ctx, c->in[i].t, &out[i]);
  return s;
}
ty_status ty_cast(ty_ctx *ctx, ty_tensor *t, ty_dtype d, ty_tensor **out);
#define TY_MEMORY_FORMATS(X) X(PRESERVE, "preserve") X(CONTIGUOUS, "contiguous") X(CHANNELS_LAST, "channels_last")
typedef enum { TY_MEMORY_FORMATS(TY_AS_NUMBER) } ty_memory_format;
ty_status ty_cast_to(ty_ctx *ctx, ty_tensor *t, ty_dtype d, ty_memory_format format, ty_tensor **out);       /* always a copy */
ty_status ty_copy_into(ty_ctx *ctx, ty_tensor *dst, ty_tensor *src);
ty_status ty_add_into(ty_ctx *ctx, ty_tensor *dst, ty_tensor *src);    /* dst += src, of one shape and dtype */
ty_status ty_rearrange(ty_call *c);                      /* COPY and CAT ops that a device has no kernel for (rearrange.c) */

/* Ops made of other ops (compose.c). ty_plainer_op: for a pow call with a number as exponent, the op that gives the same power as
   PyTorch computes it (square, sqrt, ...); NULL: none. ty_normalize_channels: batch_norm_apply of pointwise ops, which can be
   fused: (x - mean) (rstd weight) + bias. */
ty_op *ty_plainer_op(const ty_call *c);
ty_status ty_normalize_channels(ty_call *c);
/* t, or a copy of it: channels-last; or laid out as like, a tensor of its shape: channels-last if like is, else contiguous. */
ty_status ty_channels_last(ty_ctx *ctx, ty_tensor *t, ty_tensor **out);
ty_status ty_laid_out_as(ty_ctx *ctx, ty_tensor *t, const ty_tensor *like, ty_tensor **out);
ty_status ty_fill_into(ty_ctx *ctx, ty_tensor *dst, ty_operand value);
ty_status ty_reshape(ty_ctx *ctx, ty_tensor *t, int n, const int64_t *size, ty_tensor **out);   /* a view, or a copy if there is none */
/* Applies an op of one or two operands. at: its attributes; NULL: the defaults. */
ty_status ty_call_op2(ty_ctx *ctx, ty_op_id id, ty_operand a, ty_operand b, ty_attr *at, ty_tensor *into, ty_tensor **out);

/* ---- autocast (autocast.c) ---- */

/* ty_autocasts: whether autocast gives the call operands of another dtype, *to. If so, ty_apply_autocast does ty_apply's work. */
bool ty_autocasts(const ty_call *c, const ty_backend *b, ty_dtype *to);
ty_status ty_apply_autocast(const ty_call *c, const ty_backend *b, ty_dtype to, ty_tensor **out);
/* The 16-bit copy of parameter t, of t's layout, that an optimizer step has to write along with t; NULL: there is none. After writing it
 * the step calls ty_shadow_refreshed; then apply gives t its next version. */
ty_tensor *ty_shadow_to_refresh(ty_ctx *ctx, const ty_tensor *t);
void ty_shadow_refreshed(ty_tensor *t);
void ty_shadow_free(ty_shadow *h);

/* ---- the tape (tape.c) ---- */

typedef struct { ty_node *node; int out; ty_tensor *leaf; } ty_edge;  /* at most one of node and leaf is set */

/* Kept for backward: t, an alias without history (so no cycle arises), or packed, what saved_tensors_hooks made of it. */
typedef struct { ty_tensor *t; ty_hooks *packed; uint64_t from; uint32_t version; } ty_saved;   /* from, version: its storage's */

struct ty_node {
  atomic_int refs;
  ty_op *op;
  uint64_t seq;            /* grows with creation: a node's operands are older than the node */
  uint64_t key;            /* autograd.Function: key of its Lua context */
  bool internal;           /* autograd.Function: the library's own (see ty_function); it keeps nothing that its backward makes */
  bool ran, done;          /* ran: a pass that did not retain the graph has run it; done: and what it saved is gone */
  const ty_backend *gpu;   /* the GPU that it was recorded on; NULL: the CPU */
  void *stream;            /* that GPU's current stream at the time */
  int nin, nout, nattr;
  ty_edge *edge;           /* nin: where each operand's gradient goes */
  ty_operand *in;          /* nin: kinds, and the numbers among the operands; .t is never set */
  ty_saved *saved;         /* nin operands, then nout results */
  ty_meta *meta;           /* nin operands, then nout results: shape and dtype */
  ty_span span[TY_MAXPARAM];
  ty_attr *at;             /* nattr */
  ty_hooks **hook;         /* nout: each result's hooks, or NULL */
  ty_node *next;           /* worklist while freeing */
  char *location;          /* the call's line in the user's program, while anomalies are looked for; else NULL */
};

bool ty_needs_grad(const ty_tensor *t);
ty_status ty_history(ty_ctx *ctx, ty_tensor *t);         /* a view: brings its node up to date with its base */
int ty_slot_of(const ty_call *c, int i);                 /* the slot of c->in[i]; the tensors of a list share one */
bool ty_will_record(const ty_call *c);
enum { TY_SAVED_OUT = 24 };                             /* in ty_save_mask: bit s: operand slot s; bit TY_SAVED_OUT + j: result j */
uint32_t ty_save_mask(const ty_call *c);
ty_status ty_record(ty_call *c);
/* A change in place is recorded in two steps, so that nothing can fail once the target has changed: prepare allocates, then commit or
 * abandon ends it. c->out[0] is the target; before: copies of operands that are about to be overwritten. */
typedef struct { ty_node *call, *put; } ty_pending;
ty_status ty_prepare_inplace(ty_call *c, ty_tensor *target, ty_tensor *const *before, ty_pending *p);
void ty_commit_inplace(ty_tensor *target, ty_pending *p);
void ty_abandon_inplace(ty_pending *p);
/* An autograd.Function; key: of its context in Lua. internal: the library's own, whose node saves its first `kept` operands. */
typedef struct { uint64_t key; bool internal; int kept; } ty_function;
ty_status ty_record_function(ty_ctx *ctx, ty_function f, ty_tensor **in, int nin, ty_tensor **out, int nout);
void ty_node_release(ty_node *n);
bool ty_mark_graph_used(ty_tensor *t);                            /* gives t a node that backward has run already; false: out of memory */
/* Makes t a leaf that requires grad, or one that doesn't. No effect on a result that has a node. */
ty_status ty_set_requires_grad(ty_ctx *ctx, ty_tensor *t, bool on);
void ty_node_finish(ty_node *n);                         /* n's rule has run for the last time: its saved tensors go */
/* The saved operand i, or result i, as it was when the call ran; a new reference. */
ty_status ty_saved_in(ty_ctx *ctx, ty_node *n, int i, ty_tensor **out);
ty_status ty_saved_out(ty_ctx *ctx, ty_node *n, int i, ty_tensor **out);
/* accumulate: inputs are leaves, and only they get their .grad; within: the inputs' hooks are left to the pass around this one */
typedef struct { bool retain_graph, create_graph, accumulate, within; } ty_backward_opts;
/* Gradients of roots flow to leaves' .grad or, where inputs are given, into result[] as new references (NULL for an unused input).
 * grads: the roots' gradients; NULL: 1, for roots of one element. */
ty_status ty_backward(ty_ctx *ctx, ty_tensor **roots, ty_tensor **grads, int nroot, ty_tensor **inputs, int ninput,
                      ty_tensor **result, ty_backward_opts o);
/* Which leaves a backward pass from roots would reach; *others: whether it would reach leaves that aren't listed. */
ty_status ty_reached(ty_ctx *ctx, ty_tensor **roots, int nroot, ty_tensor **leaves, int nleaf, bool *reached, bool *others);
/* Bytes that the graphs of roots keep for backward, in storages whose id is `since` (from ty_next_storage) or larger. */
ty_status ty_kept(ty_ctx *ctx, ty_tensor **roots, int nroot, uint64_t since, long long *bytes);

/* ---- random numbers ---- */

/* The CPU's generator that ctx draws from: its state; its state before it advances by `blocks` blocks; sets it to g. */
ty_generator ty_cpu_generator(const ty_ctx *ctx);
ty_generator ty_cpu_take(ty_ctx *ctx, uint64_t blocks);
void ty_cpu_seed(ty_ctx *ctx, ty_generator g);
/* The largest number of dtype d below high, but at least low: a draw from [low, high) could round to high otherwise. */
double ty_uniform_most(double low, double high, ty_dtype d);
#endif
