/* The backend's interface to convolutions and attention, implemented by cuDNN's graphs (dnn_conv.c, dnn_attention.c) or the simulation.
 *
 * a: geometry, strides and pointers as in kernels/kernels.h. *taken false: the library can't do it; the own kernels can. */
#ifndef TY_DNN_H
#define TY_DNN_H
#include "cuda.h"

/* What attention gets beside q, k and v. bias: k.bias's memory, made by ty_give once a plan is sure to use it. */
typedef struct { ty_k_attention_given k; ty_tensor *bias; } ty_given;
static inline ty_given ty_given_of(const ty_k_attention *a) {
  const int64_t shape[4] = {a->h ? a->heads / a->h : 0, a->h, a->lq, a->lk};
  /* backward copies a mask that is one for all queries for each: with just one, cuDNN 9.19 gave wrong gradients on an H200 */
  ty_given x = {.k = {.ld = (a->lk + 7) / 8 * 8}};           /* rows begin at 16 bytes */
  for (int i = 0; i < 4; i++) x.k.shape[i] = i < (a->g.p ? 2 : 3) && a->mask.stride[i] == 0 ? 1 : shape[i];
  return x;
}
ty_status ty_give(ty_call *c, int gpu, const ty_k_attention *a, cudaStream_t s, ty_given *x);
void ty_given_end(ty_given *x);

#define TY_SCORES_IN_MEMORY ((int64_t)16 << 20)      /* of a head: with more, attention isn't done as products */

#define TY_DNN_BATCHES 65535         /* batches, and heads, in one call of attention: the limit of the grid dims that count them */

ty_status ty_dnn_convolve(ty_call *c, int gpu, const ty_k_convolution *a, ty_stream *s, bool *taken);
int64_t ty_dnn_given_at_once(void);                        /* most of a mask's numbers in a call */
/* Without dropout. Rows that see no key are left to ty_k_attention_unseen. */
ty_status ty_dnn_attend(ty_call *c, int gpu, const ty_k_attention *a, ty_stream *s, bool *taken);
size_t ty_dnn_version(void);
#endif
