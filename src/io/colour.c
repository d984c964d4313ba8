/* Changes of pictures' colours, on floats of 0..1, in place. The arithmetic is torchvision's on float tensors; what torchvision does on
 * bytes only (posterize, equalize) is done on 255 times the value. */
#include <math.h>
#include <string.h>
#include "data.h"

static float clamp01(float v) { return v > 0 ? v < 1 ? v : 1 : 0; }      /* NaN becomes 0: some results index tables */
static float grey(const float *v, int64_t n, int64_t i) { return 0.2989f * v[i] + 0.587f * v[n + i] + 0.114f * v[2 * n + i]; }

/* v[i] = by * v[i] + (1 - by) * other */
static float blend(float v, float other, float by) { return clamp01(by * v + (1 - by) * other); }

static void hue(float *v, int64_t n, float by) {
  for (int64_t i = 0; i < n; i++) {
    const float r = v[i], g = v[n + i], b = v[2 * n + i];
    const float most = fmaxf(r, fmaxf(g, b)), least = fminf(r, fminf(g, b)), range = most - least;
    const float s = range / (range == 0 ? 1 : most), d = range == 0 ? 1 : range;
    const float rc = (most - r) / d, gc = (most - g) / d, bc = (most - b) / d;
    float h = most == r ? bc - gc : most == g ? 2 + rc - bc : 4 + gc - rc;
    h = fmodf(h / 6 + 1, 1) + by;
    h -= floorf(h);
    const float six = h * 6, whole = floorf(six), f = six - whole;
    const float p = clamp01(most * (1 - s)), q = clamp01(most * (1 - s * f)), t = clamp01(most * (1 - s * (1 - f)));
    const float out[6][3] = {{most, t, p}, {q, most, p}, {p, most, t}, {p, q, most}, {t, p, most}, {most, p, q}};
    const int k = whole >= 0 && whole < 6 ? (int)whole : 0;      /* NaN */
    for (int c = 0; c < 3; c++) v[c * n + i] = out[k][c];
  }
}

static void equalize(float *v, int64_t n) {              /* one plane */
  int64_t count[256] = {0}, seen = 0, last = 0;
  float to[256];
  for (int64_t i = 0; i < n; i++) count[(int)(clamp01(v[i]) * 255 + 0.5f)]++;
  for (int k = 0; k < 256; k++) if (count[k]) last = count[k];
  const int64_t step = (n - last) / 255;
  if (!step) return;
  for (int k = 0; k < 256; k++) {
    to[k] = (float)TY_MIN(255, (seen + step / 2) / step) / 255;
    seen += count[k];
  }
  for (int64_t i = 0; i < n; i++) v[i] = to[(int)(clamp01(v[i]) * 255 + 0.5f)];
}

static ty_status sharpen(ty_ctx *ctx, ty_picture *p, float by, ty_canvas *s) {
  if (p->h < 3 || p->w < 3) return TY_OK;
  const float *from = p->p;
  float *to = ty_canvas_floats(ctx, s, p->c * p->sc);
  if (!to) return TY_OOM;
  memcpy(to, from, sizeof *to * (size_t)(p->c * p->sc));
  for (int c = 0; c < p->c; c++)
    for (int y = 1; y < p->h - 1; y++)
      for (int x = 1; x < p->w - 1; x++) {
        const float *q = from + c * p->sc + y * p->sh + x;
        float sum = 4 * q[0];
        for (int k = 0; k < 9; k++) sum += q[(k / 3 - 1) * p->sh + k % 3 - 1];
        to[c * p->sc + y * p->sh + x] = blend(q[0], sum / 13, by);
      }
  p->p = to;
  return TY_OK;
}

ty_status ty_recolour(ty_ctx *ctx, ty_picture *p, ty_colour what, float by, ty_canvas *s) {
  TY_TRY(ty_picture_own(ctx, p, s));
  float *v = (float *)p->p;                              /* own now: may be changed */
  const int64_t n = p->sc, all = p->c * n;
  const bool rgb = p->c == 3;
  switch (what) {
    case TY_BRIGHTNESS:
      for (int64_t i = 0; i < all; i++) v[i] = clamp01(by * v[i]);
      break;
    case TY_CONTRAST: {
      double sum = 0;
      for (int64_t i = 0; i < n; i++) sum += rgb ? grey(v, n, i) : v[i];
      for (int64_t i = 0; i < all; i++) v[i] = blend(v[i], (float)(sum / (double)n), by);
      break;
    }
    case TY_SATURATION:
    case TY_GRAYSCALE:
      for (int64_t i = 0; rgb && i < n; i++) {
        const float g = grey(v, n, i);
        for (int c = 0; c < 3; c++) v[c * n + i] = what == TY_GRAYSCALE ? g : blend(v[c * n + i], g, by);
      }
      if (what == TY_GRAYSCALE && by == 1) p->c = 1;     /* one of three equal planes */
      break;
    case TY_HUE:
      if (rgb && by != 0) hue(v, n, by);
      break;
    case TY_SHARPNESS: return sharpen(ctx, p, by, s);
    case TY_POSTERIZE: {                                 /* by: bits that stay */
      const int mask = 0xFF << (8 - (int)by) & 0xFF;
      for (int64_t i = 0; i < all; i++) v[i] = (float)((int)(clamp01(v[i]) * 255 + 0.5f) & mask) / 255;
      break;
    }
    case TY_SOLARIZE:
      for (int64_t i = 0; i < all; i++) v[i] = v[i] >= by ? 1 - v[i] : v[i];
      break;
    case TY_INVERT:
      for (int64_t i = 0; i < all; i++) v[i] = 1 - v[i];
      break;
    case TY_AUTOCONTRAST:
      for (int c = 0; c < p->c; c++) {
        float lo = v[c * n], hi = lo;
        for (int64_t i = 0; i < n; i++) { lo = fminf(lo, v[c * n + i]); hi = fmaxf(hi, v[c * n + i]); }
        if (!(hi > lo)) continue;
        for (int64_t i = 0; i < n; i++) v[c * n + i] = clamp01((v[c * n + i] - lo) * (1 / (hi - lo)));
      }
      break;
    case TY_EQUALIZE:
      for (int c = 0; c < p->c; c++) equalize(v + c * n, n);
      break;
  }
  return TY_OK;
}
