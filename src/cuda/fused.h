/* Shared by a fused kernel's source (source.c) and its launch (fused.c): how the kernel walks, and its arguments. */
#ifndef TY_CUDA_FUSED_H
#define TY_CUDA_FUSED_H
#include "cuda.h"
#include "../core/fused.h"

/* The kernel's dims in the order of the first tensor's memory, merged where possible; without the dims of a row. */
typedef struct {
  int ndim;                                /* without rows: all dims; with rows: those that tell rows apart */
  int64_t shape[TY_MAXDIM], stride[TY_FUSED_TENSORS][TY_MAXDIM];
  int64_t inner[TY_FUSED_TENSORS];         /* stride along a row, or along the last dim */
  bool dense[TY_FUSED_TENSORS];            /* the walk's element i is its element i */
  bool wide;                               /* more elements than 32 bits count */
  int each;                                /* neighbours that a thread computes: 1 unless each tensor has them contiguous, or as one */
  int threads;                             /* per block; with rows: per row */
  bool together;                           /* rows stand side by side in a block, along y */
} ty_fused_walk;

/* The kernel's argument; the source declares the same struct. */
typedef struct {
  void *t[TY_FUSED_TENSORS];
  void *generator;
  int64_t n, shape[TY_MAXDIM], stride[TY_FUSED_TENSORS][TY_MAXDIM];
} ty_fused_args;

#define TY_FUSED_THREADS 256
char *ty_fused_source(const ty_fused *f, const ty_fused_walk *w);   /* from malloc; NULL: out of memory */
#endif
