/* The loops of pooling, for float and double; built once for each instruction set, as loops.c is.
 *
 * Idea: channels lie side by side, and LANES of them make a vector; a plane's maxima without positions are taken along its rows.
 * Invariants: no two calls write the same element; positions are those of the first of equal maxima in row-major order, of
 * the last of NaNs. */
#include <math.h>
#include <string.h>
#include "cpu.h"
#include "math.h"
#include "typed.h"
typedef int32_t place_f32;
typedef int64_t place_f64;
#define PLACE PASTE(place_, S)
#define LOOPS "pool_loops.h"
#include "floats.h"

const ty_pool_loop PASTE(ty_pool_loops_, TY_ISA)[TY_POOL_LOOPS][2] = {
  [TY_POOL_MAX] = {maxima_f32, maxima_f64}, [TY_POOL_MAX | TY_POOL_BACK] = {maxima_back_f32, maxima_back_f64},
  [TY_POOL_PLANE] = {plane_maxima_f32, plane_maxima_f64},
  [TY_POOL_AVG] = {means_f32, means_f64}, [TY_POOL_AVG | TY_POOL_BACK] = {means_back_f32, means_back_f64},
};
