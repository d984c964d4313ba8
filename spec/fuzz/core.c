/* What src/io needs of src/core, in so few lines that sanitizers see the readers and nothing else: tensors are one calloc each. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tycho.h"

const ty_backend ty_cpu = {.name = "cpu", .gpu = -1};

ty_status ty_error(ty_ctx *ctx, const char *fmt, ...) {
  va_list a;
  va_start(a, fmt);
  vsnprintf(ctx->err, sizeof ctx->err, fmt, a);
  va_end(a);
  return TY_ERR;
}
ty_status ty_no_memory(ty_ctx *ctx, const char *who) {
  ty_error(ctx, "%s: out of memory", who ? who : "a reader");
  return TY_OOM;
}
void *ty_malloc(size_t n) { return malloc(n ? n : 1); }
void ty_free(void *p) { free(p); }

static ty_status make(ty_ctx *ctx, const ty_meta *m, void *data, size_t bytes, void (*drop)(void *), void *owner, ty_tensor **out) {
  ty_tensor *t = calloc(1, sizeof *t);
  ty_storage *s = calloc(1, sizeof *s);
  if (!data && t && s) data = malloc(bytes ? bytes : 1);
  if (!t || !s || !data) {
    free(t);
    free(s);
    return ty_no_memory(ctx, NULL);
  }
  *t = (ty_tensor){.dtype = m->dtype, .ndim = m->ndim, .storage = s};
  memcpy(t->shape, m->shape, sizeof t->shape);
  if (m->has_stride) memcpy(t->stride, m->stride, sizeof t->stride);
  t->refs = 1;
  *s = (ty_storage){.backend = &ty_cpu, .data = data, .nbytes = bytes, .drop = drop, .owner = owner};
  *out = t;
  return TY_OK;
}
ty_status ty_empty(ty_ctx *ctx, const ty_backend *b, const ty_meta *m, ty_tensor **out) {
  int64_t n = ty_dtype_size[m->dtype];
  (void)b;
  for (int i = 0; i < m->ndim; i++)
    if (__builtin_mul_overflow(n, m->shape[i], &n) || n > (int64_t)1 << 33) return ty_no_memory(ctx, NULL);
  return make(ctx, m, NULL, (size_t)n, NULL, NULL, out);
}
ty_status ty_from_memory(ty_ctx *ctx, void *data, size_t n, const ty_meta *m, void (*drop)(void *), void *owner,
  ty_tensor **out) {
  return make(ctx, m, data, n, drop, owner, out);
}
ty_tensor *ty_retain(ty_tensor *t) {
  if (t) t->refs++;
  return t;
}
void ty_release(ty_tensor *t) {
  if (!t || --t->refs) return;
  if (t->storage->drop) t->storage->drop(t->storage->owner);
  else free(t->storage->data);
  free(t->storage);
  free(t);
}
int64_t ty_numel(const ty_tensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; i++) n *= t->shape[i];
  return n;
}
bool ty_is_contiguous(const ty_tensor *t) { return t != NULL; }
const char *ty_shape_text(const int64_t *shape, int ndim) { return (void)shape, ndim ? "..." : "()"; }
int ty_get_num_threads(void) { return 1; }
