/* Loops for several element types: X_loops.h holds them for one type, and X_loops.c (or loops.c) includes it for each, or by floats.h.
 *
 * T: the type; S: its name, f32, f64 or i64. FN(f): this type's f, such as f_f32; core/math.h's too. */
#ifndef TY_TYPED_H
#define TY_TYPED_H
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define FN(name) PASTE(name##_, S)
#ifdef __AVX512F__         /* bytes of a vector: gcc compares the elements of larger ones one by one */
#define TY_VECTOR 64
#elif defined __AVX__
#define TY_VECTOR 32
#else
#define TY_VECTOR 16
#endif
#endif
