/* Fused kernels on a GPU: how one walks its tensors, and its launch. source.c writes the source, rtc.c has it compiled.
 *
 * Invariant: a kernel uses the strides that it was made for; where its tensors' memory is may change from run to run. */
#include <stdlib.h>
#include <string.h>
#include "fused.h"
#include "rtc.h"

_Static_assert(sizeof(ty_k_generator) == 24 && offsetof(ty_k_generator, offset) == 8 && offsetof(ty_k_generator, ticket) == 16,
  "kernels/fused.cuh has the same struct");
_Static_assert(TY_K_ROW >= TY_FUSED_ROW, "a row is added up as a single op adds it up");
typedef struct { ty_rtc made; ty_fused_walk walk; ty_fused_args args; } kernel;

/* The walk over the kernel's first ndim dims: without those of size 1, in the order of the first tensor's memory (kernels of rows: in
   order), merged where all tensors allow it. */
static void walk_of(const ty_fused *f, int ndim, ty_fused_walk *w) {
  int order[TY_MAXDIM], n = 0;
  for (int d = 0; d < ndim; d++) {
    if (f->shape[d] == 1) continue;
    int k = n++;
    for (; k > 0 && !f->nred && f->tensor[0].stride[order[k - 1]] < f->tensor[0].stride[d]; k--) order[k] = order[k - 1];
    order[k] = d;
  }
  w->ndim = 0;
  for (int i = 0; i < n; i++) {
    const int d = order[i], last = w->ndim - 1;
    bool merges = w->ndim > 0;
    for (int t = 0; merges && t < f->ntensor; t++) merges = w->stride[t][last] == f->tensor[t].stride[d] * f->shape[d];
    const int to = merges ? last : w->ndim++;
    w->shape[to] = merges ? w->shape[to] * f->shape[d] : f->shape[d];
    for (int t = 0; t < f->ntensor; t++) w->stride[t][to] = f->tensor[t].stride[d];
  }
}

/* Neighbours that a thread takes: 16 bytes of the largest dtype where all tensors allow it, else 1. */
static int neighbours(const ty_fused *f, const ty_fused_walk *w) {
  int size = 1;
  for (int t = 0; t < f->ntensor; t++) size = TY_MAX(size, ty_dtype_size[f->tensor[t].dtype]);
  const int v = 16 / size;
  for (int t = 0; t < f->ntensor; t++) {
    if (w->inner[t] > 1 || w->inner[t] < 0) return 1;
    for (int d = 0; d < w->ndim - 1 && w->inner[t]; d++)
      if (w->stride[t][d] % v) return 1;
  }
  return w->ndim > 1 && w->shape[w->ndim - 1] % v ? 1 : v;
}

ty_status ty_cuda_fuse(ty_ctx *ctx, const ty_backend *b, ty_fused *f) {
  if (ty_capturing()) return ty_error(ctx, "kernels can't be compiled while a graph is captured");     /* the driver loads nothing then */
  kernel *k = ty_malloc(sizeof *k);
  if (!k) return ty_no_memory(ctx, NULL);
  memset(k, 0, sizeof *k);
  f->kernel = k;
  ty_fused_walk *w = &k->walk;
  walk_of(f, f->ndim - f->nred, w);
  for (int t = 0; t < f->ntensor; t++) {
    int64_t want = 1;
    w->inner[t] = f->nred ? f->tensor[t].along : w->ndim ? w->stride[t][w->ndim - 1] : 0;
    w->dense[t] = w->ndim > 0;
    for (int d = w->ndim - 1; d >= 0; d--) {
      w->dense[t] = w->dense[t] && w->stride[t][d] == want;
      want *= w->shape[d];
    }
  }
  w->wide = f->numel > INT32_MAX;
  w->each = f->nred ? 1 : neighbours(f, w);
  w->threads = f->nred ? ty_k_row_lanes(f->inner) : TY_FUSED_THREADS;
  w->together = f->nred && w->threads <= 32;
  if (f->numel / (f->nred ? f->inner : w->threads) > INT32_MAX) return ty_error(ctx, "too many elements");
  k->args.n = f->numel;
  memcpy(k->args.shape, w->shape, sizeof k->args.shape);
  memcpy(k->args.stride, w->stride, sizeof k->args.stride);
  char *source = ty_fused_source(f, w);
  if (!source) return ty_no_memory(ctx, NULL);
  const ty_status s = ty_rtc_get(ctx, b->gpu, source, &k->made);
  free(source);
  return s;
}

ty_status ty_cuda_fused(ty_ctx *ctx, const ty_backend *b, ty_fused *f) {
  kernel *k = f->kernel;
  const ty_fused_walk *w = &k->walk;
  ty_stream *s;
  bool aligned = true;
  TY_TRY(ty_cuda_enter(ctx, b->gpu, &s));
  for (int t = 0; t < f->ntensor; t++) {
    ty_cuda_uses(s, f->tensor[t].t->storage);
    k->args.t[t] = ty_data(f->tensor[t].t);
    aligned = aligned && (w->inner[t] == 0 || (uintptr_t)k->args.t[t] % (size_t)(w->each * ty_dtype_size[f->tensor[t].dtype]) == 0);
  }
  const bool draws = ty_fused_keeps(f, f->nnode) > 0;
  const int each = aligned ? w->each : 1;
  const int64_t rows = f->nred ? f->numel / f->inner : 0, many = f->nred ? ty_k_rows_of_block(rows, f->inner) : 1,
    blocks = f->nred ? (rows + many - 1) / many : (f->numel + (int64_t)w->threads * each - 1) / ((int64_t)w->threads * each);
  k->args.generator = draws ? ty_generator_begin(ctx, b->gpu) : NULL;
  cudaError_t e = ty_rtc_launch(aligned || !k->made.each ? k->made.fused : k->made.each, (unsigned[3]){(unsigned)blocks, 1, 1},
    (unsigned[3]){(unsigned)w->threads, (unsigned)many, 1}, &k->args, sizeof k->args, s->s);
  if (draws) e = ty_generator_end(b->gpu, e);
  return e == cudaSuccess ? TY_OK : ty_cuda_fail(ctx, e, "a fused kernel", b->gpu);
}

void ty_cuda_fused_free(ty_fused *f) { ty_free(f->kernel); }
