/* The tape's Lua side: gradient rules, backward, contexts of autograd.Function (hooks: hooks.c).
 *
 * Idea: a rule is a Lua function whose parameters' names say what it needs: "g" the gradient, an operand or attribute by
 * its name, "out" a result, "x_shape" a shape. The tape saves exactly what the rules name. Rules run in the calling
 * coroutine, in a scope of their own, so that their temporaries are released at once. Invariant: errors in rules come back
 * as a status. */
#include <stdio.h>
#include <pthread.h>
#include <string.h>
#include "program.h"
#include "tape.h"

/* ---- registration ---- */

typedef enum { SRC_G, SRC_IN, SRC_OUT, SRC_ATTR, SRC_SHAPE, SRC_SHAPES, SRC_DTYPE, SRC_DEVICE, SRC_NEEDED, SRC_ITEM } src_kind;
typedef struct { uint8_t kind, index; } src;
typedef struct {
  uint32_t slots;            /* operands whose gradients the rule gives, as bits of slots, in order */
  /* of a rule for several operands: those that make it run. Each other one also has a rule of its own, for when none of these is needed */
  uint32_t asked;
  int nsrc;
  src s[TY_MAXPARAM];
} rule;
#define MAX_RULES 6          /* of one op */
static rule rules[TY_NOP][MAX_RULES];     /* the same for every state */
static pthread_mutex_t rules_lock = PTHREAD_MUTEX_INITIALIZER;

static bool numbered(const char *name, const char *base, int *n) {   /* base, base2, base3 ... */
  size_t k = strlen(base);
  if (strncmp(name, base, k)) return false;
  *n = name[k] ? name[k] - '1' : 0;
  return !name[k] || (name[k] >= '2' && name[k] <= '9' && !name[k + 1]);
}

static bool find_source(const ty_op *op, const char *name, src *s) {
  int n;
  size_t len = strlen(name);
  char base[32];
  const ty_param *p = ty_op_param(op, name);
  if (numbered(name, "g", &n)) { *s = (src){SRC_G, (uint8_t)n}; return n < op->nout; }
  if (numbered(name, "out", &n)) { *s = (src){SRC_OUT, (uint8_t)n}; return n < op->nout; }
  if (p) { *s = (src){ty_param_is_operand(p) ? SRC_IN : SRC_ATTR, p->slot}; return true; }
  if (!strcmp(name, "item")) { *s = (src){SRC_ITEM, 0}; return true; }
  static const struct { const char *suffix; src_kind kind; } ends[] = {{"_shape", SRC_SHAPE}, {"_shapes", SRC_SHAPES},
    {"_dtype", SRC_DTYPE}, {"_device", SRC_DEVICE}, {"_needed", SRC_NEEDED}};
  for (int i = 0; i < 5; i++) {
    size_t k = strlen(ends[i].suffix);
    if (len <= k || len - k >= sizeof base || strcmp(name + len - k, ends[i].suffix)) continue;
    memcpy(base, name, len - k);
    base[len - k] = 0;
    p = ty_op_param(op, base);
    if (p && ty_param_is_operand(p)) { *s = (src){(uint8_t)ends[i].kind, p->slot}; return true; }
  }
  return false;
}

/* set_rule(op name, index of the rule, list of operand names, list of parameter names, function) */
static int set_rule(lua_State *L) {
  ty_state_of(L);
  ty_op *op = ty_op_find(luaL_checkstring(L, 1));
  int at = (int)luaL_checkinteger(L, 2);
  if (!op) return ty_throw(L, "tycho.grad: there is no op '%s'", lua_tostring(L, 1));
  if (at < 0 || at >= MAX_RULES) return ty_throw(L, "tycho.grad: too many rules for '%s'", op->name);
  luaL_checktype(L, 3, LUA_TTABLE);
  luaL_checktype(L, 4, LUA_TTABLE);
  luaL_checktype(L, 5, LUA_TFUNCTION);
  rule r = {0};
  uint32_t in = 0, out = 0;
  int n = (int)lua_objlen(L, 4);
  if (n > TY_MAXPARAM) return ty_throw(L, "tycho.grad: a rule of '%s' has too many parameters", op->name);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 4, i);
    src *s = &r.s[r.nsrc++];
    if (!find_source(op, lua_tostring(L, -1), s))
      return ty_throw(L, "tycho.grad: a rule of '%s' names '%s', which is neither an operand, a result nor an attribute",
        op->name, lua_tostring(L, -1));
    if (s->kind == SRC_IN) in |= 1u << s->index;
    if (s->kind == SRC_OUT) out |= 1u << s->index;
    lua_pop(L, 1);
  }
  n = (int)lua_objlen(L, 3);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 3, i);
    const ty_param *p = ty_op_param(op, lua_tostring(L, -1));
    if (!p || !ty_param_is_operand(p)) return ty_throw(L, "tycho.grad: '%s' has no operand '%s'", op->name, lua_tostring(L, -1));
    const uint32_t bit = 1u << p->slot;
    bool own = false;
    for (int k = 0; k < at; k++) own = own || rules[op->id][k].slots == bit;
    r.slots |= bit;
    if (!own) r.asked |= bit;
    lua_pop(L, 1);
  }
  pthread_mutex_lock(&rules_lock);
  if (!rules[op->id][at].slots) {          /* set by the first state alone: others may be using it */
    op->diff |= r.slots;
    for (int slot = 0; slot < op->nin; slot++) {
      if (!(r.asked >> slot & 1)) continue;
      op->save_in[slot] = in;
      op->save_out[slot] = (uint8_t)out;
    }
    rules[op->id][at] = r;
  }
  pthread_mutex_unlock(&rules_lock);
  ty_private(L, TY_R_RULES);
  lua_pushvalue(L, 5);
  lua_rawseti(L, -2, op->id * MAX_RULES + at + 1);
  return 0;
}

/* Reads the rules; called before the first tensor of this state requires grad. */
void ty_need_rules(lua_State *L, ty_state *s) {
  if (s->rules) return;
  ty_private(L, TY_R_READ_RULES);
  if (lua_isnil(L, -1)) { lua_pop(L, 1); return; }         /* the core without lua/tycho has none */
  lua_call(L, 0, 0);
  s->rules = true;
}

/* ---- running rules ---- */

static void push_saved(lua_State *L, ty_tape_call *r, int i, bool result) {
  ty_tensor *t;
  ty_handle *h = ty_new_handle(L, r->s);
  if ((result ? ty_saved_out(r->ctx, r->node, i, &t) : ty_saved_in(r->ctx, r->node, i, &t)) != TY_OK) ty_raise(L, r->ctx);
  h->t = t;                                /* also where the leaf's own handle follows: making it may err */
  if (t->requires_grad) { ty_push_shared(L, r->s, t); lua_remove(L, -2); }
}

static void push_source(lua_State *L, ty_tape_call *r, src s, int item) {
  ty_node *n = r->node;
  ty_span sp = n->op->has_list && s.kind != SRC_G && s.kind != SRC_OUT && s.kind != SRC_ATTR ? n->span[s.index] : (ty_span){s.index, 1};
  switch (s.kind) {
    case SRC_G:
      if (!r->gout[s.index]) { lua_pushnil(L); return; }
      ty_new_handle(L, r->s)->t = ty_retain(r->gout[s.index]);
      return;
    case SRC_OUT: push_saved(L, r, s.index, true); return;
    case SRC_ATTR: ty_push_attr(L, ty_attr_param(n->op, s.index), &n->at[s.index]); return;
    case SRC_SHAPE: ty_push_list(L, n->meta[sp.start].shape, n->meta[sp.start].ndim, 0, true); return;
    case SRC_DTYPE: lua_pushstring(L, ty_dtype_names[n->meta[sp.start].dtype]); return;
    case SRC_DEVICE: lua_pushstring(L, ty_devices[n->meta[sp.start].device]->name); return;
    case SRC_NEEDED: lua_pushboolean(L, sp.count && r->needs[sp.start]); return;
    case SRC_ITEM: lua_pushinteger(L, item + 1); return;
    case SRC_SHAPES:
      lua_createtable(L, sp.count, 0);
      for (int i = 0; i < sp.count; i++) {
        ty_push_list(L, n->meta[sp.start + i].shape, n->meta[sp.start + i].ndim, 0, true);
        lua_rawseti(L, -2, i + 1);
      }
      return;
    default: break;
  }
  if (ty_operand_param(n->op, s.index)->type == TY_P_TENSORS) {           /* a saved list */
    lua_createtable(L, sp.count, 0);
    for (int i = 0; i < sp.count; i++) { push_saved(L, r, sp.start + i, false); lua_rawseti(L, -2, i + 1); }
    return;
  }
  ty_operand *o = &n->in[sp.start];
  if (o->kind == TY_TENSOR) push_saved(L, r, sp.start, false);
  else if (o->kind == TY_NONE) lua_pushnil(L);
  else lua_pushnumber(L, o->f);                      /* a boolean counts as 0 or 1 */
}

/* ---- contexts: results of a pass with create_graph have histories with contexts of autograd.Functions, which their handles hold ---- */

/* Adds what the handle holds to the keys of the table on top. */
static void note_contexts(lua_State *L, int index) {
  const ty_handle *h = ty_is_handle(L, index);
  if (!h || !h->anchored) return;
  lua_getfenv(L, index);
  lua_pushboolean(L, true);
  lua_rawset(L, -3);
}

void ty_note_contexts(lua_State *L, int index) {
  ty_private(L, TY_R_PASS);
  if (lua_istable(L, -1)) note_contexts(L, index);
  lua_pop(L, 1);
}

/* Makes the table on top, or nil, the running pass's; leaves that of the pass around it instead. */
static void swap_contexts(lua_State *L) {
  ty_private(L, TY_R_PASS);
  lua_insert(L, -2);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_insert(L, -2);
  lua_rawseti(L, -2, TY_R_PASS);
  lua_pop(L, 1);
}

/* ---- rules and Functions ---- */

/* Takes the value on top as operand i's gradient, and pops it. */
static void take_gradient(lua_State *L, ty_tape_call *r, int i, const char *who) {
  if (!lua_isnil(L, -1) && r->needs[i]) {
    char what[40];
    snprintf(what, sizeof what, "the gradient of operand %d", i + 1);
    ty_tensor *g = ty_check(L, -1, who, what);
    const ty_backend *there = ty_devices[r->node->meta[i].device];
    if (!r->node->op && ty_device_of(g) != there)
      ty_throw(L, "%s: %s is on %s; it must be on %s as the operand", who, what, ty_device_of(g)->name, there->name);
    r->gin[i] = ty_retain(g);
  }
  lua_pop(L, 1);
}

static bool asked_for(const rule *u, const bool *needs, int n) {
  bool any = false;
  for (int i = 0; i < n; i++) any = any || (needs[i] && u->asked >> i & 1);
  return any;
}

/* Whether a rule for several operands runs and gives what rule u gives. */
static bool covered(const rule *all, const rule *u, const bool *needs, int n) {
  for (int k = 0; k < MAX_RULES && all[k].slots; k++)
    if (&all[k] != u && (all[k].slots & u->slots) == u->slots && asked_for(&all[k], needs, n)) return true;
  return false;
}

static int run_rules(lua_State *L) {     /* upvalues in place; argument: lightuserdata ty_tape_call */
  ty_tape_call *r = lua_touserdata(L, 1);
  ty_node *n = r->node;
  luaL_checkstack(L, 40, "gradient rules");
  for (int k = 0; k < MAX_RULES && rules[n->op->id][k].slots; k++) {
    const rule *u = &rules[n->op->id][k];
    if (covered(rules[n->op->id], u, r->needs, n->nin)) continue;
    for (int slot = 0; slot < n->op->nin; slot++) {
      if (!(u->slots >> slot & 1)) continue;
      ty_span sp = ty_span_of(n->op, n->span, slot);
      const bool several = (u->slots & (u->slots - 1)) != 0, any = several && asked_for(u, r->needs, n->nin);
      const int shared = lua_gettop(L) + 1;          /* a list's shapes, one table for all its items */
      for (int i = 0; i < u->nsrc && lua_gettop(L) < shared; i++)
        if (u->s[i].kind == SRC_SHAPES) push_source(L, r, u->s[i], 0);
      for (int item = 0; item < sp.count; item++) {
        if (several ? !any : !r->needs[sp.start + item]) continue;
        ty_private(L, TY_R_RULES);
        lua_rawgeti(L, -1, n->op->id * MAX_RULES + k + 1);
        lua_remove(L, -2);
        for (int i = 0; i < u->nsrc; i++) {
          if (u->s[i].kind == SRC_SHAPES) lua_pushvalue(L, shared);
          else push_source(L, r, u->s[i], item);
        }
        int results = several ? __builtin_popcount(u->slots) : 1;
        lua_call(L, u->nsrc, results);
        if (!several) take_gradient(L, r, sp.start + item, n->op->name);
        else {
          for (int q = n->op->nin - 1; q >= 0; q--)
            if (u->slots >> q & 1) take_gradient(L, r, q, n->op->name);
        }
      }
      lua_settop(L, shared - 1);
      if (several) break;                /* one call gave them all */
    }
  }
  return 0;
}

static int run_function(lua_State *L) {  /* an autograd.Function: hands over its context and the gradients */
  ty_tape_call *r = lua_touserdata(L, 1);
  ty_node *n = r->node;
  luaL_checkstack(L, n->nout + (n->internal ? 0 : n->nin) + 8, "autograd.Function");
  ty_private(L, TY_R_FUNCTION);
  ty_private(L, TY_R_ANCHORS);
  ty_get_keyed(L, n->key);
  lua_remove(L, -2);
  if (lua_isnil(L, -1)) return ty_throw(L, "Function: its context has been collected");
  lua_pushliteral(L, "_unmade");
  lua_rawget(L, -2);
  const bool unmade = lua_toboolean(L, -1);              /* set_materialize_grads(false) */
  lua_pop(L, 1);
  for (int j = 0; j < n->nout; j++) {
    if (r->gout[j]) { ty_new_handle(L, r->s)->t = ty_retain(r->gout[j]); continue; }
    if (unmade || n->meta[n->nin + j].dtype == TY_NDTYPE) { lua_pushnil(L); continue; }
    const ty_meta *m = &n->meta[n->nin + j];
    ty_attr at[3] = {{.set = true, .n = m->ndim}, {.set = true, .i = m->dtype}, {.set = true, .i = m->device}};
    memcpy(at[TY_AT_zeros_size].v, m->shape, sizeof(int64_t) * m->ndim);
    ty_handle *h = ty_new_handle(L, r->s);
    if (ty_apply(r->ctx, &ty_ops[TY_OP_zeros], NULL, 0, NULL, at, NULL, &h->t) != TY_OK) return ty_raise(L, r->ctx);
  }
  const int base = lua_gettop(L) - n->nout - 2;
  if (n->internal) {                       /* its operands, by position, during the call */
    lua_pushliteral(L, "_saved");
    lua_createtable(L, n->nin, 0);
    for (int i = 0; i < n->nin; i++)
      if (n->in[i].kind == TY_TENSOR) { push_saved(L, r, i, false); lua_rawseti(L, -2, i + 1); }
    lua_rawset(L, base + 2);
  }
  lua_call(L, n->nout + 1, LUA_MULTRET);
  if (n->internal) {                       /* in one list: the stack may not hold so many */
    for (int i = 0; i < n->nin; i++) {
      lua_rawgeti(L, base + 1, i + 1);
      ty_note_contexts(L, lua_gettop(L));
      take_gradient(L, r, i, "checkpoint");
    }
    lua_settop(L, base);
  } else {
    for (int k = lua_gettop(L); k > base + n->nin; k--)
      if (!lua_isnil(L, k))
        return ty_throw(L, "Function: backward returned %d gradients, forward got %d arguments", lua_gettop(L) - base, n->nin);
    lua_settop(L, base + n->nin);
    for (int i = n->nin - 1; i >= 0; i--) {
      if (n->in[i].kind != TY_TENSOR && !lua_isnil(L, -1))
        return ty_throw(L, "Function: backward returned a gradient for argument %d, which was no tensor: return nil there", i + 1);
      ty_note_contexts(L, lua_gettop(L));
      take_gradient(L, r, i, "Function");
    }
  }
  const bool retained = r->ctx->retains;
  if ((retained && !n->internal) || ty_program_is_broken(r->ctx)) return 0;
  ty_private(L, TY_R_ANCHORS);             /* what was saved is released, as other nodes' is */
  ty_get_keyed(L, n->key);
  if (!lua_istable(L, -1)) return 0;
  static const char *const held[] = {"_saved", "_operands", "_handles"};
  for (int k = 0; k < (retained ? 1 : 3); k++) {
    lua_pushstring(L, held[k]);
    lua_pushnil(L);
    lua_rawset(L, -3);
  }
  return 0;
}

static void push_protected(lua_State *L) {
  lua_pushlightuserdata(L, (void *)&rules);
  lua_rawget(L, LUA_REGISTRYINDEX);
}

ty_status ty_protected(ty_tape_call *r, int which) {
  ty_state *s = r->ctx->host_data;
  lua_State *L = s->L;
  int top = lua_gettop(L);
  ty_status st = TY_OK;
  r->s = s;
  if (!lua_checkstack(L, 8)) return ty_error(r->ctx, "backward: Lua's stack is full");
  ty_modes *m = (ty_modes *)r->ctx;        /* ty_backward was given the coroutine's own modes */
  ty_scope inner = {.outer = m->scope, .L = L, .internal = true}, *outer = m->scope;
  if (which == TY_RUN_RULES || (which == TY_RUN_FUNCTION && r->node->internal && !r->ctx->grad_enabled)) m->scope = &inner;
  else while (m->scope && m->scope->internal) m->scope = m->scope->outer;    /* users' hooks and Functions may keep what they make */
  const ty_scope *begun = m->scope;
  push_protected(L);
  lua_rawgeti(L, -1, which);
  lua_pushlightuserdata(L, r);
  if (lua_pcall(L, 1, 0, 0) != 0) {
    const char *msg = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;       /* of a number it would allocate */
    const size_t n = msg ? strlen(msg) : 0;
    st = ty_error(r->ctx, "%s", msg ? msg : "an error that is no string");
    push_protected(L);
    if (msg && n == lua_objlen(L, -2) && n < TY_ERRLEN) lua_pushnil(L);                  /* st says it all */
    else lua_pushvalue(L, -2);
    lua_rawseti(L, -2, TY_RUN_THROWN);
  }
  s->L = L;
  while (m->scope && m->scope != begun) { ty_scope_end(m->scope); m->scope = m->scope->outer; }
  ty_scope_end(&inner);
  m->scope = outer;
  lua_settop(L, top);
  return st;
}

ty_status ty_lua_rule(ty_ctx *ctx, ty_node *node, ty_tensor **gout, const bool *needs, ty_tensor **gin) {
  ty_tape_call r = {.ctx = ctx, .node = node, .gout = gout, .gin = gin, .needs = needs};
  TY_TRY(ty_protected(&r, node->op ? TY_RUN_RULES : TY_RUN_FUNCTION));
  return ((const ty_modes *)ctx)->watchful ? ty_protected(&r, TY_RUN_WATCH) : TY_OK;
}

/* ---- backward ---- */

/* The list of tensors at index, into t, which has room for `room`. */
static int list_of(lua_State *L, int index, ty_tensor **t, size_t room, const char *what, bool optional) {
  luaL_checktype(L, index, LUA_TTABLE);
  const int n = (int)lua_objlen(L, index);
  if ((size_t)n > room) ty_throw(L, "grad: the list with %s %d grows while it is read", what, n);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, index, i);
    char text[48];
    snprintf(text, sizeof text, "%s %d", what, i);
    t[i - 1] = optional && !lua_toboolean(L, -1) ? NULL : ty_check(L, -1, "grad", text);
    lua_pop(L, 1);
  }
  return n;
}

/* backward(outputs, grads (false: none), inputs or nil, retain, create, accumulate) -> list of gradients, false where
   an input was not used */
static int backward(lua_State *L) {
  ty_state *s = ty_state_of(L);
  lua_settop(L, 6);
  bool given = !lua_isnil(L, 3);
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TTABLE);
  if (given) luaL_checktype(L, 3, LUA_TTABLE);
  if (lua_toboolean(L, 6)) ty_settle(L, "backward is given inputs");
  push_protected(L);                     /* a compiled step's backward may have left an error there */
  lua_pushnil(L);
  lua_rawseti(L, -2, TY_RUN_THROWN);
  lua_pop(L, 1);
  const size_t outs = TY_MAX(lua_objlen(L, 1), lua_objlen(L, 2)), ins = given ? lua_objlen(L, 3) : 0;
  ty_tensor **roots = lua_newuserdata(L, sizeof(ty_tensor *) * (2 * outs + 2 * ins + 1)), **grads = roots + outs,
    **inputs = grads + outs, **result = inputs + ins;
  int nroot, ninput = (int)ins;
  ty_backward_opts o = {lua_toboolean(L, 4), lua_toboolean(L, 5), lua_toboolean(L, 6), false};
  lua_createtable(L, ninput, 0);         /* allocations come first: finalizers may free tensors */
  int list = lua_gettop(L);
  if (o.create_graph) lua_newtable(L);
  else lua_pushnil(L);
  const int contexts = lua_gettop(L);
  for (int k = 1; k <= 2 && o.create_graph; k++)
    for (int i = 1; i <= (int)lua_objlen(L, k); i++) {
      lua_rawgeti(L, k, i);
      lua_pushvalue(L, contexts);
      note_contexts(L, lua_gettop(L) - 1);
      lua_pop(L, 2);
    }
  for (int i = 0; i < ninput; i++) { ty_new_handle(L, s); lua_rawseti(L, list, i + 1); result[i] = NULL; }
  ty_modes *m = ty_own_modes(L, s);      /* rules run under this coroutine's modes */
  nroot = list_of(L, 1, roots, outs, "output", false);
  for (int i = 0; i < nroot; i++) grads[i] = NULL;
  if (list_of(L, 2, grads, outs, "gradient", true) > nroot) return ty_throw(L, "grad: more gradients than outputs");
  if (given) list_of(L, 3, inputs, ins, "input", false);
  lua_pushvalue(L, contexts);
  swap_contexts(L);
  m->pinned++;
  s->L = L;                              /* finalizers may have run since, in other coroutines */
  const ty_backward_call b = {.root = roots, .grad = grads, .nroot = nroot, .input = given ? inputs : NULL, .ninput = ninput,
    .result = result, .o = o};
  ty_status st = ty_backward(&m->ctx, &b);
  m->pinned--;
  s->L = L;
  swap_contexts(L);
  ty_ctx *ctx = ty_modes_end(L, s, &m->ctx);
  if (st != TY_OK) {
    push_protected(L);
    lua_rawgeti(L, -1, TY_RUN_THROWN);
    lua_pushnil(L);
    lua_rawseti(L, -3, TY_RUN_THROWN);
    if (!lua_isnil(L, -1)) return lua_error(L);
    return ty_raise(L, ctx);
  }
  lua_pushnil(L);
  const bool any = o.create_graph && lua_next(L, contexts) != 0;
  for (int i = 0; i < ninput; i++) {
    lua_rawgeti(L, list, i + 1);
    const int at = lua_gettop(L);
    ty_handle *h = lua_touserdata(L, at);
    h->t = result[i];
    if (any && h->t) {
      lua_pushvalue(L, contexts);
      lua_setfenv(L, at);
      h->anchored = true;
    }
    lua_settop(L, at - 1);
    if (!result[i]) { lua_pushboolean(L, false); lua_rawseti(L, list, i + 1); }
  }
  lua_pushvalue(L, list);
  return 1;
}

/* reached(outputs, leaves) -> for each leaf, whether backward from the outputs would reach it; whether it would reach other leaves */
static int reached(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TTABLE);
  const size_t outs = lua_objlen(L, 1), ins = lua_objlen(L, 2);
  lua_createtable(L, (int)ins, 0);
  ty_tensor **roots = lua_newuserdata(L, (sizeof(ty_tensor *) + 1) * (outs + ins + 1)), **leaves = roots + outs;
  bool *is = (bool *)(leaves + ins);
  const int nroot = list_of(L, 1, roots, outs, "output", false), n = list_of(L, 2, leaves, ins, "leaf", false);
  bool others;
  if (ty_reached(ctx, roots, nroot, leaves, n, is, &others) != TY_OK) return ty_raise(L, ctx);
  for (int i = 0; i < n; i++) {
    lua_pushboolean(L, is[i]);
    lua_rawseti(L, 3, i + 1);
  }
  lua_pushvalue(L, 3);
  lua_pushboolean(L, others);
  return 2;
}

/* kept() -> a mark of this moment; kept(outputs, mark) -> the bytes allocated since then that the outputs' graphs keep for
   backward. Called within a backward pass, where a compiled function's call has no placeholders (src/core/program.h). */
static int kept(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  if (lua_isnoneornil(L, 1)) { lua_pushnumber(L, (lua_Number)ty_next_storage()); return 1; }
  luaL_checktype(L, 1, LUA_TTABLE);
  const size_t outs = lua_objlen(L, 1);
  ty_tensor **roots = lua_newuserdata(L, sizeof(ty_tensor *) * (outs + 1));
  long long bytes = 0;
  const int n = list_of(L, 1, roots, outs, "output", false);
  if (ty_kept(ctx, roots, n, (uint64_t)luaL_checknumber(L, 2), &bytes) != TY_OK) return ty_raise(L, ctx);
  lua_pushnumber(L, (lua_Number)bytes);
  return 1;
}

/* leaf_of(x) -> a leaf that shares x's memory, for a pass within the running one: a program need not record it */
static int leaf_of(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_handle *h = ty_new_handle(L, s);
  ty_tensor *x = ty_check(L, 1, "leaf_of", "argument 1");
  if (!(h->t = ty_alias(x))) return ty_throw(L, "backward: out of memory");
  h->t->requires_grad = true;
  return 1;
}

/* mark_as(gradient, other): marks the gradient as scaled by a GradScaler if other is so */
static int mark_as(lua_State *L) {
  ty_check(L, 1, "mark_as", "argument 1")->scaled = ty_check(L, 2, "mark_as", "argument 2")->scaled;
  return 0;
}

/* ---- autograd.Function ---- */

static int is_view(lua_State *L) {
  const ty_tensor *t = ty_check_any(L, 1, "Function", "argument 1");
  lua_pushboolean(L, t->base || t->whole);
  return 1;
}

/* hand_on(x) -> an alias of x without history, which can't be changed in place */
static int hand_on(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_handle *h = ty_new_handle(L, s);
  ty_ctx *ctx = ty_ctx_of(L, s);
  if (ty_program_detach(ctx, ty_check(L, 1, "Function", "argument 1"), &h->t) != TY_OK) return ty_raise(L, ctx);
  h->t->handed_on = ty_is_float(h->t->dtype);
  return 1;
}

/* record(context, inputs, outputs, kept): outputs (fresh tensors) get a node that runs the context's backward; kept: see ty_function */
static int record(lua_State *L) {
  ty_state *s = ty_state_of(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checktype(L, 3, LUA_TTABLE);
  const int nin = (int)lua_objlen(L, 2), nout = (int)lua_objlen(L, 3);
  const int kept = lua_isnoneornil(L, 4) ? nin : (int)luaL_checkinteger(L, 4);
  lua_settop(L, 3);
  lua_newtable(L);
  ty_tensor **in = lua_newuserdata(L, sizeof(ty_tensor *) * (size_t)(nin + nout + 1)), **out = in + nin;
  for (int i = 0; i < nin; i++) {
    lua_rawgeti(L, 2, i + 1);
    ty_note_anchor(L, lua_gettop(L), 4);
    lua_pop(L, 1);
  }
  const int anchors = lua_objlen(L, 4) ? 4 : 0;
  lua_getfield(L, 1, "_function");
  lua_getfield(L, -1, "internal");
  const bool internal = lua_toboolean(L, -1);
  const ty_function f = {ty_new_key(L, s, 1), internal, kept};
  bool any = false;                        /* from here to the record nothing allocates in Lua: finalizers may free tensors */
  for (int i = 0; i < nin; i++) { lua_rawgeti(L, 2, i + 1); in[i] = ty_test(L, -1); any = any || ty_needs_grad(in[i]); lua_pop(L, 1); }
  for (int j = 0; j < nout; j++) { lua_rawgeti(L, 3, j + 1); out[j] = ty_test(L, -1); lua_pop(L, 1); }
  ty_ctx *ctx = ty_ctx_of(L, s);
  for (int i = 0; i < nin; i++)
    if (in[i] && in[i]->whole)
      ty_throw(L, "Function: argument %d is mapped by vmap, which an autograd.Function's own backward can't go through", i + 1);
  if (!any || !ctx->grad_enabled) return 0;
  if ((ctx->program ? ty_program_function : ty_record_function)(ctx, f, in, nin, out, nout) != TY_OK) return ty_raise(L, ctx);
  for (int j = 0; j < nout; j++) {
    if (!out[j]) continue;
    lua_rawgeti(L, 3, j + 1);
    int h = lua_gettop(L);
    if (anchors) ty_set_anchor(L, h, anchors);
    lua_pushvalue(L, 1);
    ty_anchor(L, h);
    lua_pop(L, 1);
  }
  return 0;
}

void ty_open_autograd(lua_State *L) {
  ty_add(L, "set_rule", set_rule);
  ty_add(L, "backward", backward);
  ty_add(L, "reached", reached);
  ty_add(L, "kept", kept);
  ty_add(L, "mark_as", mark_as);
  ty_add(L, "leaf_of", leaf_of);
  ty_add(L, "record_function", record);
  ty_add(L, "hand_on", hand_on);
  ty_add(L, "is_view", is_view);
  lua_pushlightuserdata(L, (void *)&rules);
  lua_newtable(L);
  ty_closure(L, run_rules, 0);
  lua_rawseti(L, -2, TY_RUN_RULES);
  ty_closure(L, run_function, 0);
  lua_rawseti(L, -2, TY_RUN_FUNCTION);
  lua_pushvalue(L, -3);
  ty_open_hooks(L, lua_gettop(L) - 1);
  lua_pop(L, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
}
