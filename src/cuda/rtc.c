/* The cache of kernels compiled at run time: a list in memory, files on disk.
 *
 * Idea: a file is named by a hash of its key (source, architecture, compiler) and holds the whole key, so that another
 * source under the same name is noticed. TYCHO_CACHE names the folder, "" for none; else it is tycho/ in the user's cache
 * folder. Invariant: an incomplete file counts as none; a file is written under another name, then renamed. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "rtc.h"

typedef struct entry { struct entry *next; int gpu; uint64_t hash; char *source; ty_rtc made; } entry;

static entry *entries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- files ---- */

static uint64_t hash(const char *s) {      /* FNV-1a */
  uint64_t h = 14695981039346656037ull;
  for (; *s; s++) h = (h ^ (uint8_t)*s) * 1099511628211ull;
  return h;
}

/* The cache folder, made if it isn't there; false: none. */
static bool folder(char *path, size_t room) {
  const char *own = getenv("TYCHO_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n = 0;
  if (own) n = snprintf(path, room, "%s", own);
  else if (cache && *cache) n = snprintf(path, room, "%s/tycho", cache);
  else if (home && *home) n = snprintf(path, room, "%s/.cache/tycho", home);
  if (n <= 0 || (size_t)n >= room) return false;
  for (char *p = path + 1; *p; p++) {
    if (*p != '/') continue;
    *p = 0;
    mkdir(path, 0755);
    *p = '/';
  }
  return mkdir(path, 0755) == 0 || errno == EEXIST;
}

static char *recall(const char *path, const char *key, size_t *n) {
  FILE *f = fopen(path, "rbe");
  ty_rtc_head h;
  char *all = NULL;
  if (!f) return NULL;
  if (fread(&h, sizeof h, 1, f) == 1 && !memcmp(h.magic, TY_RTC_MAGIC, sizeof h.magic) && h.key == strlen(key) &&
      h.image < 1u << 28 && (all = malloc((size_t)h.key + h.image + 1))) {
    const size_t size = (size_t)h.key + h.image;
    const bool whole = fread(all, 1, size + 1, f) == size && crc32(0, (const Bytef *)all, (uInt)size) == h.sum && !memcmp(all, key, h.key);
    if (whole) { memmove(all, all + h.key, h.image); *n = h.image; }
    else { free(all); all = NULL; }
  }
  fclose(f);
  return all;
}

static void remember(const char *path, const char *key, const char *image, size_t n) {
  char part[1100];
  ty_rtc_head h = {.key = (uint32_t)strlen(key), .image = (uint32_t)n};
  memcpy(h.magic, TY_RTC_MAGIC, sizeof h.magic);
  h.sum = (uint32_t)crc32(crc32(0, (const Bytef *)key, h.key), (const Bytef *)image, (uInt)n);
  snprintf(part, sizeof part, "%s.%ld.%p", path, (long)getpid(), (void *)&h);
  FILE *f = fopen(part, "wbe");
  if (!f) return;
  const bool ok = fwrite(&h, sizeof h, 1, f) == 1 && fwrite(key, 1, h.key, f) == h.key && fwrite(image, 1, n, f) == n;
  if (fclose(f) != 0 || !ok || rename(part, path) != 0) unlink(part);
}

/* ---- kernels ---- */

static bool make(int gpu, const char *source, ty_rtc *out, char *why) {
  char path[1000] = "", arch[40], *image = NULL, *key;
  size_t n = 0;
  struct cudaDeviceProp p;
  const char *version = ty_rtc_version();
  if (!version) { snprintf(why, TY_RTC_WHY, "there is no NVRTC"); return false; }
  if (cudaGetDeviceProperties(&p, gpu) != cudaSuccess) { snprintf(why, TY_RTC_WHY, "the device's properties can't be read"); return false; }
  snprintf(arch, sizeof arch, "sm_%d%d", p.major, p.minor);
  const size_t room = strlen(source) + strlen(version) + sizeof arch + 3;
  if (!(key = malloc(room))) { snprintf(why, TY_RTC_WHY, "out of memory"); return false; }
  snprintf(key, room, "%s\n%s\n%s", version, arch, source);
  const bool disk = folder(path, sizeof path - 24);
  if (disk) snprintf(path + strlen(path), 24, "/%016llx", (unsigned long long)hash(key));
  if (disk) image = recall(path, key, &n);
  bool ok = image && ty_rtc_load(image, n, out, why);
  if (!ok) {
    free(image);
    image = NULL;
    ok = ty_rtc_compile(source, arch, &image, &n, why) && ty_rtc_load(image, n, out, why);
    if (ok && disk) remember(path, key, image, n);
  }
  free(image);
  free(key);
  return ok;
}

ty_status ty_rtc_get(ty_ctx *ctx, int gpu, const char *source, ty_rtc *out) {
  char why[TY_RTC_WHY] = "";
  ty_status s = TY_OK;
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  pthread_mutex_lock(&lock);
  entry *e = entries;
  const uint64_t h = hash(source);         /* compared first: sources' first tens of kilobytes are the same */
  while (e && (e->gpu != gpu || e->hash != h || strcmp(e->source, source))) e = e->next;
  if (!e) {
    e = malloc(sizeof *e);
    char *copy = strdup(source);
    if (e && copy && make(gpu, source, &e->made, why)) {
      *e = (entry){entries, gpu, h, copy, e->made};
      entries = e;
    } else {
      free(e);
      free(copy);
      e = NULL;
      s = ty_error(ctx, "%s", *why ? why : "out of memory");
    }
  }
  if (e) *out = e->made;
  pthread_mutex_unlock(&lock);
  return s;
}
