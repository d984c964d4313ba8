/* Fused kernels: several steps of a recorded program in one pass over their elements.
 *
 * Idea: a kernel is an ordered list of nodes. A node is a value computed for each element: read from a tensor, a number, or an expression
 * of ops.def over earlier nodes. All nodes have the kernel's shape; tensors that are read may broadcast to it. If the last nred dims are
 * reduced, their elements form a row, and some nodes have one value per row. fuse.c chooses the steps, fused.c makes the kernels, a
 * backend runs them.
 * Invariants: a node's value is always rounded to its dtype, stored or not, so a fused step gives the same bits as a single one; a tensor
 * that is written is read only at the same elements, and before it is written. */
#ifndef TY_FUSED_H
#define TY_FUSED_H
#include "tycho.h"

#define TY_FUSED_NODES 64
#define TY_FUSED_TENSORS 14
#define TY_FUSED_ROW 4096  /* elements: longer rows don't stay where they are computed */

/* TENSOR: an element of a tensor. NUMBER: the same number everywhere. OP: ops.def's expression. CONVERT: in[0] in another dtype or compute
 * type. REDUCE: in[0]'s row, reduced by op. KEEP: dropout's mask, 0 with probability p, else 1; element i in logical order takes word
 * i % 4 of the generator's block i / 4, counted from its offset, and the run moves the offset past all blocks. */
typedef enum { TY_F_TENSOR, TY_F_NUMBER, TY_F_OP, TY_F_CONVERT, TY_F_REDUCE, TY_F_KEEP } ty_fused_kind;

typedef struct {
  uint8_t kind, nin;
  uint8_t dtype, compute;  /* the value's; what it is computed and held in: float32, float64, int64 */
  int8_t in[3];            /* earlier nodes; an op's operands, held in compute */
  int8_t tensor;           /* TENSOR: index of the one read */
  int8_t to;               /* index of the tensor it is stored to, or -1 */
  bool used;               /* a later node reads it */
  bool row;                /* it has one value per row */
  const ty_op *op;
  double p, q;             /* op's first two attributes */
  ty_operand number;
} ty_fused_node;

typedef struct {
  int value;               /* index in the recording */
  ty_tensor *t;            /* the memory when the kernel runs; its geometry is in the fields below */
  uint8_t dtype;
  bool written, row, channels;         /* row: it has one value per row; channels: one per index of the second dim */
  int64_t along;           /* with nred: its stride along a row; 0: one value per row */
  int64_t stride[TY_MAXDIM];           /* by dim of the kernel, in elements; 0 where it broadcasts */
} ty_fused_tensor;

struct ty_fused {
  int ndim, nred, nnode, ntensor;
  int64_t shape[TY_MAXDIM], numel, inner;   /* inner: elements per row */
  ty_fused_node node[TY_FUSED_NODES];
  ty_fused_tensor tensor[TY_FUSED_TENSORS];
  void *kernel;            /* the backend's, from its fuse to its fused_free */
};

/* Whether the node's value, computed in compute, must be rounded to dtype. */
static inline bool ty_fused_rounds(const ty_fused_node *n) {
  return n->dtype != n->compute && n->kind != TY_F_KEEP && !(n->dtype == TY_BOOL && n->kind == TY_F_OP && n->op->dtype == TY_D_BOOL);
}

static inline int ty_fused_keeps(const ty_fused *f, int before) {      /* how many KEEP nodes come before node `before` */
  int n = 0;
  while (before--) n += f->node[before].kind == TY_F_KEEP;
  return n;
}

static inline int ty_fused_reads(const ty_fused *f) {    /* how many tensors it reads */
  unsigned seen = 0;
  for (int i = 0; i < f->nnode; i++)
    if (f->node[i].kind == TY_F_TENSOR) seen |= 1u << f->node[i].tensor;
  return __builtin_popcount(seen);
}
#endif
