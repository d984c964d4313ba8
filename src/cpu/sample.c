/* grid_sample: pictures (N, C, H, W) read at the points of grids (N, Ho, Wo, 2), and both gradients. core/grid_points.h says which pixels.
 *
 * Idea: where pictures are read, threads share blocks of points; where they are written to, channels. Invariant: one thread sums each
 * element, in the order of channels or of points. */
#include <string.h>
#include "cpu.h"
#include "grid_points.h"

enum { CHANNELS = 8 };     /* channels for which points are found together, where pixels are written to */

/* The operands, contiguous: x (or its gradient), grid, y (or its gradient). */
typedef struct { ty_sampling p; int64_t n, c, points; ty_loop_type k; int size; char *x, *grid, *y; } sampling;

static sampling sampling_of(const ty_call *c, const ty_tensor *x, const ty_tensor *grid, const ty_tensor *y) {
  const ty_sampling_options how = ty_sampling_options_of(c);
  return (sampling){.p = {.h = x->shape[2], .w = x->shape[3], .nearest = how.mode == TY_GRID_NEAREST,
    .padding = how.padding, .corners = how.corners},
    .n = x->shape[0], .c = x->shape[1], .points = grid->shape[1] * grid->shape[2],
    .k = ty_loop_type_of(x->dtype), .size = ty_itemsize(x),
    .x = ty_data(x), .grid = ty_data(grid), .y = y ? ty_data(y) : NULL};
}

/* A block of a picture's points: the pixels they read, and weights. find(): block b of an image. */
typedef struct { int32_t at[4 * TY_BLOCK]; double k[4 * TY_BLOCK], kx[4 * TY_BLOCK], ky[4 * TY_BLOCK]; int64_t from, m; } block;
static void find(const sampling *s, int64_t image, int64_t b, block *t) {
  t->from = b * TY_BLOCK;
  t->m = TY_MIN(TY_BLOCK, s->points - t->from);
  const char *grid = s->grid + (image * s->points + t->from) * 2 * s->size;
  ty_cpu_loops()->sample->points[s->k](&s->p, grid, t->m, t->at, t->k, t->kx, t->ky);
}

static void take(const sampling *s) {
  const ty_sample_loops *l = ty_cpu_loops()->sample;
  const int64_t blocks = (s->points + TY_BLOCK - 1) / TY_BLOCK, plane = s->p.h * s->p.w;
  #pragma omp parallel for num_threads(ty_threads_for(s->n * s->c * s->points * 4)) schedule(static)
  for (int64_t j = 0; j < s->n * blocks; j++) {
    const int64_t image = j / blocks;
    block t;
    find(s, image, j % blocks, &t);
    for (int64_t c = image * s->c; c < (image + 1) * s->c; c++)
      l->blend[s->k](s->y + (c * s->points + t.from) * s->size, s->x + c * plane * s->size, t.at, t.k, t.m, s->p.nearest ? 1 : 4);
  }
}

/* to = the grid's gradient. */
static void slopes(const sampling *s, char *to) {
  const ty_sample_loops *l = ty_cpu_loops()->sample;
  const int64_t blocks = (s->points + TY_BLOCK - 1) / TY_BLOCK, plane = s->p.h * s->p.w;
  #pragma omp parallel for num_threads(ty_threads_for(s->n * s->c * s->points * 8)) schedule(static)
  for (int64_t j = 0; j < s->n * blocks; j++) {
    const int64_t image = j / blocks;
    double dx[TY_BLOCK] = {0}, dy[TY_BLOCK] = {0};           /* of the loop's type */
    block t;
    find(s, image, j % blocks, &t);
    for (int64_t c = image * s->c; c < (image + 1) * s->c; c++)
      l->slopes[s->k](dx, dy, s->y + (c * s->points + t.from) * s->size, s->x + c * plane * s->size, t.at, t.kx, t.ky, t.m);
    char *o = to + (image * s->points + t.from) * 2 * s->size;
    for (int64_t i = 0; i < t.m; i++) {
      memcpy(o + 2 * i * s->size, (char *)dx + i * s->size, (size_t)s->size);
      memcpy(o + (2 * i + 1) * s->size, (char *)dy + i * s->size, (size_t)s->size);
    }
  }
}

static void spread(const sampling *s) {
  const ty_sample_loops *l = ty_cpu_loops()->sample;
  const int64_t blocks = (s->points + TY_BLOCK - 1) / TY_BLOCK, plane = s->p.h * s->p.w, groups = (s->c + CHANNELS - 1) / CHANNELS;
  #pragma omp parallel for num_threads(ty_threads_for(s->n * s->c * (s->points * 4 + plane))) schedule(static)
  for (int64_t j = 0; j < s->n * groups; j++) {
    const int64_t image = j / groups, first = image * s->c + j % groups * CHANNELS, end = TY_MIN(first + CHANNELS, (image + 1) * s->c);
    block t;
    memset(s->x + first * plane * s->size, 0, (size_t)((end - first) * plane * s->size));
    for (int64_t b = 0; b < blocks; b++) {
      find(s, image, b, &t);
      for (int64_t c = first; c < end; c++)
        l->spread[s->k](s->x + c * plane * s->size, s->y + (c * s->points + t.from) * s->size, t.at, t.k, t.m, s->p.nearest ? 1 : 4);
    }
  }
}

/* Makes the operands contiguous; the results are. */
static ty_status run(ty_call *c) {
  const int id = c->op->id;
  ty_tensor *in[3] = {NULL}, *o = c->out[0];
  ty_status st = ty_contiguous_operands(c, in);
  if (st == TY_OK && id == TY_OP_grid_sample_take) {
    const sampling s = sampling_of(c, in[0], in[1], o);
    take(&s);
  } else if (st == TY_OK && id == TY_OP_grid_sample_backward_grid) {
    const sampling s = sampling_of(c, in[1], in[2], in[0]);
    slopes(&s, ty_data(o));
  } else if (st == TY_OK) {
    const sampling s = sampling_of(c, o, in[1], in[0]);
    spread(&s);
  }
  for (int i = 0; i < 3; i++) ty_release(in[i]);
  return st;
}

ty_status ty_cpu_sample(ty_call *c) { return ty_numel(c->out[0]) ? ty_widened(c, run) : TY_OK; }
