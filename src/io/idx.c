/* IDX files, MNIST's format: two zero bytes, element type, number of dims, the dims as big-endian words, the elements.
 * Invariant: no more memory is taken than a file of this size can fill. */
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "io.h"

static ty_status fail(ty_ctx *ctx, gzFile f, const char *path, const char *why) {
  int code = Z_OK;
  const char *text = f ? gzerror(f, &code) : NULL;
  ty_error(ctx, "%s: %s", path, code != Z_OK && code != Z_BUF_ERROR && text && *text ? text : why);
  if (f) gzclose(f);
  return TY_ERR;
}

static int64_t big_endian(const uint8_t *p, int n) {
  int64_t v = 0;
  for (int i = 0; i < n; i++) v = v << 8 | p[i];
  return v;
}

ty_status ty_idx_read(ty_ctx *ctx, const char *path, ty_tensor **out) {
  static const struct { uint8_t code, dtype; } types[] = {{0x08, TY_U8}, {0x0C, TY_I32}, {0x0D, TY_F32}, {0x0E, TY_F64}};
  int64_t size;
  uint8_t head[4], dim[4];
  ty_meta m = {0};
  int64_t bytes, most;
  int fd = ty_file_open(ctx, path, &size);
  gzFile f = fd >= 0 ? gzdopen(fd, "rb") : NULL;
  if (!f) {
    if (fd >= 0) { close(fd); ty_error(ctx, "%s: out of memory", path); }
    return TY_ERR;
  }
  gzbuffer(f, 1 << 17);
  if (gzread(f, head, 4) != 4) return fail(ctx, f, path, "truncated: no IDX header");
  if (head[0] || head[1]) return fail(ctx, f, path, "not an IDX file: it doesn't begin with two zero bytes");
  int k = 0;
  while (k < 4 && types[k].code != head[2]) k++;
  if (k == 4) return fail(ctx, f, path, "an IDX element type other than unsigned byte, int, float and double");
  if (head[3] < 1 || head[3] > TY_MAXDIM) return fail(ctx, f, path, "the number of dims in the IDX header is not 1 to 8");
  m.dtype = types[k].dtype;
  m.ndim = head[3];
  bytes = ty_dtype_size[m.dtype];
  most = gzdirect(f) ? size : size * TY_DEFLATE_MOST;
  for (int i = 0; i < m.ndim; i++) {
    if (gzread(f, dim, 4) != 4) return fail(ctx, f, path, "truncated: the IDX header ends early");
    m.shape[i] = big_endian(dim, 4);
    if (__builtin_mul_overflow(bytes, m.shape[i], &bytes) || bytes > most)
      return fail(ctx, f, path, "truncated: the IDX header promises more elements than the file can hold");
  }
  const ty_status s = ty_empty(ctx, &ty_cpu, &m, out);
  if (s != TY_OK) { gzclose(f); return s; }
  uint8_t *p = ty_data(*out), extra;
  for (int64_t at = 0; at < bytes;) {
    int n = gzread(f, p + at, (unsigned)TY_MIN(bytes - at, 1 << 24));
    if (n <= 0) {
      ty_release(*out);
      *out = NULL;
      return fail(ctx, f, path, "truncated: fewer elements than the IDX header says");
    }
    at += n;
  }
  int more = gzread(f, &extra, 1);
  if (more != 0) {
    ty_release(*out);
    *out = NULL;
    return fail(ctx, f, path, "damaged: more bytes than the IDX header says");
  }
  gzclose(f);
  const int wide = ty_dtype_size[m.dtype];
  for (int64_t at = 0; wide > 1 && at < bytes; at += wide)
    for (int i = 0; i < wide / 2; i++) { uint8_t b = p[at + i]; p[at + i] = p[at + wide - 1 - i]; p[at + wide - 1 - i] = b; }
  return TY_OK;
}
