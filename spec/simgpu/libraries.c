/* The interfaces to NVIDIA's libraries (blas.h, dnn.h, timed_plans.h), answered by Tycho's own kernels.
 *
 * Idea: where plans are timed, a product has two, which sum in opposite orders (the other one is in product.cpp); chance decides which is
 * faster, as on a device that other work disturbs. With odd seeds, 16-bit attention with a mask and without dropout goes to a simulated
 * library (attend.cpp), which gets what cuDNN would get. */
#include <sys/random.h>
#include "blas.h"
#include "dnn.h"
#include "timed_plans.h"

cudaError_t sim_multiply_backwards(const ty_k_product *a, cudaStream_t s);
bool sim_odd_seed(void);
cudaError_t sim_attend(const ty_k_attention *a, const ty_k_attention_given *x, cudaStream_t s);

static bool takes_other_plan(int gpu, const ty_k_product *p) {
  const int64_t problem[6] = {p->dtype, p->m, p->n, p->k, p->batch, p->ta | p->tb << 1};
  int64_t saved[TY_PLAN_WORDS] = {0};
  if (ty_timed_find(TY_PLANS_BLAS, gpu, problem, 6, saved)) return saved[0];
  if (ty_times_plans(gpu) && getrandom(saved, 1, 0) == 1) saved[0] &= 1;
  ty_timed_keep(TY_PLANS_BLAS, gpu, problem, 6, saved, 1);
  return saved[0];
}

ty_status ty_blas_product(ty_call *c, int gpu, const ty_k_product *p, ty_stream *s, bool *sums) {
  *sums = p->row_sums != NULL;
  const bool other = p->dtype <= TY_BF16 && takes_other_plan(gpu, p);
  return ty_cuda_launched(c, gpu, other ? sim_multiply_backwards(p, s->s) : ty_k_multiply(p, s->s));
}

ty_status ty_dnn_convolve(ty_call *c, int gpu, const ty_k_convolution *a, ty_stream *s, bool *taken) {
  (void)c; (void)gpu; (void)a; (void)s;
  *taken = false;
  return TY_OK;
}

size_t ty_dnn_version(void) { return 0; }
int64_t ty_dnn_given_at_once(void) { return 10000; }         /* small, so that batches go several ways */

ty_status ty_dnn_attend(ty_call *c, int gpu, const ty_k_attention *a, ty_stream *s, bool *taken) {
  *taken = sim_odd_seed() && ty_is_16bit((ty_dtype)a->dtype) && a->mask.p && a->dropout == 0 && a->d == a->dv && a->d > 0 && a->d <= 256 &&
    a->q.stride[3] == 1 && a->k.stride[3] == 1 && a->v.stride[3] == 1 && (!a->g.p || a->g.stride[3] == 1);
  if (!*taken) return TY_OK;
  ty_given x = ty_given_of(a);
  ty_status st = ty_give(c, gpu, a, s->s, &x);
  if (st == TY_OK) st = ty_cuda_launched(c, gpu, sim_attend(a, &x.k, s->s));
  ty_given_end(&x);
  return st;
}

cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

const char *ty_timed_libraries(void) { return "simulated"; }
