/* What kernels and the host code that launches them share, in C and in CUDA C++.
 *
 * Idea: a launcher takes a struct of geometry and pointers and a stream, launches, and gives the runtime's status; it neither waits nor
 * allocates. Invariant: the host reads nothing behind a pointer to a device's memory. Strides count elements. k: the type computed in. */
#ifndef TY_KERNELS_H
#define TY_KERNELS_H
#include <cuda_runtime_api.h>
#include <stdint.h>
#include "augment.h"
#include "names.h"
#include "optim_formulas.h"

#define TY_K_DIMS 8
#define TY_K_TICKETS 1024
#ifdef __cplusplus
#define TY_K extern "C"
#else
#define TY_K
#endif

/* What a kernel found wrong: in pinned memory that the device writes and the host looks at before its next op. */
enum {
  TY_FAULT_NONE,
  TY_FAULT_INDEX,                                        /* value isn't one of 1 .. limit */
  TY_FAULT_LABEL,                                        /* the same of a class label */
  TY_FAULT_PROBABILITY,                                  /* row value has an element that is none */
  TY_FAULT_TOO_FEW                                       /* row value has limit elements above 0, fewer than are to be drawn */
};
/* *claimed, in the device's memory, is the last epoch in which a kernel has reported: not every system has atomics in the host's. fault
   is written last; op: a ty_op_id */
typedef struct { unsigned *claimed, epoch; int op; volatile int fault; volatile int64_t value, limit; } ty_k_fault;

/* ---- pointwise (pointwise.cu) ---- */
enum { TY_K_STRIDED, TY_K_DENSE, TY_K_NUMBER };         /* how an operand is read: by strides, as the result lies, one value for all */
/* number: p NULL and f, or i (of int64); or one element at p, rounded to a 16-bit dtype first where rounded says so (1 + the
   dtype) */
typedef struct { void *p; int dtype, how, rounded; int64_t stride[TY_K_DIMS]; double f; int64_t i; } ty_k_operand;
typedef struct {
  ty_loop_type k;
  int op, nin, ndim;                                     /* op: a ty_op_id, or -1: conversion of the operand to the result's dtype */
  int64_t n, shape[TY_K_DIMS];
  double p, q;
  ty_k_operand o[4];                                     /* the result, then the operands */
} ty_k_point;
TY_K cudaError_t ty_k_pointwise(const ty_k_point *a, cudaStream_t s);

/* ---- copies (copy.cu) ---- */
/* The operand, converted, as the result; a: an op of -1, dims in the order of the result's memory, merged. size: bytes of its element. */
TY_K cudaError_t ty_k_copy(const ty_k_point *a, int size, cudaStream_t s);
TY_K cudaError_t ty_k_fill(void *o, int size, uint64_t bits, int64_t n, cudaStream_t s);     /* n elements of size bytes */

/* ---- creation, random numbers (fill.cu) ---- */
/* first, first + step, ...; last at the end */
TY_K cudaError_t ty_k_sequence(void *o, int dtype, int64_t n, double first, double step, double last, cudaStream_t s);
TY_K cudaError_t ty_k_eye(void *o, int dtype, int64_t rows, int64_t cols, cudaStream_t s);
/* o = x's lower (or upper) triangle from diagonal k; contiguous matrices */
TY_K cudaError_t ty_k_triangle(void *o, const void *x, int dtype, int64_t n, int64_t rows, int64_t cols, int64_t k,
  int lower, cudaStream_t s);
typedef struct { uint64_t seed, offset; unsigned ticket; } ty_k_generator;   /* in device memory; ticket: see move_on */
typedef struct {
  int op, dtype;
  int64_t n, low, high;                                  /* randint */
  double a, b, most;                                     /* the op's first two attributes; uniform: the largest number to be drawn */
  const void *x;                                         /* bernoulli's probabilities, dropout's operand */
  void *o;                                               /* contiguous */
  uint8_t *mask;                                         /* dropout's */
  uint32_t least;                                        /* dropout's: what keeps an element (ty_least_kept) */
  ty_k_generator *g;
} ty_k_draw;
TY_K cudaError_t ty_k_random(const ty_k_draw *a, cudaStream_t s);      /* also moves the generator on */
/* o: batch x c x oh x ow; x, index, mean, std contiguous; a bad index is reported and taken as 1 */
typedef struct {
  ty_augment a;
  int op, dtype;
  const uint8_t *x;
  const int64_t *index;
  const float *mean, *std;
  void *o;
  ty_k_generator *g;
  ty_k_fault *fault;
} ty_k_augmenting;
TY_K cudaError_t ty_k_augment(const ty_k_augmenting *k, cudaStream_t s);           /* also moves the generator on */
/* n draws of a kind (core/draws.h) with parameters x and y; y may be NULL; also moves the generator on */
TY_K cudaError_t ty_k_drawn(double *o, const double *x, const double *y, int64_t n, int kind, ty_k_generator *g, cudaStream_t s);
/* o[i], float64: x NULL: a random int64, in bits; else -log(u) / x[i], inf where x[i] isn't above 0: the keys of a
 * random order. per: Philox blocks, one gives per elements (1 or 2) */
TY_K cudaError_t ty_k_keys(int64_t *o, const double *x, int64_t n, int per, ty_k_generator *g, cudaStream_t s);
/* m draws for each of rows x n running sums: the place of each, 1-based */
TY_K cudaError_t ty_k_draws(int64_t *o, const double *sums, int64_t rows, int64_t n, int64_t m, ty_k_generator *g, cudaStream_t s);
/* reports what of the rows can't be drawn from */
TY_K cudaError_t ty_k_check_weights(const double *p, int64_t rows, int64_t n, int64_t need, ty_k_fault *fault, int op, cudaStream_t s);
TY_K cudaError_t ty_k_seed(ty_k_generator *g, uint64_t seed, uint64_t offset, cudaStream_t s);

/* ---- rows (rows.cuh): how a block goes over one of n <= TY_K_ROW elements, in fused kernels too ---- */
#define TY_K_ROW 4096
#define TY_K_ROW_THREADS 256
static inline int ty_k_row_threads(int64_t n) {
  int threads = 32;
  while (threads < TY_K_ROW_THREADS && threads * 16 < n) threads *= 2;
  return threads;
}
#ifdef __CUDACC__
__host__ __device__
#endif
static inline int ty_k_row_together(int64_t n) { return n % 4 == 0 ? 4 : 1; }       /* neighbours that one thread takes */
/* Threads of a row where rows stand side by side in a block, along y: as above, less those of a warp that would have no element. */
static inline int ty_k_row_lanes(int64_t n) {
  int lanes = ty_k_row_threads(n);
  while (lanes <= 32 && lanes > 1 && lanes / 2 * ty_k_row_together(n) >= n) lanes /= 2;
  return lanes;
}
/* Rows of a block, a power of two: whole warps, and, before blocks are filled, enough blocks for a device. */
static inline int ty_k_rows_of_block(int64_t rows, int64_t n) {
  const int lanes = ty_k_row_lanes(n);
  int many = lanes > 32 ? 1 : TY_K_ROW_THREADS / lanes;
  while (many * lanes > 32 && many > 1 && rows < (int64_t)512 * many) many /= 2;
  return many;
}

/* ---- reductions (reduce.cu) ---- */
typedef struct {
  ty_loop_type k;
  int op, dtype, out_dtype;
  int nkeep, nreduce;
  int64_t outputs, length;                               /* products of the sizes below */
  int64_t keep[TY_K_DIMS], keep_stride[TY_K_DIMS], reduce[TY_K_DIMS], reduce_stride[TY_K_DIMS];
  const void *x;
  void *o;                                               /* contiguous over the kept dims */
  void *partial;                                         /* 8 bytes times splits times outputs */
  unsigned *ticket;                                      /* with splits: TY_K_TICKETS */
  int splits;
} ty_k_reduction;
TY_K int ty_k_reduce_splits(const ty_k_reduction *a);    /* of what is set above o: shape, strides and alignment decide */
TY_K cudaError_t ty_k_reduce(const ty_k_reduction *a, cudaStream_t s);

/* ---- softmax, cross-entropy (softmax.cu): contiguous memory ---- */
typedef struct {
  int dtype, log;
  int64_t lines, n, inner;                               /* elements of a line lie inner apart */
  const void *x, *g;                                     /* backward: x is the result, g its gradient; else g is NULL */
  void *o;
} ty_k_lines;
TY_K cudaError_t ty_k_softmax(const ty_k_lines *a, cudaStream_t s);

/* Cross-entropy: losses of rows, their mean, gradients, or all at once. Losses, totals and gradients of losses: float64
   where x is, else float32. */
typedef struct {
  int op, dtype;
  int64_t rows, n, ignore, label_step, g_step;           /* n: classes */
  double smoothing;
  const void *x, *weight;                                /* rows x n; n, or NULL */
  const int64_t *labels;
  void *losses;                                          /* of rows; NULL: backward alone, lse is known */
  void *lse;                                             /* of rows; with losses it may be NULL: nobody reads it */
  void *mean;                                            /* NULL, or the mean of the losses is taken: of few rows, one block does it */
  /* what the rows count for together. with mean: it is written, unless NULL; else: NULL, or it is known */
  void *total;
  unsigned *ticket;                                      /* for the mean */
  void *o;                                               /* the gradient, rows x n, or NULL */
  const void *g;                                         /* with o: of the losses, g_step apart; with mean or total: of the mean */
  ty_k_fault *fault;
} ty_k_entropy;
#define TY_K_ENTROPY_FEW 1024    /* rows; of more the mean isn't asked for */
TY_K cudaError_t ty_k_cross_entropy(const ty_k_entropy *a, cudaStream_t s);
/* Of many rows: what each counts for; and mean, which holds the losses' sum, divided by total. dtype: x's. */
TY_K cudaError_t ty_k_entropy_counts(const ty_k_entropy *a, void *to, cudaStream_t s);
TY_K cudaError_t ty_k_entropy_mean(void *mean, const void *total, int dtype, cudaStream_t s);

/* ---- optimizer steps over many tensors (optim.cu) ---- */
#define TY_K_TENSORS 24
#define TY_K_COPY 5                                      /* the list of the parameters' 16-bit copies */
typedef struct { float *scale; int64_t *growth, interval; double growth_factor, backoff_factor; } ty_k_scale_rule;   /* a GradScaler's */
typedef struct {
  int op, dtype, grad_dtype, copy_dtype, count;          /* count: tensors in this launch */
  int lr_dtype;
  bool follow;                                           /* the copies are the parameters: what others have changed in them counts */
  double lr;
  ty_optim_settings how;
  int64_t *step;                                         /* how many there were */
  const void *lr_at;                                     /* NULL: lr */
  const double *how_at;                                  /* NULL, or where how's numbers are */
  float *found;                                          /* NULL, or not 0: nothing is updated */
  const float *scale;                                    /* NULL, or gradients are divided by it */
  /* scale NULL: none; else of the last launch: found's scaler moves on after it, and found becomes 0 */
  ty_k_scale_rule rule;
  unsigned *ticket;                                      /* of the last launch of a step, which counts it unless found; else NULL */
  int64_t n[TY_K_TENSORS];
  void *p[1 + TY_K_COPY][TY_K_TENSORS];                  /* params, grads, the op's further lists, copies; NULL: left out */
} ty_k_step;
TY_K cudaError_t ty_k_optim(const ty_k_step *a, cudaStream_t s);
typedef struct { int count; float *found[TY_K_TENSORS]; ty_k_scale_rule rule; } ty_k_scaling;
TY_K cudaError_t ty_k_scale_update(const ty_k_scaling *a, cudaStream_t s);

/* ---- lists of tensors (lists.cu) ---- */
/* to = from, dense, of 16 or 32 bits; inner not 0: planes of outer x inner in to are turned in from. first: the item's
 * first block, which a launch fills in. to NULL: there is nothing to write. found: NULL, or *found = 1 where an element
 * of what is looked_at, as written, is infinite or NaN. */
#define TY_K_CASTS 32
typedef struct {
  int count;
  float *found;
  struct { const void *from; void *to; int64_t n, first, outer, inner; int from_dtype, to_dtype, looked_at; } item[TY_K_CASTS];
} ty_k_casts;
TY_K cudaError_t ty_k_cast_all(ty_k_casts *a, cudaStream_t s);
/* Each item's rows of `width` bytes, one after another, to where pitch bytes lie between them. first: as above. */
#define TY_K_PARTS 64
typedef struct {
  int count;
  int64_t rows, pitch;
  struct { const char *from; char *to; int64_t width, first; } item[TY_K_PARTS];
} ty_k_parts;
TY_K cudaError_t ty_k_join_parts(ty_k_parts *a, cudaStream_t s);
/* One pass over up to TY_K_TENSORS tensors, which does what is asked for: *found = 1 where an element is infinite or NaN; the sum of
   each chunk's squares goes to squares, from `first` on, which moves on; then elements are divided by *scale, or multiplied by *factor. */
typedef struct {
  int count, dtype, factor_dtype;
  float *found;
  double *squares;
  int64_t first;
  const float *scale;
  const void *factor;
  int64_t n[TY_K_TENSORS];
  void *p[TY_K_TENSORS];
} ty_k_sweep;
#define TY_K_CHUNK 4096                                  /* elements of a tensor that a block goes over */
TY_K cudaError_t ty_k_sweep_all(ty_k_sweep *a, cudaStream_t s);
TY_K cudaError_t ty_k_norm_of_squares(void *o, int dtype, const double *squares, int64_t n, cudaStream_t s);

/* ---- index ops (index.cu) ---- */
/* small = large at the indices; large there = small; += small; *= small; the larger, the smaller of both */
enum {
  TY_K_TAKE, TY_K_PUT, TY_K_ADD, TY_K_COMBINE,
  TY_K_PROD = TY_K_COMBINE + TY_COMBINE_PROD, TY_K_AMAX = TY_K_COMBINE + TY_COMBINE_AMAX, TY_K_AMIN = TY_K_COMBINE + TY_COMBINE_AMIN
};
typedef struct {
  int op, how, dtype, small_dtype, ndim, nindex, negative;   /* negative: indices may count from the end */
  int64_t n, shape[TY_K_DIMS];                           /* the walk: the indexed part's shape */
  int64_t large[TY_K_DIMS], small[TY_K_DIMS];            /* strides in the walk; large: 0 where an index leads */
  void *p, *q;                                           /* large, small; q NULL: the number v */
  double v;
  int64_t vi;
  /* size: of the dim in large; step: its stride there */
  struct { const int64_t *p; int64_t stride[TY_K_DIMS], size, step; } index[TY_K_DIMS];
  /* writes in order: the first dims of the walk decide where; the others lead nowhere else */
  int lead;
  int64_t positions;                                     /* of those first dims */
  ty_k_fault *fault;
} ty_k_indexing;
TY_K cudaError_t ty_k_index(const ty_k_indexing *a, cudaStream_t s);
/* Writes in order: where each position leads; then, with the order of that (1-based, stable), the writes. */
TY_K cudaError_t ty_k_index_targets(const ty_k_indexing *a, int64_t *targets_of, cudaStream_t s);
/* bag: o (bags, width) = sums of rows of weight (rows, width), which lie in a row, as do id (n), start (bags) and scale (n; NULL: 1). */
typedef struct {
  int op, dtype;
  int64_t n, bags, rows, width, padding;
  const void *weight, *scale;
  const int64_t *id, *start;
  void *o;
  ty_k_fault *fault;
} ty_k_bags;
TY_K cudaError_t ty_k_bag(const ty_k_bags *a, cudaStream_t s);
TY_K cudaError_t ty_k_index_in_order(const ty_k_indexing *a, const int64_t *target, const int64_t *order, cudaStream_t s);

/* ---- lines: scans, extremes with their places (scan.cu): element j of line (o, i) lies at (o * n + j) * inner + i ---- */
typedef struct {
  ty_loop_type k;
  int op, dtype;
  int64_t lines, n, inner;
  const void *x;
  void *o;                                               /* scans: as x; extremes: one element a line */
  int64_t *place;                                        /* cummax, cummin, max_dim, min_dim: 1-based */
  int sections;                                          /* of a line, of `each` elements: set by ty_k_scan_sections */
  int64_t each;
  void *partial;                                         /* 16 bytes for each section of each line, where they are more than one */
} ty_k_scan;
TY_K void ty_k_scan_sections(ty_k_scan *a);
TY_K cudaError_t ty_k_scan_lines(const ty_k_scan *a, cudaStream_t s);
/* a.o: x's gradient; products: room for all elements */
TY_K cudaError_t ty_k_cumprod_gradient(const ty_k_scan *a, const void *g, double *products, cudaStream_t s);

/* ---- Fourier transforms (fourier.cu): contiguous lines (core/fourier.h) ---- */
#define TY_K_FOURIER_SHARED 2048                         /* complex numbers of float32 that a block takes at most */
typedef struct {
  int kind, dtype;
  int64_t lines, n, m;                                   /* n: of a signal; m: complex numbers of the passes */
  int64_t in, out;                                       /* numbers of a line of x and of o */
  int64_t elements;                                      /* of a line of o: pairs, or numbers where n is odd */
  const void *x;
  void *o, *work[2];                                     /* work: lines x m pairs each, where m is more than a block takes */
} ty_k_fourier;
TY_K cudaError_t ty_k_fourier_lines(const ty_k_fourier *a, cudaStream_t s);

/* ---- sorting (sort.cu): contiguous lines ---- */
typedef struct {
  int dtype, descending;
  int64_t lines, n, take;                                /* take: how many of each order are wanted */
  const void *x;
  void *values;                                          /* lines x take, of x's dtype; NULL: not wanted */
  int64_t *places;                                       /* lines x take, 1-based */
  void *work[2];                                         /* ty_k_sort_bytes each */
} ty_k_sorting;
TY_K size_t ty_k_sort_bytes(const ty_k_sorting *a);
TY_K cudaError_t ty_k_sort(const ty_k_sorting *a, cudaStream_t s);
/* per: values for each sorted line, 0: one line */
typedef struct { int dtype, right; int64_t count, n, per; const void *sorted, *values; int64_t *o; } ty_k_searching;
TY_K cudaError_t ty_k_search(const ty_k_searching *a, cudaStream_t s);

/* ---- results of a size that the data decides (select.cu) ---- */
typedef struct {
  int dtype, ndim;
  int64_t n, shape[TY_K_DIMS], stride[TY_K_DIMS];
  const void *x;
  /* NULL: what isn't 0; else groups of equal elements of contiguous x in this order, 1-based */
  const int64_t *order;
  int64_t *starts;                                       /* ty_k_select_tiles + 1; the last becomes how many were found */
  int64_t *coordinates;                                  /* found x ndim */
  void *values;                                          /* groups: found */
  int64_t *inverse, *first, *sizes;                      /* n; found; found */
} ty_k_selection;
TY_K int64_t ty_k_select_tiles(int64_t n);
TY_K cudaError_t ty_k_select_count(const ty_k_selection *a, cudaStream_t s);
TY_K cudaError_t ty_k_select_write(const ty_k_selection *a, int64_t found, cudaStream_t s);

/* ---- pooling (pool.cu) ---- */
typedef struct {
  int dtype, max, back, adaptive, include_pad;
  int64_t n, c, h, w, oh, ow, kernel[2], stride[2], padding[2], dilation[2], divisor;
  int64_t xs[4], ys[4], is[4];                           /* strides (n, c, h, w) of pixels, windows, positions */
  void *x, *y;
  /* of maxima: 1-based in the plane, 0 where a window is all padding; NULL forward: not asked for */
  int64_t *places;
  void *copy;                                            /* NULL, or forward: y is also written here, by strides cs */
  const void *mask;                                      /* NULL, or backward of maxima: y counts where this is above 0, by strides ms */
  int64_t cs[4], ms[4];
} ty_k_pooling;
TY_K cudaError_t ty_k_pool(const ty_k_pooling *a, cudaStream_t s);
typedef struct {
  int relu, wdtype, bdtype;                              /* relu: it follows */
  int64_t w_step, b_step;
  /* of channels; mean and rstd float64 where pixels are, else float32; w and b may be NULL; mean NULL: relu alone */
  const void *mean, *rstd, *w, *b;
} ty_k_normalizing;
TY_K cudaError_t ty_k_normalized_pool(const ty_k_pooling *a, const ty_k_normalizing *n, cudaStream_t s);   /* forward, of maxima */

/* ---- normalisation (layer_norm.cu): rows of n elements, contiguous ---- */
typedef struct {
  int dtype, wdtype, bdtype, ddtype, rms;                /* ddtype: of dw and db; rms: no mean, no bias */
  int gdtype, copy_dtype;                                /* dtype; where that is float32 also a 16-bit one, the same for both */
  int64_t rows, n;
  double eps;
  const void *x, *w, *b, *g;                             /* w, b may be NULL; g: the result's gradient, in backward */
  void *o, *mean, *rstd;                                 /* backward: o is x's gradient, mean and rstd are read */
  void *dw, *db;                                         /* backward: n elements each; db NULL for rms */
  /* backward: 2 n times ty_k_norm_parts elements, float64 where x is, else float32 */
  void *partial;
  /* backward, or NULL. past: is added to x's gradient, and may be where that goes; copy: gets the same in copy_dtype, and o may be NULL */
  const void *past;
  void *copy;
} ty_k_norm;
TY_K int ty_k_norm_parts(int64_t rows, int64_t n);
TY_K cudaError_t ty_k_layer_norm(const ty_k_norm *a, cudaStream_t s);

/* Batch norm (batch_norm.cu): x, g and o lie alike and dense: planes (pixels side by side, channels sc apart, images sn), or
   channels-last (sc 1). */
typedef struct {
  int dtype, wdtype, bdtype, ddtype, run_dtype, training;   /* ddtype: of dw and db; run_dtype: of the running mean and variance */
  int64_t images, channels, pixels, sn, sc, run_step[2], w_step, b_step;
  double momentum, eps;
  const void *x, *w, *b, *g;                             /* g: not NULL means backward */
  void *o, *mean, *rstd;                                 /* forward: mean and rstd are written; backward: read */
  void *run_mean, *run_var;                              /* NULL: none */
  int64_t *tracked;                                      /* NULL, or training adds 1 to it */
  void *dw, *db;
  void *work;                                            /* 8 bytes times channels times (4 + 2 ty_k_batch_parts) */
  unsigned *tickets;
} ty_k_batch_norm;
TY_K int ty_k_batch_parts(const ty_k_batch_norm *a);
/* from: NULL, or g is what reaches x of the gradients of maxima, and is not in memory. */
TY_K cudaError_t ty_k_batch(const ty_k_batch_norm *a, const ty_k_pooling *from, cudaStream_t s);

/* Group norm (group_norm.cu): x, g and o lie alike and dense, n images of c channels of pixels, in planes or channels-last. */
typedef struct {
  int dtype, wdtype, bdtype, ddtype, parts, last;        /* ddtype: of dw and db; parts: ty_k_group_norm_parts; last: channels-last */
  int64_t n, c, groups, pixels;
  double eps;
  const void *x, *w, *b, *g;                             /* w, b may be NULL; g: not NULL means backward */
  void *o, *mean, *rstd;                                 /* n x groups, float64 where x is, else float32; backward: read */
  void *dw, *db;
  void *work;                                            /* n (3 c parts + 2 groups) of the statistics' dtype */
} ty_k_group_norm;
TY_K int ty_k_group_norm_parts(const ty_k_group_norm *a);
TY_K cudaError_t ty_k_norm_groups(const ty_k_group_norm *a, cudaStream_t s);

/* ---- matrix products (product.cu) ---- */
typedef struct {
  int dtype, ta, tb, relu, wide;                         /* wide: C is float32, of 16-bit operands */
  int64_t m, n, k, batch, lda, ldb, stride_a, stride_b;  /* as src/cuda/blas.h says */
  const void *a, *b, *bias;
  void *c;
  void *row_sums;                                        /* NULL, or m sums of A's rows; of one product without a bias */
} ty_k_product;
TY_K cudaError_t ty_k_multiply(const ty_k_product *a, cudaStream_t s);

/* ---- convolution (conv.cu): strides (n, c, h, w) ---- */
typedef struct {
  /* conv2d, conv2d_backward_input (writes x), conv2d_backward_weight (writes weight) */
  int op, dtype;
  int64_t n, c, h, w, o, oh, ow, kh, kw, groups, stride[2], padding[2], dilation[2];
  int64_t xs[4], ws[4], ys[4];
  void *x, *weight, *y;
  const void *bias;
} ty_k_convolution;
TY_K cudaError_t ty_k_convolve(const ty_k_convolution *a, cudaStream_t s);

/* 16-bit images by strides (n, c, h, w), channels-last and dense, with further channels of 0: `channels`, a multiple of 8. */
typedef struct { int64_t n, c, h, w, channels, stride[4]; const void *x; void *o; } ty_k_widening;
TY_K cudaError_t ty_k_widen(const ty_k_widening *a, cudaStream_t s);

/* ---- resizing (resize.cu) ---- */
typedef struct {
  int dtype, mode, corners, back;
  int64_t n, c, in[2], out[2], xs[4], ys[4];             /* x: the input's side */
  double factor[2];
  void *x, *y;
} ty_k_resizing;
TY_K cudaError_t ty_k_resize(const ty_k_resizing *a, cudaStream_t s);

/* ---- grid_sample (sample.cu): x (n, c, h, w), grid (n, points, 2), y (n, c, points), all contiguous ---- */
typedef enum { TY_SAMPLE_TAKE, TY_SAMPLE_BACKWARD_GRID, TY_SAMPLE_BACKWARD_X } ty_sample_kind;
typedef struct {
  int kind, dtype, nearest, padding, corners, ordered;   /* ordered: the additions have one order */
  int64_t n, c, h, w, points;
  void *x, *y, *slopes;
  const void *grid;
} ty_k_sampling;
TY_K cudaError_t ty_k_sample(const ty_k_sampling *a, cudaStream_t s);

/* ctc_loss (align.cu): logs (steps, n, s) of states' probabilities; skips (n, s): whether a state may be reached from two before it;
 * lengths (n): steps of a sequence. Forward: last (n, s), the last variables, and reached (steps, n, s), what all steps reached
 * before their own probability counted. With grad, that of last: slopes (steps, n, s), that of logs. Contiguous, float32 or float64. */
typedef struct {
  int dtype;
  int64_t steps, n, s;
  const void *logs, *grad;
  const uint8_t *skips;
  const int64_t *lengths;
  void *last, *reached, *slopes;
} ty_k_ctc;
TY_K cudaError_t ty_k_ctc_paths(const ty_k_ctc *a, cudaStream_t s);

/* cdist: o (batch, n, m), the norms of rows of a (batch, n, d) less rows of b (batch, m, d); or, with g and norms (batch, n, m), o
 * (batch, n, d), a's gradient. All contiguous, of float32 or float64. */
typedef struct {
  int dtype;
  int64_t batch, n, m, d;
  double p;
  const void *a, *b, *g, *norms;
  void *o;
} ty_k_distance;
TY_K cudaError_t ty_k_distances(const ty_k_distance *a, cudaStream_t s);

/* ---- recurrent layers (recurrent.cu): one step ----
 * Contiguous; n rows of h units. stat: float32, or float64 with that dtype. Forward: o = the new state of x and y (n x
 * gates*h; y: the product with the state before and its bias), cell changed, saved (n x kept*h, or NULL) and last (or
 * NULL: where the last cell goes) written. Backward: dx and dy of g, more (NULL, or the product that the later step has
 * given), carry and dcell, which it changes. Last: g NULL: more = more + carry, last = dcell. */
typedef struct {
  int kind, dtype;
  int64_t n, h;
  const void *x, *y, *before, *cell_before;              /* the state before; for backward the cell before, rows cell_step apart */
  int64_t cell_step;
  void *o, *saved, *last;
  void *cell;                                            /* stat */
  const void *g;
  void *more, *dx, *dy;
  void *carry, *dcell;                                   /* stat */
} ty_k_recurrence;
TY_K cudaError_t ty_k_recurrent(const ty_k_recurrence *a, cudaStream_t s);
TY_K cudaError_t ty_k_recurrent_back(const ty_k_recurrence *a, cudaStream_t s);

/* ---- attention (attention.cu) ---- */
typedef struct { const void *p; int64_t stride[4]; } ty_k_heads;   /* (N,H,L,D) */
typedef struct {
  int dtype, mask_dtype, causal;
  int64_t heads, h, lq, lk, d, dv;                       /* heads: N times h */
  double scale, dropout;
  double kept;                                           /* 1 / (1 - dropout) */
  uint32_t least;                                        /* ty_least_half(dropout) */
  ty_k_heads q, k, v, mask, o, g, dq, dk, dvalue;        /* forward: g.p is NULL, o is written */
  void *lse, *delta;                                     /* heads x lq, float64 for float64, else float32 */
  int64_t *rng;                                          /* seed, offset: with dropout kept by forward and read by backward, else unset */
  int sections;                                          /* of few queries: how many pieces the keys are cut into, of `each` keys */
  int64_t each;
  void *parts;                                           /* of more than one section: heads x lq x sections x (dv + 2), as lse */
} ty_k_attention;
TY_K cudaError_t ty_k_attend(const ty_k_attention *a, cudaStream_t s);             /* by tiles; backward: after the deltas */

/* ---- attention in 16 bits by tensor cores (attention_mma.cu) ---- */
TY_K bool ty_k_attention_mma(const ty_k_attention *a);       /* whether it is to be had so */
TY_K cudaError_t ty_k_attend_mma(const ty_k_attention *a, cudaStream_t s);         /* as ty_k_attend, but it makes the deltas */

/* ---- attention of few queries, forward (attention_few.cu) ---- */
#define TY_K_FEW 16
TY_K bool ty_k_attention_few(ty_k_attention *a);             /* sets sections and each; false: not to be taken so */
TY_K cudaError_t ty_k_attend_few(const ty_k_attention *a, cudaStream_t s);

/* ---- attention's rows (attention_rows.cu) ---- */
TY_K cudaError_t ty_k_attention_begin(const ty_k_attention *a, ty_k_generator *g, cudaStream_t s);  /* writes rng; moves the generator on */
TY_K cudaError_t ty_k_attention_deltas(const ty_k_attention *a, cudaStream_t s);   /* o and g to delta */
/* Of `heads` heads from `head` on, heads x lq x lk each: scores as q k^T gives them to p, the weights. With dp, g v^T: to p, as v saw
   them, and ds, the gradients of q k^T. scores, dp: of delta's dtype; p, ds: of a's; p may be scores, ds dp. */
typedef struct {
  const ty_k_attention *a;
  int64_t head, heads;
  const void *scores, *dp;
  void *p, *ds;
} ty_k_attention_scores;
TY_K cudaError_t ty_k_attention_rows(const ty_k_attention_scores *r, cudaStream_t s);

/* ---- attention by a library (attention_given.cu): what it is given beside q, k and v, and what it leaves undone ----
 * bias: what the mask adds to scores, of `shape`, which has 1 where it is the same for all. Rows are ld apart. */
typedef struct {
  float *bias;
  int64_t shape[4], ld;
} ty_k_attention_given;
TY_K cudaError_t ty_k_attention_bias(const ty_k_attention *a, const ty_k_attention_given *x, cudaStream_t s);
TY_K cudaError_t ty_k_attention_unseen(const ty_k_attention *a, cudaStream_t s);   /* rows that see no key, as the bias has it: 0 */
#endif
