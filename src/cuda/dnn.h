/* Convolutions as the backend asks for them; cuDNN's graphs answer (dnn_graph.c), or the simulation.
 *
 * a: geometry, strides and pointers as kernels/kernels.h says; x, weight and y have the dtype a.dtype. Sets *taken to false where the
 * library has no way to do it: kernels/conv.cu has. */
#ifndef TY_DNN_H
#define TY_DNN_H
#include "cuda.h"

ty_status ty_dnn_convolve(ty_call *c, int gpu, const ty_k_convolution *a, ty_stream *s, bool *taken);
#endif
