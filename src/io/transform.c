/* Transforms of pictures: a pipeline is a list of steps, each with numbers that were checked when it was made.
 *
 * Idea: steps that only change where pixels are (crop, flip) or what they stand for (normalize) touch no pixel; their work is done when
 * the picture is written into the batch. Invariant: random numbers are drawn in the order of the steps, whatever else a step does. */
#include <math.h>
#include <string.h>
#include "data.h"
#include "math.h"

/* ---- random numbers ---- */

static uint32_t next_word(ty_draws *d) {
  if (!d->left) {
    ty_philox(d->key, d->block++, d->word);
    d->left = 4;
  }
  return d->word[4 - d->left--];
}
/* in [lo, hi) */
static double draw(ty_draws *d, double lo, double hi) { return lo + (hi - lo) * (next_word(d) * 0x1p-32); }
/* from lo to hi, both included */
static int64_t draw_int(ty_draws *d, int64_t lo, int64_t hi) {
  const int64_t k = lo + (int64_t)(next_word(d) * 0x1p-32 * (double)(hi - lo + 1));
  return TY_MIN(k, hi);
}

/* ---- steps ---- */

#define SIDE_MOST (1 << 16)              /* of a picture between two steps */

enum { RESIZE, RESIZE_SHORT, CENTER_CROP, CROP, RANDOM_CROP, PAD, HFLIP, VFLIP, RESIZED_CROP, ROTATION, AFFINE, ROTATE,
  WARP, PERSPECTIVE, PROJECT, JITTER, COLOUR, RANDOM_COLOUR, NORMALIZE, ERASE, CUTOUT, AUGMENT, AUTO_AUGMENT, DTYPE, BLUR, MAYBE, KINDS };

/* What each argument may be: s a size, i a whole number, j one that may be negative, n 1 to 4, p a probability, u above 0, f any finite
 * number, b a boolean, m a ty_border, r a ty_resampling, k a ty_colour, d a dtype. "nffff" is a ty_fill: how many, the values. */
static const struct { const char *name, *args; } kinds[KINDS] = {
  [RESIZE] = {"resize", "ssrb"},                 /* h, w, antialias */
  [RESIZE_SHORT] = {"resize_short", "sirb"},     /* the shorter side, the most of the longer (0: any), antialias */
  [CENTER_CROP] = {"center_crop", "ss"},
  [CROP] = {"crop", "jjss"},                     /* y, x, h, w */
  [RANDOM_CROP] = {"random_crop", "ssiiiinffffmb"},  /* h, w, padding left, right, top, bottom, fill, border, more if needed */
  [PAD] = {"pad", "iiiinffffm"},                 /* left, right, top, bottom, fill, border */
  [HFLIP] = {"hflip", "p"},
  [VFLIP] = {"vflip", "p"},
  [RESIZED_CROP] = {"resized_crop", "ssuuuurb"}, /* h, w, share of the area, ratio w/h, antialias */
  [ROTATION] = {"rotation", "ffbnffffbffb"},     /* degrees, sampler, centre, expand */
  [AFFINE] = {"affine", "ffffuuffffbnffffbff"},    /* degrees, shares to move by, scale, shear x, shear y, sampler, centre */
  [ROTATE] = {"rotate", "fbnffffbffb"},            /* a given angle */
  [WARP] = {"warp", "fffuffbnffffbff"},              /* degrees, tx, ty, scale, shear x, shear y, sampler, centre */
  [PERSPECTIVE] = {"perspective", "ppbnffff"},   /* distortion, probability, sampler */
  [PROJECT] = {"project", "ffffffffbnffff"},     /* a given map, as ty_warp's; sampler */
  [JITTER] = {"jitter", "ffffffff"},             /* brightness, contrast, saturation, hue */
  [COLOUR] = {"colour", "kf"},                   /* a given ty_colour */
  [RANDOM_COLOUR] = {"random_colour", "kfp"},
  [NORMALIZE] = {"normalize", "nffffffff"},      /* how many planes, means, standard deviations */
  [ERASE] = {"erase", "puuuunffffb"},            /* probability, share of the area, ratio h/w, value, random values */
  [CUTOUT] = {"cutout", "s"},                    /* the side of a square */
  [AUGMENT] = {"augment", "iibbnffff"},          /* how many, magnitude 0..30, wide, sampler */
  [AUTO_AUGMENT] = {"auto_augment", "ibnffff"},  /* a policy, sampler */
  [DTYPE] = {"dtype", "d"},
  [BLUR] = {"blur", "iiuuu"},                    /* kernel's width and height, least and most sigma along x, sigma along y over it */
  [MAYBE] = {"maybe", "pi"},                     /* probability p, n: the next n steps are done with probability p, else skipped */
};

ty_status ty_transform_make(ty_ctx *ctx, const char *name, const double *v, int n, ty_transform *out) {
  int k = 0;
  while (k < KINDS && strcmp(kinds[k].name, name)) k++;
  if (k == KINDS) return ty_error(ctx, "transforms: there is no step '%.40s'", name);
  const int want = (int)strlen(kinds[k].args);
  if (n != want) return ty_error(ctx, "transforms: %s takes %d numbers, got %d", name, want, n);
  *out = (ty_transform){.kind = k};
  for (int i = 0; i < n; i++) {
    const double x = v[i];
    const bool whole = x == floor(x);
    const char *must = NULL;
    switch (kinds[k].args[i]) {
      case 's': if (!(whole && x >= 1 && x <= 1 << 15)) must = "a size from 1 to 32768"; break;
      case 'i': if (!(whole && x >= 0 && x <= 1 << 15)) must = "a whole number from 0 to 32768"; break;
      case 'j': if (!(whole && x >= -(1 << 15) && x <= 1 << 15)) must = "a whole number from -32768 to 32768"; break;
      case 'n': if (!(whole && x >= 1 && x <= 4)) must = "1 to 4"; break;
      case 'p': if (!(x >= 0 && x <= 1)) must = "a probability from 0 to 1"; break;
      case 'u': if (!(x > 0 && x <= 1e6)) must = "a number above 0"; break;
      case 'f': if (!(x >= -1e9 && x <= 1e9)) must = "a finite number"; break;
      case 'b': if (x != 0 && x != 1) must = "a boolean"; break;
      case 'm': if (!(whole && x >= 0 && x < TY_NBORDER)) must = "a border mode"; break;
      case 'r': if (!(whole && x >= 0 && x < TY_NRESAMPLING)) must = "a way to resample"; break;
      case 'k': if (!(whole && x >= 0 && x <= TY_GRAYSCALE)) must = "a change of colour"; break;
      case 'd': if (x != TY_F32 && x != TY_F16 && x != TY_BF16 && x != TY_F64) must = "a floating dtype"; break;
    }
    if (must) return ty_error(ctx, "transforms: %s's argument %d must be %s, got %.14g", name, i + 1, must, x);
    out->v[i] = x;
  }
  for (int c = 0; k == NORMALIZE && c < v[0]; c++)
    if (!((float)v[5 + c] > 0)) return ty_error(ctx, "transforms: normalize's std must be above 0, got %g", v[5 + c]);
  if (k == RESIZE_SHORT && v[1] != 0 && v[1] <= v[0])
    return ty_error(ctx, "transforms: max_size must be above size, %g, got %g", v[0], v[1]);
  if ((k == COLOUR || k == RANDOM_COLOUR) && v[0] == TY_POSTERIZE && !(v[1] >= 0 && v[1] <= 8))
    return ty_error(ctx, "transforms: posterize keeps 0 to 8 bits, got %g", v[1]);
  if (k == BLUR && ((int)v[0] % 2 == 0 || (int)v[1] % 2 == 0))
    return ty_error(ctx, "transforms: the sides of a blur's kernel must be odd, got %g and %g", v[0], v[1]);
  if (k == AUTO_AUGMENT && v[0] >= TY_NPOLICY) return ty_error(ctx, "transforms: there is no AutoAugment policy %g", v[0]);
  if (k == AUGMENT && v[1] > 30) return ty_error(ctx, "transforms: the magnitude must be 0 to 30, got %g", v[1]);
  return TY_OK;
}

/* Scales to the shorter side `size`, or, if the longer one would be above most (0: any), to that; the other side is rounded as in
 * torchvision. */
static void short_side(int64_t *h, int64_t *w, int64_t size, int64_t most) {
  int64_t *const less = *w <= *h ? w : h, *const more = less == w ? h : w;
  *more = size * *more / *less;
  *less = size;
  if (!most || *more <= most) return;
  *less = most * *less / *more;
  *more = most;
}

/* From five of a transform's numbers, at v. */
static ty_status fill_of(ty_ctx *ctx, const double *v, const ty_picture *p, ty_fill *out) {
  if (v[0] != 1 && v[0] != p->c) return ty_error(ctx, "transforms: a picture of %d channels with %d values to fill with", p->c, (int)v[0]);
  out->n = (int)v[0];
  for (int c = 0; c < 4; c++) out->v[c] = (float)v[1 + c];
  return TY_OK;
}
/* From six: nearest, fill. */
static ty_status sampler_of(ty_ctx *ctx, const double *v, const ty_picture *p, ty_sampler *out) {
  out->nearest = v[0] != 0;
  return fill_of(ctx, v + 1, p, &out->fill);
}

static ty_status flip(ty_picture *p, bool up) {
  const int64_t by = up ? (p->h - 1) * p->sh : (p->w - 1) * p->sw;
  p->p = p->bytes ? (const void *)((const uint8_t *)p->p + by) : (const void *)((const float *)p->p + by);
  if (up) p->sh = -p->sh; else p->sw = -p->sw;
  p->own = false;
  return TY_OK;
}

static const ty_fill black = {.n = 1};
static ty_status centre(ty_ctx *ctx, ty_picture *p, int h, int w, ty_canvas *s) {
  const int y = p->h < h ? -((h - p->h) / 2) : (int)rint((p->h - h) / 2.0), x = p->w < w ? -((w - p->w) / 2) : (int)rint((p->w - w) / 2.0);
  return ty_crop(ctx, p, y, x, h, w, TY_BORDER_FILL, &black, s);
}

static ty_status resized_crop(ty_ctx *ctx, const double *v, ty_picture *p, ty_draws *d, ty_canvas *s) {
  const double area = (double)p->h * p->w;
  int y = -1, x = 0, h = 0, w = 0;
  for (int k = 0; k < 10 && y < 0; k++) {
    const double a = area * draw(d, v[2], v[3]), r = exp(draw(d, log(v[4]), log(v[5])));
    w = (int)rint(sqrt(a * r));
    h = (int)rint(sqrt(a / r));
    if (w < 1 || h < 1 || w > p->w || h > p->h) continue;
    y = (int)draw_int(d, 0, p->h - h);
    x = (int)draw_int(d, 0, p->w - w);
  }
  if (y < 0) {                                           /* none fitted: the middle, its ratio within the limits */
    const double r = (double)p->w / p->h;
    w = p->w;
    h = p->h;
    if (r < v[4]) h = (int)rint(w / v[4]);
    else if (r > v[5]) w = (int)rint(h * v[5]);
    h = TY_MAX(1, TY_MIN(h, p->h));
    w = TY_MAX(1, TY_MIN(w, p->w));
    y = (p->h - h) / 2;
    x = (p->w - w) / 2;
  }
  TY_TRY(ty_crop(ctx, p, y, x, h, w, TY_BORDER_FILL, &black, s));
  return ty_resize(ctx, p, (int)v[0], (int)v[1], (ty_resampling)v[6], v[7] != 0, s);
}

/* About the picture's middle. */
static ty_status warp(ty_ctx *ctx, ty_picture *p, ty_affine by, const ty_sampler *how, ty_canvas *s) {
  double m[8];
  ty_inverse_affine(by, m);
  return ty_warp(ctx, p, m, (p->w - 1) / 2.0, (p->h - 1) / 2.0, p->h, p->w, how, s);
}
/* By a transform's last nine numbers, at v: sampler, whether there is a centre, its x and y (0: the first pixel); expand: to the size that
 * holds all of the picture, as torchvision rounds it. */
static ty_status warp_by(ty_ctx *ctx, ty_picture *p, ty_affine by, const double *v, bool expand, ty_canvas *s) {
  const double cx = v[6] != 0 ? v[7] : (p->w - 1) / 2.0, cy = v[6] != 0 ? v[8] : (p->h - 1) / 2.0;
  int h = p->h, w = p->w;
  double m[8];
  ty_sampler how;
  TY_TRY(sampler_of(ctx, v, p, &how));
  ty_inverse_affine(by, m);
  if (expand) {
    double most[2] = {-INFINITY, -INFINITY}, least[2] = {INFINITY, INFINITY};
    /* the middle's own place, from where the picture is turned about another point */
    const double ox = (w - 1) / 2.0 - cx, oy = (h - 1) / 2.0 - cy, mx = m[0] * ox + m[1] * oy - ox, my = m[3] * ox + m[4] * oy - oy;
    for (int k = 0; k < 4; k++) {
      const double x = (k & 1 ? 0.5 : -0.5) * w, y = (k & 2 ? 0.5 : -0.5) * h;
      const double to[2] = {m[0] * x + m[1] * y + mx + 0.5 * w, m[3] * x + m[4] * y + my + 0.5 * h};
      for (int i = 0; i < 2; i++) {
        most[i] = fmax(most[i], to[i]);
        least[i] = fmin(least[i], to[i]);
      }
    }
    int side[2];
    for (int i = 0; i < 2; i++)
      side[i] = (int)(ceilf(truncf((float)most[i] / 1e-4f) * 1e-4f) - floorf(truncf((float)least[i] / 1e-4f) * 1e-4f));
    w = TY_MAX(1, side[0]);
    h = TY_MAX(1, side[1]);
    if (h > SIDE_MOST || w > SIDE_MOST) return ty_error(ctx, "transforms: a turned picture of %dx%d would become too large", p->h, p->w);
  }
  return ty_warp(ctx, p, m, cx, cy, h, w, &how, s);
}

static ty_affine turned(double degrees) { return (ty_affine){.degrees = degrees, .scale = 1}; }

/* Each corner moves inwards by up to v[0] of half the picture. */
static ty_status perspective(ty_ctx *ctx, const double *v, ty_picture *p, ty_draws *d, ty_canvas *s) {
  if (draw(d, 0, 1) >= v[1]) return TY_OK;
  const int x = (int)(v[0] * (p->w / 2)), y = (int)(v[0] * (p->h / 2)), right = p->w - 1, low = p->h - 1;
  const double from[8] = {0, 0, right, 0, right, low, 0, low};
  double to[8], m[8];
  for (int k = 0; k < 8; k++) {
    const double in = (double)draw_int(d, 0, k % 2 ? y : x);
    to[k] = from[k] > 0 ? from[k] - in : in;
  }
  if (!ty_inverse_perspective(from, to, m)) return TY_OK;       /* of a picture that is one pixel wide, say */
  ty_sampler how;
  TY_TRY(sampler_of(ctx, v + 2, p, &how));
  return ty_warp(ctx, p, m, -0.5, -0.5, p->h, p->w, &how, s);
}

static ty_status project(ty_ctx *ctx, const double *v, ty_picture *p, ty_canvas *s) {
  ty_sampler how;
  TY_TRY(sampler_of(ctx, v + 8, p, &how));
  return ty_warp(ctx, p, v, -0.5, -0.5, p->h, p->w, &how, s);
}

static ty_status jitter(ty_ctx *ctx, const double *v, ty_picture *p, ty_draws *d, ty_canvas *s) {
  static const ty_colour what[4] = {TY_BRIGHTNESS, TY_CONTRAST, TY_SATURATION, TY_HUE};
  int order[4] = {0, 1, 2, 3};
  double by[4];
  for (int i = 3; i > 0; i--) {
    const int j = (int)draw_int(d, 0, i), t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  for (int k = 0; k < 4; k++) by[k] = draw(d, v[2 * k], v[2 * k + 1]);
  for (int i = 0; i < 4; i++) {
    const int k = order[i], none = k < 3;                /* a factor of 1, or a shift of 0, changes nothing */
    if (v[2 * k] == none && v[2 * k + 1] == none) continue;
    TY_TRY(ty_recolour(ctx, p, what[k], (float)by[k], s));
  }
  return TY_OK;
}

/* A normal variate (Box and Muller). */
static double draw_normal(ty_draws *d) {
  const double u = 1 - draw(d, 0, 1);
  return sqrt(-2 * log(u)) * cos(2 * acos(-1) * draw(d, 0, 1));
}
/* p is our own. d: values are drawn from it; else NULL. */
static void blank(ty_picture *p, int y, int x, int h, int w, const ty_fill *value, ty_draws *d) {
  for (int c = 0; c < p->c; c++)
    for (int i = y; i < y + h; i++)
      for (int j = x; j < x + w; j++)
        ((float *)p->p)[c * p->sc + i * p->sh + j] = d ? (float)draw_normal(d) : ty_fill_of(value, c);
}

static ty_status erase(ty_ctx *ctx, const double *v, ty_picture *p, ty_draws *d, ty_canvas *s) {
  if (draw(d, 0, 1) >= v[0]) return TY_OK;
  const double area = (double)p->h * p->w;
  ty_fill value;
  TY_TRY(fill_of(ctx, v + 5, p, &value));
  for (int k = 0; k < 10; k++) {
    const double a = area * draw(d, v[1], v[2]), r = exp(draw(d, log(v[3]), log(v[4])));
    const int h = (int)rint(sqrt(a * r)), w = (int)rint(sqrt(a / r));
    if (h < 1 || w < 1 || h >= p->h || w >= p->w) continue;
    const int y = (int)draw_int(d, 0, p->h - h), x = (int)draw_int(d, 0, p->w - w);
    TY_TRY(ty_picture_own(ctx, p, s));
    blank(p, y, x, h, w, &value, v[10] != 0 ? d : NULL);
    break;
  }
  return TY_OK;
}

static ty_status cutout(ty_ctx *ctx, int size, ty_picture *p, ty_draws *d, ty_canvas *s) {
  const int y = (int)draw_int(d, 0, p->h - 1) - size / 2, x = (int)draw_int(d, 0, p->w - 1) - size / 2;
  TY_TRY(ty_picture_own(ctx, p, s));
  const int top = TY_MAX(y, 0), left = TY_MAX(x, 0);
  blank(p, top, left, TY_MIN(y + size, p->h) - top, TY_MIN(x + size, p->w) - left, &black, NULL);
  return TY_OK;
}

/* The changes of RandAugment and TrivialAugment, in torchvision's order, then what only AutoAugment has. Those from SHEAR_X to SHARPNESS
 * get a random sign. */
enum { AS_IT_IS, SHEAR_X, SHEAR_Y, TRANSLATE_X, TRANSLATE_Y, TURN, BRIGHTNESS, COLOR, CONTRAST, SHARPNESS, POSTERIZE, SOLARIZE,
  AUTOCONTRAST, EQUALIZE, AUGMENTATIONS, INVERT = AUGMENTATIONS };
#include "policies.h"

/* Applies one change of that list. m: the magnitude as a share of its range; wide: TrivialAugment's ranges. */
static ty_status augment(ty_ctx *ctx, ty_picture *p, int what, double m, bool wide, const ty_sampler *how, ty_draws *d, ty_canvas *s) {
  const double sign = what >= SHEAR_X && what <= SHARPNESS && draw(d, 0, 1) < 0.5 ? -1 : 1, deg = 180 / acos(-1);
  const double colour = 1 + sign * m * (wide ? 0.99 : 0.9), shear = atan(sign * m * (wide ? 0.99 : 0.3)) * deg;
  double a[8];
  switch (what) {
    case AS_IT_IS: return TY_OK;
    case SHEAR_X:
    case SHEAR_Y:                                        /* about the upper left corner */
      ty_inverse_affine((ty_affine){.scale = 1, .shear_x = what == SHEAR_X ? shear : 0, .shear_y = what == SHEAR_Y ? shear : 0}, a);
      return ty_warp(ctx, p, a, -0.5, -0.5, p->h, p->w, how, s);
    case TRANSLATE_X: return warp(ctx, p, (ty_affine){.scale = 1, .tx = (int)(sign * m * (wide ? 32 : 150.0 / 331 * p->w))}, how, s);
    case TRANSLATE_Y: return warp(ctx, p, (ty_affine){.scale = 1, .ty = (int)(sign * m * (wide ? 32 : 150.0 / 331 * p->h))}, how, s);
    case TURN: return warp(ctx, p, turned(-sign * m * (wide ? 135 : 30)), how, s);
    case BRIGHTNESS: return ty_recolour(ctx, p, TY_BRIGHTNESS, (float)colour, s);
    case COLOR: return ty_recolour(ctx, p, TY_SATURATION, (float)colour, s);
    case CONTRAST: return ty_recolour(ctx, p, TY_CONTRAST, (float)colour, s);
    case SHARPNESS: return ty_recolour(ctx, p, TY_SHARPNESS, (float)colour, s);
    case POSTERIZE: return ty_recolour(ctx, p, TY_POSTERIZE, (float)(8 - rint(m * (wide ? 6 : 4))), s);
    case SOLARIZE: return ty_recolour(ctx, p, TY_SOLARIZE, (float)(1 - m), s);
    case AUTOCONTRAST: return ty_recolour(ctx, p, TY_AUTOCONTRAST, 0, s);
    case EQUALIZE: return ty_recolour(ctx, p, TY_EQUALIZE, 0, s);
    default: return ty_recolour(ctx, p, TY_INVERT, 0, s);
  }
}

static ty_status augment_some(ty_ctx *ctx, const double *v, ty_picture *p, ty_draws *d, ty_canvas *s) {
  ty_sampler how;
  TY_TRY(sampler_of(ctx, v + 3, p, &how));
  for (int k = 0; k < (int)v[0]; k++) {
    const int what = (int)draw_int(d, 0, AUGMENTATIONS - 1);
    const double m = v[2] != 0 ? (double)draw_int(d, 0, 30) / 30 : v[1] / 30;
    TY_TRY(augment(ctx, p, what, m, v[2] != 0, &how, d, s));
  }
  return TY_OK;
}

static ty_status auto_augment(ty_ctx *ctx, const double *v, ty_picture *p, ty_draws *d, ty_canvas *s) {
  const ty_change *pair = policies[(int)v[0]][draw_int(d, 0, 24)];
  ty_sampler how;
  TY_TRY(sampler_of(ctx, v + 1, p, &how));
  for (int k = 0; k < 2; k++)
    if (draw(d, 0, 1) < pair[k].probability) TY_TRY(augment(ctx, p, pair[k].what, pair[k].magnitude / 9.0, false, &how, d, s));
  return TY_OK;
}

static ty_status resize_short(ty_ctx *ctx, const double *v, ty_picture *p, ty_canvas *s) {
  int64_t tall = p->h, wide = p->w;
  short_side(&tall, &wide, (int64_t)v[0], (int64_t)v[1]);
  if (tall > SIDE_MOST || wide > SIDE_MOST)
    return ty_error(ctx, "Resize: a picture of %dx%d would become too large, %lldx%lld", p->h, p->w, (long long)tall, (long long)wide);
  return ty_resize(ctx, p, (int)TY_MAX(1, tall), (int)TY_MAX(1, wide), (ty_resampling)v[2], v[3] != 0, s);
}

static ty_status random_crop(ty_ctx *ctx, const double *v, ty_picture *p, ty_draws *d, ty_canvas *s) {
  int left = (int)v[2], top = (int)v[4], h = p->h + top + (int)v[5], w = p->w + left + (int)v[3];
  ty_fill fill;
  TY_TRY(fill_of(ctx, v + 6, p, &fill));
  if (v[12] != 0 && h < v[0]) {            /* on both sides what is needed, as torchvision does */
    const int more = (int)v[0] - h;
    top += more;
    h += 2 * more;
  }
  if (v[12] != 0 && w < v[1]) {
    const int more = (int)v[1] - w;
    left += more;
    w += 2 * more;
  }
  if (h < v[0] || w < v[1])
    return ty_error(ctx, "RandomCrop: a picture of %dx%d, padding included, is smaller than the crop of %dx%d; padding= or "
      "pad_if_needed makes it larger", h, w, (int)v[0], (int)v[1]);
  const int y = (int)draw_int(d, 0, h - (int)v[0]) - top, x = (int)draw_int(d, 0, w - (int)v[1]) - left;
  return ty_crop(ctx, p, y, x, (int)v[0], (int)v[1], (ty_border)v[11], &fill, s);
}

static ty_status pad(ty_ctx *ctx, const double *v, ty_picture *p, ty_canvas *s) {
  if (p->h + v[2] + v[3] > SIDE_MOST || p->w + v[0] + v[1] > SIDE_MOST)
    return ty_error(ctx, "Pad: a picture of %dx%d would have a side of more than %d", p->h, p->w, SIDE_MOST);
  ty_fill fill;
  TY_TRY(fill_of(ctx, v + 4, p, &fill));
  return ty_crop(ctx, p, -(int)v[2], -(int)v[0], p->h + (int)v[2] + (int)v[3], p->w + (int)v[0] + (int)v[1], (ty_border)v[9], &fill, s);
}

static ty_status affine(ty_ctx *ctx, const double *v, ty_picture *p, ty_draws *d, ty_canvas *s) {
  const double degrees = draw(d, v[0], v[1]), mx = v[2] * p->w, my = v[3] * p->h;
  const double tx = rint(draw(d, -mx, mx)), ty = rint(draw(d, -my, my)), scale = draw(d, v[4], v[5]);
  const double sx = draw(d, v[6], v[7]), sy = draw(d, v[8], v[9]);
  return warp_by(ctx, p, (ty_affine){degrees, tx, ty, scale, sx, sy}, v + 10, false, s);
}

/* Only noted: done when the picture is written into the batch. */
static ty_status normalize(ty_ctx *ctx, const double *v, ty_picture *p, ty_canvas *s) {
  if (v[0] != 1 && v[0] != p->c) return ty_error(ctx, "Normalize: a picture of %d channels with %d means", p->c, (int)v[0]);
  if (p->normal) TY_TRY(ty_picture_own(ctx, p, s));
  for (int c = 0; c < p->c && c < 4; c++) {
    p->mean[c] = (float)v[1 + (v[0] == 1 ? 0 : c)];
    p->std[c] = (float)v[5 + (v[0] == 1 ? 0 : c)];
  }
  p->normal = true;
  return TY_OK;
}

static ty_status blur(ty_ctx *ctx, const double *v, ty_picture *p, ty_draws *d, ty_canvas *s) {
  const double sigma = draw(d, v[2], v[3]);
  return ty_blur(ctx, p, (int)v[0], (int)v[1], sigma, sigma * v[4], s);
}

static ty_status run(ty_ctx *ctx, const ty_transform *t, ty_picture *p, ty_draws *d, ty_canvas *s) {
  const double *v = t->v;
  switch (t->kind) {
    case RESIZE: return ty_resize(ctx, p, (int)v[0], (int)v[1], (ty_resampling)v[2], v[3] != 0, s);
    case RESIZE_SHORT: return resize_short(ctx, v, p, s);
    case CENTER_CROP: return centre(ctx, p, (int)v[0], (int)v[1], s);
    case CROP: return ty_crop(ctx, p, (int)v[0], (int)v[1], (int)v[2], (int)v[3], TY_BORDER_FILL, &black, s);
    case RANDOM_CROP: return random_crop(ctx, v, p, d, s);
    case PAD: return pad(ctx, v, p, s);
    case HFLIP: return draw(d, 0, 1) < v[0] ? flip(p, false) : TY_OK;
    case VFLIP: return draw(d, 0, 1) < v[0] ? flip(p, true) : TY_OK;
    case RESIZED_CROP: return resized_crop(ctx, v, p, d, s);
    case ROTATION: return warp_by(ctx, p, turned(-draw(d, v[0], v[1])), v + 2, v[11] != 0, s);
    case AFFINE: return affine(ctx, v, p, d, s);
    case ROTATE: return warp_by(ctx, p, turned(-v[0]), v + 1, v[10] != 0, s);
    case WARP: return warp_by(ctx, p, (ty_affine){v[0], v[1], v[2], v[3], v[4], v[5]}, v + 6, false, s);
    case PERSPECTIVE: return perspective(ctx, v, p, d, s);
    case PROJECT: return project(ctx, v, p, s);
    case JITTER: return jitter(ctx, v, p, d, s);
    case COLOUR: return ty_recolour(ctx, p, (ty_colour)v[0], (float)v[1], s);
    case RANDOM_COLOUR: return draw(d, 0, 1) < v[2] ? ty_recolour(ctx, p, (ty_colour)v[0], (float)v[1], s) : TY_OK;
    case NORMALIZE: return normalize(ctx, v, p, s);
    case ERASE: return erase(ctx, v, p, d, s);
    case BLUR: return blur(ctx, v, p, d, s);
    case CUTOUT: return cutout(ctx, (int)v[0], p, d, s);
    case AUGMENT: return augment_some(ctx, v, p, d, s);
    case AUTO_AUGMENT: return auto_augment(ctx, v, p, d, s);
    default: return TY_OK;
  }
}

ty_status ty_pipeline_run(ty_ctx *ctx, const ty_pipeline *t, ty_picture *p, ty_draws *d, ty_canvas *s) {
  for (int i = 0; i < t->n; i++) {
    const ty_transform *k = &t->step[i];
    if (k->kind == MAYBE && !(draw(d, 0, 1) < k->v[0])) i += (int)k->v[1];
    TY_TRY(run(ctx, k, p, d, s));
  }
  return TY_OK;
}

static bool resizes(const ty_transform *k) {
  switch (k->kind) {
    case RESIZE: case RESIZE_SHORT: case CENTER_CROP: case CROP: case RANDOM_CROP: case PAD: case RESIZED_CROP: return true;
    case ROTATION: return k->v[11] != 0;
    case ROTATE: return k->v[10] != 0;
    case COLOUR: return k->v[0] == TY_GRAYSCALE;
    default: return false;
  }
}

bool ty_pipeline_size(const ty_pipeline *t, int *c, int *h, int *w, bool known) {
  int64_t tall = *h, wide = *w;
  for (int i = 0; i < t->n && tall <= SIDE_MOST && wide <= SIDE_MOST; i++) {
    const double *v = t->step[i].v;
    switch (t->step[i].kind) {
      case RESIZE: case CENTER_CROP: case RANDOM_CROP: case RESIZED_CROP: tall = (int)v[0]; wide = (int)v[1]; known = true; break;
      case CROP: tall = (int)v[2]; wide = (int)v[3]; known = true; break;
      case ROTATION: case ROTATE: known = known && !resizes(&t->step[i]); break;
      case RESIZE_SHORT:
        if (!known) break;
        short_side(&tall, &wide, (int)v[0], (int)v[1]);
        tall = TY_MAX(1, tall);
        wide = TY_MAX(1, wide);
        break;
      case COLOUR: if (v[0] == TY_GRAYSCALE && v[1] == 1) *c = 1; break;
      case MAYBE:
        for (int j = i + 1; j <= i + (int)v[1] && j < t->n; j++)
          if (resizes(&t->step[j])) return false;
        break;
      case PAD: tall += (int)(v[2] + v[3]); wide += (int)(v[0] + v[1]); break;
      default: break;
    }
  }
  if (tall > SIDE_MOST || wide > SIDE_MOST) return false;              /* ty_pipeline_run will say what is wrong */
  *h = (int)tall;
  *w = (int)wide;
  return known;
}
