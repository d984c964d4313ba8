/* ctc_loss: the forward variables of Graves et al. 2006, and their gradient: one step of time after the other, sequences shared out
 * among threads.
 *
 * Idea: a step is a few loops over the states of all of a thread's sequences. Besides the last variables there are what all steps
 * reached before their own probability counted (the first: with it); the gradient weighs by that what a state has come from. */
#include <string.h>
#include "cpu.h"

#define NEVER -1e30        /* the logarithm of 0, as ctc.lua's */

typedef struct {
  int64_t steps, n, s, from, m;              /* sequences, states; those from .. from + m / s - 1 are worked at, m states in all */
  const bool *skips;                         /* of the first one worked at */
  const int64_t *lengths;
  const char *logs, *grad;
  char *last, *reached, *slopes, *scratch;   /* scratch: 7 m elements */
} paths;

#define CTC(T, k) \
  /* what states may have come from: themselves, the one before, the one before that */ \
  static void came_from_##k(const paths *w, const T *was, T *one, T *two) { \
    for (int64_t i = 0; i < w->m; i += w->s) \
      for (int64_t j = 0; j < w->s; j++) { \
        one[i + j] = j ? was[i + j - 1] : (T)NEVER; \
        two[i + j] = j > 1 && w->skips[i + j] ? was[i + j - 2] : (T)NEVER; \
      } \
  } \
  static void forward_##k(const paths *w) { \
    const ty_loop logaddexp = ty_cpu_loops()->pointwise[TY_OP_logaddexp][k], add = ty_cpu_loops()->pointwise[TY_OP_add][k]; \
    const int64_t row = w->n * w->s, at = w->from * w->s; \
    const T *logs = (const T *)w->logs + at; \
    T *last = (T *)w->last + at, *reached = (T *)w->reached + at, *one = (T *)w->scratch, *two = one + w->m, *now = two + w->m; \
    for (int64_t i = 0; i < w->m; i++) last[i] = reached[i] = i % w->s < 2 ? logs[i] : (T)NEVER; \
    for (int64_t t = 1; t < w->steps; t++) { \
      T *r = reached + t * row; \
      came_from_##k(w, last, one, two); \
      logaddexp(r, last, one, NULL, w->m, 0, 0); \
      logaddexp(r, r, two, NULL, w->m, 0, 0); \
      add(now, r, logs + t * row, NULL, w->m, 1, 0); \
      for (int64_t i = 0; i < w->m; i += w->s) \
        if (t < w->lengths[i / w->s]) memcpy(last + i, now + i, sizeof(T) * (size_t)w->s); \
    } \
  } \
  static void backward_##k(const paths *w) { \
    const ty_loop sub = ty_cpu_loops()->pointwise[TY_OP_sub][k], add = ty_cpu_loops()->pointwise[TY_OP_add][k], \
      exponential = ty_cpu_loops()->pointwise[TY_OP_exp][k]; \
    const int64_t row = w->n * w->s, at = w->from * w->s, s = w->s, m = w->m; \
    const T *logs = (const T *)w->logs + at, *reached = (const T *)w->reached + at; \
    T *slopes = (T *)w->slopes + at, *g = (T *)w->scratch, *came[3] = {g + m, g + 2 * m, g + 3 * m}, *share = g + 4 * m; \
    memcpy(g, (const T *)w->grad + at, sizeof(T) * (size_t)m); \
    for (int64_t t = w->steps - 1; t > 0; t--) { \
      const T *before = reached + (t - 1) * row; \
      if (t > 1) add(came[0], before, logs + (t - 1) * row, NULL, m, 1, 0); \
      else memcpy(came[0], before, sizeof(T) * (size_t)m); \
      came_from_##k(w, came[0], came[1], came[2]); \
      for (int j = 0; j < 3; j++) sub(share + j * m, came[j], reached + t * row, NULL, m, 1, 0); \
      for (int64_t i = 0; i < 3 * m; i++) share[i] = share[i] < 0 ? share[i] : 0;         /* 0 - 0, as logarithms, is 0 */ \
      exponential(share, share, NULL, NULL, 3 * m, 0, 0); \
      for (int64_t i = 0; i < m; i += s) { \
        T *to = slopes + t * row + i, *d = g + i; \
        const T *p = share + i; \
        if (t >= w->lengths[i / s]) { memset(to, 0, sizeof(T) * (size_t)s); continue; } \
        memcpy(to, d, sizeof(T) * (size_t)s); \
        for (int64_t j = 0; j < s; j++) \
          d[j] = to[j] * p[j] + (j + 1 < s ? to[j + 1] * p[m + j + 1] : 0) + (j + 2 < s ? to[j + 2] * p[2 * m + j + 2] : 0); \
      } \
    } \
    for (int64_t i = 0; i < m; i++) slopes[i] = i % s < 2 ? g[i] : 0; \
  }
CTC(float, TY_IN_F32)
CTC(double, TY_IN_F64)

ty_status ty_cpu_align(ty_call *c) {
  const bool back = c->op->id == TY_OP_ctc_backward;
  ty_tensor *in[5] = {NULL};                 /* logs, skips, lengths; backward: grad before them, and what was reached after */
  ty_status st = TY_OK;
  int got = 0;
  for (; got < c->nin && st == TY_OK; got += st == TY_OK) st = ty_contiguous(c->ctx, c->in[got].t, &in[got]);
  if (st == TY_OK) {
    const ty_tensor *x = in[back];
    const int64_t n = x->shape[1], s = x->shape[2];
    const int threads = (int)TY_MAX(TY_MIN(ty_threads_for(ty_numel(x) * 4), n), 1);
    char *scratch = ty_scratch((size_t)(7 * n * s + 1) * (size_t)ty_itemsize(x));
    if (!scratch) st = ty_no_memory(c->ctx, c->op->shown);
    #pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int i = 0; i < (st == TY_OK ? threads : 0); i++) {
      const int64_t from = n * i / threads, to = n * (i + 1) / threads;
      const paths w = {.steps = x->shape[0], .n = n, .s = s, .from = from, .m = (to - from) * s,
        .skips = (const bool *)ty_data(in[back + 1]) + from * s, .lengths = (const int64_t *)ty_data(in[back + 2]) + from,
        .logs = ty_data(x), .grad = back ? ty_data(in[0]) : NULL, .last = back ? NULL : ty_data(c->out[0]),
        .reached = back ? ty_data(in[4]) : ty_data(c->out[1]), .slopes = back ? ty_data(c->out[0]) : NULL,
        .scratch = scratch + 7 * from * s * ty_itemsize(x)};
      if (x->dtype == TY_F32) (back ? backward_TY_IN_F32 : forward_TY_IN_F32)(&w);
      else (back ? backward_TY_IN_F64 : forward_TY_IN_F64)(&w);
    }
    ty_scratch_free(scratch);
  }
  while (got) ty_release(in[--got]);
  return st;
}
