/* Sources: items of a dataset that C makes without Lua, and batches of them. Invariant: a source doesn't change once made, so a loader's
 * threads can share it. */
#include <stdlib.h>
#include <string.h>
#include "archive.h"
#include "data.h"

ty_source *ty_source_new(ty_ctx *ctx, int64_t n, int nparts) {
  const size_t bytes = sizeof(ty_source) + sizeof(ty_source_part) * (size_t)nparts;
  ty_source *s = ty_malloc(bytes);
  if (!s) { ty_no_memory(ctx, "source"); return NULL; }
  memset(s, 0, bytes);
  s->refs = 1;
  s->n = n;
  s->npart = nparts;
  return s;
}

void ty_source_release(ty_source *s) {
  if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
  for (int p = 0; p < s->npart; p++) {
    ty_source_release(s->part[p].of);
    free(s->part[p].at);
  }
  for (int k = 0; k < s->nfield && !s->npart; k++) {
    ty_field *f = &s->field[k];
    ty_release(f->t);
    ty_blob_release(f->raw);
    for (int64_t i = 0; f->path && i < s->n; i++) free(f->path[i]);
    free(f->path);
    free(f->pipe);
  }
  ty_free(s);
}

static int64_t row_bytes(const ty_tensor *t) {
  int64_t n = ty_itemsize(t);
  for (int i = 1; i < t->ndim; i++) n *= t->shape[i];
  return n;
}

/* A picture of an IMAGES field, before its transforms. */
static ty_picture image_of(const ty_field *f, int64_t i) {
  const ty_tensor *t = f->t;
  const int h = (int)t->shape[t->ndim - 2], w = (int)t->shape[t->ndim - 1], c = t->ndim == 4 ? (int)t->shape[1] : 1;
  return (ty_picture){.p = (const uint8_t *)ty_data(t) + i * row_bytes(t), .bytes = true, .c = c, .h = h, .w = w,
    .sc = (int64_t)h * w, .sh = w, .sw = 1};
}

static void picture_meta(ty_meta *m, ty_dtype d, int c, int h, int w) {
  *m = (ty_meta){.dtype = (uint8_t)d, .ndim = 3, .shape = {c, h, w}};
}

static bool same_shape(const ty_meta *a, const ty_meta *b) {
  return a->ndim == b->ndim && memcmp(a->shape, b->shape, sizeof *a->shape * a->ndim) == 0;
}

bool ty_field_meta(const ty_source *s, int k, ty_meta *m) {
  const ty_field *f = &s->field[k];
  if (s->npart) {
    ty_meta other;
    bool same = ty_field_meta(s->part[0].of, k, m);
    for (int p = 1; p < s->npart && same; p++) same = ty_field_meta(s->part[p].of, k, &other) && same_shape(m, &other);
    return same;
  }
  int c = f->kind == TY_FILES && f->gray ? 1 : 3, h = 0, w = 0;
  bool known;
  memset(m, 0, sizeof *m);
  switch (f->kind) {
    case TY_ROWS:
      m->dtype = f->t->dtype;
      m->ndim = (uint8_t)(f->t->ndim - 1);
      for (int i = 0; i < m->ndim; i++) m->shape[i] = f->t->shape[i + 1];
      return true;
    case TY_WINDOWS:
      *m = (ty_meta){.dtype = TY_I64, .ndim = 1, .shape = {f->length}};
      return true;
    case TY_IMAGES: {
      const ty_picture p = image_of(f, 0);
      c = p.c;
      h = p.h;
      w = p.w;
    } break;
    case TY_FILES: break;
  }
  known = ty_pipeline_size(f->pipe, &c, &h, &w, f->kind == TY_IMAGES);
  picture_meta(m, f->pipe->dtype, c, h, w);
  return known;
}

static bool is_pictures(const ty_source *s, int k) {
  bool all = s->npart || s->field[k].kind == TY_IMAGES || s->field[k].kind == TY_FILES;
  for (int p = 0; p < s->npart && all; p++) all = is_pictures(s->part[p].of, k);
  return all;
}

ty_status ty_source_join(ty_ctx *ctx, ty_source *s) {
  ty_meta first, m;
  s->nfield = s->part[0].of->nfield;
  for (int p = 1; p < s->npart; p++) {
    const ty_source *of = s->part[p].of;
    if (of->nfield != s->nfield) return ty_error(ctx, "its datasets 1 and %d have %d and %d fields", p + 1, s->nfield, of->nfield);
    for (int k = 0; k < s->nfield; k++) {
      const bool known = ty_field_meta(s->part[0].of, k, &first) && ty_field_meta(of, k, &m);
      if (!known) ty_field_meta(of, k, &m);
      if (first.dtype != m.dtype || (!(known && same_shape(&first, &m)) && !(is_pictures(s->part[0].of, k) && is_pictures(of, k))))
        return ty_error(ctx, "its datasets 1 and %d differ in shape or dtype", p + 1);
    }
  }
  return TY_OK;
}

/* The source without parts that has item *i; *i becomes the item's number there. */
static const ty_source *part_of(const ty_source *s, int64_t *i) {
  while (s->npart) {
    int p = 0;
    while (*i >= s->part[p].end) p++;
    if (p) *i -= s->part[p - 1].end;
    if (s->part[p].at) *i = s->part[p].at[*i];
    s = s->part[p].of;
  }
  return s;
}

/* Makes field k of the batch's item at `place`, which is item i of s. */
static ty_status make(ty_ctx *ctx, const ty_source *s, int64_t i, int k, ty_batch *b, int64_t place, ty_canvas *canvas) {
  const ty_field *f = &s->field[k];
  ty_meta *m = &b->meta[k];
  ty_picture p;
  size_t bytes = ty_dtype_size[m->dtype];
  if (f->kind == TY_ROWS) {
    const size_t n = (size_t)row_bytes(f->t);
    memcpy((char *)b->to[k] + (size_t)place * n, (const char *)ty_data(f->t) + (size_t)i * n, n);
    return TY_OK;
  }
  if (f->kind == TY_WINDOWS && f->raw) {
    int64_t *to = (int64_t *)b->to[k] + place * f->length;
    if (!ty_blob_whole(f->raw)) return ty_error(ctx, "the file of tokens became shorter while it was read");
    const char *from = (const char *)f->raw->p + (f->from + i * f->step) * f->width;
    for (int64_t j = 0; j < f->length; j++) {
      uint16_t small;
      int32_t large;
      if (f->width == 2) { memcpy(&small, from + 2 * j, 2); to[j] = small + 1; }
      else { memcpy(&large, from + 4 * j, 4); to[j] = (int64_t)large + 1; }
    }
    return TY_OK;
  }
  if (f->kind == TY_WINDOWS) {
    const size_t n = (size_t)f->length * sizeof(int64_t);
    memcpy((char *)b->to[k] + (size_t)place * n, (const int64_t *)ty_data(f->t) + f->from + i * f->step, n);
    return TY_OK;
  }
  ty_draws d = ty_draws_of(ty_key(b->key + (uint64_t)k, (uint64_t)(b->first + place)), b->item[place]);
  if (f->kind == TY_IMAGES) p = image_of(f, i);
  else TY_TRY(ty_picture_read(ctx, f->path[i], f->gray, canvas, &p));
  TY_TRY(ty_pipeline_run(ctx, f->pipe, &p, &d, canvas));
  if (!b->to[k]) {                                       /* the first item decides the size */
    picture_meta(m, f->pipe->dtype, p.c, p.h, p.w);
    b->to[k] = malloc(TY_MAX(1, bytes * (size_t)b->count * (size_t)p.c * (size_t)p.h * (size_t)p.w));
    if (!b->to[k]) return ty_no_memory(ctx, NULL);
    b->made[k] = true;
  }
  if (p.c != m->shape[0] || p.h != m->shape[1] || p.w != m->shape[2])
    return ty_error(ctx, "its picture is %dx%dx%d, the batch's first one %s: a transform such as Resize gives all the same size",
      p.c, p.h, p.w, ty_shape_text(m->shape, 3));
  ty_picture_write(&p, (char *)b->to[k] + (size_t)place * bytes * (size_t)p.c * (size_t)p.h * (size_t)p.w, m->dtype);
  return TY_OK;
}

void ty_source_fill(const ty_source *s, ty_batch *b, ty_ctx *ctx, ty_canvas *canvas, const atomic_bool *stop) {
  ty_status st = TY_OK;
  for (int64_t i = 0; i < b->count && st == TY_OK && !(stop && *stop); i++) {
    int64_t at = b->at = b->item[i];
    const ty_source *of = part_of(s, &at);
    for (int k = 0; k < s->nfield && st == TY_OK; k++) st = make(ctx, of, at, k, b, i, canvas);
  }
  b->status = st;
  if (st != TY_OK) memcpy(b->err, ctx->err, sizeof b->err);
}
