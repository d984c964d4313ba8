/* What kernel files and fused kernels share: reading and writing neighbours at once, and combining the values of a block's threads.
 *
 * Idea: the source of each fused kernel begins with this text (src/cuda/source.c), so it includes nothing. Invariant: the number of a
 * block's threads alone decides the order in which their values are combined, so that an op gives the same bits alone and fused. */

template <class D, int N> struct alignas(sizeof(D) * N) pack { D d[N]; };

#ifndef TY_ALIGNED
#define TY_ALIGNED(p, n) ((void)0)         /* a device faults on a misaligned address; the simulation has a check here */
#endif

/* A pack passes through registers of its size: the compiler would read 16-bit elements in pieces. p: a multiple of that size. */
template <int BYTES> struct word_of;
template <> struct word_of<1> { typedef uint8_t type; };
template <> struct word_of<2> { typedef uint16_t type; };
template <> struct word_of<4> { typedef uint32_t type; };
template <> struct word_of<8> { typedef uint2 type; };
template <> struct word_of<16> { typedef uint4 type; };
template <class D, int N> static __device__ __forceinline__ pack<D, N> take_pack(const void *p) {
  TY_ALIGNED(p, sizeof(D) * N);
  typename word_of<sizeof(D) * N>::type const w = *(typename word_of<sizeof(D) * N>::type const *)p;
  pack<D, N> v;
  memcpy(&v, &w, sizeof v);
  return v;
}
/* Writes w in one store. A plain assignment compiles to four; a branch on alignment is merged into its slow side. */
template <class W> static __device__ __forceinline__ void write_word(W *p, W w) { *p = w; }
#ifdef __CUDA_ARCH__
static __device__ __forceinline__ void write_word(uint2 *p, uint2 w) { __stwb(p, w); }
static __device__ __forceinline__ void write_word(uint4 *p, uint4 w) { __stwb(p, w); }
#endif
template <class D, int N> static __device__ __forceinline__ void put_pack(void *p, const pack<D, N> &v) {
  typedef typename word_of<sizeof(D) * N>::type word;
  TY_ALIGNED(p, sizeof(D) * N);
  word w;
  memcpy(&w, &v, sizeof w);
  write_word((word *)p, w);
}

/* The index in a row of the e-th element that the thread holds, in groups of G neighbours. */
template <int G> static __device__ __forceinline__ int row_place(int e) {
  return e / G * G * (int)blockDim.x + (int)threadIdx.x * G + e % G;
}

/* take_row: x = the thread's elements, at most EACH, of a row of n (a multiple of G) at p, step apart, converted by `in`. put_row: the
   reverse. Aligned groups of four go at once; all are requested before the first is used, so that no read waits for another. */
struct as_it_is { template <class D> __device__ __forceinline__ D operator()(D v) const { return v; } };
template <int EACH, int G, class D, class T, class F = as_it_is> static __device__ __forceinline__ void take_row(T *x, const D *p, int n,
  int64_t step, F in = F()) {
  if constexpr (G == 4 && sizeof(D) <= 4)
    if (step == 1 && (uint64_t)p % (4 * sizeof(D)) == 0) {
      pack<D, 4> v;
      typename word_of<sizeof v>::type w[(EACH + 3) / 4];
#pragma unroll
      for (int e = 0; e < EACH; e += 4)
        if (row_place<G>(e) < n) {
          TY_ALIGNED(p + row_place<G>(e), sizeof v);
          w[e / 4] = *(typename word_of<sizeof v>::type const *)(p + row_place<G>(e));
        }
#pragma unroll
      for (int e = 0; e < EACH; e += 4)
        if (row_place<G>(e) < n) {
          memcpy(&v, &w[e / 4], sizeof v);
#pragma unroll
          for (int k = 0; k < 4; k++) x[e + k] = in(v.d[k]);
        }
      return;
    }
#pragma unroll
  for (int e = 0; e < EACH; e++) if (row_place<G>(e) < n) x[e] = in(p[row_place<G>(e) * step]);
}
template <int EACH, int G, class D, class T, class F = as_it_is> static __device__ __forceinline__ void put_row(D *p, int n, int64_t step,
  const T *x, F out = F()) {
  if constexpr (G == 4 && sizeof(D) <= 4)
    if (step == 1 && (uint64_t)p % (4 * sizeof(D)) == 0) {
#pragma unroll
      for (int e = 0; e < EACH; e += 4)
        if (row_place<G>(e) < n) {
          pack<D, 4> v;
#pragma unroll
          for (int k = 0; k < 4; k++) v.d[k] = out(x[e + k]);
          put_pack(p + row_place<G>(e), v);
        }
      return;
    }
#pragma unroll
  for (int e = 0; e < EACH; e++) if (row_place<G>(e) < n) p[row_place<G>(e) * step] = out(x[e]);
}

/* Two values that are combined together. */
template <class T> struct two { T a, b; };

template <bool LONG> struct shuffled { typedef unsigned word; };
template <> struct shuffled<true> { typedef unsigned long long word; };
/* v of another thread of the warp, word by word; shuffle: a functor below. */
template <class T, class F> static __device__ __forceinline__ T exchanged(T v, F shuffle) {
  typedef typename shuffled<sizeof(T) % 8 == 0>::word word;
  word w[sizeof(T) / sizeof(word)];
  memcpy(w, &v, sizeof v);
#pragma unroll
  for (unsigned k = 0; k < sizeof(T) / sizeof(word); k++) w[k] = shuffle(w[k]);
  memcpy(&v, w, sizeof v);
  return v;
}
struct shuffle_down {                      /* NVRTC takes no generic lambda */
  int down;
  template <class W> __device__ __forceinline__ W operator()(W w) const { return __shfl_down_sync(0xffffffffu, w, down); }
};
struct shuffle_first {
  int lanes;
  template <class W> __device__ __forceinline__ W operator()(W w) const { return __shfl_sync(0xffffffffu, w, 0, lanes); }
};
template <class T> static __device__ __forceinline__ T from_lane(T v, int down) { return exchanged(v, shuffle_down{down}); }

/* The block's threads are `turns` rows of `wide` columns; thread (w, c) has a value v of column c. Returns each column's values combined,
 * in the threads of w = 0. s: one element a thread. All threads of the block call it. */
template <class T, class F> static __device__ __forceinline__ T combine_turns(T v, T *s, int c, int w, int wide, int turns, F join) {
  __syncthreads();                         /* earlier reads of s are done */
  s[w * wide + c] = v;
  __syncthreads();
  for (int k = 1; k < turns && w == 0; k++) v = join(v, s[k * wide + c]);
  return v;
}

/* The v of all threads along x combined, for each of them. Where blockDim.x is 32 or a smaller power of two, each threadIdx.y has its own
   result. Half as many threads give the same bits where the others' v change nothing. s: one element a warp. All threads of a block of
   whole warps call it. */
template <class T, class F> static __device__ __forceinline__ T combine_block(T v, T *s, F join) {
  const int lanes = blockDim.x < 32 ? (int)blockDim.x : 32, warps = (int)blockDim.x / 32;
#pragma unroll
  for (int down = 16; down; down /= 2) if (down < lanes) v = join(v, from_lane(v, down));
  if (warps <= 1) return exchanged(v, shuffle_first{lanes});
  __syncthreads();                         /* earlier reads of s are done */
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  v = s[0];
  for (int k = 1; k < warps; k++) v = join(v, s[k]);
  return v;
}
