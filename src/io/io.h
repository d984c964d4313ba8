/* Files: safetensors, checkpoints, IDX, PNG. Readers trust nothing: every size is checked against the file before memory is taken. */
#ifndef TY_IO_H
#define TY_IO_H
#include "tycho.h"

#define TY_DEFLATE_MOST 1032             /* bytes that deflate yields at most from one */

typedef struct { const char *name; ty_tensor *t; } ty_named;

/* Writes tensors (contiguous, on the CPU) with string metadata as one safetensors file. Atomic: a temporary file in the
 * same folder is written, synced and renamed, and the folder synced. meta: nmeta pairs of key and value. sums: XXH3
 * checksums of header and tensors are stored. written: NULL, or a counter of the tensors' bytes so far. */
ty_status ty_safetensors_write(ty_ctx *ctx, const char *path, const ty_named *list, int n, const char *const *meta,
  int nmeta, bool sums, _Atomic int64_t *written);

typedef struct ty_safetensors ty_safetensors;
/* Opens a file and checks it strictly: sizes, offsets without holes, no duplicate names. */
ty_status ty_safetensors_open(ty_ctx *ctx, const char *path, ty_safetensors **out);
int ty_safetensors_count(const ty_safetensors *f);
const char *ty_safetensors_name(const ty_safetensors *f, int i);
const char *ty_safetensors_meta(const ty_safetensors *f, const char *key);   /* NULL: none */
/* Tensor i's dtype and shape. What Tycho has no dtype for is widened without loss: int8, int16, uint16 to int32, uint32 to int64, 8-bit
   floats to float16. */
const ty_meta *ty_safetensors_about(const ty_safetensors *f, int i);
/* Fills t[i] with tensor i of the file, for all i; each as ty_safetensors_about says, contiguous, on the CPU. verify: the
   checksums must be there and match. */
ty_status ty_safetensors_read(ty_ctx *ctx, const ty_safetensors *f, bool verify, ty_tensor *const *t);
ty_status ty_safetensors_bytes(ty_ctx *ctx, const ty_safetensors *f, int i, size_t from, size_t n, void *p);   /* of tensor i in memory */
void ty_safetensors_close(ty_safetensors *f);

/* An IDX file (MNIST's format), gzipped or not, as a tensor of uint8, int32, float32 or float64. */
ty_status ty_idx_read(ty_ctx *ctx, const char *path, ty_tensor **out);

/* pixels: uint8 of shape (H, W, 3), contiguous. */
ty_status ty_png_write(ty_ctx *ctx, const char *path, const ty_tensor *pixels);

/* A checkpoint that a thread of its own writes (checkpoint.c): path, with checksums; when that is durable, the file `latest` beside it,
 * which names it; then the oldest files step-N.safetensors there are removed until keep (0: all) are left. */
typedef struct ty_saving ty_saving;
/* Shares the tensors, which nobody may write to until the end. */
ty_status ty_saving_start(ty_ctx *ctx, const char *path, const ty_named *list, int n, const char *tree, int keep,
  ty_saving **out);
bool ty_saving_done(ty_saving *s, double seconds, int64_t *written, int64_t *total);       /* waits up to seconds */
ty_status ty_saving_end(ty_ctx *ctx, ty_saving *s);                                         /* waits, frees s, returns its result */
const char *ty_saving_result(ty_saving *s);                                                 /* waits; NULL, or why it failed */
/* Removes the temporary files of dead processes. */
void ty_checkpoints_clean(const char *folder);
/* The N of a folder's files step-N.safetensors, the last saved first: the one that `latest` names, smaller ones, then
   larger ones. *n numbers, to be freed. */
ty_status ty_checkpoints(ty_ctx *ctx, const char *folder, int64_t **steps, int *n);

#define TY_PATH_MOST 4096
/* Writes a whole file, head and then data; atomic, as all writing here. */
ty_status ty_file_write(ty_ctx *ctx, const char *path, const void *head, size_t nhead, const void *data, size_t ndata);
/* Moves *fd away from the numbers of the standard streams, which a host may have closed. */
bool ty_away(int *fd);
/* Creates a temporary file beside path, its name in out (TY_PATH_MOST bytes); -1: ctx->err says why. */
int ty_temporary(ty_ctx *ctx, const char *path, char *out);
/* Whether no process, here or on another machine, is still writing this temporary file. */
bool ty_abandoned(int folder, const char *name);
int ty_file_open(ty_ctx *ctx, const char *path, int64_t *size);         /* opens a regular file for reading; -1: ctx->err says why */
/* Syncs and renames temporary to path, and syncs the folder; closes fd. */
ty_status ty_file_commit(ty_ctx *ctx, int fd, const char *temporary, const char *path);

/* A file that is written piece by piece: begin, any number of writes, end. */
typedef struct { const char *path; int fd; bool direct; char *block; size_t fill; char temporary[TY_PATH_MOST]; } ty_writer;
/* bytes: about how many will come; path must stay valid */
ty_status ty_write_begin(ty_ctx *ctx, ty_writer *w, const char *path, int64_t bytes);
bool ty_write(ty_writer *w, const void *p, size_t n);                                        /* false: errno says why */
/* ok: as ty_file_commit; else removes the temporary file */
ty_status ty_write_end(ty_ctx *ctx, ty_writer *w, bool ok);
#endif
