/* Timed waits by the monotonic clock, which nobody sets. */
#ifndef TY_DEADLINE_H
#define TY_DEADLINE_H
#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* A condition for pthread_cond_timedwait with such times. */
static inline void ty_cond_init(pthread_cond_t *c) {
  pthread_condattr_t a;
  pthread_condattr_init(&a);
  pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
  pthread_cond_init(c, &a);
  pthread_condattr_destroy(&a);
}

/* The time so many seconds from now. */
static inline struct timespec ty_deadline(double seconds) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  const int64_t ns = t.tv_nsec + (int64_t)(seconds * 1e9);
  return (struct timespec){t.tv_sec + ns / 1000000000, ns % 1000000000};
}
#endif
