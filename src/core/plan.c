/* A recorded program's memory.
 *
 * Idea: what is needed after a run (results, gradients) has memory of its own. All else is used up within the run: such memory is given
 * out again by the order of the steps, best fit, so that a run touches about as much memory as the recorded call did. What the function
 * has seen it may keep: whether it has is known before each run, and what is kept moves to memory of its own. Invariant: two values share
 * memory only if they shared a storage, or if the one's last use comes before the other's first and nobody else has it. */
#include <string.h>
#include "plan.h"

/* All values of the store are in this memory from now on. */
static void move_values(ty_program *p, const store *st, ty_storage *to) {
  for (int v = st->value; v >= 0; v = p->value[v].next) {
    ty_tensor *t = p->value[v].t;
    ty_storage_retain(to);
    ty_storage_release(t->storage);
    t->storage = to;
  }
}

static ty_status block(ty_ctx *ctx, const ty_backend *b, size_t nbytes, ty_tensor **out) {
  const ty_meta m = {.dtype = TY_U8, .ndim = 1, .shape = {(int64_t)nbytes}};
  return ty_empty(ctx, b, &m, out);
}

/* A tensor like v in the given memory. */
static ty_tensor *place(const value *v, ty_tensor *memory) {
  ty_tensor *t = ty_alias(memory);
  if (!t) return NULL;
  t->dtype = v->like.dtype;
  t->ndim = v->like.ndim;
  t->offset = v->like.offset;
  t->own_layout = v->like.own_layout;
  memcpy(t->shape, v->like.shape, sizeof t->shape);
  memcpy(t->stride, v->like.stride, sizeof t->stride);
  return t;
}

/* Never stored, nor will it be. */
static bool nowhere(const store *st) { return st->unwritten && !st->visible && !st->placed; }

/* A kernel that may have to store more, when someone holds it, may then be too large: all its values get memory. Whether some did. */
static bool place_beside_visible(ty_program *p, const group *g) {
  bool visible = false, more = false;
  for (int k = 0; k < g->nstep && (g->fused || g->joint); k++)
    for (int j = 0; j < TY_MAXOUT; j++) {
      const store *st = ty_stored_by(p, g, k, j);
      visible = visible || (st && st->unwritten && (st->visible || st->placed));
    }
  for (int k = 0; k < g->nstep && visible; k++)
    for (int j = 0; j < TY_MAXOUT; j++) {
      store *st = ty_stored_by(p, g, k, j);
      if (st && st->unwritten && !st->placed) st->placed = more = true;
    }
  return more;
}

/* Needed after the run, or too small to be worth while. */
static bool apart(const store *st) { return st->visible && (st->pinned || st->nbytes <= TY_SMALL); }

/* Seen, and never written unless someone keeps it: all such are in one place until then. */
static bool is_idle(const store *st) { return st->internal && st->unwritten && !apart(st) && st->visible; }

static ty_status share_idle(ty_ctx *ctx, ty_program *p) {
  for (int first = 0; first < p->nstore; first++) {      /* the first of its device's */
    const store *like = &p->store[first];
    size_t most = 0;
    ty_tensor *scrap;
    if (!is_idle(like) || like->memory) continue;
    for (int i = first; i < p->nstore; i++)
      if (is_idle(&p->store[i]) && p->store[i].backend == like->backend) most = TY_MAX(most, p->store[i].nbytes);
    TY_TRY(block(ctx, like->backend, most, &scrap));
    ty_status s = TY_OK;
    for (int i = first; i < p->nstore && s == TY_OK; i++)
      if (is_idle(&p->store[i]) && p->store[i].backend == like->backend)
        s = ty_within(ctx, scrap, p->store[i].nbytes, &p->store[i].memory);
    ty_release(scrap);
    if (s != TY_OK) return s;
  }
  for (int i = 0; i < p->nstore; i++) p->store[i].idle = is_idle(&p->store[i]);
  return TY_OK;
}

typedef struct { ty_tensor *t; bool free; } buffer;

/* Memory for the stores that end within the run: in the order of the steps, what has ended is given out again. */
static ty_status share(ty_ctx *ctx, ty_program *p) {
  buffer *pool = NULL;
  int n = 0, room = 0;
  ty_status s = TY_OK;
  int *order = ty_malloc(sizeof(int) * (size_t)TY_MAX(p->nstore, 1)), *holds = ty_malloc(sizeof(int) * (size_t)TY_MAX(p->nstore, 1));
  if (!order || !holds) s = ty_program_no_memory(ctx);
  int count = 0;
  for (int i = 0; i < p->nstore && s == TY_OK; i++) {     /* by their first use */
    if (!p->store[i].internal || apart(&p->store[i]) || is_idle(&p->store[i]) || nowhere(&p->store[i])) continue;
    int k = count++;
    for (; k > 0 && p->store[order[k - 1]].first > p->store[i].first; k--) order[k] = order[k - 1];
    order[k] = i;
  }
  for (int k = 0; k < count && s == TY_OK; k++) {
    store *st = &p->store[order[k]];
    for (int j = 0; j < k; j++)
      if (holds[j] >= 0 && p->store[order[j]].last < st->first) { pool[holds[j]].free = true; holds[j] = -1; }
    int best = -1;
    for (int j = 0; j < n; j++) {
      const size_t have = pool[j].t->storage->nbytes;
      if (pool[j].free && pool[j].t->storage->backend == st->backend && have >= st->nbytes &&
          have <= 2 * st->nbytes + 4096 && (best < 0 || have < pool[best].t->storage->nbytes))
        best = j;
    }
    if (best < 0) {
      if (!ty_grow(&pool, n + 1, &room, sizeof *pool)) { s = ty_program_no_memory(ctx); break; }
      s = block(ctx, st->backend, st->nbytes, &pool[n].t);
      if (s != TY_OK) break;
      best = n++;
    }
    pool[best].free = false;
    holds[k] = best;
    if (!st->visible) st->memory = ty_retain(pool[best].t);
    else s = ty_within(ctx, pool[best].t, st->nbytes, &st->memory);
  }
  for (int j = 0; j < n; j++) ty_release(pool[j].t);
  if (s == TY_OK) s = share_idle(ctx, p);
  ty_free(pool);
  ty_free(order);
  ty_free(holds);
  return s;
}

static ty_status make_values(ty_ctx *ctx, ty_program *p) {
  for (int i = 0; i < p->nstore; i++) {
    store *st = &p->store[i];
    if (st->internal && !st->memory && !nowhere(st)) TY_TRY(block(ctx, st->backend, st->nbytes, &st->memory));
    if (st->memory) st->memory->storage->program = p;
  }
  for (int i = 0; i < p->nstore; i++) {    /* the function may give away what it made of numbers: the program has its own */
    store *st = &p->store[i];
    if (!st->constant || st->value < 0) continue;
    ty_tensor *copy;
    const ty_storage *from = p->value[st->value].t->storage;
    ty_status s = TY_OK;
    TY_TRY(block(ctx, st->backend, st->nbytes, &copy));
    if (st->backend->gpu < 0) memcpy(copy->storage->data, from->data, st->nbytes);
    else s = st->backend->transfer(ctx, st->backend, copy->storage, 0, from, 0, st->nbytes, false);
    if (s == TY_OK) move_values(p, st, copy->storage);
    ty_release(copy);
    TY_TRY(s);
  }
  for (int i = 0; i < p->nvalue; i++) {
    value *v = &p->value[i];
    store *st = &p->store[v->store];
    if (!st->internal || nowhere(st)) continue;
    if (!(v->t = place(v, st->memory))) return ty_program_no_memory(ctx);
    st->users++;
  }
  return TY_OK;
}

static ty_status make_steps(ty_ctx *ctx, ty_program *p) {
  for (int i = 0; i < p->nstep; i++) {
    step *k = &p->step[i];
    for (int j = 0; j < k->call.nin; j++)
      if (k->vin[j] >= 0) k->call.in[j].t = p->value[k->vin[j]].t;
    for (int j = 0; j < TY_MAXOUT; j++) k->call.out[j] = k->vout[j] >= 0 ? p->value[k->vout[j]].t : NULL;
    if (k->call.op->cls != TY_C_OPTIM || k->backend->gpu < 0) continue;
    /* a captured launch keeps numbers as they are: the learning rate goes to the device */
    for (int j = 0; j < k->call.nin; j++) {
      if (k->call.in[j].kind == TY_TENSOR || k->call.in[j].kind == TY_NONE) continue;
      const ty_meta m = {.dtype = TY_F64};
      TY_TRY(ty_empty(ctx, k->backend, &m, &k->rate));
      k->rate_now = k->call.in[j].f;
      k->rate_changed = true;
      k->call.in[j] = ty_op_tensor(k->rate);
    }
  }
  return TY_OK;
}

static ty_status make_leaves(ty_ctx *ctx, ty_program *p) {
  for (int i = 0; i < p->nevent; i++)
    for (int k = 0; k < p->event[i].nleaf; k++) {
      ty_tensor *leaf = p->event[i].leaf[k].leaf;
      bool known = false;
      for (int j = 0; j < p->nentry && !known; j++) known = p->entry[j].leaf == leaf;
      if (known) continue;
      if (!ty_grow(&p->entry, p->nentry + 1, &p->entry_room, sizeof(entry))) return ty_program_no_memory(ctx);
      p->entry[p->nentry++] = (entry){leaf, NULL};
    }
  return TY_OK;
}

ty_status ty_plan_make(ty_ctx *ctx, ty_program *p) {
  if (p->fuses) TY_TRY(ty_fuse_exchange(ctx, p));
  if (p->fuses) TY_TRY(ty_fuse_split(ctx, p));
  TY_TRY(ty_fuse_groups(ctx, p));
  TY_TRY(ty_fuse_make(ctx, p));
  for (bool more = true; more;) {          /* values that several kernels make bring it from one to the other */
    more = false;
    for (int i = 0; i < p->ngroup; i++) more = place_beside_visible(p, &p->group[i]) || more;
  }
  TY_TRY(share(ctx, p));
  TY_TRY(make_values(ctx, p));
  TY_TRY(make_steps(ctx, p));
  ty_fuse_places(p);
  p->moved = true;
  return make_leaves(ctx, p);
}

static int own_refs(const store *st) { return 2 * (st->users + 1) + 1; }      /* two for each tensor, one for the block's: see tensor.c */
static bool free_of_holders(const store *st) { return atomic_load(&st->memory->storage->refs) <= own_refs(st); }

/* What someone has kept of values that share memory moves to memory of its own, before the run writes to it; so does what is
   written after all. */
static ty_status move_out(ty_ctx *ctx, ty_program *p) {
  for (int i = 0; i < p->nstore; i++) {
    store *st = &p->store[i];
    ty_tensor *own;
    if (!st->memory || !st->visible || !st->memory->storage->within || st->moved_out) continue;
    if (free_of_holders(st) && (!st->idle || st->unwritten)) continue;
    TY_TRY(block(ctx, st->backend, st->nbytes, &own));
    ty_move_within(st->memory->storage, own);
    ty_release(own);
    st->moved_out = p->moved = true;
  }
  return TY_OK;
}

ty_status ty_program_ready(ty_ctx *ctx, ty_program *p) {
  bool more = p->unmade;
  for (int i = 0; i < p->nstore; i++) {
    store *st = &p->store[i];
    if (!st->unwritten || !st->visible || st->held || free_of_holders(st)) continue;
    st->held = more = true;
  }
  ty_status s = more ? ty_fuse_make(ctx, p) : TY_OK;
  if (s == TY_OK) s = move_out(ctx, p);
  if (!more) return s;
  ty_fuse_places(p);
  p->moved = true;
  return s;
}

ty_status ty_plan_evict(ty_ctx *ctx, ty_program *p) {
  for (int i = 0; i < p->nstore; i++) {
    store *st = &p->store[i];
    if (!st->internal || !st->visible || free_of_holders(st)) continue;
    const int refs = atomic_load(&st->memory->storage->refs), own = own_refs(st);
    int leaves = 0;                        /* a leaf's gradient that nobody else holds is the program's to overwrite, as a gradient is */
    for (int j = 0; j < p->nentry; j++) {
      const ty_tensor *g = p->entry[j].leaf->grad;
      leaves += g && g->storage == st->memory->storage && atomic_load(&g->refs) == 1;
    }
    if (refs <= own + 2 * leaves) continue;
    ty_tensor *fresh;
    TY_TRY(block(ctx, st->backend, st->nbytes, &fresh));
    fresh->storage->program = p;
    st->memory->storage->program = NULL;
    move_values(p, st, fresh->storage);
    ty_release(st->memory);
    st->memory = fresh;
    p->moved = true;
  }
  return TY_OK;
}

void ty_plan_rate(ty_program *p, int first, int operand, double v) {
  step *k = &p->step[first];
  if (k->rate) {
    k->rate_changed = k->rate_changed || k->rate_now != v;
    k->rate_now = v;
  } else k->call.in[operand].f = v;
}

ty_status ty_program_rates(ty_ctx *ctx, ty_program *p) {
  for (int i = 0; i < p->nstep && p->gpu; i++) {
    step *k = &p->step[i];
    if (!k->rate || !k->rate_changed) continue;
    TY_TRY(ty_fill_into(ctx, k->rate, ty_op_float(k->rate_now)));
    k->rate_changed = false;
  }
  return TY_OK;
}

void ty_plan_let_go(event *e) {
  for (int i = 0; i < e->nin; i++) { ty_release(e->actual[i]); e->actual[i] = NULL; }
  for (int j = 0; j < TY_MAXOUT; j++) { ty_release(e->shell[j]); e->shell[j] = NULL; }
  for (int i = 0; i < e->nleaf; i++) { ty_release(e->leaf[i].shell); e->leaf[i].shell = NULL; }
  for (int i = 0; i < e->nresult; i++) { ty_release(e->result_shell[i]); e->result_shell[i] = NULL; }
  ty_release(e->target);
  e->target = NULL;
}

static void free_event(event *e) {
  ty_plan_let_go(e);
  for (int i = 0; i < e->nleaf; i++) ty_release(e->leaf[i].leaf);
  ty_free(e->in);
  ty_free(e->span);
  ty_free(e->failed);
  ty_free(e->at);
  ty_free(e->leaf);
  ty_free(e->vresult);
  ty_free(e->result_shell);
}

void ty_plan_free(ty_program *p) {
  for (int i = 0; i < p->nentry; i++) ty_release(p->entry[i].grad);
  for (int i = 0; i < p->nevent; i++) free_event(&p->event[i]);
  ty_fuse_free(p);
  for (int i = 0; i < p->nstep; i++) {
    ty_free(p->step[i].call.in);
    ty_free(p->step[i].call.at);
    ty_free(p->step[i].vin);
    ty_release(p->step[i].rate);
  }
  for (int i = 0; i < p->nvalue; i++) { ty_release(p->value[i].t); ty_release(p->value[i].leaf); ty_release(p->value[i].plain); }
  for (int i = 0; i < p->nstore; i++) {
    if (p->store[i].memory) p->store[i].memory->storage->program = NULL;
    ty_release(p->store[i].memory);
  }
  ty_free(p->input);
  ty_free(p->result);
  ty_free(p->store);
  ty_free(p->map.slot);
  ty_free(p->value);
  ty_free(p->step);
  ty_free(p->event);
  ty_free(p->entry);
}
