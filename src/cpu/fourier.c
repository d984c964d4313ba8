/* Fourier transforms along the last dim (core/fourier.h has the kinds).
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

typedef struct {
  int kind;
  ty_loop_type k;
  size_t size;                   /* bytes of an element */
  int64_t n, m, lines, bunch;    /* n: elements of a signal; m: complex numbers in the passes */
  int64_t in, out;               /* elements from one line of x to the next, and of the result */
  double scale;
  const char *x, *w;
  char *o;
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

/* ---- a bunch of lines, to and from parts in which the same element of each line is side by side ---- */

/* Real signals of odd length, element by element. */
static void odd_in(const fourier *f, char *const *a, int64_t first, int64_t s) {
  const bool half = f->kind >= TY_HALF;
  for (int64_t q = 0; q < s; q++) {
    const char *x = f->x + (size_t)((first + q) * f->in) * f->size;
    for (int64_t k = 0; k < f->n; k++) {
      const int64_t j = TY_MIN(k, f->n - k);               /* of the half; the rest are conjugates */
      const double once = f->scale * (k && f->kind == TY_HALF_ONCE ? 0.5 : 1);
      put(a[0], f->k, k * s + q, once * at(x, f->k, half ? 2 * j : k));
      put(a[1], f->k, k * s + q, !half || !k ? 0 : (j < k ? -once : once) * at(x, f->k, 2 * j + 1));
    }
  }
}
static void odd_out(const fourier *f, char *const *a, int64_t first, int64_t s) {
  for (int64_t q = 0; q < s; q++) {
    char *o = f->o + (size_t)((first + q) * f->out) * f->size;
    if (f->kind >= TY_HALF) for (int64_t k = 0; k < f->n; k++) put(o, f->k, k, at(a[0], f->k, k * s + q));
    else for (int64_t k = 0; k <= f->n / 2; k++) {
      const double times = k && f->kind == TY_REAL_TWICE ? 2 : 1;
      put(o, f->k, 2 * k, times * at(a[0], f->k, k * s + q));
      put(o, f->k, 2 * k + 1, times * at(a[1], f->k, k * s + q));
    }
  }
}

static void transform(const fourier *f, int64_t first, int64_t s, char *work) {
  const ty_fourier_loops *l = ty_cpu_loops()->fourier;
  const bool real = f->kind >= TY_REAL && f->n % 2 == 0, odd = f->kind >= TY_REAL && !real, back = ty_fourier_back(f->kind);
  const size_t bytes = (size_t)((f->m + 1) * s) * f->size + APART;
  char *a[2] = {work, work + bytes}, *b[2] = {work + 2 * bytes, work + 3 * bytes}, *const room = work + 4 * bytes;
  const int64_t step = real ? 2 : 1;                       /* w has n entries, for the n reals */
  const char *x = f->x + (size_t)(first * f->in) * f->size;
  char *o = f->o + (size_t)(first * f->out) * f->size;
  if (odd) odd_in(f, a, first, s);
  else if (real && back) {
    l->split[f->k](b[0], b[1], x, f->in, s, f->m + 1, 1);
    l->tangle[f->k](a[0], a[1], b[0], b[1], f->w, f->m, s, f->scale, f->scale * (f->kind == TY_HALF_ONCE ? 0.5 : 1));
  } else l->split[f->k](a[0], a[1], x, f->in, s, f->m, real ? 1 : f->scale);
  int64_t done = 1;
  for (int64_t left = f->m; left > 1;) {
    const int r = left % 8 == 0 ? 8 : ty_fourier_radix(left);
    l->pass[f->k](r, a[back], a[!back], b[back], b[!back], left / r, done * s, f->w, step * done, room);
    for (int i = 0; i < 2; i++) { char *t = a[i]; a[i] = b[i]; b[i] = t; }
    left /= r;
    done *= r;
  }
  if (odd) odd_out(f, a, first, s);
  else if (real && !back) {
    l->untangle[f->k](b[0], b[1], a[0], a[1], f->w, f->m, s, f->scale, f->scale * (f->kind == TY_REAL_TWICE ? 2 : 1));
    l->join[f->k](o, f->out, b[0], b[1], s, f->m + 1);
  } else l->join[f->k](o, f->out, a[0], a[1], s, f->m);
}

ty_status ty_cpu_fourier(ty_call *c) {
  ty_tensor *x, *o = c->out[0];
  fourier f = {.kind = (int)c->at[TY_AT_fourier_kind].i, .n = c->at[TY_AT_fourier_n].i, .scale = c->at[TY_AT_fourier_scale].f,
               .k = ty_loop_type_of((ty_dtype)o->dtype),
               .size = (size_t)ty_itemsize(o), .o = ty_data(o)};
  if (ty_numel(o) == 0) return TY_OK;
  f.m = ty_fourier_size(f.kind, f.n);
  f.out = ty_fourier_out(f.kind, f.n);
  f.lines = ty_numel(o) / f.out;
  f.bunch = TY_MIN(TY_MAX(BUNCH_ELEMENTS / f.m, 1), TY_MIN(f.lines, (int64_t)(BUNCH * 4 / f.size)));
  if (f.bunch < 8 && f.m % 64 == 0) f.bunch = 1;           /* the first pass over one line has vectors of its own */
  size_t room = 0;
  for (int64_t left = f.m; left > 1; left /= ty_fourier_radix(left))
    if (ty_fourier_radix(left) > TY_FOURIER_BUILT) room = TY_MAX(room, TY_FOURIER_ROOM(ty_fourier_radix(left)));
  bool own;
  table *w = table_of(f.n, f.k == TY_IN_F64, &own);
  if (!w) return ty_no_memory(c->ctx, c->op->shown);
  TY_TRY(ty_lines(c->ctx, c->in[0].t, ty_fourier_in(f.kind, f.n), &x, &f.in));
  f.x = ty_data(x);
  f.w = (const char *)w->values;
  atomic_bool failed = false;
  const int64_t bunches = (f.lines + f.bunch - 1) / f.bunch;
  #pragma omp parallel num_threads(ty_threads_for(f.lines * f.n * 8))
  {
    char *work = ty_scratch(4 * ((size_t)((f.m + 1) * f.bunch) * f.size + APART) + room);
    if (!work) failed = true;
    #pragma omp for schedule(static)
    for (int64_t i = 0; i < bunches; i++)
      if (work) transform(&f, i * f.bunch, TY_MIN(f.bunch, f.lines - i * f.bunch), work);
    ty_scratch_free(work);
  }
  ty_release(x);
  if (own) free(w);
  return failed ? ty_no_memory(c->ctx, c->op->shown) : TY_OK;
}
