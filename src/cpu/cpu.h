/* The interfaces between the CPU backend's files. Each op class has one ty_kernel (cpu.c lists them), in the file named after the
 * class; lines.c has those that work along one dim: index reductions, scans, softmax. */
#ifndef TY_CPU_H
#define TY_CPU_H
#include "fused.h"
#include "optim_formulas.h"
#include "tycho.h"

/* ---- loops.c: loops over contiguous elements, built once for each instruction set ----
 * The last index of a table of loops, k, is the loop's type (ty_loop_type). Accumulators are float64, or int64 for int64. */
typedef void (*ty_loop)(void *o, const void *a, const void *b, const void *c, int64_t n, double p, double q);
/* What a pooling window reads along a dim: lo, lo + dilation, ... below hi; count: its factor of the divisor. */
typedef struct { int64_t lo, hi, count; } ty_window;
typedef struct {
  int64_t c, h, w, oh, ow;                                     /* h x w pixels, oh x ow windows, c channels side by side in each */
  int64_t kernel[2], stride[2], padding[2], dilation[2];       /* kernel 0: adaptive */
  int64_t top, first;                                          /* the rows at which the pixels' and the windows' memory begin */
  const ty_window *rows, *cols;
  double divisor;                                              /* 0: rows' count times columns' count */
  void *row;                                                   /* memory for w pixels */
} ty_pool;
/* TY_POOL_PLANE: maxima of one channel */
enum { TY_POOL_MAX = 0, TY_POOL_AVG = 1, TY_POOL_BACK = 2, TY_POOL_PLANE = 4, TY_POOL_LOOPS };
/* from .. to - 1: rows of windows; backward: channels. positions NULL: they aren't asked for */
typedef void (*ty_pool_loop)(const ty_pool *p, void *pixels, void *windows, int64_t *positions, int64_t from, int64_t to);
/* One row in a recurrent layer's step: n units, whose gates follow one another in x, y, b, s. Pointers that the kind doesn't use may be
   NULL (core/cells.h). */
typedef struct { void *o, *c, *s; const void *x, *y, *b, *h; } ty_cell;
typedef struct { void *dh, *dc, *dx, *dy; const void *g, *s, *o, *h, *c; } ty_cell_back;
/* For n lines of `rows` elements that lie side by side (column_loops.c). n is at most TY_BLOCK; softmax's also at most TY_COLUMNS divided
   by TY_LANES, or by rows where those are fewer. xs, os ...: elements from one row to the next. */
typedef struct {
  void (*softmax[2])(void *o, int64_t os, const void *x, int64_t xs, int64_t rows, int64_t n, int lg);
  void (*softmax_backward[2])(void *o, int64_t os, const void *g, int64_t gs, const void *y, int64_t ys, int64_t rows, int64_t n, int lg);
  void (*cumsum[2])(void *o, int64_t os, const void *x, int64_t xs, int64_t rows, int64_t n);
  /* top[j]: line j's largest x; more[j]: the log of its sum of exp(x - top) */
  void (*log_sum[2])(void *top, void *more, const void *x, int64_t xs, int64_t rows, int64_t n);
  /* o = a[j] exp(x - lse[j]) + b[j] w[row] (w NULL: 1) */
  void (*entropy_slopes[2])(void *o, int64_t os, const void *x, int64_t xs, int64_t rows, int64_t n, const void *lse, const void *a,
    const void *b, const void *w);
  void (*extreme[TY_NLOOPTYPE])(void *o, int64_t *at, const void *x, int64_t xs, int64_t rows, int64_t n, int max);
} ty_column_loops;
/* For n points of grid_sample, TY_BLOCK at most (sample_loops.c): where they read, then a channel's values and gradients. */
typedef struct { int64_t h, w; int nearest, padding, corners; } ty_sampling;
typedef struct {
  void (*points[2])(const ty_sampling *p, const void *grid, int64_t n, int32_t *at, void *k, void *kx, void *ky);
  void (*blend[2])(void *o, const void *x, const int32_t *at, const void *k, int64_t n, int taps);
  void (*slopes[2])(void *dx, void *dy, const void *g, const void *x, const int32_t *at, const void *kx, const void *ky, int64_t n);
  void (*spread[2])(void *x, const void *g, const int32_t *at, const void *k, int64_t n, int taps);
} ty_sample_loops;
/* For a depthwise convolution's weight gradient (depthwise_loops.c), a row of the result's gradient g: n pixels of c channels. The filter's
 * element tap.index gets the sum of g[p c + ch] x[at + p step + ch] over pixels lo <= p < hi. */
typedef struct { int64_t at, index, lo, hi; } ty_tap;
typedef struct { int64_t n, c, step; const float *x, *g; const ty_tap *tap; int taps; } ty_depthwise;
typedef struct {
  int lanes;                               /* channels in a vector */
  /* for vector + i, i < vectors (the last vector ends at channel c): sums[i each + index lanes + lane] += the weight's gradient */
  void (*slopes)(const ty_depthwise *d, int64_t vector, int64_t vectors, int64_t each, float *sums);
} ty_depthwise_loops;
/* cdist: a row of a beside n rows of b (distance_loops.c) */
typedef struct {
  void (*norms[2])(double p, void *o, const void *a, const void *t, int64_t stride, int64_t d, int64_t n);
  void (*slopes[2])(double p, void *da, const void *g, const void *norm, const void *a, const void *b, const void *t, int64_t stride,
    int64_t d, int64_t n);
} ty_distance_loops;
/* Factors of TY_MATRICES small n x n matrices a at once, and of the n x more right-hand sides b (matrix_loops.c): element e of matrix i is
 * a[e * TY_MATRICES + i]. failed: for each matrix 0 or what LAPACK's info would be. */
#define TY_MATRICES 16
typedef struct {
  /* a becomes L below U, b what the same steps make of it; exchanged: the row, from 0, that each row was exchanged with */
  void (*eliminate[2])(void *a, void *b, void *exchanged, void *failed, int n, int more);
  void (*substitute[2])(const void *a, void *b, int n, int more);       /* b becomes x of U x = b */
  void (*cholesky[2])(void *a, void *failed, int n);            /* a becomes L of a = L L^T; what is above its diagonal isn't read */
} ty_matrix_loops;
/* The passes of Fourier transforms, and the steps before and after them (fourier_loops.c). w: e^(-2 pi i k / n) as pairs. */
typedef struct {
  /* room: TY_FOURIER_ROOM bytes for factors above TY_FOURIER_BUILT: half of the elements' sums and differences, and a table */
#define TY_FOURIER_ROOM(radix) ((size_t)((radix) / 2 + 1) * 4 * 64 + (size_t)(radix) * 2 * sizeof(double))
  void (*pass[2])(int radix, const void *xr, const void *xi, void *yr, void *yi, int64_t m, int64_t s, const void *w, int64_t step,
    void *room);
  /* m pairs of each of `lines` lines, times scale, to parts in which the same element of each line is side by side, and back; stride:
   * elements from one line to the next */
  void (*split[2])(void *re, void *im, const void *x, int64_t stride, int64_t lines, int64_t m, double scale);
  void (*join[2])(void *o, int64_t stride, const void *re, const void *im, int64_t lines, int64_t m);
  /* the same where the lines lie side by side: pair k of line q is x[k stride + 2 q]; parts have room for `lanes` of them, zeros beyond */
  void (*split_rows[2])(void *re, void *im, const void *x, int64_t stride, int64_t lines, int64_t lanes, int64_t m, double scale);
  void (*join_rows[2])(void *o, int64_t stride, const void *re, const void *im, int64_t lines, int64_t lanes, int64_t m);
  /* real signals of 2 h: from the transform of the h pairs to h + 1 sums, times `ends` the first and the last, times `between` the others;
   * tangle: back */
  void (*untangle[2])(void *yr, void *yi, const void *xr, const void *xi, const void *w, int64_t h, int64_t s, double ends, double between);
  void (*tangle[2])(void *yr, void *yi, const void *xr, const void *xi, const void *w, int64_t h, int64_t s, double ends, double between);
  /* o[i] = a[i] b[i], or, with sign -1, times b[i]'s conjugate; strides: pairs */
  void (*products[2])(void *o, int64_t os, const void *a, int64_t as, const void *b, int64_t bs, int64_t n, double sign);
} ty_fourier_loops;
/* o = a b + beta o, m x n, where b has rows of ldb elements, or, turned, columns (product_loops.c). ar, ac: elements from one row of a
 * to the next, and from one column to the next. k is at most TY_SMALL_K. dot_products: k may be any, but b must be turned,
 * and ac 1. */
#define TY_SMALL_K 128
typedef struct {
  int64_t m, n, k;
  const void *a;
  int64_t ar, ac;
  const void *b;
  int64_t ldb;
  bool turned;
  double beta;
  void *o;
  int64_t ldo;
} ty_small_product;
typedef void (*ty_product_loop)(const ty_small_product *p);
typedef struct {
  ty_loop pointwise[TY_NOP][TY_NLOOPTYPE];
  ty_loop bytes[TY_NOP];                     /* on uint8 and bool, without conversion */
  void (*load_bytes)(void *dst, const void *src, int64_t stride, int64_t n);
  void (*store_bytes)(void *dst, int64_t stride, const void *src, int64_t n);
  void (*load[TY_NDTYPE][TY_NLOOPTYPE])(void *dst, const void *src, int64_t stride, int64_t n);   /* storage dtype -> loop type */
  void (*store[TY_NDTYPE][TY_NLOOPTYPE])(void *dst, int64_t stride, const void *src, int64_t n);  /* loop type -> storage dtype */
  void (*row[TY_NOP][TY_NLOOPTYPE])(void *acc, const void *x, int64_t n);        /* acc = the n elements combined */
  /* the same for each of `rows` rows of n elements, one after another */
  void (*rows[TY_NOP][TY_NLOOPTYPE])(void *out, const void *x, int64_t rows, int64_t n);
  /* acc[i] = combined(acc[i], x[i], x[step + i], ...) over `rows` rows, in the loop's type */
  void (*column[TY_NOP][TY_NLOOPTYPE])(void *acc, const void *x, int64_t n, int64_t rows, int64_t step);
  void (*column_init[TY_NOP][TY_NLOOPTYPE])(void *acc, int64_t n);
  void (*combine[TY_NOP][TY_NLOOPTYPE])(void *acc, const void *more, int64_t n); /* accumulators */
  void (*init[TY_NOP][TY_NLOOPTYPE])(void *acc, int64_t n);
  void (*finish[TY_NOP][TY_NLOOPTYPE])(void *acc, int64_t n, double count);
  /* the position of the first element equal to acc, or of the first NaN if acc is NaN; n if there is none */
  int64_t (*position[TY_NLOOPTYPE])(const void *x, int64_t n, const void *acc);
  /* the position of the rank-th of n elements in order, from 1; of equals in theirs, NaN last. keys: room for n elements, and for
   * TY_RANKED_UNIT */
#define TY_RANKED_UNIT 32
  int64_t (*ranked[TY_NLOOPTYPE])(const void *x, int64_t n, int64_t rank, void *keys);
  /* o (+)= the offsets of n indices of a dim, counted from 1 or, negative ones, from its end; false: some aren't in least .. size */
  bool (*places)(int64_t *o, const int64_t *index, int64_t n, int64_t size, int64_t least, int64_t stride, bool add);
  /* floating types only, down to `step` */
  double (*top[2])(const void *x, int64_t n);                    /* the greatest of n numbers that aren't NaN, or -inf */
  /* s = scale s + the mask, whose elements are `step` apart; flags: the mask is bool, where false s becomes -inf */
  void (*masked[2])(void *s, const void *mask, bool flags, int64_t step, int64_t n, double scale);
  void (*softmax[2])(void *o, const void *x, int64_t n, int log);
  void (*softmax_backward[2])(void *o, const void *g, const void *y, int64_t n, int log);
  /* mean: 0 where not centered */
  void (*row_moments[2])(const void *x, int64_t n, double eps, bool centered, double *mean, double *rstd);
  /* the same bits, for rows of up to TY_NORM_ROW elements; mean NULL: not centered */
  void (*moments_of_rows[2])(const void *x, int64_t rows, int64_t n, double eps, void *mean, void *rstd);
  void (*moments[2])(const void *x, int64_t n, double shift, double *s1, double *s2);           /* += sums of x - shift and of its square */
  void (*moments_columns[2])(const void *x, int64_t rows, int64_t n, const void *shift, void *s1, void *s2);   /* for each of n columns */
  /* += sums of g and g * (x - shift) */
  void (*dots[2])(const void *g, const void *x, int64_t n, double shift, double *s1, double *s2);
  void (*dots_columns[2])(const void *g, const void *x, int64_t rows, int64_t n, const void *shift, void *s1, void *s2);
  void (*affine[2])(void *o, const void *x, int64_t n, double a, double b);                     /* o = a x + b */
  void (*affine_times[2])(void *o, const void *x, const void *y, int64_t n, double a, double b);  /* o = (a x + b) y */
  /* o = exp(a x - shift), where that is at most 1; gives their sum */
  double (*exp_sum[2])(void *o, const void *x, int64_t n, double a, double shift);
  void (*centered[2])(void *o, const void *x, int64_t n, double m, double a, double b);        /* o = (x - m) a + b */
  void (*centered_columns[2])(void *o, const void *x, int64_t rows, int64_t n, const void *m, const void *a, const void *b);
  void (*affine2[2])(void *o, const void *g, const void *x, int64_t n, double a, double b, double c);  /* o = a g + b x + c */
  void (*affine2_columns[2])(void *o, const void *g, const void *x, int64_t rows, int64_t n, const void *a, const void *b, const void *c);
  void (*layer_norm[2])(void *o, const void *x, const void *w, const void *b, int64_t n, double mean, double rstd);
  void (*rms_norm[2])(void *o, const void *x, const void *w, int64_t n, double rstd);
  void (*rms_norm_backward[2])(void *dx, void *dw, const void *g, const void *x, const void *w, int64_t n, double rstd);
  void (*layer_norm_backward[2])(void *dx, void *dw, void *db, const void *g, const void *x, const void *w, int64_t n,
    double mean, double rstd);
  /* the same bits in two parts, the first for rows of up to TY_NORM_ROW elements: the means of g w, and of g w times the normed x */
  void (*layer_norm_means[2])(void *ma, void *mb, const void *g, const void *x, const void *w, int64_t rows, int64_t n, const void *mean,
    const void *rstd);
  void (*layer_norm_slopes[2])(void *dx, void *dw, void *db, const void *g, const void *x, const void *w, int64_t n, double mean,
    double rstd, double ma, double mb);
  /* acc[j] = the sum over i of x[(id[i] - 1) stride + j] scale[i] (NULL: 1), j < width, leaving out ids that are `padding` */
  void (*add_rows[2])(void *acc, const void *x, int64_t stride, const int64_t *id, int64_t n, const void *scale, int64_t padding,
    int64_t width);
  /* an optimizer's step; lists: the parameter, its gradient, three states, NULL where the rule has fewer */
  void (*step[2])(int op, void *const *lists, int64_t n, const ty_step_rates *rates);
  /* out[r] = the dot product of w, n numbers of float16 or bfloat16, and row r of v, r < rows <= TY_BESIDE. For bfloat16, v's elements are
   * in another order (beside_order in matmul.c). */
#define TY_BESIDE 4
#define TY_BESIDE_WHOLE (2 * TY_LANES)
  void (*beside[2])(float *out, const float *v, int rows, const uint16_t *w, int64_t n);
  /* for 1, 2, 4 and 8 bytes (TY_OF_SIZE): o[j os + i] = x[i xs + j], i < n, j < m; backward: o[i] = x[-i], i < n */
  void (*transpose[4])(void *o, int64_t os, const void *x, int64_t xs, int64_t n, int64_t m);
  void (*backward[4])(void *o, const void *x, int64_t n);
  void (*recurrent[2])(int kind, const ty_cell *a, int64_t n);
  void (*recurrent_backward[2])(int kind, const ty_cell_back *a, int64_t n);
  void (*philox)(uint32_t *out, uint64_t seed, uint64_t block, int64_t blocks);
  void (*repeat[2])(void *out, const void *x, int64_t step, int64_t n, int64_t rows);   /* for 4, 8 bytes: each step-th of x, n times */
  void (*normal)(float *out, const uint32_t *words, int64_t n);
  void (*keep)(float *o, const uint32_t *word, double drop, int64_t n);     /* 1 where the word's uniform number is at least drop, else 0 */
  ty_loop sign[2];                         /* on 16-bit floats: neg, abs */
  const ty_pool_loop (*pool)[2];
  const ty_product_loop *product, *dot_products;
  const ty_column_loops *columns;
  const ty_sample_loops *sample;
  const ty_depthwise_loops *depthwise;
  const ty_fourier_loops *fourier;
  const ty_distance_loops *distance;
  const ty_matrix_loops *matrix;
} ty_loops;
const ty_loops *ty_cpu_loops(void);
static const uint8_t ty_loop_size[TY_NLOOPTYPE] = {4, 8, 8};
#define TY_OF_SIZE(loops, size) ((loops)[__builtin_ctz((unsigned)(size))])
static const ty_dtype ty_loop_dtype[TY_NLOOPTYPE] = {TY_F32, TY_F64, TY_I64};
/* Element i of memory of a floating loop type. */
static inline double at(const void *p, ty_loop_type k, int64_t i) {
  return k == TY_IN_F32 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}
static inline void put(void *p, ty_loop_type k, int64_t i, double v) {
  if (k == TY_IN_F32) ((float *)p)[i] = (float)v;
  else ((double *)p)[i] = v;
}

/* ---- iter.c: walking tensors of one shape together ---- */
#define TY_ITER_MAX 15
#define TY_BLOCK 512       /* elements converted at a time: fits the first-level cache */
#define TY_PART 4096       /* elements combined in the loop's type before the accumulator's; in longer rows fewer, for precision */
#define TY_PART_OF(n) ((n) > TY_PART ? TY_PART / 4 : TY_PART)
/* Whether a reduction's result is one of its elements; then order and grouping don't matter. */
static inline bool ty_picks(int id) { return id == TY_OP_amax || id == TY_OP_amin || id == TY_OP_any || id == TY_OP_all; }
#define TY_LANES 32        /* partial results that a reduction keeps side by side */
#define TY_NORM_ROW 64     /* rows of up to so many elements have their moments side by side; at most 2 TY_LANES */
#define TY_COLUMNS 4096    /* elements taken at a time from lines that lie side by side */
#define TY_GRAIN 32768     /* elements below which a second thread doesn't pay */
typedef struct {
  int nop, ndim;
  int64_t shape[TY_MAXDIM], stride[TY_ITER_MAX][TY_MAXDIM];  /* elements; dims merged where that is possible */
  char *data[TY_ITER_MAX];
  int size[TY_ITER_MAX];                                     /* bytes of an element */
  int64_t numel, each;                                       /* each: work per element, more than 1 where it stands for several */
} ty_iter;
typedef void (*ty_run)(void *arg, char *const *ptr, const int64_t *stride, int64_t n);
void ty_iter_init(ty_iter *it, const int64_t *shape, int ndim);
void ty_iter_add(ty_iter *it, void *data, int size, const int64_t *stride, const int64_t *shape, int ndim); /* broadcasts */
void ty_iter_tensor(ty_iter *it, const ty_tensor *t);
int ty_iter_counter(ty_iter *it, const int64_t *shape);          /* adds an operand without memory, for ty_iter_count */
int64_t ty_iter_count(const ty_iter *it, int op, const char *ptr);       /* position of a run's first element, in shape's order */
void ty_iter_done(ty_iter *it);
void ty_iter_each(const ty_iter *it, ty_run run, void *arg);
/* The same by tiles: n elements along the innermost dim, m along dim; step: elements from one row of a tile to the next. */
typedef void (*ty_tile)(void *arg, char *const *ptr, const int64_t *stride, const int64_t *step, int64_t n, int64_t m);
void ty_iter_tiles(const ty_iter *it, int dim, ty_tile tile, void *arg);
/* Calls fn for every line along dim of tensors that agree in all other dims; ptr[i] is the line's first element. */
typedef void (*ty_line)(void *arg, char *const *ptr, int64_t line);
void ty_each_line(ty_tensor *const *t, int nt, int dim, int64_t work, ty_line fn, void *arg);

/* ---- shared by kernels ---- */
typedef struct { uint64_t key; int64_t at; } ty_pair;        /* a sort key, and its element's position (sort.c) */
/* Sorts a by keys, stable. b: as much room. Gives the one of the two that has the result. */
ty_pair *ty_sort_pairs(ty_pair *a, ty_pair *b, int64_t n);
uint64_t *ty_sort_words(uint64_t *a, uint64_t *b, int64_t n, int from, int to);        /* words, by bits from .. to - 1, or by more */
int ty_bits_for(uint64_t most);                              /* that numbers up to most need */
int ty_threads_for(int64_t work);                            /* 1 below the size where threads pay */
/* At least 16 bytes; the last 16 may be moved twice. For so few that a call would cost more. */
TY_INLINE void ty_move_few(char *to, const char *from, int64_t bytes) {
  for (int64_t at = 0; at + 16 < bytes; at += 16) memcpy(to + at, from + at, 16);
  memcpy(to + bytes - 16, from + bytes - 16, 16);
}
void *ty_scratch(size_t n);                                  /* for a call; free with ty_scratch_free */
void ty_scratch_free(void *p);
/* Runs kernel in float32 with 16-bit operands converted, and rounds its results once. */
ty_status ty_widened(ty_call *c, ty_kernel kernel);
/* C = op(A) op(B) + beta C, row-major, float32 or float64. Not to be called within a parallel region of one thread: there OpenMP takes
 * the product's own threads for nested ones, and starts them anew at each call. */
void ty_gemm(ty_loop_type k, int ta, int tb, int64_t m, int64_t n, int64_t kk, const void *a, int64_t lda, const void *b,
  int64_t ldb, double beta, void *c, int64_t ldc);
/* Whether many products of m rows with the same transposed B are faster once B itself has been transposed. */
bool ty_gemm_prefers_turned(ty_loop_type k, int64_t m);
bool ty_dnnl_avx2(void);                 /* oneDNN uses its AVX2 kernels here, which have other strengths */
bool ty_dnnl_avx512(void);               /* the same of AVX-512 */
/* By oneDNN; false: nothing was done, the caller has to do it otherwise. In the calling thread alone, with its signals held back: for
 * parallel work, or where there is one thread. */
bool ty_dnnl_gemm(int ta, int tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
  int64_t ldb, float beta, float *c, int64_t ldc);
/* A convolution: which of its tensors is computed, and all tensors: x (N,C,H,W) and y (N,O,OH,OW) channels-last, w (O,C/groups,KH,KW)
 * and b (O; NULL: none) contiguous. */
typedef struct { enum { TY_CONV_Y, TY_CONV_X, TY_CONV_W } which; ty_tensor *x, *w, *y, *b; ty_windows windows; } ty_convolution;
bool ty_dnnl_conv(const ty_convolution *v);
/* conv_steps.c: a forward convolution whose windows step along the width (step columns, kw of them, dilation 1), and the same with windows
 * that step by one. rows: of all pictures. */
typedef struct { int64_t step, rows, ch, width, padding, o, kh, kw, columns, taps; } ty_steps;
void ty_steps_of_rows(const ty_steps *v, const uint16_t *x, uint16_t *to);
void ty_steps_of_filters(const ty_steps *v, const uint16_t *w, uint16_t *to);
bool ty_depthwise_takes(const ty_convolution *v);            /* whatever the layouts */
bool ty_depthwise_slopes(const ty_convolution *v);           /* computes w, float32, if taken; false: nothing was done */
typedef struct {
  int64_t batch, m, n, k, sa[3], sb[3];                      /* strides: batch (0: the same matrix for all), row, column */
  const void *a, *b, *bias;                                  /* bias: n elements, or NULL */
  void *c;                                                   /* rows of ldc elements, batches one after the other */
  int64_t ldc;
  bool bf16, add;                                            /* bfloat16, else float32; added to what c holds */
} ty_product;
bool ty_dnnl_product(const ty_product *p);                   /* c = a b + bias, by all threads. False: nothing was done */
/* c (m,n), float32, = a (m,k) b (k,n), or that is added to it; a and b bfloat16, or their transposes; all contiguous. By the calling thread
 * alone. m a multiple of 16, n and k of 32, which keeps to what oneDNN is right for. False: nothing was done. */
bool ty_dnnl_tile(int64_t m, int64_t n, int64_t k, const uint16_t *a, bool ta, const uint16_t *b, bool tb, bool add, float *c);
bool ty_tile_pays(int64_t m, int64_t n, int64_t k);          /* the processor multiplies bfloat16, and there is enough to multiply */
/* What such products take: n rows of `width` numbers of dtype d, bfloat16 or float32, `apart` apart, as bfloat16, w apart, beside zeros up
 * to row `filled`. */
void ty_tile_rows(uint16_t *to, int64_t w, int64_t filled, ty_dtype d, const void *from, int64_t apart, int64_t n, int64_t width);
static inline int64_t ty_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

void ty_fill_value(ty_tensor *t, ty_operand v);            /* every element = v */
/* Brings `rows` rows of n elements, TY_BLOCK elements at most, one after another in dtype compute. stride: between elements; step: between
   rows. */
void ty_gather_rows(void *to, const char *from, ty_dtype dtype, ty_dtype compute, int64_t stride, int64_t n, int64_t step, int64_t rows);
ty_status ty_cpu_pointwise(ty_call *c);
ty_status ty_cpu_fuse(ty_ctx *ctx, const ty_backend *b, ty_fused *f);
ty_status ty_cpu_fused(ty_ctx *ctx, const ty_backend *b, ty_fused *f);
void ty_cpu_fused_free(ty_fused *f);
ty_status ty_cpu_reduce(ty_call *c);
ty_status ty_cpu_recurrent(ty_call *c);
ty_status ty_cpu_linalg(ty_call *c);
ty_status ty_cpu_fourier(ty_call *c);
ty_status ty_cpu_reduce_index(ty_call *c);
ty_status ty_cpu_scan(ty_call *c);
ty_status ty_cpu_copy(ty_call *c);
ty_status ty_cpu_sort(ty_call *c);
ty_status ty_cpu_resize(ty_call *c);
ty_status ty_cpu_sample(ty_call *c);
ty_status ty_cpu_distance(ty_call *c);
ty_status ty_cpu_attention(ty_call *c);
ty_status ty_cpu_fill(ty_call *c);
ty_status ty_cpu_random(ty_call *c);
ty_status ty_cpu_matmul(ty_call *c);
ty_status ty_cpu_softmax(ty_call *c);
ty_status ty_cpu_index(ty_call *c);
ty_status ty_cpu_bag(ty_call *c);
ty_status ty_cpu_nonzero(ty_call *c);
ty_status ty_cpu_align(ty_call *c);
ty_status ty_cpu_conv(ty_call *c);
ty_status ty_cpu_pool(ty_call *c);
ty_status ty_cpu_norm(ty_call *c);
ty_status ty_cpu_loss(ty_call *c);
ty_status ty_cpu_optim(ty_call *c);
ty_status ty_cpu_collective(ty_call *c);            /* core/group.c */
#endif
