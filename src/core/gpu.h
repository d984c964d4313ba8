/* The interface between the core and a library of GPU devices (cuda.so) that is opened at run time.
 *
 * Idea: the library links nothing of the core. It gets the core's functions that it calls in a struct (services.def), and fills in
 * ty_gpu with what it offers beside its backends. Everywhere here gpu is a device's number, and a stream of NULL the default one. */
#ifndef TY_GPU_H
#define TY_GPU_H
#include <stdarg.h>
#include "group.h"
#include "shape.h"

#define TY_EARLIER "(an earlier call on "          /* in errors that a kernel has reported since: they name that call and its line */

/* What users have set for all devices of the process. */
typedef struct {
  bool deterministic;                  /* the same bits for the same inputs, always */
  bool cudnn_benchmark, cudnn_deterministic;   /* choose plans by timing; only plans whose results repeat */
  bool flash_sdp, mem_efficient_sdp, math_sdp, cudnn_sdp;      /* the ways that attention may take */
  bool allow_tf32, conv_tf32;          /* TF32 in float32 products; in float32 convolutions */
  bool refuse_sync, warn_sync;         /* a copy or read that waits for the device is an error; gives a warning */
  bool memory_history;                 /* blocks of memory record the line that made them, and the allocator what it does */
  bool sync_debug;                     /* wait for each op, so that the call that caused an error reports it */
  double max_split_size;               /* bytes: larger cached blocks aren't cut up; 0: all may be */
  double garbage_collection_threshold; /* share of the memory above which unused segments go back first; 0: when none is left */
  bool expandable_segments;            /* new segments are ranges of addresses that get memory where it is needed */
  double roundup_power2_divisions;     /* steps between powers of two to which sizes are rounded up; 0: none */
} ty_gpu_flags;

/* interface: the checksum of src/core's headers, which number ops and lay out structs: a library fits only the core with the same one. */
typedef struct {
  uint32_t interface;
  const ty_gpu_flags *flags;
#define SERVICE(type, name, params, args) type (*name) params;
#include "services.def"
  ty_status (*ty_verror)(ty_ctx *ctx, const char *who, const char *fmt, va_list ap);
} ty_services;

ty_status ty_verror(ty_ctx *ctx, const char *who, const char *fmt, va_list ap);   /* who: NULL or the op */

typedef struct {
  char name[256];
  int major, minor, multiprocessors, warp, threads, registers;     /* threads, registers: of a multiprocessor */
  size_t memory, l2, shared, shared_of_block;                      /* bytes; shared: of a multiprocessor; of_block: without opting in */
} ty_gpu_properties;
#define TY_GPU_SIZES 6                 /* size classes of blocks: class k up to TY_GPU_SIZE(k) bytes, the last one the rest */
#define TY_GPU_SIZE(k) ((size_t)4096 << 4 * (k))
typedef struct {
  long long allocated, peak_allocated, reserved, peak_reserved, allocations, segments;   /* bytes; counts */
  long long retries, failures;         /* how often the device had no memory: at first; even after the cache was given back */
  long long used[TY_GPU_SIZES], free[TY_GPU_SIZES];                                       /* blocks in tensors' use; in the cache */
} ty_gpu_stats;

/* A piece of a segment, which the driver gave at once; first: its first piece; small: for small blocks alone; pool: its memory
 * pool, 0 the general one. where: the line that made it, "" if unknown. */
typedef enum { TY_BLOCK_FREE, TY_BLOCK_USED, TY_BLOCK_AWAITED } ty_block_state;      /* awaited: released, but other streams still use it */
typedef struct {
  bool first, expandable, small;
  ty_block_state state;
  const void *p, *stream;
  size_t size;
  uint64_t pool;
  char where[96];
} ty_gpu_block;

/* A program's functions that give device memory (n bytes; NULL where there is none) and take it back. stream: CUDA's handle of the one
 * whose work uses it first, or has used it. */
typedef struct {
  void *(*alloc)(ssize_t n, int gpu, void *stream);
  void (*free)(void *p, ssize_t n, int gpu, void *stream);
} ty_gpu_source;

/* What the allocator did. FREE_REQUESTED: the tensor has gone; FREE_COMPLETED: the block can be handed out again; MAP, UNMAP: of a part of
 * an expandable segment; OOM: size had no room. */
typedef enum {
  TY_MEMORY_ALLOC, TY_MEMORY_FREE_REQUESTED, TY_MEMORY_FREE_COMPLETED, TY_MEMORY_SEGMENT_ALLOC, TY_MEMORY_SEGMENT_FREE,
  TY_MEMORY_SEGMENT_MAP, TY_MEMORY_SEGMENT_UNMAP, TY_MEMORY_OOM
} ty_memory_action;
typedef struct {
  ty_memory_action action;
  const void *p, *stream;              /* p of OOM: the device's free bytes */
  size_t size;                         /* bytes */
  int64_t time;                        /* microseconds since 1970 */
  char where[96];                      /* the line that made the block, "" if unknown */
} ty_memory_event;

/* A launch of a user's kernel. args: its struct `arguments`, of size bytes; t: the tensors that it works with. */
typedef struct {
  const char *name;
  unsigned grid[3], block[3];
  const void *args;
  size_t size;
  ty_tensor *const *t;
  int nt;
} ty_gpu_launch;

typedef struct {
  int count;
  const ty_backend *device;            /* array of count backends */
  ty_status (*properties)(ty_ctx *ctx, int gpu, ty_gpu_properties *out);
  ty_status (*can_access_peer)(ty_ctx *ctx, int gpu, int peer, bool *can);    /* whether gpu can read peer's memory */
  ty_status (*synchronize)(ty_ctx *ctx, int gpu);
  long long (*sync_count)(void);       /* how often the host has waited for a device */
  ty_status (*memory_info)(ty_ctx *ctx, int gpu, size_t *free, size_t *total);
  void (*stats)(int gpu, ty_gpu_stats *out);
  void (*reset_peaks)(int gpu);
  /* Writes all blocks, segment by segment, as far as there is room; gives how many there are. */
  size_t (*snapshot)(int gpu, ty_gpu_block *out, size_t room);
  /* Begins the history of every device's memory anew, with the last `most` events each. */
  void (*history_begin)(size_t most);
  /* Writes a device's events, the oldest first, as far as there is room; gives how many there are. */
  size_t (*history)(int gpu, ty_memory_event *out, size_t room);
  /* Limits what is reserved to a share of the device's memory; share < 0: no change. *before: the share so far. */
  ty_status (*share)(ty_ctx *ctx, int gpu, double share, double *before);
  /* A memory pool: what is allocated while it is ctx->mempool has segments of its own, from source or, if that is NULL, from the driver.
     After the last release they go back when their tensors are gone; what a graph's pool had, when the cache is emptied. The functions of
     source are called with the device current, and must not call the library. */
  ty_status (*mempool_new)(ty_ctx *ctx, const ty_gpu_source *source, void **out);
  void (*mempool_retain)(void *pool);
  void (*mempool_release)(void *pool);
  ty_status (*set_source)(ty_ctx *ctx, const ty_gpu_source *source);   /* of what is outside such pools; an error once there is any */
  ty_status (*stream_new)(ty_ctx *ctx, int gpu, int priority, void **out);   /* lower numbers go first: -1 before 0 */
  ty_status (*stream_external)(ty_ctx *ctx, int gpu, void *raw, void **out); /* a stream that the program made itself */
  void (*stream_retain)(void *stream);
  void (*stream_release)(int gpu, void *stream);         /* after the last, it may be handed out again */
  bool (*stream_usable)(int gpu, const void *stream);    /* whether it may be current; a graph's: only while it is captured */
  void *(*stream_raw)(int gpu, void *stream);                                /* CUDA's handle of the stream */
  ty_status (*stream_synchronize)(ty_ctx *ctx, int gpu, void *stream);
  ty_status (*stream_query)(ty_ctx *ctx, int gpu, void *stream, bool *done);
  int (*stream_priority)(void *stream);
  ty_status (*event_new)(ty_ctx *ctx, int gpu, bool timing, bool blocking, void **out);   /* blocking: who waits for it sleeps */
  void (*event_free)(void *event);
  ty_status (*event_record)(ty_ctx *ctx, int gpu, void *event, void *stream);
  ty_status (*event_wait)(ty_ctx *ctx, int gpu, void *event, void *stream);   /* stream waits for event */
  ty_status (*event_synchronize)(ty_ctx *ctx, void *event);
  ty_status (*event_query)(ty_ctx *ctx, void *event, bool *done);
  ty_status (*event_elapsed)(ty_ctx *ctx, void *from, void *to, double *ms);
  ty_status (*pin)(ty_ctx *ctx, size_t n, void **out);                        /* page-locked host memory */
  void (*unpin)(void *p);
  /* From begin to end, what the calling thread puts into stream is recorded, not done; keep false: end drops the recording.
     beside: NULL, or a graph whose memory pool this one shares, with the blocks given back there. own: of a compiled function,
     which keeps its values' memory and counts their versions itself. */
  ty_status (*graph_begin)(ty_ctx *ctx, int gpu, void *beside, bool own, void **graph, void **stream);
  ty_status (*graph_end)(ty_ctx *ctx, void *graph, bool keep, size_t *nodes);
  ty_status (*graph_replay)(ty_ctx *ctx, void *graph);
  void (*graph_free)(void *graph);
  bool (*capturing)(void);             /* whether the calling thread captures a graph */
  bool (*graphs)(void);                /* whether graphs are possible: they need the caching allocator */
  /* Compiles a kernel. Its entry in source is `fused`, which takes one struct by value. The kernel lasts as long as the process. */
  ty_status (*kernel)(ty_ctx *ctx, int gpu, const char *source, void **kernel);
  ty_status (*launch)(ty_ctx *ctx, int gpu, void *kernel, const ty_gpu_launch *launch);
  /* For external profilers. range: begins a named range of the calling thread, or ends it (NULL). recording: switches theirs. */
  void (*range)(const char *text);
  void (*moment)(const char *text);
  ty_status (*recording)(ty_ctx *ctx, bool on);
  /* The plans that libraries have chosen by timing, as words to save: gives how many, and writes them where all fit;
     set_timed_plans takes them back; libraries says whose they are. */
  size_t (*timed_plans)(int64_t *words, size_t room);
  ty_status (*set_timed_plans)(ty_ctx *ctx, const int64_t *words, size_t n);
  unsigned (*timed_plans_set)(void);          /* how often they were set: older graphs use other plans */
  const char *(*libraries)(void);
  size_t (*dnn_version)(void);             /* cuDNN's, as 91900; 0: none */
} ty_gpu;

/* The library's one entry point. Gives NULL, or the reason why there is no device. */
typedef const char *(*ty_gpu_open)(const ty_services *core, ty_gpu *out);
#endif
