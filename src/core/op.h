/* Ops: the op table, a call of an op, and apply, the way that every call takes.
 *
 * Idea: a call holds what the signature of its op says, by slots: operands, and attributes, which are the arguments that aren't tensors.
 * Invariant: a backend gets a call only after the op's infer rule has checked it and the results are allocated. */
#ifndef TY_OP_H
#define TY_OP_H

#include "attributes.h"
#include "tensor.h"

#define TY_MAXPARAM 17   /* parameters of an op */
#define TY_MAXATTR 14    /* those that are not tensors */
#define TY_MAXOUT 4      /* results of an op */

/* ---- the op table ---- */

typedef enum { TY_P_TENSOR, TY_P_OPERAND, TY_P_TENSORS, TY_P_INT, TY_P_NUMBER, TY_P_BOOL, TY_P_DIM, TY_P_DIMS, TY_P_SIZES,
               TY_P_INTS, TY_P_SINGLE, TY_P_PAIR, TY_P_TRIPLE, TY_P_DTYPE, TY_P_ENUM, TY_P_STRING, TY_P_DEVICE, TY_P_ANY,
               TY_P_NTYPES } ty_ptype;

typedef struct {
  char name[28];
  uint8_t type;            /* ty_ptype */
  uint8_t slot;            /* its place among the operands, or among the attributes */
  bool optional, keyword, mutated;
  ty_attr def;             /* the default, where .set */
  char choices[96];        /* TY_P_ENUM: "none,mean,sum" */
} ty_param;
/* Operands: tensors, or numbers in their place. All other parameters are attributes. */
static inline bool ty_param_is_operand(const ty_param *p) { return p->type <= TY_P_TENSORS; }

/* Classes of ops: one entry of a backend (ty_backend.run) does all ops of a class. */
#define TY_CLASSES(X) X(C_POINTWISE, "pointwise") X(C_REDUCE, "reduce") X(C_REDUCE_INDEX, "reduce_index") X(C_SCAN, "scan") \
  X(C_VIEW, "view") X(C_MOVE, "move") X(C_COPY, "copy") X(C_FILL, "fill") X(C_RANDOM, "random") X(C_MATMUL, "matmul") \
  X(C_LINALG, "linalg") X(C_DECOMPOSE, "decompose") \
  X(C_FOURIER, "fourier") X(C_SOFTMAX, "softmax") X(C_INDEX, "index") X(C_SORT, "sort") X(C_CAT, "cat") \
  X(C_CONV, "conv") X(C_POOL, "pool") X(C_RESIZE, "resize") X(C_SAMPLE, "sample") X(C_DISTANCE, "distance") X(C_NORM, "norm") \
  X(C_ATTENTION, "attention") \
  X(C_RECURRENT, "recurrent") X(C_LOSS, "loss") X(C_ALIGN, "align") X(C_OPTIM, "optim") X(C_COLLECTIVE, "collective")
typedef enum { TY_CLASSES(TY_AS_NUMBER) TY_NCLASS } ty_class;

typedef enum { TY_D_SAME, TY_D_FLOAT, TY_D_BOOL, TY_D_FIRST, TY_D_WHERE, TY_D_WHOLE } ty_dtype_rule;
typedef enum { TY_A_FP16, TY_A_FP32, TY_A_WIDEST } ty_autocast;

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
  bool mutates;                        /* changes operands marked "!"; if it has an attribute training, only where that is set */
  bool in_place;                       /* has a form that changes its first operand */
  int device;                          /* slot of the attribute that names the results' device; -1: none */
  int cast_first;                      /* slot of the attribute whose dtype operand 1 is cast to first; -1: none */
  int rate;                            /* slot of an optimizer step's learning rate among the operands; -1: none */
  int training;                        /* slot of the attribute training of an op that mutates; -1: none */
  bool costly;                         /* a pointwise expression that takes the CPU longer than reading an element */
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
const ty_param *ty_op_param(const ty_op *op, const char *name);
/* Parameters by their slots, which count operands, or attributes, alone. */
const ty_param *ty_operand_param(const ty_op *op, int slot);
const ty_param *ty_attr_param(const ty_op *op, int slot);
/* Which of p's choices the n characters at word are; -1: none. ty_choice_name: choice i, *n characters long. */
int ty_choice(const ty_param *p, const char *word, size_t n);
const char *ty_choice_name(const ty_param *p, int64_t i, size_t *n);
ty_status ty_sig_parse(const char *sig, ty_op *into, char *err);
/* The one of list's n names that is nearest to name, or NULL where none is near. */
const char *ty_nearest(const char *name, const char *const *list, int n);

typedef struct { int start, count; } ty_span;

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
/* The windows of a convolution or a pool, forward or backward, over the last two dims. kernel: pools only; 0 where the sizes
   decide the windows (adaptive). max, back: a pool of maxima; a pool's gradient. */
typedef struct {
  int64_t kernel[2], stride[2], padding[2], dilation[2], groups, divisor;
  bool ceil_mode, include_pad, max, back;
} ty_windows;
ty_windows ty_windows_of(const ty_call *c);
/* The options of any op of grid_sample or interpolate. */
typedef struct { int mode, padding; bool corners; double factor[2]; } ty_sampling_options;
ty_sampling_options ty_sampling_options_of(const ty_call *c);
/* The options of any op of cross_entropy; in all of them these are the first attributes. */
typedef struct { int64_t ignore_index; double label_smoothing; } ty_loss_options;
static inline ty_loss_options ty_loss_options_of(const ty_call *c) {
  return (ty_loss_options){c->at[TY_AT_cross_entropy_rows_ignore_index].i, c->at[TY_AT_cross_entropy_rows_label_smoothing].f};
}
#define TY_BINCOUNT_MOST ((int64_t)1 << 40)  /* bincount's largest id: beyond, the counts would take more than 8 TiB */
struct ty_augment;
void ty_augment_of(const ty_call *c, struct ty_augment *out);   /* the op augment's geometry (augment.h) */

/* Where the tensors of an operand slot stand in ty_call.in: those of a list, or the one. */
static inline ty_span ty_span_of(const ty_op *op, const ty_span *span, int slot) { return op->has_list ? span[slot] : (ty_span){slot, 1}; }
void ty_keep_mark(ty_tensor *t, const ty_op *op);         /* op has changed t, which may be a scaled gradient */
/* Whether numbers among the operands are rounded to c->common first. As in PyTorch, x:eq(0.1) on a 16-bit x compares with 0.1
   in x's dtype. */
static inline bool ty_rounds_numbers(const ty_call *c) {
  return ty_is_16bit(c->common) && (c->op->dtype == TY_D_BOOL || c->op->id == TY_OP_maximum || c->op->id == TY_OP_minimum);
}
/* Whether a call with these attributes changes the operands that are marked so. */
static inline bool ty_mutates(const ty_op *op, const ty_attr *at) { return op->mutates && (op->training < 0 || at[op->training].i); }
/* Calls fn for each operand that the call changes, other than by an in-place form. */
static inline void ty_each_mutated(const ty_call *c, void (*fn)(ty_tensor *t, const ty_op *op)) {
  for (int k = 0; ty_mutates(c->op, c->at) && k < c->op->nparam; k++) {
    if (!c->op->param[k].mutated) continue;
    const ty_span s = ty_span_of(c->op, c->span, c->op->param[k].slot);
    for (int i = 0; i < s.count; i++)
      if (c->in[s.start + i].t) fn(c->in[s.start + i].t, c->op);
  }
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
ty_status ty_view(ty_ctx *ctx, ty_tensor *t, int n, const int64_t *size, ty_tensor **out);      /* the op view */
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
#endif
