/* See archive.h. Invariant: no more memory is taken than a file of this size can fill. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>
#include "archive.h"
#include "io.h"

/* ---- blobs ---- */

void ty_blob_release(ty_blob *b) {
  if (!b || atomic_fetch_sub(&b->refs, 1) != 1) return;
  if (b->mapped) munmap(b->p, b->n);
  else free(b->p);
  if (b->fd >= 0) close(b->fd);
  ty_free(b);
}

static void drop_blob(void *b) { ty_blob_release(b); }

static ty_status blob_new(ty_ctx *ctx, size_t n, ty_blob **out) {
  ty_blob *b = n <= (size_t)1 << 48 ? ty_malloc(sizeof *b) : NULL;
  void *p = b ? aligned_alloc(64, (n + 64) / 64 * 64) : NULL;
  if (!p) {
    ty_free(b);
    return ty_error(ctx, "out of memory: %zu bytes", n), TY_OOM;
  }
  *b = (ty_blob){.p = p, .n = n, .fd = -1};
  b->refs = 1;
  *out = b;
  return TY_OK;
}

ty_status ty_blob_read(ty_ctx *ctx, const char *path, ty_blob **out) {
  int64_t size;
  int fd = ty_file_open(ctx, path, &size);
  if (fd < 0) return TY_ERR;
  ty_status s = blob_new(ctx, (size_t)size, out);
  for (size_t at = 0; s == TY_OK && at < (*out)->n;) {
    const ssize_t k = read(fd, (char *)(*out)->p + at, TY_MIN((*out)->n - at, (size_t)1 << 30));
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) {
      s = ty_error(ctx, "%s: %s", path, k ? strerror(errno) : "it became shorter while it was read");
      ty_blob_release(*out);
    } else at += (size_t)k;
  }
  close(fd);
  return s;
}

ty_status ty_blob_map(ty_ctx *ctx, const char *path, ty_blob **out) {
  int64_t size;
  int fd = ty_file_open(ctx, path, &size);
  if (fd < 0) return TY_ERR;
  ty_blob *b = ty_malloc(sizeof *b);
  void *p = b && size ? mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (p == MAP_FAILED) {
    close(fd);
    ty_free(b);
    return ty_error(ctx, "%s: %s", path, size ? "it can't be mapped" : "the file is empty");
  }
  *b = (ty_blob){.p = p, .n = (size_t)size, .mapped = true, .fd = fd};
  b->refs = 1;
  *out = b;
  return TY_OK;
}

bool ty_blob_whole(const ty_blob *b) {
  struct stat s;
  return b->fd < 0 || (!fstat(b->fd, &s) && (size_t)s.st_size >= b->n);
}

/* ---- arrays ---- */

static const struct { const char *descr; uint8_t dtype, size; int8_t widen; } kinds[] = {
  {"f4", TY_F32, 4, 0}, {"f2", TY_F16, 2, 0}, {"bf16", TY_BF16, 2, 0}, {"f8", TY_F64, 8, 0}, {"i4", TY_I32, 4, 0},
  {"i8", TY_I64, 8, 0}, {"u1", TY_U8, 1, 0}, {"b1", TY_BOOL, 1, 0}, {"i1", TY_I32, 1, 1}, {"i2", TY_I32, 2, 1},
  {"u2", TY_I32, 2, 2}, {"u4", TY_I64, 4, 2}};

const char *ty_array_descr(ty_dtype d) {
  static const char *const names[TY_NDTYPE] = {"<f4", "<f2", NULL, "<f8", "<i4", "<i8", "|u1", "|b1"};
  return names[d];
}

ty_status ty_blob_array(ty_ctx *ctx, ty_blob *b, size_t from, const char *descr, const ty_meta *shape, bool fortran, ty_tensor **out) {
  const bool big = descr[0] == '>', marked = descr[0] && strchr("<>|=", descr[0]);
  const char *name = descr + marked;
  const int n_kinds = (int)(sizeof kinds / sizeof *kinds);
  int k = 0;
  while (k < n_kinds && strcmp(kinds[k].descr, name)) k++;
  if (k == n_kinds)
    return ty_error(ctx, "an array of dtype '%.20s', which is not supported%s", descr,
      *name == 'O' ? ": it holds pickled objects" : "");
  ty_meta m = *shape;
  m.dtype = kinds[k].dtype;
  size_t bytes = kinds[k].size;
  for (int i = 0; i < m.ndim; i++)
    if (m.shape[i] < 0 || __builtin_mul_overflow(bytes, (size_t)m.shape[i], &bytes))
      return ty_error(ctx, "an array of an impossible shape");
  if (from > b->n || bytes > b->n - from)
    return ty_error(ctx, "truncated: an array of %zu bytes, of which only %zu are there", bytes, from > b->n ? 0 : b->n - from);
  if (fortran) {
    m.has_stride = true;
    int64_t stride = 1;
    for (int i = 0; i < m.ndim; i++) { m.stride[i] = stride; stride *= m.shape[i]; }
  }
  const int size = kinds[k].size, full = ty_dtype_size[m.dtype];
  const uint8_t *p = (const uint8_t *)b->p + from;
  if (bytes && !fortran && !big && !kinds[k].widen && m.dtype != TY_BOOL && !((uintptr_t)p % (uintptr_t)size)) {
    TY_TRY(ty_from_memory(ctx, (void *)p, bytes, &m, drop_blob, b, out));
    atomic_fetch_add(&b->refs, 1);
    return TY_OK;
  }
  TY_TRY(ty_empty(ctx, &ty_cpu, &m, out));
  uint8_t *to = ty_data(*out);
  for (size_t i = 0; i < bytes / (size_t)size; i++) {
    uint8_t e[8] = {0};
    for (int j = 0; j < size; j++) e[big ? size - 1 - j : j] = p[i * (size_t)size + (size_t)j];
    if (kinds[k].widen == 1 && e[size - 1] & 0x80) memset(e + size, 0xFF, (size_t)(8 - size));
    if (m.dtype == TY_BOOL) e[0] = e[0] != 0;
    memcpy(to + i * (size_t)full, e, (size_t)full);
  }
  return TY_OK;
}

/* ---- zip ---- */

struct ty_zip { zip_t *z; char path[TY_PATH_MOST]; };

static ty_status zip_failed(ty_ctx *ctx, const char *path, zip_error_t *e) { return ty_error(ctx, "%s: %s", path, zip_error_strerror(e)); }

/* at: where the archive is; path: what errors call it. NULL: ctx->err says why. */
static zip_t *open_at(ty_ctx *ctx, const char *at, const char *path, int flags) {
  int code = 0;
  zip_t *z = zip_open(at, flags, &code);
  if (z) return z;
  zip_error_t e;
  zip_error_init_with_code(&e, code);
  zip_failed(ctx, path, &e);
  zip_error_fini(&e);
  return NULL;
}

ty_status ty_zip_open(ty_ctx *ctx, const char *path, ty_zip **out) {
  int64_t size;
  const int fd = ty_file_open(ctx, path, &size);
  if (fd < 0) return TY_ERR;
  close(fd);                                             /* libzip opens the path itself; this has shown it is no pipe */
  ty_zip *z = ty_malloc(sizeof *z);
  if (!z) return ty_no_memory(ctx, path);
  snprintf(z->path, sizeof z->path, "%s", path);
  z->z = open_at(ctx, path, path, ZIP_RDONLY | ZIP_CHECKCONS);
  if (!z->z) {
    ty_free(z);
    return TY_ERR;
  }
  *out = z;
  return TY_OK;
}

void ty_zip_close(ty_zip *z) {
  if (!z) return;
  zip_discard(z->z);
  ty_free(z);
}

int ty_zip_count(const ty_zip *z) { return (int)TY_MIN(zip_get_num_entries(z->z, 0), 1 << 24); }
const char *ty_zip_name(const ty_zip *z, int i) { return zip_get_name(z->z, (zip_uint64_t)i, ZIP_FL_ENC_RAW); }

ty_status ty_zip_read(ty_ctx *ctx, ty_zip *z, int i, ty_blob **out) {
  zip_stat_t st;
  if (zip_stat_index(z->z, (zip_uint64_t)i, 0, &st) != 0) return zip_failed(ctx, z->path, zip_get_error(z->z));
  if (!(st.valid & ZIP_STAT_SIZE) || !(st.valid & ZIP_STAT_COMP_SIZE) || st.size / TY_DEFLATE_MOST > st.comp_size)
    return ty_error(ctx, "%s: '%.80s' claims an impossible size", z->path, st.name ? st.name : "?");
  zip_file_t *f = zip_fopen_index(z->z, (zip_uint64_t)i, 0);
  if (!f) return zip_failed(ctx, z->path, zip_get_error(z->z));
  ty_status s = blob_new(ctx, (size_t)st.size, out);
  char extra;
  for (size_t at = 0; s == TY_OK && at <= (size_t)st.size;) {      /* to the end, where libzip checks the CRC */
    const size_t want = (size_t)st.size - at;
    const zip_int64_t k = want ? zip_fread(f, (char *)(*out)->p + at, TY_MIN(want, (size_t)1 << 30)) : zip_fread(f, &extra, 1);
    if (k < 0) s = zip_failed(ctx, z->path, zip_file_get_error(f));
    else if (!want) { if (k) s = ty_error(ctx, "%s: '%.80s' is longer than its header says", z->path, st.name); break; }
    else if (!k) s = ty_error(ctx, "%s: '%.80s' is truncated", z->path, st.name);
    else at += (size_t)k;
  }
  if (s == TY_ERR) ty_blob_release(*out);
  zip_fclose(f);
  return s;
}

/* ---- writing ---- */

ty_status ty_zip_write(ty_ctx *ctx, const char *path, const ty_member *list, int n) {
  char temporary[TY_PATH_MOST];
  if (!n) return ty_error(ctx, "%s: an archive can't be empty", path);
  int fd = ty_temporary(ctx, path, temporary);
  if (fd < 0) return TY_ERR;
  close(fd);
  zip_t *z = open_at(ctx, temporary, path, ZIP_CREATE | ZIP_TRUNCATE);
  ty_status st = TY_OK;
  if (!z) {
    unlink(temporary);
    return TY_ERR;
  }
  for (int i = 0; i < n && st == TY_OK; i++) {
    const zip_buffer_fragment_t part[2] = {{(zip_uint8_t *)list[i].head, list[i].nhead}, {(zip_uint8_t *)list[i].data, list[i].ndata}};
    zip_source_t *src = zip_source_buffer_fragment(z, part, list[i].ndata ? 2 : 1, 0);
    const zip_int64_t k = src ? zip_file_add(z, list[i].name, src, ZIP_FL_ENC_UTF_8) : -1;
    if (k < 0) {
      if (src) zip_source_free(src);
      st = zip_failed(ctx, path, zip_get_error(z));
    } else zip_set_file_compression(z, (zip_uint64_t)k, ZIP_CM_STORE, 0);
  }
  if (st == TY_OK && zip_close(z) == 0) {
    fd = open(temporary, O_RDWR | O_CLOEXEC);            /* libzip has replaced the file by a new one */
    if (fd >= 0) return ty_file_commit(ctx, fd, temporary, path);
    ty_error(ctx, "%s: %s", path, strerror(errno));
    unlink(temporary);
    return TY_ERR;
  }
  if (st == TY_OK) st = zip_failed(ctx, path, zip_get_error(z));
  zip_discard(z);
  unlink(temporary);
  return st;
}
