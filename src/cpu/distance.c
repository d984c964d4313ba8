/* cdist: the norms of the differences of every row of a (..., n, d) and every row of b (..., m, d), and a's gradient.
 *
 * Idea: b is transposed, so that the loops take many of its rows at once. Invariant: one thread sums each result, in one order. */
#include <string.h>
#include "cpu.h"

ty_status ty_cpu_distance(ty_call *c) {
  const bool back = c->op->id == TY_OP_distances_backward;
  const double p = back ? c->at[TY_AT_distances_backward_p].f : c->at[TY_AT_distances_p].f;
  ty_tensor *in[4] = {NULL}, *o = c->out[0];           /* a, b; backward: grad, a, b, the norms */
  ty_status s = TY_OK;
  int got = 0;
  for (; got < c->nin && s == TY_OK; got += s == TY_OK) s = ty_contiguous(c->ctx, c->in[got].t, &in[got]);
  if (s == TY_OK && ty_numel(o)) {
    const ty_tensor *a = in[back], *b = in[back + 1];
    const int64_t n = a->shape[a->ndim - 2], d = a->shape[a->ndim - 1], m = b->shape[b->ndim - 2],
      batch = n && d ? ty_numel(a) / (n * d) : ty_numel(o) / TY_MAX(n * m, 1);
    const ty_loop_type k = ty_loop_type_of(o->dtype);
    const size_t size = (size_t)ty_itemsize(o);
    const ty_distance_loops *l = ty_cpu_loops()->distance;
    char *turned = ty_scratch(TY_MAX(size * (size_t)(d * m), 1));
    if (!turned) s = ty_no_memory(c->ctx, c->op->shown);
    if (back && s == TY_OK) memset(ty_data(o), 0, size * (size_t)ty_numel(o));
    for (int64_t i = 0; i < batch && s == TY_OK; i++) {
      const char *x = (const char *)ty_data(a) + (size_t)(i * n * d) * size, *y = (const char *)ty_data(b) + (size_t)(i * m * d) * size;
      for (int64_t j = 0; j < m; j++)
        for (int64_t e = 0; e < d; e++) memcpy(turned + (size_t)(e * m + j) * size, y + (size_t)(j * d + e) * size, size);
      #pragma omp parallel for num_threads(ty_threads_for(n * m * (d + 1))) schedule(static)
      for (int64_t r = 0; r < n; r++)
        for (int64_t j = 0; j < m; j += TY_BLOCK) {
          const int64_t many = TY_MIN(TY_BLOCK, m - j), at = (i * n + r) * m + j;
          const char *row = x + (size_t)(r * d) * size, *t = turned + (size_t)j * size;
          if (back)
            l->slopes[k](p, (char *)ty_data(o) + (size_t)((i * n + r) * d) * size, (const char *)ty_data(in[0]) + (size_t)at * size,
              (const char *)ty_data(in[3]) + (size_t)at * size, row, y + (size_t)(j * d) * size, t, m, d,
              many);
          else l->norms[k](p, (char *)ty_data(o) + (size_t)at * size, row, t, m, d, many);
        }
    }
    ty_scratch_free(turned);
  }
  while (got) ty_release(in[--got]);
  return s;
}
