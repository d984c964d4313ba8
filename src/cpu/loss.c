/* Cross-entropy over rows: the loss of each row, or their mean, from log-sum-exps, and the gradient from the same, in one pass. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"

#define LOSS_BLOCK 512

static ty_status check_labels(ty_call *c, const ty_tensor *y, int64_t classes, int64_t ignore) {
  const int64_t *v = ty_data(y);
  for (int64_t i = 0; i < y->shape[0]; i++) {
    int64_t t = v[i * y->stride[0]];
    if (t == ignore || (t >= 1 && t <= classes)) continue;
    return t == 0 ? ty_fail(c, "label 0: class labels begin at 1")
      : ty_fail(c, "label %lld is not one of %lld classes", (long long)t, (long long)classes);
  }
  return TY_OK;
}

/* What a row's loss counts for in the mean. */
static double count_of(int64_t t, int64_t ignore, const ty_tensor *w, int k) { return t == ignore ? 0 : w ? at(ty_data(w), k, t - 1) : 1; }

static ty_status run(ty_call *c) {
  const int id = c->op->id;
  const bool mean = id == TY_OP_cross_entropy_mean || id == TY_OP_cross_entropy_mean_backward,
    back = id == TY_OP_cross_entropy_backward || id == TY_OP_cross_entropy_mean_backward;
  ty_tensor *x, *w = NULL, *y = c->in[back ? 2 : 1].t, *wt = c->in[back ? 4 + mean : 2].t;
  const ty_loss_options how = ty_loss_options_of(c);
  const int64_t ignore = how.ignore_index;
  const double eps = how.label_smoothing;
  TY_TRY(ty_contiguous(c->ctx, c->in[back ? 1 : 0].t, &x));
  const ty_loop_type k = ty_loop_type_of((ty_dtype)x->dtype);
  int64_t m = x->shape[0], n = x->shape[1];
  ty_status s = check_labels(c, y, n, ignore);
  if (s == TY_OK && wt) s = ty_contiguous(c->ctx, wt, &w);
  const int64_t *labels = ty_data(y);
  const char *px = ty_data(x);
  const ty_loops *l = ty_cpu_loops();
  int size = ty_loop_size[k];
  double wsum = (double)n, whole = back && mean ? at(ty_data(c->in[4].t), k, 0) : 0;
  if (w) { wsum = 0; for (int64_t j = 0; j < n; j++) wsum += at(ty_data(w), k, j); }
  char *losses = back ? NULL : mean ? ty_scratch((size_t)(m * size + 8)) : ty_data(c->out[0]);
  if (!back && !losses) {
    ty_fail(c, "out of memory");
    s = TY_OOM;
  }
  #pragma omp parallel for num_threads(ty_threads_for(m * n * 2)) schedule(static)
  for (int64_t i = 0; i < m; i++) {
    if (s != TY_OK) continue;
    const char *row = px + i * n * size;
    int64_t t = labels[i * y->stride[0]];
    double wl = count_of(t, ignore, w, k);
    if (back) {                            /* up * (mass * softmax - (1 - eps) wl [label] - eps / n * weight) */
      const ty_tensor *g = c->in[0].t, *lse = c->in[3].t;
      char *o = (char *)ty_data(c->out[0]) + i * n * size;
      if (t == ignore) { memset(o, 0, (size_t)(n * size)); continue; }
      double up = ty_get((char *)ty_data(g) + (mean ? 0 : i * g->stride[0] * ty_itemsize(g)), (ty_dtype)g->dtype),
        mass = (1 - eps) * wl + eps / (double)n * wsum;
      if (mean) up /= whole;
      l->exp_sum[k](o, row, n, 1, at(ty_data(lse), k, i));
      if (w && eps > 0) l->affine2[k](o, o, ty_data(w), n, up * mass, -up * eps / (double)n, 0);
      else l->affine[k](o, o, n, up * mass, -up * eps / (double)n);
      put(o, k, t - 1, at(o, k, t - 1) - up * (1 - eps) * wl);
      continue;
    }
    double top, sum = 0, smooth = 0, buf[LOSS_BLOCK];
    l->row[TY_OP_amax][k](&top, row, n);
    if (n == 0 || top == -INFINITY) top = 0;
    for (int64_t j = 0; j < n; j += LOSS_BLOCK) sum += l->exp_sum[k](buf, row + j * size, TY_MIN(LOSS_BLOCK, n - j), 1, top);
    double lse = top + log(sum);
    if (eps > 0) for (int64_t j = 0; j < n; j++) smooth += (w ? at(ty_data(w), k, j) : 1) * (lse - at(row, k, j));
    double loss = t == ignore ? 0 : (1 - eps) * wl * (lse - at(row, k, t - 1)) + eps / (double)n * smooth;
    put(losses, k, i, loss);
    put(ty_data(c->out[1]), k, i, lse);
  }
  if (!back && mean && s == TY_OK) {
    double sum = 0;
    for (int64_t i = 0; i < m; i++) { sum += at(losses, k, i); whole += count_of(labels[i * y->stride[0]], ignore, w, k); }
    put(ty_data(c->out[2]), k, 0, whole);
    put(ty_data(c->out[0]), k, 0, sum / at(ty_data(c->out[2]), k, 0));
  }
  if (!back && mean) ty_scratch_free(losses);
  ty_release(x);
  ty_release(w);
  return s;
}

ty_status ty_cpu_loss(ty_call *c) { return ty_widened(c, run); }
