/* Between the core and a library of GPU devices that is opened at run time.
 *
 * Idea: the library links nothing of the core; it gets the functions that it calls (services.def) in a struct, and fills another with
 * what it offers beyond its devices' backends. gpu: a device's number. stream: NULL is the device's default stream. */
#ifndef TY_GPU_H
#define TY_GPU_H
#include <stdarg.h>
#include "group.h"
#include "shape.h"

/* What users have set for all devices of the process. */
typedef struct {
  bool deterministic;                  /* the same bits for the same inputs, always */
  bool cudnn_benchmark, cudnn_deterministic;   /* time plans; only plans that repeat */
  bool allow_tf32, conv_tf32;          /* in float32 products; in float32 convolutions */
  bool refuse_sync, warn_sync;         /* copies and reads that wait for the device are errors; are told */
  bool memory_history;                 /* blocks of memory know which line of the program made them */
  bool sync_debug;                     /* wait for each op, so that an error comes from the call that made it */
} ty_gpu_flags;

/* A library belongs to one core: ops are numbered and structs laid out by src/core's headers, whose sum both are built with (Makefile). */
typedef struct {
  uint32_t interface;
  const ty_gpu_flags *flags;
#define SERVICE(type, name, params, args) type (*name) params;
#include "services.def"
  ty_status (*ty_verror)(ty_ctx *ctx, const char *who, const char *fmt, va_list ap);
} ty_services;

ty_status ty_verror(ty_ctx *ctx, const char *who, const char *fmt, va_list ap);   /* who: NULL or the op */

typedef struct { char name[256]; int major, minor, multiprocessors; size_t memory; } ty_gpu_properties;
#define TY_GPU_SIZES 6                 /* blocks by size: of class k up to so many bytes, but the last */
#define TY_GPU_SIZE(k) ((size_t)4096 << 4 * (k))
typedef struct {
  long long allocated, peak_allocated, reserved, peak_reserved, allocations, segments;   /* bytes; counts */
  long long retries, failures;         /* how often the device had no more: at first, and also after the cache was given back */
  long long used[TY_GPU_SIZES], free[TY_GPU_SIZES];                                       /* blocks in tensors' use, and in the cache */
} ty_gpu_stats;

/* A piece of a segment, which is what the driver gave at once. where: the line that made it, "" where that isn't known. */
typedef enum { TY_BLOCK_FREE, TY_BLOCK_USED, TY_BLOCK_AWAITED } ty_block_state;      /* awaited: by other streams, which still use it */
typedef struct { bool first; ty_block_state state; const void *p, *stream; size_t size; char where[96]; } ty_gpu_block;

/* A launch of a kernel of the program's own: args as its struct `arguments` has them, the tensors that it works with. */
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
  const ty_backend *device;            /* count of them */
  ty_status (*properties)(ty_ctx *ctx, int gpu, ty_gpu_properties *out);
  ty_status (*synchronize)(ty_ctx *ctx, int gpu);
  long long (*sync_count)(void);       /* how often the host has waited for a device */
  ty_status (*memory_info)(ty_ctx *ctx, int gpu, size_t *free, size_t *total);
  void (*stats)(int gpu, ty_gpu_stats *out);
  void (*reset_peaks)(int gpu);
  /* all blocks, segment by segment: how many there are; those that fit are written */
  size_t (*snapshot)(int gpu, ty_gpu_block *out, size_t room);
  /* No more than a share of the device's memory is reserved; share < 0: asks. Gives the share so far. */
  ty_status (*share)(ty_ctx *ctx, int gpu, double share, double *before);
  ty_status (*stream_new)(ty_ctx *ctx, int gpu, int priority, void **out);   /* the lower the number, the sooner: -1 before 0 */
  void (*stream_retain)(void *stream);
  void (*stream_release)(int gpu, void *stream);         /* the last one's may be handed out again */
  bool (*stream_usable)(int gpu, const void *stream);    /* whether it may be the current one: a graph's may while that is captured */
  void *(*stream_raw)(int gpu, void *stream);                                /* CUDA's handle of it */
  ty_status (*stream_synchronize)(ty_ctx *ctx, int gpu, void *stream);
  ty_status (*stream_query)(ty_ctx *ctx, int gpu, void *stream, bool *done);
  ty_status (*event_new)(ty_ctx *ctx, int gpu, bool timing, void **out);
  void (*event_free)(void *event);
  ty_status (*event_record)(ty_ctx *ctx, int gpu, void *event, void *stream);
  ty_status (*event_wait)(ty_ctx *ctx, int gpu, void *event, void *stream);   /* stream waits for event */
  ty_status (*event_synchronize)(ty_ctx *ctx, void *event);
  ty_status (*event_query)(ty_ctx *ctx, void *event, bool *done);
  ty_status (*event_elapsed)(ty_ctx *ctx, void *from, void *to, double *ms);
  ty_status (*pin)(ty_ctx *ctx, size_t n, void **out);                        /* host memory that copies reach without the host's help */
  void (*unpin)(void *p);
  /* Between begin and end what the calling thread puts into stream is recorded, not done; keep false: end forgets it.
     beside: NULL, or a graph whose memory this one shares: what that has given back is used again. own: of a compiled function, which
     keeps its values' memory and tells their new versions itself. */
  ty_status (*graph_begin)(ty_ctx *ctx, int gpu, void *beside, bool own, void **graph, void **stream);
  ty_status (*graph_end)(ty_ctx *ctx, void *graph, bool keep, size_t *nodes);
  ty_status (*graph_replay)(ty_ctx *ctx, void *graph);
  void (*graph_free)(void *graph);
  bool (*capturing)(void);             /* whether the calling thread does */
  bool (*graphs)(void);                /* whether there can be graphs: they need the caching allocator */
  /* A kernel from source text whose entry is `fused`, which takes one struct by value; it stays as long as the process. */
  ty_status (*kernel)(ty_ctx *ctx, int gpu, const char *source, void **kernel);
  ty_status (*launch)(ty_ctx *ctx, int gpu, void *kernel, const ty_gpu_launch *launch);
  /* For profilers outside: a named range of the calling thread begins (text) or ends (NULL), a moment is marked, recording is switched. */
  void (*range)(const char *text);
  void (*moment)(const char *text);
  ty_status (*recording)(ty_ctx *ctx, bool on);
  /* The plans that libraries have chosen by timing: words that are saved (how many; written where all fit),
     given back, and whose they are. */
  size_t (*timed_plans)(int64_t *words, size_t room);
  ty_status (*set_timed_plans)(ty_ctx *ctx, const int64_t *words, size_t n);
  unsigned (*timed_plans_set)(void);          /* how often: graphs that were captured before have others */
  const char *(*libraries)(void);
} ty_gpu;

/* The library's one entry. Gives NULL, or why there is no device. */
typedef const char *(*ty_gpu_open)(const ty_services *core, ty_gpu *out);
#endif
