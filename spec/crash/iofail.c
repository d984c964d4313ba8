/* For LD_PRELOAD: the n-th call (IOFAIL_AT) among those that open for writing, write, sync, rename or close what was so
 * opened, or sync or open a folder, fails with IOFAIL_ERRNO, and says so on stderr; a write with IOFAIL_SHORT=1 first
 * writes one byte. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_int calls;
static _Atomic(char) ours[1024];

static int fails(void) {
  const char *at = getenv("IOFAIL_AT"), *e = getenv("IOFAIL_ERRNO");
  if (!at || ++calls != atoi(at)) return 0;
  ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(2, "[failed]", 8);
  errno = e ? atoi(e) : EIO;
  return 1;
}
static int mine(int fd) { return fd >= 0 && fd < 1024 && ours[fd]; }
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int opened(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode) {
  const int counts = (flags & O_CREAT) || ((flags & O_DIRECTORY) && !(flags & O_NONBLOCK));
  if (counts && fails()) return -1;
  int fd = real(path, flags, mode);
  if (counts && fd >= 0 && fd < 1024) ours[fd] = 1;
  return fd;
}
int open(const char *path, int flags, ...) {
  va_list a;
  va_start(a, flags);
  mode_t mode = va_arg(a, mode_t);
  va_end(a);
  return opened(REAL(open), path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  va_list a;
  va_start(a, flags);
  mode_t mode = va_arg(a, mode_t);
  va_end(a);
  return opened(REAL(open64), path, flags, mode);
}
ssize_t write(int fd, const void *p, size_t n) {
  if (!mine(fd)) return REAL(write)(fd, p, n);
  const char *s = getenv("IOFAIL_SHORT");
  if (fails()) return s && n > 1 ? REAL(write)(fd, p, 1) : -1;
  return REAL(write)(fd, p, n);
}
int fsync(int fd) { return fails() ? -1 : REAL(fsync)(fd); }
int rename(const char *a, const char *b) { return fails() ? -1 : REAL(rename)(a, b); }
int close(int fd) {
  const int m = mine(fd);
  if (m) ours[fd] = 0;
  const int bad = m && fails(), e = errno;
  const int r = REAL(close)(fd);
  if (bad) errno = e;
  return bad ? -1 : r;
}
