/* Factors of TY_MATRICES small matrices at once; built once for each instruction set, as loops.c is.
 *
 * Idea: element e of every matrix lies beside that of the others (a[e * TY_MATRICES + i] is matrix i's), so that each step is one vector
 * operation for several, and rows are exchanged by selecting. Invariant: a matrix's result doesn't depend on those beside it. */
#include <math.h>
#include "cpu.h"
#include "typed.h"

#define INLINE static inline __attribute__((always_inline))
INLINE float root_f32(float x) { return sqrtf(x); }
INLINE double root_f64(double x) { return sqrt(x); }
#define WHOLE_f32 int32_t
#define WHOLE_f64 int64_t
#define LOOPS "matrix_loops.h"
#include "floats.h"

const ty_matrix_loops PASTE(ty_matrix_loops_, TY_ISA) = {
  .eliminate = {eliminate_f32, eliminate_f64}, .substitute = {substitute_f32, substitute_f64}, .cholesky = {cholesky_f32, cholesky_f64}};
