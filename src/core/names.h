/* Dtypes, ops and kinds of recurrent layers by number, for C and for kernels alike. */
#ifndef TY_NAMES_H
#define TY_NAMES_H
typedef enum { TY_F32, TY_F16, TY_BF16, TY_F64, TY_I32, TY_I64, TY_U8, TY_BOOL, TY_NDTYPE } ty_dtype;

typedef enum {
#define POINTWISE(n, name, ...) TY_OP_##name,
#define REDUCE(name, ...) TY_OP_##name,
#define OP(name, ...) TY_OP_##name,
#include "ops.def"
  TY_NOP
} ty_op_id;

typedef enum { TY_RNN_TANH, TY_RNN_RELU, TY_GRU, TY_LSTM } ty_recurrent_kind;      /* as ops.def's recurrent lists them */
#endif
