/* Computes values again where they are read, instead of storing them.
 *
 * Idea: a value that one kernel makes and other kernels read (forward for backward) needs no memory if these can compute it from tensors
 * that they read anyway, or from one other that they read instead of it. Invariant: what it is computed from is unchanged in between. */
#include <string.h>
#include "fuse.h"

#define DEEP 8             /* most steps that are done again for one value */

/* writer: by store, its only writer, -1: none, -2: several; at: by step, its group. repeats: by step, the groups that do it again, a list
 * in `group` and `next` that begins there; -1: its end. seen: by group, the last search that came to it. */
typedef struct {
  ty_recording *r;
  int *writer, *at, *repeats, *group, *next, *seen;
  int nrepeat, room[2], searches;
  ty_uses reads;
} finder;

/* Whether a group reads the store. */
static bool touches(const finder *f, int to, int store) {
  const group *g = &f->r->group[to];
  for (int i = f->reads.first[store]; i < f->reads.first[store + 1]; i++) {
    const int q = f->reads.step[i];
    if (f->at[q] == to) return true;
    for (int k = 0; k < g->nagain; k++) if (g->step[k] == q) return true;
  }
  return false;
}

/* Whether a step costs little compared with a read of memory. On a GPU every step does. */
static bool cheap(const step *k) {
  return k->backend->gpu >= 0 || ty_is_copy(k->call.op->id) || !k->call.op->costly;
}

static bool written_between(const finder *f, int store, int after, int last_group) {
  const ty_uses *w = &f->r->writes;
  for (int i = w->first[store]; i < w->first[store + 1]; i++)
    if (w->step[i] > after && f->at[w->step[i]] <= last_group) return true;
  return false;
}

/* Whether group `to` can compute step w's result, by steps added to list. more: counts full-size tensors that it doesn't read yet. */
static bool collect(const finder *f, int w, int to, int *list, int *n, int *more) {
  const ty_recording *r = f->r;
  const step *k = &r->step[w];
  const group *g = &r->group[to];
  for (int i = 0; i < *n; i++)
    if (list[i] == w) return true;
  if (*n == DEEP || !cheap(k) || (k->call.op->cls != TY_C_POINTWISE && !ty_is_copy(k->call.op->id)) ||
      k->backend != r->step[g->step[0]].backend)
    return false;
  int64_t numel = 1;
  for (int i = 0; i < g->ndim; i++) numel *= g->shape[i];
  const ty_tensor *o = &r->value[k->vout[0]].like;
  bool even = ty_is_flat(o, numel) && ty_numel(o) == numel;
  for (int j = 0; j < k->call.nin; j++)
    even = even && (k->vin[j] < 0 || !ty_reads(k->call.op, j) || ty_is_flat(&r->value[k->vin[j]].like, numel));
  if (!even && !TY_SAME_SHAPE(g, o)) return false;
  list[(*n)++] = w;
  for (int j = 0; j < k->call.nin; j++) {
    if (k->vin[j] < 0 || !ty_reads(k->call.op, j)) continue;
    const int s = r->value[k->vin[j]].store;
    if (written_between(f, s, w, to)) return false;
    if (r->store[s].unwritten) {           /* it isn't stored, so it is computed again too */
      if (f->writer[s] < 0 || f->writer[s] >= w || !ty_same_elements(r, r->step[f->writer[s]].vout[0], k->vin[j]) ||
          !collect(f, f->writer[s], to, list, n, more))
        return false;
    } else if (!touches(f, to, s) && ty_numel(&r->value[k->vin[j]].like) == numel) ++*more;
  }
  return true;
}

static bool add(finder *f, int to, const int *list, int n) {
  group *g = &f->r->group[to];
  int *steps = ty_malloc(sizeof(int) * (size_t)(g->nstep + n));
  if (!steps || !ty_grow(&f->group, f->nrepeat + n, &f->room[0], sizeof(int)) ||
      !ty_grow(&f->next, f->nrepeat + n, &f->room[1], sizeof(int))) { ty_free(steps); return false; }
  int again = 0, at = 0;
  for (int i = 0; i < g->nagain + n; i++) {              /* the steps of both lists, each once, in order */
    const int next = i < g->nagain ? g->step[i] : list[i - g->nagain];
    bool known = false;
    for (int k = 0; k < again; k++) known = known || steps[k] == next;
    if (known) continue;
    int k = again++;
    for (; k > 0 && steps[k - 1] > next; k--) steps[k] = steps[k - 1];
    steps[k] = next;
    if (i < g->nagain) continue;
    f->group[f->nrepeat] = to;
    f->next[f->nrepeat] = f->repeats[next];
    f->repeats[next] = f->nrepeat++;
  }
  at = again;
  for (int i = g->nagain; i < g->nstep; i++) steps[at++] = g->step[i];
  ty_free(g->step);
  g->step = steps;
  g->nstep = at;
  g->nagain = again;
  return true;
}

/* Whether group i, which reads store s, can compute it, by steps added to list. */
static bool can(const finder *f, int s, int i, int *list, int *n) {
  const ty_recording *r = f->r;
  const group *g = &r->group[i];
  const int w = f->writer[s];
  int more = 0;
  if (!g->pointwise || i < f->at[w] || TY_FUSED_PER_STEP * (g->nstep + DEEP) > TY_FUSED_NODES) return false;
  for (int k = f->reads.first[s]; k < f->reads.first[s + 1]; k++) {
    const step *q = &r->step[f->reads.step[k]];
    if (f->at[f->reads.step[k]] != i) continue;
    for (int j = 0; j < q->call.nin; j++)
      if (q->vin[j] >= 0 && r->value[q->vin[j]].store == s && !ty_same_elements(r, q->vin[j], r->step[w].vout[0])) return false;
  }
  return collect(f, w, i, list, n, &more) && more <= 1;
}

/* Whether every group that reads store s, apart from its writer's, can compute it. If so, these do from now on. */
static bool try(finder *f, int s, bool *ok) {
  const int home = f->at[f->writer[s]];
  for (int pass = 0; pass < 2; pass++) {
    f->searches++;
    for (int k = f->reads.first[s]; k < f->reads.first[s + 1]; k++) {
      const int q = f->reads.step[k];
      for (int i = f->at[q], e = f->repeats[q]; ; i = f->group[e], e = f->next[e]) {   /* step q's group, and those that repeat it */
        int list[DEEP], n = 0;
        if (i != home && f->seen[i] != f->searches) {
          f->seen[i] = f->searches;
          if (!can(f, s, i, list, &n)) return false;
          if (pass && !add(f, i, list, n)) return *ok = false;
        }
        if (e < 0) break;
      }
    }
  }
  return true;
}

ty_status ty_fuse_again(ty_ctx *ctx, ty_recording *r) {
  const size_t stores = sizeof(int) * (size_t)(r->nstore + 1), steps = sizeof(int) * (size_t)(r->nstep + 1);
  finder f = {.r = r, .writer = ty_malloc(stores), .at = ty_malloc(steps), .repeats = ty_malloc(steps),
    .seen = ty_malloc(sizeof(int) * (size_t)(r->ngroup + 1))};
  bool ok = f.writer && f.at && f.repeats && f.seen && ty_find_uses(ctx, r, false, &f.reads) == TY_OK;
  for (int i = 0; i < r->nstep && ok; i++) f.repeats[i] = -1;
  for (int i = 0; i < r->ngroup && ok; i++) f.seen[i] = 0;
  for (int i = 0; i < r->nstore && ok; i++) f.writer[i] = -1;
  for (int i = 0; i < r->ngroup && ok; i++)
    for (int k = 0; k < r->group[i].nstep; k++) {
      const int at = r->group[i].step[k];
      const step *q = &r->step[at];
      f.at[at] = i;
      for (int j = 0; j < TY_MAXOUT; j++)
        if (q->vout[j] >= 0) { int *w = &f.writer[r->value[q->vout[j]].store]; *w = *w == -1 && j == 0 ? at : -2; }
      for (int j = 0; j < q->call.nin; j++)
        if (q->vin[j] >= 0 && ty_mutates_operand(&q->call, j)) f.writer[r->value[q->vin[j]].store] = -2;
    }
  for (int s = 0; s < r->nstore && ok; s++) {
    store *st = &r->store[s];
    if (!st->internal || st->pinned || st->unwritten || f.writer[s] < 0) continue;
    const step *w = &r->step[f.writer[s]];
    if (w->call.op->nout != 1 || !r->group[f.at[f.writer[s]]].pointwise) continue;
    const bool read = f.reads.first[s] < f.reads.first[s + 1], carried = read && f.reads.step[f.reads.first[s]] <= f.writer[s];
    if (!carried && try(&f, s, &ok)) st->unwritten = true;           /* carried: read before it is written */
  }
  int *const made[] = {f.writer, f.at, f.repeats, f.seen, f.group, f.next};
  ty_uses_free(&f.reads);
  for (int i = 0; i < (int)(sizeof made / sizeof *made); i++) ty_free(made[i]);
  return ok ? TY_OK : ty_program_no_memory(ctx);
}
