/* PNG pictures, written through libspng. */
#include <errno.h>
#include <fcntl.h>
#include <spng.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "io.h"

ty_status ty_png_write(ty_ctx *ctx, const char *path, const ty_tensor *pixels) {
  char temporary[TY_PATH_MOST];
  if (pixels->dtype != TY_U8 || pixels->ndim != 3 || pixels->shape[2] != 3 || !ty_is_contiguous(pixels) || !ty_numel(pixels))
    return ty_error(ctx, "%s: pixels must be a contiguous uint8 tensor of shape HxWx3, got %s of %s", path,
      ty_shape_of(pixels), ty_dtype_names[pixels->dtype]);
  int fd = ty_temporary(ctx, path, temporary);
  FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
  if (!f) {
    if (fd >= 0) { ty_error(ctx, "%s: %s", path, strerror(errno)); close(fd); unlink(temporary); }
    return TY_ERR;
  }
  spng_ctx *p = spng_ctx_new(SPNG_CTX_ENCODER);
  struct spng_ihdr head = {.width = (uint32_t)pixels->shape[1], .height = (uint32_t)pixels->shape[0], .bit_depth = 8,
    .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
  int e = p ? spng_set_png_file(p, f) : SPNG_EMEM;
  if (!e) e = spng_set_ihdr(p, &head);
  if (!e) e = spng_encode_image(p, ty_data(pixels), (size_t)ty_numel(pixels), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  spng_ctx_free(p);
  if (!e && fflush(f) != 0) e = SPNG_IO_ERROR;
  fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 3);            /* a host may have closed its standard streams */
  const int copied = errno;
  fclose(f);
  if (e || fd < 0) {
    if (fd >= 0) close(fd);
    unlink(temporary);
    return ty_error(ctx, "%s: %s", path, e ? spng_strerror(e) : strerror(copied));
  }
  return ty_file_commit(ctx, fd, temporary, path);
}
