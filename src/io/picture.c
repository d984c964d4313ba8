/* Pictures: decoding (TurboJPEG, libspng), the canvas memory that they pass through, and writing them as elements of a batch. Invariant:
 * a file's sizes are checked before memory for its pixels is taken. */
#include <spng.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>
#include "archive.h"
#include "data.h"
#include "math.h"

/* ---- canvas ---- */

static void *grow(void *p, size_t *room, size_t n) {
  if (p && *room >= n) return p;
  free(p);
  *room = n + n / 4;
  p = malloc(*room);
  if (!p) *room = 0;
  return p;
}

float *ty_canvas_floats(ty_ctx *ctx, ty_canvas *s, int64_t n) {
  int k = s->next = (s->next + 1) % 3;
  s->plane[k] = grow(s->plane[k], &s->room[k], (size_t)n * sizeof(float));
  if (!s->plane[k]) ty_error(ctx, "out of memory: a picture needs %lld bytes", (long long)n * 4);
  return s->plane[k];
}

static uint8_t *canvas_pixels(ty_ctx *ctx, ty_canvas *s, size_t n) {
  s->pixels = grow(s->pixels, &s->pixels_room, n);
  if (!s->pixels) ty_error(ctx, "out of memory: a picture needs %zu bytes", n);
  return s->pixels;
}

void ty_canvas_free(ty_canvas *s) {
  for (int k = 0; k < 3; k++) free(s->plane[k]);
  free(s->pixels);
  if (s->jpeg) tjDestroy(s->jpeg);
  memset(s, 0, sizeof *s);
}

/* ---- pictures as elements ---- */

/* Row y of plane c as floats, with `normal` carried out. */
static void row_of(const ty_picture *p, int c, int y, float *to) {
  const float mean = p->normal ? p->mean[c] : 0, std = p->normal ? p->std[c] : 1;
  const int n = p->w;
  const int64_t at = c * p->sc + y * p->sh, step = p->sw;
  if (p->bytes) {
    const uint8_t *from = (const uint8_t *)p->p + at;
    if (step == 1) for (int i = 0; i < n; i++) to[i] = (float)from[i] / 255.0f;
    else if (step == -1) for (int i = 0; i < n; i++) to[i] = (float)from[-i] / 255.0f;
    else for (int i = 0; i < n; i++) to[i] = (float)from[i * step] / 255.0f;
  } else {
    const float *from = (const float *)p->p + at;
    if (step == 1) memcpy(to, from, (size_t)n * sizeof *to);
    else for (int i = 0; i < n; i++) to[i] = from[i * step];
  }
  if (p->normal) for (int i = 0; i < n; i++) to[i] = (to[i] - mean) / std;
}

static void dense(ty_picture *p, const float *at) {
  *p = (ty_picture){.p = at, .own = true, .c = p->c, .h = p->h, .w = p->w, .sc = (int64_t)p->h * p->w, .sh = p->w, .sw = 1};
}

ty_status ty_picture_own(ty_ctx *ctx, ty_picture *p, ty_canvas *s) {
  if (p->own && !p->normal) return TY_OK;
  float *to = ty_canvas_floats(ctx, s, (int64_t)p->c * p->h * p->w);
  if (!to) return TY_OOM;
  for (int c = 0; c < p->c; c++)
    for (int y = 0; y < p->h; y++) row_of(p, c, y, to + ((int64_t)c * p->h + y) * p->w);
  dense(p, to);
  return TY_OK;
}

void ty_picture_write(const ty_picture *p, void *to, ty_dtype d) {
  float row[1024];
  char *out = to;
  for (int c = 0; c < p->c; c++)
    for (int y = 0; y < p->h; y++) {
      if (d == TY_F32) row_of(p, c, y, (float *)out);
      else for (int x = 0; x < p->w; x += 1024) {
        ty_picture part = *p;
        part.w = TY_MIN(1024, p->w - x);
        part.p = p->bytes ? (const void *)((const uint8_t *)p->p + x * p->sw) : (const void *)((const float *)p->p + x * p->sw);
        row_of(&part, c, y, row);
        for (int i = 0; i < part.w; i++) {
          char *e = out + (size_t)(x + i) * ty_dtype_size[d];
          uint16_t h;
          if (d == TY_F16) { h = ty_f32_to_f16(row[i]); memcpy(e, &h, 2); }
          else if (d == TY_BF16) { h = ty_f32_to_bf16(row[i]); memcpy(e, &h, 2); }
          else { double v = row[i]; memcpy(e, &v, 8); }
        }
      }
      out += (size_t)p->w * ty_dtype_size[d];
    }
}

/* ---- decoding ---- */

static ty_status bad(ty_ctx *ctx, const char *path, const char *why) { return ty_error(ctx, "%s: %s", path, why); }

static ty_status within(ty_ctx *ctx, const char *path, int64_t w, int64_t h) {
  if (w < 1 || h < 1 || w > 1 << 16 || h > 1 << 16 || w * h > TY_PIXELS_MOST)
    return ty_error(ctx, "%s: a picture of %lldx%lld pixels; at most %lld can be decoded", path, (long long)h,
      (long long)w, (long long)TY_PIXELS_MOST);
  return TY_OK;
}

/* a * b / 255, rounded as Pillow does. */
static uint8_t share(uint32_t a, uint32_t b) {
  const uint32_t t = a * b + 128;
  return (uint8_t)(((t >> 8) + t) >> 8);
}

static uint8_t luma(const uint8_t *rgb) {               /* ITU-R 601, as JPEG's Y */
  return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

/* CMYK to RGB, or grey, in place. The inks are stored inverted, as the light that each lets through: Adobe's programs write them so, and
 * nobody else writes CMYK. */
static void from_inks(uint8_t *pixels, int64_t n, bool gray) {
  for (int64_t i = 0; i < n; i++) {
    const uint8_t *ink = pixels + 4 * i, black = ink[3];
    uint8_t rgb[3];
    for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)(black - share(255u - ink[c], black));
    if (gray) pixels[i] = luma(rgb);
    else memcpy(pixels + 3 * i, rgb, 3);
  }
}

static ty_status read_jpeg(ty_ctx *ctx, const char *path, const uint8_t *bytes, size_t n, bool gray, ty_canvas *s, ty_picture *out) {
  int w, h, sub, space, c = gray ? 1 : 3;
  if (!s->jpeg) s->jpeg = tjInitDecompress();
  if (!s->jpeg) return ty_no_memory(ctx, path);
  if (tjDecompressHeader3(s->jpeg, bytes, n, &w, &h, &sub, &space) != 0) return bad(ctx, path, tjGetErrorStr2(s->jpeg));
  TY_TRY(within(ctx, path, w, h));
  const bool inks = space == TJCS_CMYK || space == TJCS_YCCK;
  uint8_t *pixels = canvas_pixels(ctx, s, (size_t)w * h * (inks ? 4 : c));
  if (!pixels) return TY_OOM;
  if (tjDecompress2(s->jpeg, bytes, n, pixels, w, 0, h, inks ? TJPF_CMYK : gray ? TJPF_GRAY : TJPF_RGB,
      TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING) != 0)
    return bad(ctx, path, tjGetErrorStr2(s->jpeg));
  if (inks) from_inks(pixels, (int64_t)w * h, gray);
  *out = (ty_picture){.p = pixels, .bytes = true, .c = c, .h = h, .w = w, .sc = 1, .sh = (int64_t)w * c, .sw = c};
  return TY_OK;
}

static ty_status read_png(ty_ctx *ctx, const char *path, const uint8_t *bytes, size_t n, bool gray, ty_canvas *s, ty_picture *out) {
  struct spng_ihdr head;
  size_t size;
  uint8_t *pixels = NULL;
  spng_ctx *p = spng_ctx_new(0);
  int e = p ? spng_set_png_buffer(p, bytes, n) : SPNG_EMEM;
  if (!e) e = spng_set_image_limits(p, 1 << 16, 1 << 16);
  if (!e) e = spng_set_chunk_limits(p, 1 << 24, 1 << 26);
  if (!e) e = spng_get_ihdr(p, &head);
  if (!e && within(ctx, path, head.width, head.height) != TY_OK) { spng_ctx_free(p); return TY_ERR; }
  if (!e) e = spng_decoded_image_size(p, SPNG_FMT_RGB8, &size);
  if (!e && !(pixels = canvas_pixels(ctx, s, size))) e = SPNG_EMEM;
  if (!e) e = spng_decode_image(p, pixels, size, SPNG_FMT_RGB8, 0);
  if (!e) e = spng_decode_chunks(p);                     /* to the end, so that a truncated file fails */
  spng_ctx_free(p);
  if (e == SPNG_EMEM) return ty_no_memory(ctx, path);
  if (e) return bad(ctx, path, spng_strerror(e));
  const int w = (int)head.width, h = (int)head.height;
  *out = (ty_picture){.p = pixels, .bytes = true, .c = 3, .h = h, .w = w, .sc = 1, .sh = (int64_t)w * 3, .sw = 3};
  if (!gray) return TY_OK;
  for (int64_t i = 0; i < (int64_t)w * h; i++) pixels[i] = luma(pixels + 3 * i);
  out->c = out->sw = 1;
  out->sh = w;
  return TY_OK;
}

ty_status ty_picture_read(ty_ctx *ctx, const char *path, bool gray, ty_canvas *s, ty_picture *out) {
  ty_blob *b;
  TY_TRY(ty_blob_read(ctx, path, &b));
  const uint8_t *bytes = b->p;
  ty_status st;
  if (b->n > 2 && bytes[0] == 0xFF && bytes[1] == 0xD8) st = read_jpeg(ctx, path, bytes, b->n, gray, s, out);
  else if (b->n > 8 && !memcmp(bytes, "\211PNG\r\n\032\n", 8)) st = read_png(ctx, path, bytes, b->n, gray, s, out);
  else st = bad(ctx, path, "neither a JPEG nor a PNG file");
  ty_blob_release(b);
  return st;
}
