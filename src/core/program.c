/* See program.h. What a program holds, and what happens with it from call to call; events.c records and compares,
   plan.c gives it memory. */
#include "plan.h"
#include "table.h"

ty_status ty_program_no_memory(ty_ctx *ctx) { return ty_no_memory(ctx, "compile"); }

ty_status ty_program_die(ty_program *p, const char *why) {
  p->dead = true;
  snprintf(p->why, sizeof p->why, "%s", why);
  return TY_OK;
}

static ty_status die_of(ty_call *c, const char *why) {
  char text[160];
  snprintf(text, sizeof text, "%s: %s", c->op->shown[0] ? c->op->shown : c->op->name, why);
  return ty_program_die(c->ctx->program, text);
}

/* ---- values ---- */

bool ty_same_geometry(const ty_tensor *a, const ty_tensor *b) {
  return a->offset == b->offset && a->dtype == b->dtype && TY_SAME_SHAPE(a, b) &&
         !memcmp(a->stride, b->stride, sizeof(int64_t) * a->ndim);
}

#define CONSTANT_MOST 65536       /* bytes of a function's own numbers that each call compares */

/* The storage's place among the stores; made on first sight. -1: out of memory. made: a step writes it just now. */
static int store_of(ty_program *p, const ty_storage *s, bool made) {
  const int known = ty_map_find(&p->map, s->id, p->store, sizeof(store));
  if (known >= 0) return known;
  if (!ty_grow(&p->store, p->nstore + 1, &p->store_room, sizeof(store))) return -1;
  p->store[p->nstore] = (store){.id = s->id, .nbytes = s->nbytes, .backend = s->backend, .first = p->nstep, .last = p->nstep, .value = -1,
    .internal = s->id >= p->begun && made, .constant = s->id >= p->begun && !made};
  return ty_map_add(&p->map, p->store, p->nstore + 1, sizeof(store)) ? p->nstore++ : -1;
}

/* The value that t is; made on first sight. how: TY_SEEN: it comes from outside, as far as one can tell; TY_MADE: a
 * step writes it just now;
 * TY_DERIVED: an op has given it. -1: out of memory. */
int ty_value_of(ty_program *p, ty_tensor *t, ty_how how) {
  const int s = store_of(p, t->storage, how == TY_MADE);
  if (s < 0) return -1;
  store *st = &p->store[s];
  st->last = p->nstep;
  if (how == TY_MADE && st->constant) ty_program_die(p, "a tensor of numbers is changed in place");
  for (int i = st->value; i >= 0; i = p->value[i].next)
    if (ty_same_geometry(&p->value[i].like, t)) return i;
  if (st->input && how == TY_SEEN) ty_program_die(p, "a tensor shares memory with an argument");
  if (!st->internal && (t->storage->exposed || t->storage->drop) && !(st->input && p->trusting))
    ty_program_die(p, "a tensor's memory can be written to by others");
  if (!ty_grow(&p->value, p->nvalue + 1, &p->value_room, sizeof(value))) return -1;
  /* of its own values the program has only the geometry, until plan.c gives them memory */
  ty_tensor *a = st->internal ? NULL : ty_alias(t);
  if (!a && !st->internal) return -1;
  p->value[p->nvalue] = (value){.like = *t, .t = a, .store = s, .next = st->value};
  st->value = p->nvalue;
  return p->nvalue++;
}

/* Whether t is what value v stood for when it was recorded. */
bool ty_is_value(const ty_program *p, int v, const ty_tensor *t) {
  const ty_tensor *w = p->value[v].t;
  if (!w) return false;                    /* never stored */
  const store *st = &p->store[p->value[v].store];
  if (t->storage == w->storage || (st->given && t->storage->id == st->given)) return ty_same_geometry(t, w);
  /* a small tensor that the function made of its own numbers is the same if its bytes are */
  return st->constant && t->storage->id >= p->checked && ty_is_contiguous(t) &&
         ty_is_contiguous(w) && t->dtype == w->dtype && t->ndim == w->ndim &&
         !memcmp(t->shape, w->shape, sizeof(int64_t) * t->ndim) && ty_device_of(t)->gpu < 0 &&
         ty_device_of(w)->gpu < 0 && ty_numel(t) * ty_itemsize(t) <= CONSTANT_MOST &&
         !memcmp(ty_data(t), ty_data(w), (size_t)(ty_numel(t) * ty_itemsize(t)));
}

/* ---- steps ---- */

/* Numbers of the function's own that go to a GPU: what is there then is the program's, too, and needs no step. */
static ty_status moved_constant(ty_call *c, const ty_backend *b, bool *constant) {
  ty_program *p = c->ctx->program;
  ty_tensor *x = c->in[0].t;
  if (b->gpu < 0 || ty_device_of(x)->gpu >= 0 || p->backward || ty_numel(x) * ty_itemsize(x) > CONSTANT_MOST) return TY_OK;
  const int v = ty_value_of(p, x, TY_SEEN);
  if (v < 0) return ty_program_no_memory(c->ctx);
  if (!p->store[p->value[v].store].constant) return TY_OK;
  const int there = ty_value_of(p, c->out[0], TY_SEEN);
  if (there < 0) return ty_program_no_memory(c->ctx);
  *constant = p->store[p->value[there].store].constant;
  return TY_OK;
}

ty_status ty_program_kernel(ty_call *c, const ty_backend *b, ty_status (*run)(ty_call *c, const ty_backend *b)) {
  ty_program *p = c->ctx->program;
  if (p->within || p->dead) return run(c, b);
  if (!p->inner && !p->backward) TY_TRY(ty_program_settle(c->ctx, "memory is written beside the ops"));
  if (p->dead) return run(c, b);
  bool constant = false;
  p->within++;
  ty_status s = run(c, b);
  p->within--;
  if (s != TY_OK) ty_program_die(p, "an op failed on its data");       /* with others it may go well */
  if (s != TY_OK) return s;
  if (c->late) return die_of(c, "the size of a result depends on data");
  if (c->op->cls == TY_C_MOVE && (s = moved_constant(c, b, &constant)) != TY_OK) return s;
  if (constant) return TY_OK;
  if (!ty_grow(&p->step, p->nstep + 1, &p->step_room, sizeof(step))) return ty_program_no_memory(c->ctx);
  step *k = &p->step[p->nstep];
  memset(k, 0, sizeof *k);
  k->call = *c;
  k->backend = b;
  k->run = run;
  k->call.in = ty_malloc(sizeof(ty_operand) * (size_t)TY_MAX(c->nin, 1));
  k->call.at = ty_malloc(sizeof(ty_attr) * (size_t)TY_MAX(c->op->nattr, 1));
  k->vin = ty_malloc(sizeof(int) * (size_t)TY_MAX(c->nin, 1));
  p->nstep++;                              /* from here on freeing the program frees them */
  if (!k->call.in || !k->call.at || !k->vin) return ty_program_no_memory(c->ctx);
  p->nstep--;
  if (c->nin) memcpy(k->call.in, c->in, sizeof(ty_operand) * (size_t)c->nin);
  if (c->op->nattr) memcpy(k->call.at, c->at, sizeof(ty_attr) * (size_t)c->op->nattr);
  ty_status st = TY_OK;
  /* results first: what is filled, or written in place, as soon as it is there, is its own operand */
  for (int i = 0; i < TY_MAXOUT; i++) k->vout[i] = -1;
  const int nout = TY_MAX(c->op->nout, c->out[0] ? 1 : 0);
  for (int i = 0; i < nout; i++) {
    k->call.out[i] = NULL;
    if (c->out[i] && (k->vout[i] = ty_value_of(p, c->out[i], TY_MADE)) < 0) st = ty_program_no_memory(c->ctx);
  }
  for (int i = 0; i < c->nin; i++) {
    k->vin[i] = -1;
    k->call.in[i].t = NULL;
    if (!c->in[i].t) continue;
    if (ty_device_of(c->in[i].t) != b) die_of(c, "a tensor comes from another device");
    if ((k->vin[i] = ty_value_of(p, c->in[i].t, TY_SEEN)) < 0) st = ty_program_no_memory(c->ctx);
  }
  if (c->op->cls == TY_C_MOVE) die_of(c, "a tensor comes from another device");
  if (b->gpu >= 0) {
    if (p->gpu && p->home != b->gpu) ty_program_die(p, "it works on several GPUs");
    p->gpu = true;
    p->home = b->gpu;
  }
  p->nstep++;
  return st;
}

/* ---- from call to call ---- */

ty_program *ty_program_new(bool trusting, bool fuses) {
  ty_program *p = ty_malloc(sizeof *p);
  if (!p) return NULL;
  memset(p, 0, sizeof *p);
  p->trusting = trusting;
  p->fuses = fuses;
  return p;
}

static void activate(ty_ctx *ctx, ty_program *p, ty_program_mode mode) {
  p->mode = mode;
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
  p->mode = TY_AT_REST;
}

ty_status ty_programs_interrupt(ty_ctx *ctx) {
  for (ty_program *p = ctx->account->active; p; p = p->next)
    if (p->ctx != ctx && !p->dead) TY_TRY(ty_program_settle(p->ctx, "another coroutine computes meanwhile"));
  return TY_OK;
}

static void rest(ty_program *p) {
  deactivate(p);
  ty_clear_pending(p);                    /* nobody asks for versions between here and the run */
  ty_forget_grads(p);
  for (int i = 0; i < p->nevent; i++) ty_plan_let_go(&p->event[i]);
}

void ty_program_abandon(ty_program *p) {
  ty_program_die(p, "its coroutine ended within a call");
  rest(p);
}

void ty_program_free(ty_program *p) {
  deactivate(p);
  ty_plan_free(p);
  ty_free(p);
}

/* Input i is in t's memory from now on, and so are the values that are views of it. */
static void bind(ty_program *p, int i, ty_tensor *t) {
  const ty_tensor *was = p->value[p->input[i]].t;
  const int64_t moved = t->offset - was->offset;
  if (t->storage == was->storage && !moved) return;
  for (int v = p->store[p->value[p->input[i]].store].value; v >= 0; v = p->value[v].next) {
    ty_tensor *w = p->value[v].t;
    ty_storage_retain(t->storage);
    ty_storage_release(w->storage);
    w->storage = t->storage;
    w->offset += moved;
    p->value[v].like.offset += moved;
  }
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

int ty_value_of_input(ty_program *p, ty_tensor *t) {
  const int s = store_of(p, t->storage, false);
  if (s < 0) return -1;
  if (p->store[s].input) ty_program_die(p, "two arguments are in one storage");
  p->store[s].input = true;
  return ty_value_of(p, t, TY_DERIVED);
}

bool ty_program_aliased(const ty_program *p, const ty_tensor *input) {
  const ty_storage *t = input->storage;
  for (int i = 0; i < p->nstore; i++) {
    const store *st = &p->store[i];
    if (st->internal || st->input || st->value < 0) continue;
    const ty_storage *s = p->value[st->value].t->storage;
    const char *a = s->data, *b = t->data;
    if (s == t || (t->drop && a < b + t->nbytes && b < a + s->nbytes)) return true;
  }
  return false;
}

ty_status ty_program_begin(ty_ctx *ctx, ty_program *p, ty_program_mode mode, ty_tensor **input, int ninput) {
  TY_TRY(ty_programs_interrupt(ctx));
  if (p->mode != TY_AT_REST || ctx->program)
    return ty_error(ctx, "compile: a compiled function can't call itself, nor be called within another compiled one's record");
  p->checked = ty_next_storage();
  p->at = 0;
  p->why[0] = 0;
  if (mode == TY_RECORD) {
    ty_plan_free(p);
    const bool trusting = p->trusting, fuses = p->fuses;
    memset(p, 0, sizeof *p);
    p->fuses = fuses;
    p->begun = p->checked = ty_next_storage();
    p->hooks = ty_hooks_registered;
    p->trusting = trusting;
    p->recorded = ty_modes_now(ctx);
    p->input = ty_malloc(sizeof(int) * (size_t)TY_MAX(ninput, 1));
    if (!p->input) return ty_program_no_memory(ctx);
    for (int i = 0; i < ninput; i++)
      if ((p->input[p->ninput++] = ty_value_of_input(p, input[i])) < 0) return ty_program_no_memory(ctx);
  } else {
    if (ninput != p->ninput) return ty_error(ctx, "compile: %d inputs, %d were recorded", ninput, p->ninput);
    for (int i = 0; i < ninput; i++) bind(p, i, input[i]);
    TY_TRY(ty_plan_evict(ctx, p));
    for (int i = 0; i < p->nentry; i++) p->entry[i].grad = ty_retain(p->entry[i].leaf->grad);
  }
  p->called = ty_modes_now(ctx);
  activate(ctx, p, mode);
  return TY_OK;
}

ty_status ty_program_end(ty_ctx *ctx, ty_program *p, bool ok, ty_tensor **result, int nresult, bool *run) {
  ty_status s = TY_OK;
  *run = false;
  if (p->mode == TY_CHECK && !ok) s = ty_program_settle(ctx, "the function failed");
  else if (p->mode == TY_CHECK && p->at < p->nevent) s = ty_diverge(ctx, p, "the function ended earlier");
  if (s == TY_OK && p->mode == TY_CHECK) *run = true;
  else if (s == TY_OK && !p->dead) {
    if (!ok) ty_program_die(p, "the function failed");
    for (int i = 0; i < nresult; i++)
      if (result[i]->node && !result[i]->node->done)
        ty_program_die(p, "a result still needs its graph: compile the backward pass too, or detach() the result");
    ty_free(p->result);
    p->result = ty_malloc(sizeof(int) * (size_t)TY_MAX(nresult, 1));
    p->nresult = p->result ? nresult : 0;
    if (!p->result) s = ty_program_no_memory(ctx);
    for (int i = 0; i < p->nresult && !p->dead && s == TY_OK; i++)
      if ((p->result[i] = ty_visible(p, result[i])) < 0) s = ty_program_no_memory(ctx);
    if (s == TY_OK && !p->dead) s = ty_plan_make(ctx, p);
  }
  if (s != TY_OK) ty_program_die(p, "it failed to be planned");
  rest(p);
  return s;
}

/* Whether the call changes t in place. */
static bool changes(const ty_program *p, const event *e, const ty_tensor *t) {
  if (e->into >= 0 && ty_is_value(p, e->into, t)) return true;
  for (int i = 0; i < e->op->nparam; i++) {
    const ty_param *q = &e->op->param[i];
    if (q->type > TY_P_TENSORS || !q->mutated) continue;
    const ty_span s = ty_span_of(e->op, e->span, q->slot);
    for (int k = s.start; k < s.start + s.count; k++)
      if (e->vin[k] >= 0 && ty_is_value(p, e->vin[k], t)) return true;
  }
  return false;
}

/* What the events do to leaves' gradients. */
static bool assign_grads(ty_program *p) {
  for (int i = 0; i < p->nevent; i++) {
    const event *e = &p->event[i];
    for (int k = 0; k < e->nleaf; k++) {
      const leaf_change *l = &e->leaf[k];
      ty_tensor *g = NULL, *now = l->leaf->grad;
      if (e->kind == EVENT_GRAD) {
        if (e->vin[0] >= 0 && !(g = ty_alias(p->value[e->vin[0]].t))) return false;
      } else {
        if (l->before < 0 ? now != NULL : !now || !ty_is_value(p, l->before, now)) return false;
        if (l->kept) { now->scaled = l->scaled; continue; }
        if (!(g = ty_alias(p->value[l->after].t))) return false;
        g->scaled = l->scaled;
      }
      ty_release(now);
      l->leaf->grad = g;
    }
    for (int k = 0; e->kind == EVENT_APPLY && (e->into >= 0 || e->op->mutates) && k < p->nentry; k++) {
      ty_tensor *g = p->entry[k].leaf->grad;
      if (g && g->scaled && changes(p, e, g)) ty_keep_mark(g, e->op);
    }
  }
  return true;
}

ty_status ty_program_trust(ty_ctx *ctx, ty_program *p, ty_tensor **input, int ninput, bool *run) {
  *run = false;
  if (!ty_modes_same(ctx, &p->recorded)) return TY_OK;
  for (int i = 0; i < p->nvalue; i++) {
    const value *v = &p->value[i];
    if (v->leaf && (!v->leaf->requires_grad || v->leaf->storage != v->t->storage || !ty_same_geometry(v->leaf, v->t))) return TY_OK;
    if (v->plain && v->plain->requires_grad) return TY_OK;
  }
  TY_TRY(ty_program_begin(ctx, p, TY_CHECK, input, ninput));
  if (assign_grads(p)) *run = true;
  else ty_rewind_grads(p);
  rest(p);
  return TY_OK;
}

ty_tensor *ty_program_result(const ty_program *p, int i) { return ty_alias(p->value[p->result[i]].t); }

static void written(ty_tensor *t, const ty_op *op) {
  (void)op;
  ty_changed(t);
}

/* New versions for what a step has written. */
static void bump(const ty_call *c) {
  for (int j = 0; j < TY_MAXOUT; j++)
    if (c->out[j]) ty_changed(c->out[j]);
  ty_each_mutated(c, written);
}

static ty_status run_joint(ty_ctx *ctx, const ty_program *p, const group *g) {
  ty_call *call[TY_JOINED];
  const ty_backend *b = p->step[g->step[0]].backend;
  for (int k = 0; k < g->nstep; k++) {
    call[k] = &p->step[g->step[k]].call;
    call[k]->ctx = ctx;
  }
  return b->joint(ctx, b, g->joint, call, g->nstep);
}

/* Kernels may apply ops of their own: these neither record nor cast, whatever the caller's modes are. host, gpu: of which devices the steps
 * are run. */
static ty_status run_steps(ty_ctx *ctx, ty_program *p, bool host, bool gpu, bool bumps) {
  const modes was = ty_modes_now(ctx), plain = {.device = ctx->device};
  ty_status s = TY_OK;
  ty_modes_set(ctx, &plain);
  for (int i = 0; i < p->ngroup && s == TY_OK; i++) {
    const group *g = &p->group[i];
    const ty_backend *b = p->step[g->step[0]].backend;     /* of all its steps */
    if (!(b->gpu < 0 ? host : gpu)) continue;
    if (g->joint || (g->fused && g->fused->nnode)) {
      ty_profiler *told = ty_profile_begin(ctx, g->joint ? "joint steps" : "fused steps", b, NULL);
      s = g->joint ? run_joint(ctx, p, g) : b->fused(ctx, b, g->fused);
      ty_profile_end(ctx, told);
    }
    for (int k = g->nagain; k < g->nstep && s == TY_OK; k++) {
      step *q = &p->step[g->step[k]];
      q->call.ctx = ctx;
      if (!g->fused && !g->joint) s = q->run(&q->call, q->backend);
      if (bumps) bump(&q->call);
    }
  }
  ty_modes_set(ctx, &was);
  return s;
}

ty_status ty_program_run(ty_ctx *ctx, ty_program *p) { return run_steps(ctx, p, true, true, true); }
ty_status ty_program_capture(ty_ctx *ctx, ty_program *p) { return run_steps(ctx, p, false, true, false); }

ty_status ty_program_ran(ty_ctx *ctx, ty_program *p) {
  for (int i = 0; i < p->nstore; i++)      /* memory that was made on another stream than the one that the graph ran on */
    if (p->store[i].memory && p->store[i].backend->uses) p->store[i].backend->uses(ctx, p->store[i].backend, p->store[i].memory->storage);
  for (int i = 0; i < p->nstep; i++)
    if (p->step[i].backend->gpu >= 0) bump(&p->step[i].call);
  return run_steps(ctx, p, true, false, true);
}

void ty_program_rate(ty_program *p, int i, double v) {
  for (int k = 0; k < p->nstep; k++) {
    const ty_op *op = p->step[k].call.op;
    for (int slot = 0; op->cls == TY_C_OPTIM && slot < op->nin; slot++)
      if (ty_is_rate(op, slot) && i-- == 0) {
        const int at = p->step[k].call.span[slot].start;
        if (p->step[k].rate || ty_is_number(&p->step[k].call.in[at])) ty_plan_rate(p, k, at, v);
        return;
      }
  }
}

bool ty_program_recorded(const ty_program *p) { return p->nevent && !p->dead && p->hooks == ty_hooks_registered; }
