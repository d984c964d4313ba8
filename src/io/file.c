/* Writing files so that after a failure the file at path is what it was: into a temporary one beside it, synced, renamed, the folder synced. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "io.h"

ty_status ty_temporary(ty_ctx *ctx, const char *path, char *out) {
  return snprintf(out, TY_PATH_MOST, "%s.%ld.tmp", path, (long)getpid()) < TY_PATH_MOST ? TY_OK : ty_error(ctx, "%s: the path is too long", path);
}

bool ty_write_all(int fd, const void *p, size_t n) {
  const char *s = p;
  while (n) {
    ssize_t k = write(fd, s, n > 1 << 30 ? 1 << 30 : n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
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

