/* The weight gradient of a depthwise convolution, in which each channel has its own filter. oneDNN's is slow except for filters 3 wide: for
 * widths of 4 to 31 it takes 2 to 16 times as long as this one, where the channels fill a vector.
 *
 * Idea: for a row of the result, the filter is a list of taps: where each tap reads, and for which pixels that is within the picture.
 * Invariant: sums are made in PARTS parts, which the shape alone decides, so that the bits don't depend on the number of threads. */
#include <omp.h>
#include <string.h>
#include "cpu.h"

#define PARTS 16
#define SIDE 4                   /* vectors of channels that a thread takes at a time */

static int64_t ceiling(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

/* The taps by which row r of the result's gradient g (N,C,OH,OW) reads x (N,C,H,W); returns their number. */
static int taps_of(const ty_convolution *v, int64_t r, ty_tap *tap) {
  const ty_windows *s = &v->windows;
  const int64_t *x = v->x->shape, *k = v->w->shape, c = x[1], ow = v->y->shape[3];
  int n = 0;
  for (int64_t a = 0; a < k[2]; a++) {
    const int64_t row = r * s->stride[0] + a * s->dilation[0] - s->padding[0];
    if (row < 0 || row >= x[2]) continue;
    for (int64_t b = 0; b < k[3]; b++) {
      const int64_t at = b * s->dilation[1] - s->padding[1], lo = TY_MAX(ceiling(-at, s->stride[1]), 0),
        hi = TY_MIN(ceiling(x[3] - at, s->stride[1]), ow);
      if (lo < hi) tap[n++] = (ty_tap){.at = (row * x[3] + at) * c, .index = a * k[3] + b, .lo = lo, .hi = hi};
    }
  }
  return n;
}

bool ty_depthwise_takes(const ty_convolution *v) {
  const int64_t c = v->x->shape[1];
  return v->which == TY_CONV_W && v->windows.groups == c && v->w->shape[0] == c && v->w->shape[3] != 3 &&
    c >= ty_cpu_loops()->depthwise->lanes;
}

bool ty_depthwise_slopes(const ty_convolution *v) {
  const int64_t *x = v->x->shape, *y = v->y->shape, *w = v->w->shape, c = x[1], taps = w[2] * w[3], rows = x[0] * y[2];
  const ty_depthwise_loops *loops = ty_cpu_loops()->depthwise;
  const int threads = ty_threads_for(ty_numel(v->y) * taps);
  const int64_t lanes = loops->lanes, vectors = (c + lanes - 1) / lanes, groups = (vectors + SIDE - 1) / SIDE, parts = TY_MIN(rows, PARTS),
    each = taps * lanes, last = c - lanes;
  ty_tap *tap = ty_scratch(sizeof *tap * (size_t)(threads * taps) + sizeof(float) * (size_t)(parts * vectors * each));
  if (!tap) return false;
  float *const sums = (float *)(tap + threads * taps), *const o = ty_data(v->w);      /* (parts, vectors, taps, lanes) */
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t u = 0; u < parts * groups; u++) {
    const int64_t part = u / groups, first = u % groups * SIDE, side = TY_MIN(SIDE, vectors - first);
    ty_tap *mine = tap + omp_get_thread_num() * taps;
    float *to = memset(sums + (part * vectors + first) * each, 0, sizeof(float) * (size_t)(side * each));
    for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; row++) {
      const float *picture = (float *)ty_data(v->x) + row / y[2] * x[2] * x[3] * c, *g = (float *)ty_data(v->y) + row * y[3] * c;
      const ty_depthwise d = {.n = y[3], .c = c, .step = v->windows.stride[1] * c, .x = picture, .g = g, .tap = mine,
                              .taps = taps_of(v, row % y[2], mine)};
      loops->slopes(&d, first, side, each, to);
    }
  }
  for (int64_t ch = 0; ch < c; ch++) {
    const int64_t vector = ch / lanes, lane = ch - TY_MIN(vector * lanes, last);
    for (int64_t t = 0; t < taps; t++) {
      double sum = 0;
      for (int64_t p = 0; p < parts; p++) sum += (double)sums[(p * vectors + vector) * each + t * lanes + lane];
      o[ch * taps + t] = (float)sum;
    }
  }
  ty_scratch_free(tap);
  return true;
}
