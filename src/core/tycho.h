/* Tycho's core: tensors, the op table, apply, the tape.
 *
 * Idea: every operation is a row of ops.def and passes ty_apply(), which checks, infers, allocates, runs the
 * backend and records. The core knows no Lua and no device library.
 *
 * Invariants: functions that can fail return a ty_status and leave a sentence in ctx->err; nothing here aborts.
 * Dims and offsets are 0-based inside the core; index *tensors* (gather, labels, argmax) hold 1-based indices, as
 * the user sees them. Error texts speak of 1-based dims. */
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
#define TY_MAXATTR 14    /* of which not tensors */
#define TY_MAXOUT 4      /* results of an op */
#define TY_MOST ((int64_t)1 << 48)  /* elements of a tensor, expanded ones too: sums and products of sizes stay within int64 */
#define TY_ERRLEN 512
#define TY_SMALL 64      /* bytes of data that stand in the storage itself */
#define TY_MAXGPU 16
#define TY_JOINED 32     /* calls in one launch */

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
/* Whether a number has a place in the dtype, as PyTorch sees it: below 0 it wraps in uint8; fractions are cut; anything
   is a float, or true or false. */
static inline bool ty_fits(double v, ty_dtype d) {
  if (ty_is_float(d) || d == TY_BOOL) return true;
  return d == TY_U8 ? v > -256 && v < 256 : d == TY_I32 ? v > -2147483649.0 && v < 2147483648.0
    : v >= -9223372036854775808.0 && v < 9223372036854775808.0;
}
ty_dtype ty_promote(ty_dtype a, ty_dtype b);             /* PyTorch's table, tensors of equal rank */
/* The dtype a pointwise loop computes in: float32, float64 or int64. Storage dtypes are converted block by block. */
static inline ty_dtype ty_compute_dtype(ty_dtype d) { return d == TY_F64 ? TY_F64 : ty_is_float(d) ? TY_F32 : TY_I64; }

/* ---- numbers, operands, attributes ---- */

typedef enum { TY_NONE, TY_TENSOR, TY_INT, TY_FLOAT, TY_BOOLEAN } ty_kind;

typedef struct ty_tensor ty_tensor;
typedef struct ty_node ty_node;
typedef struct ty_program ty_program;

/* One operand: a tensor, or a plain number standing for a 0-dim tensor of weak dtype, or left out (TY_NONE). */
typedef struct {
  ty_kind kind;
  ty_tensor *t;
  double f;
  int64_t i;
} ty_operand;

static inline ty_operand ty_op_tensor(ty_tensor *t) { return (ty_operand){t ? TY_TENSOR : TY_NONE, t, 0, 0}; }
static inline ty_operand ty_op_int(int64_t i) { return (ty_operand){TY_INT, NULL, (double)i, i}; }
static inline ty_operand ty_op_float(double f) { return (ty_operand){TY_FLOAT, NULL, f, (int64_t)0}; }

/* One attribute (an argument that is not a tensor). Which member holds depends on the parameter's type. */
typedef struct {
  bool set;                /* false: left out, and the signature has no default */
  uint8_t n;               /* dims, sizes, ints, pair, triple: how many; any: a ty_kind */
  union { int64_t i; double f; int64_t v[TY_MAXDIM]; };
} ty_attr;

/* an attribute of type any that isn't a list */
static inline ty_operand ty_any_number(const ty_attr *a) { return a->n == TY_FLOAT ? ty_op_float(a->f) : ty_op_int(a->i); }

/* ---- memory ---- */

typedef struct ty_dropped { struct ty_dropped *next; uint64_t key; } ty_dropped;
/* Bytes held by one Lua state (or other client); drives its garbage collector. Outlives it while storages live. */
typedef struct {
  atomic_int refs;
  atomic_llong bytes, peak, collected;   /* held; the most that were; freed since by a collection of handles */
  atomic_bool recorded;    /* whether the tape has grown; the client takes it back */
  _Atomic(ty_dropped *) dropped;         /* owners of foreign memory whose storages have ended, on any thread; the client lets go by key */
  /* of all its contexts */
  struct ty_profiler *profiler;          /* NULL: no profile is being taken */
  struct ty_program *active;             /* programs in the middle of a call, the newest first */
} ty_account;

typedef struct ty_backend ty_backend;
typedef struct ty_fused ty_fused;        /* fused.h */
/* fuse_joint.c */
typedef enum { TY_JOINT_NONE, TY_JOINT_CASTS, TY_JOINT_POOL, TY_JOINT_POOL_BACKWARD, TY_JOINT_NORM_BACKWARD, TY_JOINT_LOSS,
  TY_JOINT_STEP } ty_joint;

/* How often a graph has been launched: what it made is written anew each time. Held by it and by those storages. ready: it is captured. */
typedef struct { atomic_int refs; atomic_uint count; atomic_bool ready; } ty_launches;

typedef struct ty_storage {
  atomic_int refs;         /* as tensor.c counts them: ty_storage_retain, ty_storage_release */
  atomic_int lent;         /* holders that will let go when asked: see value.grad_of in plan.h */
  atomic_uint version;     /* counts changes in place; saved tensors compare it */
  uint16_t pending;        /* changes that a compiled function's call has announced, and not yet made */
  const ty_program *program;   /* whose memory it is: that of a compiled function's values, which each run writes anew */
  bool exposed;            /* its address was handed out: contents may change without a new version */
  ty_launches *launches;   /* of the graph that made it, or NULL; they count as changes */
  uint64_t id;             /* never used twice: with version, a key for what is derived from the contents */
  const ty_backend *backend;
  void *data;
  void *block;             /* the backend's own record of the memory */
  size_t nbytes;
  ty_account *account;
  void (*drop)(void *owner);  /* memory that belongs to someone else: told when it is no longer needed */
  void *owner;
  struct ty_storage *within;  /* its memory is part of this one's, which it keeps: see ty_within */
  _Alignas(16) char small[TY_SMALL];  /* on the CPU, data of up to this size */
} ty_storage;

typedef struct ty_shadow ty_shadow;

/* A tensor's hooks in Lua, by key. drop, where set: what keeps them alive is told when they go. */
typedef struct { uint64_t key; void (*drop)(void *owner); void *owner; } ty_hooks;

/* A strided view of a storage. offset and strides count elements. */
struct ty_tensor {
  atomic_int refs;
  uint8_t dtype, ndim;
  bool requires_grad;      /* a leaf that collects .grad; a result has a node instead */
  bool unrecorded;         /* a view, made under no_grad, of a tensor that needs grad: its changes would go unseen */
  bool own_layout;         /* the op chose the strides (a convolution's channels-last): view() lays it anew or copies instead of failing */
  bool copied;             /* such a copy, which is no view: not to be changed in place */
  bool handed_on;          /* an argument of an autograd.Function as its result, a change of which that wouldn't know */
  bool scaled;             /* a leaf's gradient of a loss that a GradScaler multiplied */
  bool in_block;           /* made together with a storage: one piece of memory */
  uint64_t detached;       /* by detach(), the so-many-th: a handle of its own to what others have; else 0 */
  uint32_t map;            /* within vmap: the id of the one that whole belongs to */
  ty_tensor *whole;        /* within vmap: the tensor of all examples, of which this shows one's shape; else NULL (vmap.c) */
  ty_storage *storage;
  int64_t offset;
  ty_node *node;           /* the call that made it, where a gradient flows */
  int out;                 /* which result of that call */
  uint32_t history;        /* views: equals base->history while node is up to date */
  ty_tensor *base;         /* views: the tensor whose storage this is */
  ty_tensor *grad;
  ty_hooks *hooks;         /* a leaf's; a result's are its node's */
  ty_shadow *shadow;       /* a parameter's: its 16-bit copy under autocast */
  int64_t shape[TY_MAXDIM], stride[TY_MAXDIM];
};

/* ---- the op table ---- */

typedef enum { TY_P_TENSOR, TY_P_OPERAND, TY_P_TENSORS, TY_P_INT, TY_P_NUMBER, TY_P_BOOL, TY_P_DIM, TY_P_DIMS, TY_P_SIZES,
               TY_P_INTS, TY_P_PAIR, TY_P_TRIPLE, TY_P_DTYPE, TY_P_ENUM, TY_P_STRING, TY_P_DEVICE, TY_P_ANY, TY_P_NTYPES } ty_ptype;

typedef struct {
  char name[28];
  uint8_t type;            /* ty_ptype */
  uint8_t slot;            /* among the operands, or among the attributes */
  bool optional, keyword, mutated;
  ty_attr def;             /* the default, where .set */
  char choices[96];        /* TY_P_ENUM: "none,mean,sum" */
} ty_param;

/* What an op is like: one entry of a backend (ty_backend.run) does all of a class. */
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
  ty_status (*made)(ty_call *c);       /* of a function that isn't in the table: calls ops, and puts the result in c->out[0] */
  const char *shown;                   /* the name in error texts */
  int id, nparam, nin, nattr, nout;
  int lead;                            /* parameters at the front that are tensors or operands */
  bool has_list;                       /* takes a list of tensors */
  bool mutates;                        /* changes operands; has no results of its own */
  int device;                          /* slot of the attribute that names the results' device; -1: none */
  int cast_first;                      /* slot of the attribute that names a dtype that operand 1 is cast to first; -1: none */
  /* From the gradient rules: bit i of diff: operand i has one. To differentiate operand i, the call must save the
   * operands in save_in[i] and the results in save_out[i]. Operands of a list share the last bit. */
  uint32_t diff, save_in[TY_MAXPARAM];
  uint8_t save_out[TY_MAXPARAM];
  ty_param param[TY_MAXPARAM];         /* last: a function that isn't in the table has memory for nparam of them alone */
} ty_op;

extern ty_op ty_ops[TY_NOP];            /* device libraries see it through calls only */
extern ty_op ty_shape_functions[];       /* made of ops (shapes.c); the last has no name */
ty_status ty_ops_init(char *err);                        /* parses the signatures once; err: TY_ERRLEN bytes */
double ty_parameter(const ty_call *c, int slot);         /* an attribute as a number, whatever its type */
ty_op *ty_op_find(const char *name);
const char *ty_op_name(int id);                          /* as error texts say it */
const ty_param *ty_op_param(const ty_op *op, const char *name);
ty_status ty_sig_parse(const char *sig, ty_op *into, char *err);
/* The name in list (n of them) nearest to name, or NULL where none is near. */
const char *ty_nearest(const char *name, const char *const *list, int n);

/* What an infer rule says of one result before it exists. */
typedef struct {
  uint8_t dtype, ndim, device;         /* device: of a tensor that there is, by ty_devices */
  bool has_stride, own_layout;
  int64_t shape[TY_MAXDIM], stride[TY_MAXDIM];
} ty_meta;

typedef struct { int start, count; } ty_span;

typedef struct ty_ctx ty_ctx;

/* One call on its way through apply; what backends get. */
struct ty_call {
  ty_ctx *ctx;
  ty_op *op;
  ty_operand *in;          /* op->nin operands; a list's members follow one another from span[slot].start */
  int nin;
  ty_span span[TY_MAXPARAM];
  ty_attr *at;
  ty_dtype compute;        /* pointwise: the dtype to compute in */
  ty_dtype common;         /* pointwise: the operands' promoted dtype */
  uint8_t late;            /* bit j: the size of result j depends on the data, the kernel makes it */
  ty_tensor *settings;     /* of an optimizer's step that is replayed: where its numbers are (optim_formulas.h); NULL: in at */
  ty_meta meta[TY_MAXOUT];
  ty_tensor *out[TY_MAXOUT];
};

/* An optimizer step's operands that aren't per parameter. lists: how many there are, without copies. */
typedef struct { int lists; ty_span copies; ty_tensor *step, *found, *scale; ty_operand lr; } ty_optim_operands;
ty_optim_operands ty_optim_operands_of(const ty_call *c);
/* The i-th parameter with its gradient and state, NULL where a list is left out; copy: its 16-bit copy, or NULL; shadow: which autocast
   made. direct: they are updated as they lie, which the backend decides; else through working copies of dtype d. */
#define TY_OPTIM_LISTS 5
typedef struct { ty_tensor *t[TY_OPTIM_LISTS], *copy; bool shadow, direct; } ty_optim_member;
ty_optim_member ty_optim_member_of(const ty_call *c, const ty_optim_operands *step, int i);
size_t ty_optim_working_bytes(const ty_optim_member *m, ty_dtype d);
struct ty_optim_settings;
void ty_optim_settings_of(const ty_call *c, struct ty_optim_settings *out);    /* optim_formulas.h */
/* A recurrent layer's call. kept: how many values of a unit a step leaves for backward. */
typedef struct { ty_recurrent_kind kind; int gates, kept; bool reverse; int64_t steps, n, h; } ty_recurrence;
ty_recurrence ty_recurrence_of(const ty_call *c);
struct ty_augment;
/* What goes over the last two dims: a convolution's windows, or a pool's, of either direction. kernel: a pool's; 0 where its windows are
   chosen by the sizes (adaptive). */
typedef struct { int64_t kernel[2], stride[2], padding[2], dilation[2], groups, divisor; bool ceil_mode, include_pad; } ty_windows;
ty_windows ty_windows_of(const ty_call *c);
/* grid_sample's and interpolate's, of whichever of their ops */
typedef struct { int mode, padding; bool corners; double factor[2]; } ty_sampling_options;
ty_sampling_options ty_sampling_options_of(const ty_call *c);
/* cross_entropy's, of whichever of its ops: they stand first in all */
typedef struct { int64_t ignore_index; double label_smoothing; } ty_loss_options;
static inline ty_loss_options ty_loss_options_of(const ty_call *c) {
  return (ty_loss_options){c->at[TY_AT_cross_entropy_rows_ignore_index].i, c->at[TY_AT_cross_entropy_rows_label_smoothing].f};
}
void ty_augment_of(const ty_call *c, struct ty_augment *out);   /* the op augment's geometry (augment.h) */

/* Where operand slot's tensors stand in in[]: a list's, or the one. */
static inline ty_span ty_span_of(const ty_op *op, const ty_span *span, int slot) { return op->has_list ? span[slot] : (ty_span){slot, 1}; }
/* What op has changed: a gradient that is multiplied, or summed among processes, stays scaled; what else may change it
   (see check_inplace, ty_infer_optim) makes it another. */
static inline void ty_keep_mark(ty_tensor *t, const ty_op *op) {
  t->scaled = t->scaled && (op->id == TY_OP_mul || op->id == TY_OP_div || op->id == TY_OP_collective);
}
/* x:eq(0.1) on 16-bit x compares with 0.1 in x's dtype, as PyTorch does: whether numbers among the operands are rounded
   to c->common first. */
static inline bool ty_rounds_numbers(const ty_call *c) {
  return ty_is_16bit(c->common) && (c->op->dtype == TY_D_BOOL || c->op->id == TY_OP_maximum || c->op->id == TY_OP_minimum);
}
/* Calls fn for each tensor that the op changes among its operands. */
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
  bool (*channels_last)(ty_dtype d);   /* convolutions of d give channels-last results; NULL: never */
  bool filters_last;                    /* these convolutions also read filters and give their gradients so */
  /* GPUs: n bytes at src to dst, one of which this device holds; the other may be the CPU's or another GPU's. In the order of the
   * current stream; has happened when it returns where the host's memory is involved, unless that is pinned and wait is false. */
  ty_status (*transfer)(ty_ctx *ctx, const ty_backend *b, ty_storage *dst, size_t dst_at, const ty_storage *src,
    size_t src_at, size_t n, bool wait);
  ty_status (*read)(ty_ctx *ctx, const ty_storage *src, size_t at, void *dst, size_t n);   /* to the host's memory; waits */
  ty_status (*seed)(ty_ctx *ctx, const ty_backend *b, ty_generator g);                     /* sets, or reads, the device's generator */
  ty_status (*get_seed)(ty_ctx *ctx, const ty_backend *b, ty_generator *g);
  void (*uses)(ty_ctx *ctx, const ty_backend *b, ty_storage *s);   /* work of the current stream, put there by a graph, has used s */
  void (*join)(ty_ctx *ctx, const ty_backend *b, void *stream);    /* the current stream goes on after what that one has been given */
  /* tells apart streams and captures, between which nothing orders writes and reads */
  uint64_t (*queue_id)(ty_ctx *ctx, const ty_backend *b);
  ty_kernel run[TY_NCLASS];            /* one entry a class; NULL: unsupported */
  /* Kernels of several pointwise ops (fused.h): NULL, or makes one ready to run. TY_ERR: it can't, as ctx->err says;
     the steps then run one by one. */
  ty_status (*fuse)(ty_ctx *ctx, const ty_backend *b, ty_fused *f);
  ty_status (*fused)(ty_ctx *ctx, const ty_backend *b, ty_fused *f);
  void (*fused_free)(ty_fused *f);
  /* NULL, or does calls of several ops in few launches (fuse_joint.c says which); what lies between them may be NULL. */
  ty_status (*joint)(ty_ctx *ctx, const ty_backend *b, ty_joint kind, ty_call *const *call, int n);
};

extern const ty_backend ty_cpu;
void ty_set_num_threads(int n);
int ty_get_num_threads(void);
bool ty_native_bf16(int set);          /* whether the CPU's products are computed in bfloat16 as it is; set: 0 or 1 decide it, -1 asks */

/* The devices: 0 is the CPU, 1 + n GPU n, as attributes of type device hold them. */
extern const ty_backend *ty_devices[2 + TY_MAXGPU];    /* ends with NULL */
static inline const ty_backend *ty_device_of(const ty_tensor *t);
/* src's elements into dst, or t (contiguous there) on b, whatever devices they are on; dtypes and strides may differ. */
ty_status ty_move_into(ty_ctx *ctx, ty_tensor *dst, ty_tensor *src, bool non_blocking);
ty_status ty_move(ty_ctx *ctx, ty_tensor *t, const ty_backend *b, ty_tensor **out);

/* ---- context ---- */

/* What the core asks of its client (the Lua binding). */
typedef struct {
  /* Runs node's gradient rule: gin[i] for each operand i with needs[i]; NULL means zero. */
  ty_status (*rule)(ty_ctx *ctx, ty_node *node, ty_tensor **gout, const bool *needs, ty_tensor **gin);
  /* may replace *grad; or (grad is NULL) after leaf has its .grad */
  ty_status (*hook)(ty_ctx *ctx, uint64_t key, ty_tensor **grad, ty_tensor *leaf);
  /* what stands for t, which is saved for backward (a leaf itself, else an alias); and, each time that is needed, a tensor of it again */
  ty_status (*pack)(ty_ctx *ctx, ty_tensor *t, bool leaf, ty_hooks **out);
  ty_status (*unpack)(ty_ctx *ctx, const ty_hooks *packed, ty_tensor **out);
  void (*reclaim)(ty_ctx *ctx);        /* out of memory: collect what can be collected */
  void (*where)(ty_ctx *ctx, char *text, size_t size);     /* the user's line that the program is at, "train.lua:12: ", or "" */
} ty_host;

/* Told of each kernel before and after it is put to work. call: NULL where it is one of several steps, or a graph. */
typedef struct ty_profiler {
  void (*begin)(struct ty_profiler *p, ty_ctx *ctx, const char *name, const ty_backend *b, const ty_call *call);
  void (*end)(struct ty_profiler *p, ty_ctx *ctx);
} ty_profiler;
/* Around what is put to work; begin gives what end takes: NULL where nobody is told. */
ty_profiler *ty_profile_begin(ty_ctx *ctx, const char *name, const ty_backend *b, const ty_call *call);
void ty_profile_end(ty_ctx *ctx, ty_profiler *told);

struct ty_ctx {
  bool grad_enabled;
  bool scaled;                         /* a pass that begins now is a part of one whose gradients a GradScaler has scaled */
  bool retains;                        /* the innermost backward pass keeps its graph */
  uint8_t autocast[2];                 /* on the CPU, on GPUs: 0 off, else 1 + the 16-bit dtype */
  uint64_t packs;                      /* key of the hooks that pack what the tape saves; 0: it is saved as it is */
  int device;                          /* where what is made of nothing goes: in ty_devices; negative: to the current GPU */
  int gpu;                             /* the current one */
  void *stream[TY_MAXGPU];             /* each one's current stream; NULL: its default stream */
  ty_program *program;                 /* what is being recorded or compared; NULL: nothing */
  const struct ty_vmap *map;            /* the innermost vmap (vmap.h); NULL: none */
  const ty_host *host;
  void *host_data;
  ty_account *account;
  char err[TY_ERRLEN];
};

static inline int ty_default_device(const ty_ctx *ctx) { return ctx->device < 0 ? 1 + ctx->gpu : ctx->device; }

ty_status ty_error(ty_ctx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* As ty_error, behind the op's name: "matmul: ...". */
ty_status ty_fail(ty_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* TY_OOM, and "who: out of memory"; who may be NULL. */
ty_status ty_no_memory(ty_ctx *ctx, const char *who);
/* "2x3", or "()" for no dims; from a ring of buffers, good until eight more calls. */
const char *ty_shape_text(const int64_t *shape, int ndim);
static inline const char *ty_shape_of(const ty_tensor *t);

/* ---- tensors ---- */

void *ty_malloc(size_t n);             /* for structs; NULL when out of memory (or told to fail) */
void ty_free(void *p);
long ty_debug_fail_alloc(long n, long times);  /* the n-th allocation from now and times - 1 after it fail; 0: none; gives what was left */

ty_status ty_empty(ty_ctx *ctx, const ty_backend *b, const ty_meta *m, ty_tensor **out);
ty_status ty_from_memory(ty_ctx *ctx, void *data, size_t nbytes, const ty_meta *m, void (*drop)(void *), void *owner, ty_tensor **out);
/* n bytes that lie in memory's, as a tensor with a storage, and so with holders, of its own; and, while nothing is in them: elsewhere. */
ty_status ty_within(ty_ctx *ctx, ty_tensor *memory, size_t n, ty_tensor **out);
void ty_move_within(ty_storage *s, ty_tensor *memory);
ty_tensor *ty_retain(ty_tensor *t);
void ty_release(ty_tensor *t);         /* NULL is allowed; never recurses deeply */
void ty_storage_retain(ty_storage *s);
void ty_storage_release(ty_storage *s);
void ty_swap_memory(ty_storage *a, ty_storage *b);       /* of as many bytes, of a device, neither a part of another or foreign */
uint64_t ty_next_node(void);           /* the seq of the next node to be recorded */
uint64_t ty_next_storage(void);        /* storages made from now on have this id, or a larger one */
int ty_storage_holders(const ty_storage *s);   /* how many tensors, and others, have it for good */
void ty_hooks_free(ty_hooks *h);
void ty_account_release(ty_account *a);
/* A second tensor of the same storage and geometry, without history. NULL: out of memory. */
ty_tensor *ty_alias(const ty_tensor *t);
int64_t ty_numel(const ty_tensor *t);
bool ty_is_contiguous(const ty_tensor *t);
/* Of 2 dims or more. */
static inline void ty_channels_last_strides(const int64_t *shape, int ndim, int64_t *stride) {
  int64_t n = TY_MAX(shape[1], 1);
  for (int i = ndim - 1; i >= 2; i--) { stride[i] = n; n *= TY_MAX(shape[i], 1); }
  stride[0] = n;
  stride[1] = 1;
}
/* a, b: whatever has ndim and shape (tensors, metas). */
#define TY_SAME_SHAPE(a, b) ((a)->ndim == (b)->ndim && !memcmp((a)->shape, (b)->shape, sizeof(int64_t) * (size_t)(a)->ndim))
/* The same elements, if they are of one storage. */
static inline bool ty_same_geometry(const ty_tensor *a, const ty_tensor *b) {
  return a->offset == b->offset && a->dtype == b->dtype && TY_SAME_SHAPE(a, b) && !memcmp(a->stride, b->stride, sizeof(int64_t) * a->ndim);
}
bool ty_is_dense(const ty_tensor *t);  /* no holes and no overlap, in whatever order of dims */
void ty_sort_dims(const ty_tensor *t, int order[TY_MAXDIM]);   /* its dims by their strides, the largest first */
int ty_turn_to_memory(ty_tensor *t, int n, int dim);   /* t[0..n)'s dims as t[0]'s lie in memory; gives where dim is then */
bool ty_is_channels_last(const ty_tensor *t);  /* (N, C, ...) with C innermost in memory, else in order, dense */
bool ty_overlaps_itself(const ty_tensor *t);
void ty_contiguous_strides(const int64_t *shape, int ndim, int64_t *stride);
void ty_meta_of(const ty_tensor *t, ty_meta *m);         /* shape and dtype, strides left to choose */
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
/* A working copy of like, contiguous and of dtype d, at byte *at of memory, which moves past it. It has no reference: for the
   length of a call. */
static inline size_t ty_laid_bytes(const ty_tensor *like, ty_dtype d) { return ((size_t)ty_numel(like) * ty_dtype_size[d] + 63) / 64 * 64; }
ty_tensor ty_lay(const ty_tensor *memory, size_t *at, const ty_tensor *like, ty_dtype d);
/* Strides under which t can be seen with another shape, without a copy. */
bool ty_view_strides(const ty_tensor *t, const int64_t *shape, int ndim, int64_t *stride);
/* Fills one -1 in shape; checks that numel agrees. */
ty_status ty_fill_size(ty_call *c, int64_t numel, int64_t *shape, int ndim);
ty_status ty_broadcast(ty_call *c, int64_t *shape, int *ndim, const ty_tensor *t, const ty_tensor *first);
double ty_get(const void *p, ty_dtype d);                /* one element as a double; exact to 2^53 */
int64_t ty_get_int(const void *p, ty_dtype d);
void ty_set(void *p, ty_dtype d, double v);
void ty_set_int(void *p, ty_dtype d, int64_t v);
static inline double ty_rounded(double v, ty_dtype d) {    /* to what d holds */
  uint64_t bits;
  ty_set(&bits, d, v);
  return ty_get(&bits, d);
}

/* ---- apply ---- */

/* Runs op on in[] with at[] and gives op->nout new references in out[]. span: where lists stand (NULL: no lists).
 * into: write the first result into this tensor instead (the in-place form); out[0] is then into, retained. */
ty_status ty_apply(ty_ctx *ctx, ty_op *op, ty_operand *in, int nin, const ty_span *span, ty_attr *at, ty_tensor *into, ty_tensor **out);
/* For backends and the engine: ops on whole tensors, unrecorded. Results are new references. */
ty_status ty_contiguous(ty_ctx *ctx, ty_tensor *t, ty_tensor **out);
ty_status ty_lay_in_order(ty_ctx *ctx, ty_tensor *t, bool *done);   /* of an op's own layout; *done false: others have that memory too */
/* All operands of a call; out: c->nin, NULL before and where there is none, to be released also where this fails */
static inline ty_status ty_contiguous_operands(const ty_call *c, ty_tensor **out) {
  ty_status s = TY_OK;
  for (int i = 0; i < c->nin && s == TY_OK; i++)
    if (c->in[i].t) s = ty_contiguous(c->ctx, c->in[i].t, &out[i]);
  return s;
}
ty_status ty_cast(ty_ctx *ctx, ty_tensor *t, ty_dtype d, ty_tensor **out);
#define TY_MEMORY_FORMATS(X) X(PRESERVE, "preserve") X(CONTIGUOUS, "contiguous") X(CHANNELS_LAST, "channels_last")
typedef enum { TY_MEMORY_FORMATS(TY_AS_NUMBER) } ty_memory_format;
/* a copy, also where t is so already */
ty_status ty_cast_to(ty_ctx *ctx, ty_tensor *t, ty_dtype d, ty_memory_format format, ty_tensor **out);
ty_status ty_copy_into(ty_ctx *ctx, ty_tensor *dst, ty_tensor *src);
ty_status ty_add_into(ty_ctx *ctx, ty_tensor *dst, ty_tensor *src);    /* of one shape and dtype */
ty_status ty_rearrange(ty_call *c);                      /* what COPY and CAT ops a device has no kernel of its own for */

/* Ops made of others (compose.c). ty_plainer_op: the op that gives the power of a floating x by the call's number more directly, as
   PyTorch computes it; NULL: none does. ty_normalize_channels: batch_norm_apply, there to be fused: (x - mean) (rstd weight) + bias,
   rounded as everywhere. */
ty_op *ty_plainer_op(const ty_call *c);
ty_status ty_normalize_channels(ty_call *c);
/* t, or a copy of it, in channels-last order; in that of like, which has its shape: channels-last if like is, else contiguous. */
ty_status ty_channels_last(ty_ctx *ctx, ty_tensor *t, ty_tensor **out);
ty_status ty_laid_out_as(ty_ctx *ctx, ty_tensor *t, const ty_tensor *like, ty_tensor **out);
ty_status ty_fill_into(ty_ctx *ctx, ty_tensor *dst, ty_operand value);
ty_status ty_reshape(ty_ctx *ctx, ty_tensor *t, int n, const int64_t *size, ty_tensor **out);   /* a view, or a copy where that can't be */
/* An op of one or two operands; at: its attributes, NULL for the defaults. */
ty_status ty_call_op2(ty_ctx *ctx, ty_op_id id, ty_operand a, ty_operand b, ty_attr *at, ty_tensor *into, ty_tensor **out);

/* ---- autocast (autocast.c) ---- */

/* Whether the op's class asks for other operands; *to: in which dtype. Then this takes ty_apply's place. */
bool ty_autocasts(const ty_call *c, const ty_backend *b, ty_dtype *to);
ty_status ty_apply_autocast(const ty_call *c, const ty_backend *b, ty_dtype to, ty_tensor **out);
/* A parameter's 16-bit copy that an optimizer step has to write along with the parameter, in the same layout; NULL: there is none.
 * Refreshed: it was written, and apply will give the parameter its next version. */
ty_tensor *ty_shadow_to_refresh(ty_ctx *ctx, const ty_tensor *t);
void ty_shadow_refreshed(ty_tensor *t);
void ty_shadow_free(ty_shadow *h);

/* ---- the tape (tape.c) ---- */

typedef struct { ty_node *node; int out; ty_tensor *leaf; } ty_edge;  /* node or leaf or neither */

/* Kept for the backward pass: an alias without history, so that no cycle arises (version: when saved), or what hooks made of it. */
typedef struct { ty_tensor *t; ty_hooks *packed; uint64_t from; uint32_t version; } ty_saved;   /* from: the storage's id */

struct ty_node {
  atomic_int refs;
  ty_op *op;
  uint64_t seq;            /* grows with creation: a node's operands are older than the node */
  uint64_t key;            /* autograd.Function: key of its Lua context */
  bool internal;           /* autograd.Function: the library's own, see ty_function; of what its backward makes it keeps nothing */
  bool ran, done;          /* backward came by, for the last time; and what was saved is gone */
  const ty_backend *gpu;   /* where it was recorded, while stream was current there; NULL: on the CPU */
  void *stream;
  int nin, nout, nattr;
  ty_edge *edge;           /* nin */
  ty_operand *in;          /* numbers among the operands; .t is never set */
  ty_saved *saved;         /* nin + nout */
  ty_meta *meta;           /* nin operands, then nout results: shape and dtype */
  ty_span span[TY_MAXPARAM];
  ty_attr *at;             /* nattr */
  ty_hooks **hook;         /* nout: the results' hooks, or NULL */
  ty_node *next;           /* worklist while freeing */
  char *location;          /* of the call in the user's program, where somebody looks for anomalies; else NULL */
};

bool ty_needs_grad(const ty_tensor *t);
ty_status ty_history(ty_ctx *ctx, ty_tensor *t);         /* views: brings the node up to date with the base */
int ty_slot_of(const ty_call *c, int i);                 /* the operand slot of operand i: members of a list share one */
bool ty_will_record(const ty_call *c);
enum { TY_SAVED_OUT = 24 };                             /* what is saved: bit s: operand slot s, bit TY_SAVED_OUT + j: result j */
uint32_t ty_save_mask(const ty_call *c);
ty_status ty_record(ty_call *c);
/* An in-place change is recorded in two steps, so that nothing can fail once the target has changed: prepare allocates (c->out[0] is
 * the target; before: copies of operands about to be overwritten), commit or abandon ends it. */
typedef struct { ty_node *call, *put; } ty_pending;
ty_status ty_prepare_inplace(ty_call *c, ty_tensor *target, ty_tensor *const *before, ty_pending *p);
void ty_commit_inplace(ty_tensor *target, ty_pending *p);
void ty_abandon_inplace(ty_pending *p);
/* autograd.Function: by its context's key. internal: the library's own, whose node keeps its first operands, so many, for its backward. */
typedef struct { uint64_t key; bool internal; int kept; } ty_function;
ty_status ty_record_function(ty_ctx *ctx, ty_function f, ty_tensor **in, int nin, ty_tensor **out, int nout);
void ty_node_release(ty_node *n);
bool ty_mark_graph_used(ty_tensor *t);                            /* t becomes a result whose graph has been used; false: out of memory */
/* t becomes a leaf that requires grad, or no longer is one; with a history it stays a result. */
ty_status ty_set_requires_grad(ty_ctx *ctx, ty_tensor *t, bool on);
void ty_node_finish(ty_node *n);                         /* its backward has run: saved tensors go */
/* Operand i (or result i) as it was when the call ran; a new reference. */
ty_status ty_saved_in(ty_ctx *ctx, ty_node *n, int i, ty_tensor **out);
ty_status ty_saved_out(ty_ctx *ctx, ty_node *n, int i, ty_tensor **out);
/* accumulate: inputs are the leaves that alone get their .grad; within: the inputs' hooks are for the pass around this one */
typedef struct { bool retain_graph, create_graph, accumulate, within; } ty_backward_opts;
/* Gradients of roots (with grads, NULL for a scalar's one) flow to leaves' .grad, or, where inputs are given, into
 * result[] as new references (NULL where unused). */
ty_status ty_backward(ty_ctx *ctx, ty_tensor **roots, ty_tensor **grads, int nroot, ty_tensor **inputs, int ninput,
                      ty_tensor **result, ty_backward_opts o);

/* Which leaves' gradients a backward pass of the roots would reach. */
ty_status ty_reached(ty_ctx *ctx, ty_tensor **roots, int nroot, ty_tensor **leaves, int nleaf, bool *reached, bool *others);
/* Bytes of the storages made since (ty_next_storage) that the graphs of roots keep for backward. */
ty_status ty_kept(ty_ctx *ctx, ty_tensor **roots, int nroot, uint64_t since, long long *bytes);

/* ---- random numbers ---- */

/* The CPU's generator as it stands; before blocks of it, which are then used up; set. */
ty_generator ty_cpu_generator(void);
ty_generator ty_cpu_take(uint64_t blocks);
void ty_cpu_seed(ty_generator g);
/* The largest number of the dtype below high, but at least low: what is drawn from [low, high) may round to high otherwise. */
double ty_uniform_most(double low, double high, ty_dtype d);
/* From now on this thread draws from state (two int64: seed, offset; NULL: the process's). Takes over a reference, and gives one to what
 * it was. */
ty_tensor *ty_cpu_own(ty_tensor *state);
#endif
