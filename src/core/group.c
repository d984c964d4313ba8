/* Groups of processes (group.h), and the op `collective` on the CPU.
 *
 * Idea: waiting polls, because MPI makes progress only within calls, and backs off the longer it lasts. Invariant: groups are never freed,
 * because all processes number them alike. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "group.h"
#include "shape.h"

static const ty_transport *transport;
static ty_group groups[TY_MAXGROUP];
static _Atomic int ngroup;                 /* raised only once the new group is complete */
static _Atomic double timeout = 1800;
static _Atomic bool compares;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void ty_groups_open(const ty_transport *t) {
  pthread_mutex_lock(&lock);
  if (!transport) {
    groups[0] = (ty_group){.rank = t->rank, .size = t->size};
    transport = t;
    ngroup = 1;
  }
  pthread_mutex_unlock(&lock);
}

const ty_transport *ty_group_transport(void) { return transport; }
void ty_groups_set(double seconds, bool compare) { timeout = seconds; compares = compare; }

ty_status ty_group_new(ty_ctx *ctx, const int *ranks, int n, int *id) {
  ty_group g = {.size = n};
  pthread_mutex_lock(&lock);
  const char *why = ngroup == TY_MAXGROUP ? "there are too many groups" : transport->group_new(ranks, n, &g.comm, &g.rank);
  if (!why) {
    groups[*id = ngroup] = g;
    ngroup++;
  }
  pthread_mutex_unlock(&lock);
  return why ? ty_error(ctx, "new_group: %s", why) : TY_OK;
}

ty_status ty_group_again(ty_ctx *ctx, const ty_group *g, ty_group *out) {
  *out = (ty_group){.rank = g->rank, .size = g->size};
  const char *why = transport->again(g->comm, &out->comm);
  return why ? ty_error(ctx, "distributed: %s", why) : TY_OK;
}

ty_group *ty_group_at(int64_t id) {
  return id == 0 ? (ngroup ? &groups[0] : NULL) : id > 0 && id < ngroup && groups[id].comm ? &groups[id] : NULL;
}

/* ---- waiting ---- */

double ty_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ty_status exchange_start(ty_ctx *ctx, const ty_group *g, const ty_message *m, void **request) {
  const char *why = transport->start(g->comm, g->size, m, request);
  return why ? ty_error(ctx, "distributed: %s", why) : TY_OK;
}

ty_status ty_exchange_test(ty_ctx *ctx, void **request, bool wait) {
  const double from = ty_now();
  for (long turn = 0; *request; turn++) {
    bool done = false;
    const char *why = transport->test(*request, &done);
    if (done || why) *request = NULL;
    if (why) return ty_error(ctx, "distributed: %s", why);
    if (done || !wait) break;
    sched_yield();
    const double waited = turn % 64 == 63 ? ty_now() - from : 0;
    if (waited < 0.02) continue;           /* up to 20 ms only yield; later a pause after every 64 polls costs little */
    nanosleep(&(struct timespec){0, waited < 1 ? 50000 : 500000}, NULL);
    if (waited > timeout) return ty_error(ctx, "distributed: the other processes haven't reached this call within %g s", timeout);
  }
  return TY_OK;
}

ty_status ty_exchange(ty_ctx *ctx, const ty_group *g, const ty_message *m, bool *pending) {
  void *request = NULL;
  ty_status s = exchange_start(ctx, g, m, &request);
  if (s == TY_OK) s = ty_exchange_test(ctx, &request, true);
  *pending = request != NULL;
  return s;
}

static const char *text_of(const int64_t what[5], char *out, size_t size) {
  static const char *const kind[] = {TY_COLLECTIVES(TY_AS_WORD)}, *const reduction[] = {TY_REDUCTIONS(TY_AS_WORD)};
  snprintf(out, size, "%s (%s, root %lld) of %lld %s", kind[what[0]], reduction[what[1]], (long long)what[2],
    (long long)what[3], ty_dtype_names[what[4]]);
  return out;
}

ty_status ty_exchange_agreed(ty_ctx *ctx, const ty_group *g, const ty_message *m) {
  if (!compares || m->kind == TY_SEND || m->kind == TY_RECV) return TY_OK;
  const int64_t mine[5] = {m->kind, m->reduction, m->peer, m->n, m->dtype};
  int64_t *all = ty_malloc(sizeof mine * (size_t)(g->size + 1)), *const sent = all ? all + 5 * g->size : NULL;
  if (!all) return ty_no_memory(ctx, "distributed");
  memcpy(sent, mine, sizeof mine);
  const ty_message ask = {TY_ALL_GATHER, TY_BY_SUM, TY_I64, 0, 0, sent, all, 5};
  bool pending;
  ty_status s = ty_exchange(ctx, g, &ask, &pending);
  char here[120], there[120];
  for (int k = 0; k < g->size && s == TY_OK; k++)
    if (memcmp(mine, all + 5 * k, sizeof mine))
      s = ty_error(ctx, "distributed: process %d of the group is about to do %s, but this one %s", k,
        text_of(all + 5 * k, there, sizeof there), text_of(mine, here, sizeof here));
  if (!pending) ty_free(all);
  return s;
}

/* ---- the op ---- */

ty_status ty_infer_collective(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  const ty_group *g = ty_group_at(c->at[TY_AT_collective_group].i);
  const ty_collective kind = (ty_collective)c->at[TY_AT_collective_kind].i;
  ty_meta *m = &c->meta[0];
  if (!g) return ty_error(c->ctx, ngroup ? "distributed: this process isn't in the group" : "distributed: call init_process_group() first");
  if (c->at[TY_AT_collective_peer].i < 0 || c->at[TY_AT_collective_peer].i >= g->size)
    return ty_error(c->ctx, "distributed: rank %lld doesn't exist; ranks are 0 to %d",
      (long long)c->at[TY_AT_collective_peer].i, g->size - 1);
  if (c->at[TY_AT_collective_reduction].i == TY_BY_MEAN && !ty_is_float(x->dtype))
    return ty_error(c->ctx, "distributed: the mean of dtype %s isn't defined", ty_dtype_names[x->dtype]);
  ty_set_shape(m, x->dtype, x->ndim, x->shape);
  if (kind == TY_SEND) { m->ndim = 1; m->shape[0] = 0; }
  if (kind == TY_ALL_GATHER) {
    if (x->ndim == 0) m->shape[0] = m->ndim = 1;
    m->shape[0] *= g->size;
  }
  if (kind == TY_REDUCE_SCATTER || kind == TY_ALL_TO_ALL) {
    if (x->ndim == 0 || x->shape[0] % g->size)
      return ty_error(c->ctx, "distributed: dim 1 of shape %s must be a multiple of %d, the number of processes",
        ty_shape_of(x), g->size);
    if (kind == TY_REDUCE_SCATTER) m->shape[0] /= g->size;
  }
  return TY_OK;
}

ty_status ty_message_of(ty_call *c, ty_message *m, ty_tensor **in, ty_tensor **out) {
  const ty_collective kind = (ty_collective)c->at[TY_AT_collective_kind].i;
  const bool of_parts = kind == TY_REDUCE_SCATTER || kind == TY_ALL_TO_ALL;
  ty_tensor *x = c->in[0].t, *y = c->out[0];
  *in = *out = NULL;
  if (kind != TY_RECV) TY_TRY(ty_contiguous(c->ctx, x, in));
  *out = ty_retain(y);                       /* contiguous: apply made it, or chose x because it is */
  *m = (ty_message){kind, (ty_reduction)c->at[TY_AT_collective_reduction].i, x->dtype, (int)c->at[TY_AT_collective_peer].i,
                    (int)c->at[TY_AT_collective_tag].i, *in ? ty_data(*in) : NULL, kind == TY_SEND ? NULL : ty_data(y),
                    of_parts ? ty_numel(x) / ty_group_at(c->at[TY_AT_collective_group].i)->size : ty_numel(x)};
  return TY_OK;
}

ty_status ty_cpu_collective(ty_call *c) {
  ty_message m;
  ty_tensor *in, *out;
  bool pending = false;
  ty_status s = ty_message_of(c, &m, &in, &out);
  const ty_group *g = ty_group_at(c->at[TY_AT_collective_group].i);
  if (s == TY_OK) s = ty_exchange_agreed(c->ctx, g, &m);
  if (s == TY_OK) s = ty_exchange(c->ctx, g, &m, &pending);
  if (pending) return s;                     /* in and out leak: the exchange may still use their memory */
  ty_release(in);
  ty_release(out);
  return s;
}

ty_status ty_collective_start(ty_ctx *ctx, ty_tensor *x, ty_attr *at, ty_tensor *to, void **request, ty_tensor **in, ty_tensor **out) {
  ty_operand operand = ty_operand_tensor(x);
  ty_call c = {.ctx = ctx, .op = &ty_ops[TY_OP_collective], .in = &operand, .nin = 1, .at = at, .out = {to}};
  ty_message m;
  *in = *out = NULL;
  TY_TRY(c.op->infer(&c));
  if (ty_device_of(x)->gpu >= 0 || ty_device_of(to)->gpu >= 0) return ty_error(ctx, "distributed: tensors must be on the cpu here");
  if (at[TY_AT_collective_kind].i != TY_SEND && (to->dtype != c.meta[0].dtype || !TY_SAME_SHAPE(to, &c.meta[0])))
    return ty_error(ctx, "distributed: the result must be %s of shape %s, got %s of shape %s",
      ty_dtype_names[c.meta[0].dtype], ty_shape_text(c.meta[0].shape, c.meta[0].ndim), ty_dtype_names[to->dtype],
      ty_shape_of(to));
  if (at[TY_AT_collective_kind].i != TY_SEND && !ty_is_contiguous(to)) return ty_error(ctx, "distributed: the result must be contiguous");
  ty_status s = ty_message_of(&c, &m, in, out);
  if (s == TY_OK) s = ty_exchange_agreed(ctx, ty_group_at(at[TY_AT_collective_group].i), &m);
  if (s == TY_OK) s = exchange_start(ctx, ty_group_at(at[TY_AT_collective_group].i), &m, request);
  if (s == TY_OK && at[TY_AT_collective_kind].i != TY_SEND) ty_changed(to);
  if (s != TY_OK) { ty_release(*in); ty_release(*out); *in = *out = NULL; }
  return s;
}
