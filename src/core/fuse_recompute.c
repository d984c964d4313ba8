/* Computes values again where they are read, instead of storing them.
 *
 * Idea: a value that one kernel makes and other kernels read (forward for backward) needs no memory if these can compute it from tensors
 * that they read anyway, or from one other that they read instead of it. Invariant: what it is computed from is unchanged in between. */
#include <string.h>
#include "fuse.h"

#define DEEP 8             /* most steps that are done again for one value */

typedef struct { ty_recording *r; int *writer, *at; } finder;    /* by store: its only writer, -1: none, -2: several; by step: its group */

static bool touches(const ty_recording *r, const group *g, int store) {
  for (int i = 0; i < g->nstep; i++) {
    const step *k = &r->step[g->step[i]];
    for (int j = 0; j < k->call.nin; j++)
      if (k->vin[j] >= 0 && ty_reads(k->call.op, j) && r->value[k->vin[j]].store == store) return true;
  }
  return false;
}

/* Whether a step costs little compared with a read of memory. On a GPU every step does. */
static bool cheap(const step *k) {
  if (k->backend->gpu >= 0 || ty_is_copy(k->call.op->id)) return true;
  for (const char *m = k->call.op->expr; (m = strstr(m, "M(")); m += 2)
    if (strncmp(m, "M(max)", 6) && strncmp(m, "M(min)", 6) && strncmp(m, "M(clamp)", 8) && strncmp(m, "M(abs)", 6)) return false;
  return true;
}

static bool written_between(const finder *f, int store, int after, int last_group) {
  for (int i = after + 1; i < f->r->nstep; i++)
    if (f->at[i] <= last_group && ty_writes(f->r, &f->r->step[i], store)) return true;
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
    } else if (!touches(r, g, s) && ty_numel(&r->value[k->vin[j]].like) == numel) ++*more;
  }
  return true;
}

static bool add(ty_recording *r, int to, const int *list, int n) {
  group *g = &r->group[to];
  int *steps = ty_malloc(sizeof(int) * (size_t)(g->nstep + n));
  if (!steps) return false;
  int again = 0, at = 0;
  for (int i = 0; i < g->nagain + n; i++) {              /* the steps of both lists, each once, in order */
    const int next = i < g->nagain ? g->step[i] : list[i - g->nagain];
    bool known = false;
    for (int k = 0; k < again; k++) known = known || steps[k] == next;
    if (known) continue;
    int k = again++;
    for (; k > 0 && steps[k - 1] > next; k--) steps[k] = steps[k - 1];
    steps[k] = next;
  }
  at = again;
  for (int i = g->nagain; i < g->nstep; i++) steps[at++] = g->step[i];
  ty_free(g->step);
  g->step = steps;
  g->nstep = at;
  g->nagain = again;
  return true;
}

/* Whether every group that reads store s, apart from its writer's, can compute it. If so, these do from now on. */
static bool try(const finder *f, int s, bool *ok) {
  ty_recording *r = f->r;
  const int w = f->writer[s];
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < r->ngroup; i++) {
      int list[DEEP], n = 0, more = 0;
      group *g = &r->group[i];
      if (i == f->at[w] || !touches(r, g, s)) continue;
      if (!g->pointwise || i < f->at[w] || TY_FUSED_PER_STEP * (g->nstep + DEEP) > TY_FUSED_NODES) return false;
      for (int k = g->nagain; k < g->nstep; k++) {
        const step *q = &r->step[g->step[k]];
        for (int j = 0; j < q->call.nin; j++)
          if (q->vin[j] >= 0 && r->value[q->vin[j]].store == s && !ty_same_elements(r, q->vin[j], r->step[w].vout[0])) return false;
      }
      if (!collect(f, w, i, list, &n, &more) || more > 1) return false;
      if (pass && !add(r, i, list, n)) { *ok = false; return false; }
    }
  return true;
}

ty_status ty_fuse_again(ty_ctx *ctx, ty_recording *r) {
  finder f = {.r = r, .writer = ty_malloc(sizeof(int) * (size_t)(r->nstore + 1)), .at = ty_malloc(sizeof(int) * (size_t)(r->nstep + 1))};
  bool ok = f.writer && f.at;
  for (int i = 0; i < r->nstore && ok; i++) f.writer[i] = -1;
  for (int i = 0; i < r->ngroup && ok; i++)
    for (int k = 0; k < r->group[i].nstep; k++) {
      const int at = r->group[i].step[k];
      const step *q = &r->step[at];
      f.at[at] = i;
      for (int j = 0; j < TY_MAXOUT; j++)
        if (q->vout[j] >= 0) { int *w = &f.writer[r->value[q->vout[j]].store]; *w = *w == -1 && j == 0 ? at : -2; }
      for (int j = 0; j < q->call.nin; j++)
        if (q->vin[j] >= 0 && ty_mutates(&q->call, j)) f.writer[r->value[q->vin[j]].store] = -2;
    }
  for (int s = 0; s < r->nstore && ok; s++) {
    store *st = &r->store[s];
    if (!st->internal || st->pinned || st->unwritten || f.writer[s] < 0) continue;
    const step *w = &r->step[f.writer[s]];
    if (w->call.op->nout != 1 || !r->group[f.at[f.writer[s]]].pointwise) continue;
    bool carried = false;                  /* read before it is written */
    for (int j = 0; j < w->call.nin; j++)
      carried = carried || (w->vin[j] >= 0 && r->value[w->vin[j]].store == s && ty_reads(w->call.op, j));
    for (int i = 0; i < f.writer[s] && !carried; i++) {
      const group one = {.step = (int[]){i}, .nstep = 1};
      carried = touches(r, &one, s);
    }
    if (!carried && try(&f, s, &ok)) st->unwritten = true;
  }
  ty_free(f.writer);
  ty_free(f.at);
  return ok ? TY_OK : ty_program_no_memory(ctx);
}
