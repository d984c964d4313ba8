/* The interfaces between the CUDA backend's files.
 *
 * Idea: each device has its own default stream and memory cache; an op is queued on the context's current stream and never waits.
 * Invariants: the device is selected (ty_cuda_use) before the runtime is called for it; every stream that uses a block of memory is
 * recorded with that block; every wait of the host is counted (ty_cuda_count_sync).
 * Names: ty_cuda_ and what is done, or ty_ and the thing that it is done to (stream, event, graph, pinned memory, mempool ...). */
#ifndef TY_CUDA_H
#define TY_CUDA_H
#include <cuda_runtime_api.h>
#include "gpu.h"
#include "kernels.h"

/* ---- device.c ---- */
extern const ty_services *ty_core;                           /* services.c */
extern ty_backend ty_gpus[TY_MAXGPU];
extern int ty_gpu_count;
const char *ty_cuda_lost(cudaError_t e);           /* text for an error that ends the use of the device; "" for others */
ty_status ty_cuda_fail(ty_ctx *ctx, cudaError_t e, const char *call, int gpu);
#define CUDA(ctx, gpu, e) do { cudaError_t e_ = (e); if (e_ != cudaSuccess) return ty_cuda_fail(ctx, e_, #e, gpu); } while (0)
cudaError_t ty_cuda_use(int gpu);                            /* selects gpu for this thread */
cudaError_t ty_cuda_open_device(int gpu);                    /* at its first use; ty_cuda_use and ty_stream_of call it */
bool ty_cuda_is_open(int gpu);
void ty_cuda_count_sync(void);
ty_k_fault *ty_cuda_fault_of(int gpu);                       /* where kernels report bad indices */
int ty_cuda_site(const ty_call *c);                          /* what such a report calls c; may run finalizers */
/* "embedding"; earlier: "embedding (an earlier call on cuda:0, train.lua:12)" */
void ty_cuda_site_text(int site, int gpu, bool earlier, char *text, size_t size);

/* ---- stream.c ---- */
typedef struct ty_stream {
  cudaStream_t s;
  int gpu, priority;
  bool for_graphs, taken;                  /* reserved for graph capture; owned by a graph's pool now */
  bool external;                           /* made by the program; never pooled */
  atomic_int holders;
  unsigned *tickets;                       /* see ty_stream_tickets */
  struct ty_stream *next;
} ty_stream;
/* TY_K_TICKETS counters, all 0, for a launch on the current stream whose last block does extra work (last_block in
 * kernels/device.cuh) and resets them. *made: NULL, or the counters' tensor, to be released after the launch. */
ty_status ty_stream_tickets(ty_call *c, int gpu, unsigned **out, ty_tensor **made);
/* Launches of one kind run one after another on a device, whatever streams, threads and graph branches they are from: what s gets between
   turn_begin and turn_end, in one launch, runs after the kind's previous one. */
typedef enum { TY_DRAWS, TY_EXCHANGES, TY_NTURNS } ty_turn;
void ty_turn_begin(ty_turn kind, ty_stream *s);
void ty_turn_end(ty_turn kind, int gpu);
/* Call both around the one launch that draws from the generator or reads it; end returns e. */
ty_k_generator *ty_generator_begin(ty_ctx *ctx, int gpu);    /* in device memory */
cudaError_t ty_generator_end(int gpu, cudaError_t e);
void ty_stream_join(ty_stream *s, int gpu, void *other);       /* s waits for other's work so far; NULL: the default stream's */
ty_stream *ty_stream_of(ty_ctx *ctx, int gpu);               /* the context's current stream */
cudaError_t ty_streams_open(int gpu, ty_stream **out);       /* makes the default stream */
ty_status ty_stream_new(ty_ctx *ctx, int gpu, int priority, void **out);
ty_status ty_stream_external(ty_ctx *ctx, int gpu, void *raw, void **out);     /* raw: a cudaStream_t of the program's */
ty_status ty_stream_accepts(ty_ctx *ctx, const ty_stream *s);       /* an error for a stream that the program itself is capturing */
ty_status ty_capture_stream(ty_ctx *ctx, int gpu, ty_stream **out);            /* for a graph's capture */
bool ty_stream_usable(int gpu, const void *stream);
void ty_stream_retain(void *stream);                         /* NULL, the default stream, isn't counted */
void ty_stream_release(int gpu, void *stream);
void *ty_stream_raw(int gpu, void *stream);
ty_status ty_stream_synchronize(ty_ctx *ctx, int gpu, void *stream);
ty_status ty_stream_query(ty_ctx *ctx, int gpu, void *stream, bool *done);
int ty_stream_priority(void *stream);
/* Events: *out is owned by the caller, who frees it; stream NULL: the default stream. elapsed: milliseconds, both events timed and done. */
ty_status ty_cuda_event_new(ty_ctx *ctx, int gpu, bool timing, bool blocking, void **out);
void ty_cuda_event_free(void *event);
ty_status ty_cuda_event_record(ty_ctx *ctx, int gpu, void *event, void *stream);
ty_status ty_cuda_event_wait(ty_ctx *ctx, int gpu, void *event, void *stream);
ty_status ty_cuda_event_synchronize(ty_ctx *ctx, void *event);
ty_status ty_cuda_event_query(ty_ctx *ctx, void *event, bool *done);
ty_status ty_cuda_event_elapsed(ty_ctx *ctx, void *from, void *to, double *ms);

/* An event after all that s has got so far; NULL where none can be had: then the host has waited for that work. */
cudaEvent_t ty_stream_mark(ty_stream *s);
/* What s gets from now on runs after what other has got so far (if need be, the host waits). */
void ty_stream_wait_for(ty_stream *s, ty_stream *other);

/* ---- graph.c ---- */
typedef struct ty_graph ty_graph;
/* begin captures what this thread does on *stream, with a memory pool of its own or that of beside, a graph; own: for a compiled function.
   end ends that; without keep, what was captured is dropped. replay launches the graph on the current stream. */
ty_status ty_graph_begin(ty_ctx *ctx, int gpu, void *beside, bool own, void **out, void **stream);
ty_status ty_graph_end(ty_ctx *ctx, void *graph, bool keep, size_t *nodes);
ty_status ty_graph_replay(ty_ctx *ctx, void *graph);
void ty_graph_free(void *graph);
ty_stream *ty_captures(int gpu);                             /* the stream in which this thread captures on gpu, or NULL */
uint64_t ty_captured_pool(int gpu);                          /* id of that graph's pool; 0: no capture */
bool ty_capturing(void);                                     /* this thread, on any device */
bool ty_anyone_captures(void);                               /* any thread */
/* Waits for all work of the current device, which would break a capture: returns cudaErrorNotReady while this thread captures; while
   another one does, first waits for that capture's end (insist), or returns the same. */
cudaError_t ty_cuda_wait(bool insist);
/* The same without the wait: false, or no thread begins to capture before ty_captures_go_on. */
bool ty_captures_stop(bool insist);
void ty_captures_go_on(void);
bool ty_ever_captured(void);            /* this process, whose graphs may run the plans they were captured with */
/* Sets this thread's mode while it captures (else does nothing); returns the previous mode. */
enum cudaStreamCaptureMode ty_capture_mode(enum cudaStreamCaptureMode mode);
ty_stream **ty_captured_turn(ty_turn kind, int gpu);         /* who had the last turn in this thread's capture; NULL: no capture */
uint64_t ty_cuda_queue_id(ty_ctx *ctx, const ty_backend *b);   /* of the current capture, else of the current stream */
/* Records that stream uses s: with s's block or, while a graph is captured, with the graph. */
void ty_cuda_uses(ty_stream *stream, ty_storage *s);
ty_status ty_refuse_capture(ty_ctx *ctx, const char *what);  /* an error while a graph is captured */

/* ---- memory.c ---- */
bool ty_cuda_cached(void);                                   /* freed blocks are kept for reuse; not where TYCHO_CUDA_CACHE is 0 */
uint64_t ty_cuda_pool_of(const ty_storage *s);               /* id of the graph pool it was allocated for; 0: none */
/* n bytes of the current stream's memory, *block the record of them; NULL: out of memory, after the cache was given back. */
void *ty_cuda_alloc(ty_ctx *ctx, const ty_backend *b, size_t n, void **block);
/* Ends their use, without waiting: they are reused on their own stream, after what other streams that used them have got so far. */
void ty_cuda_free(const ty_backend *b, void *p, size_t n, void *block);
void ty_cuda_empty_cache(const ty_backend *b);               /* gives unused memory back to the driver */
void ty_cuda_memory(const ty_backend *b, char *text, size_t size);     /* what the device has, for an out-of-memory error */
ty_status ty_mempool_new(ty_ctx *ctx, const ty_gpu_source *source, void **out);      /* see ty_gpu */
void ty_mempool_retain(void *pool);
void ty_mempool_release(void *pool);
ty_status ty_cuda_set_source(ty_ctx *ctx, const ty_gpu_source *source);      /* where the general pool gets its memory from now on */
void ty_cuda_stats(int gpu, ty_gpu_stats *out);
void ty_cuda_reset_peaks(int gpu);
size_t ty_cuda_snapshot(int gpu, ty_gpu_block *out, size_t room);      /* up to room blocks; gives how many there are */
void ty_memory_history_begin(size_t most);                          /* history.c; see ty_gpu */
size_t ty_memory_history(int gpu, ty_memory_event *out, size_t room);
/* Adds to the history if it is on. where: NULL if unknown. */
void ty_memory_happened(int gpu, ty_memory_action action, const void *p, size_t size, const ty_stream *stream, const char *where);
ty_status ty_cuda_share(ty_ctx *ctx, int gpu, double share, double *before);       /* limits use to this share of the device's memory */
void ty_memory_opens_to(int gpu, int reader);                      /* another device may use gpu's memory from now on */
void ty_cuda_used_on(const ty_storage *s, ty_stream *stream);     /* stream uses s: its memory isn't reused before that is done */
bool ty_cuda_used_elsewhere(const ty_storage *s, const ty_stream *stream);       /* by other streams, of late */
void ty_cuda_is_late(const ty_storage *s);               /* a stream's first use of s waits for s's own stream */
/* Before a graph that uses s is launched on the stream, which waits for what others do with s. */
void ty_cuda_settle(const ty_storage *s, ty_stream *stream, bool written);

/* ---- vmm.c: addresses of device memory, in pieces that get memory and lose it again ---- */
/* n bytes of addresses, aligned to a piece, a power of two; NULL: not possible, or not with such pieces. */
char *ty_vmm_reserve(int gpu, size_t n, size_t piece);
void ty_vmm_release(char *p, size_t n);                      /* all pieces must have lost their memory */
bool ty_vmm_map(int gpu, char *p, size_t n);                 /* gives the piece memory, which no device can use yet; false: none left */
bool ty_vmm_open_to(int gpu, char *p, size_t n);             /* lets a device use pieces that have memory */
void ty_vmm_unmap(char *p, size_t n);                        /* nothing may use it any more */

/* ---- pinned.c ---- */
ty_status ty_pin(ty_ctx *ctx, size_t n, void **out);         /* n bytes of page-locked memory, a spare block's if one fits */
void ty_unpin(void *p);                                      /* keeps them as a spare block, for after the copies under way */
bool ty_pinned(const void *p);
void ty_pinned_follows(const void *p, ty_stream *stream);    /* before a copy in stream */
void ty_pinned_used_on(const void *p, ty_stream *stream);    /* after it */
void ty_pinned_release(void);                                /* gives the spare blocks back */

/* ---- copy.c ---- */
bool ty_cuda_trade(ty_ctx *ctx, const ty_backend *b, ty_storage *held, ty_storage *fresh);
ty_status ty_cuda_transfer(ty_ctx *ctx, const ty_backend *b, ty_storage *dst, size_t dst_at, const ty_storage *src,
  size_t src_at, size_t n, bool wait);
ty_status ty_cuda_read(ty_ctx *ctx, const ty_storage *src, size_t at, void *dst, size_t n);
ty_status ty_cuda_copy(ty_call *c);
ty_status ty_cuda_cat(ty_call *c);

/* ---- call.c: what an entry begins and ends with ---- */
/* Selects the device, returns earlier kernels' errors, gives the current stream. */
ty_status ty_cuda_enter(ty_ctx *ctx, int gpu, ty_stream **s);
/* The same for an op's call; records that the stream uses its operands and results. */
ty_status ty_cuda_begin(ty_call *c, int *gpu, cudaStream_t *s);
int ty_cuda_gpu_of(const ty_call *c);                        /* the device on which c runs */
void ty_cuda_uses_of(const ty_call *c, ty_stream *s);         /* s uses the call's operands and results */
ty_status ty_cuda_launched(ty_call *c, int gpu, cudaError_t e);   /* e: what a launch in the current stream returned */
ty_status ty_cuda_sent(ty_ctx *ctx, const char *name, int gpu, cudaError_t e);     /* the same without a call */
ty_status ty_cuda_reported(ty_ctx *ctx, int gpu);            /* an error that an earlier op's kernel has reported */
ty_tensor ty_dim_last(const ty_tensor *t, int dim);          /* t with that dim last: a view, which holds no reference */
/* A new contiguous tensor on gpu. */
ty_status ty_cuda_new(ty_call *c, int gpu, ty_dtype d, int ndim, const int64_t *shape, ty_tensor **out);
/* The lines along dim of a contiguous tensor of t's shape: n elements each, which lie inner apart. */
void ty_cuda_lines_of(const ty_tensor *t, int dim, int64_t *lines, int64_t *n, int64_t *inner);

/* ---- one entry for each class of ops, in the file named like its kernels' file unless a comment names another ---- */
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
ty_status ty_cuda_linalg(ty_call *c);
ty_status ty_cuda_fourier(ty_call *c);
ty_status ty_cuda_conv(ty_call *c);
ty_status ty_cuda_collective(ty_call *c);                    /* group.c */
ty_status ty_cuda_attention(ty_call *c);
ty_status ty_cuda_sort(ty_call *c);
ty_status ty_cuda_joint(ty_ctx *ctx, const ty_backend *b, ty_joint kind, ty_call *const *call, int n);

/* ---- what these files share ---- */
/* By cuBLASLt, or by the own kernel where that can't; sums: as in blas.h. matmul.c */
ty_status ty_cuda_multiply(ty_call *c, int gpu, const ty_k_product *p, bool *sums);
/* Writes to one element have a fixed order where the op or deterministic mode needs it; index.c */
ty_status ty_cuda_index_walk(ty_call *c, int gpu, cudaStream_t s, ty_k_indexing *k);
/* o = x's elements at idx (int64, from 1) along dim; index.c */
ty_status ty_cuda_gather(ty_call *c, int gpu, cudaStream_t s, const ty_tensor *x, int dim, const ty_tensor *idx, const ty_tensor *o);
ty_status ty_cuda_sort_lines(ty_call *c, int gpu, cudaStream_t s, ty_k_sorting *k);   /* allocates the work space; sort.c */
ty_status ty_cuda_scan_lines(ty_call *c, int gpu, cudaStream_t s, ty_k_scan *k);     /* allocates it too; scan.c */
ty_status ty_cuda_nonzero(ty_call *c, int gpu, cudaStream_t s);
/* pool.c */
void ty_cuda_pooling_of(const ty_call *c, const ty_tensor *large, const ty_tensor *small, const ty_tensor *places, ty_k_pooling *k);
void ty_cuda_plane_strides(const ty_tensor *t, int64_t s[4]);     /* (n, c, h, w); t may have no n */
/* back: NULL, or the call of cross_entropy_mean_backward to be done with c; softmax.c */
ty_status ty_cuda_cross_entropy(ty_call *c, ty_call *back, int gpu, cudaStream_t s);
ty_k_scale_rule ty_cuda_scale_rule_of(const ty_call *update);     /* update: a call of amp_update; optim.c */
/* rule: NULL, or the GradScaler's update that follows the step */
ty_status ty_cuda_optim_step(ty_call *c, int gpu, cudaStream_t s, const ty_k_scale_rule *rule);
/* batch_norm_stats and batch_norm_backward. from: NULL, or the incoming gradient is this max pooling's backward result. norm.c */
ty_status ty_cuda_batch_norm(ty_call *c, int gpu, cudaStream_t s, const ty_k_pooling *from);
/* What is done together with a norm's backward (joint.c); each may be NULL. g: the incoming gradient in another dtype, used instead of the
   call's; past: added to the call's result, which makes sum, written instead of it; copy: gets the same in another dtype. */
typedef struct { ty_tensor *g; const ty_tensor *past, *sum, *copy; } ty_cuda_beside;
ty_status ty_cuda_layer_norm(ty_call *c, int gpu, cudaStream_t s, const ty_cuda_beside *beside);
ty_status ty_user_kernel(ty_ctx *ctx, int gpu, const char *source, void **out);     /* user_kernel.c */
ty_status ty_user_launch(ty_ctx *ctx, int gpu, void *kernel, const ty_gpu_launch *l);
ty_status ty_cuda_fuse(ty_ctx *ctx, const ty_backend *b, ty_fused *f);   /* fused.c */
ty_status ty_cuda_fused(ty_ctx *ctx, const ty_backend *b, ty_fused *f);
void ty_cuda_fused_free(ty_fused *f);
/* o, n elements of dtype d = x reduced by op, a reduction of the table, along the dims whose bits are set. */
ty_status ty_cuda_reduce_into(ty_call *c, int gpu, cudaStream_t s, int op, const ty_tensor *x, unsigned dims, void *o, ty_dtype d,
  int64_t n);
/* Sorts the dims by the result's strides, so that element i of the walk is element i of a dense result's memory, and
   merges them; leaves no dims where no operand needs strides. */
void ty_cuda_in_memory_order(ty_k_point *a);
/* dst = src, of the same shape or broadcast to it, any strides and dtypes, on one device. */
cudaError_t ty_cuda_convert(const ty_tensor *dst, const ty_tensor *src, cudaStream_t s);
/* Replaces *t by a copy in the same layout unless its data is 16-byte aligned, as cuBLASLt and cuDNN require; NULL stays NULL. */
ty_status ty_cuda_align_data(ty_call *c, int gpu, cudaStream_t s, ty_tensor **t);
/* Every element of dst = v. */
cudaError_t ty_cuda_fill_number(const ty_tensor *dst, ty_operand v, cudaStream_t s);
#endif
