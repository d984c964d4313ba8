/* Cross-entropy over rows: the loss of each row from its log-sum-exp, and the gradient from the same, in one pass. */
#include <math.h>
#include <stdlib.h>
#include "cpu.h"

static ty_status check_labels(ty_call *c, const ty_tensor *y, int64_t classes, int64_t ignore) {
  const int64_t *v = ty_data(y);
  for (int64_t i = 0; i < y->shape[0]; i++) {
    int64_t t = v[i * y->stride[0]];
    if (t == ignore || (t >= 1 && t <= classes)) continue;
    return t == 0 ? ty_fail(c, "label 0: class labels begin at 1") : ty_fail(c, "label %lld is not one of %lld classes", (long long)t, (long long)classes);
  }
  return TY_OK;
}

static ty_status run(ty_call *c) {
  bool back = c->op->id == TY_OP_cross_entropy_backward;
  ty_tensor *x, *w = NULL, *y = c->in[back ? 2 : 1].t, *wt = c->in[back ? 4 : 2].t;
  int64_t ignore = c->at[0].i;
  double eps = c->at[1].f;
  TY_TRY(ty_contiguous(c->ctx, c->in[back ? 1 : 0].t, &x));
  int k = ty_k(ty_compute_dtype((ty_dtype)x->dtype));
  int64_t m = x->shape[0], n = x->shape[1];
  ty_status s = check_labels(c, y, n, ignore);
  if (s == TY_OK && wt) s = ty_contiguous(c->ctx, wt, &w);
  const int64_t *labels = ty_data(y);
  const char *px = ty_data(x);
  double wsum = (double)n;
  if (w) { wsum = 0; for (int64_t j = 0; j < n; j++) wsum += at(ty_data(w), k, j); }
  #pragma omp parallel for num_threads(ty_threads_for(m * n * 8)) schedule(static)
  for (int64_t i = 0; i < m; i++) {
    if (s != TY_OK) continue;
    const void *row = px + i * n * ty_ksize[k];
    int64_t t = labels[i * y->stride[0]];
    double wl = t == ignore ? 0 : w ? at(ty_data(w), k, t - 1) : 1;
    if (back) {
      const ty_tensor *g = c->in[0].t, *l = c->in[3].t;
      double up = ty_get((char *)ty_data(g) + i * g->stride[0] * ty_itemsize(g), (ty_dtype)g->dtype), lse = at(ty_data(l), k, i);
      double mass = t == ignore ? 0 : (1 - eps) * wl + eps / (double)n * wsum;
      for (int64_t j = 0; j < n; j++) {
        double q = (j == t - 1 ? (1 - eps) * wl : 0) + eps / (double)n * (w ? at(ty_data(w), k, j) : 1);
        put(ty_data(c->out[0]), k, i * n + j, t == ignore ? 0 : up * (exp(at(row, k, j) - lse) * mass - q));
      }
      continue;
    }
    double top = -INFINITY, sum = 0, smooth = 0;
    for (int64_t j = 0; j < n; j++) { double v = at(row, k, j); top = v > top || v != v ? v : top; }
    if (top == -INFINITY) top = 0;
    for (int64_t j = 0; j < n; j++) sum += exp(at(row, k, j) - top);
    double lse = top + log(sum);
    if (eps > 0) for (int64_t j = 0; j < n; j++) smooth += (w ? at(ty_data(w), k, j) : 1) * (lse - at(row, k, j));
    double loss = t == ignore ? 0 : (1 - eps) * wl * (lse - at(row, k, t - 1)) + eps / (double)n * smooth;
    put(ty_data(c->out[0]), k, i, loss);
    put(ty_data(c->out[1]), k, i, lse);
  }
  ty_release(x);
  ty_release(w);
  return s;
}

ty_status ty_cpu_loss(ty_call *c) { return ty_widened(c, run); }
