/* Pictures' geometry: crops, resizing, affine maps. The arithmetic is that of torchvision on float tensors.
 *
 * Idea: a crop within the picture only moves the window (ty_picture's pointer and sizes); whatever needs new pixels
 * makes them in canvas memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "data.h"

static int reflected(int i, int n) {                     /* ... 2 1 0 1 2 ... n-2 n-1 n-2 ... */
  if (n == 1) return 0;
  const int period = 2 * (n - 1);
  i = (i % period + period) % period;
  return i < n ? i : period - i;
}

ty_status ty_crop(ty_ctx *ctx, ty_picture *p, int y, int x, int h, int w, ty_border border, const ty_fill *fill, ty_canvas *s) {
  if (y >= 0 && x >= 0 && y + h <= p->h && x + w <= p->w) {
    const int64_t by = y * p->sh + x * p->sw;
    p->p = p->bytes ? (const void *)((const uint8_t *)p->p + by) : (const void *)((const float *)p->p + by);
    p->own = p->own && h == p->h && w == p->w;
    p->h = h;
    p->w = w;
    return TY_OK;
  }
  TY_TRY(ty_picture_own(ctx, p, s));
  float *to = ty_canvas_floats(ctx, s, (int64_t)p->c * h * w);
  if (!to) return TY_OOM;
  const float *from = p->p;
  for (int c = 0; c < p->c; c++)
    for (int i = 0; i < h; i++) {
      float *row = to + ((int64_t)c * h + i) * w;
      const float outside = border == TY_BORDER_FILL ? ty_fill_of(fill, c) : 0;
      int sy = y + i;
      if (border == TY_BORDER_FILL && (sy < 0 || sy >= p->h)) { for (int j = 0; j < w; j++) row[j] = outside; continue; }
      sy = border == TY_BORDER_REFLECT ? reflected(sy, p->h) : TY_MAX(0, TY_MIN(p->h - 1, sy));
      const float *src = from + c * p->sc + sy * p->sh;
      for (int j = 0; j < w; j++) {
        const int sx = x + j;
        row[j] = sx >= 0 && sx < p->w ? src[sx] : border == TY_BORDER_FILL ? outside
          : border == TY_BORDER_REFLECT ? src[reflected(sx, p->w)] : src[TY_MAX(0, TY_MIN(p->w - 1, sx))];
      }
    }
  *p = (ty_picture){.p = to, .own = true, .c = p->c, .h = h, .w = w, .sc = (int64_t)h * w, .sh = w, .sw = 1};
  return TY_OK;
}

/* ---- blurring: rows into a buffer, columns out of it ---- */

static void gaussian(float *w, int n, double sigma) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += exp(-0.5 * pow((i - n / 2) / sigma, 2));
  for (int i = 0; i < n; i++) w[i] = (float)(exp(-0.5 * pow((i - n / 2) / sigma, 2)) / sum);
}

ty_status ty_blur(ty_ctx *ctx, ty_picture *p, int wide, int tall, double sigma_x, double sigma_y, ty_canvas *s) {
  if (wide / 2 >= p->w || tall / 2 >= p->h)
    return ty_error(ctx, "GaussianBlur: a kernel of %dx%d is too large for a picture of %dx%d", tall, wide, p->h, p->w);
  TY_TRY(ty_picture_own(ctx, p, s));
  const int64_t n = (int64_t)p->c * p->h * p->w;
  float *to = ty_canvas_floats(ctx, s, n), *w = malloc(sizeof(float) * (size_t)(wide + tall + p->w));
  if (!to || !w) return free(w), ty_no_memory(ctx, NULL);
  float *const v = w + wide, *const sums = v + tall, *const own = (float *)p->p;
  gaussian(w, wide, sigma_x);
  gaussian(v, tall, sigma_y);
  for (int64_t row = 0; row < (int64_t)p->c * p->h; row++) {
    float *const x = own + row * p->w;
    for (int j = 0; j < p->w; j++) {
      float sum = 0;
      for (int k = 0; k < wide; k++) sum += w[k] * x[reflected(j + k - wide / 2, p->w)];
      sums[j] = sum;
    }
    memcpy(x, sums, sizeof(float) * (size_t)p->w);
  }
  for (int c = 0; c < p->c; c++)
    for (int i = 0; i < p->h; i++) {
      float *const row = to + ((int64_t)c * p->h + i) * p->w;
      memset(row, 0, sizeof(float) * (size_t)p->w);
      for (int k = 0; k < tall; k++) {
        const float *const x = own + ((int64_t)c * p->h + reflected(i + k - tall / 2, p->h)) * p->w;
        for (int j = 0; j < p->w; j++) row[j] += v[k] * x[j];
      }
    }
  free(w);
  *p = (ty_picture){.p = to, .own = true, .c = p->c, .h = p->h, .w = p->w, .sc = (int64_t)p->h * p->w, .sh = p->w, .sw = 1};
  return TY_OK;
}

/* ---- resizing: a weighted sum of neighbours, along each axis in turn ---- */

typedef struct { int first, n; } span;
typedef struct { span *at; float *weight; int most; } taps;  /* output i sums inputs at[i].first ... by weight[i * most ...] */

/* Keys' kernel; a: its slope at 1 */
static double cubic(double x, double a) {
  x = fabs(x);
  return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static bool make_taps(int in, int out, ty_resampling how, bool antialias, taps *t) {
  const double scale = (double)in / out, wide = antialias && scale > 1 ? scale : 1, reach = how == TY_BICUBIC ? 2 * wide : wide;
  t->most = how == TY_NEAREST ? 1 : (int)ceil(reach) * 2 + 1;
  t->at = malloc(sizeof(span) * (size_t)out);
  t->weight = malloc(sizeof(float) * (size_t)out * (size_t)t->most);
  if (!t->at || !t->weight) return false;
  for (int i = 0; i < out; i++) {
    float *w = t->weight + (size_t)i * t->most;
    if (how == TY_NEAREST) {
      t->at[i] = (span){TY_MIN((int)floorf((float)i * ((float)in / (float)out)), in - 1), 1};
      w[0] = 1;
      continue;
    }
    const double centre = scale * (i + 0.5);
    int lo, n;
    double sum = 0;
    if (antialias) {
      lo = TY_MAX(0, (int)(centre - reach + 0.5));
      n = TY_MIN(in, (int)(centre + reach + 0.5)) - lo;
    } else if (how == TY_BICUBIC) {                      /* four neighbours, the border repeated */
      const int first = (int)floor(centre - 0.5) - 1;
      lo = TY_MAX(0, TY_MIN(first, in - 1));
      n = TY_MAX(1, TY_MIN(first + 4, in) - lo);
      memset(w, 0, sizeof *w * (size_t)n);
      for (int k = first; k < first + 4; k++) w[TY_MAX(0, TY_MIN(k, in - 1)) - lo] += (float)cubic(k - centre + 0.5, -0.75);
      t->at[i] = (span){lo, n};
      continue;
    } else {                                             /* two neighbours, the border repeated */
      lo = TY_MAX(0, (int)floor(centre - 0.5));
      lo = TY_MIN(lo, in - 1);
      n = lo + 1 < in ? 2 : 1;
    }
    n = TY_MAX(1, TY_MIN(n, t->most));
    for (int k = 0; k < n; k++) {
      const double far = antialias ? fabs((k + lo - centre + 0.5) / wide) : fabs(k + lo - fmax(centre - 0.5, 0));
      w[k] = (float)(how == TY_BICUBIC ? cubic(far, -0.5) : fmax(0, 1 - far));
      sum += w[k];
    }
    for (int k = 0; k < n; k++) w[k] = sum != 0 ? (float)(w[k] / sum) : k == 0;
    t->at[i] = (span){lo, n};
  }
  return true;
}

static void free_taps(taps *t) { free(t->at); free(t->weight); }

ty_status ty_resize(ty_ctx *ctx, ty_picture *p, int h, int w, ty_resampling how, bool antialias, ty_canvas *s) {
  if (h == p->h && w == p->w) return TY_OK;
  const bool limited = p->bytes && how == TY_BICUBIC;
  TY_TRY(ty_picture_own(ctx, p, s));
  taps across = {0}, down = {0};
  const bool got = make_taps(p->w, w, how, antialias, &across) && make_taps(p->h, h, how, antialias, &down);
  float *mid = got ? ty_canvas_floats(ctx, s, (int64_t)p->c * p->h * w) : NULL;
  float *to = mid ? ty_canvas_floats(ctx, s, (int64_t)p->c * h * w) : NULL;
  if (to) {
    const float *from = p->p;
    for (int64_t r = 0; r < (int64_t)p->c * p->h; r++)
      for (int j = 0; j < w; j++) {
        const span a = across.at[j];
        const float *u = across.weight + (size_t)j * across.most, *src = from + r * p->w + a.first;
        float v = 0;
        for (int k = 0; k < a.n; k++) v += u[k] * src[k];
        mid[r * w + j] = v;
      }
    for (int c = 0; c < p->c; c++)
      for (int i = 0; i < h; i++) {
        const span a = down.at[i];
        const float *u = down.weight + (size_t)i * down.most;
        float *row = to + ((int64_t)c * h + i) * w;
        memset(row, 0, sizeof *row * (size_t)w);
        for (int k = 0; k < a.n; k++) {
          const float *src = mid + ((int64_t)c * p->h + a.first + k) * w;
          for (int j = 0; j < w; j++) row[j] += u[k] * src[j];
        }
        for (int j = 0; limited && j < w; j++) row[j] = TY_MAX(0, TY_MIN(1, row[j]));
      }
    *p = (ty_picture){.p = to, .own = true, .c = p->c, .h = h, .w = w, .sc = (int64_t)h * w, .sh = w, .sw = 1};
  }
  free_taps(&across);
  free_taps(&down);
  return to ? TY_OK : (ty_error(ctx, "out of memory while a picture was resized"), TY_OOM);
}

/* ---- affine and projective maps ---- */

void ty_inverse_affine(ty_affine t, double m[8]) {
  const double deg = acos(-1) / 180, rot = t.degrees * deg, sx = t.shear_x * deg, sy = t.shear_y * deg;
  const double a = cos(rot - sy) / cos(sy), b = -cos(rot - sy) * tan(sx) / cos(sy) - sin(rot);
  const double c = sin(rot - sy) / cos(sy), d = -sin(rot - sy) * tan(sx) / cos(sy) + cos(rot);
  m[0] = d / t.scale; m[1] = -b / t.scale; m[3] = -c / t.scale; m[4] = a / t.scale;
  m[2] = -m[0] * t.tx - m[1] * t.ty;
  m[5] = -m[3] * t.tx - m[4] * t.ty;
  m[6] = m[7] = 0;
}

bool ty_inverse_perspective(const double from[8], const double to[8], double m[8]) {
  double a[8][9];                          /* each point gives two equations for the eight numbers */
  for (int k = 0; k < 4; k++) {
    const double x = to[2 * k], y = to[2 * k + 1], u = from[2 * k], v = from[2 * k + 1];
    const double rows[2][9] = {{x, y, 1, 0, 0, 0, -u * x, -u * y, u}, {0, 0, 0, x, y, 1, -v * x, -v * y, v}};
    memcpy(a[2 * k], rows, sizeof rows);
  }
  for (int i = 0; i < 8; i++) {
    int best = i;
    for (int k = i + 1; k < 8; k++) if (fabs(a[k][i]) > fabs(a[best][i])) best = k;
    if (!(fabs(a[best][i]) > 1e-12)) return false;
    for (int j = 0; j < 9; j++) { const double t = a[i][j]; a[i][j] = a[best][j]; a[best][j] = t; }
    for (int k = 0; k < 8; k++) {
      const double f = a[k][i] / a[i][i];
      for (int j = i; k != i && j < 9; j++) a[k][j] -= f * a[i][j];
    }
  }
  for (int i = 0; i < 8; i++) m[i] = a[i][8] / a[i][i];
  return true;
}

ty_status ty_warp(ty_ctx *ctx, ty_picture *p, const double m[8], double cx, double cy, int tall, int wide, const ty_sampler *how,
  ty_canvas *s) {
  TY_TRY(ty_picture_own(ctx, p, s));
  const int h = p->h, w = p->w;
  const int64_t plane = (int64_t)tall * wide;
  const double left = cx - (w - wide) / 2.0, top = cy - (h - tall) / 2.0;          /* (cx, cy) in the result */
  float *to = ty_canvas_floats(ctx, s, p->c * plane);
  if (!to) return TY_OOM;
  const float *from = p->p;
  for (int i = 0; i < tall; i++)
    for (int j = 0; j < wide; j++) {
      float *const at_pixel = to + (int64_t)i * wide + j;
      const double x = j - left, y = i - top, far = m[6] * x + m[7] * y + 1;
      const double u = (m[0] * x + m[1] * y + m[2]) / far + cx, v = (m[3] * x + m[4] * y + m[5]) / far + cy;
      const bool near = u > -1.5 && v > -1.5 && u < w + 0.5 && v < h + 0.5;    /* false for NaN too */
      if (how->nearest) {
        const int sx = near ? (int)rint(u) : -1, sy = near ? (int)rint(v) : -1;
        const bool in = sx >= 0 && sy >= 0 && sx < w && sy < h;
        for (int c = 0; c < p->c; c++) at_pixel[c * plane] = in ? from[c * p->sc + sy * p->sh + sx] : ty_fill_of(&how->fill, c);
        continue;
      }
      const int x0 = near ? (int)floor(u) : -9, y0 = near ? (int)floor(v) : -9;
      const double fx = near ? u - x0 : 0, fy = near ? v - y0 : 0;
      double weight[4], total = 0;
      int64_t at[4];
      for (int k = 0; k < 4; k++) {
        const int sx = x0 + (k & 1), sy = y0 + (k >> 1);
        const bool in = sx >= 0 && sy >= 0 && sx < w && sy < h;
        weight[k] = in ? ((k & 1) ? fx : 1 - fx) * ((k >> 1) ? fy : 1 - fy) : 0;
        at[k] = in ? sy * p->sh + sx : 0;
        total += weight[k];
      }
      for (int c = 0; c < p->c; c++) {
        double v4 = (1 - total) * ty_fill_of(&how->fill, c);
        for (int k = 0; k < 4; k++) v4 += weight[k] * from[c * p->sc + at[k]];
        at_pixel[c * plane] = (float)v4;
      }
    }
  *p = (ty_picture){.p = to, .own = true, .c = p->c, .h = tall, .w = wide, .sc = plane, .sh = wide, .sw = 1};
  return TY_OK;
}
