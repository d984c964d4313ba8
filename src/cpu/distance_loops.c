/* The loops of cdist: one row of a and n rows of b, TY_BLOCK at most, and their transpose t (row j: t[j], t[stride + j], ...); built once
 * for each instruction set, as loops.c is. */
#include "cpu.h"
#include "distances.h"
#include "typed.h"

#define LANES TY_LANES
#define INLINE static inline __attribute__((always_inline))
#define LOOPS "distance_loops.h"
#include "floats.h"

const ty_distance_loops PASTE(ty_distance_loops_, TY_ISA) = {.norms = {norms_f32, norms_f64}, .slopes = {slopes_f32, slopes_f64}};
