/* The transport of groups of processes (core/group.h) over MPI: tycho/mpi.so, which is opened when a process group is made.
 *
 * Idea: every exchange is a nonblocking MPI call, which advances while its caller tests it; so no thread is needed, and
 * two processes may each send before they receive. Invariants: MPI is called under one lock, except at
 * its begin and end; an error becomes a text and never lets MPI abort the job. A process that ends well waits for the
 * others (MPI_Finalize); one that fails doesn't, and mpirun ends the others too. */
#define _GNU_SOURCE
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "group.h"
#include "math.h"

#define REDUCTIONS 5

typedef struct { MPI_Request r; ty_message m; int rank, size; void *shares; } request;     /* shares: see divides_first */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ty_transport transport;
static bool over;                          /* the process ends: its other threads are refused */
static MPI_Comm world;
static MPI_Datatype type[TY_NDTYPE];
static MPI_Op own[REDUCTIONS];           /* where none of MPI's fits */
static __thread char text[MPI_MAX_ERROR_STRING + 160];

#define EXCHANGE "MPI (do all processes make the same exchanges? TYCHO_DEBUG=distributed checks)"
static const char *failed(const char *call, int code) {
  char why[MPI_MAX_ERROR_STRING];
  int n;
  if (MPI_Error_string(code, why, &n) != MPI_SUCCESS) snprintf(why, sizeof why, "error %d", code);
  snprintf(text, sizeof text, "%s: %s", call, why);
  return text;
}

/* ---- 16-bit floats, which MPI doesn't know ---- */

static float combine(ty_reduction r, float a, float b) {
  switch (r) {
    case TY_BY_PRODUCT: return a * b;
    case TY_BY_MIN: return a < b || a != a ? a : b;
    case TY_BY_MAX: return a > b || a != a ? a : b;
    default: return a + b;
  }
}

static void halves(ty_reduction r, const uint16_t *in, uint16_t *io, int n, bool bf16) {
  for (int i = 0; i < n; i++)
    io[i] = bf16 ? ty_f32_to_bf16(combine(r, ty_bf16_to_f32(in[i]), ty_bf16_to_f32(io[i])))
      : ty_f32_to_f16(combine(r, ty_f16_to_f32(in[i]), ty_f16_to_f32(io[i])));
}

static void sum_halves(void *in, void *io, int *n, MPI_Datatype *t) { halves(TY_BY_SUM, in, io, *n, *t == type[TY_BF16]); }
static void multiply_halves(void *in, void *io, int *n, MPI_Datatype *t) { halves(TY_BY_PRODUCT, in, io, *n, *t == type[TY_BF16]); }

/* Min and max of all float dtypes. A NaN wins; MPI's own may lose it. */
static void extremes(ty_reduction r, const void *in, void *io, int n, MPI_Datatype t) {
  if (t == MPI_FLOAT) for (int i = 0; i < n; i++) ((float *)io)[i] = combine(r, ((const float *)in)[i], ((float *)io)[i]);
  else if (t == MPI_DOUBLE)
    for (int i = 0; i < n; i++) {
      const double a = ((const double *)in)[i], b = ((double *)io)[i];
      ((double *)io)[i] = r == TY_BY_MIN ? min_f64(a, b) : max_f64(a, b);
    }
  else halves(r, in, io, n, t == type[TY_BF16]);
}
static void min_floats(void *in, void *io, int *n, MPI_Datatype *t) { extremes(TY_BY_MIN, in, io, *n, *t); }
static void max_floats(void *in, void *io, int *n, MPI_Datatype *t) { extremes(TY_BY_MAX, in, io, *n, *t); }

static MPI_Op op_of(const ty_message *m) {
  static const ty_reduction of_bool[REDUCTIONS] = {TY_BY_MAX, TY_BY_MAX, TY_BY_MIN, TY_BY_MIN, TY_BY_MAX};
  const bool extreme = m->reduction == TY_BY_MIN || m->reduction == TY_BY_MAX;
  if (ty_is_16bit(m->dtype) || (extreme && ty_is_float(m->dtype))) return own[m->reduction];
  switch (m->dtype == TY_BOOL ? of_bool[m->reduction] : m->reduction) {
    case TY_BY_PRODUCT: return MPI_PROD;
    case TY_BY_MIN: return MPI_MIN;
    case TY_BY_MAX: return MPI_MAX;
    default: return MPI_SUM;
  }
}

/* For a mean: divides the sum, or each share before the sum. */
static void divide(void *x, ty_dtype d, int64_t n, int size) {
  for (int64_t i = 0; i < n; i++) {
    uint16_t *const h = (uint16_t *)x + i;
    if (d == TY_F32) ((float *)x)[i] /= (float)size;
    else if (d == TY_F64) ((double *)x)[i] /= size;
    else if (d == TY_BF16) *h = ty_f32_to_bf16(ty_bf16_to_f32(*h) / (float)size);
    else *h = ty_f32_to_f16(ty_f16_to_f32(*h) / (float)size);
  }
}

/* The sum of float16 gradients may overflow where their mean doesn't: each process divides its own first. */
static bool divides_first(const ty_message *m) {
  return m->reduction == TY_BY_MEAN && m->dtype == TY_F16 &&
    (m->kind == TY_ALL_REDUCE || m->kind == TY_REDUCE || m->kind == TY_REDUCE_SCATTER);
}

static void drop(request *r) {
  free(r->shares);
  free(r);
}

/* ---- exchanges ---- */

static const char *start(void *comm, int size, const ty_message *m, void **out) {
  const MPI_Comm c = comm ? (MPI_Comm)(intptr_t)comm : world;
  const int n = (int)m->n;
  const MPI_Datatype t = type[m->dtype];
  const bool in_place = m->in == m->out;
  const void *in = in_place ? MPI_IN_PLACE : m->in;
  int e = MPI_SUCCESS;
  if (m->n > INT_MAX || (m->kind == TY_ALL_TO_ALL && m->n * size > INT_MAX))
    return "a tensor of more than 2^31 - 1 elements: send it in parts";
  request *r = malloc(sizeof *r);
  if (!r) return "out of memory";
  *r = (request){MPI_REQUEST_NULL, *m, 0, size, NULL};
  if (divides_first(m)) {
    const int64_t all = m->kind == TY_REDUCE_SCATTER ? m->n * size : m->n;
    r->shares = malloc((size_t)all * 2 + 1);
    if (!r->shares) { drop(r); return "out of memory"; }
    memcpy(r->shares, m->in, (size_t)all * 2);
    divide(r->shares, m->dtype, all, size);
    in = r->shares;
  }
  pthread_mutex_lock(&lock);
  if (over) { pthread_mutex_unlock(&lock); drop(r); return "the process is ending"; }
  MPI_Comm_rank(c, &r->rank);
  const bool root = m->peer == r->rank;
  const bool there = m->kind == TY_ALL_GATHER && m->in == (char *)m->out + m->n * r->rank * ty_dtype_size[m->dtype];
  /* the result is, or starts from, the input */
  if ((m->kind == TY_BROADCAST && root) || (m->kind == TY_REDUCE && !root))
    if (!in_place) memcpy(m->out, m->in, (size_t)m->n * ty_dtype_size[m->dtype]);
  switch (m->kind) {
    case TY_ALL_REDUCE: e = MPI_Iallreduce(in, m->out, n, t, op_of(m), c, &r->r); break;
    case TY_REDUCE: e = MPI_Ireduce(root || r->shares ? in : m->in, root ? m->out : NULL, n, t, op_of(m), m->peer, c, &r->r); break;
    case TY_BROADCAST: e = MPI_Ibcast(m->out, n, t, m->peer, c, &r->r); break;
    case TY_ALL_GATHER: e = MPI_Iallgather(there ? MPI_IN_PLACE : m->in, n, t, m->out, n, t, c, &r->r); break;
    case TY_REDUCE_SCATTER: e = MPI_Ireduce_scatter_block(in, m->out, n, t, op_of(m), c, &r->r); break;
    case TY_ALL_TO_ALL: e = MPI_Ialltoall(in, n, t, m->out, n, t, c, &r->r); break;
    case TY_SEND: e = MPI_Isend(m->in, n, t, m->peer, m->tag, c, &r->r); break;
    case TY_RECV: e = MPI_Irecv(m->out, n, t, m->peer, m->tag, c, &r->r); break;
  }
  pthread_mutex_unlock(&lock);
  if (e != MPI_SUCCESS) { drop(r); return failed(EXCHANGE, e); }
  *out = r;
  return NULL;
}

static const char *test(void *req, bool *done) {
  request *r = req;
  MPI_Status status;
  int flag = 0, got = 0;
  pthread_mutex_lock(&lock);
  if (over) { pthread_mutex_unlock(&lock); drop(r); return "the process is ending"; }
  const int e = MPI_Test(&r->r, &flag, &status);
  if (e == MPI_SUCCESS && flag && r->m.kind == TY_RECV) MPI_Get_count(&status, type[r->m.dtype], &got);
  pthread_mutex_unlock(&lock);
  *done = flag;
  if (e == MPI_SUCCESS && !flag) return NULL;
  const ty_message m = r->m;
  const int rank = r->rank, size = r->size;
  drop(r);
  if (e != MPI_SUCCESS) return failed(EXCHANGE, e);
  if (m.kind == TY_RECV && got != m.n) {
    snprintf(text, sizeof text, "rank %d sent %d elements where %lld were expected", m.peer, got, (long long)m.n);
    return text;
  }
  if (m.reduction == TY_BY_MEAN && !divides_first(&m) &&
      (m.kind == TY_ALL_REDUCE || m.kind == TY_REDUCE_SCATTER || (m.kind == TY_REDUCE && m.peer == rank)))
    divide(m.out, m.dtype, m.n, size);
  return NULL;
}

static const char *group_new(const int *ranks, int n, void **comm, int *rank) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm c = MPI_COMM_NULL;
  pthread_mutex_lock(&lock);
  int e = MPI_Comm_group(world, &all);
  if (e == MPI_SUCCESS) e = MPI_Group_incl(all, n, ranks, &some);
  if (e == MPI_SUCCESS) e = MPI_Comm_create(world, some, &c);
  if (e == MPI_SUCCESS && c != MPI_COMM_NULL) {
    MPI_Comm_rank(c, rank);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  }
  if (some != MPI_GROUP_NULL) MPI_Group_free(&some);
  if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
  pthread_mutex_unlock(&lock);
  if (e != MPI_SUCCESS) return failed("MPI_Comm_create", e);
  *comm = c == MPI_COMM_NULL ? NULL : (void *)(intptr_t)c;       /* MPI_Comm: a pointer or a number */
  return NULL;
}

static const char *again(void *comm, void **out) {
  MPI_Comm c;
  pthread_mutex_lock(&lock);
  const int e = MPI_Comm_dup(comm ? (MPI_Comm)(intptr_t)comm : world, &c);
  if (e == MPI_SUCCESS) MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  pthread_mutex_unlock(&lock);
  if (e != MPI_SUCCESS) return failed("MPI_Comm_dup", e);
  *out = (void *)(intptr_t)c;
  return NULL;
}

/* ---- begin and end ---- */

static void at_exit(int status, void *unused) {
  int done = 1;
  (void)unused;
  if (status != 0 || MPI_Finalized(&done) != MPI_SUCCESS || done) return;
  pthread_mutex_lock(&lock);
  over = true;
  pthread_mutex_unlock(&lock);
  MPI_Finalize();
}

static const char *begin(void) {
  MPI_User_function *const combine_own[REDUCTIONS] = {sum_halves, sum_halves, multiply_halves, min_floats, max_floats};
  MPI_Comm machine;
  int there = 0, level;
  MPI_Initialized(&there);
  if (!there) {                            /* else the host has begun MPI and ends it */
    const int e = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (e != MPI_SUCCESS) return failed("MPI_Init", e);
    on_exit(at_exit, NULL);
  } else MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED) return "this MPI can't be called from several threads";
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int e = MPI_Comm_dup(MPI_COMM_WORLD, &world);          /* a host's own messages don't mix with ours */
  if (e == MPI_SUCCESS) e = MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  if (e != MPI_SUCCESS) return failed("MPI_Comm_dup", e);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world, &transport.rank);
  MPI_Comm_size(world, &transport.size);
  MPI_Comm_rank(machine, &transport.local_rank);
  MPI_Comm_size(machine, &transport.local_size);
  MPI_Comm_free(&machine);
  const MPI_Datatype known[TY_NDTYPE] = {[TY_F32] = MPI_FLOAT, [TY_F64] = MPI_DOUBLE, [TY_I32] = MPI_INT32_T,
    [TY_I64] = MPI_INT64_T, [TY_U8] = MPI_UINT8_T, [TY_BOOL] = MPI_UINT8_T};
  memcpy(type, known, sizeof type);
  for (int d = TY_F16; d <= TY_BF16; d++) {
    MPI_Type_contiguous(2, MPI_BYTE, &type[d]);
    MPI_Type_commit(&type[d]);
  }
  for (int r = 0; r < REDUCTIONS; r++) MPI_Op_create(combine_own[r], 1, &own[r]);
  transport.group_new = group_new;
  transport.again = again;
  transport.start = start;
  transport.test = test;
  return NULL;
}

__attribute__((visibility("default"))) const char *ty_mpi_open(uint32_t interface, const ty_transport **out) {
  if (interface != TY_INTERFACE) return "it was built with another version of Tycho's core: rebuild both";
  const char *why = transport.start ? NULL : begin();
  *out = &transport;
  return why;
}
