/* Writing files so that a failure leaves the file at path as it was.
 *
 * Idea: a temporary file beside it is written, synced and renamed, and the folder synced. If only the last step fails, the new file is in
 * place, but may not survive a loss of power. As with writing in place, a symbolic link is followed, and the file keeps its permissions. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE                    /* O_DIRECT */
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io.h"

bool ty_away(int *fd) {
  const int to = fcntl(*fd, F_DUPFD_CLOEXEC, 16), e = errno;
  close(*fd);
  *fd = to;
  errno = e;
  return to >= 0;
}

/* Creates a file. Where a host has closed the standard streams, /dev/null takes their numbers meanwhile, so that what another thread
 * prints just then can't get into the file. */
static int create(const char *path) {
  int held[3], n = 0, null;
  while ((null = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && null <= 2 && n < 3) held[n++] = null;
  if (null >= 0) close(null);
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666), e = errno;
  while (n > 0) close(held[--n]);
  errno = e;
  return fd;
}

/* path, or the target that it leads to as a link, in room (PATH_MAX). A dangling link is replaced. */
static const char *target_of(const char *path, char *room) {
  struct stat st;
  return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, room) ? room : path;
}

int ty_temporary(ty_ctx *ctx, const char *path, char *out) {
  char room[PATH_MAX];
  static atomic_uint count;                              /* threads may write beside the same path */
  struct stat st;
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))      /* a device would be replaced */
    return ty_error(ctx, "%s: not a regular file", path), -1;
  for (int tries = 0; tries < 100; tries++) {
    if (snprintf(out, TY_PATH_MOST, "%s.%ld.%u.tmp", target_of(path, room), (long)getpid(), count++) >= TY_PATH_MOST)
      return ty_error(ctx, "%s: the path is too long", path), -1;
    int fd = create(out);
    if (fd > 2 || (fd >= 0 && ty_away(&fd))) return flock(fd, LOCK_EX | LOCK_NB), fd;    /* see ty_abandoned */
    const int e = errno;
    if (e != EEXIST) unlink(out);                        /* created, but ty_away failed */
    errno = e;
    if (errno != EEXIST) break;                          /* left by an earlier process with our pid */
  }
  return ty_error(ctx, "%s: %s", path, strerror(errno)), -1;
}

bool ty_abandoned(int folder, const char *name) {
  const int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  const bool free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (fd >= 0) close(fd);
  return free;
}

int ty_file_open(ty_ctx *ctx, const char *path, int64_t *size) {
  struct stat st;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);    /* doesn't wait for a pipe's other end */
  if (fd < 0 || fstat(fd, &st) != 0) ty_error(ctx, "%s: %s", path, strerror(errno));
  else if (!S_ISREG(st.st_mode)) ty_error(ctx, "%s: not a regular file", path);
  else {
    *size = st.st_size;
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

/* Files from MUCH bytes on bypass the page cache, in aligned blocks: that takes at most half the time, and evicts nothing
 * that others have cached. A smaller file is more likely to be read again soon. */
#define MUCH ((int64_t)32 << 20)
#define BLOCK ((size_t)4 << 20)
#define ALIGNED 4096

#ifdef O_DIRECT
static bool set_direct(int fd, bool on) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}
#else
static bool set_direct(int fd, bool on) { return (void)fd, !on; }
#endif

static bool write_all(ty_writer *w, const char *p, size_t n) {
  while (n) {
    const ssize_t k = write(w->fd, p, n);
    if (k < 0 && errno == EINTR) continue;
    if (k < 0 && errno == EINVAL && w->direct) {         /* unaligned, or a file system that can't do it after all */
      w->direct = false;
      if (set_direct(w->fd, false)) continue;
    }
    if (k <= 0) return false;
    p += k;
    n -= (size_t)k;
  }
  return true;
}

ty_status ty_write_begin(ty_ctx *ctx, ty_writer *w, const char *path, int64_t bytes) {
  *w = (ty_writer){.path = path};
  w->fd = ty_temporary(ctx, path, w->temporary);
  if (w->fd < 0) return TY_ERR;
  if (bytes >= MUCH && posix_memalign((void **)&w->block, ALIGNED, BLOCK) != 0) w->block = NULL;
  w->direct = w->block && set_direct(w->fd, true);
  return TY_OK;
}

bool ty_write(ty_writer *w, const void *p, size_t n) {
  const char *s = p;
  if (!w->direct && !w->fill) return write_all(w, s, n);
  while (n) {
    const size_t k = TY_MIN(n, BLOCK - w->fill);
    memcpy(w->block + w->fill, s, k);
    w->fill += k;
    s += k;
    n -= k;
    if (w->fill == BLOCK) {
      if (!write_all(w, w->block, BLOCK)) return false;
      w->fill = 0;
    }
  }
  return true;
}

ty_status ty_write_end(ty_ctx *ctx, ty_writer *w, bool ok) {
  if (ok && w->fill) {                                   /* the last bytes are no whole block */
    if (w->direct) set_direct(w->fd, false);
    w->direct = false;
    ok = write_all(w, w->block, w->fill);
  }
  const int e = errno;
  free(w->block);
  if (ok) return ty_file_commit(ctx, w->fd, w->temporary, w->path);
  close(w->fd);
  unlink(w->temporary);
  return ty_error(ctx, "%s: %s", w->path, strerror(e));
}

ty_status ty_file_commit(ty_ctx *ctx, int fd, const char *temporary, const char *path) {
  char folder[PATH_MAX], room[PATH_MAX];
  const char *target = target_of(path, room);
  struct stat st;
  if (stat(target, &st) == 0) fchmod(fd, st.st_mode & 0777);             /* if this fails: a new file's */
  bool ok = fsync(fd) == 0;
  ok = close(fd) == 0 && ok;
  if (!ok || rename(temporary, target) != 0) {
    int e = errno;
    unlink(temporary);
    return ty_error(ctx, "%s: %s", path, strerror(e));
  }
  snprintf(folder, sizeof folder, "%s", target);
  char *slash = strrchr(folder, '/');
  if (slash == folder) slash[1] = 0;
  else if (slash) *slash = 0;
  else strcpy(folder, ".");
  int d = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (d < 0) return TY_OK;                               /* a folder that may be entered but not read */
  ok = fsync(d) == 0 || errno == EINVAL;                 /* EINVAL: the file system doesn't sync folders */
  int e = errno;
  close(d);
  return ok ? TY_OK : ty_error(ctx, "%s: its folder can't be synced: %s", path, strerror(e));
}

ty_status ty_file_write(ty_ctx *ctx, const char *path, const void *head, size_t nhead, const void *data, size_t ndata) {
  ty_writer w;
  TY_TRY(ty_write_begin(ctx, &w, path, (int64_t)(nhead + ndata)));
  return ty_write_end(ctx, &w, ty_write(&w, head, nhead) && ty_write(&w, data, ndata));
}
