/* Cross-entropy of scores (N, C, ...): the loss of each place, which has one label, or their mean, from log-sum-exps; and the gradient
 * from the same, in one pass.
 *
 * Idea: a place's scores are a contiguous row (two dims, or channels-last), or places lie side by side, class after class. Long rows are
 * computed one by one, all else in tiles of places side by side, for which short rows are transposed. */
#include <math.h>
#include <omp.h>
#include <string.h>
#include "cpu.h"

#define LOSS_BLOCK 512
#define TILE 256               /* places */
#define SHORT 64               /* classes of a short row */

typedef struct {
  ty_loop_type k;
  int size;
  int64_t m, n, inner, ignore; /* places, classes; inner: places side by side, 1: rows */
  double eps, wsum, whole;     /* whole: what all losses count for together, in the gradient of their mean */
  const char *x, *w, *g;       /* w may be NULL; g: backward */
  const double *lse;
  int gdtype;
  bool mean;
  const int64_t *labels;
  char *losses, *o;
  double *lse_out;
} job;

static ty_status check_labels(ty_call *c, const job *j) {
  for (int64_t i = 0; i < j->m; i++) {
    const int64_t t = j->labels[i];
    if (t == j->ignore || (t >= 1 && t <= j->n)) continue;
    return t == 0 ? ty_fail(c, "label 0: class labels begin at 1")
      : ty_fail(c, "label %lld is not one of %lld classes", (long long)t, (long long)j->n);
  }
  return TY_OK;
}

/* What a place's loss counts for in the mean. */
static double count_of(const job *j, int64_t t) { return t == j->ignore ? 0 : j->w ? at(j->w, j->k, t - 1) : 1; }
static double weight_of(const job *j, int64_t class) { return j->w ? at(j->w, j->k, class) : 1; }
static double gradient_of(const job *j, int64_t place) {
  const double up = ty_get(j->g + (j->mean ? 0 : place * ty_dtype_size[j->gdtype]), j->gdtype);
  return j->mean ? up / j->whole : up;
}

/* A place's log-sum-exp in the loops' type, for exponentials of differences from it, and in *left the factor that makes up for its
 * rounding: that of large scores is as large as their differences are. */
static double rounded_lse(const job *j, int64_t place, double *left) {
  const double lse = j->lse[place], near = j->k == TY_IN_F32 ? (double)(float)lse : lse;
  *left = near == lse || !isfinite(lse) ? 1 : exp(near - lse);
  return near;
}

/* The gradient is up * (mass * softmax - (1 - eps) wl [label] - eps / n * weight). */
static double mass_of(const job *j, double wl) { return (1 - j->eps) * wl + j->eps / (double)j->n * j->wsum; }

static void row_forward(const job *j, int64_t i) {
  const ty_loops *l = ty_cpu_loops();
  const char *row = j->x + i * j->n * j->size;
  const int64_t t = j->labels[i], n = j->n;
  double top, sum = 0, smooth = 0, buf[LOSS_BLOCK];
  l->row[TY_OP_amax][j->k](&top, row, n);
  if (n == 0 || top == -INFINITY) top = 0;
  for (int64_t q = 0; q < n; q += LOSS_BLOCK) sum += l->exp_sum[j->k](buf, row + q * j->size, TY_MIN(LOSS_BLOCK, n - q), 1, top);
  const double lse = top + log(sum);
  if (j->eps > 0) for (int64_t q = 0; q < n; q++) smooth += weight_of(j, q) * (lse - at(row, j->k, q));
  put(j->losses, j->k, i, t == j->ignore ? 0 : (1 - j->eps) * count_of(j, t) * (lse - at(row, j->k, t - 1)) + j->eps / (double)n * smooth);
  j->lse_out[i] = lse;
}

static void row_backward(const job *j, int64_t i) {
  const ty_loops *l = ty_cpu_loops();
  const int64_t t = j->labels[i], n = j->n;
  char *o = j->o + i * n * j->size;
  if (t == j->ignore) { memset(o, 0, (size_t)(n * j->size)); return; }
  const double wl = count_of(j, t), up = gradient_of(j, i), each = -up * j->eps / (double)n;
  double left;
  const double lse = rounded_lse(j, i, &left);
  l->exp_sum[j->k](o, j->x + i * n * j->size, n, 1, lse);
  if (j->w && j->eps > 0) l->affine2[j->k](o, o, j->w, n, up * mass_of(j, wl) * left, each, 0);
  else l->affine[j->k](o, o, n, up * mass_of(j, wl) * left, each);
  put(o, j->k, t - 1, at(o, j->k, t - 1) - up * (1 - j->eps) * wl);
}

/* Places first .. first + count - 1: x has class q of place p at q * xs + p. */
static void tile_forward(const job *j, int64_t first, int64_t count, const char *x, int64_t xs) {
  const ty_loop_type k = j->k;
  double smooth[TILE] = {0}, top[TILE], more[TILE];          /* top, more: of the loops' type */
  ty_cpu_loops()->columns->log_sum[k](top, more, x, xs, j->n, count);
  for (int64_t q = 0; q < j->n && j->eps > 0; q++)
    for (int64_t p = 0; p < count; p++) smooth[p] += weight_of(j, q) * (at(top, k, p) - at(x, k, q * xs + p) + at(more, k, p));
  for (int64_t p = 0; p < count; p++) {
    const int64_t t = j->labels[first + p];
    /* the difference first, so that only a small number is rounded */
    const double own = t == j->ignore ? 0 : at(top, k, p) - at(x, k, (t - 1) * xs + p) + at(more, k, p);
    put(j->losses, k, first + p, t == j->ignore ? 0 : (1 - j->eps) * count_of(j, t) * own + j->eps / (double)j->n * smooth[p]);
    j->lse_out[first + p] = at(top, k, p) + at(more, k, p);
  }
}

static void tile_backward(const job *j, int64_t first, int64_t count, const char *x, int64_t xs, char *o, int64_t os) {
  const ty_loop_type k = j->k;
  double a[TILE], b[TILE], lse[TILE];      /* of the loops' type */
  for (int64_t p = 0; p < count; p++) {
    const int64_t t = j->labels[first + p];
    const double up = t == j->ignore ? 0 : gradient_of(j, first + p);
    double left;
    put(lse, k, p, rounded_lse(j, first + p, &left));
    put(a, k, p, up * mass_of(j, count_of(j, t)) * left);
    put(b, k, p, -up * j->eps / (double)j->n);
  }
  ty_cpu_loops()->columns->entropy_slopes[k](o, os, x, xs, j->n, count, lse, a, b, j->w);
  for (int64_t p = 0; p < count; p++) {
    const int64_t t = j->labels[first + p], q = (t - 1) * os + p;
    if (t == j->ignore) for (int64_t class = 0; class < j->n; class++) put(o, k, class * os + p, 0);       /* also NaN, from infinity */
    else put(o, k, q, at(o, k, q) - gradient_of(j, first + p) * (1 - j->eps) * count_of(j, t));
  }
}

/* memory: room for two tiles, for transposed rows */
static void tile(const job *j, int64_t first, int64_t count, bool back, char *memory) {
  const ty_loops *l = ty_cpu_loops();
  if (j->inner > 1) {
    const int64_t at = (first / j->inner * j->n * j->inner + first % j->inner) * j->size;
    if (back) tile_backward(j, first, count, j->x + at, j->inner, j->o + at, j->inner);
    else tile_forward(j, first, count, j->x + at, j->inner);
    return;
  }
  char *o = memory + j->n * TILE * j->size;
  TY_OF_SIZE(l->transpose, j->size)(memory, TILE, j->x + first * j->n * j->size, j->n, count, j->n);
  if (!back) { tile_forward(j, first, count, memory, TILE); return; }
  tile_backward(j, first, count, memory, TILE, o, TILE);
  TY_OF_SIZE(l->transpose, j->size)(j->o + first * j->n * j->size, j->n, o, TILE, j->n, count);
}

static ty_status rows_or_tiles(ty_call *c, const job *j, bool back) {
  const int threads = ty_threads_for(j->m * j->n * 2);
  if (j->m == 0) return TY_OK;
  if (j->inner == 1 && (j->n > SHORT || j->n == 0 || j->m < 16)) {
    #pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < j->m; i++) {
      if (back) row_backward(j, i);
      else row_forward(j, i);
    }
    return TY_OK;
  }
  const int64_t line = j->inner > 1 ? j->inner : j->m, per = (line + TILE - 1) / TILE, tiles = line ? j->m / line * per : 0;
  const size_t each = j->inner > 1 ? 0 : (size_t)(2 * j->n * TILE * j->size);
  char *memory = ty_scratch(each * (size_t)threads + 1);
  if (!memory) return ty_no_memory(c->ctx, c->op->shown);
  #pragma omp parallel num_threads(threads)
  {
    char *own = memory + each * (size_t)omp_get_thread_num();
    #pragma omp for schedule(static)
    for (int64_t i = 0; i < tiles; i++)
      tile(j, i / per * line + i % per * TILE, TY_MIN(TILE, line - i % per * TILE), back, own);
  }
  ty_scratch_free(memory);
  return TY_OK;
}

static ty_status run(ty_call *c) {
  const int id = c->op->id;
  const bool mean = id == TY_OP_cross_entropy_mean || id == TY_OP_cross_entropy_mean_backward,
    back = id == TY_OP_cross_entropy_backward || id == TY_OP_cross_entropy_mean_backward;
  const ty_loss_options how = ty_loss_options_of(c);
  ty_tensor *x = NULL, *w = NULL, *y = NULL, *g = NULL, *from = c->in[back ? 1 : 0].t, *weight = c->in[back ? 4 + mean : 2].t;
  const bool last = from->ndim == 4 && (back ? !ty_is_contiguous(c->out[0]) : !ty_is_contiguous(from) && ty_is_channels_last(from));
  ty_status s = last ? ty_channels_last(c->ctx, from, &x) : ty_contiguous(c->ctx, from, &x);
  if (s == TY_OK) s = ty_contiguous(c->ctx, c->in[back ? 2 : 1].t, &y);
  if (s == TY_OK && weight) s = ty_contiguous(c->ctx, weight, &w);
  if (s == TY_OK && back) s = ty_contiguous(c->ctx, c->in[0].t, &g);
  if (s == TY_OK) {
    job j = {.k = ty_loop_type_of(from->dtype), .m = ty_numel(y), .n = from->shape[1], .inner = 1, .ignore = how.ignore_index,
             .eps = how.label_smoothing, .mean = mean, .x = ty_data(x), .w = w ? ty_data(w) : NULL, .labels = ty_data(y)};
    j.size = ty_loop_size[j.k];
    for (int i = 2; i < from->ndim && !last; i++) j.inner *= from->shape[i];
    j.wsum = (double)j.n;
    if (w) { j.wsum = 0; for (int64_t q = 0; q < j.n; q++) j.wsum += weight_of(&j, q); }
    s = check_labels(c, &j);
    if (back) {
      j.lse = ty_data(c->in[3].t);
      j.g = ty_data(g);
      j.gdtype = g->dtype;
      if (mean) j.whole = at(ty_data(c->in[4].t), j.k, 0);
      j.o = ty_data(c->out[0]);
    } else {
      j.lse_out = ty_data(c->out[1]);
      j.losses = mean ? ty_scratch((size_t)(j.m * j.size + 8)) : ty_data(c->out[0]);
      if (!j.losses) s = ty_no_memory(c->ctx, c->op->shown);
    }
    if (s == TY_OK) s = rows_or_tiles(c, &j, back);
    if (s == TY_OK && mean && !back) {
      double sum = 0, whole = 0;
      for (int64_t i = 0; i < j.m; i++) { sum += at(j.losses, j.k, i); whole += count_of(&j, j.labels[i]); }
      put(ty_data(c->out[2]), j.k, 0, whole);
      put(ty_data(c->out[0]), j.k, 0, sum / at(ty_data(c->out[2]), j.k, 0));
    }
    if (!back && mean) ty_scratch_free(j.losses);
  }
  ty_release(x);
  ty_release(y);
  ty_release(w);
  ty_release(g);
  return s;
}

ty_status ty_cpu_loss(ty_call *c) { return ty_widened(c, run); }
