/* What the allocator's files share: memory.c, which hands blocks out and takes them back, and segment.c, which gets the memory that they
 * are cut from. The invariants are at the top of memory.c; whoever calls a function here holds the lock. */
#ifndef TY_CUDA_MEMORY_H
#define TY_CUDA_MEMORY_H
#include <pthread.h>
#include "cuda.h"

#define UNIT ((size_t)512)                 /* block sizes are multiples of it */
#define SMALL ((size_t)1 << 20)            /* blocks up to this size come from segments of SMALL_SEGMENT */
#define SMALL_SEGMENT ((size_t)2 << 20)
#define LARGE_SEGMENT ((size_t)20 << 20)   /* for blocks up to half its size; each larger one has a segment, rounded up to SMALL_SEGMENT */
#define BINS 48
#define USERS 4

typedef struct {
  uint64_t id;                             /* 0: the general pool */
  long handles, segments;                  /* no handles: its segments go back when their blocks are free, then it ends */
  ty_gpu_source source;
} ty_mempool;

typedef struct ty_block {
  char *p;
  size_t size;
  ty_mempool *home;
  struct ty_block *before, *after;         /* neighbours in the segment */
  struct ty_block *prev, *next;            /* in a list of free blocks; next: also in the list of waiting ones */
  ty_stream *stream;
  uint64_t graph_pool;                     /* id of the graph pool it was allocated for; 0: none */
  uint64_t since;                          /* free: the heap's clock when it became so */
  ty_stream *user[USERS];                  /* other streams that have used it since it was allocated */
  _Atomic int nuser;                       /* the heap's lock is held to change it or late */
  int nwait;
  cudaEvent_t wait[USERS];                 /* must happen before it is free */
  ty_stream *by[USERS];                    /* the stream of each event */
  bool free, small;
  bool used;                               /* since it came from the device */
  bool unmarked;                           /* freed during a capture, so that its events are recorded later */
  bool awaited;                            /* in the list of waiting blocks */
  _Atomic bool late;                       /* its tensor was moved here, on its stream, which others may have waited for before */
  bool unmapped;                           /* addresses without memory */
  size_t piece;                            /* of its expandable segment; 0: the segment is an ordinary one */
  struct ty_block *earlier, *later;        /* a segment's first block: in the list of segments */
  char *where;                             /* the program's line that allocated it, or NULL */
} ty_block;

typedef struct {
  ty_block *bin[2][BINS];                  /* free blocks: large, small; by the power of two of their size */
  ty_block *waiting, *last;                /* blocks that wait for events, the oldest first */
  ty_block *segment;                       /* list of segments: the first block of each, which stays the first */
  long long allocated, peak_allocated, reserved, peak_reserved, allocations, segments, used[TY_GPU_SIZES];
  long long retries, failures;             /* refused allocations; a failure has two: before and after the cache is emptied */
  size_t refused;                          /* the last one's bytes */
  double share;                            /* the part of the device's memory that reserved stays within; 0: no limit */
  size_t most;                             /* that part in bytes */
  uint64_t clock;                          /* counts blocks that became free */
  uint64_t readers;                        /* other devices that use this one's memory: bits by number */
} ty_heap;

extern ty_heap ty_heaps[TY_MAXGPU];
extern pthread_mutex_t ty_heap_lock;

static inline int ty_gpu_of(const ty_heap *h) { return (int)(h - ty_heaps); }
static inline int ty_bin_of(size_t n) { return TY_MIN(BINS - 1, 63 - __builtin_clzll((unsigned long long)n)); }

/* ---- memory.c ---- */
void ty_list_block(ty_heap *h, ty_block *b);       /* as free */
void ty_unlist_block(ty_heap *h, ty_block *b);
void ty_merge_block(ty_heap *h, ty_block *b);      /* joins b, which is in no list, with its stream's free neighbours, and lists it */
ty_block *ty_cut_block(ty_block *b, size_t n);     /* a new block behind b, which keeps its first n bytes; NULL: no memory for it */
void ty_join_block(ty_block *b);                   /* makes b's neighbour behind it part of b */
/* The best free block for n bytes; it stays listed. fresh: one that wasn't used yet. */
ty_block *ty_find_block(ty_heap *h, bool small, size_t n, const ty_stream *s, const ty_mempool *home, bool fresh);

/* ---- segment.c ---- */
extern ty_mempool ty_general_pool;
/* A new block of at least n bytes, in no list, of memory from the device; NULL: there is none. fresh: it wasn't used yet. */
ty_block *ty_more_memory(ty_heap *h, bool small, size_t n, ty_stream *s, ty_mempool *home, bool fresh);
void ty_give_back(ty_heap *h, ty_block *b);        /* gives back what can be of a free block, which is in no list; lists the rest */
void ty_give_all_back(ty_heap *h, const ty_mempool *home);       /* the same for all free blocks of a pool; NULL: of all pools */
void ty_leave_over(void);                  /* notes that memory of a pool that has ended couldn't go back */
bool ty_give_left_over_back(void);         /* tries again; true: for all devices, so that another one may be current */
#endif
