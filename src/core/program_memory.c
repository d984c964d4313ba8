/* Plans a recording's memory.
 *
 * Idea: stores that are needed after a run (results, gradients) have memory of their own. All others are used up within the run: they
 * reuse each other's memory in the order of the steps, best fit, so that a run touches about as much memory as the recorded call did.
 * Recordings of one program reuse it too, since one runs at a time. The function may keep a tensor that it has seen; before each run
 * they are looked through, and what is kept is moved to memory of its own. Invariant: two values share memory only if they shared a
 * storage, or if one's last use comes before the other's first and nobody else holds it. */
#include <string.h>
#include "program_parts.h"

/* Moves all values of the store to the storage `to`. */
static void move_values(ty_recording *r, const store *st, ty_storage *to) {
  for (int v = st->value; v >= 0; v = r->value[v].next) {
    ty_tensor *t = r->value[v].t;
    ty_storage_retain(to);
    ty_storage_release(t->storage);
    t->storage = to;
  }
}

static ty_status block(ty_ctx *ctx, const ty_backend *b, size_t nbytes, ty_tensor **out) {
  const ty_meta m = {.dtype = TY_U8, .ndim = 1, .shape = {(int64_t)nbytes}};
  return ty_empty(ctx, b, &m, out);
}

/* A tensor with v's geometry in the given memory. */
static ty_tensor *place(const value *v, ty_tensor *memory) { return ty_alias_as(memory, &v->like, v->like.offset); }

/* A store that needs no memory: it is never stored, and nobody can come to hold it. */
static bool nowhere(const store *st) { return st->unwritten && !st->visible && !st->placed; }

/* A kernel that later has to store held values may become too large and be given up: so all its values get memory. Whether any did. */
static bool place_beside_visible(ty_recording *r, const group *g) {
  bool visible = false, more = false;
  for (int k = 0; k < g->nstep && (g->fused || g->joint); k++)
    for (int j = 0; j < TY_MAXOUT; j++) {
      const store *st = ty_stored_by(r, g, k, j);
      visible = visible || (st && st->unwritten && (st->visible || st->placed));
    }
  for (int k = 0; k < g->nstep && visible; k++)
    for (int j = 0; j < TY_MAXOUT; j++) {
      store *st = ty_stored_by(r, g, k, j);
      if (st && st->unwritten && !st->placed) st->placed = more = true;
    }
  return more;
}

/* Has memory of its own: needed after the run, or too small to be worth sharing. */
static bool apart(const store *st) { return st->visible && (st->pinned || st->nbytes <= TY_SMALL); }

/* Seen by the function, but not stored unless someone keeps it: until then all such stores are in one scrap block. */
static bool is_idle(const store *st) { return st->internal && st->unwritten && !apart(st) && st->visible; }

static ty_status share_idle(ty_ctx *ctx, ty_recording *r) {
  for (int first = 0; first < r->nstore; first++) {      /* first: the first on its device */
    const store *like = &r->store[first];
    size_t most = 0;
    ty_tensor *scrap;
    if (!is_idle(like) || like->memory) continue;
    for (int i = first; i < r->nstore; i++)
      if (is_idle(&r->store[i]) && r->store[i].backend == like->backend) most = TY_MAX(most, r->store[i].nbytes);
    TY_TRY(block(ctx, like->backend, most, &scrap));
    ty_status s = TY_OK;
    for (int i = first; i < r->nstore && s == TY_OK; i++)
      if (is_idle(&r->store[i]) && r->store[i].backend == like->backend)
        s = ty_within(ctx, scrap, r->store[i].nbytes, &r->store[i].memory);
    ty_release(scrap);
    if (s != TY_OK) return s;
  }
  for (int i = 0; i < r->nstore; i++) r->store[i].idle = is_idle(&r->store[i]);
  return TY_OK;
}

typedef struct { ty_tensor *t; bool used; } buffer;

/* The shared blocks of the program's other recordings; without those on other streams, which may run at the same time. */
static ty_status blocks_of_others(ty_ctx *ctx, const ty_recording *r, buffer **pool, int *n, int *room) {
  for (const ty_recording *o = r->other; o && r->nevent; o = o->other)
    for (int i = 0; i < o->nblock && !memcmp(o->event[0].stream, r->event[0].stream, sizeof r->event[0].stream); i++) {
      bool known = false;
      for (int j = 0; j < *n && !known; j++) known = (*pool)[j].t == o->block[i];
      if (known) continue;
      if (!ty_grow(pool, *n + 1, room, sizeof **pool)) return ty_program_no_memory(ctx);
      (*pool)[(*n)++] = (buffer){.t = ty_retain(o->block[i])};
    }
  return TY_OK;
}

/* The free buffer that fits n bytes best, or -1. idle: the free ones' numbers. */
static int best_fit(const buffer *pool, const int *idle, int nidle, const ty_backend *b, size_t n) {
  int best = -1;
  for (int j = 0; j < nidle; j++) {
    const ty_storage *s = pool[idle[j]].t->storage;
    if (s->backend != b || s->nbytes < n || s->nbytes > 2 * n + 4096) continue;
    const size_t least = best < 0 ? 0 : pool[best].t->storage->nbytes;
    if (best < 0 || s->nbytes < least || (s->nbytes == least && idle[j] < best)) best = idle[j];
  }
  return best;
}

/* Memory for the stores that end within the run: in the order of the steps, blocks whose store has ended are reused. */
static ty_status share(ty_ctx *ctx, ty_recording *r) {
  buffer *pool = NULL;
  int n = 0, room = 0, *idle = NULL, nidle = 0, idle_room = 0;
  ty_status s = blocks_of_others(ctx, r, &pool, &n, &room);
  /* stores by the group that uses them first, and last: lists that begin at a group and go on at a store; by store, the buffer it has */
  const size_t groups = (size_t)r->ngroup + 1, stores = (size_t)r->nstore + 1;
  int *begin = ty_malloc(sizeof(int) * groups), *end = ty_malloc(sizeof(int) * groups), *begins = ty_malloc(sizeof(int) * stores),
    *ends = ty_malloc(sizeof(int) * stores), *holds = ty_malloc(sizeof(int) * stores);
  if (s == TY_OK && !(begin && end && begins && ends && holds && ty_grow(&idle, n + 1, &idle_room, sizeof(int))))
    s = ty_program_no_memory(ctx);
  for (size_t i = 0; i < groups && s == TY_OK; i++) begin[i] = end[i] = -1;
  for (int i = r->nstore - 1; i >= 0 && s == TY_OK; i--) {
    const store *st = &r->store[i];
    if (!st->internal || apart(st) || is_idle(st) || nowhere(st)) continue;
    begins[i] = begin[st->first];
    begin[st->first] = i;
    if (st->last < st->first || st->last > r->ngroup) continue;            /* no step uses it */
    ends[i] = end[st->last];
    end[st->last] = i;
  }
  for (; nidle < n && s == TY_OK; nidle++) idle[nidle] = nidle;
  for (int g = 0; g <= r->ngroup && s == TY_OK; g++) {
    for (int i = g ? end[g - 1] : -1; i >= 0; i = ends[i]) idle[nidle++] = holds[i];
    for (int i = begin[g]; i >= 0 && s == TY_OK; i = begins[i]) {
      store *st = &r->store[i];
      int best = best_fit(pool, idle, nidle, st->backend, st->nbytes);
      if (best < 0) {
        if (!ty_grow(&pool, n + 1, &room, sizeof *pool) || !ty_grow(&idle, n + 1, &idle_room, sizeof(int))) {
          s = ty_program_no_memory(ctx);
          break;
        }
        s = block(ctx, st->backend, st->nbytes, &pool[n].t);
        if (s != TY_OK) break;
        best = n++;
      } else for (int j = 0; j < nidle; j++) if (idle[j] == best) { idle[j] = idle[--nidle]; break; }
      pool[best].used = true;
      holds[i] = best;
      if (st->last < g) idle[nidle++] = best;
      if (!st->visible) st->memory = ty_retain(pool[best].t);
      else s = ty_within(ctx, pool[best].t, st->nbytes, &st->memory);
    }
  }
  for (int j = 0; j < n; j++) {
    const bool ours = pool[j].used && s == TY_OK && ty_grow(&r->block, r->nblock + 1, &r->block_room, sizeof *r->block);
    if (ours) r->block[r->nblock++] = ty_retain(pool[j].t);
    ty_release(pool[j].t);
  }
  if (s == TY_OK) s = share_idle(ctx, r);
  void *const made[] = {pool, idle, begin, end, begins, ends, holds};
  for (int i = 0; i < (int)(sizeof made / sizeof *made); i++) ty_free(made[i]);
  return s;
}

static ty_status make_values(ty_ctx *ctx, ty_recording *r) {
  for (int i = 0; i < r->nstore; i++) {
    store *st = &r->store[i];
    if (st->internal && !st->memory && !nowhere(st)) TY_TRY(block(ctx, st->backend, st->nbytes, &st->memory));
    if (st->memory && st->visible) st->memory->storage->program = r->program;
  }
  for (int i = 0; i < r->nstore; i++) {    /* the function may give away its constants: the program keeps copies */
    store *st = &r->store[i];
    if (!st->constant || st->value < 0) continue;
    ty_tensor *copy;
    const ty_storage *from = r->value[st->value].t->storage;
    ty_status s = TY_OK;
    TY_TRY(block(ctx, st->backend, st->nbytes, &copy));
    if (st->backend->gpu < 0) memcpy(copy->storage->data, from->data, st->nbytes);
    else s = st->backend->transfer(ctx, st->backend, copy->storage, 0, from, 0, st->nbytes, false);
    if (s == TY_OK) move_values(r, st, copy->storage);
    ty_release(copy);
    TY_TRY(s);
  }
  for (int i = 0; i < r->nvalue; i++) {
    value *v = &r->value[i];
    store *st = &r->store[v->store];
    if (!st->internal || nowhere(st)) continue;
    if (!(v->t = place(v, st->memory))) return ty_program_no_memory(ctx);
    st->users++;
  }
  return TY_OK;
}

static ty_status make_steps(ty_ctx *ctx, ty_recording *r) {
  for (int i = 0; i < r->nstep; i++) {
    step *k = &r->step[i];
    for (int j = 0; j < k->call.nin; j++)
      if (k->vin[j] >= 0) k->call.in[j].t = r->value[k->vin[j]].t;
    for (int j = 0; j < TY_MAXOUT; j++) k->call.out[j] = k->vout[j] >= 0 ? r->value[k->vout[j]].t : NULL;
    if (k->call.op->cls != TY_C_OPTIM || k->backend->gpu < 0) continue;
    /* a captured launch fixes its arguments: the learning rate and the settings are on the device instead */
    if (ty_op_param(k->call.op, "lr")) {
      const ty_meta m = {.dtype = TY_F64, .ndim = 1, .shape = {TY_OPTIM_NUMBERS}};
      TY_TRY(ty_empty(ctx, k->backend, &m, &k->call.settings));
      for (int j = 0; j < TY_OPTIM_NUMBERS; j++) k->set[j] = NAN;
      k->set_changed = true;
    }
    for (int j = 0; j < k->call.nin; j++) {
      if (k->call.in[j].kind == TY_TENSOR || k->call.in[j].kind == TY_NONE) continue;
      const ty_meta m = {.dtype = TY_F64};
      TY_TRY(ty_empty(ctx, k->backend, &m, &k->rate));
      k->rate_now = k->call.in[j].f;
      k->rate_changed = true;
      k->call.in[j] = ty_operand_tensor(k->rate);
    }
  }
  return TY_OK;
}

static ty_status make_leaves(ty_ctx *ctx, ty_recording *r) {
  for (int i = 0; i < r->nevent; i++)
    for (int k = 0; k < r->event[i].nleaf; k++) {
      ty_tensor *leaf = r->event[i].leaf[k].leaf;
      bool known = r->event[i].leaf[k].own >= 0;
      for (int j = 0; j < r->nentry && !known; j++) known = r->entry[j].leaf == leaf;
      if (known) continue;
      if (!ty_grow(&r->entry, r->nentry + 1, &r->entry_room, sizeof(entry))) return ty_program_no_memory(ctx);
      r->entry[r->nentry++] = (entry){.leaf = leaf};
    }
  return TY_OK;
}

/* Finds external values that are gradients of leaves, and sets their grad_of. */
static void find_gradients(ty_recording *r) {
  for (int i = 0; i < r->nevent; i++)
    for (int k = 0; k < r->event[i].nleaf; k++) {
      const leaf_change *l = &r->event[i].leaf[k];
      if (l->before >= 0 && l->own < 0) r->value[l->before].grad_of = l->leaf;
    }
  for (int i = 0; i < r->nvalue; i++) {
    const ty_tensor *leaf = r->value[i].leaf;
    for (int j = 0; leaf && leaf->grad && j < r->nvalue; j++)
      if (r->value[j].plain == leaf->grad) r->value[j].grad_of = r->value[i].leaf;
  }
  for (int i = 0; i < r->nvalue; i++) {
    value *v = &r->value[i];
    const store *st = &r->store[v->store];
    if (st->internal || st->input || st->constant || !v->t) v->grad_of = NULL;
    if (!v->grad_of) continue;
    r->follows = true;
    ty_release(v->plain);
    v->plain = NULL;
    atomic_fetch_add_explicit(&v->t->storage->lent, 1, memory_order_relaxed);
  }
}

ty_status ty_recording_prepare(ty_ctx *ctx, ty_recording *r) {
  if (r->fuses) TY_TRY(ty_fuse_exchange(ctx, r));
  if (r->fuses) TY_TRY(ty_fuse_split(ctx, r));
  TY_TRY(ty_fuse_groups(ctx, r));
  ty_uses_free(&r->writes);
  TY_TRY(ty_fuse_make(ctx, r));
  for (bool more = true; more;) {          /* placing one kernel's values may affect another that computes the same ones */
    more = false;
    for (int i = 0; i < r->ngroup; i++) more = place_beside_visible(r, &r->group[i]) || more;
  }
  TY_TRY(share(ctx, r));
  TY_TRY(make_values(ctx, r));
  TY_TRY(make_steps(ctx, r));
  ty_fuse_places(r);
  r->stale = true;
  find_gradients(r);
  return make_leaves(ctx, r);
}

static int own_holders(const store *st) { return st->users + 1; }      /* its values and st->memory */

/* How many references to s, the storage of store `at`, the recording has. */
static int holders_in(const ty_recording *r, int at, const ty_storage *s) {
  int n = 0;
  for (int v = at < 0 ? -1 : r->store[at].value; v >= 0; v = r->value[v].next)
    n += (r->value[v].t && r->value[v].t->storage == s && !r->value[v].grad_of) + (r->value[v].plain && r->value[v].plain->storage == s);
  return n;
}
/* The same for the program's other recordings, which have seen s as an external tensor. */
static int holders_in_others(const ty_recording *r, const ty_storage *s) {
  int n = 0;
  for (const ty_recording *o = r->program->r; o; o = o->other)
    if (o != r) n += holders_in(o, ty_map_find(&o->map, s->id, o->store, sizeof(store)), s);
  return n;
}

int ty_program_input_holders(const ty_program *p, const ty_tensor *t) {
  int own = 0;
  for (const ty_recording *r = p->r; r; r = r->other)
    for (int i = 0; i < r->ninput; i++) own += holders_in(r, r->value[r->input[i]].store, t->storage);
  return ty_storage_holders(t->storage) - own;
}

static bool free_of_holders(const ty_recording *r, const store *st) {
  const int n = ty_storage_holders(st->memory->storage), own = own_holders(st);
  return n <= own || n <= own + holders_in_others(r, st->memory->storage);
}

bool ty_program_gives(const ty_tensor *t) {
  const ty_program *p = t->storage->program;
  if (!p || t->storage->within || t->storage->backend->gpu >= 0 || atomic_load(&t->refs) != 1) return false;
  for (const ty_recording *r = p->r; r; r = r->other)
    for (int i = 0; i < r->nstore; i++) {
      const store *st = &r->store[i];
      if (st->memory && st->memory->storage == t->storage)
        return ty_storage_holders(t->storage) == own_holders(st) + holders_in_others(r, t->storage) + 1;
    }
  return false;
}

/* Before the run writes to them, stores in shared memory that someone holds move to memory of their own; so do idle ones that are stored
   after all. */
static ty_status move_out(ty_ctx *ctx, ty_recording *r) {
  for (int i = 0; i < r->nstore; i++) {
    store *st = &r->store[i];
    ty_tensor *own;
    if (!st->memory || !st->visible || !st->memory->storage->within || st->moved_out) continue;
    if (free_of_holders(r, st) && (!st->idle || st->unwritten)) continue;
    TY_TRY(block(ctx, st->backend, st->nbytes, &own));
    ty_move_within(st->memory->storage, own);
    ty_release(own);
    st->moved_out = r->stale = true;
  }
  return TY_OK;
}

ty_status ty_recording_ready(ty_ctx *ctx, ty_recording *r) {
  bool more = r->unmade;
  for (int i = 0; i < r->nstore; i++) {
    store *st = &r->store[i];
    if (!st->unwritten || !st->visible || st->held || free_of_holders(r, st)) continue;
    st->held = more = true;
  }
  ty_status s = more ? ty_fuse_make(ctx, r) : TY_OK;
  if (s == TY_OK) s = move_out(ctx, r);
  if (!more) return s;
  ty_fuse_places(r);
  r->stale = true;
  return s;
}

/* Leaves the store's last contents to its holders in fresh memory, so that the graph's addresses stay. */
static bool traded(ty_ctx *ctx, ty_recording *r, const store *st, ty_tensor *fresh) {
  ty_storage *s = st->memory->storage;
  if (!r->captured || s->exposed || s->fixed || s->pending || !s->backend->trade) return false;
  if (!s->backend->trade(ctx, s->backend, s, fresh->storage)) return false;
  for (ty_recording *o = r->program->r; o; o = o->other)
    if (o != r && ty_map_find(&o->map, s->id, o->store, sizeof(store)) >= 0) o->stale = true;          /* its graph may have the address */
  return true;
}

bool ty_program_made(const ty_ctx *ctx, const ty_tensor *t) {
  const ty_program *p = ctx->program;
  if (!p || p->refused || !(t->storage->program == p || (p->mode == TY_RECORD && t->storage->id >= p->checked))) return false;
  for (int i = 0; p->r && i < p->r->nevent; i++)         /* a leaf that holds t would keep it as it was */
    for (int k = 0; k < p->r->event[i].nleaf; k++)
      if (p->r->event[i].leaf[k].leaf->grad == t) return false;
  for (int k = 0; p->r && k < p->r->nown; k++)
    if (p->r->own[k] && p->r->own[k]->grad == t) return false;
  return !t->requires_grad;
}

void ty_program_follow(ty_ctx *ctx, ty_program *p) {
  for (const ty_recording *r = p->r; r; r = r->other) {
    const ty_backend *b = r->gpu ? ty_devices[1 + r->home] : NULL;
    if (!b || p->stream[r->home] == ctx->stream[r->home]) continue;
    b->join(ctx, b, p->stream[r->home]);
    p->stream[r->home] = ctx->stream[r->home];
  }
  memcpy(p->stream, ctx->stream, sizeof p->stream);
}

ty_status ty_recording_evict(ty_ctx *ctx, ty_recording *r) {
  for (int i = 0; i < r->nstore; i++) {
    store *st = &r->store[i];
    if (!st->internal || !st->visible) continue;
    if (r->gpu && st->memory && st->backend->settle) st->backend->settle(ctx, st->memory->storage);
    if (free_of_holders(r, st)) continue;
    const int n = ty_storage_holders(st->memory->storage), own = own_holders(st) + holders_in_others(r, st->memory->storage);
    int leaves = 0;                        /* a gradient that only its leaf holds may be overwritten */
    for (int j = 0; j < r->nentry; j++) {
      const ty_tensor *g = r->entry[j].leaf->grad;
      leaves += g && g->storage == st->memory->storage && atomic_load(&g->refs) == 1;
    }
    if (n <= own + leaves) continue;
    ty_tensor *fresh;
    TY_TRY(block(ctx, st->backend, st->nbytes, &fresh));
    if (!traded(ctx, r, st, fresh)) r->stale = true;
    fresh->storage->program = r->program;
    st->memory->storage->program = NULL;
    move_values(r, st, fresh->storage);
    ty_release(st->memory);
    st->memory = fresh;
  }
  return TY_OK;
}

void ty_recording_set_rate(ty_recording *r, int first, int operand, double v) {
  step *k = &r->step[first];
  if (k->rate) {
    k->rate_changed = k->rate_changed || k->rate_now != v;
    k->rate_now = v;
  } else k->call.in[operand].f = v;
}

/* Writes changed settings to the device one by one: a schedule changes one or two. */
static ty_status put_settings(ty_ctx *ctx, step *k) {
  if (!k->set_changed) return TY_OK;
  ty_optim_settings now;
  ty_optim_settings_of(&k->call, &now);
  _Static_assert(offsetof(ty_optim_settings, nesterov) == TY_OPTIM_NUMBERS * sizeof(double), "the numbers come first");
  double number[TY_OPTIM_NUMBERS];
  memcpy(number, &now, sizeof number);
  for (int j = 0; j < TY_OPTIM_NUMBERS; j++) {
    if (number[j] == k->set[j]) continue;
    ty_tensor at = *k->call.settings;
    at.ndim = 0;
    at.offset = j;
    TY_TRY(ty_fill_into(ctx, &at, ty_operand_float(number[j])));
    k->set[j] = number[j];
  }
  k->set_changed = false;
  return TY_OK;
}

ty_status ty_recording_write_rates(ty_ctx *ctx, ty_recording *r) {
  for (int i = 0; i < r->nstep && r->gpu; i++) {
    step *k = &r->step[i];
    if (k->call.settings) TY_TRY(put_settings(ctx, k));
    if (!k->rate || !k->rate_changed) continue;
    TY_TRY(ty_fill_into(ctx, k->rate, ty_operand_float(k->rate_now)));
    k->rate_changed = false;
  }
  return TY_OK;
}

static void let_go(event *e) {
  for (int i = 0; i < e->nin; i++) { ty_release(e->actual[i]); e->actual[i] = e->in[i].t = NULL; }
  for (int j = 0; j < TY_MAXOUT; j++) { ty_release(e->placeholder[j]); e->placeholder[j] = NULL; }
  for (int i = 0; i < e->nleaf; i++) {
    ty_release(e->leaf[i].placeholder);
    e->leaf[i].placeholder = NULL;
    e->leaf[i].given = false;
  }
  for (int i = 0; i < e->nresult; i++) { ty_release(e->result_placeholder[i]); e->result_placeholder[i] = NULL; }
  ty_release(e->target);
  ty_release(e->had);
  ty_node_release(e->node);
  e->target = e->had = NULL;
  e->node = NULL;
  if (e->kind == EVENT_RULE) { ty_free(e->failed); e->failed = NULL; }
}

void ty_recording_let_go(ty_recording *r) {
  for (int i = 0; i < r->nevent; i++) let_go(&r->event[i]);
  for (int i = 0; i < r->nown; i++) ty_take_leaf(r, i, NULL);
}

static void free_event(event *e) {
  let_go(e);
  for (int i = 0; i < e->nleaf; i++) ty_release(e->leaf[i].leaf);
  ty_free(e->in);
  ty_free(e->span);
  ty_free(e->failed);
  ty_free(e->at);
  ty_free(e->leaf);
  ty_free(e->vresult);
  ty_free(e->result_needs);
  ty_free(e->wanted);
  ty_free(e->result_placeholder);
}

bool ty_step_init(step *k, const ty_call *c) {
  *k = (step){.call = *c};
  k->call.settings = NULL;
  k->call.in = ty_malloc(sizeof(ty_operand) * (size_t)TY_MAX(c->nin, 1));
  k->call.at = ty_malloc(sizeof(ty_attr) * (size_t)TY_MAX(c->op->nattr, 1));
  k->vin = ty_malloc(sizeof(int) * (size_t)TY_MAX(c->nin, 1));
  if (!k->call.in || !k->call.at || !k->vin) { ty_step_free(k); return false; }
  if (c->op->nattr) memcpy(k->call.at, c->at, sizeof(ty_attr) * (size_t)c->op->nattr);
  for (int i = 0; i < c->nin; i++) {
    k->call.in[i] = c->in[i];
    k->call.in[i].t = NULL;
    k->vin[i] = -1;
  }
  for (int i = 0; i < TY_MAXOUT; i++) { k->call.out[i] = NULL; k->vout[i] = -1; }
  return true;
}

void ty_step_free(step *k) {
  ty_free(k->call.in);
  ty_free(k->call.at);
  ty_free(k->vin);
  ty_release(k->rate);
  ty_release(k->call.settings);
  *k = (step){.call.in = NULL};
}

void ty_recording_free(ty_recording *r) {
  for (int i = 0; i < r->nentry; i++) ty_release(r->entry[i].grad);
  for (int i = 0; i < r->nevent; i++) free_event(&r->event[i]);
  ty_fuse_free(r);
  for (int i = 0; i < r->nstep; i++) ty_step_free(&r->step[i]);
  for (int i = 0; i < r->nvalue; i++)
    if (r->value[i].grad_of) atomic_fetch_sub_explicit(&r->value[i].t->storage->lent, 1, memory_order_relaxed);
  for (int i = 0; i < r->nvalue; i++) { ty_release(r->value[i].t); ty_release(r->value[i].leaf); ty_release(r->value[i].plain); }
  for (int i = 0; i < r->nstore; i++) {
    if (r->store[i].memory && r->store[i].visible) r->store[i].memory->storage->program = NULL;
    ty_release(r->store[i].memory);
  }
  for (int i = 0; i < r->nblock; i++) ty_release(r->block[i]);
  ty_free(r->block);
  ty_uses_free(&r->writes);
  ty_free(r->input);
  ty_free(r->result);
  ty_free(r->own);
  ty_free(r->store);
  ty_free(r->map.slot);
  ty_free(r->value);
  ty_free(r->step);
  ty_free(r->event);
  ty_free(r->entry);
}
