/* The plans that cuBLASLt and cuDNN have won by timing (backends.cudnn.benchmark), kept.
 *
 * Idea: timing decides differently each time, and another plan rounds differently. So a plan that was chosen once is kept for as long as
 * the process lives, is saved with checkpoints, and is used again by a run that goes on from one. Problems and plans are a few words, which
 * mean something only to their library. */
#ifndef TY_TIMED_PLANS_H
#define TY_TIMED_PLANS_H
#include "cuda.h"

#define TY_PLAN_WORDS 88                     /* words of a problem or of a plan, at most */
typedef enum { TY_PLANS_BLAS, TY_PLANS_DNN, TY_NPLANS } ty_plan_library;

/* Spreads keys over a table of any size, those of multiples of a power of two too. */
static inline uint64_t ty_hash_words(const int64_t *v, int n) {
  uint64_t h = 0;
  for (int i = 0; i < n; i++) {
    h = (h ^ (uint64_t)v[i]) * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
  }
  return h;
}
/* whether plans are timed now: not while a graph is captured, where the first one is kept as if it had been */
bool ty_times_plans(int gpu);
/* The plan that was kept for the problem of n words: gives its length, 0 where there is none. */
int ty_timed_find(ty_plan_library library, int gpu, const int64_t *problem, int n, int64_t saved[TY_PLAN_WORDS]);
/* Keeps it; where memory is short it silently doesn't. */
void ty_timed_keep(ty_plan_library library, int gpu, const int64_t *problem, int n, const int64_t *saved, int nplan);
unsigned ty_timed_set_so_far(void);           /* grows when they are set: plans that were made before are others' */
/* All, as words: how many there are; they are written where all fit. And back: an error, and nothing changed, where they are no plans. */
size_t ty_timed_get(int64_t *words, size_t room);
ty_status ty_timed_set(ty_ctx *ctx, const int64_t *words, size_t n);
const char *ty_timed_libraries(void);         /* the versions whose plans they are: blas_lt.c */
#endif
