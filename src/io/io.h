/* Files: safetensors, IDX, PNG. Readers trust nothing: every size is checked against the file before memory is taken. */
#ifndef TY_IO_H
#define TY_IO_H
#include "tycho.h"

typedef struct { const char *name; ty_tensor *t; } ty_named;

/* Writes tensors (contiguous, on the CPU) with string metadata as one safetensors file. Atomic: a temporary file in the
 * same folder is written, synced and renamed, and the folder synced. meta: nmeta pairs of key and value. */
ty_status ty_safetensors_write(ty_ctx *ctx, const char *path, const ty_named *list, int n, const char *const *meta, int nmeta);

typedef struct ty_safetensors ty_safetensors;
/* Opens and checks a file to the letter of the format: sizes, offsets without holes, no duplicate names. */
ty_status ty_safetensors_open(ty_ctx *ctx, const char *path, ty_safetensors **out);
int ty_safetensors_count(const ty_safetensors *f);
const char *ty_safetensors_name(const ty_safetensors *f, int i);
const char *ty_safetensors_meta(const ty_safetensors *f, const char *key);   /* NULL: none */
ty_status ty_safetensors_read(ty_ctx *ctx, ty_safetensors *f, int i, ty_tensor **out);  /* a copy of tensor i */
void ty_safetensors_close(ty_safetensors *f);

/* An IDX file (MNIST's format), gzipped or not, as a tensor of uint8, int32, float32 or float64. */
ty_status ty_idx_read(ty_ctx *ctx, const char *path, ty_tensor **out);

/* pixels: uint8 of shape (H, W, 3), contiguous. */
ty_status ty_png_write(ty_ctx *ctx, const char *path, const ty_tensor *pixels);

/* Syncs and renames temporary to path, and syncs the folder. */
ty_status ty_file_commit(ty_ctx *ctx, int fd, const char *temporary, const char *path);
#endif
