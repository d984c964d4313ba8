/* What kernels share with the host code that launches them, in C and in CUDA C++.
 *
 * Idea: a launcher takes a struct (geometry and pointers) and a stream, launches, and returns the runtime's status; it neither waits nor
 * allocates. Invariant: the host never reads through a pointer to device memory. Strides count elements. k: the type computed in. */
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

/* What a kernel found wrong: the device writes it to pinned memory, which the host reads before its next op. */
enum {
  TY_FAULT_NONE,
  TY_FAULT_INDEX,                                        /* value isn't one of 1 .. limit */
  TY_FAULT_LABEL,                                        /* the same of a class label */
  TY_FAULT_PROBABILITY,                                  /* row `value` has an element that isn't a probability */
  TY_FAULT_TOO_FEW                                       /* row `value` has `limit` elements above 0, fewer than are to be drawn */
};
/* *claimed: the last epoch in which a kernel has reported; in device memory, since not every system has atomics on the host's. fault is
   written last. site: what src/cuda/sites.c has numbered, as in all structs here that a kernel may report from */
typedef struct { unsigned *claimed, epoch; int site; volatile int fault; volatile int64_t value, limit; } ty_k_fault;

/* ---- pointwise (pointwise.cu) ---- */
enum { TY_K_STRIDED, TY_K_DENSE, TY_K_NUMBER };         /* how an operand is read: by strides, laid out as the result, one value for all */
/* TY_K_NUMBER: with p NULL the value is f, or i for int64; else the element at p, first rounded to a 16-bit dtype where `rounded` isn't 0
   (1 + that dtype) */
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
/* result = operand, converted. a: op -1, dims in the order of the result's memory, merged; size: bytes of a result's element. */
TY_K cudaError_t ty_k_copy(const ty_k_point *a, int size, cudaStream_t s);
TY_K cudaError_t ty_k_fill(void *o, int size, uint64_t bits, int64_t n, cudaStream_t s);     /* n elements of size bytes */

/* ---- creation, random numbers (fill.cu) ---- */
/* o = first, first + step, ...; its last element is `last` */
TY_K cudaError_t ty_k_sequence(void *o, int dtype, int64_t n, double first, double step, double last, cudaStream_t s);
TY_K cudaError_t ty_k_eye(void *o, int dtype, int64_t rows, int64_t cols, cudaStream_t s);
/* o = x's lower (or upper) triangle from diagonal k; contiguous matrices */
TY_K cudaError_t ty_k_triangle(void *o, const void *x, int dtype, int64_t n, int64_t rows, int64_t cols, int64_t k,
  int lower, cudaStream_t s);
typedef struct { uint64_t seed, offset; unsigned ticket; } ty_k_generator;   /* in device memory; ticket: see move_on (device.cuh) */
typedef struct {
  int op, dtype;
  int64_t n, low, high;                                  /* randint */
  double a, b, most;                                     /* the op's first two attributes; most: uniform's largest result */
  const void *x;                                         /* bernoulli's probabilities, dropout's operand */
  void *o;                                               /* contiguous */
  uint8_t *mask;                                         /* dropout's */
  uint32_t least;                                        /* dropout's: the least word >> 8 that keeps an element (ty_least_kept) */
  ty_k_generator *g;
} ty_k_draw;
TY_K cudaError_t ty_k_random(const ty_k_draw *a, cudaStream_t s);      /* also advances the generator */
/* o: batch x c x oh x ow; x, index, mean, std contiguous; a bad index is reported and taken as 1 */
typedef struct {
  ty_augment a;
  int site, dtype;
  const uint8_t *x;
  const int64_t *index;
  const float *mean, *std;
  void *o;
  ty_k_generator *g;
  ty_k_fault *fault;
} ty_k_augmenting;
TY_K cudaError_t ty_k_augment(const ty_k_augmenting *k, cudaStream_t s);           /* also advances the generator */
/* n draws of a kind (core/draws.h) with parameters x and y; y may be NULL; also advances the generator */
TY_K cudaError_t ty_k_drawn(double *o, const double *x, const double *y, int64_t n, int kind, ty_k_generator *g, cudaStream_t s);
/* Keys of a random order. x NULL: o[i] is a random int64; else a float64 in its bits: -log(u) / x[i], inf where x[i] isn't above 0.
 * per: how many keys a Philox block gives, 1 or 2. */
TY_K cudaError_t ty_k_keys(int64_t *o, const double *x, int64_t n, int per, ty_k_generator *g, cudaStream_t s);
/* m draws from each of `rows` rows of n running sums: their 1-based positions */
TY_K cudaError_t ty_k_draws(int64_t *o, const double *sums, int64_t rows, int64_t n, int64_t m, ty_k_generator *g, cudaStream_t s);
/* reports rows that can't be drawn from: a bad element, or fewer than need above 0 */
TY_K cudaError_t ty_k_check_weights(const double *p, int64_t rows, int64_t n, int64_t need, ty_k_fault *fault, int site, cudaStream_t s);
TY_K cudaError_t ty_k_seed(ty_k_generator *g, uint64_t seed, uint64_t offset, cudaStream_t s);

/* ---- rows (rows.cuh): how a block works on a row of n <= TY_K_ROW elements, in fused kernels too ---- */
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
static inline int ty_k_row_together(int64_t n) { return n % 4 == 0 ? 4 : 1; }       /* neighbours that a thread takes */
/* Threads per row where a block has several rows, along y: as above, without threads of a warp that would have no element. */
static inline int ty_k_row_lanes(int64_t n) {
  int lanes = ty_k_row_threads(n);
  while (lanes <= 32 && lanes > 1 && lanes / 2 * ty_k_row_together(n) >= n) lanes /= 2;
  return lanes;
}
/* Rows per block, a power of two: as many as fit, but where blocks would be too few for a device, fewer, down to a whole warp. */
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
  int64_t outputs, length;                               /* products of keep and of reduce */
  int64_t keep[TY_K_DIMS], keep_stride[TY_K_DIMS], reduce[TY_K_DIMS], reduce_stride[TY_K_DIMS];
  const void *x;
  void *o;                                               /* contiguous over the kept dims */
  void *partial;                                         /* of several splits: 8 bytes times splits times outputs */
  unsigned *ticket;                                      /* of several splits: TY_K_TICKETS counters */
  int splits;
} ty_k_reduction;
TY_K int ty_k_reduce_splits(const ty_k_reduction *a);    /* decided by the fields above o, and x's alignment */
TY_K cudaError_t ty_k_reduce(const ty_k_reduction *a, cudaStream_t s);

/* ---- softmax, cross-entropy (softmax.cu): contiguous memory ---- */
typedef struct {
  int dtype, log;
  int64_t lines, n, inner;                               /* elements of a line lie inner apart */
  const void *x, *g;                                     /* backward: x is softmax's result, g its gradient; forward: g is NULL */
  void *o;
} ty_k_lines;
TY_K cudaError_t ty_k_softmax(const ty_k_lines *a, cudaStream_t s);

/* Cross-entropy: the rows' losses, their mean, their gradients, or all at once. Losses, totals and the losses' gradients are float64
   where x is, else float32. */
typedef struct {
  int site, dtype;
  int64_t rows, n, ignore, label_step, g_step;           /* n: classes; steps between rows' labels, gradients */
  double smoothing;
  const void *x, *weight;                                /* rows x n; n, or NULL */
  const int64_t *labels;
  void *losses;                                          /* one a row; NULL: backward alone, which reads lse */
  void *lse;                                             /* float64, one a row; with losses it may be NULL: not wanted */
  void *mean;                                            /* NULL, or gets the mean of the losses: of few rows, since one block adds them */
  /* the sum of what the rows count for in the mean. With mean: NULL, or it is written; else: NULL, or backward reads it */
  void *total;
  unsigned *ticket;                                      /* for the mean */
  void *o;                                               /* the gradient, rows x n, or NULL */
  const void *g;                                         /* with o: the losses' gradients, g_step apart; with mean or total: the mean's */
  ty_k_fault *fault;
} ty_k_entropy;
#define TY_K_ENTROPY_FEW 1024    /* rows; of more, `mean` isn't asked for */
TY_K cudaError_t ty_k_cross_entropy(const ty_k_entropy *a, cudaStream_t s);
/* For many rows: to = what each counts for; and mean, which holds the losses' sum, is divided by total. dtype: x's. */
TY_K cudaError_t ty_k_entropy_counts(const ty_k_entropy *a, void *to, cudaStream_t s);
TY_K cudaError_t ty_k_entropy_mean(void *mean, const void *total, int dtype, cudaStream_t s);

/* ---- optimizer steps over many tensors (optim.cu) ---- */
#define TY_K_TENSORS 24
#define TY_K_COPY 5                                      /* index in p of the parameters' 16-bit copies */
typedef struct { float *scale; int64_t *growth, interval; double growth_factor, backoff_factor; } ty_k_scale_rule;   /* of a GradScaler */
typedef struct {
  int op, dtype, grad_dtype, copy_dtype, count;          /* count: tensors in this launch */
  int lr_dtype;
  bool follow;                                           /* users see the copies: values that others wrote there replace the masters' */
  double lr;
  ty_optim_settings how;
  int64_t *step;                                         /* steps done so far */
  const void *lr_at;                                     /* in device memory; NULL: lr holds */
  const double *how_at;                                  /* how's numbers in device memory; NULL: how holds */
  float *found;                                          /* NULL, or where it isn't 0 nothing is updated */
  const float *scale;                                    /* NULL, or gradients are divided by it */
  /* rule.scale not NULL (last launch alone): found's GradScaler is updated after the step, and found becomes 0 */
  ty_k_scale_rule rule;
  unsigned *ticket;                                      /* last launch of a step, which counts it unless found is set; else NULL */
  int64_t n[TY_K_TENSORS];
  void *p[1 + TY_K_COPY][TY_K_TENSORS];                  /* params, grads, the op's further lists, copies; NULL: left out */
} ty_k_step;
TY_K cudaError_t ty_k_optim(const ty_k_step *a, cudaStream_t s);
typedef struct { int count; float *found[TY_K_TENSORS]; ty_k_scale_rule rule; } ty_k_scaling;
TY_K cudaError_t ty_k_scale_update(const ty_k_scaling *a, cudaStream_t s);

/* ---- lists of tensors (lists.cu) ---- */
/* Each item: to = from, both dense, of 16 or 32 bits. inner not 0: planes of outer x inner in `to` lie transposed in `from`. to NULL:
 * nothing is written. first: the item's first block, set by the launcher. found: NULL, or *found = 1 where an element of an item that is
 * looked_at, as it would be written, is infinite or NaN. */
#define TY_K_CASTS 32
typedef struct {
  int count;
  float *found;
  struct { const void *from; void *to; int64_t n, first, outer, inner; int from_dtype, to_dtype, looked_at; } item[TY_K_CASTS];
} ty_k_casts;
TY_K cudaError_t ty_k_cast_all(ty_k_casts *a, cudaStream_t s);
/* Copies each item's rows of `width` bytes, contiguous in `from`, to `to`, where rows begin pitch bytes apart. first: as above. */
#define TY_K_PARTS 64
typedef struct {
  int count;
  int64_t rows, pitch;
  struct { const char *from; char *to; int64_t width, first; } item[TY_K_PARTS];
} ty_k_parts;
TY_K cudaError_t ty_k_join_parts(ty_k_parts *a, cudaStream_t s);
/* One pass over up to TY_K_TENSORS tensors. Where a pointer isn't NULL: *found = 1 if an element is infinite or NaN; squares gets each
   chunk's sum of squares, from index `first` on, which the launcher advances; elements are divided by *scale; multiplied by *factor. */
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
#define TY_K_CHUNK 4096                                  /* elements of a tensor that a block does */
TY_K cudaError_t ty_k_sweep_all(ty_k_sweep *a, cudaStream_t s);
TY_K cudaError_t ty_k_norm_of_squares(void *o, int dtype, const double *squares, int64_t n, cudaStream_t s);

/* ---- index ops (index.cu) ---- */
/* small = large at the indices; or large at the indices: = small, += small, *= small, the larger, the smaller of both */
enum {
  TY_K_TAKE, TY_K_PUT, TY_K_ADD, TY_K_COMBINE,
  TY_K_PROD = TY_K_COMBINE + TY_COMBINE_PROD, TY_K_AMAX = TY_K_COMBINE + TY_COMBINE_AMAX, TY_K_AMIN = TY_K_COMBINE + TY_COMBINE_AMIN
};
typedef struct {
  int site, how, dtype, small_dtype, ndim, nindex, negative;   /* negative: indices may count from the end */
  int64_t n, shape[TY_K_DIMS];                           /* of the walk over the indexed part */
  int64_t large[TY_K_DIMS], small[TY_K_DIMS];            /* strides of the walk's dims; large: 0 where an index tells the place */
  void *p, *q;                                           /* large, small; q NULL: the number v (int64: vi) */
  double v;
  int64_t vi;
  /* index tensors; stride: of the walk's dims; size, step: the indexed dim's size and stride in large */
  struct { const int64_t *p; int64_t stride[TY_K_DIMS], size, step; } index[TY_K_DIMS];
  /* writes in order: the walk's first `lead` dims decide by indices where a write goes; the others only move on from there */
  int lead;
  int64_t positions;                                     /* product of those first dims */
  ty_k_fault *fault;
} ty_k_indexing;
TY_K cudaError_t ty_k_index(const ty_k_indexing *a, cudaStream_t s);
/* Writes in order: first each position's target; then, with the targets' order (1-based, stable), the writes. */
TY_K cudaError_t ty_k_index_targets(const ty_k_indexing *a, int64_t *targets_of, cudaStream_t s);
TY_K cudaError_t ty_k_index_in_order(const ty_k_indexing *a, const int64_t *target, const int64_t *order, cudaStream_t s);
/* bag: o (bags, width) = sums of rows of weight (rows, width); id (n), start (bags), scale (n; NULL: 1). All contiguous. */
typedef struct {
  int site, dtype;
  int64_t n, bags, rows, width, padding;
  const void *weight, *scale;
  const int64_t *id, *start;
  void *o;
  ty_k_fault *fault;
} ty_k_bags;
TY_K cudaError_t ty_k_bag(const ty_k_bags *a, cudaStream_t s);

/* ---- lines: scans, extremes with their places (scan.cu): element j of line (o, i) lies at (o * n + j) * inner + i ---- */
typedef struct {
  ty_loop_type k;
  int op, dtype;
  int64_t lines, n, inner;
  const void *x;
  void *o;                                               /* scans: laid out as x; extremes: one element a line */
  int64_t *place;                                        /* cummax, cummin, max_dim, min_dim: 1-based positions */
  int sections;                                          /* of a line, of `each` elements: set by ty_k_scan_sections */
  int64_t each;
  void *partial;                                         /* of several sections: 16 bytes for each section of each line */
} ty_k_scan;
TY_K void ty_k_scan_sections(ty_k_scan *a);
TY_K cudaError_t ty_k_scan_lines(const ty_k_scan *a, cudaStream_t s);
/* a->o: x's gradient; products: room for all elements */
TY_K cudaError_t ty_k_cumprod_gradient(const ty_k_scan *a, const void *g, double *products, cudaStream_t s);

/* ---- Fourier transforms (fourier.cu): lines of contiguous elements (core/fourier.h) ---- */
#define TY_K_FOURIER_SHARED 2048                         /* complex float32 numbers, at most, in a block's shared memory */
typedef struct {
  int kind, dtype;
  int64_t lines, n, m;                                   /* n: a signal's length; m: complex numbers in the passes */
  int64_t in, out;                                       /* numbers from one line of x to the next, and of o, where inner is 1 */
  int64_t inner;                                         /* lines side by side: elements lie so many lines' elements apart */
  int64_t elements;                                      /* of a line of o: pairs; of HALF kinds with odd n, numbers */
  double scale;
  const void *x;
  void *o, *work[2];                                     /* work: lines x m pairs each, where m is more than a block takes */
} ty_k_fourier;
TY_K cudaError_t ty_k_fourier_lines(const ty_k_fourier *a, cudaStream_t s);
/* o = the products of the pairs x[0] and x[1], or of x[1]'s conjugates; ndim dims of pairs, strides in numbers, between a pair's too */
typedef struct {
  int dtype, ndim;
  bool conjugate;
  int64_t n, shape[TY_K_DIMS], stride[2][TY_K_DIMS], between[2];
  const void *x[2];
  void *o;                                               /* contiguous */
} ty_k_pairs;
TY_K cudaError_t ty_k_pairs_product(const ty_k_pairs *a, cudaStream_t s);

/* ---- sorting (sort.cu): contiguous lines ---- */
typedef struct {
  int dtype, descending;
  int64_t lines, n, take;                                /* take: how many of each line's order are wanted */
  const void *x;
  void *values;                                          /* lines x take, of x's dtype; NULL: not wanted */
  int64_t *places;                                       /* lines x take, 1-based */
  void *work[2];                                         /* ty_k_sort_bytes each */
} ty_k_sorting;
TY_K size_t ty_k_sort_bytes(const ty_k_sorting *a);
TY_K cudaError_t ty_k_sort(const ty_k_sorting *a, cudaStream_t s);
/* per: values for each sorted line; 0: one sorted line for all */
typedef struct { int dtype, right; int64_t count, n, per; const void *sorted, *values; int64_t *o; } ty_k_searching;
TY_K cudaError_t ty_k_search(const ty_k_searching *a, cudaStream_t s);

/* ---- results of a size that the data decides (select.cu) ---- */
typedef struct {
  int dtype, ndim;
  int64_t n, shape[TY_K_DIMS], stride[TY_K_DIMS];
  const void *x;
  /* NULL: selects what isn't 0; else: groups of equal elements of contiguous x in this order, 1-based */
  const int64_t *order;
  int64_t *starts;                                       /* ty_k_select_tiles + 1; the last becomes the number found */
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
  /* maxima: their positions in the plane, 1-based, 0 where a window is all padding; forward NULL: not wanted */
  int64_t *places;
  void *copy;                                            /* forward: NULL, or y is also written here, by strides cs */
  const void *mask;                                      /* backward of maxima: NULL, or y counts where this is above 0; strides ms */
  int64_t cs[4], ms[4];
} ty_k_pooling;
TY_K cudaError_t ty_k_pool(const ty_k_pooling *a, cudaStream_t s);
typedef struct {
  int relu, wdtype, bdtype;                              /* relu: follows the norm */
  int64_t w_step, b_step;
  /* one a channel; mean and rstd float64 where pixels are, else float32; w and b may be NULL; mean NULL: relu alone */
  const void *mean, *rstd, *w, *b;
} ty_k_normalizing;
TY_K cudaError_t ty_k_normalized_pool(const ty_k_pooling *a, const ty_k_normalizing *n, cudaStream_t s);   /* forward, max */

/* ---- normalisation (layer_norm.cu): rows of n elements, contiguous ---- */
typedef struct {
  int dtype, wdtype, bdtype, ddtype, rms;                /* ddtype: of dw and db; rms: no mean, no bias */
  int gdtype, copy_dtype;                                /* of g, of copy: dtype, or, where that is float32, one 16-bit dtype for both */
  int64_t rows, n;
  double eps;
  const void *x, *w, *b, *g;                             /* w, b may be NULL; g: the result's gradient, in backward */
  void *o, *mean, *rstd;                                 /* backward: o gets x's gradient, mean and rstd are read */
  void *dw, *db;                                         /* backward: n elements each; db NULL for rms */
  /* backward: 2 n times ty_k_norm_parts elements, float64 where x is, else float32 */
  void *partial;
  /* backward; may be NULL. past: added to x's gradient; may be o itself. copy: gets that sum in copy_dtype; then o may be NULL */
  const void *past;
  void *copy;
} ty_k_norm;
TY_K int ty_k_norm_parts(int64_t rows, int64_t n);
TY_K cudaError_t ty_k_layer_norm(const ty_k_norm *a, cudaStream_t s);

/* Batch norm (batch_norm.cu): x, g and o have one dense layout: planes (pixels side by side, channels sc apart, images sn apart), or
   channels-last (sc 1). */
typedef struct {
  int dtype, wdtype, bdtype, ddtype, run_dtype, training;   /* ddtype: of dw and db; run_dtype: of the running mean and variance */
  int64_t images, channels, pixels, sn, sc, run_step[2], w_step, b_step;
  double momentum, eps;
  const void *x, *w, *b, *g;                             /* g: not NULL means backward */
  void *o, *mean, *rstd;                                 /* forward: mean and rstd are written; backward: read */
  void *run_mean, *run_var;                              /* NULL: none */
  int64_t *tracked;                                      /* NULL, or batches so far: training adds 1 */
  void *dw, *db;
  void *work;                                            /* 8 bytes times channels times (4 + 2 ty_k_batch_parts) */
  unsigned *tickets;
} ty_k_batch_norm;
TY_K int ty_k_batch_parts(const ty_k_batch_norm *a);
/* from: NULL, or g is this max pooling's backward result, which is computed here and not in memory. */
TY_K cudaError_t ty_k_batch(const ty_k_batch_norm *a, const ty_k_pooling *from, cudaStream_t s);

/* Group norm (group_norm.cu): x, g and o have one dense layout: n images of c channels of pixels, in planes or channels-last. */
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
  int dtype, ta, tb, relu, wide;                         /* wide: C is float32, A and B 16-bit */
  int64_t m, n, k, batch, lda, ldb, stride_a, stride_b;  /* as src/cuda/blas.h says */
  const void *a, *b, *bias;
  void *c;
  void *row_sums;                                        /* NULL, or gets the m sums of A's rows; single products without bias only */
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

/* o = 16-bit images x, of strides (n, c, h, w), as dense channels-last ones of `channels` channels, a multiple of 8; added ones are 0. */
typedef struct { int64_t n, c, h, w, channels, stride[4]; const void *x; void *o; } ty_k_widening;
TY_K cudaError_t ty_k_widen(const ty_k_widening *a, cudaStream_t s);

/* ---- resizing (resize.cu) ---- */
typedef struct {
  int dtype, mode, corners, back;
  int64_t n, c, in[2], out[2], xs[4], ys[4];             /* x: the input's side */
  double factor[2];
  void *x, *y;
  int64_t groups;                          /* of channels, and whether the result's lie side by side: set by the launcher */
  bool last;
} ty_k_resizing;
TY_K cudaError_t ty_k_resize(const ty_k_resizing *a, cudaStream_t s);

/* ---- grid_sample (sample.cu): x (n, c, h, w), grid (n, points, 2), y (n, c, points), all contiguous ---- */
typedef enum { TY_SAMPLE_TAKE, TY_SAMPLE_BACKWARD_GRID, TY_SAMPLE_BACKWARD_X } ty_sample_kind;
typedef struct {
  int kind, dtype, nearest, padding, corners, ordered;   /* ordered: additions in a fixed order */
  int64_t n, c, h, w, points;
  void *x, *y, *slopes;
  const void *grid;
} ty_k_sampling;
TY_K cudaError_t ty_k_sample(const ty_k_sampling *a, cudaStream_t s);

/* ctc_loss (align.cu). logs (steps, n, s): the states' log-probabilities; skips (n, s): whether a state may be reached from the state two
 * before it; lengths (n): steps of each sequence. Forward writes last (n, s), the variables after the last step, and reached (steps, n, s),
 * each step's variables without the step's own probability. Backward: from grad, last's gradient, slopes (steps, n, s), the gradient of
 * logs. Contiguous, float32 or float64. */
typedef struct {
  int dtype;
  int64_t steps, n, s;
  const void *logs, *grad;
  const uint8_t *skips;
  const int64_t *lengths;
  void *last, *reached, *slopes;
} ty_k_ctc;
TY_K cudaError_t ty_k_ctc_paths(const ty_k_ctc *a, cudaStream_t s);

/* cdist: o (batch, n, m) = norms of the differences of a's rows (batch, n, d) and b's (batch, m, d); or, from the norms and their gradient
 * g (batch, n, m), o (batch, n, d) = a's gradient. All contiguous, float32 or float64. */
typedef struct {
  int dtype;
  int64_t batch, n, m, d;
  double p;
  const void *a, *b, *g, *norms;
  void *o;
} ty_k_distance;
TY_K cudaError_t ty_k_distances(const ty_k_distance *a, cudaStream_t s);

/* ---- linear algebra (matrices.cu): of `batch` matrices a, n x n, n at most TY_K_SIDE; contiguous, float32 or float64 ----
 * b and its solutions, o: (batch, n, more). info: for each matrix 0, or LAPACK's info on why it has no factors; then its solution is NaN.
 * work: as large as a, where n is above TY_K_SIDE_SHARED. LU: o gets both factors, exchanged and order (batch, n) what ops.def says;
 * determinants: o (batch), and their signs, where o is the logarithm. */
#define TY_K_SIDE 256
#define TY_K_SIDE_SHARED 64
typedef enum {
  TY_MATRICES_CHOLESKY, TY_MATRICES_SOLVE, TY_MATRICES_TRIANGLE, TY_MATRICES_INVERT, TY_MATRICES_DETERMINANT, TY_MATRICES_LOG,
  TY_MATRICES_LU
} ty_matrices_kind;
typedef struct {
  int kind, dtype, n, more, upper, unit;
  int64_t batch;
  const void *a, *b;
  void *work, *o, *sign;
  int64_t *info, *exchanged, *order;
} ty_k_matrices;
TY_K cudaError_t ty_k_matrices_each(const ty_k_matrices *a, cudaStream_t s);

/* ---- recurrent layers (recurrent.cu): one step ----
 * Contiguous; n rows of h units. stat: of float32, or float64 where dtype is. Forward: o = the new state from x and y (n x gates*h;
 * y: the weights' product with the previous state, and its bias); updates cell; writes saved (n x kept*h, or NULL) and last (NULL, or
 * where the last cell goes). Backward: dx and dy from g, more (NULL, or the product that the later step gave), carry and dcell; updates
 * the latter two. After the first step, with g NULL: more += carry, last = dcell. */
typedef struct {
  int kind, dtype;
  int64_t n, h;
  const void *x, *y, *before, *cell_before;              /* the previous state; backward: the previous cell, rows cell_step apart */
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
  double slope;                                          /* by what scores' gradients are multiplied: scale for q and k, 1 for the mask */
  double kept;                                           /* 1 / (1 - dropout) */
  uint32_t least;                                        /* ty_least_half(dropout) */
  ty_k_heads q, k, v, mask, o, g, dq, dk, dvalue;        /* forward: g.p is NULL, o is written */
  void *lse, *delta;                                     /* heads x lq, float64 for float64, else float32 */
  int64_t *rng;                                          /* dropout's seed, offset: written by forward, read by backward; else unset */
  int sections;                                          /* of few queries: the keys are cut into sections of `each` keys */
  int64_t each;
  void *parts;                                           /* of several sections: heads x lq x sections x (dv + 2), lse's dtype */
} ty_k_attention;
TY_K cudaError_t ty_k_attend(const ty_k_attention *a, cudaStream_t s);             /* by tiles; backward needs the deltas first */

/* ---- attention in 16 bits by tensor cores (attention_mma.cu) ---- */
TY_K bool ty_k_attention_mma(const ty_k_attention *a);       /* whether this kernel takes it */
TY_K cudaError_t ty_k_attend_mma(const ty_k_attention *a, cudaStream_t s);         /* as ty_k_attend, but makes the deltas */

/* ---- attention of few queries, forward (attention_few.cu) ---- */
#define TY_K_FEW 16
TY_K bool ty_k_attention_few(ty_k_attention *a);             /* sets sections and each; false: not for this kernel */
TY_K cudaError_t ty_k_attend_few(const ty_k_attention *a, cudaStream_t s);

/* ---- attention's rows (attention_rows.cu) ---- */
TY_K cudaError_t ty_k_attention_begin(const ty_k_attention *a, ty_k_generator *g, cudaStream_t s);  /* writes rng; advances the generator */
TY_K cudaError_t ty_k_attention_deltas(const ty_k_attention *a, cudaStream_t s);   /* delta from o and g */
/* For `heads` heads from `head` on, matrices of heads x lq x lk: p = the weights from scores, q k^T. With dp, g v^T: p = the weights as
   dropout left them for v (NULL: not wanted), ds = the gradients of q k^T, or of the mask. scores, dp: delta's dtype; p, ds: a's; p may be
   scores, ds may be dp. */
typedef struct {
  const ty_k_attention *a;
  int64_t head, heads;
  const void *scores, *dp;
  void *p, *ds;
} ty_k_attention_scores;
TY_K cudaError_t ty_k_attention_rows(const ty_k_attention_scores *r, cudaStream_t s);

/* ---- attention by a library (attention_given.cu): what the library gets beside q, k and v, and what it leaves undone ----
 * bias: what the mask adds to scores. shape: 1 in a dim along which the mask is the same. Rows are ld apart. */
typedef struct {
  float *bias;
  int64_t shape[4], ld;
} ty_k_attention_given;
TY_K cudaError_t ty_k_attention_bias(const ty_k_attention *a, const ty_k_attention_given *x, cudaStream_t s);
TY_K cudaError_t ty_k_attention_unseen(const ty_k_attention *a, cudaStream_t s);   /* rows that see no key become 0 */
#endif
