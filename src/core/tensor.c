/* Storages, tensors and their geometry: shapes, strides, layouts.
 *
 * Idea: a tensor is a small refcounted struct that sees a refcounted storage through strides; its views are tensors of the
 * same storage. Invariants: every element that a tensor can reach lies inside its storage; ty_release never recurses deeply (the
 * tape's worklist frees a tensor's history). */
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gpu.h"
#include "math.h"
#include "shape.h"

/* ---- dtypes ---- */

int ty_dtype_find(const char *name) {
  for (int i = 0; i < TY_NDTYPE; i++)
    if (!strcmp(name, ty_dtype_names[i])) return i;
  return -1;
}

ty_dtype ty_promote(ty_dtype a, ty_dtype b) {
  static const uint8_t rank[TY_NDTYPE] = {[TY_BOOL] = 0, [TY_U8] = 1, [TY_I32] = 2, [TY_I64] = 3, [TY_F16] = 4,
    [TY_BF16] = 4, [TY_F32] = 5, [TY_F64] = 6};
  if (a == b) return a;
  if (ty_is_16bit(a) && ty_is_16bit(b)) return TY_F32;  /* float16 with bfloat16 */
  return rank[a] > rank[b] ? a : b;
}

double ty_get(const void *p, ty_dtype d) {
  switch (d) {
    case TY_F32: return *(const float *)p;
    case TY_F64: return *(const double *)p;
    case TY_F16: return ty_f16_to_f32(*(const uint16_t *)p);
    case TY_BF16: return ty_bf16_to_f32(*(const uint16_t *)p);
    default: return (double)ty_get_int(p, d);
  }
}

int64_t ty_get_int(const void *p, ty_dtype d) {
  switch (d) {
    case TY_I32: return *(const int32_t *)p;
    case TY_I64: return *(const int64_t *)p;
    case TY_U8: case TY_BOOL: return *(const uint8_t *)p;
    default: return ty_whole(ty_get(p, d));
  }
}

void ty_set(void *p, ty_dtype d, double v) {
  switch (d) {
    case TY_F32: *(float *)p = (float)v; break;
    case TY_F64: *(double *)p = v; break;
    case TY_F16: *(uint16_t *)p = ty_f32_to_f16((float)v); break;
    case TY_BF16: *(uint16_t *)p = ty_f32_to_bf16((float)v); break;
    case TY_BOOL: *(uint8_t *)p = v != 0; break;
    default: ty_set_int(p, d, ty_whole(v));
  }
}

void ty_set_operand(void *p, ty_dtype d, ty_operand v) {
  if (v.kind == TY_FLOAT || ty_is_float(d)) ty_set(p, d, v.f);
  else ty_set_int(p, d, v.i);
}

void ty_set_int(void *p, ty_dtype d, int64_t v) {
  switch (d) {
    case TY_I32: *(int32_t *)p = (int32_t)v; break;
    case TY_I64: *(int64_t *)p = v; break;
    case TY_U8: *(uint8_t *)p = (uint8_t)v; break;
    case TY_BOOL: *(uint8_t *)p = v != 0; break;
    default: ty_set(p, d, (double)v);
  }
}

/* ---- errors ---- */

ty_status ty_verror(ty_ctx *ctx, const char *who, const char *fmt, va_list ap) {
  int n = who ? snprintf(ctx->err, TY_ERRLEN, "%s: ", who) : 0;
  vsnprintf(ctx->err + n, (size_t)(TY_ERRLEN - n), fmt, ap);
  return TY_ERR;
}

const char *ty_shape_text(const int64_t *shape, int ndim) {
  static __thread char ring[8][128];
  static __thread int at;
  char *s = ring[at++ & 7], *p = s;
  if (ndim == 0) return "()";
  for (int i = 0; i < ndim && p < s + 127; i++)
    p += snprintf(p, (size_t)(s + 128 - p), i ? "x%lld" : "%lld", (long long)shape[i]);
  return s;
}

/* ---- memory ---- */

static _Atomic long fail_in, fail_times;   /* tests: after fail_in - 1 more allocations the next fail_times fail */

long ty_debug_fail_alloc(long n, long times) {
  long left = atomic_exchange(&fail_in, n);
  atomic_store(&fail_times, times);
  return left;
}

static bool told_to_fail(void) {
  if (atomic_load_explicit(&fail_in, memory_order_relaxed) == 0) return false;
  if (atomic_load(&fail_in) > 1) { atomic_fetch_sub(&fail_in, 1); return false; }
  if (atomic_fetch_sub(&fail_times, 1) > 1) return true;
  atomic_store(&fail_in, 0);
  return true;
}

void *ty_malloc(size_t n) { return told_to_fail() ? NULL : malloc(n ? n : 1); }
void ty_free(void *p) { free(p); }

static void account_add(ty_account *a, long long n) {
  if (!a) return;
  const long long now = atomic_fetch_add_explicit(&a->bytes, n, memory_order_relaxed) + n;
  long long peak = atomic_load_explicit(&a->peak, memory_order_relaxed);
  while (now > peak && !atomic_compare_exchange_weak_explicit(&a->peak, &peak, now, memory_order_relaxed, memory_order_relaxed)) {}
}

void ty_account_release(ty_account *a) {
  if (!a || atomic_fetch_sub(&a->refs, 1) != 1) return;
  for (ty_dropped *d = a->dropped, *next; d; d = next) { next = d->next; ty_free(d); }
  ty_free(a);
}

/* A storage and the tensor that is made with it are one block, so that a small tensor takes few cache lines. The storage's refs
 * count two for each user of its data, and one for the block's tensor while that lives: the data is freed when refs fall
 * below 2, the block at 0. */
typedef struct block { ty_tensor t; ty_storage s; struct block *before; } block;   /* before: the block made before it, a hint for warm() */

static block *block_of(ty_storage *s) { return (block *)((char *)s - offsetof(block, s)); }

/* Blocks and views come from free lists of each thread: garbage collection frees them in batches, for which malloc's own caches are
 * too short. */
typedef struct cell { struct cell *next; } cell;
typedef struct { cell *first; int n; } cells;
#define CELLS_MOST 32768
static __thread cells view_cells, block_cells;
static __thread bool cells_end_with_thread;
static pthread_key_t cells_key;
static pthread_once_t cells_once = PTHREAD_ONCE_INIT;

static void cells_end(void *unused) {      /* a thread ends */
  (void)unused;
  cells_end_with_thread = false;
  for (int i = 0; i < 2; i++) {
    cells *c = i ? &block_cells : &view_cells;
    for (cell *p = c->first, *next; p; p = next) { next = p->next; ty_free(p); }
    *c = (cells){NULL, 0};
  }
}

static void make_cells_key(void) { pthread_key_create(&cells_key, cells_end); }

static void *cell_new(cells *c, size_t size) {
#ifndef TY_NO_CACHE
  if (c->first && !told_to_fail()) {
    cell *p = c->first;
    c->first = p->next;
    c->n--;
    return p;
  }
#else
  (void)c;
#endif
  return ty_malloc(size);
}

static void cell_free(cells *c, void *p) {
#ifndef TY_NO_CACHE
  if (!cells_end_with_thread) {
    pthread_once(&cells_once, make_cells_key);
    cells_end_with_thread = !pthread_setspecific(cells_key, &cells_key);
  }
  if (c->n < CELLS_MOST && cells_end_with_thread) {
    ((cell *)p)->next = c->first;
    c->first = p;
    c->n++;
    return;
  }
#else
  (void)c;
#endif
  ty_free(p);
}

void ty_contiguous_strides(const int64_t *shape, int ndim, int64_t *stride) {
  int64_t n = 1;
  for (int i = ndim - 1; i >= 0; i--) {
    stride[i] = n;
    n *= TY_MAX(shape[i], 1);
  }
}

/* Prefetches a block that is used next and is not in the cache by then: the first of the free list, and, as a collector finalizes the
 * youngest first, the one made before the one that is released. */
static void warm(const block *k) {
  for (size_t at = 0; k && at < sizeof *k; at += 64) __builtin_prefetch((const char *)k + at, 1);
}

static _Atomic uint64_t next_id = 1;
uint64_t ty_next_storage(void) { return atomic_load(&next_id); }

static block *block_new(ty_ctx *ctx, const ty_backend *b, size_t nbytes, const ty_meta *m) {
  block *k = cell_new(&block_cells, sizeof *k);
  static __thread block *youngest;
  if (!k) return NULL;
  warm((const block *)block_cells.first);
  k->before = youngest;
#ifndef TY_NO_CACHE                        /* a leak checker would take youngest for a reference */
  youngest = k;
#endif
  ty_tensor *t = &k->t;
  ty_storage *s = &k->s;
  memset(t, 0, offsetof(ty_tensor, shape));
  memset(s, 0, offsetof(ty_storage, small));
  atomic_init(&t->refs, 1);
  t->in_block = true;
  t->dtype = m->dtype;
  t->ndim = m->ndim;
  t->own_layout = m->own_layout;
  t->storage = s;
  memcpy(t->shape, m->shape, sizeof(int64_t) * m->ndim);
  if (m->has_stride) memcpy(t->stride, m->stride, sizeof(int64_t) * m->ndim);
  else ty_contiguous_strides(t->shape, t->ndim, t->stride);
  atomic_init(&s->refs, 3);
  s->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
  s->backend = b;
  s->nbytes = nbytes;
  s->account = ctx->account;
  if (s->account) atomic_fetch_add_explicit(&s->account->refs, 1, memory_order_relaxed);
  return k;
}

/* Takes n off refs: 2 for a user of the data, 1 for the block's tensor, 3 for both. */
static void storage_drop(ty_storage *s, int n) {
  int before = atomic_load_explicit(&s->refs, memory_order_acquire);
  ty_storage was;
  while (before != n) {                    /* equal: no one else holds any of it */
    if (before >= 2 && before - n < 2) memcpy(&was, s, offsetof(ty_storage, small));
    if (atomic_compare_exchange_weak(&s->refs, &before, before - n)) break;
  }
  const ty_storage *const k = before == n ? s : &was;      /* s itself may be freed by the last holder now */
  if (before >= 2 && before - n < 2) {
    if (k->drop) k->drop(k->owner);
    else if (k->within) ty_storage_release(k->within);
    else if (k->data && k->data != s->small) k->backend->free(k->backend, k->data, k->nbytes, k->block);
    if (!k->drop && !k->within) account_add(k->account, -(long long)k->nbytes);
    ty_launches_release(k->launches);
    ty_account_release(k->account);
  }
  if (before == n) cell_free(&block_cells, block_of(s));
}

void ty_storage_retain(ty_storage *s) { atomic_fetch_add_explicit(&s->refs, 2, memory_order_relaxed); }
void ty_storage_release(ty_storage *s) { storage_drop(s, 2); }
void ty_swap_memory(ty_storage *a, ty_storage *b) {
  char small[TY_SMALL];
  ty_storage *const within = a->within;
  const bool inside = a->data == a->small, too = b->data == b->small;
  void *const data = a->data, *const block = a->block;
  memcpy(small, a->small, TY_SMALL);
  if (too) memcpy(a->small, b->small, TY_SMALL);
  if (inside) memcpy(b->small, small, TY_SMALL);
  a->data = too ? a->small : b->data;
  a->block = b->block;
  b->data = inside ? b->small : data;
  b->block = block;
  a->within = b->within;
  b->within = within;
}
int ty_storage_holders(const ty_storage *s) { return atomic_load(&s->refs) / 2 - atomic_load_explicit(&s->lent, memory_order_relaxed); }

static ty_status out_of_memory(ty_ctx *ctx, const ty_backend *b, size_t nbytes) {
  long long used = ctx->account ? (long long)atomic_load(&ctx->account->bytes) : 0;
  char more[256];
  snprintf(more, sizeof more, ", %lld bytes in use by tensors", used);         /* on all devices; b->memory adds the GPU's own figures */
  if (b->memory) b->memory(b, more, sizeof more);
  ty_error(ctx, "out of memory: %zu bytes requested on %s%s", nbytes, b->name, more);
  return TY_OOM;
}

/* Bytes of a tensor; -1: too many. */
static int64_t meta_bytes(const ty_meta *m) {
  const int64_t n = ty_count(m);
  return n < 0 ? -1 : n * ty_dtype_size[m->dtype];
}

ty_status ty_empty(ty_ctx *ctx, const ty_backend *b, const ty_meta *m, ty_tensor **out) {
  int64_t n = meta_bytes(m);
  if (n < 0) return ty_error(ctx, "a tensor of size %s is too large", ty_shape_text(m->shape, m->ndim));
  block *k = block_new(ctx, b, (size_t)n, m);
  if (!k) return out_of_memory(ctx, b, (size_t)n);
  ty_storage *s = &k->s;
  if (b == &ty_cpu && n <= TY_SMALL) s->data = s->small;
  else {
    for (int attempt = 0; !s->data && attempt < 2; attempt++) {   /* a second time after collecting garbage */
      if (attempt) {
        if (ctx->host && ctx->host->reclaim) ctx->host->reclaim(ctx);
        if (b->empty_cache) b->empty_cache(b);
      }
      s->data = told_to_fail() ? NULL : b->alloc(ctx, b, (size_t)n, &s->block);
    }
    if (!s->data) {
      s->nbytes = 0;
      ty_release(&k->t);
      return out_of_memory(ctx, b, (size_t)n);
    }
  }
  account_add(s->account, n);
  *out = &k->t;
  return TY_OK;
}

ty_status ty_from_memory(ty_ctx *ctx, void *data, size_t nbytes, const ty_meta *m, void (*drop)(void *), void *owner, ty_tensor **out) {
  block *k = block_new(ctx, &ty_cpu, nbytes, m);
  if (!k) return out_of_memory(ctx, &ty_cpu, sizeof *k);
  k->s.data = data;
  k->s.drop = drop;
  k->s.owner = owner;
  k->s.exposed = true;
  *out = &k->t;
  return TY_OK;
}

void ty_move_within(ty_storage *s, ty_tensor *memory) {
  ty_storage *was = s->within;
  s->within = memory->storage;
  s->data = memory->storage->data;
  s->block = memory->storage->block;
  ty_storage_retain(s->within);
  if (was) ty_storage_release(was);
}

ty_status ty_within(ty_ctx *ctx, ty_tensor *memory, size_t n, ty_tensor **out) {
  const ty_meta m = {.dtype = TY_U8, .ndim = 1, .shape = {(int64_t)n}};
  block *k = block_new(ctx, memory->storage->backend, n, &m);
  if (!k) return out_of_memory(ctx, memory->storage->backend, sizeof *k);
  ty_move_within(&k->s, memory);
  *out = &k->t;
  return TY_OK;
}

ty_tensor ty_lay(const ty_tensor *memory, size_t *at, const ty_tensor *like, ty_dtype d) {
  ty_tensor t = {.dtype = (uint8_t)d, .ndim = like->ndim, .storage = memory->storage, .offset = (int64_t)(*at / ty_dtype_size[d])};
  memcpy(t.shape, like->shape, sizeof t.shape);
  ty_contiguous_strides(t.shape, t.ndim, t.stride);
  *at += ty_laid_bytes(like, d);
  return t;
}

ty_tensor *ty_retain(ty_tensor *t) {
  if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
  return t;
}

static bool last_reference(ty_tensor *t) {
  return atomic_load_explicit(&t->refs, memory_order_acquire) == 1 || atomic_fetch_sub(&t->refs, 1) == 1;
}

void ty_release(ty_tensor *t) {
  while (t && last_reference(t)) {
    ty_tensor *grad = t->grad;           /* may have a gradient itself: a chain, so a loop */
    if (t->node) ty_node_release(t->node);
    if (t->base) ty_release(t->base);    /* a base has no base */
    if (t->whole) ty_release(t->whole);  /* as deep as vmaps are nested */
    if (t->hooks) ty_hooks_free(t->hooks);
    if (t->shadow) ty_shadow_free(t->shadow);
    if (!t->in_block) {
      ty_storage_release(t->storage);
      cell_free(&view_cells, t);
    } else {
      block *k = (block *)t;
      warm(k->before);
      if (t->storage == &k->s) storage_drop(&k->s, 3);
      else {                               /* the tensor was given other data */
        ty_storage_release(t->storage);
        storage_drop(&k->s, 1);
      }
    }
    t = grad;
  }
}

ty_tensor *ty_alias(const ty_tensor *t) {
  ty_tensor *a = cell_new(&view_cells, sizeof *a);
  if (!a) return NULL;
  *a = *t;
  atomic_init(&a->refs, 1);
  a->requires_grad = a->unrecorded = a->in_block = a->handed_on = false;
  a->detached = 0;
  a->node = NULL;
  a->base = NULL;
  a->grad = NULL;
  a->hooks = NULL;
  a->shadow = NULL;
  a->whole = NULL;
  ty_storage_retain(t->storage);
  return a;
}

ty_tensor *ty_alias_as(const ty_tensor *memory, const ty_tensor *like, int64_t offset) {
  ty_tensor *a = ty_alias(memory);
  if (!a) return NULL;
  a->dtype = like->dtype;
  a->ndim = like->ndim;
  a->own_layout = like->own_layout;
  a->offset = offset;
  memcpy(a->shape, like->shape, sizeof a->shape);
  memcpy(a->stride, like->stride, sizeof a->stride);
  return a;
}

/* ---- geometry ---- */

int64_t ty_numel(const ty_tensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; i++) n *= t->shape[i];
  return n;
}

bool ty_is_contiguous(const ty_tensor *t) {
  int64_t n = 1;
  for (int i = t->ndim - 1; i >= 0; i--) {
    if (t->shape[i] == 0) return true;
    if (t->shape[i] != 1 && t->stride[i] != n) return false;
    n *= t->shape[i];
  }
  return true;
}

bool ty_is_dense(const ty_tensor *t) {
  int64_t n = 1;
  unsigned left = 0;
  for (int i = 0; i < t->ndim; i++)
    if (t->shape[i] != 1) left |= 1u << i;
  while (left) {
    int found = -1;
    for (int i = 0; i < t->ndim; i++)
      if (left >> i & 1 && t->stride[i] == n) found = i;
    if (found < 0) return false;
    n *= t->shape[found];
    left &= ~(1u << found);
  }
  return true;
}

void ty_sort_dims(const ty_tensor *t, int order[TY_MAXDIM]) {
  for (int i = 0; i < t->ndim; i++) {
    int k = i;
    for (; k > 0 && t->stride[order[k - 1]] < t->stride[i]; k--) order[k] = order[k - 1];
    order[k] = i;
  }
}

int ty_turn_to_memory(ty_tensor *t, int n, int dim) {
  int order[TY_MAXDIM], at = dim;
  if (ty_is_contiguous(t)) return dim;
  ty_sort_dims(t, order);
  for (int k = 0; k < n; k++) {
    const ty_tensor was = t[k];
    for (int i = 0; i < was.ndim; i++) { t[k].shape[i] = was.shape[order[i]]; t[k].stride[i] = was.stride[order[i]]; }
  }
  for (int i = 0; i < t->ndim; i++) if (order[i] == dim) at = i;
  return at;
}

bool ty_is_channels_last(const ty_tensor *t) {
  int64_t want = t->ndim > 1 ? t->shape[1] : 1;
  if (t->ndim < 2 || (t->shape[1] != 1 && t->stride[1] != 1)) return false;
  for (int i = t->ndim - 1; i >= 2; i--) {
    if (t->shape[i] != 1 && t->stride[i] != want) return false;
    want *= t->shape[i];
  }
  return t->shape[0] == 1 || t->stride[0] == want;
}

/* True may be a false alarm; false is sure: by ascending stride, each dim steps beyond the reach of those before it. */
bool ty_overlaps_itself(const ty_tensor *t) {
  int64_t reach = 0;
  unsigned left = 0;
  for (int i = 0; i < t->ndim; i++) {
    if (t->shape[i] == 0) return false;
    if (t->shape[i] != 1) left |= 1u << i;
  }
  while (left) {
    int low = -1;
    for (int i = 0; i < t->ndim; i++)
      if (left >> i & 1 && (low < 0 || llabs(t->stride[i]) < llabs(t->stride[low]))) low = i;
    if (llabs(t->stride[low]) <= reach) return true;
    reach += llabs(t->stride[low]) * (t->shape[low] - 1);
    left &= ~(1u << low);
  }
  return false;
}

void ty_meta_of(const ty_tensor *t, ty_meta *m) {
  m->dtype = t->dtype;
  m->ndim = t->ndim;
  m->device = (uint8_t)(1 + t->storage->backend->gpu);
  m->has_stride = m->own_layout = false;
  memcpy(m->shape, t->shape, sizeof(int64_t) * t->ndim);
}

/* Walks both shapes from the last dim. Old dims that make one evenly strided run are grouped; new dims are given strides within it. */
bool ty_view_strides(const ty_tensor *t, const int64_t *shape, int ndim, int64_t *stride) {
  if (ty_numel(t) == 0) { ty_contiguous_strides(shape, ndim, stride); return true; }
  int64_t run = 1, base = 1, covered = 1;  /* run: the run's elements; base: its stride; covered: how many of them new dims have taken */
  int old = t->ndim - 1, nw = ndim - 1;
  while (old >= 0 && t->shape[old] == 1) old--;
  if (old >= 0) { base = t->stride[old]; run = t->shape[old]; }
  for (; nw >= 0; nw--) {
    if (shape[nw] == 1) { stride[nw] = base * covered; continue; }
    while (covered == run) {                /* the run is used up: take the next */
      do old--; while (old >= 0 && t->shape[old] == 1);
      if (old < 0) return false;
      base = t->stride[old]; run = t->shape[old]; covered = 1;
    }
    while (run % (covered * shape[nw]) != 0) {   /* doesn't fit: join the next old dim, if the run goes on evenly */
      int up = old - 1;
      while (up >= 0 && t->shape[up] == 1) up--;
      if (up < 0 || t->stride[up] != base * run) return false;
      run *= t->shape[up];
      old = up;
    }
    stride[nw] = base * covered;
    covered *= shape[nw];
  }
  return true;
}
