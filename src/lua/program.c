/* Recorded programs as userdata, for lua/tycho/compile/init.lua and jit/trace.lua; core/program.c records and compares.
 *
 * Invariant: whoever begins to record or to compare a call ends that, also where the function fails. */
#include <string.h>
#include "binding.h"
#include "program_parts.h"
#include "skeleton.h"

static void program_ends(void *p) { ty_program_free(p); }
ty_program *ty_program_at(lua_State *L, int i) { return ty_box_at(L, i, program_ends, "a program"); }

/* A program that has a recording. */
static ty_program *recorded_at(lua_State *L, int i) {
  ty_program *p = ty_program_at(L, i);
  if (!p->r) ty_throw(L, "compile: nothing is recorded");
  return p;
}

/* The recording with the number at i, of the program at i - 1; without a number the current one. */
static ty_recording *recording_at(lua_State *L, int i) {
  ty_recording *r = recorded_at(L, i - 1)->r;
  const int number = (int)luaL_optinteger(L, i, r->number);
  while (r && r->number != number) r = r->other;
  if (!r) ty_throw(L, "compile: recording %d no longer exists", number);
  return r;
}

static int program_new(lua_State *L) {     /* (trusting, fuses, most) */
  void **p = ty_new_box(L, program_ends);
  *p = ty_program_new(lua_toboolean(L, 1), lua_toboolean(L, 2), (int)luaL_optinteger(L, 3, 1));
  if (!*p) return ty_throw(L, "compile: out of memory");
  return 1;
}

/* begin(program, inputs) -> whether the call is compared; else it is recorded */
static int program_begin(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_program *p = ty_program_at(L, 1);
  int n;
  ty_own_modes(L, s);                      /* first: what it allocates may run finalizers, which free tensors */
  ty_tensor **t = ty_tensors_at(L, 2, 0, &n);
  ty_ctx *ctx = &ty_own_modes(L, s)->ctx;  /* a finalizer may have ended them; this allocates nothing */
  if (ty_program_begin(ctx, p, t, n) == TY_OK) {
    lua_pushboolean(L, p->mode == TY_CHECK);
    return 1;
  }
  return ty_raise(L, ty_modes_end(L, s, ctx));
}

/* aliased(program, the function's arguments ...) -> ty_program_aliased of any that is an input */
static int program_aliased(lua_State *L) {
  const ty_program *p = ty_program_at(L, 1);
  bool aliased = false;
  for (int i = lua_gettop(L); i > 1 && !aliased; i--) {
    const ty_tensor *t = ty_test(L, i);
    aliased = t && !ty_needs_grad(t) && ty_program_aliased(p, t);
  }
  lua_pushboolean(L, aliased);
  return 1;
}

/* finish(program, ok, results, skeleton or nil) -> whether run() gives the results. skeleton: of the results' tape; the tensors that this
   tape saved become results of the recording, behind the others */
static int program_end(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_program *p = ty_program_at(L, 1);
  const bool graph = !lua_isnoneornil(L, 4);
  ty_modes *m = ty_own_modes(L, s);        /* first, as in program_begin */
  int n, nsaved = 0;
  ty_tensor **saved = graph ? ty_skeleton_saved(ty_skeleton_at(L, 4), &nsaved) : NULL, **t = ty_tensors_at(L, 3, nsaved, &n);
  for (int i = 0; i < nsaved; i++) t[n++] = saved[i];
  bool run;
  m->pinned++;
  s->L = L;                                /* finalizers may have run since, in other coroutines */
  ty_status st = ty_program_end(&m->ctx, p, lua_toboolean(L, 2), t, n, graph, &run);
  m->pinned--;
  ty_ctx *ctx = ty_modes_end(L, s, &m->ctx);
  if (st != TY_OK) return ty_raise(L, ctx);
  lua_pushboolean(L, run);
  return 1;
}

/* trust(program, inputs) -> whether run() gives the results */
static int program_trust(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_program *p = ty_program_at(L, 1);
  int n;
  bool run;
  ty_tensor **t = ty_tensors_at(L, 2, 0, &n);
  ty_ctx *ctx = ty_ctx_of(L, s);
  if (ty_program_trust(ctx, p, t, n, &run) != TY_OK) return ty_raise(L, ctx);
  lua_pushboolean(L, run);
  return 1;
}

/* numbers(program) -> the numbers of its recordings, the current one's first */
static int program_numbers(lua_State *L) {
  int n = 0;
  lua_newtable(L);
  for (const ty_recording *r = ty_program_at(L, 1)->r; r; r = r->other) {
    lua_pushinteger(L, r->number);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

static int program_result(lua_State *L) { /* (program, i) -> tensor */
  ty_state *s = ty_state_of(L);
  ty_program *p = recorded_at(L, 1);
  ty_handle *h = ty_new_handle(L, s);
  h->t = ty_program_result(p, (int)luaL_checkinteger(L, 2) - 1);
  return h->t ? 1 : ty_throw(L, "compile: out of memory");
}

static int program_run(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_program_run(ctx, recorded_at(L, 1)), 0);
}

static int program_made(lua_State *L) {   /* (tensor): whether the call being recorded or compared has made it */
  const ty_ctx *ctx = ty_context(L);
  lua_pushboolean(L, ty_program_made(ctx, ty_check_any(L, 1, "compile", "argument 1")));
  return 1;
}

static int program_follow(lua_State *L) {
  ty_program_follow(ty_context(L), ty_program_at(L, 1));
  return 0;
}

static int program_ready(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_program_ready(ctx, recorded_at(L, 1)), 0);
}

static int program_capture(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_program_capture(ctx, recorded_at(L, 1)), 0);
}

static int program_ran(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_program_ran(ctx, recorded_at(L, 1)), 0);
}

static int program_rates(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_program_write_rates(ctx, recorded_at(L, 1)), 0);
}

static int program_why(lua_State *L) {   /* -> why it refused the call, or why a call differed last; nil: neither */
  const ty_program *p = ty_program_at(L, 1);
  if (!p->why[0]) return 0;
  lua_pushstring(L, p->why);
  return 1;
}

static int program_refused(lua_State *L) { lua_pushboolean(L, ty_program_at(L, 1)->refused); return 1; }
static int program_recorded(lua_State *L) { lua_pushboolean(L, ty_program_recorded(ty_program_at(L, 1))); return 1; }
static int program_on_gpu(lua_State *L) {    /* -> the GPU's number, or false */
  const ty_recording *r = recorded_at(L, 1)->r;
  if (r->gpu) lua_pushinteger(L, r->home);
  else lua_pushboolean(L, false);
  return 1;
}
static int program_at_rest(lua_State *L) { lua_pushboolean(L, ty_program_at(L, 1)->mode == TY_IDLE); return 1; }
/* Whether a tensor is in the program's memory, which the next run writes to. */
static int program_owns(lua_State *L) {
  lua_pushboolean(L, ty_check(L, 2, "compile", "a result")->storage->program == ty_program_at(L, 1));
  return 1;
}
/* Whether, since this was last asked, its memory has moved or a number of a step has changed. */
static int program_stale(lua_State *L) {
  ty_recording *r = recorded_at(L, 1)->r;
  lua_pushboolean(L, r->stale);
  r->stale = false;
  return 1;
}
/* -> whether a program is recorded or compared; whether its function won't be asked again (guard = "inputs") */
static int program_active(lua_State *L) {
  const ty_program *p = ty_context(L)->program;
  lua_pushboolean(L, p != NULL);
  lua_pushboolean(L, p && p->trusting);
  return 2;
}

/* whose memory result i is in: "own": the program's; "input": an argument's; "constant": of numbers that the function made; "other" */
static int program_result_kind(lua_State *L) {
  const ty_recording *r = recorded_at(L, 1)->r;
  const int i = (int)luaL_checkinteger(L, 2) - 1;
  const store *st = i >= 0 && i < r->nresult ? &r->store[r->value[r->result[i]].store] : NULL;
  lua_pushstring(L, st && st->internal ? "own" : st && st->input ? "input" : st && st->constant ? "constant" : "other");
  return 1;
}

/* (program, v): whether value v is of numbers that the function made itself */
static int program_constant(lua_State *L) {
  const ty_recording *r = recorded_at(L, 1)->r;
  const int v = (int)luaL_checkinteger(L, 2) - 1;
  lua_pushboolean(L, v >= 0 && v < r->nvalue && r->store[r->value[v].store].constant);
  return 1;
}

/* (tensor) -> a string that is equal for tensors of one dtype, device, shape and strides; nil: it needs a gradient */
static int program_signature(lua_State *L) {
  const ty_tensor *t = ty_check(L, 1, "compile", "an argument");
  if (ty_needs_grad(t)) return 0;
  struct { int64_t head, at[2 * TY_MAXDIM]; } k = {
    (int64_t)t->dtype | (int64_t)t->ndim << 8 | (int64_t)(1 + ty_device_of(t)->gpu) << 16, {0}};
  memcpy(k.at, t->shape, sizeof(int64_t) * t->ndim);
  memcpy(k.at + t->ndim, t->stride, sizeof(int64_t) * t->ndim);
  lua_pushlstring(L, (const char *)&k, sizeof(int64_t) * (size_t)(1 + 2 * t->ndim));
  return 1;
}

static int program_overlap(lua_State *L) { /* whether two tensors may have elements in common */
  const ty_tensor *t[2] = {ty_check(L, 1, "compile", "an argument"), ty_check(L, 2, "compile", "an argument")};
  const char *from[2], *to[2];
  for (int k = 0; k < 2; k++) {
    from[k] = to[k] = ty_data(t[k]);
    for (int i = 0; i < t[k]->ndim; i++) {
      if (t[k]->shape[i] == 0) { lua_pushboolean(L, false); return 1; }
      to[k] += (t[k]->shape[i] - 1) * t[k]->stride[i] * ty_itemsize(t[k]);
    }
    to[k] += ty_itemsize(t[k]);
  }
  lua_pushboolean(L, ty_device_of(t[0]) == ty_device_of(t[1]) && from[0] < to[1] && from[1] < to[0]);
  return 1;
}

/* hooked(backward): something that recordings do not know of has changed (program.h): hooks of backward passes, or of other kinds */
static int program_hooked(lua_State *L) {
  if (lua_toboolean(L, 1)) ty_hooks_registered++;
  else ty_calls_changed++;
  return 0;
}

/* (tensor): whether its memory can be written to without a new version: by an FFI pointer, or by a foreign owner */
static int program_exposed(lua_State *L) {
  lua_pushboolean(L, ty_check(L, 1, "compile", "argument 1")->storage->exposed);
  return 1;
}

static int program_rate(lua_State *L) {
  ty_program_set_rate(recorded_at(L, 1), (int)luaL_checkinteger(L, 2) - 1, luaL_checknumber(L, 3));
  return 0;
}

static int program_same(lua_State *L) {   /* whether both are the same elements of the same memory */
  const ty_tensor *a = ty_check(L, 1, "compile", "argument 1"), *b = ty_check(L, 2, "compile", "argument 2");
  lua_pushboolean(L, a->storage == b->storage && ty_same_geometry(a, b));
  return 1;
}

static int program_input_holders(lua_State *L) {   /* (program, tensor) -> how many others than the program hold an input's memory */
  lua_pushinteger(L, ty_program_input_holders(ty_program_at(L, 1), ty_check(L, 2, "compile", "argument 2")));
  return 1;
}

/* A tensor's storage id, version and geometry at one time, without a reference. */
typedef struct { uint64_t id; uint32_t version; ty_tensor like; } mark;
static uint32_t version_with_pending(const ty_tensor *t) { return ty_version(t) + t->storage->pending; }

static int program_mark(lua_State *L) {   /* (tensor, mark to write over or nil) -> mark */
  ty_check(L, 1, "compile", "argument 1");
  if (lua_isnoneornil(L, 2)) {
    void **box = ty_new_box(L, ty_free);
    if (!(*box = ty_malloc(sizeof(mark)))) return ty_throw(L, "compile: out of memory");
  } else lua_settop(L, 2);
  mark *m = ty_box_at(L, -1, ty_free, "a mark");
  const ty_tensor *t = ty_check(L, 1, "compile", "argument 1");          /* a finalizer may have freed it */
  *m = (mark){.id = t->storage->id, .version = version_with_pending(t), .like = *t};
  return 1;
}

static int program_marked(lua_State *L) { /* (mark, tensor): whether it is the marked one, unchanged */
  const mark *m = ty_box_at(L, 1, ty_free, "a mark");
  const ty_tensor *t = ty_check(L, 2, "compile", "argument 2");
  lua_pushboolean(L, m->id == t->storage->id && m->version == version_with_pending(t) && !t->storage->exposed &&
    ty_same_geometry(&m->like, t));
  return 1;
}

static int64_t last_of(const ty_tensor *t) {
  int64_t at = t->offset;
  for (int d = 0; d < t->ndim; d++) at += (t->shape[d] - 1) * t->stride[d];
  return at;
}
/* (x, y, z) -> the view of z that x is of y; nil where x isn't within y, or z isn't laid out as y */
static int program_seen_in(lua_State *L) {
  ty_handle *h = ty_new_handle(L, ty_state_of(L));           /* first: finalizers may free tensors */
  const ty_tensor *x = ty_check(L, 1, "compile", "argument 1"), *y = ty_check(L, 2, "compile", "argument 2"),
    *z = ty_check(L, 3, "compile", "argument 3");
  if (x->dtype != z->dtype || !ty_same_layout(y, z) || x->requires_grad || x->node || x->offset < y->offset || last_of(x) > last_of(y))
    return 0;
  if (!(h->t = ty_alias_as(z, x, z->offset + x->offset - y->offset))) return ty_throw(L, "compile: out of memory");
  return 1;
}

static int program_steps(lua_State *L) {  /* (program, number of a recording or nil) -> list of ops' names */
  const ty_recording *r = recording_at(L, 2);
  lua_newtable(L);
  for (int i = 0; i < r->nstep; i++) {
    lua_pushstring(L, r->step[i].call.op->name);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* The tensors in memory that a group's steps read and write. */
static void count_tensors(const ty_recording *r, const group *g, int *reads, int *writes) {
  *reads = *writes = 0;
  for (int i = 0; i < g->nstep; i++) {
    const step *k = &r->step[g->step[i]];
    for (int j = 0; j < k->call.nin; j++) *reads += k->vin[j] >= 0 && !r->store[r->value[k->vin[j]].store].unwritten;
    for (int j = 0; j < TY_MAXOUT; j++) *writes += k->vout[j] >= 0 && !r->store[r->value[k->vout[j]].store].unwritten;
  }
}

/* Kernels in the order of the run: {ops (names, in order), fused, of fused ones also reads, writes (tensors) and, where
   they go over one shape, elements, why (there is no kernel, or no larger one)} */
static int program_kernels(lua_State *L) {
  const ty_recording *r = recording_at(L, 2);
  lua_createtable(L, r->ngroup, 0);
  for (int i = 0; i < r->ngroup; i++) {
    const group *g = &r->group[i];
    lua_newtable(L);
    lua_createtable(L, g->nstep, 0);
    for (int k = 0; k < g->nstep; k++) {
      lua_pushstring(L, r->step[g->step[k]].call.op->name);
      lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, "ops");
    lua_pushboolean(L, g->fused != NULL || g->joint);
    lua_setfield(L, -2, "fused");
    if (g->joint) {
      int reads, writes;
      count_tensors(r, g, &reads, &writes);
      lua_pushinteger(L, writes);
      lua_setfield(L, -2, "writes");
      lua_pushinteger(L, reads);
      lua_setfield(L, -2, "reads");
    }
    if (g->fused) {
      int writes = 0;
      for (int k = 0; k < g->fused->ntensor; k++) writes += g->fused->tensor[k].written;
      lua_pushnumber(L, (lua_Number)g->fused->numel);
      lua_setfield(L, -2, "elements");
      lua_pushinteger(L, writes);
      lua_setfield(L, -2, "writes");
      lua_pushinteger(L, ty_fused_reads(g->fused));
      lua_setfield(L, -2, "reads");
    }
    if (g->why[0]) { lua_pushstring(L, g->why); lua_setfield(L, -2, "why"); }
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* An operand: a number, or {v = value}; values count from 1. */
static void push_operand(lua_State *L, const event *e, int i) {
  const ty_operand *o = &e->in[i];
  if (o->kind == TY_NONE) lua_pushnil(L);
  else if (o->kind == TY_BOOLEAN) lua_pushboolean(L, o->f != 0);
  else if (o->kind != TY_TENSOR) lua_pushnumber(L, o->f);
  else {
    lua_createtable(L, 0, 1);
    lua_pushinteger(L, e->vin[i] + 1);
    lua_setfield(L, -2, "v");
  }
}

static void push_event(lua_State *L, const event *e) {
  const ty_op *op = e->op;
  lua_newtable(L);
  lua_pushstring(L, op->name);
  lua_setfield(L, -2, "op");
  lua_pushboolean(L, e->into >= 0);
  lua_setfield(L, -2, "inplace");
  lua_newtable(L);                       /* results' values */
  for (int j = 0; j < op->nout && e->into < 0; j++) { lua_pushinteger(L, e->vout[j] + 1); lua_rawseti(L, -2, j + 1); }
  lua_setfield(L, -2, "out");
  lua_newtable(L);                       /* arguments by name */
  for (int k = 0; k < op->nparam; k++) {
    const ty_param *q = &op->param[k];
    if (!ty_param_is_operand(q)) ty_push_attr(L, q, &e->at[q->slot]);
    else {
      const ty_span sp = ty_span_of(op, e->span, q->slot);
      if (q->type == TY_P_TENSORS) {
        lua_createtable(L, sp.count, 0);
        for (int i = 0; i < sp.count; i++) { push_operand(L, e, sp.start + i); lua_rawseti(L, -2, i + 1); }
      } else if (sp.count) push_operand(L, e, sp.start);
      else lua_pushnil(L);
    }
    lua_setfield(L, -2, q->name);
  }
  lua_setfield(L, -2, "args");
}

/* events(program) -> op calls in order, each {op, args by name, out (values), inplace}; values of the inputs; values of
   the results; or nil, why */
static int program_events(lua_State *L) {
  const ty_recording *r = recorded_at(L, 1)->r;
  lua_newtable(L);
  for (int i = 0, n = 0; i < r->nevent; i++) {
    const event *e = &r->event[i];
    if (e->kind == EVENT_DETACH || e->kind == EVENT_LEAF || e->failed) continue;
    if (e->kind != EVENT_APPLY) { lua_pushnil(L); lua_pushstring(L, "a backward pass is part of it"); return 2; }
    push_event(L, e);
    lua_rawseti(L, -2, ++n);
  }
  lua_newtable(L);
  for (int i = 0; i < r->ninput; i++) { lua_pushinteger(L, r->input[i] + 1); lua_rawseti(L, -2, i + 1); }
  lua_newtable(L);
  for (int i = 0; i < r->nresult; i++) { lua_pushinteger(L, r->result[i] + 1); lua_rawseti(L, -2, i + 1); }
  return 3;
}

static int program_value(lua_State *L) { /* (program, value) -> tensor, of a value from outside; nil: a step makes it */
  ty_state *s = ty_state_of(L);
  const ty_recording *r = recorded_at(L, 1)->r;
  const int v = (int)luaL_checkinteger(L, 2) - 1;
  if (v < 0 || v >= r->nvalue || r->store[r->value[v].store].internal) return 0;
  ty_handle *h = ty_new_handle(L, s);
  h->t = ty_alias(r->value[v].t);
  return h->t ? 1 : ty_throw(L, "compile: out of memory");
}

/* call: the method that was called; the text then also names the library's function that called it, if any. NULL: the text is `what`. */
static void settle(lua_State *L, const char *what, const char *call, int read) {
  ty_ctx *ctx = ty_context(L);
  if (ctx->program && !ctx->program->refused) {             /* with the user's line */
    const ty_tensor *t = read ? ty_test(L, read) : NULL;
    if (t && ty_program_may_read(ctx->program, t)) return;
    char text[200], said[80];
    const char *by = NULL;
    ty_push_call(L, &by);
    const char *place = lua_tostring(L, -1);
    const size_t n = strlen(place);
    const bool within = call && by && strcmp(by, call);
    if (call) snprintf(said, sizeof said, "%.30s%s%s() is called", within ? by : "", within ? ": " : "", call);
    if (n > 2) snprintf(text, sizeof text, "%s (%.*s)", call ? said : what, (int)n - 2, place);
    else snprintf(text, sizeof text, "%s", call ? said : what);
    lua_pop(L, 1);
    if (ty_program_settle(ctx, text) != TY_OK) ty_raise(L, ctx);
  }
  if (!ctx->program && ctx->account->active && ty_programs_interrupt(ctx) != TY_OK) ty_raise(L, ctx);
}
void ty_settle(lua_State *L, const char *what) { settle(L, what, NULL, 0); }
void ty_settle_call(lua_State *L, const char *name) { settle(L, NULL, name, 0); }
void ty_settle_read(lua_State *L, int index, const char *what, const char *call) { settle(L, what, call, index); }

/* whether a record is being made */
static int program_records(lua_State *L) {
  const ty_program *p = ty_program_at(L, 1);
  lua_pushboolean(L, p->mode == TY_RECORD && !p->refused);
  return 1;
}

static int program_needs_graph(lua_State *L) {   /* (tensor): whether a backward pass from it is still to come */
  lua_pushboolean(L, ty_needs_graph(ty_check(L, 1, "compile", "a result")));
  return 1;
}

/* settle(why): ends what compiled functions record or compare here */
static int program_settle(lua_State *L) {
  ty_settle(L, luaL_checkstring(L, 1));
  return 0;
}

static int program_broken(lua_State *L) { /* whether what is done now will be done again */
  lua_pushboolean(L, ty_program_is_broken(ty_context(L)));
  return 1;
}

void ty_open_program(lua_State *L) {
  static const struct { const char *name; lua_CFunction f; } all[] = {{"new", program_new}, {"begin", program_begin},
    {"aliased", program_aliased}, {"finish", program_end}, {"ready", program_ready}, {"run", program_run},
    {"rates", program_rates}, {"why", program_why}, {"refused", program_refused}, {"recorded", program_recorded},
    {"stale", program_stale}, {"on_gpu", program_on_gpu}, {"owns", program_owns}, {"active", program_active},
    {"steps", program_steps}, {"kernels", program_kernels}, {"events", program_events}, {"value", program_value},
    {"result_kind", program_result_kind}, {"constant", program_constant}, {"exposed", program_exposed},
    {"signature", program_signature}, {"overlap", program_overlap},
    {"at_rest", program_at_rest}, {"hooked", program_hooked}, {"capture", program_capture}, {"ran", program_ran},
    {"same", program_same}, {"input_holders", program_input_holders},
    {"mark", program_mark}, {"marked", program_marked}, {"seen_in", program_seen_in}, {"rate", program_rate},
    {"trust", program_trust},
    {"follow", program_follow}, {"made", program_made},
    {"numbers", program_numbers}, {"result", program_result}, {"settle", program_settle},
    {"broken", program_broken}, {"records", program_records}, {"needs_graph", program_needs_graph}};
  lua_newtable(L);
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++) ty_add(L, all[i].name, all[i].f);
  ty_open_skeleton(L);
  lua_setfield(L, -2, "program");
}
