/* Convolution, and the larger matrix products, through oneDNN: float32, and bfloat16 where the CPU computes in it. Activations are
 * channels-last, or, where that pays, reordered to blocks of channels and back; weights are in the order that oneDNN likes best.
 *
 * Idea: a primitive is made once for each geometry and kept; weights are reordered once for each change of their contents
 * (storage id and version). This is the only file that knows oneDNN, and the difference between version 2 (Debian 12), which
 * describes memory by structs, and version 3 (Debian 13, Ubuntu 24.04), which does by handles. Invariants: a false return has
 * changed nothing; signals do no harm. With AVX-512, version 2.6's "gemm:jit" products, which dnnl_sgemm and some primitives
 * use, move the stack pointer about, so that a signal's frame would overwrite the heap; so no such primitive is used, and
 * dnnl_sgemm only with signals held back. */
#include <dnnl.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t md_ref;
#define REF(m) (m)
#define FREE_MD(m) ((m) ? dnnl_memory_desc_destroy(m) : 0)
static bool md_make(dnnl_memory_desc_t *m, int n, const dnnl_dims_t d, dnnl_data_type_t type, dnnl_format_tag_t tag) {
  return dnnl_memory_desc_create_with_tag(m, n, d, type, tag) == dnnl_success;
}
static bool md_strided(dnnl_memory_desc_t *m, int n, const dnnl_dims_t d, dnnl_data_type_t type, const dnnl_dims_t stride) {
  return dnnl_memory_desc_create_with_strides(m, n, d, type, stride) == dnnl_success;
}
#else
typedef const dnnl_memory_desc_t *md_ref;
#define REF(m) (&(m))
#define FREE_MD(m) (void)(m)
static bool md_make(dnnl_memory_desc_t *m, int n, const dnnl_dims_t d, dnnl_data_type_t type, dnnl_format_tag_t tag) {
  return dnnl_memory_desc_init_by_tag(m, n, d, type, tag) == dnnl_success;
}
static bool md_strided(dnnl_memory_desc_t *m, int n, const dnnl_dims_t d, dnnl_data_type_t type, const dnnl_dims_t stride) {
  return dnnl_memory_desc_init_by_strides(m, n, d, type, stride) == dnnl_success;
}
#endif

enum { FORWARD = TY_CONV_Y, BACKWARD_INPUT = TY_CONV_X, BACKWARD_WEIGHT = TY_CONV_W, PRODUCT };

/* Everything that decides a primitive; compared as bytes, so zeroed before it is filled. PRODUCT: x holds batch, m, n, k; w and y hold the
 * operands' strides, then w[3] the result's row stride, y[3] whether the result is added to; wide: the result is float32. */
typedef struct {
  int64_t kind, bf16, wide, x[4], w[4], y[4], stride[2], pad[2], dil[2], groups, bias, threads;
  ty_steps by;                             /* step > 1: x is made so for each call, w where its contents have changed */
} key;

/* own: in the primitive's order. Only where the user's order differs: plain, in that order, and reorder, from one to the other. */
typedef struct {
  dnnl_memory_t own, plain;
  dnnl_primitive_t reorder;
  size_t size;
  void *buffer;                            /* own's memory then: kept for weights that are read, else allocated for a call */
} operand;

typedef struct {
  key k;
  bool used, failed;
  dnnl_primitive_t prim;
  operand x, w, y;
  dnnl_memory_t b;
  uint64_t id;
  uint32_t version;                        /* id, version, from: the weights that w's buffer holds */
  const void *from;
} entry;

#define ENTRIES 256
static entry table[ENTRIES];
static dnnl_engine_t engine;
static dnnl_stream_t stream;
static int victim;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void clear_operand(operand *o) {
  if (o->own) dnnl_memory_destroy(o->own);
  if (o->plain) dnnl_memory_destroy(o->plain);
  if (o->reorder) dnnl_primitive_destroy(o->reorder);
  ty_scratch_free(o->buffer);
}

static void clear(entry *e) {
  if (e->prim) dnnl_primitive_destroy(e->prim);
  if (e->b) dnnl_memory_destroy(e->b);
  clear_operand(&e->x);
  clear_operand(&e->w);
  clear_operand(&e->y);
  memset(e, 0, sizeof *e);
}

static dnnl_status_t conv_desc(dnnl_primitive_desc_t *pd, int kind, dnnl_primitive_desc_t hint, md_ref x, md_ref w,
  md_ref b, md_ref y, const key *k) {
  dnnl_dims_t s = {k->stride[0], k->stride[1]}, d = {k->dil[0] - 1, k->dil[1] - 1}, p = {k->pad[0], k->pad[1]};
  dnnl_alg_kind_t alg = dnnl_convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  if (kind == FORWARD)
    return dnnl_convolution_forward_primitive_desc_create(pd, engine, dnnl_forward_training, alg, x, w, b, y, s, d, p, p, NULL);
  if (kind == BACKWARD_INPUT) return dnnl_convolution_backward_data_primitive_desc_create(pd, engine, alg, x, w, y, s, d, p, p, hint, NULL);
  return dnnl_convolution_backward_weights_primitive_desc_create(pd, engine, alg, x, w, NULL, y, s, d, p, p, hint, NULL);
#else
  dnnl_convolution_desc_t cd;
  dnnl_status_t st = kind == FORWARD ? dnnl_dilated_convolution_forward_desc_init(&cd, dnnl_forward_training, alg, x, w, b, y, s, d, p, p)
                   : kind == BACKWARD_INPUT ? dnnl_dilated_convolution_backward_data_desc_init(&cd, alg, x, w, y, s, d, p, p)
                   : dnnl_dilated_convolution_backward_weights_desc_init(&cd, alg, x, w, NULL, y, s, d, p, p);
  return st != dnnl_success ? st : dnnl_primitive_desc_create(pd, &cd, NULL, engine, hint);
#endif
}

/* It is neither code that signals break, nor oneDNN's reference code, which takes many times as long as conv.c and BLAS. */
static bool is_usable(dnnl_primitive_desc_t pd) {
  const char *name = NULL;
  return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success && name && !strstr(name, "gemm:") &&
    strncmp(name, "ref", 3) != 0;
}

static bool memory_make(dnnl_memory_t *m, md_ref d) { return dnnl_memory_create(m, d, engine, DNNL_MEMORY_NONE) == dnnl_success; }

static bool operand_make(operand *o, md_ref plain, md_ref own, bool result) {
  if (!memory_make(&o->own, own)) return false;
  if (dnnl_memory_desc_equal(own, plain)) return true;
  dnnl_primitive_desc_t pd;
  md_ref from = result ? own : plain, to = result ? plain : own;
  if (dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL) != dnnl_success) return false;
  const bool ok = dnnl_primitive_create(&o->reorder, pd) == dnnl_success && memory_make(&o->plain, plain);
  dnnl_primitive_desc_destroy(pd);
  o->size = dnnl_memory_desc_get_size(own);
  return ok;
}

static bool turn(operand *o, bool result) {
  dnnl_exec_arg_t a[2] = {{DNNL_ARG_FROM, result ? o->own : o->plain}, {DNNL_ARG_TO, result ? o->plain : o->own}};
  return dnnl_primitive_execute(o->reorder, stream, 2, a) == dnnl_success;
}

/* Points the operand at a call's data; false: out of memory. */
static bool bind(operand *o, void *data) {
  if (!o->reorder) { dnnl_memory_set_data_handle(o->own, data); return true; }
  if (!o->buffer && !(o->buffer = ty_scratch(o->size))) return false;
  dnnl_memory_set_data_handle(o->plain, data);
  dnnl_memory_set_data_handle(o->own, o->buffer);
  return true;
}
static void unbind(operand *o) { ty_scratch_free(o->buffer); o->buffer = NULL; }

static dnnl_status_t matmul_desc(dnnl_primitive_desc_t *pd, md_ref a, md_ref b, md_ref bias, md_ref c, const_dnnl_primitive_attr_t attr) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_matmul_primitive_desc_create(pd, engine, a, b, bias, c, attr);
#else
  dnnl_matmul_desc_t d;
  dnnl_status_t st = dnnl_matmul_desc_init(&d, a, b, bias, c);
  return st != dnnl_success ? st : dnnl_primitive_desc_create(pd, &d, attr, engine, NULL);
#endif
}

/* Attributes of a product that is added to what the result holds. */
static bool adding(dnnl_primitive_attr_t *attr) {
  dnnl_post_ops_t ops;
  if (dnnl_primitive_attr_create(attr) != dnnl_success) return false;
  if (dnnl_post_ops_create(&ops) != dnnl_success) return false;
#if DNNL_VERSION_MAJOR >= 3
  const bool ok = dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef) == dnnl_success &&
    dnnl_primitive_attr_set_post_ops(*attr, ops) == dnnl_success;
#else
  const bool ok = dnnl_post_ops_append_sum(ops, 1) == dnnl_success && dnnl_primitive_attr_set_post_ops(*attr, ops) == dnnl_success;
#endif
  dnnl_post_ops_destroy(ops);
  return ok;
}

static bool build_product(entry *e) {
  const key *k = &e->k;
  const dnnl_data_type_t type = k->bf16 ? dnnl_bf16 : dnnl_f32, result = k->wide ? dnnl_f32 : type;
  int64_t batch = k->x[0], m = k->x[1], n = k->x[2], kk = k->x[3];
  dnnl_dims_t a = {k->w[0] || batch == 1 ? batch : 1, m, kk}, b = {k->y[0] || batch == 1 ? batch : 1, kk, n},
    c = {batch, m, n}, bd = {1, 1, n};
  dnnl_dims_t sa = {k->w[0] ? k->w[0] : m * kk, k->w[1], k->w[2]}, sb = {k->y[0] ? k->y[0] : kk * n, k->y[1], k->y[2]},
    sc = {m * k->w[3], k->w[3], 1}, sbias = {n, n, 1};
  dnnl_memory_desc_t ma = {0}, mb = {0}, mc = {0}, mbias = {0};
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_attr_t attr = NULL;
  bool ok = (!k->y[3] || adding(&attr)) && md_strided(&ma, 3, a, type, sa) && md_strided(&mb, 3, b, type, sb) &&
            md_strided(&mc, 3, c, result, sc) && md_strided(&mbias, 3, bd, type, sbias) &&
            matmul_desc(&pd, REF(ma), REF(mb), k->bias ? REF(mbias) : NULL, REF(mc), attr) == dnnl_success &&
            is_usable(pd) && dnnl_primitive_create(&e->prim, pd) == dnnl_success &&
            memory_make(&e->x.own, REF(ma)) && memory_make(&e->w.own, REF(mb)) && memory_make(&e->y.own, REF(mc)) &&
            (!k->bias || memory_make(&e->b, REF(mbias)));
  if (pd) dnnl_primitive_desc_destroy(pd);
  if (attr) dnnl_primitive_attr_destroy(attr);
  FREE_MD(ma); FREE_MD(mb); FREE_MD(mc); FREE_MD(mbias);
  return ok;
}

/* Whether activations are reordered to blocks of 8 channels: AVX2's kernels take channels-last a third slower, but where filters have one
 * point, or channels are few, reordering there and back costs more. */
static bool prefers_blocks(const key *k) {
  const int64_t from = k->x[1] / k->groups, to = k->w[0] / k->groups;
  return ty_dnnl_avx2() && !k->bf16 && k->w[2] * k->w[3] > 1 && from >= 16 && to >= 16 && from % 8 == 0 && to % 8 == 0;
}

/* A filter along one row with a large dilation d has paddings too wide for AVX2's kernels. The same memory, seen as rows of d elements, has
 * the filter's points in neighbouring rows, one below another. Rows shorter than FAR fill no vector. */
#define FAR 8
static void see_as_rows(key *k) {
  const int64_t d = k->dil[1];
  if (!ty_dnnl_avx2() || d < FAR || k->x[2] != 1 || k->w[2] != 1 || k->pad[0] || k->stride[1] != 1 || k->pad[1] % d || k->x[3] % d) return;
  k->x[2] = k->x[3] / d, k->y[2] = k->y[3] / d, k->w[2] = k->w[3], k->pad[0] = k->pad[1] / d;
  k->x[3] = k->y[3] = d, k->w[3] = 1, k->pad[1] = 0, k->dil[0] = k->dil[1] = k->stride[0] = 1;
}

static bool build_convolution(entry *e, dnnl_format_tag_t tag) {
  const key *k = &e->k;
  dnnl_data_type_t type = k->bf16 ? dnnl_bf16 : dnnl_f32;
  int wd = k->groups > 1 ? 5 : 4;
  dnnl_dims_t w5 = {k->groups, k->w[0] / k->groups, k->w[1], k->w[2], k->w[3]}, x = {k->x[0], k->x[1], k->x[2], k->x[3]},
              y = {k->y[0], k->y[1], k->y[2], k->y[3]}, w4 = {k->w[0], k->w[1], k->w[2], k->w[3]}, bd = {k->w[0]};
  dnnl_memory_desc_t mx = {0}, my = {0}, mw = {0}, mb = {0}, mp = {0};
  dnnl_primitive_desc_t fwd = NULL, pd = NULL;
  dnnl_memory_desc_t px = {0}, py = {0};
  bool ok = md_make(&px, 4, x, type, dnnl_acdb) && md_make(&py, 4, y, type, dnnl_acdb) &&
            md_make(&mx, 4, x, type, tag) && md_make(&my, 4, y, type, tag) &&
            md_make(&mw, wd, wd == 5 ? w5 : w4, type, dnnl_format_tag_any) &&
            md_make(&mp, wd, wd == 5 ? w5 : w4, type, wd == 5 ? dnnl_abcde : dnnl_abcd) && md_make(&mb, 1, bd, type, dnnl_a);
  ok = ok && conv_desc(&fwd, FORWARD, NULL, REF(mx), REF(mw), k->bias ? REF(mb) : NULL, REF(my), k) == dnnl_success;
  if (ok && k->kind == FORWARD) { pd = fwd; fwd = NULL; }
  else if (ok) ok = conv_desc(&pd, (int)k->kind, fwd, REF(mx), REF(mw), NULL, REF(my), k) == dnnl_success;
  if (ok) {
    const bool to_x = k->kind == BACKWARD_INPUT, to_w = k->kind == BACKWARD_WEIGHT, to_y = k->kind == FORWARD;
    md_ref ox = dnnl_primitive_desc_query_md(pd, to_x ? dnnl_query_diff_src_md : dnnl_query_src_md, 0),
      ow = dnnl_primitive_desc_query_md(pd, to_w ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0),
      oy = dnnl_primitive_desc_query_md(pd, to_y ? dnnl_query_dst_md : dnnl_query_diff_dst_md, 0);
    ok = is_usable(pd) && dnnl_primitive_create(&e->prim, pd) == dnnl_success &&
         operand_make(&e->x, REF(px), ox, to_x) && operand_make(&e->w, REF(mp), ow, to_w) && operand_make(&e->y, REF(py), oy, to_y) &&
         (!k->bias || memory_make(&e->b, REF(mb)));
  }
  if (fwd) dnnl_primitive_desc_destroy(fwd);
  if (pd) dnnl_primitive_desc_destroy(pd);
  FREE_MD(mx); FREE_MD(my); FREE_MD(mw); FREE_MD(mb); FREE_MD(mp); FREE_MD(px); FREE_MD(py);
  return ok;
}

/* Whether some window along a dim lies in the padding alone. */
static bool sees_padding_alone(const key *k, int dim) {
  const int64_t size = k->x[2 + dim], taps = k->w[2 + dim], step = k->dil[dim];
  for (int64_t o = 0; o < k->y[2 + dim]; o++) {
    const int64_t first = o * k->stride[dim] - k->pad[dim];
    const int64_t t = first < 0 ? (-first + step - 1) / step : 0;     /* the first tap that isn't before the input */
    if (t >= taps || first + t * step >= size) return true;
  }
  return false;
}

/* The kernels for AMX are wrong where windows step along the width, and end the process from about 5,200 channels on. */
#define MANY_CHANNELS 4096
static void see_as_steps(key *k) {
  const int64_t s = k->stride[1];
  if (!k->bf16 || k->kind != FORWARD || s == 1 || k->w[3] < s || k->dil[1] != 1 || k->groups != 1 || s * k->x[1] > MANY_CHANNELS) return;
  const int64_t taps = (k->w[3] + s - 1) / s, columns = k->y[3] - 1 + taps;
  k->by = (ty_steps){.step = s, .rows = k->x[0] * k->x[2], .ch = k->x[1], .width = k->x[3], .padding = k->pad[1], .o = k->w[0],
                     .kh = k->w[2], .kw = k->w[3], .columns = columns, .taps = taps};
  k->x[1] = k->w[1] = s * k->by.ch, k->x[3] = columns, k->w[3] = taps, k->stride[1] = 1, k->pad[1] = 0;
}

/* Whether oneDNN is right for a convolution. Seen, with random shapes, valgrind, and memory that isn't zeroed: versions 2.6 and 3.7 don't
 * agree with the definition, or read and write past their buffers, in all of these. */
static bool is_right(const key *k) {
  const int64_t from = k->x[1] / k->groups, to = k->w[0] / k->groups;
  const bool point = k->w[2] == 1 && k->w[3] == 1, strided = k->stride[0] > 1 || k->stride[1] > 1;
  if (point && strided && (from % 16 || to % 16)) return false;
  if (sees_padding_alone(k, 0) || sees_padding_alone(k, 1)) return false;
  if (!k->bf16) return true;
  if (k->kind == FORWARD && ((k->stride[1] > 1 && k->w[3] > 1) || (!point && from > MANY_CHANNELS))) return false;
  if (k->kind == FORWARD)                  /* windows with gaps between them; a result of one column */
    return point || !strided || (k->w[2] >= k->stride[0] && k->w[3] >= k->stride[1] && k->y[3] > 1);
  if (k->kind == BACKWARD_INPUT) return !(point && to % 2);
  return k->dil[0] == 1 && k->x[3] >= k->stride[1] && k->x[2] >= k->pad[0];
}

#define FAR_STEP 8
/* Whether float32's way is faster: gradients of windows that step far, as a picture's patches do (16x16: 10 ms instead of 2,000). */
static bool is_slow(const key *k) {
  return k->bf16 && k->kind != FORWARD && k->stride[1] >= FAR_STEP && (k->w[2] > 1 || k->x[1] / k->groups < 16);
}

static bool build(entry *e) {
  const key k = e->k;
  if (k.kind == PRODUCT) return build_product(e);
  if (!is_right(&k) || is_slow(&k)) return false;
  if (!prefers_blocks(&k)) return build_convolution(e, dnnl_acdb);
  if (build_convolution(e, dnnl_format_tag_any)) return true;
  clear(e);                                /* there may be a primitive for channels-last */
  e->k = k;
  e->used = true;
  return build_convolution(e, dnnl_acdb);
}

/* Whether oneDNN uses these instructions here. */
static bool uses(unsigned isa) {
  static _Atomic unsigned known;
  if (!known) known = (unsigned)dnnl_get_effective_cpu_isa();
  return (known & isa) == isa;
}
bool ty_dnnl_avx512(void) { return uses(dnnl_cpu_isa_avx512_core); }
bool ty_dnnl_avx2(void) { return uses(dnnl_cpu_isa_avx2) && !ty_dnnl_avx512(); }

static bool ready(void) {
  if (!engine && (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
      dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success))
    engine = NULL;
  return engine;
}

/* Replaces what e holds. */
static void make(entry *e, const key *k) {
  clear(e);
  e->k = *k;
  e->used = true;
  if (build(e)) return;
  clear(e);
  e->k = *k;
  e->used = e->failed = true;
}

static entry *find(const key *k) {
  uint64_t h = 1469598103934665603u;
  for (size_t i = 0; i < sizeof *k; i++) h = (h ^ ((const uint8_t *)k)[i]) * 1099511628211u;
  for (int i = 0; i < 8; i++) {
    entry *e = &table[(h + (uint64_t)i) % ENTRIES];
    if (e->used && !memcmp(&e->k, k, sizeof *k)) return e;
  }
  entry *e = NULL;
  for (int i = 0; i < 8 && !e; i++)
    if (!table[(h + (uint64_t)i) % ENTRIES].used) e = &table[(h + (uint64_t)i) % ENTRIES];
  if (!e) e = &table[(h + (uint64_t)(victim++ & 7)) % ENTRIES];
  make(e, k);
  return e;
}

/* Whether w is read, and its buffer doesn't hold its contents. */
static bool is_stale(const entry *e, const ty_tensor *w) {
  if (e->k.kind == BACKWARD_WEIGHT) return false;
  return !e->w.reorder || w->storage->exposed || e->id != w->storage->id || e->version != ty_version(w) || e->from != ty_data(w);
}

static bool run(entry *e, const ty_tensor *w, const ty_tensor *b, bool stale) {
  const bool to_x = e->k.kind == BACKWARD_INPUT, to_w = e->k.kind == BACKWARD_WEIGHT, to_y = e->k.kind == FORWARD;
  if (e->b) dnnl_memory_set_data_handle(e->b, ty_data(b));
  if (e->w.reorder && stale) {
    e->from = NULL;
    if (!turn(&e->w, false)) return false;
    e->id = w->storage->id;
    e->version = ty_version(w);
    e->from = ty_data(w);
  }
  if ((e->x.reorder && !to_x && !turn(&e->x, false)) || (e->y.reorder && !to_y && !turn(&e->y, false))) return false;
  dnnl_exec_arg_t a[4] = {{to_x ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, e->x.own}, {to_w ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, e->w.own},
                          {to_y ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, e->y.own}, {DNNL_ARG_BIAS, e->b}};
  if (dnnl_primitive_execute(e->prim, stream, e->b ? 4 : 3, a) != dnnl_success) return false;
  operand *result = to_x ? &e->x : to_w ? &e->w : &e->y;
  if (result->reorder && !turn(result, true)) return false;
  return dnnl_stream_wait(stream) == dnnl_success;
}

static bool execute_on(entry *e, void *px, void *pw, const ty_tensor *w, const ty_tensor *b, const ty_tensor *y, bool stale) {
  const bool done = bind(&e->x, px) && bind(&e->w, pw) && bind(&e->y, ty_data(y)) && run(e, w, b, stale);
  unbind(&e->x);
  unbind(&e->y);
  if (e->k.kind == BACKWARD_WEIGHT) unbind(&e->w);
  return done;
}

static bool execute(entry *e, const ty_tensor *x, const ty_tensor *w, const ty_tensor *b, const ty_tensor *y) {
  const ty_steps *by = &e->k.by;
  const bool stale = is_stale(e, w);
  if (!by->step) return execute_on(e, ty_data(x), ty_data(w), w, b, y, stale);
  const int64_t column = by->step * by->ch;
  void *px = ty_scratch(2 * (size_t)(by->rows * by->columns * column)), *pw = ty_data(w), *filters = NULL;
  if (px) ty_steps_of_rows(by, ty_data(x), px);
  if (stale && (pw = filters = ty_scratch(2 * (size_t)(by->o * column * by->kh * by->taps))))
    ty_steps_of_filters(by, ty_data(w), filters);
  const bool done = px && pw && execute_on(e, px, pw, w, b, y, stale);
  ty_scratch_free(px);
  ty_scratch_free(filters);
  return done;
}

bool ty_dnnl_conv(const ty_convolution *v) {
  const ty_tensor *x = v->x, *w = v->w, *y = v->y;
  key k;
  memset(&k, 0, sizeof k);
  k.kind = v->which;
  k.bf16 = x->dtype == TY_BF16;
  for (int i = 0; i < 4; i++) { k.x[i] = x->shape[i]; k.w[i] = w->shape[i]; k.y[i] = y->shape[i]; }
  for (int i = 0; i < 2; i++) { k.stride[i] = v->windows.stride[i]; k.pad[i] = v->windows.padding[i]; k.dil[i] = v->windows.dilation[i]; }
  k.groups = v->windows.groups;
  k.bias = v->b != NULL;
  k.threads = ty_get_num_threads();
  see_as_rows(&k);
  see_as_steps(&k);
  pthread_mutex_lock(&lock);
  entry *e = ready() ? find(&k) : NULL;
  const bool done = e && !e->failed && execute(e, x, w, v->b, y);
  pthread_mutex_unlock(&lock);
  return done;
}

static bool multiply(entry *e, dnnl_stream_t on, const void *a, const void *b, const void *bias, void *c) {
  if (e->failed) return false;
  dnnl_memory_set_data_handle(e->x.own, (void *)a);
  dnnl_memory_set_data_handle(e->w.own, (void *)b);
  dnnl_memory_set_data_handle(e->y.own, c);
  if (e->b) dnnl_memory_set_data_handle(e->b, (void *)bias);
  dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, e->x.own}, {DNNL_ARG_WEIGHTS, e->w.own}, {DNNL_ARG_DST, e->y.own}, {DNNL_ARG_BIAS, e->b}};
  return dnnl_primitive_execute(e->prim, on, e->b ? 4 : 3, args) == dnnl_success && dnnl_stream_wait(on) == dnnl_success;
}

static bool product(const ty_product *p) {
  key k;
  memset(&k, 0, sizeof k);
  k.kind = PRODUCT;
  k.bf16 = p->bf16;
  k.x[0] = p->batch; k.x[1] = p->m; k.x[2] = p->n; k.x[3] = p->k;
  memcpy(k.w, p->sa, sizeof p->sa);
  memcpy(k.y, p->sb, sizeof p->sb);
  k.w[3] = p->ldc;
  k.y[3] = p->add;
  k.bias = p->bias != NULL;
  k.threads = ty_get_num_threads();
  pthread_mutex_lock(&lock);
  entry *e = ready() ? find(&k) : NULL;
  const bool done = e && multiply(e, stream, p->a, p->b, p->bias, p->c);
  pthread_mutex_unlock(&lock);
  return done;
}

/* Copies of matrices of `lines` contiguous lines, `length` elements each, `apart` apart; zeros are added up to `rows` lines of `width`.
 * apart: becomes the copies', as does the batch's stride (0: one matrix for all). NULL: out of memory. */
static uint16_t *beside_zeros(const uint16_t *from, int64_t batch, int64_t lines, int64_t length, int64_t rows, int64_t width,
  int64_t *stride, int64_t *apart) {
  const int64_t matrices = *stride ? batch : 1;
  uint16_t *v = ty_scratch(sizeof *v * (size_t)(matrices * rows * width));
  if (!v) return NULL;
  #pragma omp parallel for num_threads(ty_threads_for(matrices * rows * width / 8)) schedule(static)
  for (int64_t i = 0; i < matrices * rows; i++) {
    const int64_t line = i % rows, n = line < lines ? length : 0;
    if (n) memcpy(v + i * width, from + i / rows * *stride + line * *apart, sizeof *v * (size_t)n);
    memset(v + i * width + n, 0, sizeof *v * (size_t)(width - n));
  }
  if (*stride) *stride = rows * width;
  *apart = width;
  return v;
}

/* p, at most 64 columns if these are rounded up, beside zeros up to n columns and k. */
static bool padded_product(const ty_product *p, int64_t n, int64_t k) {
  const bool at = p->sa[2] == 1, bt = p->sb[2] == 1;       /* rows are contiguous, else columns */
  ty_product q = *p;
  uint16_t bias[64] = {0};
  void *a = NULL, *c = NULL;
  bool ok = true;
  q.n = n, q.k = k;
  if (k != p->k) {
    q.a = a = at ? beside_zeros(p->a, p->batch, p->m, p->k, p->m, k, &q.sa[0], &q.sa[1])
                 : beside_zeros(p->a, p->batch, p->k, p->m, k, p->m, &q.sa[0], &q.sa[2]);
    ok = a != NULL;
  }
  void *b = !ok ? NULL : bt ? beside_zeros(p->b, p->batch, p->k, p->n, k, n, &q.sb[0], &q.sb[1])
                            : beside_zeros(p->b, p->batch, p->n, p->k, n, k, &q.sb[0], &q.sb[2]);
  q.b = b;
  if (b && n != p->n) {
    q.c = c = ty_scratch(sizeof *bias * (size_t)(p->batch * p->m * n));
    q.ldc = n;
    if (p->bias) q.bias = memcpy(bias, p->bias, sizeof *bias * (size_t)p->n);
  }
  ok = b && q.c && product(&q);
  for (int64_t i = 0; ok && c && i < p->batch * p->m; i++)
    memcpy((uint16_t *)p->c + i * p->ldc, (uint16_t *)c + i * n, sizeof *bias * (size_t)p->n);
  ty_scratch_free(a);
  ty_scratch_free(b);
  ty_scratch_free(c);
  return ok;
}

/* Whether a has infinities or NaN. */
static bool is_infinite_somewhere(const ty_product *p) {
  const bool by_rows = p->sa[2] == 1;
  const int64_t matrices = p->sa[0] ? p->batch : 1, lines = by_rows ? p->m : p->k, length = by_rows ? p->k : p->m;
  const int64_t apart = by_rows ? p->sa[1] : p->sa[2];
  int found = 0;
  #pragma omp parallel for num_threads(ty_threads_for(matrices * lines * length / 16)) schedule(static) reduction(| : found)
  for (int64_t i = 0; i < matrices * lines; i++) {
    const uint16_t *v = (const uint16_t *)p->a + i / lines * p->sa[0] + i % lines * apart;
    int some = 0;
    for (int64_t j = 0; j < length; j++) some |= (v[j] & 0x7f80) == 0x7f80;
    found |= some;
  }
  return found;
}

/* With AMX, versions before 3 are wrong for 49 to 63 columns; and wrong, or end the process by an illegal instruction, where k is 31 more
 * than a multiple of 32. Later ones let NaN of one row of a into others where k isn't a multiple of 32. */
bool ty_dnnl_product(const ty_product *p) {
  const bool amx = p->bf16 && uses(dnnl_cpu_isa_avx512_core_amx);
  int64_t n = p->n, k = p->k;
  if (amx && DNNL_VERSION_MAJOR < 3 && n > 48 && n < 64) n = 64;
  if (amx && k > 32 && k % 32 && (DNNL_VERSION_MAJOR < 3 ? k % 32 == 31 : is_infinite_somewhere(p))) k = ty_up(k, 32);
  return n == p->n && k == p->k ? product(p) : padded_product(p, n, k);
}

bool ty_dnnl_gemm(int ta, int tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
  int64_t ldb, float beta, float *c, int64_t ldc) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool done = dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a, lda, b, ldb, beta, c, ldc) == dnnl_success;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return done;
}

/* ---- products of tiles ---- */

/* Primitives, and what they work with, belong to the thread that made them, so none waits for another. */
#define TILES 32
#define ENOUGH (64 * 64 * 32)              /* multiplications, as measured: below, float32's are faster */
typedef struct { dnnl_stream_t stream; entry of[TILES]; int next; } tiles;
static pthread_key_t tiles_key;
static bool tiles_keyed;
static pthread_once_t tiles_once = PTHREAD_ONCE_INIT;

static void tiles_end(void *own) {
  tiles *o = own;
  for (int i = 0; i < TILES; i++) clear(&o->of[i]);
  if (o->stream) dnnl_stream_destroy(o->stream);
  free(o);
}
static void make_tiles_key(void) { tiles_keyed = pthread_key_create(&tiles_key, tiles_end) == 0; }

static tiles *tiles_of_thread(void) {
  pthread_once(&tiles_once, make_tiles_key);
  if (!tiles_keyed) return NULL;
  tiles *o = pthread_getspecific(tiles_key);
  if (o) return o;
  pthread_mutex_lock(&lock);
  const bool started = ready();
  pthread_mutex_unlock(&lock);
  o = started ? calloc(1, sizeof *o) : NULL;
  if (!o || dnnl_stream_create(&o->stream, engine, dnnl_stream_default_flags) != dnnl_success || pthread_setspecific(tiles_key, o) != 0) {
    if (o) tiles_end(o);
    return NULL;
  }
  return o;
}

bool ty_tile_pays(int64_t m, int64_t n, int64_t k) { return ty_native_bf16(-1) && m * n >= ENOUGH / TY_MAX(k, 1); }

bool ty_dnnl_tile(int64_t m, int64_t n, int64_t k, const uint16_t *a, bool ta, const uint16_t *b, bool tb, bool add, float *c) {
  tiles *o = tiles_of_thread();
  if (!o) return false;
  key wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.kind = PRODUCT;
  wanted.bf16 = wanted.wide = wanted.threads = 1;
  wanted.x[0] = 1; wanted.x[1] = m; wanted.x[2] = n; wanted.x[3] = k;
  wanted.w[1] = ta ? 1 : k; wanted.w[2] = ta ? m : 1; wanted.w[3] = n;
  wanted.y[1] = tb ? 1 : n; wanted.y[2] = tb ? k : 1; wanted.y[3] = add;
  entry *e = NULL;
  for (int i = 0; i < TILES && !e; i++)
    if (!memcmp(&o->of[i].k, &wanted, sizeof wanted)) e = &o->of[i];
  if (!e) {
    const int threads = omp_get_max_threads();
    e = &o->of[o->next++ % TILES];
    omp_set_num_threads(1);                /* what oneDNN would share the work among */
    make(e, &wanted);
    omp_set_num_threads(threads);
  }
  return multiply(e, o->stream, a, b, NULL, c);
}

void ty_tile_rows(uint16_t *to, int64_t w, int64_t filled, ty_dtype d, const void *from, int64_t apart, int64_t n, int64_t width) {
  const ty_loops *l = ty_cpu_loops();
  for (int64_t i = 0; i < n; i++) {
    const char *row = (const char *)from + i * apart * ty_dtype_size[d];
    if (d == TY_BF16) memcpy(to + i * w, row, (size_t)width * sizeof *to);
    else l->store[TY_BF16][TY_IN_F32](to + i * w, 1, row, width);
    memset(to + i * w + width, 0, (size_t)(w - width) * sizeof *to);
  }
  memset(to + n * w, 0, (size_t)((filled - n) * w) * sizeof *to);
}
