/* The source of a fused kernel: expressions of ops.def, within the code of the kernel's walk.
 *
 * Idea: each node becomes a variable v<i>; in a kernel of rows, an array with one element for each of a thread's elements of the row.
 * Sizes and strides are arguments, so that a source serves many shapes; a row's length is a constant, so that its elements stay in
 * registers.
 * Invariant: all reads come before all writes, in each thread, and with rows in each block: a tensor may be changed in place. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "block_text.h"
#include "elementary_text.h"
#include "fused.h"
#include "fused_text.h"
#include "kernels.h"
#include "math_text.h"
#include "special_text.h"

/* ---- text ---- */

typedef struct { char *p; size_t n, room; bool bad; } text;

static void say(text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(text *t, const char *fmt, ...) {
  va_list ap;
  for (int pass = 0; pass < 2 && !t->bad; pass++) {
    va_start(ap, fmt);
    const int n = vsnprintf(t->p ? t->p + t->n : NULL, t->room - t->n, fmt, ap);
    va_end(ap);
    if (n < 0) { t->bad = true; return; }
    if (t->n + (size_t)n < t->room) { t->n += (size_t)n; return; }
    const size_t room = 2 * (t->room + (size_t)n) + 4096;
    char *p = realloc(t->p, room);
    if (p) { t->p = p; t->room = room; }
    t->bad = !p;
  }
}

static const char *type_of(int d) {        /* in memory */
  static const char *const name[TY_NDTYPE] = {"f32", "uint16_t", "uint16_t", "f64", "int32_t", "i64", "uint8_t", "uint8_t"};
  return name[d];
}
static const char *held(int compute) { return compute == TY_F32 ? "f32" : compute == TY_F64 ? "f64" : "i64"; }

/* ---- expressions ---- */

typedef struct { const char *init, *map, *combine, *finish; } reduction;
static const reduction reductions[TY_NOP] = {
#define REDUCE(name, sg, dt, ac, dm, init, map, comb, fin, dc) [TY_OP_##name] = {#init, #map, #comb, #fin},
#include "ops.def"
};

static bool first_of_kind(const ty_fused *f, int i) {
  const ty_fused_node *n = &f->node[i];
  for (int k = 0; k < i; k++) {
    const ty_fused_node *m = &f->node[k];
    if (m->kind == n->kind && m->op == n->op &&
        (n->kind == TY_F_OP ? m->compute == n->compute : f->node[m->in[0]].compute == f->node[n->in[0]].compute))
      return false;
  }
  return true;
}

static void functions(text *t, const ty_fused *f) {
  for (int i = 0; i < f->nnode; i++) {
    const ty_fused_node *n = &f->node[i];
    if ((n->kind != TY_F_OP && n->kind != TY_F_REDUCE) || !first_of_kind(f, i)) continue;
    const char *T = held(n->kind == TY_F_OP ? n->compute : f->node[n->in[0]].compute), *name = n->op->name;
    say(t, "#define T %s\n#define M(f) f##_%s\n", T, T);
    if (n->kind == TY_F_OP) {
      static const char *const head[] = {"T x", "T a, T b", "T a, T b, T c"};
      say(t, "DEVICE T op_%s_%s(%s, T p, T q) { return (T)(%s); }\n", name, T, head[n->nin - 1], n->op->expr);
    } else {
      const reduction *r = &reductions[n->op->id];
      say(t, "DEVICE T init_%s_%s() { return (T)(%s); }\nDEVICE T map_%s_%s(T x) { return (T)(%s); }\n"
             "DEVICE T combine_%s_%s(T acc, T x) { return (T)(%s); }\n"
             "DEVICE T finish_%s_%s(T acc, f64 n) { return (T)(%s); }\n", name, T, r->init, name, T, r->map, name, T,
             r->combine, name, T, r->finish);
    }
    say(t, "#undef T\n#undef M\n");
  }
}

static void literal(text *t, int compute, double v) {
  uint64_t bits;                           /* text depends on the locale, and has no NaN */
  memcpy(&bits, &v, sizeof bits);
  say(t, "to_%s(number(0x%016llxull))", held(compute), (unsigned long long)bits);
}

static const char *place_of(const ty_fused *f, int node, const char *at) {
  return f->node[node].row || f->node[node].kind == TY_F_NUMBER ? "" : at;
}

/* Node i's value from its operands' variables; at: the index written behind those that have a value per element. */
static void formula(text *t, const ty_fused *f, int i, const char *at) {
  const ty_fused_node *n = &f->node[i];
  const char *T = held(n->compute), *D = ty_dtype_names[n->dtype];
  const bool rounds = ty_fused_rounds(n);
  if (rounds || n->kind == TY_F_CONVERT) say(t, "to_%s(in_%s(out_%s(", T, D, D);
  if (n->kind == TY_F_OP) {
    say(t, "op_%s_%s(", n->op->name, T);
    for (int k = 0; k < n->nin; k++) say(t, "v%d%s, ", n->in[k], place_of(f, n->in[k], at));
    literal(t, n->compute, n->p);
    say(t, ", ");
    literal(t, n->compute, n->q);
    say(t, ")");
  } else say(t, "v%d%s", n->in[0], place_of(f, n->in[0], at));
  if (rounds || n->kind == TY_F_CONVERT) say(t, ")))");
}

/* 1 where the word's uniform number is at least p, else 0 */
static void keeps(text *t, const ty_fused_node *n, const char *word, int i) {
  say(t, word, i);
  say(t, " >> 8 >= %uu ? 1 : 0", ty_least_kept(n->p));
}

/* The statement that advances the generator past what was drawn; "" if nothing was. */
static void moving(const ty_fused *f, char s[64]) {
  const int keeps = ty_fused_keeps(f, f->nnode);
  snprintf(s, 64, keeps ? "  move_on(a.g, %d * (uint64_t)((a.n + 3) / 4));\n" : "", keeps);
}

static void numbers(text *t, const ty_fused *f) {
  for (int i = 0; i < f->nnode; i++) {
    const ty_fused_node *n = &f->node[i];
    if (n->kind != TY_F_NUMBER) continue;
    say(t, "  const %s v%d = ", held(n->compute), i);
    if (n->compute == TY_I64 && n->number.kind != TY_FLOAT) say(t, "(i64)%lldull", (long long)n->number.i);
    else literal(t, n->compute, n->number.f);
    say(t, ";\n");
  }
}

static void arguments(text *t) {
  say(t, "struct arguments { void *t[%d]; generator *g; int64_t n, shape[%d], stride[%d][%d]; };\n", TY_FUSED_TENSORS,
    TY_MAXDIM, TY_FUSED_TENSORS, TY_MAXDIM);
}

/* Declares at<k>, tensor k's offset at position i of the walk. */
static void places(text *t, const ty_fused *f, const ty_fused_walk *w, const char *i) {
  const char *I = w->wide ? "uint64_t" : "uint32_t";
  bool any = false;
  for (int k = 0; k < f->ntensor; k++) {
    say(t, "  int64_t at%d = %s;\n", k, w->dense[k] ? i : "0");
    any = any || !w->dense[k];
  }
  if (!any || !w->ndim) return;
  say(t, "  %s rest = (%s)%s;\n", I, I, i);
  for (int d = w->ndim - 1; d >= 0; d--) {
    if (d) say(t, "  { const %s size = (%s)a.shape[%d], c = rest %% size; rest /= size;", I, I, d);
    else say(t, "  { const %s c = rest;", I);
    for (int k = 0; k < f->ntensor; k++)
      if (!w->dense[k] && w->stride[k][d]) say(t, " at%d += c * a.stride[%d][%d];", k, k, d);
    say(t, " }\n");
  }
}

static bool is_read(const ty_fused *f, int k) {
  for (int i = 0; i < f->nnode; i++)
    if (f->node[i].kind == TY_F_TENSOR && f->node[i].tensor == k) return true;
  return false;
}

/* ---- kernels without rows ---- */

static const char EACH_OF[] = "#pragma unroll\n  for (int e = 0; e < V; e++)";

static void elements(text *t, const ty_fused *f, const ty_fused_walk *w) {
  say(t, "template <int V> DEVICE void body(const arguments &a, int64_t i) {\n  const int m = a.n - i < V ? (int)(a.n - i) : V;\n");
  places(t, f, w, "i");
  for (int k = 0; k < f->ntensor; k++) {
    const char *D = type_of(f->tensor[k].dtype);
    const bool one = w->inner[k] == 0 && !w->dense[k];
    if (f->tensor[k].written) say(t, "  pack<%s, V> o%d;\n", D, k);
    if (!is_read(f, k)) continue;
    if (one) say(t, "  const %s x%d = ((const %s *)a.t[%d])[at%d];\n", D, k, D, k, k);
    else
      say(t, "  pack<%s, V> x%d;\n  if (m == V) x%d = take_pack<%s, V>((const %s *)a.t[%d] + at%d);\n  else {\n"
        "%s if (e < m) x%d.d[e] = ((const %s *)a.t[%d])[at%d + e];\n  }\n", D, k, k, D, D, k, k, EACH_OF, k, D, k, k);
  }
  numbers(t, f);
  for (int i = 0; i < f->nnode; i++)
    if (f->node[i].kind == TY_F_KEEP)      /* four neighbours take one Philox block's words */
      say(t, "  uint32_t w%d[V];\n  if (V %% 4 == 0) { for (int b = 0; b < V / 4; b++) ty_philox(a.g->seed, a.g->offset "
             "+ %d * ((a.n + 3) / 4) + i / 4 + b, w%d + 4 * b %% V); }\n"
             "  else {\n%s if (e < m) w%d[e] = word(a.g, (uint64_t)(%d * 4 * ((a.n + 3) / 4) + i + e));\n  }\n", i,
             ty_fused_keeps(f, i), i, EACH_OF, i, ty_fused_keeps(f, i));
  say(t, "%s {\n", EACH_OF);              /* also past the end, where nothing is stored: without a branch all stays in registers */
  for (int i = 0; i < f->nnode; i++) {
    const ty_fused_node *n = &f->node[i];
    if (n->kind == TY_F_NUMBER) continue;
    say(t, "    const %s v%d = ", held(n->compute), i);
    if (n->kind == TY_F_TENSOR)
      say(t, "to_%s(in_%s(x%d%s))", held(n->compute), ty_dtype_names[n->dtype], n->tensor,
        w->inner[n->tensor] == 0 && !w->dense[n->tensor] ? "" : ".d[e]");
    else if (n->kind == TY_F_KEEP) keeps(t, n, "w%d[e]", i);
    else formula(t, f, i, "");
    say(t, ";\n");
    if (n->to >= 0) say(t, "    o%d.d[e] = out_%s(v%d);\n", n->to, ty_dtype_names[n->dtype], i);
  }
  say(t, "  }\n");
  for (int k = 0; k < f->ntensor; k++) {
    const char *D = type_of(f->tensor[k].dtype);
    if (f->tensor[k].written)
      say(t,
        "  if (m == V) put_pack((%s *)a.t[%d] + at%d, o%d);\n  else {\n"
          "%s if (e < m) ((%s *)a.t[%d])[at%d + e] = o%d.d[e];\n  }\n",
        D, k, k, k, EACH_OF, D, k, k, k);
  }
  say(t, "}\n");
  char moves[64];
  moving(f, moves);
  for (int pass = 0; pass < (w->each > 1 ? 2 : 1); pass++)
    say(t, "extern \"C\" __global__ void __launch_bounds__(%d) %s(const arguments a) {\n"
      "  const int64_t i = ((int64_t)blockIdx.x * %d + threadIdx.x) * %d;\n  if (i < a.n) body<%d>(a, i);\n%s}\n",
        w->threads, pass ? "fused_each" : "fused", w->threads, pass ? 1 : w->each, pass ? 1 : w->each, moves);
}

/* ---- kernels of rows ---- */

static const char LOOP[] = "#pragma unroll\n  for (int e = 0; e < EACH; e++) { const int j = PLACE(e); if (j >= INNER) break;\n";

static void reduce_row(text *t, const ty_fused *f, int i) {
  const ty_fused_node *n = &f->node[i], *x = &f->node[n->in[0]];
  const char *A = held(x->compute), *name = n->op->name, *D = ty_dtype_names[n->dtype];
  const bool one = x->row || x->kind == TY_F_NUMBER;
  say(t, "  %s r%d = init_%s_%s();\n%s    r%d = combine_%s_%s(r%d, map_%s_%s(v%d%s)); }\n", A, i, name, A, LOOP, i,
    name, A, i, name, A, n->in[0], one ? "" : "[e]");
  say(t, "  r%d = finish_%s_%s(combine_block(r%d, (%s *)shared, [](%s a, %s b) { return combine_%s_%s(a, b); }), INNER);\n",
    i, name, A, i, A, A, A, name, A);
  say(t, "  const %s v%d = to_%s(in_%s(out_%s(r%d)));\n", held(n->compute), i, held(n->compute), D, D, i);
}

static void rows(text *t, const ty_fused *f, const ty_fused_walk *w) {
  /* here too, four neighbours take one Philox block's words */
  const int each = (int)((f->inner + w->threads - 1) / w->threads), together = ty_k_row_together(f->inner);
  say(t, "#define THREADS %d\n#define INNER %lld\n#define EACH %d\n#define PLACE(e) row_place<%d>(e)\n", w->threads, (long long)f->inner,
      (each + together - 1) / together * together, together);
  say(t, "extern \"C\" __global__ void __launch_bounds__(%d) fused(const arguments a) {\n"
    "  __shared__ f64 shared[THREADS / 32 + 1];\n  const int t = (int)threadIdx.x;\n", w->together ? TY_K_ROW_THREADS : w->threads);
  if (w->together)                         /* threads without a row take the last one, and store nothing */
    say(t, "  const int64_t mine = (int64_t)blockIdx.x * blockDim.y + threadIdx.y, rows = a.n / INNER;\n"
      "  const bool has = mine < rows;\n  const int64_t row = has ? mine : rows - 1;\n");
  else say(t, "  const int64_t row = blockIdx.x;\n  const bool has = true;\n");
  places(t, f, w, "row");
  numbers(t, f);
  char moves[64];
  bool open = false;
  for (int i = 0; i < f->nnode; i++) {     /* all that is read of the row */
    const ty_fused_node *n = &f->node[i];
    if (n->kind == TY_F_TENSOR && !n->row)
      say(t, "  %s x%d[EACH];\n  take_row<EACH, %d>(x%d, (const %s *)a.t[%d] + at%d, INNER, %lld);\n",
        type_of(n->dtype), i, together, i, type_of(n->dtype), n->tensor, n->tensor, (long long)w->inner[n->tensor]);
  }
  for (int i = 0; i < f->nnode; i++) {
    const ty_fused_node *n = &f->node[i];
    if (!n->row && n->kind != TY_F_NUMBER) say(t, "  %s v%d[EACH];\n", held(n->compute), i);
    if (n->kind == TY_F_KEEP && together == 4) say(t, "  uint32_t q%d[4];\n", i);
  }
  for (int i = 0; i < f->nnode; i++) {
    const ty_fused_node *n = &f->node[i];
    const char *T = held(n->compute), *D = ty_dtype_names[n->dtype];
    if (n->kind == TY_F_NUMBER) continue;
    if (!n->row && !open) say(t, "%s", LOOP);
    if (n->row && open) say(t, "  }\n");
    open = !n->row;
    if (n->kind == TY_F_REDUCE) { reduce_row(t, f, i); continue; }
    if (n->kind == TY_F_KEEP) {
      say(t, "    const uint64_t first%d = (uint64_t)(%d * 4 * ((a.n + 3) / 4) + row * INNER + j);\n", i, ty_fused_keeps(f, i));
      if (together == 4) say(t, "    if (e %% 4 == 0) ty_philox(a.g->seed, a.g->offset + first%d / 4, q%d);\n", i, i);
    }
    if (n->row) say(t, "  const %s v%d = ", T, i);
    else say(t, "    v%d[e] = ", i);
    if (n->kind == TY_F_TENSOR && n->row)
      say(t, "to_%s(in_%s(((const %s *)a.t[%d])[at%d]))", T, D, type_of(n->dtype), n->tensor, n->tensor);
    else if (n->kind == TY_F_TENSOR) say(t, "to_%s(in_%s(x%d[e]))", T, D, i);
    else if (n->kind == TY_F_KEEP) keeps(t, n, together == 4 ? "q%d[e %% 4]" : "word(a.g, first%d)", i);
    else formula(t, f, i, "[e]");
    say(t, ";\n");
  }
  if (open) say(t, "  }\n");
  say(t, "  __syncthreads();\n");           /* all threads have read the tensors of one value a row */
  for (int i = 0; i < f->nnode; i++) {
    const ty_fused_node *n = &f->node[i];
    const char *D = type_of(n->dtype), *name = ty_dtype_names[n->dtype];
    if (n->to < 0) continue;
    if (n->row) say(t, "  if (has && t == 0) ((%s *)a.t[%d])[at%d] = out_%s(v%d);\n", D, n->to, n->to, name, i);
    else
      say(t, "  if (has) { %s o[EACH];\n#pragma unroll\n  for (int e = 0; e < EACH; e++) o[e] = out_%s(v%d[e]);\n"
        "  put_row<EACH, %d>((%s *)a.t[%d] + at%d, INNER, %lld, o); }\n", D, name, i, together, D, n->to, n->to,
        (long long)w->inner[n->to]);
  }
  moving(f, moves);
  say(t, "%s}\n", moves);
}

char *ty_fused_source(const ty_fused *f, const ty_fused_walk *w) {
  text t = {0};
  /* elementary.h, math.h, special.h, kernels/block.cuh, kernels/fused.cuh */
  say(&t, "%s%s%s%s%s", TY_ELEMENTARY_TEXT, TY_MATH_TEXT, TY_SPECIAL_TEXT, TY_BLOCK_TEXT, TY_FUSED_TEXT);
  functions(&t, f);
  arguments(&t);
  if (f->nred) rows(&t, f, w);
  else elements(&t, f, w);
  if (!t.bad) return t.p;
  free(t.p);
  return NULL;
}
