/* See process.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "io.h"
#include "process.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { SOCKET = 3, LIFE = 4, NOTE = 5, FIRST_OTHER = 6 };
#define NOTE_BYTES 4096

static ty_status failed(ty_ctx *ctx, const char *what) { return ty_error(ctx, "%s: %s", what, strerror(errno)); }
static void shut(int *fd) { if (*fd >= 0) close(*fd); *fd = -1; }

/* environ with env's entries added or replaced; to be freed. */
static char **environment(char *const *env) {
  int n = 0, m = 0, k = 0;
  while (environ && environ[n]) n++;
  while (env[m]) m++;
  char **e = malloc(sizeof *e * (size_t)(n + m + 1));
  if (!e) return NULL;
  for (int i = 0; i < n; i++) {
    bool replaced = false;
    const size_t len = strcspn(environ[i], "=");
    for (int j = 0; j < m; j++) replaced |= !strncmp(environ[i], env[j], len + 1);
    if (!replaced) e[k++] = environ[i];
  }
  for (int j = 0; j < m; j++) e[k++] = env[j];
  e[k] = NULL;
  return e;
}

ty_status ty_process_start(ty_ctx *ctx, char *const *argv, char *const *env, ty_process *out) {
  int pair[2] = {-1, -1}, life[2] = {-1, -1}, note = -1, given[3] = {-1, -1, -1}, e = 0;
  void *page = MAP_FAILED;
  char **all = environment(env);
  posix_spawn_file_actions_t act;
  posix_spawnattr_t attr;
  sigset_t none, def;
  bool ok = all && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 && pipe2(life, O_CLOEXEC) == 0;
  ok = ok && (note = memfd_create("tycho-note", MFD_CLOEXEC)) >= 0 && ftruncate(note, NOTE_BYTES) == 0;
  ok = ok && (page = mmap(NULL, NOTE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, note, 0)) != MAP_FAILED;
  /* away from the numbers that the worker's get; ours also from those of standard streams that may be closed */
  ok = ok && ty_away(&pair[0]) && ty_away(&life[1]);
  ok = ok && (given[0] = fcntl(pair[1], F_DUPFD_CLOEXEC, 16)) >= 0 && (given[1] = fcntl(life[0], F_DUPFD_CLOEXEC, 16)) >= 0 &&
    (given[2] = fcntl(note, F_DUPFD_CLOEXEC, 16)) >= 0;
  if (!ok) failed(ctx, "a worker can't be started");
  else {
    posix_spawn_file_actions_init(&act);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&act, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&act, given[0], SOCKET);
    posix_spawn_file_actions_adddup2(&act, given[1], LIFE);
    posix_spawn_file_actions_adddup2(&act, given[2], NOTE);
    posix_spawn_file_actions_addclosefrom_np(&act, FIRST_OTHER);
    sigemptyset(&none);
    sigfillset(&def);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &def);
    posix_spawnattr_setpgroup(&attr, 0);                 /* a terminal's Ctrl-C goes to the parent alone */
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    e = posix_spawnp(&out->pid, argv[0], &act, &attr, argv, all);
    posix_spawn_file_actions_destroy(&act);
    posix_spawnattr_destroy(&attr);
    if (e) ty_error(ctx, "a worker can't be started: %s: %s", argv[0], strerror(e));
    ok = !e;
  }
  free(all);
  for (int i = 0; i < 3; i++) shut(&given[i]);
  shut(&pair[1]);
  shut(&life[0]);
  shut(&note);
  if (!ok) {
    shut(&pair[0]);
    shut(&life[1]);
    if (page != MAP_FAILED) munmap(page, NOTE_BYTES);
    return TY_ERR;
  }
  out->socket = pair[0];
  out->life = life[1];
  out->note = page;
  return TY_OK;
}

bool ty_process_gone(ty_process *p) {
  if (p->pid > 0 && waitpid(p->pid, NULL, WNOHANG) != 0) p->pid = 0;   /* ended, or the host has reaped it */
  return p->pid <= 0;
}

void ty_process_end(ty_process *p) {
  shut(&p->life);
  shut(&p->socket);
  if (!ty_process_gone(p)) {                             /* still our child: the pid is still its own */
    kill(p->pid, SIGKILL);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) {}
    p->pid = 0;
  }
  if (p->note) munmap((void *)p->note, NOTE_BYTES);
  p->note = NULL;
}

ty_status ty_process_enter(ty_ctx *ctx, ty_process *out) {
  struct pollfd f = {.fd = LIFE, .events = POLLIN};
  struct stat a, b, c;
  const char *mark = getenv("TYCHO_WORKER");
  if (!mark || strcmp(mark, "1") || fstat(SOCKET, &a) != 0 || fstat(LIFE, &b) != 0 || fstat(NOTE, &c) != 0 ||
      !S_ISSOCK(a.st_mode) || !S_ISFIFO(b.st_mode) || c.st_size != NOTE_BYTES)
    return ty_error(ctx, "this process is not a worker of a DataLoader");
  unsetenv("TYCHO_WORKER");                              /* what the worker starts is no worker */
  void *page = mmap(NULL, NOTE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, NOTE, 0);
  if (page == MAP_FAILED || fcntl(LIFE, F_SETOWN, getpid()) != 0 || fcntl(LIFE, F_SETFL, O_ASYNC | O_NONBLOCK) != 0) {
    failed(ctx, "worker");
    if (page != MAP_FAILED) munmap(page, NOTE_BYTES);
    return TY_ERR;
  }
  for (int fd = SOCKET; fd <= NOTE; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
  *out = (ty_process){.pid = 0, .socket = SOCKET, .life = -1, .note = page};
  if (poll(&f, 1, 0) > 0) raise(SIGIO);                  /* the parent has ended already */
  return TY_OK;
}

/* ---- messages ---- */

typedef struct { int64_t tag, bytes; } packet;
/* room for one descriptor; as the kernel rounds, for two */
typedef union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control;

ty_status ty_message_send(ty_ctx *ctx, const ty_process *p, int64_t tag, const ty_message_part *parts, int n, bool wait, bool *full) {
  size_t bytes = 0;
  for (int i = 0; i < n; i++) bytes = (bytes + 63) / 64 * 64 + parts[i].n;
  int fd = memfd_create("tycho-message", MFD_CLOEXEC);
  char *at = NULL;
  if (fd < 0 ||
      (bytes &&
        (ftruncate(fd, (off_t)bytes) != 0 ||
          (at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0)) == MAP_FAILED))) {
    failed(ctx, "a message to a worker");
    shut(&fd);
    return TY_ERR;
  }
  size_t k = 0;
  for (int i = 0; i < n; i++) {
    k = (k + 63) / 64 * 64;
    if (parts[i].n) memcpy(at + k, parts[i].p, parts[i].n);
    k += parts[i].n;
  }
  if (at) munmap(at, bytes);
  packet head = {tag, (int64_t)bytes};
  struct iovec io = {&head, sizeof head};
  control c;
  memset(&c, 0, sizeof c);
  struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c.room};
  struct cmsghdr *h = CMSG_FIRSTHDR(&m);
  h->cmsg_level = SOL_SOCKET;
  h->cmsg_type = SCM_RIGHTS;
  h->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(h), &fd, sizeof fd);
  ssize_t r;
  do r = sendmsg(p->socket, &m, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)); while (r < 0 && errno == EINTR);
  const int e = errno;
  *full = r < 0 && (e == EAGAIN || e == EWOULDBLOCK || e == ENOBUFS || e == ETOOMANYREFS);
  close(fd);
  errno = e;
  return r == (ssize_t)sizeof head ? TY_OK : failed(ctx, "a message to a worker");
}

ty_received ty_message_receive(ty_ctx *ctx, const ty_process *p, double seconds, int64_t *tag, ty_blob **out) {
  struct pollfd f = {.fd = p->socket, .events = POLLIN};
  const int r = poll(&f, 1, seconds < 0 ? -1 : seconds < 1e6 ? (int)(seconds * 1000) : 1000000000);
  if (r <= 0) return TY_NOTHING;                         /* or interrupted: the caller tries again */
  packet head;
  struct iovec io = {&head, sizeof head};
  control c;
  struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c.room};
  const ssize_t n = recvmsg(p->socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return TY_NOTHING;
  struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
  int fd = -1;
  for (size_t k = 0; h && h->cmsg_type == SCM_RIGHTS && CMSG_LEN((k + 1) * sizeof fd) <= h->cmsg_len; k++) {
    shut(&fd);                                           /* our messages carry only one */
    memcpy(&fd, CMSG_DATA(h) + k * sizeof fd, sizeof fd);
  }
  struct stat st;
  ty_blob *b = n == (ssize_t)sizeof head && fd >= 0 && fstat(fd, &st) == 0 && st.st_size == head.bytes ? ty_malloc(sizeof *b) : NULL;
  if (b) {
    *b = (ty_blob){.n = (size_t)head.bytes, .mapped = head.bytes > 0, .fd = -1};
    b->refs = 1;
    if (b->n && (b->p = mmap(NULL, b->n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) { ty_free(b); b = NULL; }
  }
  shut(&fd);
  if (!b) return ty_error(ctx, "a message that can't be read"), TY_CLOSED;
  *tag = head.tag;
  *out = b;
  return TY_MESSAGE;
}
