/* A picture's random crop, flip, cutout and normalisation, for gcc and nvcc alike. Sample b of a batch takes Philox
 * block offset + b: its words decide the crop's place, the flip and the hole's place. */
#ifndef TY_AUGMENT_H
#define TY_AUGMENT_H
#include "math.h"

/* n pictures of c x h x w; a batch of them becomes c x oh x ow. random 0: the middle crop, no flip, no hole. */
typedef struct ty_augment { int64_t n, c, h, w, oh, ow, batch; int padding, cutout, random; float flip; } ty_augment;
typedef struct { int64_t y, x, hole_y, hole_x; int flip; } ty_augmented;

TY_INLINE ty_augmented ty_augment_draw(const ty_augment *a, uint64_t seed, uint64_t block) {
  const int64_t tall = a->h + 2 * a->padding - a->oh, wide = a->w + 2 * a->padding - a->ow;
  ty_augmented d = {tall / 2 - a->padding, wide / 2 - a->padding, 0, 0, 0};
  uint32_t r[4];
  if (!a->random) return d;
  ty_philox(seed, block, r);
  d.y = (int64_t)((uint64_t)r[0] * (uint64_t)(tall + 1) >> 32) - a->padding;
  d.x = (int64_t)((uint64_t)r[1] * (uint64_t)(wide + 1) >> 32) - a->padding;
  d.flip = ty_uniform(r[2]) < a->flip;
  d.hole_y = (int64_t)((r[3] >> 16) * (uint64_t)a->oh >> 16) - a->cutout / 2;
  d.hole_x = (int64_t)((r[3] & 0xFFFF) * (uint64_t)a->ow >> 16) - a->cutout / 2;
  return d;
}

/* Element (y, x) of one plane of the result; from: the picture's plane. Padding is black before normalisation; the hole is 0
   after it. */
TY_INLINE float ty_augment_pixel(const ty_augment *a, const ty_augmented *d, const uint8_t *from, int64_t y, int64_t x,
  float mean, float std) {
  const int64_t sy = d->y + y, sx = d->x + (d->flip ? a->ow - 1 - x : x);
  if (a->random && a->cutout && y >= d->hole_y && y < d->hole_y + a->cutout && x >= d->hole_x && x < d->hole_x + a->cutout) return 0;
  const float v = sy >= 0 && sx >= 0 && sy < a->h && sx < a->w ? (float)from[sy * a->w + sx] / 255.0f : 0;
  return (v - mean) / std;
}
#endif
