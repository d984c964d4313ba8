/* Kernels made at run time from source text.
 *
 * Idea: rtc.c caches compiled kernels, in memory and on disk; nvrtc.c compiles and loads them (in the simulation,
 * spec/simgpu/rtc.cpp). A source has an entry "fused" and may have "fused_each"; each takes one struct by value. */
#ifndef TY_RTC_H
#define TY_RTC_H
#include "cuda.h"

typedef struct { void *fused, *each; } ty_rtc;               /* each: NULL where the source has none */
/* The kernels stay as long as the process. TY_ERR: the source can't be compiled, or there is no compiler. */
ty_status ty_rtc_get(ty_ctx *ctx, int gpu, const char *source, ty_rtc *out);

/* A cached file: this head; the key (a line each for compiler and architecture, then the source); the image. key, image: their bytes; sum:
   crc32 of both. */
#define TY_RTC_MAGIC "tykerne1"
typedef struct { char magic[8]; uint32_t key, image, sum; } ty_rtc_head;

#define TY_RTC_WHY 400
const char *ty_rtc_version(void);                            /* of the compiler; NULL: there is none */
/* *image: from malloc. false: `why` tells the reason */
bool ty_rtc_compile(const char *source, const char *arch, char **image, size_t *n, char *why);
bool ty_rtc_load(const char *image, size_t n, ty_rtc *out, char *why);   /* on the current device */
cudaError_t ty_rtc_launch(void *kernel, const unsigned grid[3], const unsigned block[3], const void *args, size_t size, cudaStream_t s);
#endif
