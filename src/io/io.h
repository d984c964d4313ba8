/* Files: safetensors, checkpoints, IDX, PNG. Readers trust nothing: every size is checked against the file before memory is taken. */
#ifndef TY_IO_H
#define TY_IO_H
#include "tycho.h"

typedef struct { const char *name; ty_tensor *t; } ty_named;

/* Writes tensors (contiguous, on the CPU) with string metadata as one safetensors file. Atomic: a temporary file in the
 * same folder is written, synced and renamed, and the folder synced. meta: nmeta pairs of key and value. sums: XXH3 of
 * header and tensors go along. written: NULL, or grows by the tensors' bytes. */
ty_status ty_safetensors_write(ty_ctx *ctx, const char *path, const ty_named *list, int n, const char *const *meta,
  int nmeta, bool sums, _Atomic int64_t *written);

typedef struct ty_safetensors ty_safetensors;
/* Opens and checks a file to the letter of the format: sizes, offsets without holes, no duplicate names. */
ty_status ty_safetensors_open(ty_ctx *ctx, const char *path, ty_safetensors **out);
int ty_safetensors_count(const ty_safetensors *f);
const char *ty_safetensors_name(const ty_safetensors *f, int i);
const char *ty_safetensors_meta(const ty_safetensors *f, const char *key);   /* NULL: none */
/* Integers of 8 and 16 bits become int32, those of 32 without a sign int64, floats of 8 bits float16: all values are there. */
const ty_meta *ty_safetensors_about(const ty_safetensors *f, int i);
/* Fills one tensor for each of the file, as ty_safetensors_about says, contiguous, on the CPU. verify: they must have
   the sums written with them. */
ty_status ty_safetensors_read(ty_ctx *ctx, const ty_safetensors *f, bool verify, ty_tensor *const *t);
ty_status ty_safetensors_bytes(ty_ctx *ctx, const ty_safetensors *f, int i, size_t from, size_t n, void *p);   /* of tensor i's memory */
void ty_safetensors_close(ty_safetensors *f);

/* An IDX file (MNIST's format), gzipped or not, as a tensor of uint8, int32, float32 or float64. */
ty_status ty_idx_read(ty_ctx *ctx, const char *path, ty_tensor **out);

/* pixels: uint8 of shape (H, W, 3), contiguous. */
ty_status ty_png_write(ty_ctx *ctx, const char *path, const ty_tensor *pixels);

/* A checkpoint on its way to disk, in a thread of its own (checkpoint.c): path is written with sums; when that is durable, the file
 * `latest` beside it names it, and of the files step-N.safetensors there the oldest are removed until keep (0: all) are left. */
typedef struct ty_saving ty_saving;
/* shares the tensors */
ty_status ty_saving_start(ty_ctx *ctx, const char *path, const ty_named *list, int n, const char *tree, int keep,
  ty_saving **out);
bool ty_saving_done(ty_saving *s, double seconds, int64_t *written, int64_t *total);       /* waits that long */
ty_status ty_saving_end(ty_ctx *ctx, ty_saving *s);                                         /* waits; frees it, gives its result */
const char *ty_saving_result(ty_saving *s);                                                 /* waits; NULL, or why it failed */
/* removes temporary files of processes that are gone */
void ty_checkpoints_clean(const char *folder);
/* Files step-N.safetensors of a folder, what was saved last first: that which `latest` names, smaller numbers, larger
   ones. *n numbers, to free(). */
ty_status ty_checkpoints(ty_ctx *ctx, const char *folder, int64_t **steps, int *n);

#define TY_PATH_MOST 4096
/* A whole file: head, then data. As all that is written here, a temporary file first. */
ty_status ty_file_write(ty_ctx *ctx, const char *path, const void *head, size_t nhead, const void *data, size_t ndata);
/* to a number past those of the standard streams, which a host may have closed */
bool ty_away(int *fd);
/* a new file beside path, its name into TY_PATH_MOST bytes; -1: ctx->err says why */
int ty_temporary(ty_ctx *ctx, const char *path, char *out);
/* Whether nobody, on this machine or on another, is still writing the temporary file of that name. */
bool ty_abandoned(int folder, const char *name);
int ty_file_open(ty_ctx *ctx, const char *path, int64_t *size);         /* a regular file, to be read; -1: ctx->err says why */
/* Syncs and renames temporary to path, and syncs the folder; closes fd. */
ty_status ty_file_commit(ty_ctx *ctx, int fd, const char *temporary, const char *path);

/* A file that is written piece by piece: begin, any number of writes, end. */
typedef struct { const char *path; int fd; bool direct; char *block; size_t fill; char temporary[TY_PATH_MOST]; } ty_writer;
/* bytes: about how many will come; path stays the caller's */
ty_status ty_write_begin(ty_ctx *ctx, ty_writer *w, const char *path, int64_t bytes);
bool ty_write(ty_writer *w, const void *p, size_t n);                                        /* false: errno says why */
/* ok: as ty_file_commit; else nothing is left */
ty_status ty_write_end(ty_ctx *ctx, ty_writer *w, bool ok);
#endif
