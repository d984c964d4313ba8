/* The tape: which op was called, on what, and which tensors its gradient needs.
 *
 * Idea: a node stands for one recorded call. Results own their node, a node owns its operands' nodes (its edges), and it saves
 * tensors for backward as aliases without history. So ownership runs only from results to operands, and no cycle arises.
 * Invariants: a node's operands are older (smaller seq); nodes are freed by a worklist, not by recursion; a saved tensor that
 * is changed in place afterwards is noticed by its storage's version. */
#include <stdlib.h>
#include <string.h>
#include "program.h"
#include "tycho.h"

static _Atomic uint64_t next_seq = 1;
uint64_t ty_next_node(void) { return atomic_load_explicit(&next_seq, memory_order_relaxed); }

bool ty_needs_grad(const ty_tensor *t) { return t && (t->requires_grad || t->node); }

/* ---- nodes ---- */

static ty_node *node_new(ty_op *op, int nin, int nout, int nattr) {
  size_t n = sizeof(ty_node) + sizeof(ty_edge) * (size_t)nin + sizeof(ty_operand) * (size_t)nin + sizeof(ty_saved) * (size_t)(nin + nout) +
             sizeof(ty_meta) * (size_t)(nin + nout) + sizeof(ty_attr) * (size_t)nattr + sizeof(ty_hooks *) * (size_t)nout;
  char *p = ty_malloc(n);
  if (!p) return NULL;
  memset(p, 0, n);
  ty_node *k = (ty_node *)p;
  atomic_init(&k->refs, 1);
  k->op = op;
  k->seq = atomic_fetch_add_explicit(&next_seq, 1, memory_order_relaxed);
  k->nin = nin;
  k->nout = nout;
  k->nattr = nattr;
  p += sizeof(ty_node);
  k->edge = (ty_edge *)p;    p += sizeof(ty_edge) * (size_t)nin;
  k->in = (ty_operand *)p;   p += sizeof(ty_operand) * (size_t)nin;
  k->saved = (ty_saved *)p;  p += sizeof(ty_saved) * (size_t)(nin + nout);
  k->at = (ty_attr *)p;      p += sizeof(ty_attr) * (size_t)nattr;
  k->hook = (ty_hooks **)p;  p += sizeof(ty_hooks *) * (size_t)nout;
  k->meta = (ty_meta *)p;
  return k;
}

static void drop_saved(ty_node *n) {
  for (int i = 0; i < n->nin + n->nout; i++) {
    ty_release(n->saved[i].t);
    if (n->saved[i].packed) ty_hooks_free(n->saved[i].packed);
    n->saved[i] = (ty_saved){0};
  }
}

void ty_hooks_free(ty_hooks *h) {
  if (h->drop) h->drop(h->owner);
  ty_free(h);
}

static void drop_hooks(ty_node *n) {
  for (int j = 0; j < n->nout; j++)
    if (n->hook[j]) {
      ty_hooks_free(n->hook[j]);
      n->hook[j] = NULL;
    }
}

void ty_node_release(ty_node *n) {
  static __thread ty_node *pending;
  static __thread bool busy;
  if (!n || atomic_fetch_sub(&n->refs, 1) != 1) return;
  n->next = pending;
  pending = n;
  if (busy) return;              /* an outer call empties the list */
  busy = true;
  while (pending) {
    ty_node *k = pending;
    pending = k->next;
    drop_saved(k);
    drop_hooks(k);
    for (int i = 0; i < k->nin; i++) {
      ty_node_release(k->edge[i].node);
      ty_release(k->edge[i].leaf);
    }
    free(k->location);
    ty_free(k);
  }
  busy = false;
}

ty_node *ty_node_retain(ty_node *n) {
  if (n) atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
  return n;
}

static void set_edge(ty_edge *e, ty_tensor *t) {
  if (t->requires_grad) e->leaf = ty_retain(t);
  else { e->node = ty_node_retain(t->node); e->out = t->out; }
}

static void set_node(ty_tensor *t, ty_node *n, int out) {
  ty_node *old = t->node;
  t->node = ty_node_retain(n);
  t->out = out;
  t->requires_grad = false;
  ty_node_release(old);
}

/* ---- recording ---- */

int ty_slot_of(const ty_call *c, int i) {
  if (!c->op->has_list) return i;
  for (int s = 0; s < c->op->nin; s++)
    if (i >= c->span[s].start && i < c->span[s].start + c->span[s].count) return s;
  return 0;
}

bool ty_will_record(const ty_call *c) {
  if (!c->op->diff) return false;
  for (int i = 0; i < c->nin; i++)
    if (ty_needs_grad(c->in[i].t) && c->op->diff >> ty_slot_of(c, i) & 1) return true;
  return false;
}

uint32_t ty_save_mask(const ty_call *c) {
  uint32_t mask = 0;
  for (int i = 0; i < c->nin; i++) {
    int s = ty_slot_of(c, i);
    if (ty_needs_grad(c->in[i].t) && c->op->diff >> s & 1) mask |= c->op->save_in[s] | (uint32_t)c->op->save_out[s] << TY_SAVED_OUT;
  }
  return mask;
}

static ty_status save(ty_ctx *ctx, ty_saved *s, ty_tensor *t, bool pack) {
  *s = (ty_saved){.from = t->storage->id, .version = ty_version(t)};
  if (pack && t->requires_grad) return ctx->host->pack(ctx, t, true, &s->packed);
  ty_tensor *alias = ty_alias(t);
  if (!alias) return ty_no_memory(ctx, "autograd");
  if (pack) {
    const ty_status st = ctx->host->pack(ctx, alias, false, &s->packed);
    ty_release(alias);
    return st;
  }
  s->t = alias;
  return TY_OK;
}

/* Notes the device and the stream of n, of which t is a result. */
static void note_stream(const ty_ctx *ctx, ty_node *n, const ty_tensor *t) {
  const ty_backend *b = t ? ty_device_of(t) : NULL;
  if (!b || b->gpu < 0) return;
  n->gpu = b;
  n->stream = ctx->stream[b->gpu];
}

static void note_recorded(const ty_ctx *ctx) {
  if (ctx->account) atomic_store_explicit(&ctx->account->recorded, true, memory_order_relaxed);
}

ty_status ty_set_requires_grad(ty_ctx *ctx, ty_tensor *t, bool on) {
  if (t->node || t->requires_grad == on) return TY_OK;
  if (ctx->program) TY_TRY(ty_program_requires(ctx, t, on));
  t->requires_grad = on;
  ty_release(t->base);                     /* now a leaf of its own, apart from the base's history */
  t->base = NULL;
  return TY_OK;
}

/* before: for a call in place; before[i] is operand i before the change, NULL: operand i itself. */
static ty_status make_node(ty_call *c, ty_tensor *const *before, ty_node **out) {
  ty_op *op = c->op;
  ty_node *n = node_new(op, c->nin, op->nout, op->nattr);
  const bool pack = c->ctx->packs;
  ty_status st = TY_OK;
  if (!n) return ty_no_memory(c->ctx, "autograd");
  uint32_t mask = ty_save_mask(c);
  note_stream(c->ctx, n, c->out[0]);
  note_recorded(c->ctx);
  if (op->has_list) memcpy(n->span, c->span, sizeof n->span);
  memcpy(n->at, c->at, sizeof(ty_attr) * (size_t)op->nattr);
  for (int i = 0; i < c->nin; i++) {
    ty_tensor *t = c->in[i].t;
    int s = ty_slot_of(c, i);
    n->in[i] = c->in[i];
    n->in[i].t = NULL;
    if (!t) continue;
    ty_meta_of(t, &n->meta[i]);
    if (ty_needs_grad(t) && op->diff >> s & 1) set_edge(&n->edge[i], t);
    if (mask >> s & 1 && st == TY_OK) st = save(c->ctx, &n->saved[i], before && i < TY_MAXPARAM && before[i] ? before[i] : t, pack);
  }
  for (int j = 0; j < op->nout; j++) {
    ty_meta_of(c->out[j], &n->meta[c->nin + j]);
    /* in place the result isn't computed yet, so hooks can't pack it */
    if (mask >> (TY_SAVED_OUT + j) & 1 && st == TY_OK) st = save(c->ctx, &n->saved[c->nin + j], c->out[j], pack && !before);
  }
  if (st != TY_OK) ty_node_release(n);
  else *out = n;
  return st;
}

ty_status ty_record(ty_call *c) {
  ty_node *n;
  TY_TRY(make_node(c, NULL, &n));
  if (ty_is_float(c->out[0]->dtype)) set_node(c->out[0], n, 0);   /* the others are indices, masks, statistics */
  ty_node_release(n);
  return TY_OK;
}

ty_status ty_record_function(ty_ctx *ctx, ty_function f, ty_tensor **in, int nin, ty_tensor **out, int nout) {
  ty_node *n = node_new(NULL, nin, nout, 0);
  ty_status st = TY_OK;
  if (!n) return ty_no_memory(ctx, "autograd");
  n->key = f.key;
  n->internal = f.internal;
  for (int j = 0; j < nout; j++) note_stream(ctx, n, out[j]);
  note_recorded(ctx);
  for (int i = 0; i < nin && st == TY_OK; i++)
    if (in[i]) {
      ty_meta_of(in[i], &n->meta[i]);
      const bool kept = f.internal && i < f.kept;
      n->in[i].kind = kept || !f.internal ? TY_TENSOR : TY_NONE;
      if (ty_needs_grad(in[i])) set_edge(&n->edge[i], in[i]);
      if (kept) st = save(ctx, &n->saved[i], in[i], ctx->packs && ty_is_float(in[i]->dtype));
    }
  if (st != TY_OK) { ty_node_release(n); return st; }
  for (int j = 0; j < nout; j++) {
    n->meta[nin + j].dtype = TY_NDTYPE;    /* this output is no tensor */
    if (!out[j]) continue;
    for (int i = 0; i < nin && !f.internal; i++) out[j]->history += out[j] == in[i];     /* changed in place: its views renew their nodes */
    ty_meta_of(out[j], &n->meta[nin + j]);
    if (ty_is_float(out[j]->dtype)) set_node(out[j], n, j);
  }
  ty_node_release(n);
  return TY_OK;
}

bool ty_mark_graph_used(ty_tensor *t) {
  ty_node *n = node_new(NULL, 0, 1, 0);
  if (!n) return false;
  n->ran = n->done = true;
  set_node(t, n, 0);
  ty_node_release(n);
  return true;
}

/* ---- views and in-place changes ----
 * A change of a view changes its base: the base's new node is strided_put(old base, new elements), and a view whose base has
 * changed since gets strided_take(base) as its node. Both ops describe the view within the base's memory layout. */

static void ints(ty_attr *a, const int64_t *v, int n) {
  a->set = true;
  a->n = (uint8_t)n;
  memcpy(a->v, v, sizeof(int64_t) * (size_t)n);
}

static void view_geometry(const ty_tensor *v, ty_attr at[4]) {
  memset(at, 0, sizeof(ty_attr) * 4);
  ints(&at[TY_AT_strided_take_layout], v->base->stride, ty_is_contiguous(v->base) ? 0 : v->base->ndim);
  ints(&at[TY_AT_strided_take_size], v->shape, v->ndim);
  ints(&at[TY_AT_strided_take_stride], v->stride, v->ndim);
  at[TY_AT_strided_take_offset].set = true;
  at[TY_AT_strided_take_offset].i = v->offset - v->base->offset;
}

static ty_node *take_node(ty_tensor *v) {
  ty_node *n = node_new(&ty_ops[TY_OP_strided_take], 1, 1, 4);
  if (!n) return NULL;
  view_geometry(v, n->at);
  ty_meta_of(v->base, &n->meta[0]);
  ty_meta_of(v, &n->meta[1]);
  set_edge(&n->edge[0], v->base);
  return n;
}

ty_status ty_history(ty_ctx *ctx, ty_tensor *t) {
  ty_node *n = NULL;
  if (t->base && t->base->storage != t->storage) {       /* t was given other memory: no longer a view of base */
    if (t->history != t->base->history) { ty_node_release(t->node); t->node = NULL; }
    ty_release(t->base);
    t->base = NULL;
  }
  if (!t->base || t->history == t->base->history) return TY_OK;
  if (ty_needs_grad(t->base)) {
    n = take_node(t);
    if (!n) return ty_no_memory(ctx, "autograd");
  }
  if (n) set_node(t, n, 0);
  else { ty_node_release(t->node); t->node = NULL; }
  ty_node_release(n);
  t->history = t->base->history;
  return TY_OK;
}

ty_status ty_prepare_inplace(ty_call *c, ty_tensor *target, ty_tensor *const *before, ty_pending *p) {
  ty_tensor *base = target->base;
  *p = (ty_pending){NULL, NULL};
  if (!ty_is_float(target->dtype)) return TY_OK;      /* whole numbers carry no gradient */
  if (ty_will_record(c)) TY_TRY(make_node(c, before, &p->call));
  else if (!base && ty_needs_grad(target)) {  /* overwritten by values without grad: recorded as fill */
    ty_node *n = p->call = node_new(&ty_ops[TY_OP_fill], 2, 1, 0);
    if (!n) return ty_no_memory(c->ctx, "autograd");
    for (int i = 0; i < 3; i += 2) ty_meta_of(target, &n->meta[i]);
    n->in[0].kind = TY_TENSOR;
    n->in[1] = ty_operand_int(0);
    set_edge(&n->edge[0], target);
    note_stream(c->ctx, n, target);
  }
  if (!base) return TY_OK;
  p->put = node_new(&ty_ops[TY_OP_strided_put], 2, 1, 4);
  if (!p->put) { ty_abandon_inplace(p); return ty_no_memory(c->ctx, "autograd"); }
  view_geometry(target, p->put->at);
  ty_meta_of(base, &p->put->meta[0]);
  ty_meta_of(target, &p->put->meta[1]);
  ty_meta_of(base, &p->put->meta[2]);
  if (ty_needs_grad(base)) set_edge(&p->put->edge[0], base);
  p->put->in[1].kind = TY_TENSOR;
  return TY_OK;
}

void ty_abandon_inplace(ty_pending *p) {
  ty_node_release(p->call);
  ty_node_release(p->put);
  *p = (ty_pending){NULL, NULL};
}

void ty_commit_inplace(ty_tensor *target, ty_pending *p) {
  ty_node *n = p->call, *put = p->put;
  uint32_t now = ty_version(target);
  for (int i = 0; n && i < n->nin + n->nout; i++)      /* saved aliases of the target hold its new value */
    if (n->saved[i].t && n->saved[i].t->storage == target->storage) n->saved[i].version = now;
  if (!put) {                        /* n is NULL for whole numbers */
    if (n) set_node(target, n, 0);
    target->history++;
    ty_node_release(n);
    return;
  }
  put->edge[1] = (ty_edge){n, 0, NULL};
  set_node(target->base, put, 0);
  ty_node_release(put);
  target->base->history++;           /* the view renews its node when it is used (ty_history) */
}

/* ---- what rules read ---- */

static ty_status unpack(ty_ctx *ctx, ty_node *n, int i, ty_edge e, ty_tensor **out) {
  ty_saved *s = &n->saved[i];
  const char *name = n->op ? n->op->name : n->internal ? "utils.checkpoint or compile" : "Function";
  if (!s->t && !s->packed)
    return ty_error(ctx,
      "backward: the saved tensors of '%s' were freed by an earlier backward; pass retain_graph=true to the first", name);
  const ty_meta *m = &n->meta[i];
  ty_tensor *kept = ty_retain(s->t);
  if (s->packed) TY_TRY(ctx->host->unpack(ctx, s->packed, &kept));
  if (kept->dtype != m->dtype || !TY_SAME_SHAPE(kept, m) || ty_device_of(kept) != ty_devices[m->device]) {   /* only hooks cause this */
    ty_error(ctx, "saved_tensors_hooks: unpack returned a %s tensor of shape %s on %s; '%s' saved a %s of shape %s on %s",
      ty_dtype_names[kept->dtype], ty_shape_of(kept), ty_device_of(kept)->name, name, ty_dtype_names[m->dtype],
      ty_shape_text(m->shape, m->ndim), ty_devices[m->device]->name);
    ty_release(kept);
    return TY_ERR;
  }
  const uint32_t now = ty_version(kept);
  if (now != s->version && kept->storage->id == s->from) {                 /* unless a hook gave other memory */
    ty_release(kept);
    return ty_error(ctx, "backward: a tensor of shape %s that '%s' needs for its gradient was changed in place (version %u, expected %u)",
                    ty_shape_text(m->shape, m->ndim), name, now, s->version);
  }
  if (!ctx->grad_enabled || (!e.leaf && !e.node)) { *out = kept; return TY_OK; }
  ty_tensor *t = e.leaf ? ty_retain(e.leaf) : ty_alias(kept);
  ty_release(kept);
  if (e.leaf) { *out = t; return TY_OK; }
  if (!t) return ty_no_memory(ctx, "autograd");
  t->node = ty_node_retain(e.node);
  t->out = e.out;
  *out = t;
  return TY_OK;
}

ty_status ty_saved_in(ty_ctx *ctx, ty_node *n, int i, ty_tensor **out) { return unpack(ctx, n, i, n->edge[i], out); }
ty_status ty_saved_out(ty_ctx *ctx, ty_node *n, int j, ty_tensor **out) {
  return unpack(ctx, n, n->nin + j, j == 0 ? (ty_edge){n, 0, NULL} : (ty_edge){0}, out);
}

void ty_node_finish(ty_node *n) {
  n->ran = true;
  bool keeps = !n->op;               /* an op that saved nothing can run again, for another loss */
  for (int i = 0; i < n->nin + n->nout; i++) keeps = keeps || n->saved[i].t || n->saved[i].packed;
  if (!keeps) return;
  drop_saved(n);
  drop_hooks(n);                     /* hooks can't run again */
  n->done = true;
}
