/* Creation: sequences, random numbers, permutations, draws, by kernels/fill.cu.
 *
 * Invariant: the device reads and advances the generator's offset between ty_generator_begin and ty_generator_end, in the order of the
 * calls, whatever their streams (turns). */
#include "cuda.h"

/* ---- creation ---- */

ty_status ty_cuda_fill(ty_call *c) {
  const ty_tensor *o = c->out[0];
  const ty_attr *a = c->at;
  int gpu;
  cudaStream_t s;
  cudaError_t e = cudaSuccess;
  const int64_t n = ty_numel(o);
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  if (n == 0) return TY_OK;
  switch (c->op->id) {
    case TY_OP_empty: break;
    case TY_OP_zeros: e = cudaMemsetAsync(ty_data(o), 0, (size_t)(n * ty_itemsize(o)), s); break;
    case TY_OP_ones: e = ty_cuda_fill_number(o, ty_operand_int(1), s); break;
    case TY_OP_full: e = ty_cuda_fill_number(o, ty_any_number(&a[TY_AT_full_value]), s); break;
    case TY_OP_range: {
      const double first = a[TY_AT_range_first].f, step = a[TY_AT_range_step].f;
      e = ty_k_sequence(ty_data(o), o->dtype, n, first, step, first + (double)(n - 1) * step, s);
      break;
    }
    case TY_OP_linspace: {
      const double first = a[TY_AT_linspace_first].f, last = n > 1 ? a[TY_AT_linspace_last].f : first;
      e = ty_k_sequence(ty_data(o), o->dtype, n, first, n > 1 ? (last - first) / (double)(n - 1) : 0, last, s);
      break;
    }
    default: e = ty_k_eye(ty_data(o), o->dtype, o->shape[0], o->shape[1], s);
  }
  return ty_cuda_launched(c, gpu, e);
}

/* ---- random numbers ---- */

/* randperm: the order of random keys. */
static ty_status permutation(ty_call *c, int gpu, cudaStream_t s) {
  ty_tensor *keys = NULL, *places = NULL, *o = c->out[0];
  const ty_meta m = {.dtype = TY_I64, .ndim = 1, .shape = {o->shape[0]}};
  ty_k_sorting k = {.dtype = TY_I64, .lines = 1, .n = o->shape[0], .take = o->shape[0]};
  ty_status st = ty_empty(c->ctx, &ty_gpus[gpu], &m, &keys);
  if (st == TY_OK && o->dtype != TY_I64) st = ty_empty(c->ctx, &ty_gpus[gpu], &m, &places);
  if (st == TY_OK)
    st = ty_cuda_launched(c, gpu, ty_generator_end(gpu, ty_k_keys(ty_data(keys), NULL, k.n, 2, ty_generator_begin(c->ctx, gpu), s)));
  if (st == TY_OK) {
    k.x = ty_data(keys);
    k.places = ty_data(places ? places : o);
    st = ty_cuda_sort_lines(c, gpu, s, &k);
  }
  if (st == TY_OK && places) st = ty_cuda_launched(c, gpu, ty_cuda_convert(o, places, s));
  ty_release(keys);
  ty_release(places);
  return st;
}

/* As on the CPU: with replacement by running sums, else the first of an order of random keys. Rows that can't be drawn from are
 * reported later. */
static ty_status multinomial(ty_call *c, int gpu, cudaStream_t s) {
  const ty_tensor *t = c->in[0].t;
  ty_tensor *x, *p = NULL, *work = NULL, *o = c->out[0];
  const int64_t n = c->at[TY_AT_multinomial_n].i, m = t->shape[t->ndim - 1], rows = ty_numel(o) / n;
  const bool replace = c->at[TY_AT_multinomial_replacement].i;
  const ty_meta meta = {.dtype = TY_F64, .ndim = 1, .shape = {rows * m}};
  TY_TRY(ty_cast(c->ctx, (ty_tensor *)t, TY_F64, &x));
  ty_status st = ty_contiguous(c->ctx, x, &p);
  ty_release(x);
  if (st == TY_OK) st = ty_empty(c->ctx, &ty_gpus[gpu], &meta, &work);
  if (st == TY_OK)
    st = ty_cuda_launched(c, gpu, ty_k_check_weights(ty_data(p), rows, m, replace ? 1 : n, ty_cuda_fault_of(gpu), ty_cuda_site(c), s));
  if (st == TY_OK && replace) {
    ty_k_scan k = {.k = TY_IN_F64, .op = TY_OP_cumsum, .dtype = TY_F64, .lines = rows, .n = m, .inner = 1, .x = ty_data(p),
                   .o = ty_data(work)};
    st = ty_cuda_scan_lines(c, gpu, s, &k);
    if (st == TY_OK) {
      const cudaError_t e = ty_k_draws(ty_data(o), ty_data(work), rows, m, n, ty_generator_begin(c->ctx, gpu), s);
      st = ty_cuda_launched(c, gpu, ty_generator_end(gpu, e));
    }
  } else if (st == TY_OK) {
    ty_k_sorting k = {.dtype = TY_F64, .lines = rows, .n = m, .take = n, .x = ty_data(work), .places = ty_data(o)};
    const cudaError_t e = ty_k_keys(ty_data(work), ty_data(p), rows * m, 1, ty_generator_begin(c->ctx, gpu), s);
    st = ty_cuda_launched(c, gpu, ty_generator_end(gpu, e));
    if (st == TY_OK) st = ty_cuda_sort_lines(c, gpu, s, &k);
  }
  ty_release(p);
  ty_release(work);
  return st;
}

static ty_status augment(ty_call *c, int gpu, cudaStream_t s) {
  ty_tensor *in[4] = {NULL}, *o = c->out[0];
  ty_status st = ty_contiguous_operands(c, in);
  if (st == TY_OK) {
    ty_k_augmenting k = {.site = ty_cuda_site(c), .dtype = o->dtype, .x = ty_data(in[0]), .index = ty_data(in[1]),
                               .mean = ty_data(in[2]), .std = ty_data(in[3]), .o = ty_data(o), .fault = ty_cuda_fault_of(gpu)};
    ty_augment_of(c, &k.a);
    k.g = ty_generator_begin(c->ctx, gpu);
    st = ty_cuda_launched(c, gpu, ty_generator_end(gpu, ty_k_augment(&k, s)));
  }
  for (int i = 0; i < 4; i++) ty_release(in[i]);
  return st;
}

static ty_status drawn(ty_call *c, int gpu, cudaStream_t s) {
  ty_tensor *x, *y = NULL;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  ty_status st = c->in[1].t ? ty_contiguous(c->ctx, c->in[1].t, &y) : TY_OK;
  if (st == TY_OK) {
    const cudaError_t e = ty_k_drawn(ty_data(c->out[0]), ty_data(x), y ? ty_data(y) : NULL, ty_numel(c->out[0]),
      (int)c->at[TY_AT_drawn_kind].i, ty_generator_begin(c->ctx, gpu), s);
    st = ty_cuda_launched(c, gpu, ty_generator_end(gpu, e));
  }
  ty_release(x);
  ty_release(y);
  return st;
}

/* Copies the generator's state to a tensor, or from one; nothing waits. */
static ty_status state(ty_call *c) {
  const bool set = c->op->id == TY_OP_set_rng_state;
  int gpu;
  cudaStream_t s;
  ty_tensor *t;
  TY_TRY(ty_contiguous(c->ctx, set ? c->in[0].t : c->out[0], &t));
  ty_status st = ty_cuda_begin(c, &gpu, &s);
  if (st == TY_OK) {
    void *g = ty_generator_begin(c->ctx, gpu);
    st = ty_cuda_launched(c, gpu, ty_generator_end(gpu,
      cudaMemcpyAsync(set ? g : ty_data(t), set ? ty_data(t) : g, 2 * sizeof(uint64_t), cudaMemcpyDeviceToDevice, s)));
  }
  ty_release(t);
  return st;
}

ty_status ty_cuda_random(ty_call *c) {
  if (c->op->id == TY_OP_rng_state || c->op->id == TY_OP_set_rng_state) return state(c);
  const ty_tensor *o = c->out[0];
  int gpu;
  cudaStream_t s;
  ty_tensor *x = NULL;
  ty_k_draw d = {.op = c->op->id, .dtype = o->dtype, .n = ty_numel(o), .o = ty_data(o)};
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  if (d.n == 0) return TY_OK;
  switch (c->op->id) {
    case TY_OP_rand: d.b = 1; d.most = ty_uniform_most(0, 1, o->dtype); break;
    case TY_OP_randn: d.b = 1; break;
    case TY_OP_randint: d.low = c->at[TY_AT_randint_low].i; d.high = c->at[TY_AT_randint_high].i; break;
    case TY_OP_uniform: case TY_OP_normal: d.a = c->at[TY_AT_uniform_low].f; d.b = c->at[TY_AT_uniform_high].f;
      if (c->op->id == TY_OP_uniform) d.most = ty_uniform_most(d.a, d.b, o->dtype);
      break;
    case TY_OP_exponential: case TY_OP_dropout_mask: d.a = c->at[TY_AT_exponential_lambd].f; break;
    case TY_OP_randperm: return permutation(c, gpu, s);
    case TY_OP_multinomial: return multinomial(c, gpu, s);
    case TY_OP_augment: return augment(c, gpu, s);
    case TY_OP_drawn: return drawn(c, gpu, s);
    default: break;                        /* bernoulli has no attributes */
  }
  if (c->op->id == TY_OP_bernoulli || c->op->id == TY_OP_dropout_mask) {
    TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
    d.x = ty_data(x);
    if (c->op->id == TY_OP_dropout_mask) {
      d.mask = ty_data(c->out[1]);
      d.least = ty_least_kept(d.a);
    }
  }
  d.g = ty_generator_begin(c->ctx, gpu);
  const cudaError_t e = ty_generator_end(gpu, ty_k_random(&d, s));
  ty_release(x);
  return ty_cuda_launched(c, gpu, e);
}
