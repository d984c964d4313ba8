/* nonzero, in two passes: threads count the elements of their parts, then write the positions. Invariant: positions are in order. */
#include "cpu.h"

/* hit[i]: whether element i isn't 0. */
#define TEST(T, zero) for (int64_t i = 0; i < n; i++) hit[i] = !(zero(((const T *)x)[i]))
#define IS_0(v) ((v) == 0)
#define IS_0_HALF(v) (((v) & 0x7fff) == 0)
static void test(uint8_t *hit, const char *x, ty_dtype d, int64_t n) {
  switch (d) {
    case TY_F32: TEST(float, IS_0); return;
    case TY_F64: TEST(double, IS_0); return;
    case TY_F16: case TY_BF16: TEST(uint16_t, IS_0_HALF); return;
    case TY_I32: TEST(int32_t, IS_0); return;
    case TY_I64: TEST(int64_t, IS_0); return;
    default: TEST(uint8_t, IS_0);
  }
}

#define PART 4096          /* elements of a part */

ty_status ty_cpu_nonzero(ty_call *c) {
  ty_tensor *x, *o = NULL;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  const int nd = x->ndim;
  const int64_t total = ty_numel(x), parts = (total + PART - 1) / PART, size = ty_itemsize(x);
  int64_t count = 0, *first = ty_scratch(sizeof(int64_t) * (size_t)TY_MAX(parts, 1));
  ty_status s = first ? TY_OK : ty_no_memory(c->ctx, c->op->shown);
  for (int pass = 0; pass < 2 && s == TY_OK; pass++) {
    int64_t *out = pass ? ty_data(o) : NULL;
    #pragma omp parallel for num_threads(ty_threads_for(total)) schedule(static)
    for (int64_t k = 0; k < parts; k++) {
      uint8_t hit[PART];
      const int64_t from = k * PART, n = TY_MIN(PART, total - from);
      int64_t found = 0, at[TY_MAXDIM], rest = from;
      test(hit, (const char *)ty_data(x) + from * size, x->dtype, n);
      if (!pass) {
        for (int64_t i = 0; i < n; i++) found += hit[i];
        first[k] = found;
        continue;
      }
      int64_t *to = out + first[k] * nd;
      if (nd == 1) {                       /* without branches: the next write replaces a position that isn't one */
        const int64_t *end = out + (k + 1 < parts ? first[k + 1] : count);
        for (int64_t i = 0; i < n && to < end; i++) { *to = from + i + 1; to += hit[i]; }
        continue;
      }
      for (int j = nd - 1; j >= 0; j--) { at[j] = rest % x->shape[j]; rest /= x->shape[j]; }
      for (int64_t i = 0; i < n; i++) {
        if (hit[i]) for (int j = 0; j < nd; j++) *to++ = at[j] + 1;
        for (int j = nd - 1; j >= 0 && ++at[j] == x->shape[j]; j--) at[j] = 0;
      }
    }
    if (pass) break;
    for (int64_t k = 0; k < parts; k++) { const int64_t n = first[k]; first[k] = count; count += n; }
    const ty_meta m = {.dtype = TY_I64, .ndim = 2, .shape = {count, nd}};
    s = ty_empty(c->ctx, x->storage->backend, &m, &o);
  }
  ty_scratch_free(first);
  ty_release(x);
  if (s == TY_OK) c->out[0] = o;
  return s;
}
