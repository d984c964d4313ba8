/* See timed_plans.h. One list under one lock, searched only when a plan is made. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "timed_plans.h"

#define HEAD 4                               /* words that begin an entry: library, gpu, the problem's length, the plan's length */
#define MOST ((size_t)1 << 18)               /* words: a limit, since shapes may differ from call to call */
#define ROUNDS 5

static int64_t *list;                        /* entries one after another */
static size_t count, room;                   /* words */
static atomic_uint set_so_far;               /* read for each product, so without the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool ty_times_plans(int gpu) { return ty_core->flags->cudnn_benchmark && !ty_core->flags->deterministic && !ty_captures(gpu); }

double ty_time_runs(ty_stream *s, bool (*run)(void *with), void *with) {
  cudaEvent_t from, to;
  float ms = 0;
  if (cudaEventCreateWithFlags(&from, cudaEventDefault) != cudaSuccess) return -1;
  if (cudaEventCreateWithFlags(&to, cudaEventDefault) != cudaSuccess) { cudaEventDestroy(from); return -1; }
  bool ok = run(with) && cudaEventRecord(from, s->s) == cudaSuccess;         /* the first run warms up */
  for (int i = 0; i < ROUNDS && ok; i++) ok = run(with);
  ty_cuda_count_sync();
  ok = ok && cudaEventRecord(to, s->s) == cudaSuccess && cudaEventSynchronize(to) == cudaSuccess &&
    cudaEventElapsedTime(&ms, from, to) == cudaSuccess;
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  return ok ? ms : -1;
}

static size_t length_of(const int64_t *entry) { return (size_t)(HEAD + entry[2] + entry[3]); }

int ty_timed_find(ty_plan_library library, int gpu, const int64_t *problem, int n, int64_t saved[TY_PLAN_WORDS]) {
  int found = 0;
  if (!ty_core->flags->cudnn_benchmark || ty_core->flags->deterministic) return 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < count; i += length_of(list + i)) {      /* the last entry counts: the library refused older ones */
    const int64_t *e = list + i;
    if (e[0] != library || e[1] != gpu || e[2] != n || memcmp(e + HEAD, problem, sizeof(int64_t) * (size_t)n)) continue;
    found = (int)e[3];
    memcpy(saved, e + HEAD + n, sizeof(int64_t) * (size_t)found);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

void ty_timed_keep(ty_plan_library library, int gpu, const int64_t *problem, int n, const int64_t *saved, int nplan) {
  const size_t more = (size_t)(HEAD + n + nplan);
  if (!ty_core->flags->cudnn_benchmark || ty_core->flags->deterministic || n > TY_PLAN_WORDS || nplan < 1 || nplan > TY_PLAN_WORDS) return;
  pthread_mutex_lock(&lock);
  if (count + more > room && count + more <= MOST) {
    int64_t *grown = realloc(list, sizeof(int64_t) * 2 * (count + more));
    if (grown) { list = grown; room = 2 * (count + more); }
  }
  if (count + more <= room) {
    int64_t *e = list + count;
    e[0] = library;
    e[1] = gpu;
    e[2] = n;
    e[3] = nplan;
    memcpy(e + HEAD, problem, sizeof(int64_t) * (size_t)n);
    memcpy(e + HEAD + n, saved, sizeof(int64_t) * (size_t)nplan);
    count += more;
  }
  pthread_mutex_unlock(&lock);
}

unsigned ty_timed_set_so_far(void) { return set_so_far; }

size_t ty_timed_get(int64_t *words, size_t fit) {
  pthread_mutex_lock(&lock);
  const size_t n = count;
  if (n <= fit && n) memcpy(words, list, sizeof(int64_t) * n);
  pthread_mutex_unlock(&lock);
  return n;
}

ty_status ty_timed_set(ty_ctx *ctx, const int64_t *words, size_t n) {
  for (size_t i = 0; i < n; i += length_of(words + i)) {
    const int64_t *e = words + i;
    if (n - i < HEAD || e[0] < 0 || e[0] >= TY_NPLANS || e[1] < 0 || e[1] >= TY_MAXGPU || e[2] < 1 || e[2] > TY_PLAN_WORDS ||
        e[3] < 1 || e[3] > TY_PLAN_WORDS || n - i < length_of(e))
      return ty_error(ctx, "words %zu and on, of %zu, are no timed plan", i + 1, n);
  }
  int64_t *copy = n ? malloc(sizeof(int64_t) * n) : NULL;
  if (n && !copy) return ty_no_memory(ctx, NULL);
  if (n) memcpy(copy, words, sizeof(int64_t) * n);
  pthread_mutex_lock(&lock);
  free(list);
  list = copy;
  count = room = n;
  set_so_far++;
  pthread_mutex_unlock(&lock);
  return TY_OK;
}
