/* The CPU's random generator: one Philox stream. Element i of a random tensor, in logical order, takes word i%4 of block offset + i/4;
 * the offset then advances by ceil(n/4). So layout, threads and grids don't change the numbers.
 *
 * Invariant: a draw takes all its blocks in one atomic step, so that Lua states in several threads never draw the same ones. */
#include <math.h>
#include <string.h>
#include "tycho.h"

static _Atomic uint64_t seed = 0x5DEECE66D, offset;

ty_generator ty_cpu_take(ty_ctx *ctx, uint64_t blocks) {
  if (ctx->rng) {
    ty_generator *own = ty_data(ctx->rng);
    const ty_generator g = *own;
    own->offset += blocks;
    return g;
  }
  const uint64_t at = atomic_fetch_add(&offset, blocks);
  return (ty_generator){atomic_load(&seed), at};
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

ty_generator ty_cpu_generator(const ty_ctx *ctx) {
  if (ctx->rng) return *(const ty_generator *)ty_data(ctx->rng);
  return (ty_generator){atomic_load(&seed), atomic_load(&offset)};
}

void ty_cpu_seed(ty_ctx *ctx, ty_generator g) {
  if (ctx->rng) { *(ty_generator *)ty_data(ctx->rng) = g; return; }
  atomic_store(&seed, g.seed);
  atomic_store(&offset, g.offset);
}
