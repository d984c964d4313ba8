/* Pointwise ops: blocks of up to TY_BLOCK elements are converted to the loop's type unless they have it, computed, and stored in the
 * result's dtype, all within the first-level cache. Invariant: an element's value doesn't depend on the block, thread or strides by which
 * it is computed. */
#include <string.h>
#include "cpu.h"

typedef struct {
  int id;
  ty_loop loop;
  int nin, k, size[TY_ITER_MAX];
  ty_dtype compute, dtype[TY_ITER_MAX];
  double p, q;
  int64_t n, inner[TY_ITER_MAX];                   /* short rows: their length, and the strides in them */
  bool direct[TY_ITER_MAX];                        /* already in the loop's type */
  void (*load[TY_ITER_MAX])(void *, const void *, int64_t, int64_t);
  void (*store)(void *, int64_t, const void *, int64_t);
} point;

/* Whether a sum or product with a single number can be computed as a x + b, without repeating the number; *one: the number's operand. */
static bool has_number(const point *w, const int64_t *stride, int *one) {
  if ((w->id != TY_OP_add && w->id != TY_OP_sub && w->id != TY_OP_mul) || w->k == TY_IN_I64 || stride[0] != 1) return false;
  *one = stride[2] == 0 ? 2 : 1;
  return w->direct[0] && w->direct[1] && w->direct[2] && stride[*one] == 0 && stride[3 - *one] == 1;
}

/* Gives the same bits as the loop: multiplying by 1, or adding -0, changes nothing. */
static void with_number(const point *w, void *o, const void *x, const void *value, int one, int64_t n) {
  const double v = at(value, (ty_loop_type)w->k, 0), p = w->id == TY_OP_sub ? -w->p : w->p;
  double a, b;
  if (w->id == TY_OP_mul) { a = v; b = -0.0; }
  else if (one == 1) { a = p; b = v; }
  else { a = 1; b = w->k == TY_IN_F32 ? (double)((float)p * (float)v) : p * v; }
  ty_cpu_loops()->affine[w->k](o, x, n, a, b);
}

static void run_point(void *arg, char *const *ptr, const int64_t *stride, int64_t n) {
  const point *w = arg;
  bool whole = true, loaded[TY_ITER_MAX] = {false};
  int one;
  if (w->nin == 2 && has_number(w, stride, &one)) {
    with_number(w, ptr[0], ptr[3 - one], ptr[one], one, n);
    return;
  }
  for (int i = 0; i <= w->nin; i++) whole = whole && w->direct[i] && stride[i] == 1;
  if (whole) {
    w->loop(ptr[0], ptr[1], w->nin > 1 ? ptr[2] : NULL, w->nin > 2 ? ptr[3] : NULL, n, w->p, w->q);
    return;
  }
  double buf[4][TY_BLOCK];
  const void *in[4] = {NULL, NULL, NULL, NULL};
  for (int64_t at = 0; at < n; at += TY_BLOCK) {
    int64_t m = TY_MIN(TY_BLOCK, n - at);
    for (int i = 1; i <= w->nin; i++) {
      char *src = ptr[i] + at * stride[i] * w->size[i];
      if (w->direct[i] && stride[i] == 1) { in[i] = src; continue; }
      in[i] = buf[i];
      if (stride[i] == 0 && loaded[i]) continue;   /* one value: the block holds it already */
      w->load[i](buf[i], src, stride[i], m);
      loaded[i] = true;
    }
    char *dst = ptr[0] + at * stride[0] * w->size[0];
    bool straight = w->direct[0] && stride[0] == 1;
    w->loop(straight ? dst : (char *)buf[0], in[1], in[2], in[3], m, w->p, w->q);
    if (!straight) w->store(dst, stride[0], buf[0], m);
  }
}

/* ---- short rows, of which several make a block ---- */

#define LONG 64                  /* elements: longer rows are worth a call */

enum { FEW = 8 };                  /* elements: shorter rows take less time than a call */

/* Rows of a few elements, without conversion. */
#define FEW_ROWS(T) \
  for (int64_t r = 0; r < rows; r++) \
    for (int64_t i = 0; i < n; i++) ((T *)to)[r * n + i] = ((const T *)from)[r * step + i * stride]
static void gather_few(void *to, const void *from, int size, int64_t stride, int64_t n, int64_t step, int64_t rows) {
  if (size == 4) FEW_ROWS(uint32_t);
  else if (size == 8) FEW_ROWS(uint64_t);
  else if (size == 2) FEW_ROWS(uint16_t);
  else FEW_ROWS(uint8_t);
}

void ty_gather_rows(void *to, const char *from, ty_dtype dtype, ty_dtype compute, int64_t stride, int64_t n, int64_t step, int64_t rows) {
  const ty_loops *l = ty_cpu_loops();
  const int k = ty_loop_type_of(compute), wide = ty_loop_size[k];
  double value[TY_BLOCK];
  if (stride == 0) {                       /* each row is one value */
    if (dtype != compute) {
      l->load[dtype][k](value, from, step, rows);
      from = (const char *)value;
      step = 1;
    }
    l->repeat[wide == 8](to, from, step, n, rows);
  } else if (stride == 1 && step == n) l->load[dtype][k](to, from, 1, rows * n);
  else if (n <= FEW) {
    gather_few(dtype == compute ? to : (void *)value, from, ty_dtype_size[dtype], stride, n, step, rows);
    if (dtype != compute) l->load[dtype][k](to, value, 1, rows * n);
  }
  else for (int64_t r = 0; r < rows; r++) l->load[dtype][k]((char *)to + r * n * wide, from + r * step * ty_dtype_size[dtype], stride, n);
}

static void run_rows(void *arg, char *const *ptr, const int64_t *step, int64_t m) {
  const point *w = arg;
  const int64_t n = w->n, most = TY_BLOCK / n;
  int one;
  if (n >= LONG && w->nin == 2 && has_number(w, w->inner, &one)) {
    for (int64_t r = 0; r < m; r++)
      with_number(w, ptr[0] + r * n * w->size[0], ptr[3 - one] + r * step[3 - one] * w->size[3 - one],
        ptr[one] + r * step[one] * w->size[one], one, n);
    return;
  }
  double buf[4][TY_BLOCK];
  const void *in[4] = {NULL, NULL, NULL, NULL};
  for (int64_t at = 0; at < m; at += most) {
    const int64_t rows = TY_MIN(most, m - at);
    for (int i = 1; i <= w->nin; i++) {
      const char *src = ptr[i] + at * step[i] * w->size[i];
      if (w->direct[i] && w->inner[i] == 1 && step[i] == n) in[i] = src;
      else {
        if (step[i] || !at) ty_gather_rows(buf[i], src, w->dtype[i], w->compute, w->inner[i], n, step[i], rows);
        in[i] = buf[i];                            /* a repeated row: the block holds it already */
      }
    }
    char *dst = ptr[0] + at * n * w->size[0];
    w->loop(w->direct[0] ? dst : (char *)buf[0], in[1], in[2], in[3], rows * n, w->p, w->q);
    if (!w->direct[0]) w->store(dst, 1, buf[0], rows * n);
  }
}

/* Makes the walk one over rows, where the result's rows are short and contiguous. Returns whether it did. */
static bool in_rows(point *w, ty_iter *it) {
  const int last = it->ndim - 1;
  for (int k = last; last > 0 && k >= last - 1; k--) {
    const int next = 2 * last - 1 - k;                     /* the other of the two innermost */
    if (it->shape[k] > TY_BLOCK / 2 || it->stride[0][k] != 1 || it->stride[0][next] != it->shape[k]) continue;
    w->n = it->shape[k];
    for (int i = 0; i < it->nop; i++) {
      w->inner[i] = it->stride[i][k];
      it->stride[i][last - 1] = it->stride[i][next];
    }
    it->shape[last - 1] = it->shape[next];
    it->ndim--;
    it->numel /= w->n;
    it->each = w->n;
    return true;
  }
  return false;
}

/* Whether result and operands are contiguous, of one shape, and in the loop's type. */
static bool plain(const ty_call *c) {
  const ty_tensor *o = c->out[0];
  if (o->dtype != c->compute || !ty_is_contiguous(o)) return false;
  for (int i = 0; i < c->nin; i++) {
    const ty_tensor *t = c->in[i].t;
    if (!t || t->dtype != c->compute || !TY_SAME_SHAPE(t, o) || !ty_is_contiguous(t)) return false;
  }
  return true;
}

/* ---- bytes, mostly masks, which needn't be converted to 64 bits each ---- */

/* The op that does `id` for bools, whose bytes may be others than 0 and 1; -1: none. */
static int truth_op(int id) {
  switch (id) {
    case TY_OP_mul: case TY_OP_minimum: case TY_OP_fmin: case TY_OP_bitwise_and: return TY_OP_logical_and;
    case TY_OP_maximum: case TY_OP_fmax: case TY_OP_bitwise_or: return TY_OP_logical_or;
    case TY_OP_bitwise_xor: return TY_OP_logical_xor;
    case TY_OP_where: case TY_OP_masked_fill: case TY_OP_fill: return id;
    default: return -1;
  }
}

/* The op that does the call on bytes, where operands and result are bytes and no number is beyond their range; -1: none. */
static int byte_op(const ty_call *c) {
  const ty_op *op = c->op;
  const bool truth = c->out[0]->dtype == TY_BOOL && op->dtype != TY_D_BOOL;
  if (ty_itemsize(c->out[0]) != 1 || !ty_cpu_loops()->bytes[op->id]) return -1;
  if (op->nattr && op->id != TY_OP_add && op->id != TY_OP_sub && op->id != TY_OP_addcmul) return -1;
  for (int i = 0; i < c->nin; i++) {
    const ty_operand *v = &c->in[i];
    if (v->t ? ty_itemsize(v->t) != 1 || (truth && v->t->dtype != TY_BOOL)
             : v->kind == TY_FLOAT || v->i < 0 || v->i > (truth ? 1 : UINT8_MAX)) return -1;
  }
  return truth ? truth_op(op->id) : op->id;
}

/* ---- neg and abs of 16-bit floats, which change one bit of each word ---- */

/* NULL: another op, or elements that aren't contiguous. */
static ty_loop sign_loop(const ty_call *c, const ty_iter *it) {
  const ty_tensor *o = c->out[0], *x = c->in[0].t;
  const int last = it->ndim - 1;
  if ((c->op->id != TY_OP_neg && c->op->id != TY_OP_abs) || !x || x->dtype != o->dtype || (o->dtype != TY_F16 && o->dtype != TY_BF16) ||
      it->stride[0][last] != 1 || it->stride[1][last] != 1)
    return NULL;
  return ty_cpu_loops()->sign[c->op->id == TY_OP_abs];
}

ty_status ty_cpu_pointwise(ty_call *c) {
  const ty_loops *l = ty_cpu_loops();
  ty_tensor *o = c->out[0];
  point w = {.id = c->op->id, .nin = c->nin, .compute = c->compute, .k = ty_loop_type_of(c->compute)};
  double number[TY_ITER_MAX];
  ty_iter it;
  const bool rounds = ty_rounds_numbers(c);
  w.loop = l->pointwise[c->op->id][w.k];
  if (!w.loop) return ty_fail(c, "not defined for dtype %s", ty_dtype_names[c->compute]);
  if (c->op->nattr > 0) w.p = ty_parameter(c, 0);
  if (c->op->nattr > 1) w.q = ty_parameter(c, 1);
  int64_t n = ty_numel(o);
  if (n == 0) return TY_OK;
  if (c->op->id == TY_OP_fill && !c->in[1].t) {        /* the old values needn't be read */
    ty_fill_value(o, c->in[1]);
    return TY_OK;
  }
  if (n <= TY_GRAIN && plain(c)) {           /* small and contiguous: no walk needed */
    w.loop(ty_data(o), ty_data(c->in[0].t), w.nin > 1 ? ty_data(c->in[1].t) : NULL, w.nin > 2 ? ty_data(c->in[2].t) : NULL, n, w.p, w.q);
    return TY_OK;
  }
  ty_iter_init(&it, o->shape, o->ndim);
  ty_iter_tensor(&it, o);
  w.direct[0] = o->dtype == c->compute;
  w.store = l->store[o->dtype][w.k];
  for (int i = 0; i < c->nin; i++) {
    const ty_tensor *t = c->in[i].t;
    ty_dtype d = t ? t->dtype : c->compute;
    if (t && !(rounds && t->ndim == 0 && d != c->common)) ty_iter_tensor(&it, t);
    else {
      double v = t ? ty_get(ty_data(t), d) : c->in[i].f;
      d = c->compute;
      if (!t && w.k == TY_IN_I64 && c->in[i].kind != TY_FLOAT) memcpy(&number[i], &c->in[i].i, 8);
      else ty_set(&number[i], d, rounds ? ty_rounded(v, c->common) : v);
      ty_iter_add(&it, &number[i], ty_loop_size[w.k], NULL, NULL, 0);
    }
    w.dtype[i + 1] = d;
    w.direct[i + 1] = d == c->compute;
    w.load[i + 1] = l->load[d][w.k];
  }
  memcpy(w.size, it.size, sizeof w.size);
  ty_iter_done(&it);
  const bool rows = in_rows(&w, &it);
  const int in_bytes = rows ? -1 : byte_op(c);
  if (in_bytes >= 0) {
    w.loop = l->bytes[in_bytes];
    w.store = l->store_bytes;
    for (int i = 0; i <= c->nin; i++) {
      w.direct[i] = true;
      w.load[i] = l->load_bytes;
    }
  }
  const ty_loop sign = rows ? NULL : sign_loop(c, &it);
  if (sign) {
    w.loop = sign;
    w.direct[0] = w.direct[1] = true;
  }
  ty_iter_each(&it, rows ? run_rows : run_point, &w);
  return TY_OK;
}
