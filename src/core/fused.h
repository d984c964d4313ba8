/* Fused kernels: several pointwise steps of a recorded program in one pass over their elements.
 *
 * Idea: a kernel is a list of nodes in order, each an element's value: read from a tensor, a number, or an expression
 * of ops.def over earlier nodes. All nodes have one shape; tensors that are read may broadcast to it. Where the last
 * nred dims are reduced, their elements are a row, and some nodes are one value a row. fuse.c chooses the steps,
 * fused.c makes kernels, a backend runs them.
 * Invariants: a node's value is one that its dtype can hold (what is not stored is rounded as if it were), so that a
 * fused step gives the bits of a single one; a tensor that is written is read, if at all, at the same elements, and
 * before. */
#ifndef TY_FUSED_H
#define TY_FUSED_H
#include "tycho.h"

#define TY_FUSED_NODES 64
#define TY_FUSED_TENSORS 14
#define TY_FUSED_ROW 4096  /* elements: longer rows don't stay where they are computed */

/* TENSOR: an element of a tensor; NUMBER; OP: ops.def's expression; CONVERT: in[0] in another dtype, or type computed in; REDUCE: in[0]'s
 * row, by op; KEEP: 0 with probability p, else 1: element i in logical order takes word i % 4 of the generator's block i / 4 from its
 * offset on, and moves it by all blocks */
typedef enum { TY_F_TENSOR, TY_F_NUMBER, TY_F_OP, TY_F_CONVERT, TY_F_REDUCE, TY_F_KEEP } ty_fused_kind;

typedef struct {
  uint8_t kind, nin;
  uint8_t dtype, compute;  /* the value's, and the one of float32, float64, int64 that it is computed and held in */
  int8_t in[3];            /* nodes; of op's operands, held in compute */
  int8_t tensor;           /* TENSOR: the one that is read */
  int8_t to;               /* the tensor that is written, or -1 */
  bool used;               /* by a later node */
  bool row;                /* one value a row */
  const ty_op *op;
  double p, q;             /* op's first two attributes */
  ty_operand number;
} ty_fused_node;

typedef struct {
  int value;               /* fuse.c's */
  ty_tensor *t;            /* the memory, when the kernel runs; its geometry is the one given here */
  uint8_t dtype;
  bool written, row, channels;         /* it has one value a row; one for each element of the second dim */
  int64_t along;           /* with rows: its stride along one, 0 where it has one value a row */
  int64_t stride[TY_MAXDIM];           /* of the kernel's dims, in elements; 0 where it broadcasts */
} ty_fused_tensor;

struct ty_fused {
  int ndim, nred, nnode, ntensor;
  int64_t shape[TY_MAXDIM], numel, inner;   /* inner: elements of a row */
  ty_fused_node node[TY_FUSED_NODES];
  ty_fused_tensor tensor[TY_FUSED_TENSORS];
  void *kernel;            /* the backend's, from fuse to fused_free */
};

/* Whether what is computed in compute has to be rounded to be a value of dtype. */
static inline bool ty_fused_rounds(const ty_fused_node *n) {
  return n->dtype != n->compute && n->kind != TY_F_KEEP && !(n->dtype == TY_BOOL && n->kind == TY_F_OP && n->op->dtype == TY_D_BOOL);
}

static inline int ty_fused_keeps(const ty_fused *f, int before) {      /* KEEP nodes before that one */
  int n = 0;
  while (before--) n += f->node[before].kind == TY_F_KEEP;
  return n;
}

static inline int ty_fused_reads(const ty_fused *f) {    /* tensors */
  unsigned seen = 0;
  for (int i = 0; i < f->nnode; i++)
    if (f->node[i].kind == TY_F_TENSOR) seen |= 1u << f->node[i].tensor;
  return __builtin_popcount(seen);
}
#endif
