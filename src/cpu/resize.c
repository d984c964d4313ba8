/* Resizing of images: each result is a weighted sum of up to four neighbours along each of the last two dims.
 *
 * Idea: where an output index reads along a dim, and with what weights, is the same for every line, so it is worked out once
 * (taps); forward gathers and backward scatters by the same table. Coordinates are PyTorch's. */
#include <math.h>
#include <string.h>
#include "cpu.h"

enum { NEAREST, NEAREST_EXACT, BILINEAR, BICUBIC };
typedef struct { int64_t at[4]; double w[4]; } tap;

static int taps_of(int mode) { return mode == BICUBIC ? 4 : mode == BILINEAR ? 2 : 1; }

static double cubic(double t) {          /* Keys' kernel with a = -3/4 */
  t = fabs(t);
  return t <= 1 ? (1.25 * t - 2.25) * t * t + 1 : t < 2 ? ((-0.75 * t + 3.75) * t - 6) * t + 3 : 0;
}

/* factor: how many outputs an input becomes, 0: the sizes decide */
static void make_taps(tap *t, int64_t in, int64_t out, int mode, bool corners, double factor) {
  double scale = factor > 0 ? 1 / factor : (double)in / (double)out;
  if (corners && mode >= BILINEAR) scale = out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
  for (int64_t i = 0; i < out; i++) {
    double x = corners ? (double)i * scale : ((double)i + 0.5) * scale - 0.5;
    if (mode == NEAREST) x = out == in ? (double)i : out == 2 * in ? (double)(i / 2) : (double)floorf((float)i * (float)scale);   /* PyTorch's, in float32 */
    if (mode == NEAREST_EXACT) x = (double)floorf(((float)i + 0.5f) * (float)scale);
    if (mode == BILINEAR && x < 0) x = 0;
    int64_t base = (int64_t)floor(x);
    double f = x - (double)base;
    for (int j = 0; j < taps_of(mode); j++) {
      int64_t at = base + j - (mode == BICUBIC);
      t[i].at[j] = TY_MIN(TY_MAX(at, 0), in - 1);
      t[i].w[j] = mode == BICUBIC ? cubic(f - (j - 1)) : mode == BILINEAR ? (j ? f : 1 - f) : 1;
    }
  }
}

static ty_status run(ty_call *c) {
  bool back = c->op->id == TY_OP_resize_backward;
  ty_tensor *x = back ? c->out[0] : c->in[0].t, *y = back ? c->in[0].t : c->out[0];   /* x: the input's side, y: the result's */
  const ty_attr *a = c->at + back;
  int mode = (int)a[1].i, n = taps_of(mode), k = ty_k(ty_compute_dtype((ty_dtype)x->dtype));
  int64_t h = x->shape[2], w = x->shape[3], oh = y->shape[2], ow = y->shape[3], planes = x->shape[0] * x->shape[1];
  if (back && x->storage->nbytes) memset(ty_data(x), 0, x->storage->nbytes);
  if (ty_numel(y) == 0) return TY_OK;
  tap *rows = ty_scratch(sizeof(tap) * (size_t)(oh + ow)), *cols = rows + oh;
  if (!rows) return ty_fail(c, "out of memory"), TY_OOM;
  make_taps(rows, h, oh, mode, a[2].i, a[3].f);
  make_taps(cols, w, ow, mode, a[2].i, a[4].f);
  #pragma omp parallel for num_threads(ty_threads_for(ty_numel(y) * 8)) schedule(static)
  for (int64_t p = 0; p < planes; p++) {
    int64_t img = p / x->shape[1], ch = p % x->shape[1], xo = img * x->stride[0] + ch * x->stride[1], yo = img * y->stride[0] + ch * y->stride[1];
    for (int64_t i = 0; i < oh; i++)
      for (int64_t j = 0; j < ow; j++) {
        int64_t at_y = yo + i * y->stride[2] + j * y->stride[3];
        double sum = 0, g = back ? at(ty_data(y), k, at_y) : 0;
        for (int r = 0; r < n; r++) {
          double line = 0;
          for (int q = 0; q < n; q++) {
            int64_t at_x = xo + rows[i].at[r] * x->stride[2] + cols[j].at[q] * x->stride[3];
            if (back) put(ty_data(x), k, at_x, at(ty_data(x), k, at_x) + g * rows[i].w[r] * cols[j].w[q]);
            else line += at(ty_data(x), k, at_x) * cols[j].w[q];
          }
          sum += line * rows[i].w[r];
        }
        if (!back) put(ty_data(y), k, at_y, sum);
      }
  }
  ty_scratch_free(rows);
  return TY_OK;
}

ty_status ty_cpu_resize(ty_call *c) { return ty_numel(c->out[0]) ? ty_widened(c, run) : TY_OK; }
