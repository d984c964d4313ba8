/* The numbers of dtypes, ops and the choices of enum parameters, for C and for kernels alike.
 *
 * Invariant: an enum that ops.def spells in words is one list in C, of numbers and words; loading compares it with ops.def (ops.c). */
#ifndef TY_NAMES_H
#define TY_NAMES_H
typedef enum { TY_F32, TY_F16, TY_BF16, TY_F64, TY_I32, TY_I64, TY_U8, TY_BOOL, TY_NDTYPE } ty_dtype;

/* The types that loops and kernels compute in, and index their tables by; storage dtypes are converted to one of them and back. */
typedef enum { TY_IN_F32, TY_IN_F64, TY_IN_I64, TY_NLOOPTYPE } ty_loop_type;
static inline int ty_is_float_loop(ty_loop_type k) { return k != TY_IN_I64; }
static inline ty_loop_type ty_loop_type_of(int dtype) { return dtype == TY_F64 ? TY_IN_F64 : dtype < TY_F64 ? TY_IN_F32 : TY_IN_I64; }

typedef enum {
#define POINTWISE(n, name, ...) TY_OP_##name,
#define REDUCE(name, ...) TY_OP_##name,
#define OP(name, ...) TY_OP_##name,
#include "ops.def"
  TY_NOP
} ty_op_id;

/* What X makes of such a list: the enum's numbers, its words, or its words as one text. */
#define TY_AS_NUMBER(name, word) TY_##name,
#define TY_AS_WORD(name, word) word,
#define TY_AS_TEXT(name, word) "," word
#define TY_RECURRENT_KINDS(X) X(RNN_TANH, "tanh") X(RNN_RELU, "relu") X(GRU, "gru") X(LSTM, "lstm")
typedef enum { TY_RECURRENT_KINDS(TY_AS_NUMBER) } ty_recurrent_kind;
/* How scatter_reduce combines the old and the new value; its sum is the op scatter_add. */
#define TY_COMBINATIONS(X) X(COMBINE_PROD, "prod") X(COMBINE_AMAX, "amax") X(COMBINE_AMIN, "amin")
enum { TY_COMBINATIONS(TY_AS_NUMBER) };
/* ctc_loss's logarithm of 0, finite, as -inf would have no gradient; also in functional/ctc.lua. */
#define TY_CTC_NEVER -1e30
#endif
