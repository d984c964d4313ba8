/* Which way a library has taken for a problem, where ways are timed (backends.cudnn.benchmark).
 *
 * Idea: timing decides differently each time, and another way rounds differently. So what was taken once is kept for as long as the process
 * lives, is saved with checkpoints, and is taken again by a run that goes on from one. Problems and ways are a few words; whose words they
 * are, only their library knows. */
#ifndef TY_WAYS_H
#define TY_WAYS_H
#include "cuda.h"

#define TY_WAY 88                            /* words of a problem or of a way, at most */
typedef enum { TY_WAYS_BLAS, TY_WAYS_DNN, TY_NWAYS } ty_ways_of;

/* whether ways are timed now: not while a graph is captured, where the first one is kept as if it had been */
bool ty_ways_timed(int gpu);
/* The way that was taken for the problem of n words: gives its length, 0 where there is none. */
int ty_ways_find(ty_ways_of library, int gpu, const int64_t *problem, int n, int64_t way[TY_WAY]);
void ty_ways_keep(ty_ways_of library, int gpu, const int64_t *problem, int n, const int64_t *way, int nway);     /* or not, out of memory */
unsigned ty_ways_set_so_far(void);           /* grows when they are set: plans that were made before are others' */
/* All, as words: how many there are; those that fit are written. And back: an error, and nothing changed, where they are no ways. */
size_t ty_ways_get(int64_t *words, size_t room);
ty_status ty_ways_set(ty_ctx *ctx, const int64_t *words, size_t n);
const char *ty_ways_libraries(void);         /* the versions whose ways they are: blas_lt.c */
#endif
