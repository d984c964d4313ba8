/* Additions of several threads to one element of any dtype.
 *
 * Idea: the device's own atomicAdd where it has one; else compare-and-swap of the aligned word that holds the element, until no other
 * thread came between. Invariant: no addition is lost; their order, and so the last bits of floating sums, is not fixed. */
#ifndef TY_ATOMIC_CUH
#define TY_ATOMIC_CUH
#include "device.cuh"

template <class T> static __device__ void add_to(void *p, int dtype, int64_t i, T v) {
  switch (dtype) {
    case TY_F32: atomicAdd((float *)p + i, (float)v); break;
    case TY_F64: atomicAdd((double *)p + i, (double)v); break;
    case TY_I64: atomicAdd((unsigned long long *)p + i, (unsigned long long)as<int64_t>::of(v)); break;
    case TY_I32: atomicAdd((int *)p + i, (int)as<int64_t>::of(v)); break;
    default: {
      const int size = dtype == TY_U8 || dtype == TY_BOOL ? 1 : 2;
      const uintptr_t at = (uintptr_t)p + i * size;
      unsigned *const word = (unsigned *)(at & ~(uintptr_t)3);
      unsigned old = *word, seen;
      do {
        unsigned next = seen = old;
        void *const there = (char *)&next + (at & 3);
        store(there, dtype, 0, (T)(load<T>(there, dtype, 0) + v));
        old = atomicCAS(word, seen, next);
      } while (old != seen);
    }
  }
}

#endif
