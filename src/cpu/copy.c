/* Copies and creation: clone, cast, pad, flip, triangles, cat, fills. All are one move of elements from strided to strided
 * memory, with conversion; rearrangements (core/rearrange.c) only set up the strides. Invariant: source and result don't overlap, unless
 * they are the same elements. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"

/* ---- the move ---- */

typedef struct {
  int size, out_size;
  bool convert, held, holds;               /* held: src is in the type that conversions go through; holds: dst is */
  void (*load)(void *, const void *, int64_t, int64_t);
  void (*store)(void *, int64_t, const void *, int64_t);
} move;

#ifdef __x86_64__
#define LOADS_WAIT __builtin_cpu_is("intel")
#else
#define LOADS_WAIT false
#endif
/* Copies from the end where d lies a little further within a page than s: forward, Intel's loads would wait for the stores before them. */
static void move_run(char *d, const char *s, size_t n) {
  enum { STEP = 256 };
  const uintptr_t ahead = ((uintptr_t)d - (uintptr_t)s) & 4095;
  if (n >= 2 * STEP && LOADS_WAIT && ahead && ahead < 1024) {
    const size_t rest = n % STEP;
    for (size_t at = n; at > rest; at -= STEP) memcpy(d + at - STEP, s + at - STEP, STEP);
    n = rest;
  }
  memcpy(d, s, n);
}

#define MOVE(T) { \
    T *d = (T *)ptr[0]; \
    const T *s = (const T *)ptr[1]; \
    if (stride[0] == 1 && stride[1] == 0 && !*s) memset(d, 0, (size_t)n * sizeof(T)); \
    else if (stride[0] == 1 && stride[1] == 0) { const T v = *s; for (int64_t i = 0; i < n; i++) d[i] = v; } \
    else if (stride[0] == 1) { for (int64_t i = 0; i < n; i++) d[i] = s[i * stride[1]]; } \
    else { for (int64_t i = 0; i < n; i++) d[i * stride[0]] = s[i * stride[1]]; } \
    return; }

static void run_move(void *arg, char *const *ptr, const int64_t *stride, int64_t n) {
  const move *w = arg;
  if (!w->convert) {
    if (stride[0] == 1 && stride[1] == 1) { move_run(ptr[0], ptr[1], (size_t)(n * w->size)); return; }
    if (stride[0] == 1 && stride[1] == -1) { TY_OF_SIZE(ty_cpu_loops()->backward, w->size)(ptr[0], ptr[1], n); return; }
    switch (w->size) {
      case 1: MOVE(uint8_t)
      case 2: MOVE(uint16_t)
      case 4: MOVE(uint32_t)
      default: MOVE(uint64_t)
    }
  }
  if (w->held && stride[1] == 1) { w->store(ptr[0], stride[0], ptr[1], n); return; }
  if (w->holds && stride[0] == 1) { w->load(ptr[0], ptr[1], stride[1], n); return; }
  double buf[TY_BLOCK];
  for (int64_t at = 0; at < n; at += TY_BLOCK) {
    int64_t m = TY_MIN(TY_BLOCK, n - at);
    w->load(buf, ptr[1] + at * stride[1] * w->size, stride[1], m);
    w->store(ptr[0] + at * stride[0] * w->out_size, stride[0], buf, m);
  }
}

/* A transpose: dst runs along the innermost dim, src along another. */
static void move_tile(void *arg, char *const *ptr, const int64_t *stride, const int64_t *step, int64_t n, int64_t m) {
  const move *w = arg;
  TY_OF_SIZE(ty_cpu_loops()->transpose, w->size)(ptr[0], step[0], ptr[1], stride[1], n, m);
}

/* The innermost dim has only a few elements, as where neighbours are repeated: a loop for each row would cost more than its elements. */
enum { SHORT = 4 };
#define SHORT_ROWS(T, N) { \
    T *d = (T *)ptr[0]; \
    const T *s = (const T *)ptr[1]; \
    for (int64_t i = 0; i < m; i++, d += step[0], s += step[1]) for (int k = 0; k < N; k++) d[k] = s[k * stride[1]]; \
    break; }
#define SHORT_MOVE(T) \
    switch (n) { case 1: SHORT_ROWS(T, 1) case 2: SHORT_ROWS(T, 2) case 3: SHORT_ROWS(T, 3) default: SHORT_ROWS(T, 4) } break;
static void move_short(void *arg, char *const *ptr, const int64_t *stride, const int64_t *step, int64_t n, int64_t m) {
  switch (((const move *)arg)->size) {
    case 1: SHORT_MOVE(uint8_t)
    case 2: SHORT_MOVE(uint16_t)
    case 4: SHORT_MOVE(uint32_t)
    default: SHORT_MOVE(uint64_t)
  }
}

/* Short rows, contiguous in both: a call for each would cost more than its elements. */
enum { FEW = 64 };
static void move_rows(void *arg, char *const *ptr, const int64_t *stride, const int64_t *step, int64_t n, int64_t m) {
  const int64_t size = ((const move *)arg)->size, bytes = n * size;
  const char *s = ptr[1];
  (void)stride;
  for (char *d = ptr[0]; m--; d += step[0] * size, s += step[1] * size) ty_move_few(d, s, bytes);
}

/* Rows read backward, as by a flip; longer ones than LONG are worth a call. */
enum { LONG = 64 };
#define BACKWARD(T) { \
    T *d = (T *)ptr[0]; \
    const T *s = (const T *)ptr[1]; \
    for (; m--; d += step[0], s += step[1]) for (int64_t i = 0; i < n; i++) d[i] = s[-i]; \
    return; }
static void move_backward(void *arg, char *const *ptr, const int64_t *stride, const int64_t *step, int64_t n, int64_t m) {
  (void)stride;
  switch (((const move *)arg)->size) {
    case 1: BACKWARD(uint8_t)
    case 2: BACKWARD(uint16_t)
    case 4: BACKWARD(uint32_t)
    default: BACKWARD(uint64_t)
  }
}
#undef BACKWARD

static int transposed(const ty_iter *it, const move *w) {
  const int last = it->ndim - 1;
  if (w->convert || it->stride[0][last] != 1 || it->shape[last] < 4) return -1;
  if (it->stride[1][last] == 0 && it->shape[last] >= 256) return -1;         /* one repeated element: filling rows is faster */
  for (int d = 0; d < last; d++)
    if (it->stride[1][d] == 1 && it->stride[1][last] != 1 && it->shape[d] >= 4) return d;
  return -1;
}

/* dst = src, which has dst's shape or broadcasts to it. */
static void copy(ty_tensor *dst, const ty_tensor *src) {
  const ty_loops *l = ty_cpu_loops();
  /* integers become floats directly, except int64, which processors convert one by one */
  const bool straight = !ty_is_float(src->dtype) && src->dtype != TY_I64 && ty_is_float(dst->dtype);
  const ty_dtype through = straight ? ty_compute_dtype(dst->dtype) : ty_compute_dtype(src->dtype);
  const ty_loop_type k = ty_loop_type_of(through);
  move w = {.size = ty_itemsize(src), .out_size = ty_itemsize(dst), .convert = src->dtype != dst->dtype,
    .held = src->dtype == through, .holds = dst->dtype == through, .load = l->load[src->dtype][k],
    .store = l->store[dst->dtype][k]};
  ty_tensor s = *src;
  while (s.ndim > dst->ndim) {             /* leading dims of size 1 */
    s.ndim--;
    memmove(s.shape, s.shape + 1, sizeof(int64_t) * s.ndim);
    memmove(s.stride, s.stride + 1, sizeof(int64_t) * s.ndim);
  }
  ty_iter it;
  ty_iter_init(&it, dst->shape, dst->ndim);
  ty_iter_tensor(&it, dst);
  ty_iter_tensor(&it, &s);
  ty_iter_done(&it);
  const int d = transposed(&it, &w);
  const int last = it.ndim - 1;
  if (d >= 0) ty_iter_tiles(&it, d, move_tile, &w);
  else if (last > 0 && !w.convert && it.stride[0][last] == 1 && it.shape[last] <= SHORT && it.shape[last - 1] > SHORT)
    ty_iter_tiles(&it, last - 1, move_short, &w);
  else if (last > 0 && !w.convert && it.stride[0][last] == 1 && it.stride[1][last] == -1 && it.shape[last] <= LONG)
    ty_iter_tiles(&it, last - 1, move_backward, &w);
  else if (last > 0 && !w.convert && it.stride[0][last] == 1 && it.stride[1][last] == 1 && it.shape[last] <= FEW &&
           it.shape[last] * w.size >= 16)
    ty_iter_tiles(&it, last - 1, move_rows, &w);
  else ty_iter_each(&it, run_move, &w);
}

void ty_fill_value(ty_tensor *t, ty_operand v) {
  double one = 0;
  ty_set_operand(&one, t->dtype, v);
  ty_tensor s = {.dtype = t->dtype};
  ty_storage store = {.data = &one};
  s.storage = &store;
  copy(t, &s);
}

/* ---- rearrangements ---- */

/* Row by row: the triangle is copied, the rest is 0. */
static void triangle(ty_call *c, bool lower) {
  const ty_tensor *x = c->in[0].t;
  const int r = x->ndim - 2, q = x->ndim - 1, size = ty_itemsize(x);
  const int64_t rows = x->shape[r], cols = x->shape[q], k = TY_MIN(TY_MAX(c->at[TY_AT_tril_k].i, -rows), cols), all = ty_numel(x) / cols;
  #pragma omp parallel for num_threads(ty_threads_for(all * cols)) schedule(static)
  for (int64_t row = 0; row < all; row++) {
    const char *src = ty_data(x);
    char *dst = (char *)ty_data(c->out[0]) + row * cols * size;
    int64_t at = row, i = row % rows;
    for (int d = r; d >= 0; d--) {
      src += at % x->shape[d] * x->stride[d] * size;
      at /= x->shape[d];
    }
    const int64_t from = lower ? 0 : TY_MIN(TY_MAX(i + k, 0), cols), to = lower ? TY_MIN(TY_MAX(i + k + 1, 0), cols) : cols;
    memset(dst, 0, (size_t)(from * size));
    memset(dst + to * size, 0, (size_t)((cols - to) * size));
    const move w = {.size = size, .out_size = size};
    char *const ptr[] = {dst + from * size, (char *)src + from * x->stride[q] * size};
    run_move((void *)&w, ptr, (int64_t[]){1, x->stride[q]}, to - from);
  }
}

ty_status ty_cpu_copy(ty_call *c) {
  switch (c->op->id) {
    case TY_OP_copy:
      if (c->in[1].t) copy(c->out[0], c->in[1].t);
      else ty_fill_value(c->out[0], c->in[1]);
      return TY_OK;
    case TY_OP_tril: triangle(c, true); return TY_OK;
    case TY_OP_triu: triangle(c, false); return TY_OK;
    case TY_OP_clone: case TY_OP_cast: copy(c->out[0], c->in[0].t); return TY_OK;
    default: return ty_rearrange(c);
  }
}

/* ---- creation ---- */

static void sequence(ty_tensor *o, double first, double step) {
  char *const p = ty_data(o);
  const int64_t n = o->shape[0], size = ty_itemsize(o), blocks = (n + TY_BLOCK - 1) / TY_BLOCK;
  const int threads = ty_threads_for(n);
  #pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t b = 0; b < blocks; b++) {
    double v[TY_BLOCK];
    const int64_t at = b * TY_BLOCK, m = TY_MIN(TY_BLOCK, n - at);
    for (int64_t i = 0; i < m; i++) v[i] = first + (double)(at + i) * step;
    ty_cpu_loops()->store[o->dtype][TY_IN_F64](p + at * size, 1, v, m);
  }
}

ty_status ty_cpu_fill(ty_call *c) {
  ty_tensor *o = c->out[0];
  const ty_attr *a = c->at;
  switch (c->op->id) {
    case TY_OP_empty: break;
    case TY_OP_zeros: ty_fill_value(o, ty_operand_int(0)); break;
    case TY_OP_ones: ty_fill_value(o, ty_operand_int(1)); break;
    case TY_OP_full: ty_fill_value(o, ty_any_number(&a[TY_AT_full_value])); break;
    case TY_OP_range: sequence(o, a[TY_AT_range_first].f, a[TY_AT_range_step].f); break;
    case TY_OP_linspace: {
      int64_t n = o->shape[0];
      sequence(o, a[TY_AT_linspace_first].f, n > 1 ? (a[TY_AT_linspace_last].f - a[TY_AT_linspace_first].f) / (double)(n - 1) : 0);
      if (n > 1) ty_set((char *)ty_data(o) + (n - 1) * ty_itemsize(o), o->dtype, a[TY_AT_linspace_last].f);
      break;
    }
    case TY_OP_eye: {
      ty_fill_value(o, ty_operand_int(0));
      ty_tensor diag = *o;
      diag.ndim = 1;
      diag.shape[0] = TY_MIN(o->shape[0], o->shape[1]);
      diag.stride[0] = o->stride[0] + o->stride[1];
      ty_fill_value(&diag, ty_operand_int(1));
      break;
    }
    default: return ty_fail(c, "not supported");
  }
  return TY_OK;
}
