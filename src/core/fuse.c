/* Decides which steps of a program run as one kernel.
 *
 * Idea: each step starts as a group of its own, in the order of the record. A group is merged with an earlier one if both are pointwise
 * over one shape and share elements, and if one can be moved next to the other: no step in between touches what it writes, or writes what
 * it touches. A group may also reduce rows (the last dims of its shape): sums, softmax, layer_norm. Such a group also takes in steps over
 * one value a row. fused.c makes a kernel of a group with several steps; values that only these touch are never stored.
 * Invariants: two steps keep their order if they touch the same memory and one writes it; within a group, both touch such memory at the
 * same elements, or rows. */
#include <string.h>
#include "fuse.h"

#define LOOK_BACK 64       /* earlier groups that a group may merge with */
#define FEW 4096           /* elements: groups of one shape up to this size are merged even if they share none, to save launches */
#define SHORT_ROW 32       /* elements: shorter rows are not worth the loop, unless there are few in all */
#define SMALL_CAST (1 << 20)   /* elements: beside the work of larger casts a launch costs nothing */

/* How a group uses a value. steps: how many use it; last: the newest of them; row: as one value a row. */
typedef struct { int store, value, steps, last; bool writes, row; } access;

/* A group that is being formed. */
typedef struct {
  int *step, nstep, step_room;             /* in the order of the record */
  access *at;
  int nat, at_room;
  bool whole;                              /* dropout or batch_norm_apply is part of it: they can't work on one value a row */
  ty_joint joint;
  bool pointwise, flat;                    /* flat: every tensor is contiguous, or one element */
  int ndim, nred;                          /* nred: how many last dims form a row; 0: no rows are reduced */
  int64_t shape[TY_MAXDIM], n, inner;
  const ty_backend *backend;
  const char *why;                         /* why it isn't merged with a group that shares its elements */
} forming;

/* All groups. touches: how many steps touch each store; -1: its contents are needed after the run. */
typedef struct { const ty_recording *r; forming *list; int n, *touches; } groups;

static bool note(forming *g, access a) {
  for (int i = 0; i < g->nat; i++) {
    access *b = &g->at[i];
    if (b->store != a.store || b->value != a.value || b->row != a.row) continue;
    if (b->last != a.last) b->steps += a.steps;
    b->last = a.last;
    b->writes = b->writes || a.writes;
    return true;
  }
  if (!ty_grow(&g->at, g->nat + 1, &g->at_room, sizeof(access))) return false;
  g->at[g->nat++] = a;
  return true;
}

/* ---- one step ---- */

static bool fusable(const ty_recording *r, const step *k) {
  const ty_call *c = &k->call;
  const ty_op *op = c->op;
  if (!k->backend->fuse || k->vout[0] < 0) return false;
  if (op->id == TY_OP_dropout_mask || op->id == TY_OP_batch_norm_apply) return ty_numel(&r->value[k->vout[0]].like) > 0;
  if ((op->cls != TY_C_POINTWISE && !ty_is_copy(op->id)) || op->nattr > 2) return false;
  const ty_tensor *o = &r->value[k->vout[0]].like;
  if (ty_numel(o) == 0) return false;
  for (int i = 0; i < c->nin; i++) {
    const ty_tensor *t = k->vin[i] >= 0 ? &r->value[k->vin[i]].like : NULL;
    if (!t && !ty_is_number(&c->in[i]) && c->in[i].kind != TY_BOOLEAN) return false;
    if (t && op->cls == TY_C_POINTWISE && ty_rounds_numbers(c) && t->ndim == 0 && t->dtype != c->common) return false;
    if (op->id == TY_OP_copy && i == 1 && !t && !ty_is_float(o->dtype) && c->in[1].kind == TY_FLOAT) return false;
  }
  return true;
}

/* Whether the last n dims are contiguous and no other dim has stride 0: then a reduction that runs alone also adds up row by row, in this
   order, so fusing it doesn't change its bits. */
static bool rows_in_order(const ty_tensor *x, int n) {
  int64_t want = 1;
  for (int d = x->ndim - 1; d >= x->ndim - n; d--) {
    if (x->shape[d] == 1) continue;
    if (x->stride[d] != want) return false;
    want *= x->shape[d];
  }
  for (int d = 0; d < x->ndim - n; d++)
    if (x->shape[d] > 1 && x->stride[d] == 0) return false;
  return true;
}

/* How many last dims of its first operand the step reduces; 0: it is no row reduction that can be fused. */
static int reduced_dims(const ty_recording *r, const step *k) {
  const ty_call *c = &k->call;
  if (!k->backend->fuse || k->vin[0] < 0 || !c->op->nout) return 0;
  const ty_tensor *x = &r->value[k->vin[0]].like;
  int n = 0;
  if (c->op->id == TY_OP_layer_norm_stats || c->op->id == TY_OP_rms_norm_stats) n = c->at[TY_AT_layer_norm_stats_size].n;
  else if (c->op->cls == TY_C_SOFTMAX) n = c->at[TY_AT_softmax_dim].i == x->ndim - 1;
  else if (c->op->cls == TY_C_REDUCE && !c->at[TY_AT_sum_dim].set) n = x->ndim;
  else if (c->op->cls == TY_C_REDUCE) {
    unsigned mask = 0;
    for (int i = 0; i < c->at[TY_AT_sum_dim].n; i++) mask |= 1u << c->at[TY_AT_sum_dim].v[i];
    while (n < x->ndim && mask >> (x->ndim - 1 - n) & 1) n++;
    if (n != c->at[TY_AT_sum_dim].n) return 0;
  }
  if (c->op->cls == TY_C_REDUCE && !rows_in_order(x, n)) return 0;
  int64_t inner = 1;
  for (int i = 0; i < n; i++) inner *= x->shape[x->ndim - 1 - i];
  return inner < 2 || inner > TY_FUSED_ROW || (inner < SHORT_ROW && ty_numel(x) > FEW) || ty_numel(x) == 0 ? 0 : n;
}

static bool begin(const ty_recording *r, int at, forming *g) {
  const step *k = &r->step[at];
  const ty_op *op = k->call.op;
  *g = (forming){.backend = k->backend, .nred = reduced_dims(r, k),
    .whole = op->id == TY_OP_dropout_mask || op->id == TY_OP_batch_norm_apply};
  g->pointwise = g->nred || fusable(r, k);
  if (!ty_grow(&g->step, 1, &g->step_room, sizeof(int))) return false;
  g->step[g->nstep++] = at;
  for (int i = 0; i < k->call.nin; i++)
    if (k->vin[i] >= 0 && ty_reads(op, i) &&
        !note(g, (access){r->value[k->vin[i]].store, k->vin[i], 1, at, ty_mutates_operand(&k->call, i), false}))
      return false;
  for (int j = 0; j < TY_MAXOUT; j++)
    if (k->vout[j] >= 0 &&
        !note(g, (access){r->value[k->vout[j]].store, k->vout[j], 1, at, true, g->nred && (j > 0 || op->cls == TY_C_REDUCE)}))
      return false;
  /* the random generator counts as store nstore, so that random ops keep their order */
  if ((op->cls == TY_C_RANDOM || op->cls == TY_C_ATTENTION) && !note(g, (access){r->nstore, -1, 1, at, true, false}))
    return false;
  if (!g->pointwise) return true;
  const ty_tensor *o = &r->value[g->nred ? k->vin[0] : k->vout[0]].like;
  g->ndim = o->ndim;
  memcpy(g->shape, o->shape, sizeof(int64_t) * o->ndim);
  g->n = ty_numel(o);
  g->inner = 1;
  for (int i = 0; i < g->nred; i++) g->inner *= g->shape[g->ndim - 1 - i];
  g->flat = !g->nred && op->id != TY_OP_batch_norm_apply;    /* it needs its channels' dim */
  for (int i = 0; i < g->nat; i++) g->flat = g->flat && (g->at[i].value < 0 || ty_is_flat(&r->value[g->at[i].value].like, g->n));
  return true;
}

/* ---- two groups ---- */

static bool conflict(const forming *a, const forming *b) {
  for (int i = 0; i < a->nat; i++)
    for (int j = 0; j < b->nat; j++)
      if (a->at[i].store == b->at[j].store && (a->at[i].writes || b->at[j].writes)) return true;
  return false;
}

static bool related(const ty_recording *r, const forming *a, const forming *b) {
  for (int i = 0; i < a->nat; i++)
    for (int j = 0; j < b->nat; j++) {
      if (a->at[i].store != b->at[j].store || a->at[i].value < 0) continue;
      const int64_t n = ty_numel(&r->value[b->at[j].value].like);
      if (n == a->n || n == b->n || n * a->inner == a->n || n * b->inner == b->n) return true;     /* all elements, or one a row */
    }
  return false;
}

/* Whether only these two groups touch the store, and its contents are not needed after the run. */
static bool private(const groups *all, const forming *a, const forming *b, int store) {
  int steps = 0;
  if (all->touches[store] < 0) return false;
  for (int i = 0; i < a->nat; i++) steps += a->at[i].store == store ? a->at[i].steps : 0;
  for (int i = 0; b && i < b->nat; i++) steps += b->at[i].store == store ? b->at[i].steps : 0;
  return steps == all->touches[store];
}

/* Whether small works on one value for each row of big. */
static bool row_level(const forming *big, const forming *small) {
  if (!big->nred || small->nred || small->whole || small->n * big->inner != big->n) return false;
  if (small->flat) return true;
  bool same = small->ndim == big->ndim;
  for (int i = 0; same && i < big->ndim; i++) same = small->shape[i] == (i < big->ndim - big->nred ? big->shape[i] : 1);
  return same;
}

/* Whether t, an operand of big's steps over elements, broadcasts one value a row. */
static bool row_like(const ty_tensor *t, const forming *big) {
  for (int i = 0; i < big->nred && i < t->ndim; i++)
    if (t->shape[t->ndim - 1 - i] != 1) return false;
  return true;
}

/* Why a and b can't become one group; NULL: they can. */
static const char *refuses(const groups *all, const forming *a, const forming *b) {
  const ty_recording *r = all->r;
  const forming *big = a->nred || !b->nred ? a : b, *other = big == a ? b : a;
  const bool rows = row_level(big, other);
  int tensors = 0;
  if (a->backend != b->backend || (a->n != b->n && !rows)) return "a different number of elements";
  if (a->nred && b->nred && a->inner != b->inner) return "different dims are reduced";
  if (!rows && !a->flat && !b->flat && (a->ndim != b->ndim || memcmp(a->shape, b->shape, sizeof(int64_t) * (size_t)a->ndim)))
    return "a different shape";
  if (TY_FUSED_PER_STEP * (a->nstep + b->nstep) > TY_FUSED_NODES) return "too many steps";
  for (int j = 0; j < b->nat; j++) tensors += !private(all, a, b, b->at[j].store);
  for (int i = 0; i < a->nat; i++) {
    bool known = false;
    for (int j = 0; j < b->nat; j++) {
      const access *x = &a->at[i], *y = &b->at[j];
      if (x->store != y->store) continue;
      bool same = x->value == y->value || ty_same_elements(r, x->value, y->value);
      known = known || same;
      const bool xrow = x->row || (rows && other == a), yrow = y->row || (rows && other == b);
      if (same && xrow != yrow) same = row_like(&r->value[xrow ? y->value : x->value].like, big);
      if (!same && (x->writes || y->writes)) return "elements in a different order";
    }
    tensors += !known && !private(all, a, b, a->at[i].store);
  }
  return tensors > TY_FUSED_TENSORS ? "too many tensors" : NULL;
}

static bool merge(forming *into, const forming *g) {
  const bool rows = row_level(into, g), own_rows = row_level(g, into);
  if (!ty_grow(&into->step, into->nstep + g->nstep, &into->step_room, sizeof(int))) return false;
  for (int i = 0; i < g->nstep; i++) {     /* both are in order */
    int k = into->nstep++;
    for (; k > 0 && into->step[k - 1] > g->step[i]; k--) into->step[k] = into->step[k - 1];
    into->step[k] = g->step[i];
  }
  for (int i = 0; i < into->nat && own_rows; i++) into->at[i].row = true;
  for (int i = 0; i < g->nat; i++) {
    access a = g->at[i];
    a.row = a.row || rows;
    if (!note(into, a)) return false;
  }
  into->whole = into->whole || g->whole;
  if (own_rows || (!rows && (g->nred || (into->flat && !g->flat)))) {
    into->flat = false;
    into->ndim = g->ndim;
    into->nred = g->nred;
    into->n = g->n;
    into->inner = g->inner;
    memcpy(into->shape, g->shape, sizeof into->shape);
  }
  return true;
}

static void drop(forming *g) { ty_free(g->step); ty_free(g->at); }

/* Merges groups a and b (a is earlier) if one can be moved to the other. *at: the merged group's place; *why: why they were not merged, or
   NULL. false: out of memory. */
static bool unite(groups *all, int a, int b, int *at, const char **why) {
  forming *g = all->list;
  bool hoists = true, sinks = true;
  for (int k = a + 1; k < b && (hoists || sinks); k++) {
    hoists = hoists && !conflict(&g[k], &g[b]);
    sinks = sinks && !conflict(&g[a], &g[k]);
  }
  *why = hoists || sinks ? NULL : "a step between them depends on their order";
  if (*why) return true;
  const int to = hoists ? a : b, from = hoists ? b : a;
  if (!merge(&g[to], &g[from])) return false;
  drop(&g[from]);
  memmove(&g[from], &g[from + 1], sizeof(forming) * (size_t)(all->n - 1 - from));
  all->n--;
  *at = hoists ? a : b - 1;
  return true;
}

/* Merges the last group with earlier ones, as often as possible. */
static bool absorb(groups *all) {
  int at = all->n - 1;
  for (bool again = true; again;) {
    again = false;
    for (int i = at - 1; i >= 0 && i >= at - LOOK_BACK && !again; i--) {
      forming *g = &all->list[i], *last = &all->list[at];
      const bool common = related(all->r, g, last);
      if (!g->pointwise || (!common && (g->n != last->n || last->n > FEW || g->nred || last->nred))) continue;
      const char *why = refuses(all, g, last);
      if (!why && !unite(all, i, at, &at, &why)) return false;
      if (!why) again = true;
      else if (common) last->why = why;
    }
  }
  return true;
}

static bool is_float32_or_16bit(ty_dtype d) { return d == TY_F32 || ty_is_16bit(d); }

static bool is_cast(const ty_recording *r, const forming *g) {
  const step *k = &r->step[g->step[0]];
  if (g->nstep != 1 || k->call.op->id != TY_OP_cast || !g->backend->joint || g->n > SMALL_CAST) return false;
  const ty_tensor *from = &r->value[k->vin[0]].like, *to = &r->value[k->vout[0]].like;
  const bool turned = from->ndim == 4 &&
    ((ty_is_contiguous(from) && ty_is_channels_last(to)) || (ty_is_channels_last(from) && ty_is_contiguous(to)));
  return (g->flat || turned) && is_float32_or_16bit(from->dtype) && is_float32_or_16bit(to->dtype) &&
    ty_numel(from) == g->n;
}

/* Makes joint groups of casts that were not fused (of parameters, of their gradients), to save launches. */
static bool gather_casts(groups *all) {
  for (int at = 0; at < all->n; at++) {
    if (!is_cast(all->r, &all->list[at])) continue;
    for (int i = at - 1; i >= 0 && i >= at - LOOK_BACK; i--) {
      forming *g = &all->list[i];
      if (g->backend != all->list[at].backend || (!(g->joint == TY_JOINT_CASTS && g->nstep < TY_JOINED) && !is_cast(all->r, g))) continue;
      int where = at;
      const char *why = conflict(g, &all->list[at]) ? "one is computed from the other" : NULL;
      if (!why && !unite(all, i, at, &where, &why)) return false;
      if (why) continue;
      all->list[where].joint = TY_JOINT_CASTS;
      at = where > i ? where : at - 1;
      break;
    }
  }
  return true;
}

/* Whether `found`, which looks for infinities in tensors, can join a group of casts: some of its tensors are casts' results, the
   others fit beside them, and no other such step has joined. */
static bool looks_at(const ty_recording *r, const forming *casts, const step *found) {
  int others = 0, given = 0;
  for (int i = 0; i < casts->nstep; i++)
    if (r->step[casts->step[i]].call.op->id != TY_OP_cast) return false;
  for (int k = 0; k < found->call.span[0].count; k++) {
    const int v = found->vin[found->call.span[0].start + k];
    const ty_tensor *t = &r->value[v].like;
    bool known = false;
    for (int i = 0; i < casts->nstep; i++) known = known || r->step[casts->step[i]].vout[0] == v;
    given += known;
    others += !known;
    if (!known && (!ty_is_dense(t) || !is_float32_or_16bit(t->dtype))) return false;
  }
  return given && given <= casts->nstep && casts->nstep + others < TY_JOINED;
}

/* A step that looks for infinities in casts' results joins the casts. */
static bool gather_found(groups *all) {
  for (int at = 0; at < all->n; at++) {
    const step *found = &all->r->step[all->list[at].step[0]];
    if (found->call.op->id != TY_OP_multi_found || !all->list[at].backend->joint) continue;
    for (int i = at - 1; i >= 0 && i >= at - LOOK_BACK; i--) {
      forming *g = &all->list[i];
      if (g->backend != all->list[at].backend || !(g->joint == TY_JOINT_CASTS || is_cast(all->r, g)) ||
          !looks_at(all->r, g, found))
        continue;
      int where = at;
      const char *why;
      if (!unite(all, i, at, &where, &why)) return false;
      if (why) continue;
      all->list[where].joint = TY_JOINT_CASTS;
      at--;
      break;
    }
  }
  return true;
}

static int group_of(const groups *all, int step) {
  for (int i = 0; i < all->n; i++)
    for (int k = 0; k < all->list[i].nstep; k++)
      if (all->list[i].step[k] == step) return i;
  return -1;
}

/* Puts the steps' groups side by side, if all groups between them can go before or behind. *ok false: out of memory. */
static bool side_by_side(groups *all, const int *step, int n, bool *ok) {
  const int from = group_of(all, step[0]), to = group_of(all, step[n - 1]), between = to - from + 1;
  enum { BEFORE, OWN, BEHIND } *where = ty_malloc(sizeof *where * (size_t)between);
  forming *was = ty_malloc(sizeof(forming) * (size_t)between), *g = &all->list[from];
  bool fits = *ok = where && was;
  for (int i = 0; i < between && fits; i++) {
    where[i] = BEFORE;
    for (int k = 0; k < n; k++)
      if (group_of(all, step[k]) == from + i) where[i] = OWN;
    for (int k = 0; k < i && fits; k++) {
      const bool meets = where[k] != BEFORE && !(where[k] == OWN && where[i] == OWN) && conflict(&g[k], &g[i]);
      if (meets && where[i] == OWN) fits = false;        /* it would have to follow a group that goes behind */
      else if (meets) where[i] = BEHIND;
    }
  }
  if (fits) {
    int at = 0;
    memcpy(was, g, sizeof(forming) * (size_t)between);
    for (int w = BEFORE; w <= BEHIND; w++)
      for (int i = 0; i < between; i++)
        if ((int)where[i] == w) g[at++] = was[i];
  }
  ty_free(where);
  ty_free(was);
  return fits;
}

/* Forms the groups that fuse_joint.c finds, before other groups take their steps. */
static bool gather_joints(groups *all) {
  for (int at = 0; at < all->r->nstep; at++) {
    int step[TY_JOINED];
    ty_joint kind;
    bool ok = true;
    const int n = ty_joint_at(all->r, all->touches, at, step, &kind);
    bool fits = n > 0;
    for (int k = 0; k < n; k++) fits = fits && !all->list[group_of(all, step[k])].joint;
    fits = fits && side_by_side(all, step, n, &ok);
    if (!ok) return false;
    if (!fits) continue;
    const char *why;                       /* always NULL, after side_by_side */
    int to = group_of(all, step[0]);
    for (int k = 1; k < n; k++)
      if (!unite(all, to, group_of(all, step[k]), &to, &why)) return false;
    all->list[to].joint = kind;
    all->list[to].pointwise = false;
  }
  return true;
}

/* ---- what is never stored ---- */

static int *count_touches(const ty_recording *r, const groups *all) {
  int *touches = ty_malloc(sizeof(int) * (size_t)(r->nstore + 1));
  if (!touches) return NULL;
  memset(touches, 0, sizeof(int) * (size_t)(r->nstore + 1));
  for (int i = 0; i < all->n; i++)
    for (int k = 0; k < all->list[i].nat; k++) touches[all->list[i].at[k].store]++;
  for (int i = 0; i < r->nstore; i++)
    if (!r->store[i].internal) touches[i] = -1;
  for (int i = 0; i < r->nresult; i++) touches[r->value[r->result[i]].store] = -1;
  for (int i = 0; i < r->nevent; i++) {
    const event *e = &r->event[i];
    for (int k = 0; k < e->nleaf; k++) {
      if (e->leaf[k].before >= 0) touches[r->value[e->leaf[k].before].store] = -1;
      if (e->leaf[k].after >= 0) touches[r->value[e->leaf[k].after].store] = -1;
    }
    if (e->kind == EVENT_GRAD && e->vin[0] >= 0) touches[r->value[e->vin[0]].store] = -1;
  }
  return touches;
}

/* Whether a step of the group reads the store before any of them writes it: what the last run left there. */
static bool carried(const ty_recording *r, const forming *g, int store) {
  for (int m = 0; m < g->nstep; m++) {
    const step *q = &r->step[g->step[m]];
    for (int j = 0; j < q->call.nin; j++)
      if (q->vin[j] >= 0 && r->value[q->vin[j]].store == store && ty_reads(q->call.op, j)) return true;
    for (int j = 0; j < TY_MAXOUT; j++)
      if (q->vout[j] >= 0 && r->value[q->vout[j]].store == store) return false;
  }
  return true;
}

/* Whether the group's kernel need not write a store that only the group touches. A joint kernel need not if its own steps read the value,
 * or if it is the places of a pooling's maxima. A single step whose result nobody reads is left out altogether. */
static bool stays_within(const ty_recording *r, const forming *g, const access *a) {
  const step *first = &r->step[g->step[0]];
  if (g->joint == TY_JOINT_CASTS) return false;
  if (!g->joint) return g->pointwise && (g->nstep > 1 || (first->call.op->nout == 1 && first->vout[0] == a->value));
  for (int i = 0; i < g->nstep; i++)
    if (r->step[g->step[i]].call.op->id == TY_OP_max_pool2d_indices && r->step[g->step[i]].vout[1] == a->value) return true;
  return a->steps > 1;
}

static void lifetimes(ty_recording *r) {
  for (int i = 0; i < r->nstore; i++) r->store[i].first = r->ngroup;
  for (int i = 0; i < r->ngroup; i++)
    for (int k = 0; k < r->group[i].nstep; k++) {
      const step *q = &r->step[r->group[i].step[k]];
      for (int j = 0; j < q->call.nin + TY_MAXOUT; j++) {
        const int v = j < q->call.nin ? q->vin[j] : q->vout[j - q->call.nin];
        if (v < 0) continue;
        store *st = &r->store[r->value[v].store];
        st->first = TY_MIN(st->first, i);
        st->last = i;
      }
    }
}

ty_status ty_fuse_groups(ty_ctx *ctx, ty_recording *r) {
  if (r->fuses) TY_TRY(ty_find_uses(ctx, r, true, &r->writes));
  groups all = {.r = r, .list = ty_malloc(sizeof(forming) * (size_t)TY_MAX(r->nstep, 1))};
  bool ok = all.list != NULL;
  for (int i = 0; i < r->nstep && ok; i++) ok = begin(r, i, &all.list[all.n++]);
  ok = ok && (all.touches = count_touches(r, &all)) && ty_grow(&r->group, all.n, &r->group_room, sizeof(group));
  if (r->fuses && ok) ok = gather_joints(&all);
  const int n = all.n;
  all.n = 0;
  for (int i = 0; i < n && r->fuses; i++) {
    const forming next = all.list[i];
    all.list[all.n++] = next;
    if (ok && next.pointwise) ok = absorb(&all);
  }
  if (!r->fuses) all.n = n;
  else ok = ok && gather_casts(&all) && gather_found(&all);
  for (int i = 0; i < r->nstore && ok; i++) r->store[i].pinned = all.touches[i] < 0;
  for (int i = 0; i < all.n && ok; i++) {
    forming *g = &all.list[i];
    r->group[i] = (group){.step = g->step, .nstep = g->nstep, .pointwise = g->pointwise && !g->joint, .joint = g->joint,
      .ndim = g->flat ? 1 : g->ndim, .nred = g->nred, .shape = {g->n}};
    if (!g->flat) memcpy(r->group[i].shape, g->shape, sizeof g->shape);
    const char *why = g->why || g->joint || g->nstep > 1 ? g->why : !r->fuses ? "fusion is off"
      : g->pointwise ? "no step next to it works on the same elements" : "it is neither pointwise nor over rows short enough for a kernel";
    if (why) snprintf(r->group[i].why, sizeof r->group[i].why, "%s", why);
    for (int k = 0; k < g->nat; k++) {
      if (g->at[k].value < 0) continue;
      store *st = &r->store[g->at[k].store];
      st->unwritten = stays_within(r, g, &g->at[k]) && private(&all, g, NULL, g->at[k].store) && !carried(r, g, g->at[k].store);
    }
    g->step = NULL;
    r->ngroup++;
  }
  for (int i = 0; i < all.n; i++) drop(&all.list[i]);
  ty_free(all.touches);
  ty_free(all.list);
  if (!ok) return ty_program_no_memory(ctx);
  if (r->fuses) TY_TRY(ty_fuse_again(ctx, r));
  lifetimes(r);
  return TY_OK;
}
