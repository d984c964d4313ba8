/* The generators' state: one Philox stream a device. Element i of a random tensor, in logical order, takes word i%4 of
 * block offset + i/4; the offset then advances by ceil(n/4). So layout, threads and grids don't change the numbers. */
#include "tycho.h"

ty_generator ty_cpu_generator = {0x5DEECE66D, 0};

void ty_manual_seed(uint64_t seed) {
  ty_cpu_generator.seed = seed;
  ty_cpu_generator.offset = 0;
}
