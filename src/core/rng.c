/* The CPU's random generator: one Philox stream. Element i of a random tensor, in logical order, takes word i%4 of block offset + i/4;
 * the offset then advances by ceil(n/4). So layout, threads and grids don't change the numbers.
 *
 * Invariant: a draw takes all its blocks in one step, under the lock, so that Lua states in several threads never draw the same ones. */
#include <math.h>
#include <pthread.h>
#include <string.h>
#include "tycho.h"

static ty_generator generator = {.seed = 0x5DEECE66D};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
TY_HELD_AT_FORK(lock)

/* The generator, of which the next `blocks` are taken. */
static ty_generator take(ty_generator *g, uint64_t blocks) {
  const ty_generator was = *g;
  g->offset += blocks;
  return was;
}

ty_generator ty_cpu_take(ty_ctx *ctx, uint64_t blocks) {
  if (ctx->rng) return take(ty_data(ctx->rng), blocks);
  pthread_mutex_lock(&lock);
  const ty_generator g = take(&generator, blocks);
  pthread_mutex_unlock(&lock);
  return g;
}

double ty_uniform_most(double low, double high, ty_dtype d) {
  char buf[8];
  double v;
  ty_set(buf, d, high);
  if ((v = ty_get(buf, d)) >= high) {
    if (d == TY_F64) v = nextafter(v, -INFINITY);
    else if (d == TY_F32) v = nextafterf((float)v, -INFINITY);
    else {                                 /* 16 bits: a sign bit, then a magnitude that grows with its bits */
      uint16_t bits;
      memcpy(&bits, buf, 2);
      bits = v == 0 ? 0x8001 : v > 0 ? bits - 1 : bits + 1;
      memcpy(buf, &bits, 2);
      v = ty_get(buf, d);
    }
  }
  return TY_MAX(v, low);
}

ty_generator ty_cpu_generator(ty_ctx *ctx) { return ty_cpu_take(ctx, 0); }

void ty_cpu_seed(ty_ctx *ctx, ty_generator g) {
  if (ctx->rng) { *(ty_generator *)ty_data(ctx->rng) = g; return; }
  pthread_mutex_lock(&lock);
  generator = g;
  pthread_mutex_unlock(&lock);
}
