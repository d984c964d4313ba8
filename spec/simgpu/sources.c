/* Whether NVRTC compiles the sources that the simulation has compiled: those in the cache folder named first, for sm_80 and sm_90; and the
 * first one, as PTX, for a device later than it knows. Needs no device. A folder named second gets the cubins, for cuobjdump -res-usage,
 * which shows registers, and arrays in local memory. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rtc.h"

/* The key of a cached file (rtc.c), allocated. */
static char *key_of(const char *path) {
  ty_rtc_head h;
  FILE *f = fopen(path, "rb");
  char *key = NULL;
  if (f && fread(&h, sizeof h, 1, f) == 1 && !memcmp(h.magic, TY_RTC_MAGIC, sizeof h.magic) &&
      (key = calloc((size_t)h.key + 1, 1)) && fread(key, 1, h.key, f) != h.key) {
    free(key);
    key = NULL;
  }
  if (f) fclose(f);
  return key;
}

static void keep(const char *folder, const char *name, const char *arch, const char *image, size_t n) {
  char path[1200];
  snprintf(path, sizeof path, "%s/%s.%s.cubin", folder, name, arch);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(image, 1, n, f) != n) perror(path);
  if (f) fclose(f);
}

int main(int argc, char **argv) {
  static const char *const arch[] = {"sm_80", "sm_90"};
  DIR *d = argc == 2 || argc == 3 ? opendir(argv[1]) : NULL;
  int compiled = 0, failed = 0;
  bool later = false;
  if (!d) { fprintf(stderr, "sources: a cache folder must be named\n"); return 2; }
  if (!ty_rtc_version()) { printf("sources: no NVRTC here; nothing was tested\n"); return 0; }
  for (struct dirent *e; (e = readdir(d));) {
    char path[1200], why[TY_RTC_WHY] = "";
    snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
    char *key = key_of(path), *source = key ? strchr(key, '\n') : NULL;
    if (source) source = strchr(source + 1, '\n');
    for (int i = 0; source && i < 2; i++) {
      char *image = NULL;
      size_t n;
      if (ty_rtc_compile(source + 1, arch[i], &image, &n, why)) {
        compiled++;
        if (argc == 3) keep(argv[2], e->d_name, arch[i], image, n);
      }
      else { failed++; fprintf(stderr, "%s, %s: %s\n", path, arch[i], why); }
      free(image);
    }
    if (source && !later) {
      char *ptx = NULL;
      size_t n = 0;
      later = ty_rtc_compile(source + 1, "sm_999", &ptx, &n, why) && n && !ptx[n - 1] && strstr(ptx, ".target sm_");
      free(ptx);
      if (!later) { failed++; fprintf(stderr, "%s, for a later device: %s\n", path, why); break; }
    }
    free(key);
  }
  closedir(d);
  printf("%s: %d cubins, %d failures\n", ty_rtc_version(), compiled, failed);
  return failed || !compiled;
}
