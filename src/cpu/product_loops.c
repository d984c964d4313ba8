/* Small matrix products, for which BLAS takes as long to get ready as to compute; built once for each instruction set, as loops.c is.
 *
 * Idea: a tile of the result, up to MOST_ROWS rows by two vectors, stays in registers while all of a's columns pass. b is read in place
 * where its rows fill the vectors, else copied, two vectors wide. Invariant: every element is the sum in order of k. */
#include <string.h>
#include "cpu.h"
#include "typed.h"

/* No other backend has to give these sums to the bit: multiplication and addition may be fused. */
#pragma GCC optimize("fp-contract=fast")

#define MOST_ROWS 6              /* 12 sums, 2 vectors of b and one of a: 16 registers have room for them */
#define LOOPS "product_loops.h"
#include "floats.h"

const ty_product_loop PASTE(ty_product_loops_, TY_ISA)[2] = {product_f32, product_f64};
