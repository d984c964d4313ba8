/* Writing files so that after a failure the file at path is what it was: into a temporary one beside it, synced, renamed, the folder synced. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE                    /* sync_file_range */
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io.h"

int ty_temporary(ty_ctx *ctx, const char *path, char *out) {
  static atomic_uint count;                              /* threads may write beside the same path */
  for (int tries = 0; tries < 100; tries++) {
    if (snprintf(out, TY_PATH_MOST, "%s.%ld.%u.tmp", path, (long)getpid(), count++) >= TY_PATH_MOST) return ty_error(ctx, "%s: the path is too long", path), -1;
    const int fd = open(out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return fd;
    if (errno != EEXIST) break;                          /* an earlier process of our number has left it */
  }
  return ty_error(ctx, "%s: %s", path, strerror(errno)), -1;
}

int ty_file_open(ty_ctx *ctx, const char *path, int64_t *size) {
  struct stat st;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);    /* a pipe's other end isn't waited for */
  if (fd < 0 || fstat(fd, &st) != 0) ty_error(ctx, "%s: %s", path, strerror(errno));
  else if (!S_ISREG(st.st_mode)) ty_error(ctx, "%s: not a regular file", path);
  else {
    *size = st.st_size;
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

#define PIECE ((size_t)8 << 20)
#define MUCH ((ssize_t)1 << 18)

bool ty_write_all(int fd, const void *p, size_t n) {
  const char *s = p;
  while (n) {
    ssize_t k = write(fd, s, n > PIECE ? PIECE : n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
#ifdef SYNC_FILE_RANGE_WRITE
    if (k >= MUCH) sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);     /* the disk begins, while more is copied; only a hint */
#endif
    s += k;
    n -= (size_t)k;
  }
  return true;
}

ty_status ty_file_commit(ty_ctx *ctx, int fd, const char *temporary, const char *path) {
  char folder[TY_PATH_MOST];
  bool ok = fsync(fd) == 0;
  ok = close(fd) == 0 && ok;
  if (!ok || rename(temporary, path) != 0) {
    int e = errno;
    unlink(temporary);
    return ty_error(ctx, "%s: %s", path, strerror(e));
  }
  snprintf(folder, sizeof folder, "%s", path);
  char *slash = strrchr(folder, '/');
  if (slash == folder) slash[1] = 0;
  else if (slash) *slash = 0;
  else strcpy(folder, ".");
  int d = open(folder, O_RDONLY | O_DIRECTORY);
  if (d < 0) return TY_OK;                               /* a folder that may be entered and not read */
  ok = fsync(d) == 0 || errno == EINVAL;                 /* EINVAL: a file system without it */
  int e = errno;
  close(d);
  return ok ? TY_OK : ty_error(ctx, "%s: its folder can't be synced: %s", path, strerror(e));
}

ty_status ty_file_write(ty_ctx *ctx, const char *path, const void *head, size_t nhead, const void *data, size_t ndata) {
  char temporary[TY_PATH_MOST];
  int fd = ty_temporary(ctx, path, temporary);
  if (fd < 0) return TY_ERR;
  if (ty_write_all(fd, head, nhead) && ty_write_all(fd, data, ndata)) return ty_file_commit(ctx, fd, temporary, path);
  ty_error(ctx, "%s: %s", path, strerror(errno));
  close(fd);
  unlink(temporary);
  return TY_ERR;
}
