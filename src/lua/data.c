/* Datasets in C for Lua: sources, batches made here or by a loader's threads, transforms of one picture. lua/tycho/data decides what a
 * dataset is and which items make a batch; this file only converts. Items are 1-based in Lua. Invariant: sources are counted, and a
 * loader holds its own until its last thread has ended. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "archive.h"
#include "binding.h"
#include "data.h"

static uint64_t seed_at(lua_State *L, int index) {
  const double v = lua_tonumber(L, index);
  return v >= -0x1p63 && v < 0x1p63 ? (uint64_t)(int64_t)v : 0;
}

/* ---- transforms ---- */

/* The list of {name, number ...} at index as a pipeline (to free), or NULL and the reason in ctx->err. */
static ty_pipeline *pipeline_at(lua_State *L, ty_ctx *ctx, int index) {
  const int n = lua_istable(L, index) ? (int)lua_objlen(L, index) : 0;
  ty_pipeline *t = calloc(1, sizeof *t + sizeof(ty_transform) * (size_t)n);
  if (!t) { ty_error(ctx, "transforms: out of memory"); return NULL; }
  t->dtype = TY_F32;
  for (int i = 0; i < n; i++) {
    double v[TY_TRANSFORM_ARGS];
    ty_status st = TY_ERR;
    ty_transform step;
    lua_rawgeti(L, index, i + 1);
    const int m = lua_istable(L, -1) ? (int)lua_objlen(L, -1) - 1 : -1;
    if (m >= 0 && m <= TY_TRANSFORM_ARGS) {
      for (int k = 0; k < m; k++) {
        lua_rawgeti(L, -1, k + 2);
        v[k] = lua_tonumber(L, -1);
        lua_pop(L, 1);
      }
      lua_rawgeti(L, -1, 1);
      st = lua_type(L, -1) == LUA_TSTRING ? ty_transform_make(ctx, lua_tostring(L, -1), v, m, &step)
        : ty_error(ctx, "transforms: step %d has no name", i + 1);
      const bool cast = st == TY_OK && !strcmp(lua_tostring(L, -1), "dtype");
      lua_pop(L, 1);
      if (cast) t->dtype = v[0];               /* the dtype of the batch; its place in the list doesn't matter */
      else if (st == TY_OK) t->step[t->n++] = step;
    } else ty_error(ctx, "transforms: step %d must be a list of a name and up to %d numbers", i + 1, TY_TRANSFORM_ARGS);
    lua_pop(L, 1);
    if (st != TY_OK) { free(t); return NULL; }
  }
  return t;
}

static int check_transforms(lua_State *L) {   /* steps: raises where one is wrong */
  ty_ctx *ctx = ty_context(L);
  ty_pipeline *t = pipeline_at(L, ctx, 1);
  free(t);
  return t ? 0 : ty_raise(L, ctx);
}

/* h = the picture as a tensor of dtype d */
static ty_status give_picture(ty_ctx *ctx, const ty_picture *p, ty_dtype d, ty_handle *h) {
  const ty_meta m = {.dtype = (uint8_t)d, .ndim = 3, .shape = {p->c, p->h, p->w}};
  TY_TRY(ty_empty(ctx, &ty_cpu, &m, &h->t));
  ty_picture_write(p, ty_data(h->t), d);
  return TY_OK;
}

/* apply_transforms(x, steps, seed) -> x, a CPU tensor CxHxW of uint8 or float32, transformed */
static int apply_transforms(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  ty_canvas canvas = {0};
  ty_settle(L, "a picture is transformed");
  ty_handle *h = ty_new_handle(L, s);
  ty_tensor *x = ty_check(L, 1, "transforms", "argument 1");
  if (x->ndim != 3 || (x->dtype != TY_U8 && x->dtype != TY_F32) || ty_device_of(x)->gpu >= 0 || !ty_numel(x) ||
      x->shape[0] > 4 || x->shape[1] > 1 << 15 || x->shape[2] > 1 << 15)
    return ty_throw(L,
      "transforms: a picture must be a uint8 or float32 tensor CxHxW on the cpu, with 1 to 4 channels; got %s of %s on %s",
      ty_dtype_names[x->dtype], ty_shape_of(x), ty_device_of(x)->name);
  ty_pipeline *t = pipeline_at(L, ctx, 2);
  if (!t) return ty_raise(L, ctx);
  ty_draws d = ty_draws_of(ty_key(seed_at(L, 3), 0), 0);
  ty_retain(x);                            /* finalizers that run meanwhile must not free it */
  ty_picture p = {.p = ty_data(x), .bytes = x->dtype == TY_U8, .c = (int)x->shape[0], .h = (int)x->shape[1], .w = (int)x->shape[2],
                  .sc = x->stride[0], .sh = x->stride[1], .sw = x->stride[2]};
  ty_status st = ty_pipeline_run(ctx, t, &p, &d, &canvas);
  if (st == TY_OK) st = give_picture(ctx, &p, t->dtype, h);
  ty_release(x);
  ty_canvas_free(&canvas);
  free(t);
  return st == TY_OK ? 1 : ty_raise(L, ctx);
}

/* read_picture(path, gray) -> float32 CxHxW in 0..1 */
static int read_picture(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  const char *path = ty_path_at(L, 1);
  ty_canvas canvas = {0};
  ty_picture p;
  ty_pace(L, s);
  ty_handle *h = ty_new_handle(L, s);
  ty_status st = ty_picture_read(ctx, path, lua_toboolean(L, 2), &canvas, &p);
  if (st == TY_OK) st = give_picture(ctx, &p, TY_F32, h);
  ty_canvas_free(&canvas);
  return st == TY_OK ? 1 : ty_raise(L, ctx);
}

/* ---- sources ---- */

static void source_ends(void *s) { ty_source_release(s); }
static ty_source *source_at(lua_State *L) { return ty_box_at(L, 1, source_ends, "a source"); }

static int64_t whole_field(lua_State *L, const char *name) {
  int64_t v = 0;
  lua_getfield(L, -1, name);
  ty_is_whole(lua_tonumber(L, -1), &v);
  lua_pop(L, 1);
  return v;
}

/* The field that the table on top describes. */
static ty_status read_field(lua_State *L, ty_ctx *ctx, int64_t n, ty_field *f) {
  static const char *const kinds[] = {"rows", "images", "files", "windows"};
  int kind = 0;
  lua_getfield(L, -1, "kind");
  const char *name = lua_tostring(L, -1);
  while (kind < 4 && (!name || strcmp(name, kinds[kind]))) kind++;
  lua_pop(L, 1);
  if (kind == 4) return ty_error(ctx, "source: a field's kind must be rows, images, files or windows");
  f->kind = (ty_field_kind)kind;
  lua_getfield(L, -1, "tensor");
  ty_tensor *t = ty_test(L, -1);
  lua_pop(L, 1);
  if (f->kind == TY_WINDOWS && !t) {
    lua_getfield(L, -1, "path");
    const char *path = lua_tostring(L, -1);
    ty_status st = path ? ty_blob_map(ctx, path, &f->raw) : ty_error(ctx, "source: windows need tokens or a path");
    lua_pop(L, 1);
    TY_TRY(st);
    f->width = (int)whole_field(L, "width");
    if (f->width != 2 && f->width != 4) return ty_error(ctx, "source: ids are 2 or 4 bytes wide");
  } else if (f->kind != TY_FILES) {
    if (!t || ty_device_of(t)->gpu >= 0 || !ty_is_contiguous(t) || t->ndim < 1)
      return ty_error(ctx, "source: a field's tensor must be contiguous, on the cpu, with at least 1 dim");
    f->t = ty_alias(t);                    /* keeps memory and shape, whatever becomes of the user's tensor */
    if (!f->t) return ty_no_memory(ctx, "source");
    t = f->t;
  }
  switch (f->kind) {
    case TY_ROWS:
      return t->shape[0] == n ? TY_OK
        : ty_error(ctx, "source: a field has %lld items, expected %lld", (long long)t->shape[0], (long long)n);
    case TY_IMAGES:
      if (t->dtype != TY_U8 || t->ndim < 3 || t->ndim > 4 || t->shape[0] != n ||
          (t->ndim == 4 && (t->shape[1] < 1 || t->shape[1] > 4)) || t->shape[t->ndim - 1] < 1 || t->shape[t->ndim - 2] < 1 ||
          t->shape[t->ndim - 1] > 1 << 15 || t->shape[t->ndim - 2] > 1 << 15)
        return ty_error(ctx, "source: images must be uint8 of shape NxHxW or NxCxHxW, got %s of %s",
          ty_dtype_names[t->dtype], ty_shape_of(t));
      break;
    case TY_WINDOWS: {
      const int64_t have = t ? t->ndim == 1 && t->dtype == TY_I64 ? t->shape[0] : 0 : (int64_t)f->raw->n / f->width;
      f->length = whole_field(L, "length");
      f->step = whole_field(L, "step");
      f->from = whole_field(L, "from");
      if (f->length < 1 || f->step < 1 || f->from < 0 || f->from > have || f->length > have - f->from ||
          n > (have - f->from - f->length) / f->step + 1)
        return ty_error(ctx, "source: windows need tokens in 1 dim that hold them all");
      return TY_OK;
    }
    case TY_FILES:
      lua_getfield(L, -1, "gray");
      f->gray = lua_toboolean(L, -1);
      lua_pop(L, 1);
      lua_getfield(L, -1, "paths");
      f->path = calloc((size_t)n + 1, sizeof *f->path);
      for (int64_t i = 0; f->path && lua_istable(L, -1) && i < n; i++) {
        lua_rawgeti(L, -1, (int)i + 1);
        const char *p = lua_tostring(L, -1);
        f->path[i] = p ? strdup(p) : NULL;
        lua_pop(L, 1);
        if (!f->path[i]) break;
      }
      lua_pop(L, 1);
      if (!f->path || (n && !f->path[n - 1])) return ty_error(ctx, "source: files need a list of %lld paths, and memory", (long long)n);
      break;
  }
  lua_getfield(L, -1, "steps");
  f->pipe = pipeline_at(L, ctx, lua_gettop(L));
  lua_pop(L, 1);
  return f->pipe ? TY_OK : TY_ERR;
}

static int mix_seeds(lua_State *L) {           /* a, b -> a seed below 2^52 that depends on every bit of both */
  lua_pushnumber(L, (lua_Number)(ty_key(seed_at(L, 1), seed_at(L, 2)) >> 12));
  return 1;
}

/* make_source(n, {field, ...}): fields are {kind = "rows", tensor =}, {kind = "images", tensor =, steps =},
 * {kind = "files", paths =, gray =, steps =}, {kind = "windows", tensor = (or path =, width =), length =, step =, from =} */
static int make_source(lua_State *L) {
  ty_state *st = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, st);
  int64_t n;
  if (!ty_is_whole(lua_tonumber(L, 1), &n) || n < 1 || n > INT32_MAX || !lua_istable(L, 2) || lua_objlen(L, 2) < 1 ||
      lua_objlen(L, 2) > TY_FIELDS)
    return ty_throw(L, "source: 1 or more items of 1 to %d fields are needed", TY_FIELDS);
  ty_settle(L, "a loader is made");
  const int fields = (int)lua_objlen(L, 2);
  void **box = ty_new_box(L, source_ends);
  ty_source *s = *box = ty_source_new(ctx, n, 0);
  if (!s) return ty_raise(L, ctx);
  for (int k = 0; k < fields; k++) {
    lua_rawgeti(L, 2, k + 1);
    if (!lua_istable(L, -1)) return ty_throw(L, "source: a field is no table");
    s->nfield = k + 1;
    if (read_field(L, ctx, n, &s->field[k]) != TY_OK) return ty_raise(L, ctx);
    lua_pop(L, 1);
  }
  return 1;
}

/* join_sources({{source, positions (int64) or nil}, ...}): a source of all their items, one after the other */
static int join_sources(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  const int n = (int)lua_objlen(L, 1);
  if (n < 1) return ty_throw(L, "source: 1 or more parts are needed");
  ty_settle(L, "a loader is made");
  void **box = ty_new_box(L, source_ends);
  ty_source *s = *box = ty_source_new(ctx, 0, n);
  if (!s) return ty_raise(L, ctx);
  for (int p = 0; p < n; p++) {
    ty_source_part *part = &s->part[p];
    lua_rawgeti(L, 1, p + 1);
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    part->of = ty_box_at(L, lua_gettop(L) - 1, source_ends, "a source");
    atomic_fetch_add(&part->of->refs, 1);
    s->depth = TY_MAX(s->depth, part->of->depth + 1);
    if (s->depth > TY_SOURCE_DEPTH) return ty_throw(L, "source: datasets within others more than %d deep", TY_SOURCE_DEPTH);
    int64_t count = part->of->n;
    if (!lua_isnil(L, -1)) {
      const ty_tensor *at = ty_check(L, -1, "source", "positions");
      if (at->dtype != TY_I64 || at->ndim != 1 || ty_device_of(at)->gpu >= 0)
        return ty_throw(L, "source: positions must be int64 in 1 dim on the cpu");
      count = at->shape[0];
      part->at = malloc(sizeof *part->at * (size_t)TY_MAX(count, 1));
      if (!part->at) return ty_throw(L, "source: out of memory");
      for (int64_t i = 0; i < count; i++) {
        part->at[i] = ((const int64_t *)ty_data(at))[i * at->stride[0]] - 1;
        if (part->at[i] < 0 || part->at[i] >= part->of->n)
          return ty_throw(L, "source: position %.0f is out of range 1 to %.0f", (double)part->at[i] + 1, (double)part->of->n);
      }
    }
    part->end = s->n += count;
    lua_pop(L, 3);
  }
  if (s->n > INT32_MAX) return ty_throw(L, "source: too many items");
  return ty_source_join(ctx, s) == TY_OK ? 1 : ty_raise(L, ctx);
}

/* ---- batches ---- */

typedef struct { ty_batch b; ty_tensor *t[TY_FIELDS]; bool pin; int64_t item[]; } batch;

static void batch_free(batch *b, const ty_source *s) {
  for (int k = 0; k < s->nfield; k++) {
    ty_release(b->t[k]);
    if (b->b.made[k]) free(b->b.to[k]);
  }
  ty_free(b);
}

/* Makes a batch of s from the arguments at index (int64 items), index + 1 (seed), + 2 (epoch), + 3 (pinned), + 4 (the first
   item's place in the epoch). */
static ty_status batch_make(lua_State *L, ty_ctx *ctx, const ty_source *s, int index, batch **out) {
  ty_tensor *at = ty_test(L, index);
  if (!at || at->dtype != TY_I64 || at->ndim != 1 || ty_device_of(at)->gpu >= 0 || !at->shape[0])
    return ty_error(ctx, "DataLoader: positions must be int64 in 1 dim on the cpu");
  const int64_t n = at->shape[0];
  batch *b = ty_malloc(sizeof *b + sizeof *b->item * (size_t)n);
  if (!b) return ty_no_memory(ctx, "DataLoader");
  memset(b, 0, sizeof *b);
  b->b.count = n;
  b->b.item = b->item;
  b->pin = lua_toboolean(L, index + 3);
  b->b.first = (int64_t)seed_at(L, index + 4);
  b->b.key = ty_key(seed_at(L, index + 1), seed_at(L, index + 2));
  ty_status st = TY_OK;
  for (int64_t i = 0; i < n && st == TY_OK; i++) {
    b->item[i] = ((const int64_t *)ty_data(at))[i * at->stride[0]] - 1;
    if (b->item[i] < 0 || b->item[i] >= s->n)
      st = ty_error(ctx, "DataLoader: item %lld is out of range for %lld items", (long long)b->item[i] + 1, (long long)s->n);
  }
  for (int k = 0; k < s->nfield && st == TY_OK; k++) {
    ty_meta *m = &b->b.meta[k], whole;
    if (!ty_field_meta(s, k, m)) continue;               /* the first item decides */
    whole = *m;
    if (whole.ndim == TY_MAXDIM) {
      st = ty_error(ctx, "DataLoader: items of %d dims make batches of more than %d", TY_MAXDIM, TY_MAXDIM);
      break;
    }
    whole.ndim++;
    whole.shape[0] = n;
    memcpy(whole.shape + 1, m->shape, sizeof *m->shape * (size_t)m->ndim);
    st = b->pin ? ty_empty_pinned(L, ctx, &whole, &b->t[k]) : ty_empty(ctx, &ty_cpu, &whole, &b->t[k]);
    if (st == TY_OK) b->b.to[k] = ty_data(b->t[k]);
  }
  if (st != TY_OK) batch_free(b, s);
  else *out = b;
  return st;
}

/* Moves a filled batch's tensors into the handles h. */
static ty_status batch_give(lua_State *L, ty_ctx *ctx, const ty_source *s, batch *b, ty_handle **h) {
  for (int k = 0; k < s->nfield; k++) {
    if (b->b.made[k]) {
      ty_meta whole = {.dtype = b->b.meta[k].dtype, .ndim = 4,
        .shape = {b->b.count, b->b.meta[k].shape[0], b->b.meta[k].shape[1], b->b.meta[k].shape[2]}};
      size_t n = ty_dtype_size[whole.dtype];
      for (int i = 0; i < 4; i++) n *= (size_t)whole.shape[i];
      if (b->pin) {
        TY_TRY(ty_empty_pinned(L, ctx, &whole, &b->t[k]));
        memcpy(ty_data(b->t[k]), b->b.to[k], n);
      } else {
        TY_TRY(ty_from_memory(ctx, b->b.to[k], n, &whole, free, b->b.to[k], &b->t[k]));
        b->t[k]->storage->exposed = b->b.made[k] = false;
      }
    }
    h[k]->t = b->t[k];
    b->t[k] = NULL;
  }
  return TY_OK;
}

/* Pushes TY_FIELDS handles. This comes before any argument is looked at, since it may run finalizers. */
static void new_handles(lua_State *L, ty_state *st, ty_handle **h) {
  luaL_checkstack(L, TY_FIELDS + 4, "a batch");
  for (int k = 0; k < TY_FIELDS; k++) h[k] = ty_new_handle(L, st);
}
/* Leaves one for each field of s on the stack. */
static int give_handles(lua_State *L, const ty_source *s) {
  lua_pop(L, TY_FIELDS - s->nfield);
  return s->nfield;
}

/* source_batch(source, items, seed, epoch, pinned, place) -> a tensor for each field */
static int source_batch(lua_State *L) {
  ty_state *st = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, st), own = {0};
  ty_handle *h[TY_FIELDS];
  ty_canvas canvas = {0};
  batch *b;
  ty_pace(L, st);
  ty_settle(L, "a loader makes a batch");
  lua_settop(L, 6);
  new_handles(L, st, h);
  ty_source *s = source_at(L);
  atomic_fetch_add(&s->refs, 1);           /* finalizers may run where memory is short */
  if (batch_make(L, ctx, s, 2, &b) != TY_OK) { ty_source_release(s); return ty_raise(L, ctx); }
  ty_source_fill(s, &b->b, &own, &canvas, NULL);
  ty_canvas_free(&canvas);
  ty_status status = b->b.status;
  if (status != TY_OK) ty_error(ctx, "item %lld: %.400s", (long long)b->b.at + 1, b->b.err);
  else status = batch_give(L, ctx, s, b, h);
  batch_free(b, s);
  const int n = give_handles(L, s);
  ty_source_release(s);
  return status == TY_OK ? n : ty_raise(L, ctx);
}

/* ---- loaders ---- */

#define FORKED "DataLoader: its workers belong to the process that this one was forked from: call iter() for workers of its own"
typedef struct { ty_loader *loader; ty_source *source; int refs; } loader;      /* refs: the box's, and one per call in progress */

static void loader_drop(loader *l) {
  if (--l->refs) return;
  if (l->loader)
    for (ty_batch *b = ty_loader_stop(l->loader), *next; b; b = next) { next = b->next; batch_free((batch *)b, l->source); }
  ty_source_release(l->source);
  ty_free(l);
}
static void loader_ends(void *l) { loader_drop(l); }
static loader *loader_at(lua_State *L) { return ty_box_at(L, 1, loader_ends, "a loader"); }

/* loader_start(source, workers) */
static int loader_start(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  const int n = (int)luaL_checkinteger(L, 2);
  if (n < 1 || n > 1024) return ty_throw(L, "DataLoader: num_workers must be 0 to 1024, got %d", n);
  void **box = ty_new_box(L, loader_ends);
  ty_source *s = source_at(L);
  loader *l = ty_malloc(sizeof *l);
  if (!l) return ty_throw(L, "DataLoader: out of memory");
  *l = (loader){NULL, s, 1};
  atomic_fetch_add(&s->refs, 1);
  *box = l;
  return ty_loader_start(ctx, s, n, &l->loader) == TY_OK ? 1 : ty_raise(L, ctx);
}

/* loader_submit(loader, items, seed, epoch, pinned, place) */
static int loader_submit(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  batch *b;
  ty_settle(L, "a loader makes a batch");
  lua_settop(L, 6);
  loader *l = loader_at(L);
  if (ty_loader_forked(l->loader)) return ty_throw(L, FORKED);
  l->refs++;
  const ty_status st = batch_make(L, ctx, l->source, 2, &b);
  if (st == TY_OK) ty_loader_submit(l->loader, &b->b);
  loader_drop(l);
  return st == TY_OK ? 0 : ty_raise(L, ctx);
}

/* loader_take(loader, seconds) -> the oldest submitted batch, or nothing within this time. A failed batch raises its error, and is gone. */
static int loader_take(lua_State *L) {
  ty_state *st = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, st);
  ty_handle *h[TY_FIELDS];
  const double seconds = luaL_checknumber(L, 2);
  ty_pace(L, st);
  new_handles(L, st, h);
  loader *l = loader_at(L);
  if (ty_loader_forked(l->loader)) return ty_throw(L, FORKED);
  batch *b = (batch *)ty_loader_take(l->loader, seconds >= 0 && seconds < 3600 ? seconds : 0);
  if (!b) return 0;
  l->refs++;
  ty_status status = b->b.status;
  if (status != TY_OK) ty_error(ctx, "worker %d, item %lld: %.400s", b->b.worker, (long long)b->b.at + 1, b->b.err);
  else status = batch_give(L, ctx, l->source, b, h);
  batch_free(b, l->source);
  const int n = give_handles(L, l->source);
  loader_drop(l);
  return status == TY_OK ? n : ty_raise(L, ctx);
}

/* loader_stands(loader) -> the worker that makes the oldest batch, and the item that is being made; 0, 0: none yet */
static int loader_stands(lua_State *L) {
  int worker;
  int64_t item;
  loader *l = loader_at(L);
  if (ty_loader_forked(l->loader)) return ty_throw(L, FORKED);
  ty_loader_stands(l->loader, &worker, &item);
  lua_pushinteger(L, worker);
  lua_pushnumber(L, worker ? (lua_Number)item + 1 : 0);
  return 2;
}

static int loader_stop(lua_State *L) {
  ty_box_end(L, 1, loader_ends, "a loader");
  return 0;
}

/* ---- files ---- */

/* read_records(path, label bytes, c, h, w) -> uint8 n x label bytes, uint8 n x c x h x w */
static int read_records(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  const char *path = ty_path_at(L, 1);
  const int head = (int)luaL_checkinteger(L, 2),
    chw[3] = {(int)luaL_checkinteger(L, 3), (int)luaL_checkinteger(L, 4), (int)luaL_checkinteger(L, 5)};
  if (head < 1 || head > 16 || chw[0] < 1 || chw[0] > 4 || chw[1] < 1 || chw[1] > 1024 || chw[2] < 1 || chw[2] > 1024)
    return ty_throw(L, "read_records: strange sizes");
  ty_pace(L, s);
  ty_handle *a = ty_new_handle(L, s), *b = ty_new_handle(L, s);
  return ty_records_read(ctx, path, head, chw, &a->t, &b->t) == TY_OK ? 2 : ty_raise(L, ctx);
}

/* list_folder(path) -> names (but "." and ".."), unsorted; or nil and the reason */
static void folder_ends(void *d) { closedir(d); }
static int list_folder(lua_State *L) {
  const char *path = ty_path_at(L, 1);
  void **d = ty_new_box(L, folder_ends);                 /* a box: Lua may raise at any name */
  const int box = lua_gettop(L);
  lua_newtable(L);
  if (!(*d = opendir(path))) {
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", path, strerror(errno));
    return 2;
  }
  struct dirent *e;
  for (int n = 0; (e = readdir(*d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    lua_pushstring(L, e->d_name);
    lua_rawseti(L, -2, ++n);
  }
  ty_box_end(L, box, folder_ends, "a folder");
  return 1;
}

/* read_csv(path, separator, header) -> float64 rows x columns, names each ended by a newline, or nil */
static int read_csv(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  const char *path = ty_path_at(L, 1), *sep = luaL_checkstring(L, 2);
  char *names;
  ty_pace(L, s);
  void **box = ty_new_box(L, free);
  ty_handle *h = ty_new_handle(L, s);
  if (ty_csv_read(ctx, path, *sep, lua_toboolean(L, 3), &h->t, &names) != TY_OK) return ty_raise(L, ctx);
  *box = names;
  lua_pushstring(L, names);
  return 2;
}

/* bytes_tensor(string) -> uint8 tensor of its bytes */
static int bytes_tensor(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  size_t n;
  const char *p = luaL_checklstring(L, 1, &n);
  ty_meta m = {.dtype = TY_U8, .ndim = 1, .shape = {(int64_t)n}};
  ty_handle *h = ty_new_handle(L, s);
  if (ty_empty(ctx, &ty_cpu, &m, &h->t) != TY_OK) return ty_raise(L, ctx);
  memcpy(ty_data(h->t), p, n);
  return 1;
}

void ty_open_data(lua_State *L) {
  static const struct { const char *name; lua_CFunction f; } list[] = {
    {"apply_transforms", apply_transforms}, {"check_transforms", check_transforms}, {"read_picture", read_picture},
    {"make_source", make_source}, {"join_sources", join_sources}, {"mix_seeds", mix_seeds},
    {"source_batch", source_batch}, {"loader_start", loader_start}, {"loader_submit", loader_submit},
    {"loader_take", loader_take}, {"loader_stands", loader_stands}, {"loader_stop", loader_stop}, {"read_records", read_records},
    {"list_folder", list_folder}, {"bytes_tensor", bytes_tensor}, {"read_csv", read_csv}};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) ty_add(L, list[i].name, list[i].f);
#define COUNTED(name, word) lua_pushinteger(L, TY_##name); lua_setfield(L, -2, word);
  lua_newtable(L);                         /* steps' numbers by users' words */
  TY_COLOURS(COUNTED)
  lua_setfield(L, -2, "colours");
  lua_newtable(L);
  TY_BORDERS(COUNTED)
  lua_setfield(L, -2, "borders");
  lua_newtable(L);
  TY_RESAMPLINGS(COUNTED)
  lua_setfield(L, -2, "resamplings");
  lua_newtable(L);
  TY_POLICIES(COUNTED)
  lua_setfield(L, -2, "policies");
}
