/* safetensors: 8 bytes of header length, a JSON header, the tensors' bytes.
 *
 * Idea: the whole header is read and checked before any tensor is made; then several threads read the tensors' bytes
 * directly into place. Nothing is mapped: a file that is truncated meanwhile gives an error, not a signal. Invariant: a
 * failed write leaves the file at path as it was.
 *
 * Checksums, where they are asked for: the metadata holds first XXH3 of the header, computed with zeroes in place of
 * these digits, and then XXH3 of each tensor's bytes, in the file's order. So all of the file has one but its first
 * eight bytes (the header's length). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE                    /* memmem */
#endif
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "io.h"
#include "math.h"

#define HEADER_MOST 100000000u
#define OWN_SUM "\"tycho.xxh3\":\""                  /* in the header, before 16 digits */
#define DIGITS 16
static const char zeroes[] = "0000000000000000";

static const char *const names[TY_NDTYPE] = {"F32", "F16", "BF16", "F64", "I32", "I64", "U8", "BOOL"};

/* ---- writing ---- */

/* Larger items first, so that every tensor is aligned for its dtype. */
static int *write_order(const ty_named *list, int n) {
  int *order = ty_malloc(sizeof(int) * (size_t)TY_MAX(n, 1)), k = 0;
  if (!order) return NULL;
  for (int size = 8; size; size /= 2)
    for (int i = 0; i < n; i++)
      if (ty_itemsize(list[i].t) == size) order[k++] = i;
  return order;
}

/* 16 digits each. NULL: out of memory. */
static char *tensor_sums(const ty_named *list, int n, const int *order) {
  char *s = malloc((size_t)n * DIGITS + 1);
  for (int k = 0; k < n && s; k++)
    sprintf(s + k * DIGITS, "%016llx", (unsigned long long)XXH3_64bits(ty_data(list[order[k]].t), ty_nbytes(list[order[k]].t)));
  if (s) s[n * DIGITS] = 0;
  return s;
}

/* Writes the header's checksum, computed with zeroes in place of its digits at `at`. */
static ty_status header_sum(ty_ctx *ctx, const char *text, size_t len, const char *at, char digits[DIGITS + 1]) {
  XXH3_state_t *st = XXH3_createState();
  if (!st) return ty_no_memory(ctx, "checksum");
  XXH3_64bits_reset(st);
  XXH3_64bits_update(st, text, (size_t)(at - text));
  XXH3_64bits_update(st, zeroes, DIGITS);
  XXH3_64bits_update(st, at + DIGITS, len - (size_t)(at - text) - DIGITS);
  snprintf(digits, DIGITS + 1, "%016llx", (unsigned long long)XXH3_64bits_digest(st));
  XXH3_freeState(st);
  return TY_OK;
}

static json_t *make_header(const ty_named *list, int n, const int *order, const char *const *meta, int nmeta, const char *sums) {
  json_t *h = json_object();
  size_t at = 0;
  if (nmeta || sums) {
    json_t *m = json_object();
    bool ok = !sums || (json_object_set_new(m, "tycho.xxh3", json_string(zeroes)) == 0 &&
      json_object_set_new(m, "tycho.sums", json_string(sums)) == 0);
    for (int i = 0; i < nmeta && ok; i++) ok = json_object_set_new(m, meta[2 * i], json_string(meta[2 * i + 1])) == 0;
    if (json_object_set_new(h, "__metadata__", m) != 0 || !ok) { json_decref(h); return NULL; }
  }
  for (int k = 0; k < n; k++) {
    const ty_named *e = &list[order[k]];
    if (!strcmp(e->name, "__metadata__") || json_object_get(h, e->name)) { json_decref(h); return NULL; }
    size_t bytes = ty_nbytes(e->t);
    json_t *shape = json_array();
    for (int i = 0; i < e->t->ndim; i++) json_array_append_new(shape, json_integer(e->t->shape[i]));
    json_t *v = json_pack("{s:s, s:o, s:[I, I]}", "dtype", names[e->t->dtype], "shape", shape, "data_offsets",
      (json_int_t)at, (json_int_t)(at + bytes));
    if (!v || json_object_set_new(h, e->name, v) != 0) { json_decref(h); return NULL; }
    at += bytes;
  }
  return h;
}

static ty_status write_file(ty_ctx *ctx, const char *path, const ty_named *list, int n, const int *order,
  const char *text, _Atomic int64_t *written) {
  ty_writer w;
  const size_t len = strlen(text);
  size_t bytes = 8 + len;
  uint8_t head[8];
  for (int k = 0; k < n; k++) bytes += ty_nbytes(list[k].t);
  TY_TRY(ty_write_begin(ctx, &w, path, (int64_t)bytes));
  for (int i = 0; i < 8; i++) head[i] = (uint8_t)((uint64_t)len >> (8 * i));
  bool ok = ty_write(&w, head, 8) && ty_write(&w, text, len);
  for (int k = 0; k < n && ok; k++) {
    const ty_tensor *t = list[order[k]].t;
    ok = ty_write(&w, ty_data(t), ty_nbytes(t));
    if (written) *written += (int64_t)ty_nbytes(t);
  }
  return ty_write_end(ctx, &w, ok);
}

ty_status ty_safetensors_write(ty_ctx *ctx, const char *path, const ty_named *list, int n, const char *const *meta,
  int nmeta, bool sums, _Atomic int64_t *written) {
  ty_status st = TY_ERR;
  int *order = write_order(list, n);
  char *each = order && sums ? tensor_sums(list, n, order) : NULL;
  json_t *h = order && (each || !sums) ? make_header(list, n, order, meta, nmeta, each) : NULL;
  char *text = h ? json_dumps(h, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
  json_decref(h);
  if (!text) ty_error(ctx, "%s: a name is not valid UTF-8, occurs twice or is __metadata__, or there is no memory", path);
  else {
    char digits[DIGITS + 1], *padded = realloc(text, strlen(text) + 8);
    size_t len = 0;
    if (!padded) ty_error(ctx, "%s: out of memory", path);
    else {
      text = padded;
      len = strlen(text);
      while (len % 8) text[len++] = ' ';
      text[len] = 0;
    }
    if (len && sums) {                                   /* the checksum covers the padding */
      char *own = strstr(text, OWN_SUM) + strlen(OWN_SUM);
      if (header_sum(ctx, text, len, own, digits) == TY_OK) memcpy(own, digits, DIGITS);
      else len = 0;
    }
    if (len > HEADER_MOST) {
      ty_error(ctx, "%s: not written: names and plain values would take %zu bytes of its header, which can have %u at most", path, len,
        HEADER_MOST);
      len = 0;
    }
    if (len) st = write_file(ctx, path, list, n, order, text, written);
  }
  free(each);
  free(text);
  ty_free(order);
  return st;
}

/* ---- reading ---- */

/* wide: 0, or 1 + the index in `narrow` of the file's dtype, which is widened to m.dtype */
typedef struct { const char *name; ty_meta m; uint64_t begin, end; int wide; } item;

/* dtypes that Tycho lacks: elements of `size` bytes become elements of a dtype that has all their values */
enum { SIGNED, UNSIGNED, E5M2, E4M3 };
static const struct { const char *name; uint8_t dtype, size, how; } narrow[] = {{"I8", TY_I32, 1, SIGNED}, {"I16", TY_I32, 2, SIGNED},
  {"U16", TY_I32, 2, UNSIGNED}, {"U32", TY_I64, 4, UNSIGNED}, {"F8_E5M2", TY_F16, 1, E5M2}, {"F8_E4M3", TY_F16, 1, E4M3}};

static int file_size(const item *e) { return e->wide ? narrow[e->wide - 1].size : ty_dtype_size[e->m.dtype]; }

/* Widens n elements in place; the file's are at the end of the memory that they fill afterwards. */
static void widen(const item *e, void *memory, size_t n) {
  const int size = file_size(e), full = ty_dtype_size[e->m.dtype], how = narrow[e->wide - 1].how;
  const uint8_t *from = (uint8_t *)memory + n * (size_t)(full - size);
  uint8_t *to = memory;
  for (size_t i = 0; i < n; i++, from += size, to += full) {
    uint8_t v[8] = {0};
    memcpy(v, from, (size_t)size);
    if (how == SIGNED && v[size - 1] & 0x80) memset(v + size, 0xFF, (size_t)(8 - size));
    if (how == E5M2) { v[1] = v[0]; v[0] = 0; }          /* the upper byte of a float16 */
    if (how == E4M3) {                                   /* no infinities; all ones are NaN */
      const int exponent = v[0] >> 3 & 15, part = v[0] & 7;
      const double x = (v[0] & 127) == 127 ? NAN : exponent ? ldexp(8 + part, exponent - 10) : ldexp(part, -9);
      const uint16_t h = ty_f32_to_f16((float)(v[0] & 128 ? -x : x));
      memcpy(v, &h, sizeof h);
    }
    memcpy(to, v, (size_t)full);
  }
}

struct ty_safetensors {
  char path[TY_PATH_MOST];
  json_t *header;
  int n;
  item *items;
  int fd;
  char *text;                /* the header */
  size_t size, data;         /* size of the file; offset of the tensors' bytes */
};

void ty_safetensors_close(ty_safetensors *f) {
  if (!f) return;
  if (f->fd >= 0) close(f->fd);
  free(f->text);
  json_decref(f->header);
  ty_free(f->items);
  ty_free(f);
}

static bool whole(const json_t *j, uint64_t *out) {
  if (!json_is_integer(j) || json_integer_value(j) < 0) return false;
  *out = (uint64_t)json_integer_value(j);
  return true;
}

static ty_status read_item(ty_ctx *ctx, ty_safetensors *f, const char *name, json_t *v, item *e) {
  json_t *dtype = json_object_get(v, "dtype"), *shape = json_object_get(v, "shape"), *off = json_object_get(v, "data_offsets");
  uint64_t bytes, d;
  int k = 0;
  e->name = name;
  if (!json_is_string(dtype) || !json_is_array(shape) || !json_is_array(off) || json_array_size(off) != 2 || json_object_size(v) != 3)
    return ty_error(ctx, "%s: tensor '%.80s' needs dtype, shape and data_offsets", f->path, name);
  while (k < TY_NDTYPE && strcmp(names[k], json_string_value(dtype))) k++;
  for (int i = 0; k == TY_NDTYPE && i < (int)(sizeof narrow / sizeof *narrow); i++)
    if (!strcmp(narrow[i].name, json_string_value(dtype))) { e->wide = i + 1; k = narrow[i].dtype; }
  if (k == TY_NDTYPE)
    return ty_error(ctx, "%s: tensor '%.80s' has dtype '%.20s', which is not supported", f->path, name,
      json_string_value(dtype));
  if (json_array_size(shape) > TY_MAXDIM) return ty_error(ctx, "%s: tensor '%.80s' has more than %d dims", f->path, name, TY_MAXDIM);
  e->m.dtype = (uint8_t)k;
  e->m.ndim = (uint8_t)json_array_size(shape);
  bytes = (uint64_t)file_size(e);
  for (int i = 0; i < e->m.ndim; i++) {
    if (!whole(json_array_get(shape, (size_t)i), &d) || __builtin_mul_overflow(bytes, d, &bytes))
      return ty_error(ctx, "%s: tensor '%.80s' has an impossible shape", f->path, name);
    e->m.shape[i] = (int64_t)d;
  }
  if (!whole(json_array_get(off, 0), &e->begin) || !whole(json_array_get(off, 1), &e->end) || e->begin > e->end ||
      e->end > f->size - f->data)
    return ty_error(ctx, "%s: tensor '%.80s' lies outside the file", f->path, name);
  if (e->end - e->begin != bytes)
    return ty_error(ctx, "%s: tensor '%.80s' has %llu bytes of data, but its shape needs %llu", f->path, name,
      (unsigned long long)(e->end - e->begin), (unsigned long long)bytes);
  return TY_OK;
}

static int by_begin(const void *a, const void *b) {
  const item *x = a, *y = b;
  return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : x->end < y->end ? -1 : x->end > y->end;
}

/* Reads n bytes of the file from `from` on. 0, or errno; -1: there are fewer. Thread-safe. */
static int bytes_at(const ty_safetensors *f, void *p, size_t n, size_t from) {
  for (size_t at = 0; at < n;) {
    const ssize_t k = pread(f->fd, (char *)p + at, n - at > 1 << 30 ? 1 << 30 : n - at, (off_t)(from + at));
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return k < 0 ? errno : -1;
    at += (size_t)k;
  }
  return 0;
}

static ty_status read_failed(ty_ctx *ctx, const ty_safetensors *f, int e) {
  return ty_error(ctx, "%s: %s", f->path, e == ENOMEM ? "out of memory" : e < 0 ? "truncated while it was read" : strerror(e)),
    e == ENOMEM ? TY_OOM : TY_ERR;
}

static ty_status read_header(ty_ctx *ctx, ty_safetensors *f) {
  uint64_t len = 0, at = 0;
  uint8_t head[8];
  json_error_t err;
  if (f->size == 0) return ty_error(ctx, "%s: truncated: the file is empty", f->path);
  if (f->size < 8) return ty_error(ctx, "%s: truncated: a safetensors file has at least 8 bytes, this has %zu", f->path, f->size);
  int e = bytes_at(f, head, 8, 0);
  if (e) return read_failed(ctx, f, e);
  for (int i = 0; i < 8; i++) len |= (uint64_t)head[i] << (8 * i);
  if (!memcmp(head, "\x80\x02\x8a\x0a", 4))
    return ty_error(ctx,
      "%s: written by an old torch.save; save it again with a PyTorch of 1.6 or later, which writes zip archives", f->path);
  if (len > HEADER_MOST)
    return ty_error(ctx, "%s is not a safetensors file: its header would have %llu bytes, over the limit of %u", f->path,
      (unsigned long long)len, HEADER_MOST);
  if (len > f->size - 8)
    return ty_error(ctx, "%s: truncated: the header has %llu bytes, the file %zu", f->path, (unsigned long long)len, f->size);
  f->data = 8 + (size_t)len;
  if (!(f->text = malloc((size_t)len + 1))) return read_failed(ctx, f, ENOMEM);
  if ((e = bytes_at(f, f->text, (size_t)len, 8))) return read_failed(ctx, f, e);
  if (!len || f->text[0] != '{') return ty_error(ctx, "%s: the header is not a JSON object", f->path);
  f->header = json_loadb(f->text, (size_t)len, JSON_REJECT_DUPLICATES, &err);
  if (!f->header) return ty_error(ctx, "%s: bad header: %.160s", f->path, err.text);
  if (!json_is_object(f->header)) return ty_error(ctx, "%s: the header is not a JSON object", f->path);
  f->items = ty_malloc(sizeof(item) * (json_object_size(f->header) + 1));
  if (!f->items) return ty_no_memory(ctx, f->path);
  memset(f->items, 0, sizeof(item) * (json_object_size(f->header) + 1));
  const char *name;
  json_t *v;
  json_object_foreach(f->header, name, v) {
    if (!strcmp(name, "__metadata__")) {
      const char *key;
      json_t *s;
      if (!json_is_object(v)) return ty_error(ctx, "%s: __metadata__ is not an object", f->path);
      json_object_foreach(v, key, s)
        if (!json_is_string(s)) return ty_error(ctx, "%s: metadata '%.80s' is not a string", f->path, key);
      continue;
    }
    TY_TRY(read_item(ctx, f, name, v, &f->items[f->n]));
    f->n++;
  }
  qsort(f->items, (size_t)f->n, sizeof(item), by_begin);
  for (int i = 0; i < f->n; i++) {
    if (f->items[i].begin != at)
      return ty_error(ctx, "%s: tensor '%.80s' begins at byte %llu of the data, expected %llu: a hole or an overlap",
        f->path, f->items[i].name, (unsigned long long)f->items[i].begin, (unsigned long long)at);
    at = f->items[i].end;
  }
  if (at != f->size - f->data)
    return ty_error(ctx, "%s: the tensors end at byte %llu of %zu bytes of data", f->path, (unsigned long long)at,
      f->size - f->data);
  return TY_OK;
}

ty_status ty_safetensors_open(ty_ctx *ctx, const char *path, ty_safetensors **out) {
  int64_t size = 0;
  ty_safetensors *f = ty_malloc(sizeof *f);
  if (!f) return ty_no_memory(ctx, path);
  memset(f, 0, sizeof *f);
  snprintf(f->path, sizeof f->path, "%s", path);
  f->fd = ty_file_open(ctx, path, &size);
  f->size = (size_t)size;
  const ty_status st = f->fd < 0 ? TY_ERR : read_header(ctx, f);
  if (st != TY_OK) {
    ty_safetensors_close(f);
    return st;
  }
  *out = f;
  return TY_OK;
}

int ty_safetensors_count(const ty_safetensors *f) { return f->n; }
const char *ty_safetensors_name(const ty_safetensors *f, int i) { return f->items[i].name; }
const ty_meta *ty_safetensors_about(const ty_safetensors *f, int i) { return &f->items[i].m; }
const char *ty_safetensors_meta(const ty_safetensors *f, const char *key) {
  return json_string_value(json_object_get(json_object_get(f->header, "__metadata__"), key));
}

/* Checks the header's own checksum, and that each tensor has one. */
static ty_status verify_header(ty_ctx *ctx, const ty_safetensors *f) {
  const char *sums = ty_safetensors_meta(f, "tycho.sums"), *own = memmem(f->text, f->data - 8, OWN_SUM, strlen(OWN_SUM));
  char digits[DIGITS + 1];
  if (!own || !sums) return ty_error(ctx, "%s: it has no checksums: damaged, or not a checkpoint", f->path);
  own += strlen(OWN_SUM);
  if (own + DIGITS > f->text + f->data - 8) return ty_error(ctx, "%s: damaged: the header ends in its checksum", f->path);
  TY_TRY(header_sum(ctx, f->text, f->data - 8, own, digits));
  if (memcmp(digits, own, DIGITS)) return ty_error(ctx, "%s: damaged: the header doesn't match its checksum", f->path);
  if (strlen(sums) != (size_t)f->n * DIGITS)
    return ty_error(ctx, "%s: damaged: it has %d tensors, but %zu checksums", f->path, f->n, strlen(sums) / DIGITS);
  return TY_OK;
}

static bool has_sum(const ty_safetensors *f, int i, uint64_t sum) {
  char digits[DIGITS + 1];
  snprintf(digits, sizeof digits, "%016llx", (unsigned long long)sum);
  return !memcmp(digits, ty_safetensors_meta(f, "tycho.sums") + (size_t)i * DIGITS, DIGITS);
}

/* A byte other than 0 and 1 would break loops over bool. */
static void only_bools(uint8_t *p, size_t n) {
  for (size_t k = 0; k < n; k++) p[k] = p[k] != 0;
}

ty_status ty_safetensors_bytes(ty_ctx *ctx, const ty_safetensors *f, int i, size_t from, size_t n, void *p) {
  const item *q = &f->items[i];
  const size_t size = (size_t)file_size(q), full = (size_t)ty_dtype_size[q->m.dtype], count = n / full;
  const int e = bytes_at(f, (char *)p + count * (full - size), count * size, f->data + (size_t)q->begin + from / full * size);
  if (!e && q->m.dtype == TY_BOOL) only_bools(p, n);
  if (!e && q->wide) widen(q, p, count);
  return e ? read_failed(ctx, f, e) : TY_OK;
}

#define PIECE ((int64_t)8 << 20)           /* what one thread reads at a time */

/* Where a tensor's bytes from the file go: to the end of its memory, for widen(). */
static char *lands_at(const item *q, const ty_tensor *t) {
  return (char *)ty_data(t) + ty_numel(t) * (ty_itemsize(t) - file_size(q));
}

/* Reads the tensors' bytes between two offsets in the data. Returns as bytes_at. */
static int fill(const ty_safetensors *f, ty_tensor *const *t, uint64_t from, uint64_t to) {
  int e = 0;
  for (int i = 0; i < f->n && !e; i++) {
    const item *q = &f->items[i];
    const uint64_t a = TY_MAX(from, q->begin), b = TY_MIN(to, q->end);
    if (a < b) e = bytes_at(f, lands_at(q, t[i]) + (a - q->begin), (size_t)(b - a), f->data + (size_t)a);
  }
  return e;
}

ty_status ty_safetensors_read(ty_ctx *ctx, const ty_safetensors *f, bool verify, ty_tensor *const *t) {
  const int64_t size = (int64_t)(f->size - f->data);
  const int threads = size > PIECE ? ty_get_num_threads() : 1;
  const char *sums = verify ? ty_safetensors_meta(f, "tycho.sums") : NULL;
  int failed = 0, bad = f->n;
  if (verify) TY_TRY(verify_header(ctx, f));
  #pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (int64_t at = 0; at < size; at += PIECE) {
    const int e = fill(f, t, (uint64_t)at, (uint64_t)TY_MIN(size, at + PIECE));
    if (!e) continue;
    #pragma omp atomic write
    failed = e;
  }
  if (failed) return read_failed(ctx, f, failed);
  #pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(min : bad) if (sums != NULL)
  for (int i = 0; i < (sums ? f->n : 0); i++)
    if (!has_sum(f, i, XXH3_64bits(lands_at(&f->items[i], t[i]), (size_t)(f->items[i].end - f->items[i].begin)))) bad = TY_MIN(bad, i);
  if (bad < f->n) return ty_error(ctx, "%s: damaged: tensor '%.80s' doesn't match its checksum", f->path, f->items[bad].name);
  for (int i = 0; i < f->n; i++) {
    if (f->items[i].m.dtype == TY_BOOL) only_bools(ty_data(t[i]), (size_t)(f->items[i].end - f->items[i].begin));
    if (f->items[i].wide) widen(&f->items[i], ty_data(t[i]), (size_t)ty_numel(t[i]));
  }
  return TY_OK;
}
