/* Tensors: dtypes, numbers, memory and the views of it.
 *
 * Idea: a storage is memory with a reference count and a version, and a tensor is a strided view of one. Invariant: whoever changes a
 * storage's elements counts its version up, by which the tape and compiled functions see the change. */
#ifndef TY_TENSOR_H
#define TY_TENSOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "names.h"

#define TY_MAXDIM 8      /* dims of a tensor */
#define TY_MOST ((int64_t)1 << 48)  /* elements of a tensor, repeated ones included: keeps sums and products of sizes within int64 */
#define TY_SMALL 64      /* data of up to this many bytes lies in ty_storage itself */

#define TY_TRY(e) do { ty_status ty_s_ = (e); if (ty_s_ != TY_OK) return ty_s_; } while (0)
#define TY_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TY_MAX(a, b) ((a) > (b) ? (a) : (b))

typedef enum { TY_OK = 0, TY_ERR = 1, TY_OOM = 2 } ty_status;
typedef struct ty_ctx ty_ctx;
typedef struct ty_tensor ty_tensor;
typedef struct ty_node ty_node;          /* autograd.h */
typedef struct ty_call ty_call;          /* op.h */
typedef struct ty_backend ty_backend;    /* backend.h */
typedef struct ty_program ty_program;    /* program.h */

/* ---- errors ---- */

ty_status ty_error(ty_ctx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* As ty_error, after the op's name: "matmul: ...". */
ty_status ty_fail(ty_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Gives TY_OOM with the text "who: out of memory"; who may be NULL. */
ty_status ty_no_memory(ty_ctx *ctx, const char *who);
/* "2x3", or "()" for no dims; in one of a thread's eight buffers, so good until its eighth call from now. */
const char *ty_shape_text(const int64_t *shape, int ndim);

/* ---- dtypes ---- */

static const char *const ty_dtype_names[TY_NDTYPE] __attribute__((unused)) = {"float32", "float16", "bfloat16",
  "float64", "int32", "int64", "uint8", "bool"};
static const uint8_t ty_dtype_size[TY_NDTYPE] __attribute__((unused)) = {4, 2, 2, 8, 4, 8, 1, 1};
static inline bool ty_is_float(ty_dtype d) { return d <= TY_F64; }
static inline bool ty_is_16bit(ty_dtype d) { return d == TY_F16 || d == TY_BF16; }
int ty_dtype_find(const char *name);                     /* -1: no such dtype */
/* The numbers of a whole dtype, or bool. */
static inline int64_t ty_whole_last(ty_dtype d) { return d == TY_BOOL ? 1 : d == TY_U8 ? UINT8_MAX : d == TY_I32 ? INT32_MAX : INT64_MAX; }
static inline int64_t ty_whole_first(ty_dtype d) { return d == TY_BOOL || d == TY_U8 ? 0 : -ty_whole_last(d) - 1; }
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

/* One operand: a tensor, a plain number (a 0-dim tensor whose dtype gives way to the tensors'), or left out (TY_NONE). */
typedef struct {
  ty_kind kind;
  ty_tensor *t;
  double f;                /* the number, also where kind is TY_INT or TY_BOOLEAN; then perhaps -0 */
  int64_t i;               /* the number, unless kind is TY_FLOAT */
} ty_operand;

static inline ty_operand ty_operand_tensor(ty_tensor *t) { return (ty_operand){t ? TY_TENSOR : TY_NONE, t, 0, 0}; }
static inline ty_operand ty_operand_int(int64_t i) { return (ty_operand){TY_INT, NULL, (double)i, i}; }
static inline ty_operand ty_operand_float(double f) { return (ty_operand){TY_FLOAT, NULL, f, (int64_t)0}; }

/* One attribute (an argument that is not a tensor). The parameter's type decides which member of the union is used. */
typedef struct {
  bool set;                /* false: the argument was left out and has no default */
  uint8_t n;               /* dims, sizes, ints, single, pair, triple: the length of v; any: a ty_kind */
  union { int64_t i; double f; int64_t v[TY_MAXDIM]; };
} ty_attr;

/* an attribute of type any that is a number */
static inline ty_operand ty_any_number(const ty_attr *a) { return a->n == TY_FLOAT ? ty_operand_float(a->f) : ty_operand_int(a->i); }

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
  uint32_t vmap;           /* within vmap: the id of the vmap that whole belongs to */
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

/* ---- functions ---- */

/* One result before it exists, as an infer rule describes it; on the tape: an operand or a result. */
typedef struct {
  uint8_t dtype, ndim, device;         /* device: set by ty_meta_of alone, an index into ty_devices */
  bool has_stride, own_layout;
  int64_t shape[TY_MAXDIM], stride[TY_MAXDIM];
} ty_meta;

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
static inline bool ty_is_sole(const ty_tensor *t) { return atomic_load(&t->refs) == 1 && ty_storage_holders(t->storage) == 1; }
void ty_hooks_free(ty_hooks *h);
void ty_account_release(ty_account *a);
/* A second tensor of the same storage and geometry, without history. NULL: out of memory. */
ty_tensor *ty_alias(const ty_tensor *t);
/* Such a tensor of memory's storage with like's dtype, shape and strides, at this offset. */
ty_tensor *ty_alias_as(const ty_tensor *memory, const ty_tensor *like, int64_t offset);
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
/* Whether t broadcasts to n dims of shape. */
static inline bool ty_broadcasts_to(const ty_tensor *t, int n, const int64_t *shape) {
  if (t->ndim > n) return false;
  for (int i = 0; i < t->ndim; i++)
    if (t->shape[i] != 1 && t->shape[i] != shape[n - t->ndim + i]) return false;
  return true;
}
bool ty_copies_to(const ty_tensor *src, const ty_tensor *x);  /* whether x:copy_(src) takes src's shape; shape.c */
/* Whether a and b, of one shape, have their elements at the same places: strides of dims of one element don't matter. */
static inline bool ty_same_places(const ty_tensor *a, const ty_tensor *b) {
  for (int i = 0; i < a->ndim; i++)
    if (a->shape[i] > 1 && a->stride[i] != b->stride[i]) return false;
  return true;
}
static inline bool ty_same_layout(const ty_tensor *a, const ty_tensor *b) {
  return a->dtype == b->dtype && TY_SAME_SHAPE(a, b) && !memcmp(a->stride, b->stride, sizeof(int64_t) * a->ndim);
}
/* Whether two tensors of one storage see the same elements in the same way. */
static inline bool ty_same_geometry(const ty_tensor *a, const ty_tensor *b) { return a->offset == b->offset && ty_same_layout(a, b); }
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
void ty_set_operand(void *p, ty_dtype d, ty_operand v);    /* v.f where d is floating, so -0 stays */
static inline double ty_rounded(double v, ty_dtype d) {    /* v rounded to dtype d */
  uint64_t bits;
  ty_set(&bits, d, v);
  return ty_get(&bits, d);
}
#endif
