/* What stands between the backend and NVIDIA's libraries (blas.h, dnn.h, ways.h), answered by Tycho's own kernels.
 *
 * Idea: where ways are timed, a product has two, which add up in opposite orders (product.cpp has the other); which one is the faster is a
 * matter of chance, as on a device that other work disturbs. */
#include <sys/random.h>
#include "blas.h"
#include "dnn.h"
#include "ways.h"

cudaError_t sim_multiply_backwards(const ty_k_product *a, cudaStream_t s);

static bool takes_other_way(int gpu, const ty_k_product *p) {
  const int64_t problem[6] = {p->dtype, p->m, p->n, p->k, p->batch, p->ta | p->tb << 1};
  int64_t way[TY_WAY] = {0};
  if (ty_ways_find(TY_WAYS_BLAS, gpu, problem, 6, way)) return way[0];
  if (ty_ways_timed(gpu) && getrandom(way, 1, 0) == 1) way[0] &= 1;
  ty_ways_keep(TY_WAYS_BLAS, gpu, problem, 6, way, 1);
  return way[0];
}

ty_status ty_blas_product(ty_call *c, int gpu, const ty_k_product *p, ty_stream *s, bool *sums) {
  *sums = p->row_sums != NULL;
  const bool other = p->dtype <= TY_BF16 && takes_other_way(gpu, p);
  return ty_launched(c, gpu, other ? sim_multiply_backwards(p, s->s) : ty_k_multiply(p, s->s));
}

ty_status ty_dnn_convolve(ty_call *c, int gpu, const ty_k_convolution *a, ty_stream *s, bool *taken) {
  (void)c; (void)gpu; (void)a; (void)s;
  *taken = false;
  return TY_OK;
}

ty_status ty_dnn_attend(ty_call *c, int gpu, const ty_k_attention *a, ty_stream *s, bool *taken) {
  (void)c; (void)gpu; (void)a; (void)s;
  *taken = false;
  return TY_OK;
}

cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

const char *ty_ways_libraries(void) { return "simulated"; }
