/* Loops for several element types: X_loops.h holds them for one type, and X_loops.c (or loops.c) includes it for each, or by floats.h.
 *
 * T: the type; S: its name, f32, f64 or i64. FN(f): this type's f, such as f_f32; core/math.h's too. */
#ifndef TY_TYPED_H
#define TY_TYPED_H
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define FN(name) PASTE(name##_, S)
#endif
