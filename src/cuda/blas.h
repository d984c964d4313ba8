/* The backend's interface to matrix products, implemented by cuBLASLt (blas_lt.c) or the simulation.
 *
 * C = A B (+ bias, n elements added to each row) (then relu), row-major and contiguous. A is m x k, B is k x n, each plain or transposed
 * in memory (ld: elements between rows). row_sums: also gives the sums of A's rows. wide: C is float32, A and B are 16-bit. Batches step
 * by stride elements (0: the same matrix). Accumulates in float32, or float64 for float64. */
#ifndef TY_BLAS_H
#define TY_BLAS_H
#include "cuda.h"

/* *sums: row_sums were asked for and have been computed. */
ty_status ty_blas_product(ty_call *c, int gpu, const ty_k_product *p, ty_stream *s, bool *sums);
#endif
