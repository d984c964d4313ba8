/* Random numbers. Invariant: element i, in logical order, takes word i % 4 of Philox block offset + i / 4 (core/rng.c), whichever
 * thread computes it. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"
#include "augment.h"
#include "draws.h"
#include "math.h"

#define BLOCKS 128          /* Philox blocks made at a time */

/* low, high: of uniform numbers; mean, std: of normal ones */
typedef struct { ty_call *c; const char *x; int64_t n; ty_generator g; double low, high, mean, std; } job;

/* float64 numbers, whose lower bits are words by another seed; at is a multiple of 4. */
static void emit_f64(const job *j, double *o, int64_t at, int64_t n, const uint32_t *high) {
  const ty_call *c = j->c;
  const int id = c->op->id;
  const bool normal = id == TY_OP_randn || id == TY_OP_normal;
  const double most = normal || id == TY_OP_exponential ? 0 : ty_uniform_most(j->low, j->high, TY_F64);
  for (int64_t i = 0; i < n; i += 4) {
    uint32_t low[4];
    double v[4];
    ty_philox(~j->g.seed, j->g.offset + (uint64_t)(at + i) / 4, low);
    for (int k = 0; k < 4; k++) {
      if (normal && k % 2 == 0) ty_normal2_f64(high + i + k, low + k, &v[k], &v[k + 1]);
      if (normal) v[k] = j->mean + j->std * v[k];
      else if (id == TY_OP_exponential) v[k] = -log(ty_uniform_open_f64(high[i + k], low[k])) / c->at[TY_AT_exponential_lambd].f;
      else v[k] = TY_MIN(j->low + (j->high - j->low) * ty_uniform_f64(high[i + k], low[k]), most);
    }
    memcpy(o + i, v, sizeof *o * (size_t)TY_MIN(n - i, 4));
  }
}

/* Elements [at, at + n) of a contiguous result from their words. */
static void emit(const job *j, int64_t at, int64_t n, const uint32_t *r) {
  const ty_call *c = j->c;
  ty_tensor *o = c->out[0];
  ty_dtype d = o->dtype;
  int id = c->op->id, size = ty_itemsize(o);
  char *p = (char *)ty_data(o) + at * size;
  float buf[4 * BLOCKS];
  const bool real = id == TY_OP_rand || id == TY_OP_uniform || id == TY_OP_randn || id == TY_OP_normal || id == TY_OP_exponential;
  if (d == TY_F64 && real) { emit_f64(j, (double *)p, at, n, r); return; }
  switch (id) {
    case TY_OP_randint: {
      uint64_t range = (uint64_t)c->at[TY_AT_randint_high].i - (uint64_t)c->at[TY_AT_randint_low].i + 1;   /* 0: 2^64 */
      const uint64_t least = (uint64_t)c->at[TY_AT_randint_low].i;
      uint64_t v[4 * BLOCKS];
      uint32_t low[4] = {0};
      if (range && range <= UINT32_MAX) for (int64_t i = 0; i < n; i++) v[i] = least + ty_random_below(range, r[i], 0);
      else for (int64_t i = 0; i < n; i++) {
        if (i % 4 == 0) ty_philox(~j->g.seed, j->g.offset + (uint64_t)(at + i) / 4, low);        /* the words' lower halves */
        v[i] = least + ty_random_below(range, r[i], low[i % 4]);
      }
      ty_cpu_loops()->store[d][TY_IN_I64](p, 1, v, n);
      return;
    }
    case TY_OP_bernoulli:
      for (int64_t i = 0; i < n; i++) ty_set(p + i * size, d, ty_uniform(r[i]) < ty_get(j->x + (at + i) * size, d));
      return;
    case TY_OP_dropout_mask: {
      uint8_t *mask = (uint8_t *)ty_data(c->out[1]) + at;
      const double drop = c->at[TY_AT_dropout_mask_p].f, scale = drop < 1 ? 1 / (1 - drop) : 0;
      const uint32_t least = ty_least_kept(drop);
      for (int64_t i = 0; i < n; i++) mask[i] = r[i] >> 8 >= least;
      if (d == TY_F32) for (int64_t i = 0; i < n; i++) {        /* without a branch, which couldn't be predicted */
        const union { float f; uint32_t u; } v = {.f = ((const float *)j->x)[at + i] * (float)scale};
        const uint32_t kept = v.u & -(uint32_t)mask[i];
        memcpy(p + 4 * i, &kept, 4);
      }
      else if (d == TY_F64) for (int64_t i = 0; i < n; i++) ((double *)p)[i] = mask[i] ? ((const double *)j->x)[at + i] * scale : 0;
      else for (int64_t i = 0; i < n; i++) ty_set(p + i * size, d, mask[i] ? (float)ty_get(j->x + (at + i) * size, d) * (float)scale : 0);
      return;
    }
    case TY_OP_exponential:
      for (int64_t i = 0; i < n; i++) ty_set(p + i * size, d, -log((double)ty_uniform_open(r[i])) / c->at[TY_AT_exponential_lambd].f);
      return;
    case TY_OP_randn: case TY_OP_normal:
      ty_cpu_loops()->normal(buf, r, (n + 3) / 4 * 4);
      if (d == TY_F32 && id == TY_OP_randn) memcpy(p, buf, (size_t)n * 4);
      else if (d == TY_F32) for (int64_t i = 0; i < n; i++) ((float *)p)[i] = (float)(j->mean + j->std * buf[i]);
      else for (int64_t i = 0; i < n; i++) ty_set(p + i * size, d, j->mean + j->std * buf[i]);
      return;
    default: {
      const double lo = j->low, hi = j->high;
      if (d == TY_F32 && lo == 0 && hi == 1) {
        for (int64_t i = 0; i < n; i++) ((float *)p)[i] = ty_uniform(r[i]);
        return;
      }
      const double most = ty_uniform_most(lo, hi, d);
      int keep = d == TY_F16 ? 11 : d == TY_BF16 ? 8 : 24;    /* significant bits of the dtype */
      for (int64_t i = 0; i < n; i++) {
        double v = TY_MIN(lo + (hi - lo) * ty_uniform(r[i] >> (32 - keep) << (32 - keep)), most);
        if (d == TY_F32) ((float *)p)[i] = (float)v;
        else ty_set(p + i * size, d, v);
      }
    }
  }
}

/* Pairs go by key, then by position. */
static bool before(ty_pair x, ty_pair y) { return x.key < y.key || (x.key == y.key && x.at < y.at); }

/* The n least of m pairs, in order, as the first ones of what is returned: few are kept by insertion; for many, all pairs are sorted. */
static const ty_pair *least_first(ty_pair *a, ty_pair *spare, int64_t m, int64_t n) {
  if (n > 32) return ty_sort_pairs(a, spare, m);
  for (int64_t i = 1; i < m; i++) {
    const ty_pair c = a[i];
    int64_t j = TY_MIN(i, n);
    if (i >= n && !before(c, a[n - 1])) continue;
    for (j -= i >= n; j > 0 && before(c, a[j - 1]); j--) a[j] = a[j - 1];
    a[j] = c;
  }
  return a;
}

/* The 64-bit number by which a permutation orders element i; a Philox block gives two. */
static uint64_t number_of(ty_generator g, uint64_t i) {
  uint32_t r[4];
  ty_cpu_loops()->philox(r, g.seed, g.offset + i / 2, 1);
  return (uint64_t)r[i % 2 * 2] << 32 | r[i % 2 * 2 + 1];
}
/* Compares words, which are a number's upper bits and a position: if the bits agree, by the numbers' other bits, then by position. */
static bool word_before(uint64_t x, uint64_t y, int low, ty_generator g) {
  if (x >> low != y >> low) return x < y;
  const uint64_t at = ((uint64_t)1 << low) - 1, nx = number_of(g, x & at), ny = number_of(g, y & at);
  return nx < ny || (nx == ny && x < y);
}

/* Sorts positions by their random numbers: by radix for as many bits as tell most of them apart, then by insertion. */
static ty_status permutation(ty_call *c) {
  ty_tensor *o = c->out[0];
  int64_t n = o->shape[0];
  const ty_generator g = ty_cpu_take(c->ctx, (uint64_t)(n + 1) / 2);
  const int low = ty_bits_for((uint64_t)n), told = TY_MIN(low, 64 - low);
  uint64_t *word = ty_scratch(2 * sizeof *word * (size_t)TY_MAX(n, 1)), *room = word;
  if (!room) return ty_no_memory(c->ctx, c->op->shown);
  #pragma omp parallel for num_threads(ty_threads_for(n * 4)) schedule(static)
  for (int64_t at = 0; at < n; at += 2 * BLOCKS) {
    uint32_t r[4 * BLOCKS];
    const int64_t m = TY_MIN(2 * BLOCKS, n - at);
    ty_cpu_loops()->philox(r, g.seed, g.offset + (uint64_t)at / 2, (m + 1) / 2);
    for (int64_t i = 0; i < m; i++) word[at + i] = ((uint64_t)r[2 * i] << 32 | r[2 * i + 1]) >> low << low | (uint64_t)(at + i);
  }
  word = ty_sort_words(word, word + n, n, 64 - told, 64);
  for (int64_t i = 1; i < n; i++) {
    const uint64_t w = word[i];
    int64_t j = i;
    for (; j > 0 && word_before(w, word[j - 1], low, g); j--) word[j] = word[j - 1];
    word[j] = w;
  }
  for (int64_t i = 0; i < n; i++) word[i] = (word[i] & (((uint64_t)1 << low) - 1)) + 1;
  ty_cpu_loops()->store[o->dtype][TY_IN_I64](ty_data(o), 1, word, n);
  ty_scratch_free(room);
  return TY_OK;
}

/* Checks row r of m weights, at least `need` of which must be above 0. */
static ty_status check_row(ty_call *c, const double *p, int64_t r, int64_t m, int64_t need) {
  int64_t likely = 0;
  for (int64_t i = 0; i < m; i++) {
    if (!(p[i] >= 0) || p[i] == INFINITY)
      return ty_fail(c, "element %lld of row %lld is %g; probabilities must be finite and not negative", (long long)i + 1,
        (long long)r + 1, p[i]);
    likely += p[i] > 0;
  }
  return likely >= need ? TY_OK : ty_fail(c, "row %lld has %lld elements above 0; %lld indices can't be drawn from it", (long long)r + 1,
    (long long)likely, (long long)c->at[TY_AT_multinomial_n].i);
}

/* With replacement: by position in the running sums. Without: the largest of log(u) / p, in order (Efraimidis & Spirakis 2006). */
static ty_status multinomial(ty_call *c) {
  ty_tensor *x, *o = c->out[0];
  int64_t n = c->at[TY_AT_multinomial_n].i, m = c->in[0].t->shape[c->in[0].t->ndim - 1], rows = ty_numel(o) / n, *out = ty_data(o);
  bool replace = c->at[TY_AT_multinomial_replacement].i;
  TY_TRY(ty_cast(c->ctx, c->in[0].t, TY_F64, &x));
  ty_tensor *y;
  ty_status s = ty_contiguous(c->ctx, x, &y);
  ty_release(x);
  if (s != TY_OK) return s;
  ty_pair *pairs = ty_scratch(2 * sizeof(ty_pair) * (size_t)m);
  double *sum = ty_scratch(sizeof(double) * (size_t)m);
  if (!pairs || !sum) s = ty_no_memory(c->ctx, c->op->shown);
  for (int64_t r = 0; r < rows && s == TY_OK; r++) s = check_row(c, (double *)ty_data(y) + r * m, r, m, replace ? 1 : n);
  const int64_t each = replace ? n : m;
  const ty_generator g = s == TY_OK ? ty_cpu_take(c->ctx, (uint64_t)(rows * each)) : (ty_generator){0, 0};
  for (int64_t r = 0; r < rows && s == TY_OK; r++) {
    const double *p = (double *)ty_data(y) + r * m;
    double total = 0;
    for (int64_t i = 0; i < m; i++) sum[i] = total += p[i];
    for (int64_t i = 0; i < each; i++) {
      uint32_t w[4];
      ty_philox(g.seed, g.offset + (uint64_t)(r * each + i), w);
      double u = ty_unit(w[0], w[1]);
      if (!replace) {
        double key = p[i] > 0 ? TY_MIN(-log(u) / p[i], DBL_MAX) : INFINITY;       /* not negative: so its bits sort as it does */
        memcpy(&pairs[i].key, &key, 8);
        pairs[i].at = i;
        continue;
      }
      int64_t lo = 0, hi = m - 1;
      while (lo < hi) { int64_t mid = (lo + hi) / 2; if (sum[mid] > u * total) hi = mid; else lo = mid + 1; }
      while (p[lo] == 0) lo--;                                   /* rounding at the end */
      out[r * n + i] = lo + 1;
    }
    if (!replace) {
      const ty_pair *first = least_first(pairs, pairs + m, m, n);
      for (int64_t i = 0; i < n; i++) out[r * n + i] = first[i].at + 1;
    }
  }
  ty_scratch_free(pairs);
  ty_scratch_free(sum);
  ty_release(y);
  return s;
}

static ty_status augment(ty_call *c) {
  ty_tensor *in[4] = {NULL}, *o = c->out[0];
  ty_augment a;
  ty_augment_of(c, &a);
  ty_status st = ty_contiguous_operands(c, in);
  const int64_t *index = st == TY_OK ? ty_data(in[1]) : NULL;
  for (int64_t b = 0; b < a.batch && st == TY_OK; b++)
    if (index[b] < 1 || index[b] > a.n) st = ty_fail(c, "index %lld is out of range 1 to %lld", (long long)index[b], (long long)a.n);
  if (st == TY_OK) {
    const uint8_t *x = ty_data(in[0]);
    const float *mean = ty_data(in[2]), *std = ty_data(in[3]);
    const ty_generator now = ty_cpu_take(c->ctx, a.random ? (uint64_t)a.batch : 0);
    const int64_t plane = a.oh * a.ow, per = a.c * plane, size = ty_itemsize(o);
    #pragma omp parallel for num_threads(ty_threads_for(a.batch * per)) schedule(static)
    for (int64_t b = 0; b < a.batch; b++) {
      const ty_augmented d = ty_augment_draw(&a, now.seed, now.offset + (uint64_t)b);
      for (int64_t i = 0; i < per; i++) {
        const int64_t k = i / plane;
        const float v = ty_augment_pixel(&a, &d, x + ((index[b] - 1) * a.c + k) * a.h * a.w, i % plane / a.ow, i % a.ow, mean[k], std[k]);
        char *to = (char *)ty_data(o) + (b * per + i) * size;
        if (o->dtype == TY_F32) *(float *)to = v;
        else ty_set(to, o->dtype, v);
      }
    }
  }
  for (int i = 0; i < 4; i++) ty_release(in[i]);
  return st;
}

/* The first of n numbers that isn't a probability, or n. */
static int64_t improbable(const char *x, ty_dtype d, int64_t n) {
  const float *f = (const void *)x;
  bool fits = d == TY_F32;
  for (int64_t i = 0; d == TY_F32 && i < n; i++) fits &= (f[i] >= 0) & (f[i] <= 1);
  for (int64_t i = 0; !fits && i < n; i++) {
    const double p = ty_get(x + i * ty_dtype_size[d], d);
    if (!(p >= 0 && p <= 1)) return i;
  }
  return n;
}

static ty_status drawn(ty_call *c) {
  const int kind = (int)c->at[TY_AT_drawn_kind].i;
  const int64_t n = ty_numel(c->out[0]);
  ty_tensor *x, *y = NULL;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  if (c->in[1].t) {
    const ty_status s = ty_contiguous(c->ctx, c->in[1].t, &y);
    if (s != TY_OK) { ty_release(x); return s; }
  }
  const ty_generator g = ty_cpu_take(c->ctx, (uint64_t)n * TY_DRAW_BLOCKS);
  const double *a = ty_data(x), *b = y ? ty_data(y) : a;
  double *o = ty_data(c->out[0]);
  #pragma omp parallel for num_threads(ty_threads_for(n * 64)) schedule(static)
  for (int64_t i = 0; i < n; i++) o[i] = ty_draw(kind, a[i], b[i], g.seed, g.offset + (uint64_t)i * TY_DRAW_BLOCKS);
  ty_release(x);
  ty_release(y);
  return TY_OK;
}

/* Copies the generator's state to a tensor, or from one. */
static ty_status state(ty_call *c) {
  ty_tensor *t;
  if (c->op->id == TY_OP_rng_state) { *(ty_generator *)ty_data(c->out[0]) = ty_cpu_generator(c->ctx); return TY_OK; }
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &t));
  ty_cpu_seed(c->ctx, *(ty_generator *)ty_data(t));
  ty_release(t);
  return TY_OK;
}

ty_status ty_cpu_random(ty_call *c) {
  if (c->op->id == TY_OP_rng_state || c->op->id == TY_OP_set_rng_state) return state(c);
  int64_t n = ty_numel(c->out[0]);
  const bool uniform = c->op->id == TY_OP_uniform, normal = c->op->id == TY_OP_normal;
  job j = {.c = c, .n = n, .low = uniform ? c->at[TY_AT_uniform_low].f : 0, .high = uniform ? c->at[TY_AT_uniform_high].f : 1,
           .mean = normal ? c->at[TY_AT_normal_mean].f : 0, .std = normal ? c->at[TY_AT_normal_std].f : 1};
  ty_tensor *x = NULL;
  if (c->op->id == TY_OP_multinomial) return n ? multinomial(c) : TY_OK;
  if (c->op->id == TY_OP_augment) return n ? augment(c) : TY_OK;
  if (c->op->id == TY_OP_drawn) return n ? drawn(c) : TY_OK;
  if (c->op->id == TY_OP_randperm) return permutation(c);
  if (c->nin) {
    TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
    j.x = ty_data(x);
  }
  const int64_t bad = c->op->id == TY_OP_bernoulli ? improbable(j.x, x->dtype, n) : n;
  if (bad < n) {
    const double p = ty_get(j.x + bad * ty_itemsize(x), x->dtype);
    ty_release(x);
    return ty_fail(c, "argument 1 must hold probabilities, from 0 to 1, got %g", p);
  }
  j.g = ty_cpu_take(c->ctx, (uint64_t)(n + 3) / 4);
  int64_t chunk = 4 * BLOCKS;
  #pragma omp parallel for num_threads(ty_threads_for(n * 4)) schedule(static)
  for (int64_t at = 0; at < n; at += chunk) {
    uint32_t words[4 * BLOCKS];
    int64_t m = TY_MIN(chunk, n - at);
    ty_cpu_loops()->philox(words, j.g.seed, j.g.offset + (uint64_t)at / 4, (m + 3) / 4);
    emit(&j, at, m, words);
  }
  ty_release(x);
  return TY_OK;
}
