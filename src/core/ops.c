/* The op table as data: the rows of ops.def with their signatures parsed.
 *
 * Idea: each signature is parsed once, into ty_op.param; argument checks, defaults and error texts follow from that, for ops
 * and for functions written in Lua alike. Invariant: after ty_ops_init only the registration of gradient rules changes the
 * table, and it is the same for every Lua state. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE           /* strtod_l */
#endif
#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "draws.h"
#include "fourier.h"
#include "grid_points.h"
#include "group.h"
#include "taps.h"

ty_status ty_infer_pointwise(ty_call *c);
ty_status ty_infer_reduce(ty_call *c);
#define OP(name, cls, sig, nout, infer, ...) ty_status ty_infer_##infer(ty_call *c);
#include "ops.def"

ty_op ty_ops[TY_NOP] = {
#define POINTWISE(n, nm, sg, dt, ac, dm, ex, dc) \
  {.name = #nm, .sig = sg, .doc = dc, .domain = dm, .expr = #ex, .cls = TY_C_POINTWISE, .dtype = TY_D_##dt, .cast = TY_A_##ac, \
   .infer = ty_infer_pointwise, .nout = 1},
#define REDUCE(nm, sg, dt, ac, dm, init, map, comb, fin, dc) \
  {.name = #nm, .sig = sg, .doc = dc, .domain = dm, .expr = #comb, .cls = TY_C_REDUCE, \
   .dtype = TY_D_##dt, .cast = TY_A_##ac, .infer = ty_infer_reduce, .nout = 1},
#define OP(nm, cl, sg, no, inf, ac, dm, dc) \
  {.name = #nm, .sig = sg, .doc = dc, .domain = dm, .expr = "", .cls = TY_C_##cl, .cast = TY_A_##ac, .infer = ty_infer_##inf, .nout = no},
#include "ops.def"
};

/* Code that ops share reads attributes by the first op's names, so the other ops must have them in the same slots. */
#define ALIKE(first, name, op, its) \
  _Static_assert(TY_AT_##first##_##name == TY_AT_##op##_##its, #op " must have " #its " where " #first " has " #name);
#define SAME(first, name, op) ALIKE(first, name, op, name)
#define REDUCES(op) SAME(sum, dim, op) SAME(sum, keepdim, op)
#define CREATES(op) SAME(zeros, size, op) SAME(zeros, dtype, op) SAME(zeros, device, op)
#define LOSS_OPTIONS(op) SAME(cross_entropy_rows, ignore_index, op) SAME(cross_entropy_rows, label_smoothing, op)
REDUCES(nansum) REDUCES(mean) REDUCES(prod) REDUCES(amax) REDUCES(amin) REDUCES(any) REDUCES(all) REDUCES(norm2)
SAME(max_dim, dim, min_dim) SAME(max_dim, keepdim, min_dim)
CREATES(empty) CREATES(ones) CREATES(rand) CREATES(randn) SAME(zeros, size, full)
LOSS_OPTIONS(cross_entropy_backward) LOSS_OPTIONS(cross_entropy_mean) LOSS_OPTIONS(cross_entropy_mean_backward)
SAME(softmax, dim, log_softmax) SAME(softmax, dim, softmax_backward) SAME(softmax, dim, log_softmax_backward)
SAME(softmax, dtype, log_softmax)
SAME(strided_take, layout, strided_put) SAME(strided_take, size, strided_put) SAME(strided_take, stride, strided_put)
SAME(strided_take, offset, strided_put) SAME(tril, k, triu) SAME(cat, dim, stack)
SAME(layer_norm_stats, size, rms_norm_stats) SAME(layer_norm_stats, eps, rms_norm_stats)
SAME(attention, causal, attention_backward) SAME(attention, scale, attention_backward) SAME(attention, dropout, attention_backward)
SAME(attention, causal, attention_backward_with_mask) SAME(attention, scale, attention_backward_with_mask)
SAME(attention, dropout, attention_backward_with_mask)
SAME(recurrent, kind, recurrent_backward) SAME(recurrent, reverse, recurrent_backward)
SAME(sum, dtype, mean) SAME(sum, dtype, prod)
SAME(cumsum, dim, cumprod) SAME(cumsum, dim, cummax) SAME(cumsum, dim, cummin) SAME(cumsum, dim, logcumsumexp)
SAME(cumsum, dim, cumprod_backward) SAME(cumsum, dtype, cumprod) SAME(cumsum, dtype, logcumsumexp)
SAME(gather, dim, scatter) SAME(gather, dim, scatter_add) SAME(gather, dim, scatter_combine)
SAME(index, dims, index_put) SAME(select, dim, slice) ALIKE(select, index, slice, first)
ALIKE(uniform, low, normal, mean) ALIKE(uniform, high, normal, std) ALIKE(exponential, lambd, dropout_mask, p)
SAME(max_pool2d_indices, kernel_size, max_pool2d_values) SAME(max_pool2d_indices, dilation, max_pool2d_values)
SAME(max_pool2d_backward, size, avg_pool2d_backward) SAME(max_pool2d_backward, size, adaptive_avg_pool2d_backward)
SAME(adaptive_avg_pool2d_windows, output_size, adaptive_max_pool2d_indices)

static const char *const type_names[TY_P_NTYPES] = {"tensor", "operand", "tensors", "int", "number", "bool", "dim", "dims",
  "sizes", "ints", "single", "pair", "triple", "dtype", "enum", "string", "device", "any"};

static int find_type(const char *s, size_t n) {
  for (int i = 0; i < TY_P_NTYPES; i++)
    if (strlen(type_names[i]) == n && !strncmp(type_names[i], s, n)) return i;
  return -1;
}

/* s as a number with a decimal point, whatever the host's locale is. */
static double number_of(const char *s) {
  const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  const double v = c ? strtod_l(s, NULL, c) : atof(s);
  if (c) freelocale(c);
  return v;
}

int ty_choice(const ty_param *p, const char *word, size_t n) {
  const char *q = p->choices;
  for (int i = 0;; i++) {
    const size_t m = strcspn(q, ",");
    if (m == n && !memcmp(q, word, n)) return i;
    q += m;
    if (!*q++) return -1;
  }
}
const char *ty_choice_name(const ty_param *p, int64_t i, size_t *n) {
  const char *q = p->choices;
  for (; i > 0; i--) q += strcspn(q, ",") + 1;
  *n = strcspn(q, ",");
  return q;
}

/* Parses a default's text into p->def. False: it doesn't fit the type. */
static bool parse_default(ty_param *p, const char *s) {
  ty_attr *a = &p->def;
  a->set = true;
  switch (p->type) {
    case TY_P_NUMBER: a->f = !strcmp(s, "inf") ? INFINITY : !strcmp(s, "-inf") ? -INFINITY : number_of(s); return true;
    case TY_P_BOOL: a->i = !strcmp(s, "true"); return true;
    case TY_P_INT: a->i = atoll(s); return true;
    case TY_P_DIM: a->i = atoll(s); a->i -= a->i > 0; return true;
    case TY_P_SINGLE: case TY_P_PAIR: case TY_P_TRIPLE:
      a->n = (uint8_t)(p->type - TY_P_SINGLE + 1);
      for (int i = 0; i < a->n; i++) a->v[i] = atoll(s);
      return true;
    case TY_P_ENUM: a->i = ty_choice(p, s, strlen(s)); return a->i >= 0;
    default: return false;
  }
}

/* One parameter: name[!][~][?][:type[(choices)]][?][=default] */
static bool parse_param(ty_op *op, char *s, bool keyword) {
  if (op->nparam == TY_MAXPARAM) return false;
  ty_param *p = &op->param[op->nparam];
  memset(p, 0, sizeof *p);
  p->keyword = keyword;
  size_t n = 0;
  while (isalnum((unsigned char)s[n]) || s[n] == '_') n++;
  if (n == 0 || n >= sizeof p->name) return false;
  memcpy(p->name, s, n);
  s += n;
  p->type = TY_P_TENSOR;
  for (; *s; s++) {
    if (*s == '!') p->mutated = op->mutates = true;
    else if (*s == '~') op->in_place = true;
    else if (*s == '?') p->optional = true;
    else if (*s == ':') {
      n = strcspn(++s, "(?=");
      int t = find_type(s, n);
      if (t < 0) return false;
      p->type = (uint8_t)t;
      s += n;
      if (*s == '(') {
        n = strcspn(++s, ")");
        if (n >= sizeof p->choices || !s[n]) return false;
        memcpy(p->choices, s, n);
        s += n;
      } else s--;
    } else if (*s == '=') {
      p->optional = true;
      if (!parse_default(p, s + 1)) return false;
      break;
    } else return false;
  }
  bool operand = ty_param_is_operand(p);
  if (operand ? op->nin == TY_MAXPARAM : op->nattr == TY_MAXATTR) return false;
  p->slot = (uint8_t)(operand ? op->nin++ : op->nattr++);
  if (p->type == TY_P_TENSORS) op->has_list = true;
  if (p->type == TY_P_DEVICE) op->device = p->slot;
  if (p->type < TY_P_TENSORS && !keyword && op->lead == op->nparam) op->lead++;
  op->nparam++;
  return true;
}

ty_status ty_sig_parse(const char *sig, ty_op *op, char *err) {
  char buf[400], *s = buf;
  bool keyword = false;
  op->nparam = op->nin = op->nattr = op->lead = 0;
  op->device = -1;
  if (strlen(sig) >= sizeof buf) goto bad;
  strcpy(buf, sig);
  while (*s) {
    while (*s == ' ' || *s == ',') s++;
    if (!*s) break;
    char *end = s;
    for (int depth = 0; *end && (depth || *end != ','); end++) depth += (*end == '(') - (*end == ')');
    bool last = !*end;
    *end = 0;
    for (char *q = s + strlen(s); q > s && q[-1] == ' ';) *--q = 0;
    if (!strcmp(s, "*")) keyword = true;
    else if (!parse_param(op, s, keyword)) goto bad;
    if (last) break;
    s = end + 1;
  }
  return TY_OK;
bad:
  snprintf(err, TY_ERRLEN, "bad signature '%s'", sig);
  return TY_ERR;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char init_error[TY_ERRLEN];

/* Whether an expression calls functions other than those that are one instruction. */
static bool is_costly(const char *expression) {
  static const char *const instructions[] = {"M(max)", "M(min)", "M(clamp)", "M(abs)"};
  for (const char *m = expression; (m = strstr(m, "M(")); m += 2) {
    bool one = false;
    for (unsigned i = 0; i < sizeof instructions / sizeof *instructions; i++)
      one = one || !strncmp(m, instructions[i], strlen(instructions[i]));
    if (!one) return true;
  }
  return false;
}
static int slot_named(const ty_op *op, const char *name) {
  const ty_param *p = ty_op_param(op, name);
  return p ? p->slot : -1;
}
/* The slot for ty_op.cast_first. */
static int cast_slot(const ty_op *op) {
  return op->cls == TY_C_REDUCE || op->cls == TY_C_SCAN || op->cls == TY_C_SOFTMAX ? slot_named(op, "dtype") : -1;
}

/* Whether all ops of its kind have an in-place form. */
static bool changes_like_its_class(const ty_op *op) {
  if (op->cls == TY_C_POINTWISE || op->cls == TY_C_SCAN) return strcmp(op->domain, "internal") && op->nout == 1;
  return op->cls == TY_C_RANDOM && op->nin == 1 && op->nout == 1;
}

/* Enum parameters whose choices C knows by number, with the words that ops.def must have. */
static const struct { ty_op_id op; const char *param, *words; } numbered[] = {
  {TY_OP_cast, "memory_format", TY_MEMORY_FORMATS(TY_AS_TEXT)}, {TY_OP_clone, "memory_format", TY_MEMORY_FORMATS(TY_AS_TEXT)},
  {TY_OP_resize, "mode", TY_RESIZINGS(TY_AS_TEXT)}, {TY_OP_resize_backward, "mode", TY_RESIZINGS(TY_AS_TEXT)},
  {TY_OP_grid_sample_take, "padding_mode", TY_PADDINGS(TY_AS_TEXT)},
  {TY_OP_grid_sample_backward_grid, "padding_mode", TY_PADDINGS(TY_AS_TEXT)},
  {TY_OP_grid_sample_backward_x, "padding_mode", TY_PADDINGS(TY_AS_TEXT)}, {TY_OP_recurrent, "kind", TY_RECURRENT_KINDS(TY_AS_TEXT)},
  {TY_OP_grid_sample_take, "mode", TY_GRID_MODES(TY_AS_TEXT)}, {TY_OP_grid_sample_backward_x, "mode", TY_GRID_MODES(TY_AS_TEXT)},
  {TY_OP_drawn, "kind", TY_DRAW_KINDS(TY_AS_TEXT)}, {TY_OP_fourier, "kind", TY_FOURIER_KINDS(TY_AS_TEXT)},
  {TY_OP_scatter_combine, "how", TY_COMBINATIONS(TY_AS_TEXT)},
  {TY_OP_recurrent_backward, "kind", TY_RECURRENT_KINDS(TY_AS_TEXT)}, {TY_OP_collective, "kind", TY_COLLECTIVES(TY_AS_TEXT)},
  {TY_OP_collective, "reduction", TY_REDUCTIONS(TY_AS_TEXT)}};

/* scripts/attributes parses signatures too, to make attributes.h: its slots must be these. */
static void check_slots(void) {
#define SLOT(op, name) {TY_OP_##op, #name, TY_AT_##op##_##name},
  static const struct { int op; const char *name; int slot; } made[] = {TY_ATTRIBUTES(SLOT)};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    const ty_param *p = ty_op_param(&ty_ops[made[i].op], made[i].name);
    if (p && !ty_param_is_operand(p) && p->slot == made[i].slot) continue;
    snprintf(init_error, TY_ERRLEN, "%s: attributes.h has %s at %d", ty_ops[made[i].op].name, made[i].name, made[i].slot);
    return;
  }
}

static void check_numbers(void) {
  for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
    const ty_param *p = ty_op_param(&ty_ops[numbered[i].op], numbered[i].param);
    if (p && !strcmp(p->choices, numbered[i].words + 1)) continue;
    snprintf(init_error, TY_ERRLEN, "%s: ops.def lists %s as %s, C has %s", ty_ops[numbered[i].op].name, numbered[i].param,
      p ? p->choices : "nothing", numbered[i].words + 1);
    return;
  }
}

static void init(void) {
  for (int i = 0; i < TY_NOP; i++) {
    ty_ops[i].id = i;
    ty_ops[i].shown = !strcmp(ty_ops[i].domain, "internal") && ty_ops[i].doc[0] ? ty_ops[i].doc : ty_ops[i].name;
    if (ty_sig_parse(ty_ops[i].sig, &ty_ops[i], init_error) != TY_OK) return;
    ty_ops[i].cast_first = cast_slot(&ty_ops[i]);
    ty_ops[i].rate = ty_ops[i].cls == TY_C_OPTIM ? slot_named(&ty_ops[i], "lr") : -1;
    ty_ops[i].training = ty_ops[i].mutates ? slot_named(&ty_ops[i], "training") : -1;
    ty_ops[i].costly = is_costly(ty_ops[i].expr);
    ty_ops[i].in_place |= changes_like_its_class(&ty_ops[i]);
  }
  for (ty_op *f = ty_shape_functions; f->name; f++) {
    f->shown = f->name;
    f->domain = "any";
    f->nout = 1;
    f->cast_first = f->rate = f->training = -1;
    if (ty_sig_parse(f->sig, f, init_error) != TY_OK) return;
  }
  check_slots();
  check_numbers();
}

ty_status ty_ops_init(char *err) {
  pthread_once(&once, init);
  memcpy(err, init_error, TY_ERRLEN);
  return init_error[0] ? TY_ERR : TY_OK;
}

double ty_parameter(const ty_call *c, int slot) {
  return ty_attr_param(c->op, slot)->type == TY_P_NUMBER ? c->at[slot].f : (double)c->at[slot].i;
}

ty_op *ty_op_find(const char *name) {
  for (int i = 0; i < TY_NOP; i++)
    if (!strcmp(ty_ops[i].name, name)) return &ty_ops[i];
  return NULL;
}

const ty_param *ty_op_param(const ty_op *op, const char *name) {
  for (int i = 0; i < op->nparam; i++)
    if (!strcmp(op->param[i].name, name)) return &op->param[i];
  return NULL;
}

static const ty_param *param_of(const ty_op *op, bool operand, int slot) {
  int i = 0;
  while (i < op->nparam - 1 && (ty_param_is_operand(&op->param[i]) != operand || op->param[i].slot != slot)) i++;
  return &op->param[i];
}
const ty_param *ty_operand_param(const ty_op *op, int slot) { return param_of(op, true, slot); }
const ty_param *ty_attr_param(const ty_op *op, int slot) { return param_of(op, false, slot); }

/* How many letters to insert, delete, replace or swap with their neighbour to turn a into b. For short names. */
static int distance(const char *a, const char *b) {
  int n = (int)strlen(b), rows[3][64], *before = rows[0], *last = rows[1], *row = rows[2];
  if (n >= 64) return 99;
  for (int j = 0; j <= n; j++) row[j] = j;
  for (int i = 1; a[i - 1]; i++) {
    int *const oldest = before;
    before = last;
    last = row;
    row = oldest;
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      row[j] = TY_MIN(last[j - 1] + (a[i - 1] != b[j - 1]), TY_MIN(last[j], row[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = TY_MIN(row[j], before[j - 2] + 1);
    }
  }
  return row[n];
}

const char *ty_nearest(const char *name, const char *const *list, int n) {
  const int len = (int)strlen(name), far = len <= 3 ? 2 : len <= 6 ? 3 : 4;
  int best = far;
  const char *found = NULL;
  for (int i = 0; i < n; i++) {
    if (!strcasecmp(name, list[i])) return list[i];
    int d = distance(name, list[i]);
    if (len >= 3 && d >= far && strstr(list[i], name)) d = far - 1;          /* part of a longer name */
    if (d >= len || !list[i][1]) continue;           /* nothing in common; one letter is near to any short name */
    if (d < best || (d == best && found && strlen(list[i]) < strlen(found))) { best = d; found = list[i]; }
  }
  return found;
}
