/* Files of records of one size, as CIFAR's binary version: a few bytes of labels, then planes of pixels. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "data.h"

ty_status ty_records_read(ty_ctx *ctx, const char *path, int head, const int *chw, ty_tensor **labels, ty_tensor **images) {
  struct stat st;
  const int64_t size = (int64_t)chw[0] * chw[1] * chw[2];
  FILE *f = fopen(path, "rb");
  if (!f || fstat(fileno(f), &st) != 0) {
    ty_error(ctx, "%s: %s", path, strerror(errno));
    if (f) fclose(f);
    return TY_ERR;
  }
  const int64_t n = st.st_size / (head + size);
  ty_status s = TY_ERR;
  if (!S_ISREG(st.st_mode)) ty_error(ctx, "%s: not a regular file", path);
  else if (st.st_size % (head + size) || !n) ty_error(ctx, "%s: %lld bytes are no whole number of records of %lld bytes", path, (long long)st.st_size, (long long)(head + size));
  else {
    ty_meta lm = {.dtype = TY_U8, .ndim = 2, .shape = {n, head}}, im = {.dtype = TY_U8, .ndim = 4, .shape = {n, chw[0], chw[1], chw[2]}};
    s = ty_empty(ctx, &ty_cpu, &lm, labels);
    if (s == TY_OK && (s = ty_empty(ctx, &ty_cpu, &im, images)) != TY_OK) { ty_release(*labels); *labels = NULL; }
    for (int64_t i = 0; i < n && s == TY_OK; i++)
      if (fread((uint8_t *)ty_data(*labels) + i * head, 1, (size_t)head, f) != (size_t)head || fread((uint8_t *)ty_data(*images) + i * size, 1, (size_t)size, f) != (size_t)size) {
        s = ty_error(ctx, "%s: record %lld can't be read", path, (long long)i + 1);
        ty_release(*labels);
        ty_release(*images);
        *labels = *images = NULL;
      }
  }
  fclose(f);
  return s;
}
