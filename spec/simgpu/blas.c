/* blas.h, answered by the simulation's own kernel. */
#include "blas.h"

cudaError_t sim_product(int dtype, int64_t m, int64_t n, int64_t k, int64_t batch, int64_t lda, int64_t ldb, int64_t stride_a, int64_t stride_b, int ta, int tb, int relu,
                        const void *a, const void *b, const void *bias, void *c, cudaStream_t s);

ty_status ty_blas_product(ty_call *c, int gpu, const ty_product *p, ty_stream *s) {
  return ty_launched(c, gpu, sim_product(p->dtype, p->m, p->n, p->k, p->batch, p->lda, p->ldb, p->stride_a, p->stride_b, p->ta, p->tb, p->relu, p->a, p->b, p->bias, p->c, s->s));
}
