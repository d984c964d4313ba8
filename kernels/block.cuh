/* What kernel files and fused kernels have in common: neighbours read and written at once, and what a block's threads combine.
 *
 * Idea: sources made at run time begin with this text too (src/cuda/source.c), so it includes nothing. Invariant: a
 * block's values are combined in one order, by the number of its threads alone: an op gives the same bits alone and
 * fused. */

template <class D, int N> struct alignas(sizeof(D) * N) pack { D d[N]; };

#ifndef TY_ALIGNED
#define TY_ALIGNED(p, n) ((void)0)         /* a device refuses what isn't; the simulation has a check here */
#endif

/* Through registers of the pack's size: a pack of 16-bit elements would be read in pieces. p: a multiple of that size. */
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
/* As one store. The compiler makes a plain one of four, and of "if aligned so, else one by one" the second for both. */
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

/* The element of a row that the thread holds as its e-th: neighbours by G. */
template <int G> static __device__ __forceinline__ int row_place(int e) {
  return e / G * G * (int)blockDim.x + (int)threadIdx.x * G + e % G;
}

/* x = the thread's elements of a row of n, a multiple of G, which lie step apart from p on, as `in` makes them; EACH at most. And back.
   Neighbours by four go at once where they may; all words are asked for before the first is used, so that no read waits for another. */
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
/* v of another thread of the warp, word by word, by one of the shuffles. */
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

/* Of columns side by side, `wide` of them, which a block's threads take turns at (turn w of column c): what the turns
 * have, combined, for the first turn's threads. s: one of each thread. Whole blocks call it. */
template <class T, class F> static __device__ __forceinline__ T combine_turns(T v, T *s, int c, int w, int wide, int turns, F join) {
  __syncthreads();                         /* of what was read of s before */
  s[w * wide + c] = v;
  __syncthreads();
  for (int k = 1; k < turns && w == 0; k++) v = join(v, s[k * wide + c]);
  return v;
}

/* The v of all threads along x combined, for all of them: of the block, or, where blockDim.x is 32 or a smaller power of two, of a row of
   it. Half as many threads give the same bits where the others' v changes nothing. s: one of each warp. Whole blocks of whole warps
   call it. */
template <class T, class F> static __device__ __forceinline__ T combine_block(T v, T *s, F join) {
  const int lanes = blockDim.x < 32 ? (int)blockDim.x : 32, warps = (int)blockDim.x / 32;
#pragma unroll
  for (int down = 16; down; down /= 2) if (down < lanes) v = join(v, from_lane(v, down));
  if (warps <= 1) return exchanged(v, shuffle_first{lanes});
  __syncthreads();                         /* of what was read of s before */
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  v = s[0];
  for (int k = 1; k < warps; k++) v = join(v, s[k]);
  return v;
}
