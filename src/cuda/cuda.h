/* The CUDA backend's own interfaces.
 *
 * Idea: every device has a default stream of its own and a cache of memory; ops are put into the context's current stream and never wait.
 * Invariants: the device is set before the runtime is called for it; memory that a stream works with is recorded with its block; a wait
 * of the host is counted. */
#ifndef TY_CUDA_H
#define TY_CUDA_H
#include <cuda_runtime_api.h>
#include "gpu.h"
#include "kernels.h"

/* ---- device.c ---- */
extern const ty_services *ty_core;                           /* services.c */
extern ty_backend ty_gpus[TY_MAXGPU];
extern int ty_gpu_count;
const char *ty_cuda_lost(cudaError_t e);           /* what to say where an error has ended the use of the device; else "" */
ty_status ty_cuda_fail(ty_ctx *ctx, cudaError_t e, const char *call, int gpu);
#define CUDA(ctx, gpu, e) do { cudaError_t e_ = (e); if (e_ != cudaSuccess) return ty_cuda_fail(ctx, e_, #e, gpu); } while (0)
cudaError_t ty_use(int gpu);                                 /* makes it this thread's device */
cudaError_t ty_open(int gpu);                                /* done by ty_use and ty_stream_of at a device's first use */
bool ty_is_open(int gpu);
void ty_count_sync(void);
ty_k_fault *ty_fault_of(int gpu);                            /* where kernels report bad indices */

/* ---- stream.c ---- */
/* for_graphs: never handed out for anything else; taken: by a graph; tickets: see ty_tickets */
typedef struct ty_stream {
  cudaStream_t s;
  int gpu, priority;
  bool for_graphs, taken;
  atomic_int holders;
  unsigned *tickets;
  struct ty_stream *next;
} ty_stream;
/* TY_K_TICKETS counters that are 0, for a launch on the current stream whose last block does more (last_block in
 * kernels/device.cuh) and leaves them 0. *made: NULL, or to be released after it. */
ty_status ty_tickets(ty_call *c, int gpu, unsigned **out, ty_tensor **made);
/* Work of a kind that comes one after another on a device, whatever streams, threads and branches of a graph it is from: turn_begin
   makes what s gets until turn_end, in one launch, come after the last. */
typedef enum { TY_DRAWS, TY_EXCHANGES, TY_NTURNS } ty_turn;
void ty_turn_begin(ty_turn kind, ty_stream *s);
void ty_turn_end(ty_turn kind, int gpu);
/* Around the one launch that draws or looks (end gives e back). */
ty_k_generator *ty_generator_begin(ty_ctx *ctx, int gpu);    /* in device memory */
cudaError_t ty_generator_end(int gpu, cudaError_t e);
void ty_join(ty_stream *s, int gpu, void *other);      /* s goes on after other, NULL: the default stream */
ty_stream *ty_stream_of(ty_ctx *ctx, int gpu);               /* the current one */
cudaError_t ty_streams_open(int gpu, ty_stream **out);       /* makes the default stream */
ty_status ty_stream_new(ty_ctx *ctx, int gpu, int priority, void **out);
ty_status ty_capture_stream(ty_ctx *ctx, int gpu, ty_stream **out);            /* for a graph */
bool ty_stream_usable(int gpu, const void *stream);
void ty_stream_retain(void *stream);                         /* NULL, the default one, is held by nobody */
void ty_stream_release(int gpu, void *stream);
void *ty_stream_raw(int gpu, void *stream);
ty_status ty_stream_synchronize(ty_ctx *ctx, int gpu, void *stream);
ty_status ty_stream_query(ty_ctx *ctx, int gpu, void *stream, bool *done);
ty_status ty_event_new(ty_ctx *ctx, int gpu, bool timing, void **out);
void ty_event_free(void *event);
ty_status ty_event_record(ty_ctx *ctx, int gpu, void *event, void *stream);
ty_status ty_event_wait(ty_ctx *ctx, int gpu, void *event, void *stream);
ty_status ty_event_synchronize(ty_ctx *ctx, void *event);
ty_status ty_event_query(ty_ctx *ctx, void *event, bool *done);
ty_status ty_event_elapsed(ty_ctx *ctx, void *from, void *to, double *ms);

/* what s gets from now on comes after what other has (else the host waits); memory.c */
void ty_wait_for(ty_stream *s, ty_stream *other);

/* ---- graph.c ---- */
typedef struct ty_graph ty_graph;
ty_status ty_graph_begin(ty_ctx *ctx, int gpu, void *beside, bool own, void **out, void **stream);
ty_status ty_graph_end(ty_ctx *ctx, void *graph, bool keep, size_t *nodes);
ty_status ty_graph_replay(ty_ctx *ctx, void *graph);
void ty_graph_free(void *graph);
ty_stream *ty_captures(int gpu);                             /* the stream of the graph that this thread captures on gpu, or NULL */
uint64_t ty_captured_pool(int gpu);                          /* that graph's; 0: there is none */
bool ty_capturing(void);
bool ty_anyone_captures(void);                               /* in whatever thread */
/* Waits for the current device's work, which would break what is captured: while a thread captures, not ready; insist: not before another
   thread's capture has ended. */
cudaError_t ty_device_wait(bool insist);
bool ty_ever_captured(void);            /* in this process: graphs may run what they were captured with */
/* of this thread, while it captures; gives the one before */
enum cudaStreamCaptureMode ty_capture_mode(enum cudaStreamCaptureMode mode);
ty_stream **ty_captured_turn(ty_turn kind, int gpu);         /* whose turn was the last in the graph that this thread captures, or NULL */
uint64_t ty_queue_id(ty_ctx *ctx, const ty_backend *b);        /* of the current capture, else of the current stream */
/* stream works with s: recorded with its memory, or, while a graph is captured, with the graph */
void ty_uses(ty_stream *stream, ty_storage *s);
ty_status ty_refuse_capture(ty_ctx *ctx, const char *what);  /* an error while a graph is captured */

/* ---- memory.c ---- */
bool ty_cuda_cached(void);
uint64_t ty_pool_of(const ty_storage *s);                    /* whose capture it was made for; 0: none's */
void *ty_cuda_alloc(ty_ctx *ctx, const ty_backend *b, size_t n, void **block);
void ty_cuda_free(const ty_backend *b, void *p, size_t n, void *block);
void ty_cuda_empty_cache(const ty_backend *b);
void ty_cuda_memory(const ty_backend *b, char *text, size_t size);
void ty_cuda_stats(int gpu, ty_gpu_stats *out);
void ty_cuda_reset_peaks(int gpu);
size_t ty_cuda_snapshot(int gpu, ty_gpu_block *out, size_t room);
ty_status ty_cuda_share(ty_ctx *ctx, int gpu, double share, double *before);
void ty_used_on(const ty_storage *s, ty_stream *stream);     /* stream works with s: its memory isn't given to others until that is done */
ty_status ty_pin(ty_ctx *ctx, size_t n, void **out);
void ty_unpin(void *p);
bool ty_pinned(const void *p);
void ty_pinned_follows(const void *p, ty_stream *stream);    /* before a copy */
void ty_pinned_used_on(const void *p, ty_stream *stream);    /* after it */

/* ---- copy.c ---- */
ty_status ty_cuda_transfer(ty_ctx *ctx, const ty_backend *b, ty_storage *dst, size_t dst_at, const ty_storage *src,
  size_t src_at, size_t n, bool wait);
ty_status ty_cuda_read(ty_ctx *ctx, const ty_storage *src, size_t at, void *dst, size_t n);
ty_status ty_cuda_copy(ty_call *c);
ty_status ty_cuda_cat(ty_call *c);

/* ---- call.c: what an entry begins and ends with ---- */
/* sets the device, records the use of its operands and results, gives the stream */
ty_status ty_begin(ty_call *c, int *gpu, cudaStream_t *s);
void ty_uses_of(const ty_call *c, ty_stream *s);              /* what a call reads and writes is used by the stream */
ty_status ty_launched(ty_call *c, int gpu, cudaError_t e);   /* what a launch in the current stream gave */
ty_status ty_sent(ty_ctx *ctx, const char *name, int gpu, cudaError_t e);     /* the same, where there is no call */
ty_status ty_reported(ty_ctx *ctx, int gpu);                 /* an error that a kernel of an earlier op has reported */
/* a contiguous tensor on gpu */
ty_status ty_new(ty_call *c, int gpu, ty_dtype d, int ndim, const int64_t *shape, ty_tensor **out);
/* of a contiguous tensor like t: lines along dim, of n elements that lie inner apart */
void ty_lines_of(const ty_tensor *t, int dim, int64_t *lines, int64_t *n, int64_t *inner);

/* ---- one entry for each class of ops: each in the file that is named as its kernels are, but where it says otherwise ---- */
ty_status ty_cuda_pointwise(ty_call *c);
ty_status ty_cuda_fill(ty_call *c);
ty_status ty_cuda_random(ty_call *c);                        /* fill.c */
ty_status ty_cuda_reduce(ty_call *c);
ty_status ty_cuda_matmul(ty_call *c);
ty_status ty_cuda_recurrent(ty_call *c);
ty_status ty_cuda_softmax(ty_call *c);
ty_status ty_cuda_loss(ty_call *c);                          /* softmax.c */
ty_status ty_cuda_optim(ty_call *c);
ty_status ty_cuda_norm(ty_call *c);
ty_status ty_cuda_scan(ty_call *c);
ty_status ty_cuda_reduce_index(ty_call *c);                  /* scan.c */
ty_status ty_cuda_index(ty_call *c);
ty_status ty_cuda_pool(ty_call *c);
ty_status ty_cuda_resize(ty_call *c);
ty_status ty_cuda_sample(ty_call *c);
ty_status ty_cuda_distance(ty_call *c);
ty_status ty_cuda_align(ty_call *c);
ty_status ty_cuda_fourier(ty_call *c);
ty_status ty_cuda_conv(ty_call *c);
ty_status ty_cuda_collective(ty_call *c);                    /* group.c */
ty_status ty_cuda_attention(ty_call *c);
ty_status ty_cuda_sort(ty_call *c);
ty_status ty_cuda_joint(ty_ctx *ctx, const ty_backend *b, ty_joint kind, ty_call *const *call, int n);

/* ---- what such files lend each other ---- */
/* by the library, or the own kernel where that can't; sums: as blas.h says. matmul.c */
ty_status ty_cuda_multiply(ty_call *c, int gpu, const ty_k_product *p, bool *sums);
/* writes meet in a fixed order where that is asked for; index.c */
ty_status ty_cuda_index_walk(ty_call *c, int gpu, cudaStream_t s, ty_k_indexing *k);
ty_status ty_cuda_sort_lines(ty_call *c, int gpu, cudaStream_t s, ty_k_sorting *k);   /* finds the work space; sort.c */
ty_status ty_scan_lines(ty_call *c, int gpu, cudaStream_t s, ty_k_scan *k);          /* the same; scan.c */
ty_status ty_cuda_nonzero(ty_call *c, int gpu, cudaStream_t s);
/* pool.c */
void ty_pooling_of(const ty_call *c, const ty_tensor *large, const ty_tensor *small, const ty_tensor *places, ty_k_pooling *k);
void ty_plane_strides(const ty_tensor *t, int64_t s[4]);     /* of 4 dims, or of 3, which have no images */
/* back: NULL, or cross_entropy_mean_backward of c's results; softmax.c */
ty_status ty_cross_entropy(ty_call *c, ty_call *back, int gpu, cudaStream_t s);
ty_k_scale_rule ty_scale_rule_of(const ty_call *update);     /* of amp_update; optim.c */
/* rule: NULL, or its scaler's update follows */
ty_status ty_optim_step(ty_call *c, int gpu, cudaStream_t s, const ty_k_scale_rule *rule);
/* batch_norm_stats and batch_norm_backward; from: NULL, or the gradient is what reaches x of these maxima's. norm.c */
ty_status ty_batch_norm(ty_call *c, int gpu, cudaStream_t s, const ty_k_pooling *from);
/* What goes with a norm's gradient (joint.c); each may be NULL. g: stands for the call's, of another dtype; past: is added, which gives sum
   in place of the call's result; copy: that in another dtype. */
typedef struct { ty_tensor *g; const ty_tensor *past, *sum, *copy; } ty_beside;
ty_status ty_layer_norm(ty_call *c, int gpu, cudaStream_t s, const ty_beside *beside);
ty_status ty_own_kernel(ty_ctx *ctx, int gpu, const char *source, void **out);     /* own.c */
ty_status ty_own_launch(ty_ctx *ctx, int gpu, void *kernel, const ty_gpu_launch *l);
ty_status ty_cuda_fuse(ty_ctx *ctx, const ty_backend *b, ty_fused *f);   /* fused.c */
ty_status ty_cuda_fused(ty_ctx *ctx, const ty_backend *b, ty_fused *f);
void ty_cuda_fused_free(ty_fused *f);
/* *o = n elements of dtype d: x reduced by an op of the table, along the dims whose bits are set */
ty_status ty_reduce_into(ty_call *c, int gpu, cudaStream_t s, int op, const ty_tensor *x, unsigned dims, void *o, ty_dtype d, int64_t n);
/* Sorts the dims by the result's strides, so that element i of the walk is element i of a dense result's memory, and
   merges them; none is left where no operand needs them. */
void ty_in_memory_order(ty_k_point *a);
/* dst = src, of the same shape (or broadcast), any strides and dtypes, on one device. */
cudaError_t ty_convert(const ty_tensor *dst, const ty_tensor *src, cudaStream_t s);
/* *t becomes a copy in the same layout where it doesn't lie at a multiple of 16 bytes, as cuBLASLt and cuDNN want it; NULL stays. */
ty_status ty_align(ty_call *c, int gpu, cudaStream_t s, ty_tensor **t);
/* One element of memory of a dtype into all of dst. */
cudaError_t ty_fill_number(const ty_tensor *dst, ty_operand v, cudaStream_t s);
#endif
