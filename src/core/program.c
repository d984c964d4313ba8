/* A program's calls from begin to run, its list of recordings, their values and steps (idea and invariants: program.h).
 * program_events.c records and compares events, program_differ.c handles a call that differs, program_memory.c assigns memory. */
#include "program_parts.h"
#include "table.h"

_Atomic int ty_hooks_registered, ty_leaf_hooks_registered, ty_calls_changed;
_Atomic uint64_t ty_detached;

ty_status ty_program_no_memory(ty_ctx *ctx) {
  ty_program *p = ctx->program;
  if (p && p->mode == TY_RECORD) ty_program_refuse(p, "out of memory");      /* an event may be incomplete */
  return ty_no_memory(ctx, "compile");
}

ty_status ty_program_refuse(ty_program *p, const char *why) {
  p->refused = true;
  snprintf(p->why, sizeof p->why, "%s", why);
  return TY_OK;
}

bool ty_program_is_broken(const ty_ctx *ctx) { return ctx->program && ctx->program->broken; }
ty_status ty_program_broken(ty_ctx *ctx) {
  return ty_error(ctx, "compile: %s: the call can't go on", ctx->program->why);
}

static ty_status refuse_of(ty_call *c, const char *why) {
  char text[160];
  snprintf(text, sizeof text, "%s: %s", c->op->shown[0] ? c->op->shown : c->op->name, why);
  return ty_program_refuse(c->ctx->program, text);
}

/* ---- values ---- */

#define CONSTANT_MOST 65536       /* bytes: larger constants are not compared, so they never agree */

/* The index of the storage's store, which is made on first sight. -1: out of memory. made: the current step writes it. */
static int store_of(ty_recording *r, const ty_storage *s, bool made) {
  const int known = ty_map_find(&r->map, s->id, r->store, sizeof(store));
  if (known >= 0) return known;
  if (!ty_grow(&r->store, r->nstore + 1, &r->store_room, sizeof(store))) return -1;
  r->store[r->nstore] = (store){.id = s->id, .nbytes = s->nbytes, .backend = s->backend, .first = r->nstep, .last = r->nstep, .value = -1,
    .internal = s->id >= r->begun && made, .constant = s->id >= r->begun && !made};
  return ty_map_add(&r->map, r->store, r->nstore + 1, sizeof(store)) ? r->nstore++ : -1;
}

/* The index of t's value, which is made on first sight. how: TY_SEEN: t is an operand, from outside if new; TY_MADE: the current step
 * writes it; TY_DERIVED: an op gave it, maybe as a view. -1: out of memory. */
int ty_value_of(ty_program *p, ty_tensor *t, ty_how how) {
  ty_recording *r = p->r;
  const int s = store_of(r, t->storage, how == TY_MADE);
  if (s < 0) return -1;
  store *st = &r->store[s];
  st->last = r->nstep;
  if (how == TY_MADE && st->constant) ty_program_refuse(p, "a tensor made from Lua numbers is changed in place");
  for (int i = st->value; i >= 0; i = r->value[i].next)
    if (ty_same_geometry(&r->value[i].like, t)) return i;
  if (st->input && how == TY_SEEN) ty_program_refuse(p, "a tensor shares memory with an argument");
  if (!st->internal && t->storage->exposed && !(st->input && p->trusting))
    ty_program_refuse(p, "a tensor's memory can be written from outside");
  if (!ty_grow(&r->value, r->nvalue + 1, &r->value_room, sizeof(value))) return -1;
  /* internal values have only a geometry, until program_memory.c gives them memory */
  ty_tensor *a = st->internal ? NULL : ty_alias(t);
  if (!a && !st->internal) return -1;
  r->value[r->nvalue] = (value){.like = *t, .t = a, .store = s, .next = st->value};
  st->value = r->nvalue;
  return r->nvalue++;
}

/* Whether t stands for value v in this call. */
bool ty_is_value(const ty_program *p, int v, const ty_tensor *t) {
  const ty_recording *r = p->r;
  const ty_tensor *w = r->value[v].t;
  if (!w) return false;                    /* never stored */
  const store *st = &r->store[r->value[v].store];
  if (t->storage == w->storage || (st->given && t->storage->id == st->given)) return ty_same_geometry(t, w);
  /* a small constant is the same if its bytes are */
  return st->constant && t->storage->id >= p->checked && ty_is_contiguous(t) &&
         ty_is_contiguous(w) && t->dtype == w->dtype && t->ndim == w->ndim &&
         !memcmp(t->shape, w->shape, sizeof(int64_t) * t->ndim) && ty_device_of(t)->gpu < 0 &&
         ty_device_of(w)->gpu < 0 && ty_nbytes(t) <= CONSTANT_MOST &&
         !memcmp(ty_data(t), ty_data(w), ty_nbytes(t));
}

/* ---- steps ---- */

/* A constant is copied to a GPU: the copy is a constant too (*constant), and the copying needs no step. */
static ty_status moved_constant(ty_call *c, const ty_backend *b, bool *constant) {
  ty_program *p = c->ctx->program;
  ty_tensor *x = c->in[0].t;
  if (b->gpu < 0 || ty_device_of(x)->gpu >= 0 || p->backward || ty_nbytes(x) > CONSTANT_MOST) return TY_OK;
  const int v = ty_value_of(p, x, TY_SEEN);
  if (v < 0) return ty_program_no_memory(c->ctx);
  if (!p->r->store[p->r->value[v].store].constant) return TY_OK;
  const int there = ty_value_of(p, c->out[0], TY_SEEN);
  if (there < 0) return ty_program_no_memory(c->ctx);
  *constant = p->r->store[p->r->value[there].store].constant;
  return TY_OK;
}

/* A kernel that has run becomes a step of the recording. */
static ty_status note_step(ty_program *p, ty_call *c, const ty_backend *b, ty_status (*run)(ty_call *c, const ty_backend *b)) {
  ty_recording *r = p->r;
  ty_status st = TY_OK;
  if (!ty_grow(&r->step, r->nstep + 1, &r->step_room, sizeof(step))) return ty_program_no_memory(c->ctx);
  step *k = &r->step[r->nstep];
  if (!ty_step_init(k, c)) return ty_program_no_memory(c->ctx);
  k->backend = b;
  k->run = run;
  /* results first: the target of a fill or an in-place op is an operand too, and its store must count as made by a step */
  const int nout = TY_MAX(c->op->nout, c->out[0] ? 1 : 0);
  for (int i = 0; i < nout; i++)
    if (c->out[i] && (k->vout[i] = ty_value_of(p, c->out[i], TY_MADE)) < 0) st = ty_program_no_memory(c->ctx);
  for (int i = 0; i < c->nin; i++) {
    if (!c->in[i].t) continue;
    if (ty_device_of(c->in[i].t) != b) refuse_of(c, "a tensor comes from another device");
    if ((k->vin[i] = ty_value_of(p, c->in[i].t, TY_SEEN)) < 0) st = ty_program_no_memory(c->ctx);
  }
  if (c->op->cls == TY_C_MOVE) refuse_of(c, "a tensor comes from another device");
  if (b->gpu >= 0) {
    if (r->gpu && r->home != b->gpu) ty_program_refuse(p, "the function works on several GPUs");
    r->gpu = true;
    r->home = b->gpu;
  }
  r->nstep++;
  return st;
}

ty_status ty_program_kernel(ty_call *c, const ty_backend *b, ty_status (*run)(ty_call *c, const ty_backend *b)) {
  ty_program *p = c->ctx->program;
  if (p->within || p->refused) return run(c, b);
  if (!p->inner && !p->backward) TY_TRY(ty_program_settle(c->ctx, "memory is written outside of ops"));
  if (p->refused) return run(c, b);
  bool constant = false;
  p->within++;
  ty_status s = run(c, b);
  p->within--;
  if (s != TY_OK) ty_program_refuse(p, "an op failed on its data");       /* with other data it may succeed */
  if (s != TY_OK) return s;
  if (c->late) return refuse_of(c, "the size of a result depends on data");
  if (c->op->cls == TY_C_MOVE && (s = moved_constant(c, b, &constant)) != TY_OK) return s;
  return constant ? TY_OK : note_step(p, c, b, run);
}

/* ---- from call to call ---- */

ty_program *ty_program_new(bool trusting, bool fuses, int most) {
  ty_program *p = ty_malloc(sizeof *p);
  if (!p) return NULL;
  memset(p, 0, sizeof *p);
  p->trusting = trusting;
  p->fuses = fuses;
  p->most = most;
  return p;
}

static void activate(ty_ctx *ctx, ty_program *p) {
  p->ctx = ctx;
  p->next = ctx->account->active;
  ctx->account->active = p;
  ctx->program = p;
}

static void deactivate(ty_program *p) {
  if (p->ctx) {
    for (ty_program **at = &p->ctx->account->active; *at; at = &(*at)->next)
      if (*at == p) { *at = p->next; break; }
    p->ctx->program = NULL;
  }
  p->ctx = NULL;
  p->mode = TY_IDLE;
}

ty_status ty_programs_interrupt(ty_ctx *ctx) {
  for (ty_program *p = ctx->account->active; p; p = p->next)
    if (p->ctx != ctx && !p->refused) TY_TRY(ty_program_settle(p->ctx, "another coroutine computes at the same time"));
  return TY_OK;
}

/* Unlinks and frees the recording *at. */
static void forget(ty_recording **at) {
  ty_recording *r = *at;
  *at = r->other;
  ty_recording_free(r);
  ty_free(r);
}

static void rest(ty_program *p) {
  const bool lost = p->refused && p->mode == TY_RECORD;
  deactivate(p);
  if (!p->r) return;
  ty_clear_pending(p->r);                 /* nobody reads versions between here and the run */
  ty_forget_grads(p->r);
  ty_recording_let_go(p->r);
  if (lost) forget(&p->r);
}

void ty_program_abandon(ty_program *p) {
  ty_program_refuse(p, "its coroutine ended within a call");
  if (p->mode == TY_CHECK) ty_rewind_grads(p->r);
  rest(p);
}

/* ---- recordings ---- */

#define STALE 256                 /* calls without agreement after which a recording is forgotten */

/* Whether no hook has been registered since that a run of r would skip. */
static bool is_current(ty_recording *r) {
  const int now = ty_leaf_hooks_registered;
  if (!r->nevent || r->hooks != ty_hooks_registered || (r->program->trusting && r->calls != ty_calls_changed)) return false;
  for (int i = 0; i < r->nvalue && r->leaf_hooks != now; i++)
    if (r->value[i].leaf && r->value[i].leaf->hooks) return false;
  r->leaf_hooks = now;
  return true;
}

/* Forgets recordings that are out of date, and, except for the first, those unused for long. */
static void forget_old(ty_program *p) {
  for (ty_recording **at = &p->r; *at;)
    if (!is_current(*at) || (at != &p->r && p->calls - (*at)->last > STALE)) forget(at);
    else at = &(*at)->other;
}

static void forget_beyond_most(ty_program *p) {
  ty_recording **at = &p->r;
  for (int n = 0; *at && n < p->most; n++) at = &(*at)->other;
  while (*at) forget(at);
}

void ty_program_free(ty_program *p) {
  deactivate(p);
  while (p->r) forget(&p->r);
  ty_free(p);
}

/* Binds an external value, and with it its store's other values (views of it), to t's memory. */
static void bind(ty_recording *r, int value, ty_tensor *t) {
  const ty_tensor *was = r->value[value].t;
  const int64_t moved = t->offset - was->offset;
  if (t->storage == was->storage && !moved) return;
  for (int v = r->store[r->value[value].store].value; v >= 0; v = r->value[v].next) {
    ty_tensor *w = r->value[v].t;
    if (r->value[v].grad_of) {
      atomic_fetch_sub_explicit(&w->storage->lent, 1, memory_order_relaxed);
      atomic_fetch_add_explicit(&t->storage->lent, 1, memory_order_relaxed);
    }
    ty_storage_retain(t->storage);
    ty_storage_release(w->storage);
    w->storage = t->storage;
    w->offset += moved;
    r->value[v].like.offset += moved;
  }
  r->stale = r->stale || r->gpu;           /* a graph keeps addresses */
}

/* Binds v, which was the gradient of grad_of, to that leaf's present gradient, if possible. */
static void follow_gradient(ty_recording *r, int v) {
  const ty_tensor *w = r->value[v].t, *g = r->value[v].grad_of->grad;
  if (!g || (g->storage == w->storage && g->offset == w->offset) || !ty_same_layout(g, w) || ty_device_of(g) != ty_device_of(w)) return;
  if (g->storage->exposed) return;         /* others may write to it */
  if (g->storage->program == r->program) return;         /* made by this program: its recordings account for it */
  if (r->gpu && !g->storage->program) return;            /* each call has another address: a graph would be captured each time */
  for (int i = 0; i < r->nvalue; i++)      /* other values are bound to it */
    if (r->value[i].store != r->value[v].store && r->value[i].t && r->value[i].t->storage == g->storage) return;
  bind(r, v, (ty_tensor *)g);
}

modes ty_modes_now(const ty_ctx *ctx) {
  return (modes){ctx->grad_enabled, {ctx->autocast[0], ctx->autocast[1]}, ctx->device, ty_default_device(ctx)};
}
bool ty_modes_same(const ty_ctx *ctx, const modes *m) {
  return ctx->grad_enabled == m->grad_enabled && ty_default_device(ctx) == m->place &&
    !memcmp(ctx->autocast, m->autocast, sizeof m->autocast);
}
void ty_modes_set(ty_ctx *ctx, const modes *m) {
  ctx->grad_enabled = m->grad_enabled;
  ctx->device = m->device;
  memcpy(ctx->autocast, m->autocast, sizeof m->autocast);
}

static int value_of_input(ty_program *p, ty_tensor *t) {
  const int s = store_of(p->r, t->storage, false);
  if (s < 0) return -1;
  if (p->r->store[s].input) ty_program_refuse(p, "two arguments share a storage");
  p->r->store[s].input = true;
  return ty_value_of(p, t, TY_DERIVED);
}

static bool aliased(const ty_recording *r, const ty_storage *t) {
  for (int i = 0; i < r->nstore; i++) {
    const store *st = &r->store[i];
    if (st->internal || st->input || st->value < 0) continue;
    const ty_storage *s = r->value[st->value].t->storage;
    const char *a = s->data, *b = t->data;
    if (s == t || (t->drop && a < b + t->nbytes && b < a + s->nbytes)) return true;
  }
  return false;
}
bool ty_program_aliased(const ty_program *p, const ty_tensor *input) {
  for (const ty_recording *r = p->r; r; r = r->other)
    if (aliased(r, input->storage)) return true;
  return false;
}

ty_status ty_record_anew(ty_ctx *ctx, ty_program *p, ty_tensor **input, int ninput) {
  ty_recording *r = ty_malloc(sizeof *r);
  if (!r) return ty_program_no_memory(ctx);
  memset(r, 0, sizeof *r);
  r->program = p;
  r->number = ++p->numbers;
  r->last = p->calls;
  r->fuses = p->fuses;
  r->begun = p->checked;
  r->hooks = ty_hooks_registered;
  r->calls = ty_calls_changed;
  r->leaf_hooks = ty_leaf_hooks_registered;
  r->recorded = p->called;
  r->other = p->r;
  p->r = r;
  p->mode = TY_RECORD;
  r->input = ty_malloc(sizeof(int) * (size_t)TY_MAX(ninput, 1));
  if (!r->input) return ty_program_no_memory(ctx);
  for (int i = 0; i < ninput; i++)
    if ((r->input[r->ninput++] = value_of_input(p, input[i])) < 0) return ty_program_no_memory(ctx);
  return TY_OK;
}

/* Moves r to the front of its program's list. */
static void to_front(ty_program *p, ty_recording *r) {
  ty_recording **at = &p->r;
  while (*at != r) at = &(*at)->other;
  *at = r->other;
  r->other = p->r;
  p->r = r;
}

/* ---- the leaves' gradients ---- */

void ty_rewind_grads(ty_recording *r) {
  for (int i = 0; i < r->nentry; i++) {
    ty_tensor *leaf = r->entry[i].leaf;
    ty_release(leaf->grad);
    leaf->grad = r->entry[i].grad;         /* takes over the reference */
    if (leaf->grad) leaf->grad->scaled = r->entry[i].scaled;
    r->entry[i].grad = NULL;
  }
}

static int held_by_events(const ty_recording *r, const ty_tensor *t) {
  int n = 0;
  for (int i = 0; i < r->nevent; i++) {
    const event *e = &r->event[i];
    for (int k = 0; k < e->nin; k++) n += e->actual[k] == t;
    n += e->target == t;
    for (int j = 0; j < TY_MAXOUT; j++) n += e->placeholder[j] == t;
  }
  return n;
}

/* An old gradient in the program's memory, which the run overwrites, becomes a copy where someone else holds it. */
static ty_status spare_grads(ty_ctx *ctx, ty_program *p) {
  ty_status s = TY_OK;
  ty_recording *r = p->r;
  for (int i = 0; i < r->nentry && s == TY_OK; i++) {
    ty_tensor *g = r->entry[i].grad, *copy;
    if (!g || g == r->entry[i].leaf->grad || g->storage->program != p) continue;
    const int others = atomic_load(&g->refs) - 1;
    if (!others || others <= held_by_events(r, g)) continue;
    p->within++;
    s = ty_call_op2(ctx, TY_OP_clone, ty_operand_tensor(g), (ty_operand){0}, NULL, NULL, &copy);
    p->within--;
    if (s != TY_OK) break;
    copy->scaled = g->scaled;
    ty_become(g, copy);
    ty_release(copy);
  }
  return s;
}

void ty_forget_grads(ty_recording *r) {
  for (int i = 0; i < r->nentry; i++) {
    ty_release(r->entry[i].grad);
    r->entry[i].grad = NULL;
  }
}

/* ---- a call ---- */

ty_status ty_compare(ty_ctx *ctx, ty_program *p, ty_recording *r, ty_tensor **input, int ninput) {
  to_front(p, r);
  p->mode = TY_CHECK;
  p->at = 0;
  r->tried = p->calls;
  if (ninput != r->ninput) return ty_error(ctx, "compile: %d inputs, %d were recorded", ninput, r->ninput);
  for (int i = 0; i < ninput; i++) bind(r, r->input[i], input[i]);
  for (int v = 0; v < r->nvalue && r->follows; v++)
    if (r->value[v].grad_of) follow_gradient(r, v);
  for (int i = 0; i < r->nentry; i++) {
    ty_tensor *g = r->entry[i].leaf->grad;
    r->entry[i].grad = ty_retain(g);
    r->entry[i].scaled = g && g->scaled;
  }
  return TY_OK;
}

ty_status ty_program_begin(ty_ctx *ctx, ty_program *p, ty_tensor **input, int ninput) {
  TY_TRY(ty_programs_interrupt(ctx));
  if (p->mode != TY_IDLE || ctx->program)
    return ty_error(ctx, "compile: a compiled function can't call itself, nor be called while another is recorded");
  p->checked = ty_next_storage();
  p->node = ty_next_node();
  p->detached = ty_detached;
  p->calls++;
  p->refused = p->broken = false;
  p->why[0] = 0;
  p->called = ty_modes_now(ctx);
  p->readable = 0;
  forget_old(p);
  for (ty_recording *r = p->r; r; r = r->other) TY_TRY(ty_recording_evict(ctx, r));     /* before the function can take hold of more */
  const ty_status s = p->r ? ty_compare(ctx, p, p->r, input, ninput) : ty_record_anew(ctx, p, input, ninput);
  if (s == TY_OK) { activate(ctx, p); return TY_OK; }
  ty_program_refuse(p, "it couldn't begin");
  rest(p);
  return s;
}

/* Notes the results of the call being recorded, and plans the recording. */
static ty_status note_results(ty_ctx *ctx, ty_program *p, ty_tensor **result, int n, bool graph) {
  ty_recording *r = p->r;
  for (int i = 0; i < n; i++)
    if (!graph && ty_needs_graph(result[i]))
      return ty_program_refuse(p, "a result still needs its graph");
  if (!(r->result = ty_malloc(sizeof(int) * (size_t)TY_MAX(n, 1)))) return ty_program_no_memory(ctx);
  r->nresult = n;
  for (int i = 0; i < n && !p->refused; i++)
    if ((r->result[i] = ty_visible(p, result[i])) < 0) return ty_program_no_memory(ctx);
  return p->refused ? TY_OK : ty_recording_prepare(ctx, r);
}

ty_status ty_program_end(ty_ctx *ctx, ty_program *p, bool ok, ty_tensor **result, int nresult, bool graph, bool *run) {
  ty_status s = ok || p->broken ? TY_OK : ty_program_settle(ctx, "the function failed");
  if (ok && p->broken) s = ty_program_broken(ctx);
  while (s == TY_OK && !p->refused && p->mode == TY_CHECK && p->at < p->r->nevent) s = ty_diverge(ctx, p, "the function ended earlier");
  if (s == TY_OK && !p->refused && p->mode == TY_RECORD) s = note_results(ctx, p, result, nresult, graph);
  if (s == TY_OK && !p->refused && p->mode == TY_CHECK && (s = spare_grads(ctx, p)) != TY_OK) ty_program_settle(ctx, "out of memory");
  if (s != TY_OK) ty_program_refuse(p, "its memory couldn't be planned");
  *run = !p->refused && p->mode == TY_CHECK;
  if (*run) p->r->last = p->calls;
  rest(p);
  forget_beyond_most(p);
  return s;
}

/* Whether the call changes t in place. */
static bool changes(const ty_program *p, const event *e, const ty_tensor *t) {
  if (e->into >= 0 && ty_is_value(p, e->into, t)) return true;
  for (int i = 0; i < e->op->nparam; i++) {
    const ty_param *q = &e->op->param[i];
    if (!ty_param_is_operand(q) || !q->mutated) continue;
    const ty_span s = ty_span_of(e->op, e->span, q->slot);
    for (int k = s.start; k < s.start + s.count; k++)
      if (e->vin[k] >= 0 && ty_is_value(p, e->vin[k], t)) return true;
  }
  return false;
}

/* Does to leaves' gradients what the events do. False: out of memory, or a gradient is not as recorded. */
static bool assign_grads(ty_program *p) {
  ty_recording *r = p->r;
  for (int i = 0; i < r->nevent; i++) {
    const event *e = &r->event[i];
    for (int k = 0; k < e->nleaf; k++) {
      const leaf_change *l = &e->leaf[k];
      if (l->own >= 0) continue;           /* this leaf ended with its call */
      ty_tensor *g = NULL, *now = l->leaf->grad;
      if (e->kind == EVENT_GRAD) {
        if (e->vin[0] >= 0 && !(g = ty_alias(r->value[e->vin[0]].t))) return false;
      } else {
        if (l->before < 0 ? now != NULL : !now || !ty_is_value(p, l->before, now)) return false;
        if (l->kept) { now->scaled = l->scaled; continue; }
        if (!(g = ty_alias(r->value[l->after].t))) return false;
        if (l->needs && !ty_mark_graph_used(g)) { ty_release(g); return false; }
        g->scaled = l->scaled;
      }
      ty_release(now);
      l->leaf->grad = g;
    }
    for (int k = 0; e->kind == EVENT_APPLY && (e->into >= 0 || e->op->mutates) && k < r->nentry; k++) {
      ty_tensor *g = r->entry[k].leaf->grad;
      if (g && g->scaled && changes(p, e, g)) ty_keep_mark(g, e->op);
    }
  }
  return true;
}

ty_status ty_program_trust(ty_ctx *ctx, ty_program *p, ty_tensor **input, int ninput, bool *run) {
  ty_recording *r = p->r;
  *run = false;
  if (!r || r->asks || !is_current(r) || !ty_modes_same(ctx, &r->recorded)) return TY_OK;
  for (int i = 0; i < r->nvalue; i++) {
    const value *v = &r->value[i];
    if (v->leaf && (!v->leaf->requires_grad || v->leaf->storage != v->t->storage || !ty_same_geometry(v->leaf, v->t))) return TY_OK;
    if (v->plain && v->plain->requires_grad) return TY_OK;
  }
  TY_TRY(ty_program_begin(ctx, p, input, ninput));
  if ((*run = ty_gradients_follow(p) && assign_grads(p))) r->last = p->calls;
  else ty_rewind_grads(r);
  rest(p);
  return TY_OK;
}

ty_status ty_program_ready(ty_ctx *ctx, ty_program *p) { return ty_recording_ready(ctx, p->r); }
ty_status ty_program_write_rates(ty_ctx *ctx, ty_program *p) { return ty_recording_write_rates(ctx, p->r); }
ty_tensor *ty_program_result(const ty_program *p, int i) { return ty_alias(p->r->value[p->r->result[i]].t); }

static void written(ty_tensor *t, const ty_op *op) {
  (void)op;
  ty_changed(t);
}

/* New versions of the tensors that a step has written. */
static void bump(const ty_call *c) {
  for (int j = 0; j < TY_MAXOUT; j++)
    if (c->out[j]) ty_changed(c->out[j]);
  ty_each_mutated(c, written);
}

static ty_status run_joint(ty_ctx *ctx, const ty_recording *r, const group *g) {
  ty_call *call[TY_JOINED];
  const ty_backend *b = r->step[g->step[0]].backend;
  for (int k = 0; k < g->nstep; k++) {
    call[k] = &r->step[g->step[k]].call;
    call[k]->ctx = ctx;
  }
  return b->joint(ctx, b, g->joint, call, g->nstep);
}

enum { ON_HOST = 1, ON_GPU = 2, NEW_VERSIONS = 4 };
/* Runs the steps on the devices in `which`. Kernels may apply ops, which must neither record nor autocast, whatever the caller's modes. */
static ty_status run_steps(ty_ctx *ctx, ty_recording *r, int which) {
  const modes was = ty_modes_now(ctx), plain = {.device = ctx->device};
  ty_status s = TY_OK;
  ty_modes_set(ctx, &plain);
  for (int i = 0; i < r->ngroup && s == TY_OK; i++) {
    const group *g = &r->group[i];
    const ty_backend *b = r->step[g->step[0]].backend;     /* the same for all its steps */
    if (!(which & (b->gpu < 0 ? ON_HOST : ON_GPU))) continue;
    if (g->joint || (g->fused && g->fused->nnode)) {
      ty_profiler *told = ty_profile_begin(ctx, g->joint ? "joint steps" : "fused steps", b, NULL);
      s = g->joint ? run_joint(ctx, r, g) : b->fused(ctx, b, g->fused);
      ty_profile_end(ctx, told);
    }
    for (int k = g->nagain; k < g->nstep && s == TY_OK; k++) {
      step *q = &r->step[g->step[k]];
      q->call.ctx = ctx;
      if (!g->fused && !g->joint) s = q->run(&q->call, q->backend);
      if (which & NEW_VERSIONS) bump(&q->call);
    }
  }
  ty_modes_set(ctx, &was);
  return s;
}

ty_status ty_program_run(ty_ctx *ctx, ty_program *p) { return run_steps(ctx, p->r, ON_HOST | ON_GPU | NEW_VERSIONS); }
ty_status ty_program_capture(ty_ctx *ctx, ty_program *p) {
  for (int v = 0; v < p->r->nvalue; v++) {
    ty_storage *s = p->r->value[v].t ? p->r->value[v].t->storage : NULL;
    if (s && s->program && s->program != p) s->fixed = true;
  }
  p->r->captured = true;
  return run_steps(ctx, p->r, ON_GPU);
}

ty_status ty_program_ran(ty_ctx *ctx, ty_program *p) {
  ty_recording *r = p->r;
  for (int i = 0; i < r->nstore; i++)      /* the graph may have run on another stream than the memory's */
    if (r->store[i].memory && r->store[i].backend->uses) r->store[i].backend->uses(ctx, r->store[i].backend, r->store[i].memory->storage);
  for (int i = 0; i < r->nstep; i++)
    if (r->step[i].backend->gpu >= 0) bump(&r->step[i].call);
  return run_steps(ctx, r, ON_HOST | NEW_VERSIONS);
}

void ty_program_set_rate(ty_program *p, int i, double v) {
  ty_recording *r = p->r;
  for (int k = 0; k < r->nstep; k++) {
    const ty_op *op = r->step[k].call.op;
    for (int slot = 0; op->cls == TY_C_OPTIM && slot < op->nin; slot++)
      if (ty_is_rate(op, slot) && i-- == 0) {
        const int at = r->step[k].call.span[slot].start;
        if (r->step[k].rate || ty_is_number(&r->step[k].call.in[at])) ty_recording_set_rate(r, k, at, v);
        return;
      }
  }
}

bool ty_program_recorded(const ty_program *p) {
  for (ty_recording *r = p->r; r; r = r->other)
    if (is_current(r)) return true;
  return false;
}
