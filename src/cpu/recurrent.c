/* Recurrent layers: all steps of a layer in one call.
 *
 * Idea: a step is a product of the previous state with the weight, and a loop over the units. Rows of the batch are independent: each
 * thread takes some rows through all steps, and none waits for another. Where there are few rows, one thread goes through the steps, and
 * the products use the threads. Where the processor multiplies bfloat16, products of it are oneDNN's. Invariant: a step reads the previous
 * state where the step before wrote it, in the results. */
#include <omp.h>
#include <string.h>
#include "cpu.h"

#define ROWS_EACH 8        /* least rows of a thread */
#define STEPS_TO_TURN 8    /* least steps whose products pay for transposing the weight */

typedef struct {
  ty_recurrence r;
  ty_loop_type k;
  int size;
  char *x, *w, *b, *h0, *c0, *out, *saved;
  bool turned;                                           /* forward: w is H x gates*H, not gates*H x H */
  char *g, *dx, *dy, *dh, *dc;                           /* backward: w is gates*H x H */
  const uint16_t *w16;                                   /* w beside zeros, for products of bfloat16, or NULL */
} job;

/* Row n of step t, in memory p of so many values a row. */
static char *row(const job *j, char *p, int64_t t, int64_t n, int64_t values) { return p + (t * j->r.n + n) * values * j->size; }

/* A thread's memory for a step: forward's products of the state, and what one row keeps; for bfloat16 the rows, and what they give. */
typedef struct { size_t scratch, rows, product, all; } room;
static room room_of(const job *j, int64_t rows, bool back) {
  const int64_t gates = j->r.gates * j->r.h, m = ty_up(rows, 16), most = TY_MAX(ty_up(gates, 32), ty_up(j->r.h, 32));
  room r = {.scratch = back ? 0 : (size_t)(rows * gates * j->size)};
  r.rows = ty_up((int64_t)r.scratch + (back ? 0 : j->r.kept * j->r.h * j->size), 64);
  r.product = r.rows + (j->w16 ? (size_t)(m * most) * sizeof(uint16_t) : 0);
  r.all = r.product + (j->w16 ? (size_t)(m * most) * sizeof(float) : 0);
  return r;
}

/* rows (n x k) by the weight, or by its transpose, in bfloat16: to (n x width), or added to it. False: nothing was done. */
static bool by_tile(const job *j, const char *from, int64_t n, bool turned, char *to, char *work, room at) {
  const int64_t gates = j->r.gates * j->r.h, m = ty_up(n, 16), k = turned ? j->r.h : gates, width = turned ? gates : j->r.h;
  const int64_t wide = ty_up(width, 32), deep = ty_up(k, 32);
  uint16_t *const rows = (void *)(work + at.rows);
  float *const product = (void *)(work + at.product), *const o = (void *)to;
  if (!j->w16) return false;
  ty_tile_rows(rows, deep, m, TY_F32, from, k, n, k);
  if (!ty_dnnl_tile(m, wide, deep, rows, false, j->w16, turned, false, product)) return false;
  for (int64_t i = 0; i < n; i++) {
    if (turned) memcpy(o + i * width, product + i * wide, (size_t)width * sizeof *o);
    else for (int64_t q = 0; q < width; q++) o[i * width + q] += product[i * wide + q];
  }
  return true;
}

static void forward(const job *j, int64_t from, int64_t to, char *work) {
  const ty_recurrence *r = &j->r;
  const ty_loops *l = ty_cpu_loops();
  const int64_t gates = r->gates * r->h, kept = r->kept * r->h;
  const room at = room_of(j, to - from, false);
  char *const scratch = work + at.scratch;
  if (j->c0) memcpy(row(j, j->out, r->steps, from, r->h), row(j, j->c0, 0, from, r->h), (size_t)((to - from) * r->h * j->size));
  for (int64_t s = 0; s < r->steps; s++) {
    const int64_t t = r->reverse ? r->steps - 1 - s : s, before = r->reverse ? t + 1 : t - 1;
    char *h = s ? row(j, j->out, before, from, r->h) : row(j, j->h0, 0, from, r->h);
    if (!by_tile(j, h, to - from, true, work, work, at))
      ty_gemm(j->k, 0, !j->turned, to - from, gates, r->h, h, r->h, j->w, j->turned ? gates : r->h, 0, work, gates);
    for (int64_t n = from; n < to; n++) {
      const int64_t i = n - from;
      const ty_cell cell = {.o = row(j, j->out, t, n, r->h), .c = row(j, j->out, r->steps, n, r->h),
                            .s = j->saved ? row(j, j->saved, t, n, kept) : scratch, .x = row(j, j->x, t, n, gates),
                            .y = work + i * gates * j->size, .b = j->b, .h = h + i * r->h * j->size};
      l->recurrent[j->k](r->kind, &cell, r->h);
    }
  }
}

static void backward(const job *j, int64_t from, int64_t to, char *work) {
  const ty_recurrence *r = &j->r;
  const ty_loops *l = ty_cpu_loops();
  const int64_t gates = r->gates * r->h, kept = r->kept * r->h;
  const size_t rows = (size_t)((to - from) * r->h * j->size);
  const room at = room_of(j, to - from, true);
  memset(row(j, j->dh, 0, from, r->h), 0, rows);
  if (j->dc) memcpy(row(j, j->dc, 0, from, r->h), row(j, j->g, r->steps, from, r->h), rows);
  for (int64_t s = r->steps - 1; s >= 0; s--) {
    const int64_t t = r->reverse ? r->steps - 1 - s : s, before = r->reverse ? t + 1 : t - 1;
    for (int64_t n = from; n < to; n++) {
      const ty_cell_back cell = {.dh = row(j, j->dh, 0, n, r->h), .dc = j->dc ? row(j, j->dc, 0, n, r->h) : NULL,
                                 .dx = row(j, j->dx, t, n, gates), .dy = j->dy ? row(j, j->dy, t, n, gates) : NULL,
                                 .g = row(j, j->g, t, n, r->h), .s = kept ? row(j, j->saved, t, n, kept) : NULL,
                                 .o = row(j, j->out, t, n, r->h),
                                 .h = s ? row(j, j->out, before, n, r->h) : row(j, j->h0, 0, n, r->h),
                                 .c = !j->c0 ? NULL : s ? row(j, j->saved, before, n, kept) + 4 * r->h * j->size
                                 : row(j, j->c0, 0, n, r->h)};
      l->recurrent_backward[j->k](r->kind, &cell, r->h);
    }
    char *const slopes = row(j, j->dy ? j->dy : j->dx, t, from, gates), *const dh = row(j, j->dh, 0, from, r->h);
    if (!by_tile(j, slopes, to - from, false, dh, work, at))
      ty_gemm(j->k, 0, 0, to - from, r->h, gates, slopes, gates, j->w, r->h, 1, dh, r->h);
  }
}

static void each_part(const job *j, int threads, char *work, size_t need,
  void (*part)(const job *j, int64_t from, int64_t to, char *work)) {
  if (threads > 1) {
    #pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) part(j, j->r.n * i / threads, j->r.n * (i + 1) / threads, work + need * (size_t)i);
  } else part(j, 0, j->r.n, work);
}

static void *data_of(const ty_tensor *t) { return t && ty_numel(t) ? ty_data(t) : NULL; }

/* native: the operands were bfloat16 */
static ty_status compute(ty_call *c, bool native) {
  const bool back = c->op->id == TY_OP_recurrent_backward;
  const ty_dtype d = c->out[0]->dtype;
  job j = {.r = ty_recurrence_of(c), .k = ty_loop_type_of(d), .size = ty_dtype_size[d]};
  const ty_recurrence *r = &j.r;
  ty_tensor *t[6] = {NULL};
  uint16_t *w16 = NULL;
  if (ty_numel(c->out[0]) == 0) return TY_OK;
  ty_status s = ty_contiguous_operands(c, t);
  const int64_t gates = r->gates * r->h, wide = ty_up(r->h, 32), high = ty_up(gates, 32);
  const int threads = TY_MIN(ty_threads_for(r->steps * r->n * gates * r->h / 8), (int)TY_MAX(r->n / ROWS_EACH, 1));
  const int64_t rows = (r->n + threads - 1) / threads;
  if (s == TY_OK && native && ty_tile_pays(rows, gates, r->h)) w16 = ty_scratch(sizeof *w16 * (size_t)(high * wide));
  if (w16) ty_tile_rows(w16, wide, high, TY_F32, ty_data(t[1]), r->h, gates, r->h);
  j.w16 = w16;
  j.turned = !back && r->steps >= STEPS_TO_TURN && ty_gemm_prefers_turned(j.k, rows);
  const size_t need = (size_t)ty_up((int64_t)room_of(&j, rows, back).all, 64);
  char *work = s != TY_OK ? NULL : ty_scratch(need * (size_t)threads + (size_t)((1 + (j.turned ? r->h : 0)) * gates * j.size));
  if (s == TY_OK && !work) s = ty_no_memory(c->ctx, c->op->shown);
  if (s == TY_OK && back) {
    j.g = ty_data(t[0]); j.w = ty_data(t[1]); j.h0 = ty_data(t[2]); j.c0 = data_of(t[3]); j.out = ty_data(t[4]); j.saved = data_of(t[5]);
    j.dx = ty_data(c->out[0]); j.dy = data_of(c->out[1]); j.dh = ty_data(c->out[2]); j.dc = data_of(c->out[3]);
    each_part(&j, threads, work, need, backward);
  } else if (s == TY_OK) {
    j.x = ty_data(t[0]); j.h0 = ty_data(t[3]); j.c0 = data_of(t[4]); j.out = ty_data(c->out[0]); j.saved = data_of(c->out[1]);
    j.b = work + need * (size_t)threads;
    j.w = ty_data(t[1]);
    if (j.turned) {
      TY_OF_SIZE(ty_cpu_loops()->transpose, ty_loop_size[j.k])(j.b + gates * j.size, gates, j.w, r->h, gates, r->h);
      j.w = j.b + gates * j.size;
    }
    if (t[2]) memcpy(j.b, ty_data(t[2]), (size_t)(gates * j.size));
    else memset(j.b, 0, (size_t)(gates * j.size));
    each_part(&j, threads, work, need, forward);
  }
  ty_scratch_free(work);
  ty_scratch_free(w16);
  for (int i = 0; i < 6; i++) ty_release(t[i]);
  return s;
}
static ty_status run(ty_call *c) { return compute(c, false); }
static ty_status run_native(ty_call *c) { return compute(c, true); }

ty_status ty_cpu_recurrent(ty_call *c) { return ty_widened(c, c->out[0]->dtype == TY_BF16 ? run_native : run); }
