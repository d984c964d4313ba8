/* A list of tensors in one launch: each block does a chunk of one tensor, which it finds by counting chunks. */
#ifndef TY_LISTS_CUH
#define TY_LISTS_CUH
#include "device.cuh"

#define THREADS 256
#define CHUNK TY_K_CHUNK

/* The tensor that block `chunk` works on; chunk becomes its number in it. count: there is none. */
static __device__ __forceinline__ int find_chunk(const int64_t *n, int count, int64_t &chunk) {
  for (int t = 0; t < count; t++) {
    const int64_t chunks = (n[t] + CHUNK - 1) / CHUNK;
    if (chunk < chunks) return t;
    chunk -= chunks;
  }
  return count;
}

static int64_t chunks_of(const int64_t *n, int count) {
  int64_t chunks = 0;
  for (int t = 0; t < count; t++) chunks += (n[t] + CHUNK - 1) / CHUNK;
  return chunks;
}
#endif
