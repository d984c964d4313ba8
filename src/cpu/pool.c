/* Pooling over the last two dims. What windows read is computed once for each row and each column of windows; the loops (pool_loops.c) take
 * channels side by side. Idea: where planes lie one after another instead, some planes are transposed, by bands of rows that fit into
 * the cache, and take the place of channels; 16-bit data is converted by bands too. Maxima without positions are taken plane by plane. */
#include <omp.h>
#include "cpu.h"

#define BAND 32768         /* bytes of a band */

typedef struct job job;
struct job {
  ty_pool p;
  ty_pool_loop loop;
  void (*task)(const job *w, int64_t t, char *memory);       /* does task t; memory: the thread's own */
  ty_loop_type k;
  int size;                             /* bytes of an element in memory */
  void (*load)(void *, const void *, int64_t, int64_t);      /* 16-bit data to float32, or NULL; and back */
  void (*store)(void *, int64_t, const void *, int64_t);
  bool max, last, back;                    /* maxima, also without positions; channels last; a gradient */
  char *x, *y;                             /* pixels, windows */
  int64_t *idx;                            /* positions; NULL for means */
  int64_t n, part, parts;                  /* images, or groups of planes; rows of windows (back: channels) in a task; tasks of each */
  int64_t planes;                          /* 0: channels lie side by side */
  size_t x_bytes, y_bytes, bytes;          /* a thread's transposed or converted pixels and windows; all that it needs */
};

/* What window i reads along dim (0: rows, 1: columns); padded: the mean counts padding. */
static ty_window window(const ty_pool *p, bool padded, int dim, int64_t i) {
  const int64_t size = dim ? p->w : p->h, out = dim ? p->ow : p->oh;
  if (!p->kernel[0]) {                     /* adaptive */
    const int64_t lo = i * size / out, hi = ((i + 1) * size + out - 1) / out;
    return (ty_window){lo, hi, hi - lo};
  }
  const int64_t d = p->dilation[dim], from = i * p->stride[dim] - p->padding[dim], to = from + d * (p->kernel[dim] - 1) + 1;
  const int64_t lo = from < 0 ? from + (-from + d - 1) / d * d : from, hi = TY_MIN(to, size);
  return (ty_window){lo, hi, padded ? TY_MIN(to, size + p->padding[dim]) - from : hi - lo};
}

/* The first row (*top) and the number of rows that rows of windows from .. to - 1 read; dilated windows may begin above earlier ones. */
static int64_t reach(const ty_pool *p, int64_t from, int64_t to, int64_t *top) {
  *top = p->rows[from].lo;
  for (int64_t i = from + 1; i < to; i++) *top = TY_MIN(*top, p->rows[i].lo);
  return TY_MAX(p->rows[to - 1].hi - *top, 0);
}

static void channels(const job *w, int64_t t, char *memory) {
  (void)memory;
  const ty_pool *p = &w->p;
  const int64_t in = t / w->parts * p->h * p->w * p->c, out = t / w->parts * p->oh * p->ow * p->c, from = t % w->parts * w->part;
  w->loop(p, w->x + in * w->size, w->y + out * w->size, w->idx ? w->idx + out : NULL, from, TY_MIN(from + w->part, w->back ? p->c : p->oh));
}

/* The same for 16-bit data. */
static void widened(const job *w, int64_t t, char *memory) {
  ty_pool p = w->p;
  const int64_t image = t / w->parts, from = t % w->parts * w->part, to = TY_MIN(p.oh, from + w->part);
  char *tx = memory, *ty = tx + w->x_bytes;
  p.first = from;
  const int64_t rows = w->back ? p.h : reach(&p, from, to, &p.top), pixels = rows * p.w * p.c,
    windows = (to - from) * p.ow * p.c, at = (image * p.oh + from) * p.ow * p.c;
  char *x = w->x + (image * p.h + p.top) * p.w * p.c * w->size, *y = w->y + at * w->size;
  if (w->back) {
    w->load(ty, y, 1, windows);
    w->loop(&p, tx, ty, w->idx ? w->idx + at : NULL, 0, p.c);
    w->store(x, 1, tx, pixels);
  } else {
    w->load(tx, x, 1, pixels);
    w->loop(&p, tx, ty, w->idx ? w->idx + at : NULL, from, to);
    w->store(y, 1, ty, windows);
  }
}

static void planes(const job *w, int64_t t, char *memory) {
  ty_pool p = w->p;
  const int64_t from = t % w->parts * w->part, to = TY_MIN(p.oh, from + w->part), plane = t / w->parts * p.c,
    in = p.h * p.w, out = p.oh * p.ow;
  p.c = TY_MIN(p.c, w->planes - plane);
  p.first = from;
  const int64_t pixels = w->back ? in : reach(&p, from, to, &p.top) * p.w, windows = (to - from) * p.ow, at = plane * out + from * p.ow;
  char *x = w->x + (plane * in + p.top * p.w) * w->size, *y = w->y + at * w->size, *tx = memory, *ty = tx + w->x_bytes,
    *ti = ty + w->y_bytes;
  const ty_loops *l = ty_cpu_loops();
  if (w->back) {
    TY_OF_SIZE(l->transpose, ty_loop_size[w->k])(ty, p.c, y, out, p.c, windows);
    w->loop(&p, tx, ty, NULL, 0, p.c);
    TY_OF_SIZE(l->transpose, ty_loop_size[w->k])(x, in, tx, p.c, pixels, p.c);
  } else {
    TY_OF_SIZE(l->transpose, ty_loop_size[w->k])(tx, p.c, x, in, p.c, pixels);
    w->loop(&p, tx, ty, w->idx ? (int64_t *)ti : NULL, from, to);
    TY_OF_SIZE(l->transpose, ty_loop_size[w->k])(y, out, ty, p.c, windows, p.c);
    if (w->idx) TY_OF_SIZE(l->transpose, 8)(w->idx + at, out, ti, p.c, windows, p.c);
  }
}

static void plane(const job *w, int64_t t, char *memory) {
  ty_pool p = w->p;
  p.row = memory;
  w->loop(&p, w->x + t * p.h * p.w * w->size, w->y + t * p.oh * p.ow * w->size, NULL, 0, p.oh);
}

/* Cuts tasks by bands of rows of windows, and sets the memory that a band needs. */
static void cut_bands(job *w) {
  const ty_pool *p = &w->p;
  const int64_t size = ty_loop_size[w->k];
  w->part = w->back ? p->oh : TY_MIN(p->oh, BAND / (p->w * p->c * size) * p->oh / p->h + 1);
  int64_t rows = w->back ? p->h : 0, top;
  for (int64_t i = 0; i < p->oh && !w->back; i += w->part) rows = TY_MAX(rows, reach(p, i, TY_MIN(i + w->part, p->oh), &top));
  w->x_bytes = (size_t)(rows * p->w * p->c * size + 63) / 64 * 64;
  w->y_bytes = (size_t)(w->part * p->ow * p->c * size + 63) / 64 * 64;
  w->bytes = w->x_bytes + w->y_bytes + (w->idx && w->planes ? (size_t)(w->part * p->ow * p->c * 8 + 63) / 64 * 64 : 0);
}

/* Cuts tasks where planes lie one after another. */
static void cut_planes(job *w) {
  ty_pool *p = &w->p;
  const int64_t lanes = 64 / w->size;
  w->planes = w->n * p->c;
  p->c = TY_MIN(lanes, w->planes);
  w->n = (w->planes + lanes - 1) / lanes;
  cut_bands(w);
}

/* Chooses the loop and how it goes over memory, and cuts the tasks for so many threads. */
static void choose(job *w, ty_dtype d, int64_t threads) {
  ty_pool *p = &w->p;
  const ty_loops *l = ty_cpu_loops();
  const bool last = w->last && p->c > 1, flat = w->max && !w->idx && p->ow > 3 && !last && !ty_is_16bit(d);
  w->loop = l->pool[flat ? TY_POOL_PLANE : (w->max ? TY_POOL_MAX : TY_POOL_AVG) | (w->back ? TY_POOL_BACK : 0)][w->k];
  w->task = channels;
  if (flat) {
    w->task = plane;
    w->n *= p->c;
    w->part = p->oh;
    w->bytes = (size_t)(p->w * w->size + 63) / 64 * 64;
  } else if (ty_is_16bit(d)) {
    w->task = widened;
    w->load = l->load[d][TY_IN_F32];
    w->store = l->store[d][TY_IN_F32];
    cut_bands(w);
  } else if (last) w->part = w->n >= threads ? TY_MAX(p->c, p->oh) : w->back ? (p->c / threads / 16 + 1) * 16 : p->oh / threads + 1;
  else if (w->idx && w->back) {            /* plane by plane, by positions */
    w->n *= p->c;
    w->part = p->c = 1;
  } else {
    w->task = planes;
    cut_planes(w);
  }
  w->parts = ((w->back && !w->bytes ? p->c : p->oh) + w->part - 1) / w->part;
}

/* large: pixels, small: windows, and their positions; all channels-last or all contiguous. w has max, last and back. */
static ty_status pool(ty_call *c, job *w, ty_tensor *large, ty_tensor *small, ty_tensor *positions) {
  const int d = large->ndim - 3, threads = ty_threads_for(ty_numel(large) * 2);
  const ty_windows v = ty_windows_of(c);
  w->k = large->dtype == TY_F64;
  w->size = ty_itemsize(large);
  w->x = ty_data(large);
  w->y = ty_data(small);
  w->idx = positions ? ty_data(positions) : NULL;
  w->n = d ? large->shape[0] : 1;
  ty_pool *p = &w->p;
  *p = (ty_pool){.c = large->shape[d], .h = large->shape[d + 1], .w = large->shape[d + 2], .oh = small->shape[d + 1],
    .ow = small->shape[d + 2], .dilation = {1, 1}, .divisor = (double)v.divisor};
  for (int i = 0; i < 2; i++) {
    p->kernel[i] = v.kernel[i];
    p->stride[i] = v.stride[i];
    p->padding[i] = v.padding[i];
    p->dilation[i] = v.dilation[i];
  }
  if (w->max && p->h * p->w >= INT32_MAX) return ty_fail(c, "planes of %lld elements are too large", (long long)(p->h * p->w));
  ty_window *windows = ty_scratch(sizeof *windows * (size_t)(p->oh + p->ow));
  if (!windows) return ty_no_memory(c->ctx, c->op->shown);
  for (int64_t i = 0; i < p->oh; i++) windows[i] = window(p, v.include_pad, 0, i);
  for (int64_t j = 0; j < p->ow; j++) windows[p->oh + j] = window(p, v.include_pad, 1, j);
  p->rows = windows;
  p->cols = windows + p->oh;
  choose(w, large->dtype, threads);
  char *memory = w->bytes ? ty_scratch(w->bytes * (size_t)threads) : NULL;
  const ty_status st = w->bytes && !memory ? ty_no_memory(c->ctx, c->op->shown) : TY_OK;
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t t = 0; t < (st == TY_OK ? w->n * w->parts : 0); t++)
    w->task(w, t, memory ? memory + w->bytes * (size_t)omp_get_thread_num() : NULL);
  ty_scratch_free(windows);
  ty_scratch_free(memory);
  return st;
}

static bool is_last(const ty_call *c) {
  const ty_tensor *o = c->out[0];
  return o->ndim == 4 && ty_is_channels_last(o) && (ty_is_channels_last(c->in[0].t) || !ty_is_contiguous(o));
}

static ty_status run(ty_call *c) {
  const ty_windows v = ty_windows_of(c);
  job w = {.last = is_last(c), .max = v.max, .back = v.back};
  ty_status (*const laid_out)(ty_ctx *, ty_tensor *, ty_tensor **) = w.last ? ty_channels_last : ty_contiguous;
  ty_tensor *in, *idx = NULL;
  TY_TRY(laid_out(c->ctx, c->in[0].t, &in));
  ty_status s = v.max && v.back ? laid_out(c->ctx, c->in[1].t, &idx) : TY_OK;
  if (s == TY_OK && w.back) s = pool(c, &w, c->out[0], in, idx);
  else if (s == TY_OK) s = pool(c, &w, in, c->out[0], c->op->nout > 1 ? c->out[1] : NULL);
  ty_release(in);
  ty_release(idx);
  return s;
}

ty_status ty_cpu_pool(ty_call *c) {
  return !ty_numel(c->out[0]) ? TY_OK : is_last(c) && c->out[0]->shape[1] > 1 ? run(c) : ty_widened(c, run);
}
