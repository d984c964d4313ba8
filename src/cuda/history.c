/* The history of device memory: what the allocator did, for tools that draw it over time.
 *
 * Idea: each device has a ring of its last events, which grows until it holds as many as were asked for. Invariant: at[next] is the
 * oldest event (next is 0 until the ring is full). Where the host has no memory to grow a ring, it goes on with the room that it has. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <stdio.h>
#include "cuda.h"

typedef struct { ty_memory_event *at; size_t n, next, room; } ring;
static ring rings[TY_MAXGPU];
static size_t most;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;      /* taken after the allocator's */

void ty_memory_history_begin(size_t n) {
  pthread_mutex_lock(&lock);
  most = n;
  for (int i = 0; i < TY_MAXGPU; i++) {
    free(rings[i].at);
    rings[i] = (ring){0};
  }
  pthread_mutex_unlock(&lock);
}

void ty_memory_happened(int gpu, ty_memory_action action, const void *p, size_t size, const ty_stream *stream, const char *where) {
  if (!ty_core->flags->memory_history) return;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  pthread_mutex_lock(&lock);
  ring *r = &rings[gpu];
  if (r->n == r->room && r->room < most) {
    const size_t room = TY_MIN(most, TY_MAX(r->room * 2, 256));
    ty_memory_event *at = r->next ? NULL : realloc(r->at, room * sizeof *at);      /* once it has gone round, its order is fixed */
    if (at) { r->at = at; r->room = room; }
  }
  if (r->room) {
    ty_memory_event *e = &r->at[r->n < r->room ? r->n++ : r->next++];
    if (r->next == r->room) r->next = 0;
    *e = (ty_memory_event){.action = action, .p = p, .stream = stream, .size = size,
      .time = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000};
    if (where) snprintf(e->where, sizeof e->where, "%s", where);
  }
  pthread_mutex_unlock(&lock);
}

size_t ty_memory_history(int gpu, ty_memory_event *out, size_t room) {
  pthread_mutex_lock(&lock);
  const ring *r = &rings[gpu];
  for (size_t i = 0; i < TY_MIN(r->n, room); i++) out[i] = r->at[(r->next + i) % r->n];
  const size_t n = r->n;
  pthread_mutex_unlock(&lock);
  return n;
}
