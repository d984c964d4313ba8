/* Includes LOOPS, a file of loops for one element type (typed.h), for float and for double. K: the ty_loop_type. */
#define T float
#define S f32
#define K TY_IN_F32
#include LOOPS
#undef T
#undef S
#undef K
#define T double
#define S f64
#define K TY_IN_F64
#include LOOPS
#undef T
#undef S
#undef K
#undef LOOPS
