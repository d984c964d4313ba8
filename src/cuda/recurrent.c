/* Recurrent layers.
 *
 * Idea: each step is a product and a kernel, all queued in one call; the input's part of the products was made before, by one product
 * for all steps. Invariant: what backward needs of a step is in `saved`; cells, and gradients that go from step to step, are float32 at
 * least. */
#include "cuda.h"

enum { CELL, MORE, CARRY, DCELL, WORK };

typedef struct { ty_call *c; int gpu; cudaStream_t s; ty_recurrence r; ty_k_recurrence k; ty_tensor *work[WORK]; } layer;

static char *step_of(const ty_tensor *t, int64_t step) { return (char *)ty_data(t) + step * t->stride[0] * ty_itemsize(t); }
static int64_t time_of(const layer *l, int64_t step) { return l->r.reverse ? l->r.steps - 1 - step : step; }

/* o (n x cols) = a w, or a w^T + bias */
static ty_status multiply(layer *l, const void *a, const ty_tensor *w, const ty_tensor *bias, void *o, bool turned) {
  const int64_t rows = w->shape[0], cols = w->shape[1];
  const ty_k_product p = {.dtype = l->k.dtype, .m = l->r.n, .n = turned ? rows : cols, .k = turned ? cols : rows,
                          .batch = 1, .tb = turned, .lda = turned ? cols : rows, .ldb = cols, .a = a, .b = ty_data(w),
                          .bias = bias ? ty_data(bias) : NULL, .c = o};
  bool sums;
  return ty_cuda_multiply(l->c, l->gpu, &p, &sums);
}

static ty_status make(layer *l, int which, ty_dtype d, int64_t values) {
  return ty_cuda_new(l->c, l->gpu, d, 2, (int64_t[2]){l->r.n, values}, &l->work[which]);
}

static ty_status forward(layer *l, ty_tensor *const *in, ty_dtype stat) {      /* x, weight, bias, h0, c0 */
  ty_k_recurrence *k = &l->k;
  const ty_recurrence *r = &l->r;
  const ty_tensor *out = l->c->out[0], *saved = l->c->out[1];
  TY_TRY(make(l, MORE, k->dtype, r->gates * r->h));
  if (r->kind == TY_LSTM) {
    TY_TRY(make(l, CELL, stat, r->h));
    TY_TRY(ty_cuda_launched(l->c, l->gpu, ty_cuda_convert(l->work[CELL], in[4], l->s)));
    k->cell = ty_data(l->work[CELL]);
  }
  k->y = ty_data(l->work[MORE]);
  for (int64_t i = 0; i < r->steps; i++) {
    const int64_t t = time_of(l, i);
    k->before = i ? step_of(out, time_of(l, i - 1)) : ty_data(in[3]);
    k->x = step_of(in[0], t);
    k->o = step_of(out, t);
    k->saved = saved->shape[0] ? step_of(saved, t) : NULL;
    k->last = r->kind == TY_LSTM && i == r->steps - 1 ? step_of(out, r->steps) : NULL;
    TY_TRY(multiply(l, k->before, in[1], in[2], ty_data(l->work[MORE]), true));
    TY_TRY(ty_cuda_launched(l->c, l->gpu, ty_k_recurrent(k, l->s)));
  }
  return TY_OK;
}

static ty_status backward(layer *l, ty_tensor *const *in, ty_dtype stat) {     /* grad, weight, h0, c0, out, saved */
  ty_k_recurrence *k = &l->k;
  const ty_recurrence *r = &l->r;
  const ty_tensor *dx = l->c->out[0], *dy = r->kind == TY_GRU ? l->c->out[1] : dx;
  const int64_t item = ty_itemsize(dx);
  TY_TRY(make(l, CARRY, stat, r->h));
  TY_TRY(ty_cuda_launched(l->c, l->gpu, ty_cuda_fill_number(l->work[CARRY], ty_operand_int(0), l->s)));
  k->carry = ty_data(l->work[CARRY]);
  if (r->kind == TY_LSTM) {
    ty_tensor last = *l->work[CARRY];      /* the last cell's gradient, which follows the states' in memory */
    last.dtype = (uint8_t)k->dtype;
    last.storage = in[0]->storage;
    last.offset = in[0]->offset + r->steps * in[0]->stride[0];
    TY_TRY(make(l, DCELL, stat, r->h));
    TY_TRY(ty_cuda_launched(l->c, l->gpu, ty_cuda_convert(l->work[DCELL], &last, l->s)));
    k->dcell = ty_data(l->work[DCELL]);
  }
  for (int64_t i = r->steps - 1; i >= 0; i--) {
    const int64_t t = time_of(l, i);
    k->g = step_of(in[0], t);
    k->o = step_of(in[4], t);
    k->dx = step_of(dx, t);
    k->dy = step_of(dy, t);
    k->saved = r->kept ? step_of(in[5], t) : NULL;
    k->before = i ? step_of(in[4], time_of(l, i - 1)) : ty_data(in[2]);
    if (r->kind == TY_LSTM) {
      k->cell_before = i ? step_of(in[5], time_of(l, i - 1)) + 4 * r->h * item : ty_data(in[3]);
      k->cell_step = i ? 5 * r->h : r->h;
    }
    TY_TRY(ty_cuda_launched(l->c, l->gpu, ty_k_recurrent_back(k, l->s)));
    k->more = ty_data(l->c->out[2]);
    TY_TRY(multiply(l, k->dy, in[1], NULL, k->more, false));
  }
  k->g = NULL;
  k->last = r->kind == TY_LSTM ? ty_data(l->c->out[3]) : NULL;
  return ty_cuda_launched(l->c, l->gpu, ty_k_recurrent_back(k, l->s));
}

ty_status ty_cuda_recurrent(ty_call *c) {
  const bool back = c->op->id == TY_OP_recurrent_backward;
  const ty_dtype d = c->out[0]->dtype;
  layer l = {.c = c, .r = ty_recurrence_of(c)};
  ty_tensor *in[6] = {NULL};
  TY_TRY(ty_cuda_begin(c, &l.gpu, &l.s));
  if (ty_numel(c->out[0]) == 0) return TY_OK;
  l.k = (ty_k_recurrence){.kind = (int)l.r.kind, .dtype = d, .n = l.r.n, .h = l.r.h};
  ty_status s = ty_contiguous_operands(c, in);
  if (s == TY_OK) s = (back ? backward : forward)(&l, in, d == TY_F64 ? TY_F64 : TY_F32);
  for (int i = 0; i < 6; i++) ty_release(in[i]);
  for (int i = 0; i < WORK; i++) ty_release(l.work[i]);
  return s;
}
