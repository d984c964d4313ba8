/* Fourier transforms of lines: along the last dim, or along one before others (core/fourier.h has the kinds); products of complex numbers.
 *
 * Idea: a bunch of lines is transformed at a time, with the same element of each line side by side, so that passes run over vectors;
 * threads share the bunches. Invariant: a line's result doesn't depend on its bunch. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"
#include "fourier.h"

#define BUNCH 16                 /* lines, of float32 */
#define BUNCH_ELEMENTS 65536     /* of a bunch: four arrays of so many stay in the second-level cache, or nearly */
#define APART 704                /* bytes between arrays: addresses read and written together must differ in their lower bits */
/* Tables of each type that are kept, and bytes of all, at most; the first ones are kept. Making a table takes longer than its use. */
#define KEPT 64
#define KEPT_BYTES (16 << 20)

/* Number `part` of element e of a line is at line + e * step + part, for x and for the result; the next line, `beside` further on. Elements
 * are pairs or reals. Rows: lines lie side by side, elements apart. */
typedef struct { int64_t step, beside; bool rows; } layout;
typedef struct {
  int kind;
  ty_loop_type k;
  size_t size;                   /* bytes of a number */
  int64_t n, m, bunch;           /* n: elements of a signal; m: complex numbers in the passes */
  layout in, out;
  double scale;
  const char *w;
} fourier;

/* ---- e^(-2 pi i k / n), k < n ---- */

typedef struct { int64_t n; double values[]; } table;
static _Atomic(table *) kept[2][KEPT];
static atomic_llong kept_bytes;

static table *make(int64_t n, bool wide) {
  table *t = malloc(sizeof *t + (size_t)n * (wide ? 16 : 8));
  if (!t) return NULL;
  t->n = n;
  for (int64_t k = 0; k < n; k++) {
    const double angle = 2 * M_PI * (double)k / (double)n, c = cos(angle), s = -sin(angle);
    if (wide) { t->values[2 * k] = c; t->values[2 * k + 1] = s; }
    else ((float *)t->values)[2 * k] = (float)c, ((float *)t->values)[2 * k + 1] = (float)s;
  }
  return t;
}

/* *own: the table isn't kept, the caller frees it */
static table *table_of(int64_t n, bool wide, bool *own) {
  int i = 0;
  *own = false;
  for (; i < KEPT; i++) {
    table *there = atomic_load_explicit(&kept[wide][i], memory_order_acquire);
    if (!there) break;
    if (there->n == n) return there;
  }
  table *t = make(n, wide), *none = NULL;
  const long long bytes = n * (wide ? 16 : 8);
  const bool room = atomic_fetch_add(&kept_bytes, bytes) + bytes <= KEPT_BYTES;
  *own = i == KEPT || !room || !t || !atomic_compare_exchange_strong(&kept[wide][i], &none, t);
  if (*own) atomic_fetch_sub(&kept_bytes, bytes);
  return t;
}

/* ---- a bunch of s lines from x, the first one's first number, to parts in which the same element of each line is side by side, `lanes`
 * from one element to the next; and back to o ---- */

/* Real signals of odd length, element by element. */
static void odd_in(const fourier *f, char *const *a, const char *x, int64_t s, int64_t lanes) {
  const bool half = f->kind >= TY_HALF;
  for (int64_t k = 0; k < f->n; k++) {
    const int64_t j = half ? TY_MIN(k, f->n - k) : k;      /* of the half; the rest are conjugates */
    const double once = f->scale * (k && f->kind == TY_HALF_ONCE ? 0.5 : 1);
    for (int64_t q = 0; q < lanes; q++) {
      const int64_t e = q * f->in.beside + j * f->in.step;
      put(a[0], f->k, k * lanes + q, q < s ? once * at(x, f->k, e) : 0);
      put(a[1], f->k, k * lanes + q, q >= s || !half || !k ? 0 : (j < k ? -once : once) * at(x, f->k, e + 1));
    }
  }
}
static void odd_out(const fourier *f, char *o, char *const *a, int64_t s, int64_t lanes) {
  const bool half = f->kind >= TY_HALF;
  for (int64_t k = 0; k < (half ? f->n : f->n / 2 + 1); k++) {
    const double times = k && f->kind == TY_REAL_TWICE ? 2 : 1;
    for (int64_t q = 0; q < s; q++) {
      const int64_t e = q * f->out.beside + k * f->out.step;
      put(o, f->k, e, times * at(a[0], f->k, k * lanes + q));
      if (!half) put(o, f->k, e + 1, times * at(a[1], f->k, k * lanes + q));
    }
  }
}

/* m pairs of each line, or, of rows of reals, 2 m reals */
static void lines_in(const fourier *f, char *const *a, const char *x, int64_t s, int64_t lanes, int64_t m, bool reals, double scale) {
  const ty_fourier_loops *l = ty_cpu_loops()->fourier;
  if (!f->in.rows) l->split[f->k](a[0], a[1], x, f->in.beside, s, m, scale);
  else if (!reals) l->split_rows[f->k](a[0], a[1], x, f->in.step, s, lanes, m, scale);
  else for (int64_t r = 0; r < 2 * m; r++) {
    char *to = a[r % 2] + (size_t)(r / 2 * lanes) * f->size;
    memcpy(to, x + (size_t)(r * f->in.step) * f->size, (size_t)s * f->size);
    memset(to + (size_t)s * f->size, 0, (size_t)(lanes - s) * f->size);
  }
}
static void lines_out(const fourier *f, char *o, char *const *a, int64_t s, int64_t lanes, int64_t m, bool reals) {
  const ty_fourier_loops *l = ty_cpu_loops()->fourier;
  if (!f->out.rows) l->join[f->k](o, f->out.beside, a[0], a[1], s, m);
  else if (!reals) l->join_rows[f->k](o, f->out.step, a[0], a[1], s, lanes, m);
  else for (int64_t r = 0; r < 2 * m; r++)
    memcpy(o + (size_t)(r * f->out.step) * f->size, a[r % 2] + (size_t)(r / 2 * lanes) * f->size, (size_t)s * f->size);
}

/* How many lines side by side passes go over for s of them: of rows, a size that vectors divide. */
static int64_t lanes_for(const fourier *f, int64_t s) {
  int64_t lanes = 4;
  if (!f->in.rows) return s;
  while (lanes < s) lanes *= 2;
  return lanes;
}

static void transform(const fourier *f, const char *x, char *o, int64_t s, char *work) {
  const ty_fourier_loops *l = ty_cpu_loops()->fourier;
  const bool real = f->kind >= TY_REAL && f->n % 2 == 0, odd = f->kind >= TY_REAL && !real, back = ty_fourier_back(f->kind);
  const int64_t lanes = lanes_for(f, s), step = real ? 2 : 1;      /* w has n entries, for the n reals */
  const size_t bytes = (size_t)((f->m + 1) * lanes) * f->size + APART;
  char *a[2] = {work, work + bytes}, *b[2] = {work + 2 * bytes, work + 3 * bytes}, *const room = work + 4 * bytes;
  if (odd) odd_in(f, a, x, s, lanes);
  else if (real && back) {
    lines_in(f, b, x, s, lanes, f->m + 1, false, 1);
    l->tangle[f->k](a[0], a[1], b[0], b[1], f->w, f->m, lanes, f->scale, f->scale * (f->kind == TY_HALF_ONCE ? 0.5 : 1));
  } else lines_in(f, a, x, s, lanes, f->m, real, real ? 1 : f->scale);
  int64_t done = 1;
  for (int64_t left = f->m; left > 1;) {
    const int r = left % 8 == 0 ? 8 : ty_fourier_radix(left);
    l->pass[f->k](r, a[back], a[!back], b[back], b[!back], left / r, done * lanes, f->w, step * done, room);
    for (int i = 0; i < 2; i++) { char *t = a[i]; a[i] = b[i]; b[i] = t; }
    left /= r;
    done *= r;
  }
  if (odd) odd_out(f, o, a, s, lanes);
  else if (real && !back) {
    l->untangle[f->k](b[0], b[1], a[0], a[1], f->w, f->m, lanes, f->scale, f->scale * (f->kind == TY_REAL_TWICE ? 2 : 1));
    lines_out(f, o, b, s, lanes, f->m + 1, false);
  } else lines_out(f, o, a, s, lanes, f->m, real);
}

/* Lines of pairs or of reals, before `inner` elements of other lines; apart: from one line to the next where inner is 1. */
static layout layout_of(bool of_pairs, int64_t inner, int64_t apart) {
  const int64_t width = of_pairs ? 2 : 1;
  return (layout){.step = width * inner, .beside = inner > 1 ? width : apart, .rows = inner > 1};
}

static ty_status transforms(ty_call *c) {
  ty_tensor *x, *o = c->out[0];
  fourier f = {.kind = (int)c->at[TY_AT_fourier_kind].i, .n = c->at[TY_AT_fourier_n].i, .scale = c->at[TY_AT_fourier_scale].f,
               .k = ty_loop_type_of(o->dtype), .size = (size_t)ty_itemsize(o)};
  if (ty_numel(o) == 0) return TY_OK;
  const int64_t in = ty_fourier_in(f.kind, f.n), out = ty_fourier_out(f.kind, f.n);
  int64_t inner = 1, apart = in;
  for (int d = o->ndim - ty_fourier_to_pairs(f.kind) - 1, k = (int)c->at[TY_AT_fourier_inner].i; k > 0; k--) inner *= o->shape[d--];
  f.m = ty_fourier_size(f.kind, f.n);
  /* lines that lie beside each other, and how many such groups there are */
  const int64_t beside = inner > 1 ? inner : ty_numel(o) / out, groups = ty_numel(o) / out / beside;
  f.bunch = TY_MIN(TY_MAX(BUNCH_ELEMENTS / f.m, inner > 1 ? 4 : 1), TY_MIN(beside, (int64_t)(BUNCH * 4 / f.size)));
  if (inner == 1 && f.bunch < 8 && f.m % 64 == 0) f.bunch = 1;     /* the first pass over one line has vectors of its own */
  size_t room = 0;
  for (int64_t left = f.m; left > 1; left /= ty_fourier_radix(left))
    if (ty_fourier_radix(left) > TY_FOURIER_BUILT) room = TY_MAX(room, TY_FOURIER_ROOM(ty_fourier_radix(left)));
  bool own;
  table *w = table_of(f.n, f.k == TY_IN_F64, &own);
  if (!w) return ty_no_memory(c->ctx, c->op->shown);
  ty_status st = inner > 1 ? ty_contiguous(c->ctx, c->in[0].t, &x) : ty_lines(c->ctx, c->in[0].t, in, &x, &apart);
  if (st != TY_OK) {
    if (own) free(w);
    return st;
  }
  f.in = layout_of(ty_fourier_from_pairs(f.kind), inner, apart);
  f.out = layout_of(ty_fourier_to_pairs(f.kind), inner, out);
  f.w = (const char *)w->values;
  atomic_bool failed = false;
  const int64_t bunches = (beside + f.bunch - 1) / f.bunch;
  const char *from = ty_data(x);
  char *to = ty_data(o);
  const int threads = (int)TY_MIN((int64_t)ty_threads_for(ty_numel(o) / out * f.n * 8), groups * bunches);
  #pragma omp parallel num_threads(threads)
  {
    char *work = ty_scratch(4 * ((size_t)((f.m + 1) * lanes_for(&f, f.bunch)) * f.size + APART) + room);
    if (!work) failed = true;
    #pragma omp for schedule(static)
    for (int64_t i = 0; i < groups * bunches; i++) {
      const int64_t group = i / bunches, first = i % bunches * f.bunch;
      const size_t x0 = (size_t)(group * inner * in + first * f.in.beside), o0 = (size_t)(group * inner * out + first * f.out.beside);
      if (work) transform(&f, from + x0 * f.size, to + o0 * f.size, TY_MIN(f.bunch, beside - first), work);
    }
    ty_scratch_free(work);
  }
  ty_release(x);
  if (own) free(w);
  return failed ? ty_no_memory(c->ctx, c->op->shown) : TY_OK;
}

/* ---- products of pairs ---- */

typedef struct { ty_loop_type k; double sign; } products;
static void run_products(void *arg, char *const *ptr, const int64_t *stride, int64_t n) {
  const products *w = arg;
  ty_cpu_loops()->fourier->products[w->k](ptr[0], stride[0], ptr[1], stride[1], ptr[2], stride[2], n, w->sign);
}

/* t, or a contiguous copy, as pairs whose strides are whole pairs. */
static ty_status as_pairs(ty_ctx *ctx, ty_tensor *t, ty_tensor **out, int64_t stride[TY_MAXDIM]) {
  bool whole = t->stride[t->ndim - 1] == 1;
  for (int d = 0; d < t->ndim - 1; d++) whole = whole && t->stride[d] % 2 == 0;
  if (whole) *out = ty_retain(t);
  else TY_TRY(ty_contiguous(ctx, t, out));
  for (int d = 0; d < t->ndim - 1; d++) stride[d] = (*out)->stride[d] / 2;
  return TY_OK;
}

static ty_status multiply(ty_call *c) {
  ty_tensor *o = c->out[0], *t[3] = {NULL};
  products w = {ty_loop_type_of(o->dtype), c->at[TY_AT_pairs_product_conjugate].i ? -1 : 1};
  ty_iter it;
  ty_status s = TY_OK;
  ty_iter_init(&it, o->shape, o->ndim - 1);
  for (int i = 0; i < 3 && s == TY_OK; i++) {
    int64_t stride[TY_MAXDIM];
    s = as_pairs(c->ctx, i ? c->in[i - 1].t : o, &t[i], stride);
    if (s == TY_OK) ty_iter_add(&it, ty_data(t[i]), 2 * ty_itemsize(o), stride, t[i]->shape, t[i]->ndim - 1);
  }
  if (s == TY_OK && ty_numel(o)) {
    ty_iter_done(&it);
    ty_iter_each(&it, run_products, &w);
  }
  for (int i = 0; i < 3; i++) ty_release(t[i]);
  return s;
}

ty_status ty_cpu_fourier(ty_call *c) { return c->op->id == TY_OP_fourier ? transforms(c) : multiply(c); }
