/* Blobs: bytes of files in memory, the arrays in them as NumPy describes them, and zip archives (npz, PyTorch's .pt), through libzip. */
#ifndef TY_ARCHIVE_H
#define TY_ARCHIVE_H
#include "tycho.h"

/* Memory that several tensors may share. n may be 0. fd: the mapped file; -1: memory of our own. */
typedef struct ty_blob { atomic_int refs; void *p; size_t n; bool mapped; int fd; } ty_blob;
void ty_blob_release(ty_blob *b);
ty_status ty_blob_read(ty_ctx *ctx, const char *path, ty_blob **out);         /* a whole file */
/* The same by mmap: read-only, and only to be read while ty_blob_whole. */
ty_status ty_blob_map(ty_ctx *ctx, const char *path, ty_blob **out);
/* Whether the mapped file is still as long as it was: else reading it kills the process. */
bool ty_blob_whole(const ty_blob *b);

/* The array of m's shape at byte `from` as a tensor. descr: its dtype as in NumPy ("<f4", ">i2", "|u1", ...), or "bf16".
 * Integers that Tycho has no dtype for are widened; where nothing is converted, the tensor shares the blob's memory.
 * fortran: the first dim runs fastest. */
ty_status ty_blob_array(ty_ctx *ctx, ty_blob *b, size_t from, const char *descr, const ty_meta *m, bool fortran, ty_tensor **out);
/* NumPy's name for d; NULL: bfloat16, which NumPy lacks */
const char *ty_array_descr(ty_dtype d);

typedef struct ty_zip ty_zip;
ty_status ty_zip_open(ty_ctx *ctx, const char *path, ty_zip **out);
void ty_zip_close(ty_zip *z);
int ty_zip_count(const ty_zip *z);
const char *ty_zip_name(const ty_zip *z, int i);
/* Reads member i. A claimed size that the compressed bytes can't hold is an error. */
ty_status ty_zip_read(ty_ctx *ctx, ty_zip *z, int i, ty_blob **out);

typedef struct { const char *name; const void *head; size_t nhead; const void *data; size_t ndata; } ty_member;   /* head, then data */
ty_status ty_zip_write(ty_ctx *ctx, const char *path, const ty_member *list, int n);      /* uncompressed; atomic, as ty_file_commit is */
#endif
