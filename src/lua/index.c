/* x[k] and x[k] = v.
 *
 * Idea: whole numbers and ranges become a view, dim by dim; masks and index tensors are collected and go to the op index
 * or index_put in one call at the end. Invariant: every intermediate tensor is a handle on the Lua stack, so that errors leak nothing. */
#include <string.h>
#include "binding.h"

typedef struct {
  int view;                  /* stack index of the view so far */
  int64_t dim;               /* next dim of the view; in the tensor itself it is dim + gone */
  int gone;                  /* dims taken away, less those added */
  int nindex;                /* index tensors collected: stack indices, and the dims they index */
  int index[TY_MAXDIM];
  int64_t dims[TY_MAXDIM];
} path;

/* The index is formatted in C: Lua would print 14 digits. */
static int out_of_range(lua_State *L, int64_t i, int dim, const ty_tensor *x) {
  char digits[24];
  snprintf(digits, sizeof digits, "%lld", (long long)i);
  return ty_throw(L, "index: index %s is out of range for dim %d of shape %s", digits, dim, ty_shape_of(x));
}

static int no_such(lua_State *L, int at) {
  return ty_throw(L,
    "index: a tensor is indexed by whole numbers, ranges {first, last, step}, '...', newaxis, masks and int64 tensors, not by a %s",
    ty_type_text(L, at));
}

static int64_t whole(lua_State *L, int at) {
  int64_t v;
  if (lua_type(L, at) != LUA_TNUMBER) no_such(L, at);
  if (!ty_is_whole(lua_tonumber(L, at), &v)) ty_throw(L, "index: %f is not a whole number within 2^53", lua_tonumber(L, at));
  return v;
}

static ty_tensor *current(lua_State *L, const path *p) { return ty_check_any(L, p->view, "index", "the tensor"); }

static void need_dim(lua_State *L, path *p) {
  if (current(L, p)->ndim == 0 && p->view == 1) ty_throw(L, "index: a 0-dim tensor can't be indexed: use item()");
  if (p->dim >= current(L, p)->ndim) {
    const ty_tensor *whole = ty_check_any(L, 1, "index", "the tensor");
    ty_throw(L, "index: more indices than the %d dims of shape %s", whole->ndim, ty_shape_of(whole));
  }
}

/* Pushes the op's result for the tensor at stack index `at`. */
static ty_tensor *made(lua_State *L, ty_state *s, ty_op_id id, int at, const char *what, ty_attr *attr) {
  ty_new_handle(L, s);
  return ty_simple(L, s, id, ty_operand_tensor(ty_check_any(L, at, "index", what)), (ty_operand){0}, attr, NULL);
}

static void view_op(lua_State *L, ty_state *s, path *p, ty_op_id id, ty_attr *at) {
  made(L, s, id, p->view, "the tensor", at);
  p->view = lua_gettop(L);
}

/* Raises unless i is an index of the next dim. */
static void need_element(lua_State *L, path *p, int64_t i) {
  const int64_t size = current(L, p)->shape[p->dim];
  if (i > size || i < -size) out_of_range(L, i, (int)p->dim + p->gone + 1, ty_check_any(L, 1, "index", "the tensor"));
}

static void by_number(lua_State *L, ty_state *s, path *p, int64_t i) {
  ty_attr at[2] = {[TY_AT_select_dim] = {.set = true, .i = p->dim}, [TY_AT_select_index] = {.set = true, .i = i}};
  need_dim(L, p);
  need_element(L, p, i);
  view_op(L, s, p, TY_OP_select, at);
  p->gone++;
}

static void by_range(lua_State *L, ty_state *s, path *p, int at) {
  ty_attr a[4] = {{.set = true, .i = p->dim}, {0}, {0}, {.set = true, .i = 1}};
  int n = (int)lua_objlen(L, at);
  need_dim(L, p);
  if (n > 3) ty_throw(L, "index: a range is {first, last, step}, got %d numbers", n);
  for (int k = n + 1; k <= 3; k++) {
    lua_rawgeti(L, at, k);
    if (!lua_isnil(L, -1)) ty_throw(L, "index: a range is {first, last, step}; this one has nil in the middle");
    lua_pop(L, 1);
  }
  for (int k = 1; k <= n; k++) {
    lua_rawgeti(L, at, k);
    a[k].set = true;
    a[k].i = whole(L, lua_gettop(L));
    lua_pop(L, 1);
  }
  if (n == 1) {                          /* {i} is {i, i}, and must exist */
    need_element(L, p, a[1].i);
    a[2] = a[1];
  }
  if (n) view_op(L, s, p, TY_OP_slice, a);
  p->dim++;
}

/* A new dim of size 1 before the next one. */
static void by_new(lua_State *L, ty_state *s, path *p) {
  const ty_tensor *x = current(L, p);
  if (x->ndim == TY_MAXDIM) ty_throw(L, "index: a new dim would make more than %d dims", TY_MAXDIM);
  ty_attr size = {.set = true, .n = (uint8_t)(x->ndim + 1)};
  for (int d = 0; d <= x->ndim; d++) size.v[d] = d == p->dim ? 1 : x->shape[d - (d > p->dim)];
  view_op(L, s, p, TY_OP_view, &size);
  p->dim++;
  p->gone--;
}

static void collect(lua_State *L, path *p, int at) {
  if (p->nindex == TY_MAXDIM) ty_throw(L, "index: too many index tensors");
  p->index[p->nindex] = at;
  p->dims[p->nindex++] = p->dim++;
}

/* Whether the index is a 0-dim integer tensor. Where a range lies between index tensors it is read, and counts as a plain number. */
static bool is_number(lua_State *L, int at) {
  const ty_handle *h = ty_is_handle(L, at);
  return h && h->t && h->t->ndim == 0 && (h->t->dtype == TY_I64 || h->t->dtype == TY_I32);
}

static void by_tensor(lua_State *L, ty_state *s, path *p, int at) {
  ty_tensor *t = ty_check_any(L, at, "index", "an index");
  if (t->dtype == TY_I32 || t->dtype == TY_U8) {         /* as in PyTorch: int32 are indices, uint8 is a mask */
    ty_attr to[2] = {{.set = true, .i = t->dtype == TY_I32 ? TY_I64 : TY_BOOL}, {.set = true}};
    t = made(L, s, TY_OP_cast, at, "an index", to);
    at = lua_gettop(L);
  }
  if (t->dtype == TY_I64) {
    need_dim(L, p);
    lua_pushvalue(L, at);
    collect(L, p, lua_gettop(L));
    return;
  }
  if (t->dtype != TY_BOOL)
    ty_throw(L, "index: an index tensor must have dtype int64, int32 or bool, got %s%s", ty_dtype_names[t->dtype],
      ty_is_float(t->dtype) ? ": long() makes it int64" : "");
  ty_tensor *x = current(L, p);
  for (int i = 0; i < t->ndim; i++)
    if (p->dim + i >= x->ndim || t->shape[i] != x->shape[p->dim + i])
      ty_throw(L, "index: the mask of shape %s doesn't match shape %s from dim %d on", ty_shape_of(t), ty_shape_of(x),
        (int)p->dim + 1);
  int n = t->ndim;
  if (n == 0) {                            /* all of what is left, or none: along a new dim of size 1 */
    ty_attr one = {.set = true, .n = 1, .v = {1}};
    made(L, s, TY_OP_view, at, "an index", &one);
    at = lua_gettop(L);
    by_new(L, s, p);
    p->dim--;
    n = 1;
    t = ty_check_any(L, at, "index", "an index");
    x = current(L, p);
  }
  if (n > 1 && ty_is_contiguous(t)) {      /* over contiguous dims of x: flattened, so that a position is one number */
    ty_attr size = {.set = true, .n = (uint8_t)(x->ndim - n + 1)}, one = {.set = true, .n = 1, .v = {-1}};
    bool row = true;
    for (int i = p->dim; i + 1 < p->dim + n; i++) row = row && x->stride[i] == x->stride[i + 1] * x->shape[i + 1];
    for (int i = 0, k = 0; i < x->ndim; i++) {
      if (i <= p->dim || i >= p->dim + n) size.v[k++] = x->shape[i];
      else size.v[k - 1] *= x->shape[i];
    }
    if (row && ty_numel(x) > 0) {
      view_op(L, s, p, TY_OP_view, &size);
      made(L, s, TY_OP_view, at, "an index", &one);
      at = lua_gettop(L);
      p->gone += n - 1;
      n = 1;
    }
  }
  made(L, s, TY_OP_nonzero, at, "an index", NULL);
  const int rows = lua_gettop(L);
  for (int i = 0; i < n; i++) {
    ty_attr a[2] = {{.set = true, .i = 1}, {.set = true, .i = i + 1}};
    made(L, s, TY_OP_select, rows, "an index", a);
    collect(L, p, lua_gettop(L));
  }
}

static bool is_word(lua_State *L, int at, const char *word) { return lua_type(L, at) == LUA_TSTRING && !strcmp(lua_tostring(L, at), word); }
static bool is_rest(lua_State *L, int at) { return is_word(L, at, "..."); }
static bool is_new(lua_State *L, int at) { return is_word(L, at, "newaxis"); }
bool ty_is_index(lua_State *L, int at) { return lua_type(L, at) != LUA_TSTRING || is_rest(L, at) || is_new(L, at); }

/* "..." at position i of the n in the list of indices: skips dims, so that the indices after it go to the last dims. */
static void by_rest(lua_State *L, path *p, int i, int n) {
  int64_t rest = current(L, p)->ndim - p->dim;
  for (int k = i + 1; k <= n; k++) {
    lua_rawgeti(L, 2, k);
    if (is_rest(L, lua_gettop(L))) ty_throw(L, "index: '...' can be in a list of indices only once");
    const ty_tensor *t = ty_test(L, -1);
    rest -= t && (t->dtype == TY_BOOL || t->dtype == TY_U8) ? t->ndim : !is_new(L, -1);
    lua_pop(L, 1);
  }
  p->dim += TY_MAX(rest, 0);               /* below 0: too many indices, as need_dim will say */
}

/* Applies the key at stack index 2. True: it names an element; "..." and newaxis ask for a tensor even where every dim got a number. */
static bool walk(lua_State *L, ty_state *s, path *p) {
  memset(p, 0, sizeof *p);
  p->view = 1;
  luaL_checkstack(L, 40, "index");
  int full = current(L, p)->ndim, numbers = 0;
  bool tensor = false;
  if (ty_is_handle(L, 2)) { by_tensor(L, s, p, 2); return false; }
  if (lua_type(L, 2) == LUA_TSTRING) {   /* x[newaxis]: as in braces */
    lua_createtable(L, 1, 0);
    lua_pushvalue(L, 2);
    lua_rawseti(L, -2, 1);
    lua_replace(L, 2);
  }
  if (lua_type(L, 2) != LUA_TTABLE) {
    by_number(L, s, p, whole(L, 2));
    return full == 1;
  }
  int n = 0, first = 65, last = 0;       /* positions of tensors */
  lua_pushnil(L);
  while (lua_next(L, 2)) {               /* the largest index: a hole is an error, not an end */
    int64_t k;
    if (lua_type(L, -2) != LUA_TNUMBER || !ty_is_whole(lua_tonumber(L, -2), &k) || k < 1 || k > 64)
      ty_throw(L, "index: the list of indices has a field that isn't a position");
    n = TY_MAX(n, (int)k);
    if (ty_is_handle(L, -1)) { first = TY_MIN(first, (int)k); last = TY_MAX(last, (int)k); }
    lua_pop(L, 1);
  }
  bool apart = false;                    /* something lies between tensors: a 0-dim one is then a number (is_number) */
  for (int i = first; i < last; i++) {
    lua_rawgeti(L, 2, i);
    apart = apart || lua_type(L, -1) == LUA_TTABLE || lua_type(L, -1) == LUA_TSTRING;
    lua_pop(L, 1);
  }
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 2, i);
    int at = lua_gettop(L);
    if (apart && is_number(L, at)) {
      ty_settle_read(L, at, "an index is read", NULL);
      const ty_tensor *t = ty_check(L, at, "index", "an index");
      ty_push_element(L, t, t->offset);
      by_number(L, s, p, whole(L, lua_gettop(L)));
    } else if (ty_is_handle(L, at)) by_tensor(L, s, p, at);
    else if (lua_type(L, at) == LUA_TTABLE) by_range(L, s, p, at);
    else if (lua_isnil(L, at)) ty_throw(L, "index: nil at position %d of the list of indices", i);
    else if (is_rest(L, at)) { by_rest(L, p, i, n); tensor = true; }
    else if (is_new(L, at)) { by_new(L, s, p); tensor = true; }
    else { by_number(L, s, p, whole(L, at)); numbers++; }
  }
  return n > 0 && numbers == full && !tensor;
}

static ty_op *prepare(lua_State *L, path *p, ty_args *a, bool put, int value) {
  ty_op *op = &ty_ops[put ? TY_OP_index_put : TY_OP_index];
  a->in[a->nin++] = ty_operand_tensor(current(L, p));
  a->span[0] = (ty_span){0, 1};
  if (put) {
    a->in[a->nin] = ty_is_handle(L, value) ? ty_operand_tensor(ty_check_any(L, value, "index", "the value")) : ty_number_at(L, value);
    a->span[1] = (ty_span){a->nin++, 1};
  }
  a->span[put ? 2 : 1] = (ty_span){a->nin, p->nindex};
  ty_attr *dims = &a->at[put ? TY_AT_index_put_dims : TY_AT_index_dims];
  dims->set = true;
  dims->n = (uint8_t)p->nindex;
  for (int i = 0; i < p->nindex; i++) {
    a->in[a->nin++] = ty_operand_tensor(ty_check_any(L, p->index[i], "index", "an index"));
    dims->v[i] = p->dims[i];
  }
  a->at[put ? TY_AT_index_put_accumulate : TY_AT_index_ids] = (ty_attr){.set = true, .i = 0};
  return op;
}

static void begin(ty_args *a) {
  memset(a, 0, sizeof *a);
  a->in = a->small;
  a->room = 16;
}

/* Pushes a list of the environments of the tensors at two stack indices; 0: neither has one. */
static int anchors_of(lua_State *L, int first, int second) {
  if (((ty_state *)lua_touserdata(L, lua_upvalueindex(1)))->operand_lists) { ty_list_operand(L, first); ty_list_operand(L, second); }
  const ty_handle *h = ty_is_handle(L, first), *k = ty_is_handle(L, second);
  if (!(h && h->anchored) && !(k && k->anchored)) return 0;
  lua_newtable(L);
  const int anchors = lua_gettop(L);
  ty_note_anchor(L, first, anchors);
  ty_note_anchor(L, second, anchors);
  return anchors;
}

/* *offset becomes the place in x's storage of the element that the key at 2 names: a number for a vector, else a list of one for each dim.
 * False: the key names no element. */
static bool element_of(lua_State *L, const ty_tensor *x, int64_t *offset) {
  const bool list = lua_type(L, 2) == LUA_TTABLE;
  int fields = 0;
  *offset = x->offset;
  if (x->ndim == 0 || (list ? (int)lua_objlen(L, 2) != x->ndim : x->ndim != 1)) return false;
  for (int d = 0; d < x->ndim; d++) {
    int64_t i = 0;
    const int64_t n = x->shape[d];
    if (list) lua_rawgeti(L, 2, d + 1);
    const bool is = lua_type(L, list ? -1 : 2) == LUA_TNUMBER && ty_is_whole(lua_tonumber(L, list ? -1 : 2), &i);
    if (list) lua_pop(L, 1);
    if (!is || i == 0 || i > n || i < -n) return false;
    *offset += (i < 0 ? i + n : i - 1) * x->stride[d];
  }
  for (lua_pushnil(L); list && lua_next(L, 2); lua_pop(L, 1)) fields++;
  if (!list) lua_pop(L, 1);
  return !list || fields == x->ndim;
}

int ty_index_get(lua_State *L) {
  ty_state *s = ty_state_of(L);
  path p;
  ty_args a;
  int64_t at;
  ty_tensor *x = ty_check_any(L, 1, "index", "the tensor");
  lua_settop(L, 2);
  if (element_of(L, x, &at)) {             /* without making views */
    ty_settle_read(L, 1, "an element is read", NULL);
    x = ty_check(L, 1, "index", "the tensor");           /* settling may run Lua, which may have given it other data */
    if (!element_of(L, x, &at)) return ty_throw(L, "index: the tensor changed its shape while an element was read");
    ty_push_element(L, x, at);
    return 1;
  }
  ty_pace(L, s);
  bool element = walk(L, s, &p);
  if (element) {
    ty_settle(L, "an element is read");
    const ty_tensor *t = ty_check(L, p.view, "index", "the tensor");
    ty_push_element(L, t, t->offset);
    return 1;
  }
  const int anchors = anchors_of(L, 1, 1);
  if (p.nindex) {
    begin(&a);
    a.anchors = anchors;
    a.result = ty_push_results(L, s, &ty_ops[TY_OP_index]);
    ty_op *op = prepare(L, &p, &a, false, 0);
    return ty_call_op(L, s, op, &a);
  }
  if (p.view == 1) {                     /* x[{}]: a view of the whole */
    ty_attr at = {.set = true, .n = (uint8_t)current(L, &p)->ndim};
    memcpy(at.v, current(L, &p)->shape, sizeof at.v);
    view_op(L, s, &p, TY_OP_expand, &at);
  }
  if (anchors) ty_set_anchor(L, p.view, anchors);
  lua_pushvalue(L, p.view);
  return 1;
}

/* x[mask] = number with a mask of x's shape: needs no positions. */
static bool fills_mask(lua_State *L, const ty_tensor *x) {
  const ty_tensor *m = ty_is_handle(L, 2) ? ty_check_any(L, 2, "index", "an index") : NULL;
  if (!m || m->dtype != TY_BOOL || (lua_type(L, 3) != LUA_TNUMBER && lua_type(L, 3) != LUA_TBOOLEAN)) return false;
  return m->ndim && TY_SAME_SHAPE(m, x);
}

/* The nested list at stack index 3 becomes a tensor like the one at 1, which finalizers may free meanwhile. */
static void list_at(lua_State *L, ty_state *s) {
  enum { X = 1, LIST = 3 };
  ty_from_table(L, s, LIST, ty_check_any(L, X, "index", "the tensor")->dtype, "index");
  lua_replace(L, LIST);
  const ty_tensor *x = ty_check_any(L, X, "index", "the tensor");
  ty_handle *h = lua_touserdata(L, LIST);
  if (ty_device_of(x) == ty_device_of(h->t)) return;
  ty_ctx *ctx = ty_ctx_of(L, s);
  ty_tensor *there;
  if (ty_move(ctx, h->t, ty_device_of(x), &there) != TY_OK) ty_raise(L, ctx);
  ty_release(h->t);
  h->t = there;
}

/* Takes leading dims of size 1 off the value at stack index 3, as copy_ does. */
static void without_lead(lua_State *L, ty_state *s) {
  const ty_tensor *v = ty_check_any(L, 3, "index", "the value");
  int lead = 0;
  while (lead < v->ndim && v->shape[lead] == 1) lead++;
  if (!lead) return;
  ty_attr size = {.set = true, .n = (uint8_t)(v->ndim - lead)};
  for (int d = 0; d < size.n; d++) size.v[d] = v->shape[lead + d];
  made(L, s, TY_OP_view, 3, "the value", &size);
  lua_replace(L, 3);
}

/* Writes the number or boolean at 3 where only memory is concerned: no gradient, no program, and the value fits the dtype. */
static bool put_element(lua_State *L, const ty_ctx *ctx, ty_tensor *x) {
  const ty_storage *m = x->storage;
  int64_t at, v = 0;
  const bool truth = lua_type(L, 3) == LUA_TBOOLEAN, number = lua_type(L, 3) == LUA_TNUMBER;
  const bool settled = !ctx->program && !ctx->account->active && !m->program && !m->pending;
  const bool plain = !x->whole && !x->scaled && !x->copied && !x->handed_on && !x->unrecorded && !x->base && !ty_needs_grad(x);
  if (!settled || !plain || !(x->dtype == TY_BOOL ? truth : number) || ty_device_of(x)->gpu >= 0 || !ty_is_contiguous(x)) return false;
  const double d = truth ? lua_toboolean(L, 3) : lua_tonumber(L, 3);
  const bool floats = ty_is_float(x->dtype);
  if (!floats && (!ty_is_whole(d, &v) || (x->dtype == TY_I32 && v != (int32_t)v) || (x->dtype == TY_U8 && v != (uint8_t)v))) return false;
  if (!element_of(L, x, &at)) return false;
  char *to = (char *)m->data + at * ty_itemsize(x);
  if (floats) ty_set(to, x->dtype, d);
  else ty_set_int(to, x->dtype, v);
  ty_changed(x);
  return true;
}

int ty_index_set(lua_State *L) {
  ty_state *s = ty_state_of(L);
  path p;
  ty_args a;
  ty_tensor *x = ty_check_any(L, 1, "index", "the tensor");
  lua_settop(L, 3);
  int t = lua_type(L, 3);
  if (put_element(L, ty_ctx_of(L, s), x)) return 0;
  if (t == LUA_TTABLE) list_at(L, s);
  else if (ty_is_handle(L, 3)) ty_check_any(L, 3, "index", "the value");
  else if (t != LUA_TNUMBER && t != LUA_TBOOLEAN)
    return ty_throw(L, "index: the value must be a number, a tensor or a nested list, got %s", luaL_typename(L, 3));
  if (fills_mask(L, ty_check_any(L, 1, "index", "the tensor"))) {
    begin(&a);
    a.small[0] = ty_operand_tensor(ty_check_any(L, 1, "index", "the tensor"));
    a.small[1] = ty_operand_tensor(ty_check_any(L, 2, "index", "an index"));
    a.small[2] = ty_number_at(L, 3);
    a.nin = 3;
    a.out = 1;
    ty_call_op(L, s, &ty_ops[TY_OP_masked_fill], &a);
    return 0;
  }
  ty_pace(L, s);
  walk(L, s, &p);
  const ty_handle *v = ty_is_handle(L, 3);
  const int anchors = v ? anchors_of(L, 3, 1) : 0;
  if (anchors) ty_set_anchor(L, 1, anchors);            /* x's history now reaches what the value's environment holds */
  if (p.nindex) {
    if (v) without_lead(L, s);
    begin(&a);
    a.out = p.view;
    ty_op *op = prepare(L, &p, &a, true, 3);
    ty_call_op(L, s, op, &a);
    return 0;
  }
  ty_tensor *view = current(L, &p);
  const ty_operand value = v ? ty_operand_tensor(ty_check_any(L, 3, "index", "the value")) : ty_number_at(L, 3);
  if (!v && !ty_fits(lua_tonumber(L, 3), view->dtype))
    ty_throw(L, "index assignment: the value %f is out of range for %s", lua_tonumber(L, 3), ty_dtype_names[view->dtype]);
  if (v && !ty_copies_to(value.t, view))
    ty_throw(L, "index assignment: a value of shape %s doesn't broadcast to the indexed shape %s", ty_shape_of(value.t), ty_shape_of(view));
  ty_simple(L, s, TY_OP_copy, ty_operand_tensor(view), value, NULL, view);
  return 0;
}

