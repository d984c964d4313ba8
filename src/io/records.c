/* Files of records of one size, as in CIFAR's binary version: a few bytes of labels, then planes of pixels. */
#include <string.h>
#include "archive.h"
#include "data.h"

ty_status ty_records_read(ty_ctx *ctx, const char *path, int head, const int *chw, ty_tensor **labels, ty_tensor **images) {
  const int64_t size = (int64_t)chw[0] * chw[1] * chw[2];
  ty_blob *b;
  TY_TRY(ty_blob_read(ctx, path, &b));
  const int64_t n = (int64_t)b->n / (head + size);
  ty_meta lm = {.dtype = TY_U8, .ndim = 2, .shape = {n, head}}, im = {.dtype = TY_U8, .ndim = 4, .shape = {n, chw[0], chw[1], chw[2]}};
  ty_status st = TY_OK;
  if ((int64_t)b->n % (head + size) || !n)
    st = ty_error(ctx, "%s: %zu bytes are not a whole number of records of %lld bytes", path, b->n, (long long)(head + size));
  if (st == TY_OK) st = ty_empty(ctx, &ty_cpu, &lm, labels);
  if (st == TY_OK && (st = ty_empty(ctx, &ty_cpu, &im, images)) != TY_OK) {
    ty_release(*labels);
    *labels = NULL;
  }
  for (int64_t i = 0; i < n && st == TY_OK; i++) {
    const uint8_t *p = (const uint8_t *)b->p + i * (head + size);
    memcpy((uint8_t *)ty_data(*labels) + i * head, p, (size_t)head);
    memcpy((uint8_t *)ty_data(*images) + i * size, p + head, (size_t)size);
  }
  ty_blob_release(b);
  return st;
}
