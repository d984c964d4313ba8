/* Pinned host memory.
 *
 * Idea: there are few blocks, so they stand in plain lists. A released block is kept for reuse: taking memory from the driver and giving it
 * back are slow, and wait for all devices. Invariant: a block's copies follow one another, so that one event, after the last, stands for
 * all; a spare block is handed out again only after its event. */
#include <pthread.h>
#include "cuda.h"

#define BUSY 4
#define SPARE ((size_t)512)                /* a spare block may have twice the bytes that are asked for, and so many more */

typedef struct pinned { char *p; size_t n; struct pinned *next; cudaEvent_t last; } pinned;   /* last: after the last copy, or NULL */
static pinned *pins, *spare, **spare_end = &spare;       /* spare: the one released first is first */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void forget(pinned *b) {
  if (b->last) { cudaEventSynchronize(b->last); cudaEventDestroy(b->last); }
  cudaFreeHost(b->p);
  ty_free(b);
}

/* A spare block that is large enough, not much too large, and whose copies are done. After a few that aren't, later ones hardly are. */
static pinned *take_spare(size_t n) {
  int busy = 0;
  for (pinned **at = &spare, *b; (b = *at);) {
    const bool fits = b->n >= n && b->n <= 2 * n + SPARE;
    if (!fits) { at = &b->next; continue; }
    if (b->last && cudaEventQuery(b->last) != cudaSuccess) {
      if (++busy == BUSY) return NULL;
      if (b->next) {                       /* another stream's may be done sooner: it goes to the end */
        *at = b->next;
        b->next = NULL;
        spare_end = &(*spare_end = b)->next;
        continue;
      }
      return NULL;
    }
    if (b->last) cudaEventDestroy(b->last);
    b->last = NULL;
    if (!(*at = b->next)) spare_end = at;
    return b;
  }
  return NULL;
}

ty_status ty_pin(ty_ctx *ctx, size_t n, void **out) {
  int gpu = ctx->gpu;                      /* any device will do: an open one, if there is one */
  for (int i = 0; !ty_cuda_is_open(gpu) && i < ty_gpu_count; i++) if (ty_cuda_is_open(i)) gpu = i;
  TY_TRY(ty_refuse_capture(ctx, "pin_memory: called"));
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  pthread_mutex_lock(&lock);
  pinned *b = take_spare(n);
  pthread_mutex_unlock(&lock);
  if (!b) {
    void *p = NULL;
    b = ty_malloc(sizeof *b);
    if (!b) return ty_no_memory(ctx, "pin_memory");
    cudaError_t e = cudaHostAlloc(&p, n, cudaHostAllocPortable);
    if (e != cudaSuccess) { ty_free(b); return ty_cuda_fail(ctx, e, "cudaHostAlloc", gpu); }
    *b = (pinned){.p = p, .n = n};
  }
  pthread_mutex_lock(&lock);
  b->next = pins;
  pins = b;
  pthread_mutex_unlock(&lock);
  *out = b->p;
  return TY_OK;
}

static pinned *pin_of(const void *p) {
  for (pinned *b = pins; b; b = b->next)
    if ((const char *)p >= b->p && (const char *)p < b->p + b->n) return b;
  return NULL;
}

bool ty_pinned(const void *p) {
  pthread_mutex_lock(&lock);
  bool is = pin_of(p);
  pthread_mutex_unlock(&lock);
  return is;
}

static void follow(pinned *b, ty_stream *stream) {
  if (!b->last || cudaStreamWaitEvent(stream->s, b->last, 0) == cudaSuccess) return;
  cudaGetLastError();
  ty_cuda_count_sync();
  cudaEventSynchronize(b->last);
}

/* What stream does next with p runs after the copies that other streams have begun. */
void ty_pinned_follows(const void *p, ty_stream *stream) {
  if (ty_captures(stream->gpu)) return;
  pthread_mutex_lock(&lock);
  pinned *b = pin_of(p);
  if (b) follow(b, stream);
  pthread_mutex_unlock(&lock);
}

/* A copy in stream reads or writes p: its block isn't reused before that copy is done. */
void ty_pinned_used_on(const void *p, ty_stream *stream) {
  if (ty_captures(stream->gpu)) return;    /* the graph holds the memory */
  pthread_mutex_lock(&lock);
  pinned *b = pin_of(p);
  if (b) {
    follow(b, stream);
    if (b->last) cudaEventDestroy(b->last);    /* copies of one block follow one another, so one event stands for all */
    b->last = ty_stream_mark(stream);
  }
  pthread_mutex_unlock(&lock);
}

void ty_unpin(void *p) {
  pthread_mutex_lock(&lock);
  for (pinned **at = &pins; *at; at = &(*at)->next)
    if ((*at)->p == p) {
      pinned *b = *at;
      *at = b->next;
      b->next = NULL;
      if (ty_cuda_cached()) spare_end = &(*spare_end = b)->next;
      else forget(b);
      break;
    }
  pthread_mutex_unlock(&lock);
}

void ty_pinned_release(void) {
  pthread_mutex_lock(&lock);
  while (spare) {
    pinned *b = spare;
    spare = b->next;
    forget(b);
  }
  spare_end = &spare;
  pthread_mutex_unlock(&lock);
}
