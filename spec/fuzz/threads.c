/* The loader's and the checkpoint's threads, for ThreadSanitizer: many epochs of start, early break and stop; saves
 * while tensors are let go. Prints what it did; the sanitizer's exit status is the verdict. See `make test-tsan`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "data.h"
#include "io.h"

static ty_ctx ctx;

static ty_tensor *tensor(ty_dtype d, int n, int64_t a, int64_t b, int64_t c, int64_t e) {
  ty_meta m = {.dtype = (uint8_t)d, .ndim = (uint8_t)n, .shape = {a, b, c, e}};
  ty_tensor *t;
  if (ty_empty(&ctx, &ty_cpu, &m, &t) != TY_OK) exit(2);
  for (int64_t i = 0; i < ty_numel(t) * ty_itemsize(t); i++) ((uint8_t *)ty_data(t))[i] = (uint8_t)(i * 7);
  return t;
}

int main(int argc, char **argv) {
  const int epochs = argc > 1 ? atoi(argv[1]) : 1000, items = 40;
  const char *folder = argc > 2 ? argv[2] : "/tmp";
  ty_source *s = calloc(1, sizeof *s);
  ty_pipeline *pipe = calloc(1, sizeof *pipe + 3 * sizeof(ty_transform));
  const double crop[8] = {8, 8, 2, 2, 2, 2, 0, 0}, p[1] = {0.5}, norm[9] = {1, 0.5, 0, 0, 0, 0.2, 1, 1, 1};
  ty_transform_make(&ctx, "random_crop", crop, 8, &pipe->step[0]);
  ty_transform_make(&ctx, "hflip", p, 1, &pipe->step[1]);
  ty_transform_make(&ctx, "normalize", norm, 9, &pipe->step[2]);
  pipe->n = 3;
  s->refs = 1;
  s->n = items;
  s->nfield = 2;
  s->field[0] = (ty_field){.kind = TY_IMAGES, .t = tensor(TY_U8, 4, items, 3, 8, 8), .pipe = pipe};
  s->field[1] = (ty_field){.kind = TY_ROWS, .t = tensor(TY_I64, 1, items, 0, 0, 0)};
  long taken = 0, made = 0;
  double check = 0;
  for (int e = 0; e < epochs; e++) {
    ty_loader *l;
    if (ty_loader_start(&ctx, s, 1 + e % 4, &l) != TY_OK) return 2;
    for (int k = 0; k < 8; k++) {
      ty_batch *b = calloc(1, sizeof *b + 5 * sizeof(int64_t));
      b->count = 5;
      b->item = (int64_t *)(b + 1);
      for (int i = 0; i < 5; i++) b->item[i] = (e + k * 5 + i) % items;
      b->key = ty_key(3, (uint64_t)e);
      for (int f = 0; f < 2; f++) {
        ty_field_meta(s, f, &b->meta[f]);
        b->to[f] = malloc(f ? 5 * 8 : 5 * 3 * 64 * 4);
      }
      ty_loader_submit(l, b);
    }
    for (int k = 0; k < e % 9; k++) {
      ty_batch *b = NULL;
      while (!b) b = ty_loader_take(l, 0.1);
      check += ((float *)b->to[0])[7];
      taken++;
      for (int f = 0; f < 2; f++) free(b->to[f]);
      free(b);
    }
    for (ty_batch *b = ty_loader_stop(l), *next; b; b = next) {
      next = b->next;
      for (int f = 0; f < 2; f++) free(b->to[f]);
      free(b);
      made++;
    }
  }
  ty_source_release(s);
  int saves = 0;
  for (int e = 0; e < epochs / 10; e++) {
    char path[4096];
    ty_named list[2] = {{"a", tensor(TY_F32, 2, 30, 40, 0, 0)}, {"b", tensor(TY_I64, 1, 5, 0, 0, 0)}};
    ty_saving *w;
    int64_t a, b;
    snprintf(path, sizeof path, "%s/step-%d.safetensors", folder, e);
    if (ty_saving_start(&ctx, path, list, 2, "{}", 2, &w) != TY_OK) return 2;
    ty_saving_done(w, e % 3 ? 0 : 0.001, &a, &b);
    if (ty_saving_end(&ctx, w) == TY_OK) saves++;
    ty_release(list[0].t);
    ty_release(list[1].t);
  }
  printf("%d epochs: %ld batches taken, %ld left; %d checkpoints; %g\n", epochs, taken, made, saves, check);
  return 0;
}
