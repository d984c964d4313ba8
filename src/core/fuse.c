/* Which steps of a program run as one kernel.
 *
 * Idea: each step begins as a group of its own, in the order of the record. A new group is merged with an earlier one where both are pointwise
 * over one shape and have elements in common, and where one of them can be moved to the other: no step in between touches what it writes, or writes what it
 * touches. Of a group with several steps a kernel is made (fused.h); what only its own steps touch is never stored.
 * Invariants: of two steps that touch one memory, one of them writing, the order stays; within a group, such memory is touched at the same
 * elements only. */
#include <string.h>
#include "plan.h"

#define LOOK_BACK 64       /* groups */
#define FEW 4096           /* elements: up to here kernels of one shape are merged though they have nothing in common, to save launches */

/* steps: how many touch the store by this value; last: the newest of them */
typedef struct { int store, value, steps, last; bool writes; } access;

/* A group while groups are formed. */
typedef struct {
  int *step, nstep, step_room;             /* in the order of the record */
  access *at;
  int nat, at_room;
  bool pointwise, flat;                    /* flat: every tensor has all elements in order, or one */
  int ndim;
  int64_t shape[TY_MAXDIM], n;
  const ty_backend *backend;
  const char *why;                         /* it isn't merged with what it has elements in common with */
} forming;

/* All groups; touches: of each store, by all steps, or -1 where its contents are needed after them. */
typedef struct { const ty_program *p; forming *list; int n, *touches; } groups;

static bool flat(const ty_tensor *t, int64_t n) { return ty_numel(t) == 1 || (ty_numel(t) == n && ty_is_contiguous(t)); }

/* Whether two values are the same elements in the same order. */
static bool same_elements(const ty_program *p, int v, int w) {
  const ty_tensor *a = &p->value[v].like, *b = &p->value[w].like;
  return v == w || (p->value[v].store == p->value[w].store && a->offset == b->offset && a->dtype == b->dtype && ty_numel(a) == ty_numel(b) && ty_is_contiguous(a) && ty_is_contiguous(b));
}

static bool note(forming *g, access a) {
  for (int i = 0; i < g->nat; i++) {
    access *b = &g->at[i];
    if (b->store != a.store || b->value != a.value) continue;
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

static bool is_copy(int id) { return id == TY_OP_cast || id == TY_OP_clone || id == TY_OP_copy; }
static bool chooses(const ty_call *c) { return ty_is_half(c->common) && (c->op->dtype == TY_D_BOOL || c->op->id == TY_OP_maximum || c->op->id == TY_OP_minimum); }

/* Whether the result depends on operand i. */
static bool reads(const ty_op *op, int i) { return i > 0 || (op->id != TY_OP_fill && op->id != TY_OP_copy); }

static bool fusable(const ty_program *p, const step *k) {
  const ty_call *c = &k->call;
  const ty_op *op = c->op;
  if (!k->backend->fuse || k->vout[0] < 0 || (op->cls != TY_C_POINTWISE && !is_copy(op->id)) || op->nattr > 2) return false;
  const ty_tensor *o = &p->value[k->vout[0]].like;
  if (ty_numel(o) == 0) return false;
  for (int i = 0; i < c->nin; i++) {
    const ty_tensor *t = k->vin[i] >= 0 ? &p->value[k->vin[i]].like : NULL;
    if (!t && !ty_is_number(&c->in[i]) && c->in[i].kind != TY_BOOLEAN) return false;
    if (t && op->cls == TY_C_POINTWISE && chooses(c) && t->ndim == 0 && t->dtype != c->common) return false;
    if (op->id == TY_OP_copy && i == 1 && !t && !ty_is_float((ty_dtype)o->dtype) && c->in[1].kind == TY_FLOAT) return false;
  }
  return true;
}

static bool begin(const ty_program *p, int at, forming *g) {
  const step *k = &p->step[at];
  const ty_op *op = k->call.op;
  *g = (forming){.backend = k->backend, .pointwise = fusable(p, k)};
  if (!ty_grow(&g->step, 1, &g->step_room, sizeof(int))) return false;
  g->step[g->nstep++] = at;
  for (int i = 0; i < k->call.nin; i++)
    if (k->vin[i] >= 0 && reads(op, i) && !note(g, (access){p->value[k->vin[i]].store, k->vin[i], 1, at, false})) return false;
  for (int j = 0; j < op->nparam && op->mutates; j++) {
    const ty_span s = ty_span_of(op, k->call.span, op->param[j].slot);
    for (int i = s.start; op->param[j].mutated && i < s.start + s.count; i++)
      if (k->vin[i] >= 0 && !note(g, (access){p->value[k->vin[i]].store, k->vin[i], 1, at, true})) return false;
  }
  for (int j = 0; j < TY_MAXOUT; j++)
    if (k->vout[j] >= 0 && !note(g, (access){p->value[k->vout[j]].store, k->vout[j], 1, at, true})) return false;
  if ((op->cls == TY_C_RANDOM || op->cls == TY_C_ATTENTION) && !note(g, (access){p->nstore, -1, 1, at, true})) return false;    /* the generator */
  if (!g->pointwise) return true;
  const ty_tensor *o = &p->value[k->vout[0]].like;
  g->ndim = o->ndim;
  memcpy(g->shape, o->shape, sizeof(int64_t) * o->ndim);
  g->n = ty_numel(o);
  g->flat = true;
  for (int i = 0; i < g->nat; i++) g->flat = g->flat && flat(&p->value[g->at[i].value].like, g->n);
  return true;
}

/* ---- two groups ---- */

static bool conflict(const forming *a, const forming *b) {
  for (int i = 0; i < a->nat; i++)
    for (int j = 0; j < b->nat; j++)
      if (a->at[i].store == b->at[j].store && (a->at[i].writes || b->at[j].writes)) return true;
  return false;
}

static bool related(const ty_program *p, const forming *a, const forming *b) {
  for (int i = 0; i < a->nat; i++)
    for (int j = 0; j < b->nat; j++)
      if (a->at[i].store == b->at[j].store && ty_numel(&p->value[b->at[j].value].like) == b->n) return true;
  return false;
}

/* Whether nobody but these two groups touches the store, and its contents end with them. */
static bool private(const groups *all, const forming *a, const forming *b, int store) {
  int steps = 0;
  for (int i = 0; i < a->nat; i++) steps += a->at[i].store == store ? a->at[i].steps : 0;
  for (int i = 0; b && i < b->nat; i++) steps += b->at[i].store == store ? b->at[i].steps : 0;
  return steps == all->touches[store];
}

/* NULL, or why not. */
static const char *refuses(const groups *all, const forming *a, const forming *b) {
  const ty_program *p = all->p;
  int tensors = 0;
  if (a->backend != b->backend || a->n != b->n) return "another number of elements";
  if (!a->flat && !b->flat && (a->ndim != b->ndim || memcmp(a->shape, b->shape, sizeof(int64_t) * (size_t)a->ndim))) return "another shape";
  if (3 * (a->nstep + b->nstep) > TY_FUSED_NODES) return "too many steps";
  for (int j = 0; j < b->nat; j++) tensors += !private(all, a, b, b->at[j].store);
  for (int i = 0; i < a->nat; i++) {
    bool known = false;
    for (int j = 0; j < b->nat; j++) {
      const bool same = same_elements(p, a->at[i].value, b->at[j].value);
      known = known || same;
      if (a->at[i].store == b->at[j].store && !same && (a->at[i].writes || b->at[j].writes)) return "elements in another order";
    }
    tensors += !known && !private(all, a, b, a->at[i].store);
  }
  return tensors > TY_FUSED_TENSORS ? "too many tensors" : NULL;
}

static bool merge(forming *into, const forming *g) {
  if (!ty_grow(&into->step, into->nstep + g->nstep, &into->step_room, sizeof(int))) return false;
  for (int i = 0; i < g->nstep; i++) {     /* both are in order */
    int k = into->nstep++;
    for (; k > 0 && into->step[k - 1] > g->step[i]; k--) into->step[k] = into->step[k - 1];
    into->step[k] = g->step[i];
  }
  for (int i = 0; i < g->nat; i++)
    if (!note(into, g->at[i])) return false;
  if (into->flat && !g->flat) {
    into->flat = false;
    into->ndim = g->ndim;
    memcpy(into->shape, g->shape, sizeof into->shape);
  }
  return true;
}

static void drop(forming *g) { ty_free(g->step); ty_free(g->at); }

/* Merges groups a and b, a before b, where one can be moved to the other. *at: where they are. NULL: out of memory. */
static const char *unite(groups *all, int a, int b, int *at) {
  forming *g = all->list;
  const char *why = refuses(all, &g[a], &g[b]);
  bool hoists = true, sinks = true;
  if (why) return why;
  for (int k = a + 1; k < b && (hoists || sinks); k++) {
    hoists = hoists && !conflict(&g[k], &g[b]);
    sinks = sinks && !conflict(&g[a], &g[k]);
  }
  if (!hoists && !sinks) return "a step in between needs the order";
  const int to = hoists ? a : b, from = hoists ? b : a;
  if (!merge(&g[to], &g[from])) return NULL;
  drop(&g[from]);
  memmove(&g[from], &g[from + 1], sizeof(forming) * (size_t)(all->n - 1 - from));
  all->n--;
  *at = hoists ? a : b - 1;
  return "";
}

/* Merges the last group with earlier ones, wherever that can be done. */
static bool absorb(groups *all) {
  int at = all->n - 1;
  for (bool again = true; again;) {
    again = false;
    for (int i = at - 1; i >= 0 && i >= at - LOOK_BACK && !again; i--) {
      forming *g = &all->list[i], *last = &all->list[at];
      const bool common = related(all->p, g, last);
      if (!g->pointwise || (!common && (g->n != last->n || last->n > FEW))) continue;
      const char *why = unite(all, i, at, &at);
      if (!why) return false;
      if (!*why) again = true;
      else if (common) last->why = why;
    }
  }
  return true;
}

/* ---- what is never stored ---- */

static int *count_touches(const ty_program *p, const groups *all) {
  int *touches = ty_malloc(sizeof(int) * (size_t)(p->nstore + 1));
  if (!touches) return NULL;
  memset(touches, 0, sizeof(int) * (size_t)(p->nstore + 1));
  for (int i = 0; i < all->n; i++)
    for (int k = 0; k < all->list[i].nat; k++) touches[all->list[i].at[k].store]++;
  for (int i = 0; i < p->nstore; i++)
    if (!p->store[i].internal) touches[i] = -1;
  for (int i = 0; i < p->nresult; i++) touches[p->value[p->result[i]].store] = -1;
  for (int i = 0; i < p->nevent; i++) {
    const event *e = &p->event[i];
    for (int k = 0; k < e->nleaf; k++) {
      if (e->leaf[k].before >= 0) touches[p->value[e->leaf[k].before].store] = -1;
      if (e->leaf[k].after >= 0) touches[p->value[e->leaf[k].after].store] = -1;
    }
    if (e->kind == EVENT_GRAD && e->vin[0] >= 0) touches[p->value[e->vin[0]].store] = -1;
  }
  return touches;
}

/* Whether a step of the group finds in the store what the last run left there. */
static bool carried(const ty_program *p, const forming *g, int store) {
  for (int m = 0; m < g->nstep; m++) {
    const step *q = &p->step[g->step[m]];
    for (int j = 0; j < q->call.nin; j++)
      if (q->vin[j] >= 0 && p->value[q->vin[j]].store == store && reads(q->call.op, j)) return true;
    if (p->value[q->vout[0]].store == store) return false;
  }
  return true;
}

ty_status ty_fuse_groups(ty_ctx *ctx, ty_program *p) {
  groups all = {.p = p, .list = ty_malloc(sizeof(forming) * (size_t)TY_MAX(p->nstep, 1))};
  bool ok = all.list != NULL;
  for (int i = 0; i < p->nstep && ok; i++) ok = begin(p, i, &all.list[all.n++]);
  ok = ok && (all.touches = count_touches(p, &all)) && ty_grow(&p->group, all.n, &p->group_room, sizeof(group));
  const int n = all.n;
  all.n = 0;
  for (int i = 0; i < n && p->fuses; i++) {
    const forming next = all.list[i];
    all.list[all.n++] = next;
    if (ok && next.pointwise) ok = absorb(&all);
  }
  if (!p->fuses) all.n = n;
  for (int i = 0; i < p->nstore; i++) p->store[i].first = p->nstep;
  for (int i = 0; i < all.n && ok; i++) {
    forming *g = &all.list[i];
    p->group[i] = (group){.step = g->step, .nstep = g->nstep};
    if (g->why) snprintf(p->group[i].why, sizeof p->group[i].why, "%s", g->why);
    for (int k = 0; k < g->nat; k++) {
      if (g->at[k].value < 0) continue;
      store *st = &p->store[g->at[k].store];
      st->first = TY_MIN(st->first, i);
      st->last = i;
      st->unwritten = g->nstep > 1 && private(&all, g, NULL, g->at[k].store) && !carried(p, g, g->at[k].store);
    }
    g->step = NULL;
    p->ngroup++;
  }
  for (int i = 0; i < all.n; i++) drop(&all.list[i]);
  ty_free(all.touches);
  ty_free(all.list);
  return ok ? TY_OK : ty_program_no_memory(ctx);
}

/* ---- kernels ---- */

typedef struct { ty_program *p; ty_fused *f; bool flat, full; } maker;
typedef struct { int value, node; } current;

static int new_node(maker *m, ty_fused_node n) {
  if (m->f->nnode == TY_FUSED_NODES) { m->full = true; return 0; }
  n.to = -1;
  m->f->node[m->f->nnode] = n;
  return m->f->nnode++;
}

static int tensor_of(maker *m, int v) {
  ty_fused *f = m->f;
  const ty_tensor *t = &m->p->value[v].like;
  for (int i = 0; i < f->ntensor; i++)
    if (same_elements(m->p, f->tensor[i].value, v)) return i;
  if (f->ntensor == TY_FUSED_TENSORS) { m->full = true; return 0; }
  ty_fused_tensor *x = &f->tensor[f->ntensor];
  *x = (ty_fused_tensor){.value = v, .dtype = t->dtype, .offset = t->offset};
  if (ty_numel(t) == f->numel && ty_is_contiguous(t)) ty_contiguous_strides(f->shape, f->ndim, x->stride);    /* its own shape may be another one */
  else
    for (int i = 0; i < t->ndim; i++) {
      const int d = i + f->ndim - t->ndim;
      if (d >= 0) x->stride[d] = t->shape[i] == 1 ? 0 : t->stride[i];
    }
  return f->ntensor++;
}

/* Value v as it is at this point, held in compute. */
static int read_value(maker *m, const current *cur, int ncur, int v, ty_dtype compute) {
  const ty_dtype d = (ty_dtype)m->p->value[v].like.dtype;
  int n = -1;
  for (int i = ncur - 1; i >= 0 && n < 0; i--)
    if (same_elements(m->p, cur[i].value, v)) n = cur[i].node;
  if (n < 0) {
    const int t = tensor_of(m, v);
    for (int i = 0; i < m->f->nnode; i++)
      if (m->f->node[i].kind == TY_F_TENSOR && m->f->node[i].tensor == t && m->f->node[i].compute == compute) return i;
    return new_node(m, (ty_fused_node){.kind = TY_F_TENSOR, .dtype = d, .compute = compute, .tensor = (int8_t)t});
  }
  if (m->f->node[n].compute == compute) return n;
  return new_node(m, (ty_fused_node){.kind = TY_F_CONVERT, .nin = 1, .in = {(int8_t)n}, .dtype = d, .compute = compute});
}

static int number(maker *m, ty_operand v, ty_dtype compute, ty_dtype rounded) {
  if (rounded != compute) {
    uint64_t bits;
    ty_set(&bits, rounded, v.f);
    v = ty_op_float(ty_get(&bits, rounded));
  }
  return new_node(m, (ty_fused_node){.kind = TY_F_NUMBER, .dtype = compute, .compute = compute, .number = v});
}

static int compute_step(maker *m, const current *cur, int ncur, const step *k) {
  const ty_call *c = &k->call;
  const ty_op *op = c->op;
  const ty_dtype d = (ty_dtype)m->p->value[k->vout[0]].like.dtype;
  if (is_copy(op->id)) {
    const int i = op->id == TY_OP_copy;
    const ty_dtype from = k->vin[i] >= 0 ? ty_compute_dtype((ty_dtype)m->p->value[k->vin[i]].like.dtype) : ty_compute_dtype(d);
    const int n = k->vin[i] >= 0 ? read_value(m, cur, ncur, k->vin[i], from) : number(m, c->in[i], from, from);
    return new_node(m, (ty_fused_node){.kind = TY_F_CONVERT, .nin = 1, .in = {(int8_t)n}, .dtype = d, .compute = ty_compute_dtype(d)});
  }
  ty_fused_node n = {.kind = TY_F_OP, .nin = (uint8_t)c->nin, .dtype = d, .compute = c->compute, .op = op};
  for (int i = c->nin - 1; i >= 0; i--)    /* an operand that isn't read stands for the next one */
    n.in[i] = !reads(op, i) ? n.in[i + 1] : (int8_t)(k->vin[i] >= 0 ? read_value(m, cur, ncur, k->vin[i], c->compute) : number(m, c->in[i], c->compute, chooses(c) ? c->common : c->compute));
  if (op->nattr > 0) n.p = ty_parameter(c, 0);
  if (op->nattr > 1) n.q = ty_parameter(c, 1);
  return new_node(m, n);
}

/* Nodes that nobody uses go. */
static void sweep(ty_fused *f) {
  int place[TY_FUSED_NODES], n = 0;
  bool needed[TY_FUSED_NODES];
  for (int i = 0; i < f->nnode; i++) { needed[i] = f->node[i].to >= 0; f->node[i].used = false; }
  for (int i = f->nnode - 1; i >= 0; i--)
    for (int k = 0; needed[i] && k < f->node[i].nin; k++) needed[f->node[i].in[k]] = f->node[f->node[i].in[k]].used = true;
  for (int i = 0; i < f->nnode; i++) {
    if (!needed[i]) continue;
    place[i] = n;
    f->node[n] = f->node[i];
    for (int k = 0; k < f->node[n].nin; k++) f->node[n].in[k] = (int8_t)place[f->node[n].in[k]];
    n++;
  }
  f->nnode = n;
}

/* Tensors that no node is left for go; the first is one that is written. */
static void order_tensors(ty_fused *f) {
  int place[TY_FUSED_TENSORS], n = 0;
  ty_fused_tensor was[TY_FUSED_TENSORS];
  memcpy(was, f->tensor, sizeof was);
  for (int i = 0; i < f->ntensor; i++) place[i] = -1;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < f->nnode; i++) {
      const int t = pass ? f->node[i].tensor : f->node[i].to;
      if ((pass && f->node[i].kind != TY_F_TENSOR) || t < 0 || place[t] >= 0) continue;
      f->tensor[n] = was[t];
      f->tensor[n].written = !pass;
      place[t] = n++;
    }
  for (int i = 0; i < f->nnode; i++) {
    if (f->node[i].kind == TY_F_TENSOR) f->node[i].tensor = (int8_t)place[f->node[i].tensor];
    if (f->node[i].to >= 0) f->node[i].to = (int8_t)place[f->node[i].to];
  }
  f->ntensor = n;
}

static bool stored(const store *st) { return !st->unwritten || st->held; }

static bool make(maker *m, const group *g) {
  const ty_program *p = m->p;
  current cur[TY_FUSED_NODES];
  int ncur = 0;
  for (int i = 0; i < g->nstep && !m->full; i++) {
    const step *k = &p->step[g->step[i]];
    const int v = k->vout[0], node = compute_step(m, cur, ncur, k);
    int at = 0;
    if (m->full || ncur == TY_FUSED_NODES) return false;
    while (at < ncur && !same_elements(p, cur[at].value, v)) at++;
    if (at < ncur) m->f->node[cur[at].node].to = -1;     /* overwritten */
    else ncur++;
    cur[at] = (current){v, node};
    if (stored(&p->store[p->value[v].store])) m->f->node[node].to = (int8_t)tensor_of(m, v);
  }
  sweep(m->f);
  order_tensors(m->f);
  return !m->full;
}

/* The shape of a group: that of a step whose tensors are not all in order, else one dim. */
static void shape_of(const ty_program *p, const group *g, ty_fused *f) {
  f->numel = ty_numel(&p->value[p->step[g->step[0]].vout[0]].like);
  f->ndim = 1;
  f->shape[0] = f->numel;
  for (int i = 0; i < g->nstep; i++) {
    const step *k = &p->step[g->step[i]];
    const ty_tensor *o = &p->value[k->vout[0]].like;
    bool even = flat(o, f->numel);
    for (int j = 0; j < k->call.nin; j++) even = even && (k->vin[j] < 0 || !reads(k->call.op, j) || flat(&p->value[k->vin[j]].like, f->numel));
    if (even) continue;
    f->ndim = o->ndim;
    memcpy(f->shape, o->shape, sizeof(int64_t) * o->ndim);
    return;
  }
}

static void free_kernel(group *g, const ty_backend *b) {
  if (g->fused && g->fused->kernel) b->fused_free(g->fused);
  ty_free(g->fused);
  g->fused = NULL;
}

ty_status ty_fuse_make(ty_ctx *ctx, ty_program *p, int at) {
  group *g = &p->group[at];
  if (g->nstep < 2) return TY_OK;
  const ty_backend *b = p->step[g->step[0]].backend;
  ty_fused *f = ty_malloc(sizeof *f);
  if (!f) return ty_program_no_memory(ctx);
  memset(f, 0, sizeof *f);
  free_kernel(g, b);
  g->fused = f;
  shape_of(p, g, f);
  maker m = {.p = p, .f = f};
  ty_status s = TY_ERR;
  if (!make(&m, g)) ty_error(ctx, "too many nodes or tensors");
  else if (f->nnode == 0) return TY_OK;
  else s = b->fuse(ctx, b, f);
  if (s != TY_ERR) return s;
  snprintf(g->why, sizeof g->why, "%.*s", (int)sizeof g->why - 1, ctx->err);     /* one by one, then: each needs what the others store */
  free_kernel(g, b);
  for (int i = 0; i < g->nstep; i++) p->store[p->value[p->step[g->step[i]].vout[0]].store].unwritten = false;
  return TY_OK;
}

void ty_fuse_places(ty_program *p) {
  for (int i = 0; i < p->ngroup; i++)
    for (int k = 0; p->group[i].fused && k < p->group[i].fused->ntensor; k++) p->group[i].fused->tensor[k].t = p->value[p->group[i].fused->tensor[k].value].t;
}

void ty_fuse_free(ty_program *p) {
  for (int i = 0; i < p->ngroup; i++) {
    free_kernel(&p->group[i], p->step[p->group[i].step[0]].backend);
    ty_free(p->group[i].step);
  }
  ty_free(p->group);
}
