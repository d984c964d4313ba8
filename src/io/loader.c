/* Threads (workers) that fill batches ahead of the thread that asks for them.
 *
 * Idea: the asking thread allocates each batch and appends it to one list. A worker takes the first batch that none has begun; the asking
 * thread takes the first of the list, once it is done. So order and contents don't depend on which worker is faster.
 * Invariant: the list and the batches' marks change under the lock; a batch that a worker has taken is the worker's until it is marked
 * done. A forked child has no workers, and the lock in any state: it touches neither. A worker that hangs in an item when it is to stop
 * (reading a dead file system, say) is left behind with its batch; the last of these frees the loader. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "data.h"
#include "deadline.h"

#define PATIENCE 1                 /* seconds that workers have to finish their items when they are to stop */

typedef struct { struct ty_loader *loader; int number; bool ended; pthread_t thread; ty_ctx ctx; ty_canvas canvas; } worker;

struct ty_loader {
  ty_source *source;
  pthread_mutex_t lock;
  pthread_cond_t work, ready;
  ty_batch *first, *last, *fresh;      /* fresh: the first that no worker has taken */
  atomic_bool stopping;
  pid_t process;                       /* that has the threads */
  int n, behind;                       /* behind: workers left behind by ty_loader_stop */
  worker w[];
};

static void end(ty_loader *l) {
  pthread_mutex_destroy(&l->lock);
  pthread_cond_destroy(&l->work);
  pthread_cond_destroy(&l->ready);
  ty_source_release(l->source);
  ty_free(l);
}

static void *run(void *p) {
  worker *w = p;
  ty_loader *l = w->loader;
  pthread_mutex_lock(&l->lock);
  for (;;) {
    while (!l->fresh && !l->stopping) pthread_cond_wait(&l->work, &l->lock);
    if (l->stopping) break;
    ty_batch *b = l->fresh;
    l->fresh = b->next;
    b->worker = w->number;
    pthread_mutex_unlock(&l->lock);
    ty_source_fill(l->source, b, &w->ctx, &w->canvas, &l->stopping);
    pthread_mutex_lock(&l->lock);
    b->done = 1;
    pthread_cond_signal(&l->ready);
  }
  ty_canvas_free(&w->canvas);
  w->ended = true;
  pthread_cond_signal(&l->ready);
  const bool last = l->behind && !--l->behind;
  pthread_mutex_unlock(&l->lock);          /* from here on another worker may free l */
  if (last) end(l);
  return NULL;
}

ty_status ty_loader_start(ty_ctx *ctx, ty_source *s, int workers, ty_loader **out) {
  ty_loader *l = ty_malloc(sizeof *l + sizeof(worker) * (size_t)workers);
  sigset_t all, before;
  if (!l) return ty_no_memory(ctx, "DataLoader");
  memset(l, 0, sizeof *l + sizeof(worker) * (size_t)workers);
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->work, NULL);
  ty_cond_init(&l->ready);
  l->source = s;
  l->process = getpid();
  atomic_fetch_add(&s->refs, 1);
  sigfillset(&all);                                      /* signals go to the host's threads */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int e = 0;
  for (; l->n < workers && !e; l->n += !e) {
    l->w[l->n].loader = l;
    l->w[l->n].number = l->n + 1;
    e = pthread_create(&l->w[l->n].thread, NULL, run, &l->w[l->n]);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (e) {
    ty_error(ctx, "DataLoader: worker %d can't be started: %s", l->n + 1, strerror(e));
    ty_loader_stop(l);
    return TY_ERR;
  }
  *out = l;
  return TY_OK;
}

void ty_loader_submit(ty_loader *l, ty_batch *b) {
  b->next = NULL;
  b->done = 0;
  pthread_mutex_lock(&l->lock);
  if (l->last) l->last->next = b;
  else l->first = b;
  l->last = b;
  if (!l->fresh) l->fresh = b;
  pthread_cond_signal(&l->work);
  pthread_mutex_unlock(&l->lock);
}

bool ty_loader_forked(const ty_loader *l) { return l->process != getpid(); }

ty_batch *ty_loader_take(ty_loader *l, double seconds) {
  const struct timespec until = ty_deadline(seconds);
  pthread_mutex_lock(&l->lock);
  int e = 0;
  while (l->first && !l->first->done && e != ETIMEDOUT) e = pthread_cond_timedwait(&l->ready, &l->lock, &until);
  ty_batch *b = l->first && l->first->done ? l->first : NULL;
  if (b) {
    l->first = b->next;
    if (!l->first) l->last = NULL;
  }
  pthread_mutex_unlock(&l->lock);
  return b;
}

void ty_loader_stands(ty_loader *l, int *at_worker, int64_t *at_item) {
  pthread_mutex_lock(&l->lock);
  const bool begun = l->first && !l->first->done && l->first->worker;
  *at_worker = begun ? l->first->worker : 0;
  *at_item = begun ? l->first->at : 0;
  pthread_mutex_unlock(&l->lock);
}

ty_batch *ty_loader_stop(ty_loader *l) {
  if (ty_loader_forked(l)) return NULL;                  /* the parent's workers may have been at the batches */
  const struct timespec until = ty_deadline(PATIENCE);
  ty_batch *left = NULL;
  pthread_mutex_lock(&l->lock);
  l->stopping = true;
  pthread_cond_broadcast(&l->work);
  for (int i = 0, e = 0; i < l->n; i++)
    while (!l->w[i].ended && e != ETIMEDOUT) e = pthread_cond_timedwait(&l->ready, &l->lock, &until);
  for (ty_batch *b = l->first, *next; b; b = next) {
    next = b->next;
    if (b->worker && !b->done) continue;   /* a hanging worker's */
    b->next = left;
    left = b;
  }
  for (int i = 0; i < l->n; i++) {         /* under the lock, which ended workers don't need: after it others may free l */
    l->behind += !l->w[i].ended;
    if (l->w[i].ended) pthread_join(l->w[i].thread, NULL);
    else pthread_detach(l->w[i].thread);
  }
  const bool last = !l->behind;
  pthread_mutex_unlock(&l->lock);
  if (last) end(l);
  return left;
}
