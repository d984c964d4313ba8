/* Checkpoints: a thread (a saver) writes one while training goes on.
 *
 * Idea: the tensors handed over are a snapshot that nobody writes to. The saver shares them until the thread that started
 * it ends it, so reference counts change in that thread alone. Invariant: `latest` is written and old files are removed
 * only when the new file is durable; the savers of a folder work in the order in which they were started. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "deadline.h"
#include "io.h"

struct ty_saving {
  struct ty_saving *next;  /* in under_way: the saver started before this one */
  bool finished;           /* later savers needn't wait for it */
  dev_t device;            /* device and inode of the folder */
  ino_t inode;
  pthread_t thread;
  pid_t process;           /* that has the thread; in a fork the saving counts as over */
  pthread_mutex_t lock;
  pthread_cond_t ready;
  bool started, done;
  char *path, *folder, *tree;
  ty_named *list;
  int n, keep;
  int64_t total;
  _Atomic int64_t written;
  ty_status status;
  ty_ctx ctx;
};

/* The step in a checkpoint's file name; -1: not exactly such a name. */
static int64_t step_of(const char *name) {
  char again[64];
  long long step;
  if (sscanf(name, "step-%lld.safetensors", &step) != 1 || step < 0) return -1;
  snprintf(again, sizeof again, "step-%lld.safetensors", step);
  return strcmp(name, again) ? -1 : step;
}

static int largest_first(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? 1 : x > y ? -1 : 0;
}

/* The step saved last comes first, larger ones at the end: a run that went back to step 50 and saved 51 has left 100. */
static void last_first(int64_t *steps, int n, int64_t last) {
  int above = 0;
  qsort(steps, (size_t)n, sizeof *steps, largest_first);
  while (above < n && steps[above] > last) above++;
  for (int i = 0; i < above && above < n; i++) {         /* one by one: there are few */
    const int64_t s = steps[0];
    memmove(steps, steps + 1, sizeof *steps * (size_t)(n - 1));
    steps[n - 1] = s;
  }
}

void ty_checkpoints_clean(const char *folder) {
  DIR *d = opendir(folder);
  struct dirent *e;
  while (d && (e = readdir(d))) {
    const char *tail = strstr(e->d_name, ".safetensors.");
    long pid;
    unsigned n;
    int end = 0;
    if (!tail && !strncmp(e->d_name, "latest.", 7)) tail = e->d_name + 6;
    else if (tail && !strncmp(e->d_name, "step-", 5)) tail += 12;
    else continue;
    if (sscanf(tail, ".%ld.%u.tmp%n", &pid, &n, &end) == 2 && end && !tail[end] && pid > 0 &&
        kill((pid_t)pid, 0) != 0 && errno == ESRCH && ty_abandoned(dirfd(d), e->d_name))
      unlinkat(dirfd(d), e->d_name, 0);
  }
  if (d) closedir(d);
}

ty_status ty_checkpoints(ty_ctx *ctx, const char *folder, int64_t **steps, int *n) {
  DIR *d = opendir(folder);
  struct dirent *e;
  int room = 0;
  *steps = NULL;
  *n = 0;
  if (!d) return errno == ENOENT ? TY_OK : ty_error(ctx, "%s: %s", folder, strerror(errno));
  while ((e = readdir(d))) {
    const int64_t step = step_of(e->d_name);
    if (step < 0) continue;
    if (*n == room) {
      room = room ? 2 * room : 16;
      int64_t *more = realloc(*steps, sizeof *more * (size_t)room);
      if (!more) { free(*steps); *steps = NULL; closedir(d); return ty_error(ctx, "%s: out of memory", folder); }
      *steps = more;
    }
    (*steps)[(*n)++] = step;
  }
  closedir(d);
  char path[TY_PATH_MOST], name[64] = "";
  int fd = snprintf(path, sizeof path, "%s/latest", folder) < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  const ssize_t k = fd >= 0 ? read(fd, name, sizeof name - 1) : 0;
  if (fd >= 0) close(fd);
  name[k > 0 ? k : 0] = 0;
  const int64_t last = step_of(name);
  if (*n) last_first(*steps, *n, last >= 0 ? last : INT64_MAX);
  return TY_OK;
}

static ty_status write_latest(ty_ctx *ctx, const char *folder, const char *name) {
  char path[TY_PATH_MOST];
  if (snprintf(path, sizeof path, "%s/latest", folder) >= (int)sizeof path) return ty_error(ctx, "%s: the path is too long", folder);
  return ty_file_write(ctx, path, NULL, 0, name, strlen(name));
}

/* Savers that haven't been ended, the last started first. */
static pthread_mutex_t under_way_lock = PTHREAD_MUTEX_INITIALIZER;
TY_HELD_AT_FORK(under_way_lock)
static pthread_cond_t one_finished = PTHREAD_COND_INITIALIZER;
static ty_saving *under_way;
static pid_t under_way_pid;

/* Waits for all savers started before s (NULL: for all) to finish; with `of`, only for those of its folder. */
static void wait_for(ty_saving *s, const ty_saving *of) {
  pthread_mutex_lock(&under_way_lock);
  for (ty_saving *q = s ? s : under_way; q;) {
    if (q->finished || q == of || (of && (q->device != of->device || q->inode != of->inode))) { q = q->next; continue; }
    pthread_cond_wait(&one_finished, &under_way_lock);
    q = s ? s : under_way;                               /* the list may have changed */
  }
  pthread_mutex_unlock(&under_way_lock);
}

static ty_status save(ty_saving *s) {
  const char *meta[2] = {"tycho", s->tree}, *slash = strrchr(s->path, '/'), *name = slash ? slash + 1 : s->path;
  char old[TY_PATH_MOST];
  wait_for(s, s);                                        /* an earlier saver would remove this one's file as old */
  TY_TRY(ty_safetensors_write(&s->ctx, s->path, s->list, s->n, meta, 1, true, &s->written));
  TY_TRY(write_latest(&s->ctx, s->folder, name));
  int64_t *steps;
  int n, kept = 1;
  if (!s->keep || ty_checkpoints(&s->ctx, s->folder, &steps, &n) != TY_OK) return TY_OK;
  for (int i = 0; i < n; i++) {                          /* the new file and the keep - 1 that come first besides stay */
    snprintf(old, sizeof old, "step-%lld.safetensors", (long long)steps[i]);
    if (!strcmp(old, name) || kept++ < s->keep) continue;
    if (snprintf(old, sizeof old, "%s/step-%lld.safetensors", s->folder, (long long)steps[i]) < (int)sizeof old) unlink(old);
  }
  free(steps);
  return TY_OK;
}

/* No Lua code runs at the end of the process, and checkpoints under way must be completed. */
static void wait_at_exit(void) {
  if (getpid() == under_way_pid) wait_for(NULL, NULL);   /* a fork has no such threads */
}

static void list_in(ty_saving *s) {
  static bool registered;
  pthread_mutex_lock(&under_way_lock);
  if (!registered) registered = atexit(wait_at_exit) == 0;
  if (under_way_pid != getpid()) {                       /* in a forked child the parent's savers and waiters don't exist */
    under_way = NULL;
    pthread_cond_init(&one_finished, NULL);
  }
  under_way_pid = getpid();
  s->next = under_way;
  under_way = s;
  pthread_mutex_unlock(&under_way_lock);
}

static void list_out(const ty_saving *s) {
  pthread_mutex_lock(&under_way_lock);
  for (ty_saving **p = &under_way; *p; p = &(*p)->next)
    if (*p == s) { *p = s->next; break; }
  pthread_mutex_unlock(&under_way_lock);
}

static void *run(void *p) {
  ty_saving *s = p;
  s->status = save(s);
  pthread_mutex_lock(&under_way_lock);
  s->finished = true;
  pthread_cond_broadcast(&one_finished);
  pthread_mutex_unlock(&under_way_lock);
  pthread_mutex_lock(&s->lock);
  s->done = true;
  pthread_cond_signal(&s->ready);
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

static void drop(ty_saving *s) {
  for (int i = 0; i < s->n; i++) {
    ty_release(s->list[i].t);
    free((char *)s->list[i].name);
  }
  free(s->list);
  free(s->path);
  free(s->folder);
  free(s->tree);
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->ready);
  free(s);
}

ty_status ty_saving_start(ty_ctx *ctx, const char *path, const ty_named *list, int n, const char *tree, int keep, ty_saving **out) {
  ty_saving *s = calloc(1, sizeof *s);
  sigset_t all, before;
  if (!s) return ty_no_memory(ctx, "checkpoint");
  pthread_mutex_init(&s->lock, NULL);
  ty_cond_init(&s->ready);
  s->process = getpid();
  const char *slash = strrchr(path, '/');
  struct stat st;
  s->path = strdup(path);
  s->folder = slash ? strndup(path, (size_t)TY_MAX(slash - path, 1)) : strdup(".");
  s->tree = strdup(tree);
  s->list = calloc((size_t)n + 1, sizeof *s->list);
  s->keep = keep;
  bool ok = s->path && s->folder && s->tree && s->list;
  if (ok && stat(s->folder, &st) == 0) { s->device = st.st_dev; s->inode = st.st_ino; }
  for (int i = 0; i < n && ok; i++) {
    s->list[i].name = strdup(list[i].name);
    s->list[i].t = ty_retain(list[i].t);
    s->n = i + 1;
    s->total += ty_nbytes(list[i].t);
    ok = s->list[i].name != NULL;
  }
  if (!ok) {
    drop(s);
    return ty_no_memory(ctx, "checkpoint");
  }
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  list_in(s);
  s->started = pthread_create(&s->thread, NULL, run, s) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!s->started) run(s);                               /* no thread to be had: save here */
  *out = s;
  return TY_OK;
}

bool ty_saving_done(ty_saving *s, double seconds, int64_t *written, int64_t *total) {
  if (s->process != getpid()) return *written = *total = s->total, true;
  const struct timespec until = ty_deadline(seconds > 0 && seconds < 3600 ? seconds : 0);
  pthread_mutex_lock(&s->lock);
  int e = 0;
  while (!s->done && !e) e = pthread_cond_timedwait(&s->ready, &s->lock, &until);
  const bool done = s->done;
  pthread_mutex_unlock(&s->lock);
  *written = s->written;
  *total = s->total;
  return done;
}

const char *ty_saving_result(ty_saving *s) {
  int64_t a, b;
  while (!ty_saving_done(s, 1, &a, &b)) {}
  return s->process != getpid() || s->status == TY_OK ? NULL : s->ctx.err;
}

ty_status ty_saving_end(ty_ctx *ctx, ty_saving *s) {
  const bool ours = s->process == getpid();
  if (s->started && ours) pthread_join(s->thread, NULL);
  if (ours) list_out(s);
  const ty_status st = ours ? s->status : TY_OK;
  if (st != TY_OK) memcpy(ctx->err, s->ctx.err, sizeof ctx->err);
  drop(s);
  return st;
}
