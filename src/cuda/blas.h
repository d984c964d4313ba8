/* Matrix products as the backend asks for them; cuBLASLt answers (blas_lt.c), or the simulation.
 *
 * C = A B (+ bias of n elements for each row) (then relu), row-major and contiguous; A is m x k, B k x n, each as it lies (ld: elements
 * between rows) or transposed. row_sums: the sums of A's rows, on the way. wide: C is float32, A and B are of 16 bits. Batches step by
 * stride elements (0: the same matrix). Accumulates in float32, float64 for float64. */
#ifndef TY_BLAS_H
#define TY_BLAS_H
#include "cuda.h"

/* *sums: row_sums were asked for and have been made. */
ty_status ty_blas_product(ty_call *c, int gpu, const ty_k_product *p, ty_stream *s, bool *sums);
#endif
