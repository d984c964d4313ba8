/* Convolutions and attention as the backend asks for them; cuDNN's graphs answer (dnn_conv.c, dnn_attention.c), or the simulation.
 *
 * a: geometry, strides and pointers as kernels/kernels.h says. Sets *taken to false where the library has no way to do it: the own kernels
 * have. */
#ifndef TY_DNN_H
#define TY_DNN_H
#include "cuda.h"

#define TY_SCORES_IN_MEMORY ((int64_t)16 << 20)      /* of a head: attention with more of them doesn't go by products */

ty_status ty_dnn_convolve(ty_call *c, int gpu, const ty_k_convolution *a, ty_stream *s, bool *taken);
ty_status ty_dnn_attend(ty_call *c, int gpu, const ty_k_attention *a, ty_stream *s, bool *taken);
size_t ty_dnn_version(void);
#endif
