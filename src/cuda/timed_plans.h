/* Keeps the plans of cuBLASLt and cuDNN that timing has chosen (backends.cudnn.benchmark).
 *
 * Idea: timing may choose another plan each time, and another plan rounds differently. So a plan that was chosen once is kept as long as
 * the process lives, is saved with checkpoints, and is used again by a run resumed from one. Problems and plans are a few words, whose
 * meaning only their library knows. */
#ifndef TY_TIMED_PLANS_H
#define TY_TIMED_PLANS_H
#include "cuda.h"

#define TY_PLAN_WORDS 88                     /* words of a problem or of a plan, at most */
#define TY_PLANS_TIMED 8                     /* how many plans are timed for a problem, at most */
typedef enum { TY_PLANS_BLAS, TY_PLANS_DNN, TY_NPLANS } ty_plan_library;

/* Spreads keys over a table of any size, also keys that are multiples of a power of two. */
static inline uint64_t ty_hash_words(const int64_t *v, int n) {
  uint64_t h = 0;
  for (int i = 0; i < n; i++) {
    h = (h ^ (uint64_t)v[i]) * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
  }
  return h;
}
/* Whether plans are timed now. Not during a capture: there the first plan is kept as if it had been timed. */
bool ty_times_plans(int gpu);
/* Milliseconds of several runs in a row on s, so that the host's work for one overlaps the run before; negative: one failed. The host
   waits. */
double ty_time_runs(ty_stream *s, bool (*run)(void *with), void *with);
/* The plan kept for the problem of n words; returns the plan's length, 0 where there is none. */
int ty_timed_find(ty_plan_library library, int gpu, const int64_t *problem, int n, int64_t saved[TY_PLAN_WORDS]);
/* Keeps a plan; where memory is short, it silently doesn't. */
void ty_timed_keep(ty_plan_library library, int gpu, const int64_t *problem, int n, const int64_t *saved, int nplan);
unsigned ty_timed_set_so_far(void);           /* grows with each ty_timed_set: plans made before are out of date */
/* All entries as words: returns how many, and writes them where all fit in room. ty_timed_set: back; an error changes nothing. */
size_t ty_timed_get(int64_t *words, size_t room);
ty_status ty_timed_set(ty_ctx *ctx, const int64_t *words, size_t n);
const char *ty_timed_libraries(void);         /* their names and versions; blas_lt.c */
#endif
