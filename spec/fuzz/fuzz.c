/* libFuzzer's entry for the readers of src/io: FUZZ_<name> says which one. Inputs reach them as a file. See `make fuzz`. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "archive.h"
#include "data.h"
#include "io.h"

static volatile uint64_t sum;                            /* every byte that a reader gives is looked at */
static void look(const void *p, size_t n) {
  const uint8_t *b = p;
  uint64_t s = 0;
  for (size_t i = 0; i < n; i++) s += b[i];
  sum += s;
}
static void look_at(ty_tensor *t) {
  look(ty_data(t), (size_t)(ty_numel(t) * ty_itemsize(t)));
  ty_release(t);
}

static void read_one(ty_ctx *ctx, const char *path, const uint8_t *data, size_t size) {
  ty_tensor *t = NULL, *u = NULL;
  (void)data;
  (void)size;
#ifdef FUZZ_safetensors
  ty_safetensors *f;
  if (ty_safetensors_open(ctx, path, &f) != TY_OK) return;
  const int n = ty_safetensors_count(f);
  ty_tensor **list = calloc((size_t)n + 1, sizeof *list);
  bool made = true;
  for (int i = 0; i < n; i++) {
    look(ty_safetensors_name(f, i), strlen(ty_safetensors_name(f, i)));
    made = made && ty_empty(ctx, &ty_cpu, ty_safetensors_about(f, i), &list[i]) == TY_OK;
  }
  for (int verify = 1; verify >= 0 && made; verify--) made = ty_safetensors_read(ctx, f, verify, list) == TY_OK || verify;
  for (int i = 0; i < n; i++) {
    if (made) look_at(list[i]);
    else ty_release(list[i]);
  }
  free(list);
  ty_safetensors_close(f);
#elif defined FUZZ_idx
  if (ty_idx_read(ctx, path, &t) == TY_OK) look_at(t);
#elif defined FUZZ_records
  const int chw[3] = {3, 4, 4};
  if (ty_records_read(ctx, path, 1, chw, &t, &u) == TY_OK) { look_at(t); look_at(u); }
#elif defined FUZZ_picture
  static ty_canvas canvas;
  ty_picture p;
  if (ty_picture_read(ctx, path, size & 1, &canvas, &p) != TY_OK || (int64_t)p.h * p.w > 1 << 20) return;
  float *out = malloc(sizeof(float) * (size_t)p.c * p.h * p.w);
  ty_draws d = ty_draws_of(size, 1);
  ty_transform step;
  const double crop[8] = {5, 7, 2, 2, 1, 1, 0, (double)(size % 3)},
    half[4] = {(double)(1 + size % 9), (double)(1 + size % 7), 0, 1}, turn[4] = {-90, 90, (double)(size & 1), 0};
  ty_picture_write(&p, out, TY_F32);
  look(out, sizeof(float) * (size_t)p.c * p.h * p.w);
  free(out);
  ty_pipeline *pipe = calloc(1, sizeof *pipe + 4 * sizeof step);
  if (ty_transform_make(ctx, "rotation", turn, 4, &step) == TY_OK) pipe->step[pipe->n++] = step;
  if (ty_transform_make(ctx, "resize", half, 4, &step) == TY_OK) pipe->step[pipe->n++] = step;
  if (ty_transform_make(ctx, "random_crop", crop, 8, &step) == TY_OK) pipe->step[pipe->n++] = step;
  if (ty_pipeline_run(ctx, pipe, &p, &d, &canvas) == TY_OK) {
    out = malloc(sizeof(float) * (size_t)p.c * p.h * p.w);
    ty_picture_write(&p, out, TY_F32);
    look(out, sizeof(float) * (size_t)p.c * p.h * p.w);
    free(out);
  }
  free(pipe);
#elif defined FUZZ_array
  /* the first 16 bytes choose dtype, sizes and where the array begins; the rest is the file */
  static const char *const kinds[] = {"<f4", ">f2", "bf16", "<f8", ">i4", "=i8", "|u1", "|b1", "|i1", ">i2", "<u2",
    ">u4", "|O", "u8", "<", ""};
  ty_blob *b;
  if (size < 16 || ty_blob_read(ctx, path, &b) != TY_OK) return;
  ty_meta m = {.ndim = data[1] % 5};
  for (int i = 0; i < m.ndim; i++) m.shape[i] = data[2 + i] == 255 ? (int64_t)1 << (data[6 + i] % 63) : data[2 + i] % 9;
  if (ty_blob_array(ctx, b, data[10], kinds[data[0] % 16], &m, data[11] & 1, &t) == TY_OK) look_at(t);
  ty_blob_release(b);
#elif defined FUZZ_zip
  ty_zip *z;
  ty_blob *b;
  if (ty_zip_open(ctx, path, &z) != TY_OK) return;
  for (int i = 0; i < ty_zip_count(z) && i < 50; i++) {
    if (ty_zip_name(z, i)) look(ty_zip_name(z, i), strlen(ty_zip_name(z, i)));
    if (ty_zip_read(ctx, z, i, &b) == TY_OK) { look(b->p, b->n); ty_blob_release(b); }
  }
  ty_zip_close(z);
#elif defined FUZZ_csv
  if (ty_csv_read(ctx, path, size & 1 ? ',' : ';', size & 2, &t, NULL) == TY_OK) look_at(t);
#endif
  (void)u;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static ty_ctx ctx;
  static int fd = -1;
  static char path[64];
  if (fd < 0) {
    fd = memfd_create("input", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  }
  if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) return 0;
  lseek(fd, 0, SEEK_SET);
  read_one(&ctx, path, data, size);
  return 0;
}
