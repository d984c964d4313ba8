/* Pieces of files in memory, arrays in them as NumPy describes them, and zip archives (npz, PyTorch's .pt), through libzip. */
#ifndef TY_ARCHIVE_H
#define TY_ARCHIVE_H
#include "tycho.h"

/* Memory that several tensors may lie in. n may be 0. */
/* fd: the file that is mapped, -1: memory of our own */
typedef struct ty_blob { atomic_int refs; void *p; size_t n; bool mapped; int fd; } ty_blob;
void ty_blob_release(ty_blob *b);
ty_status ty_blob_read(ty_ctx *ctx, const char *path, ty_blob **out);         /* a whole file */
/* the same by mmap, to be read only, and only while it is whole */
ty_status ty_blob_map(ty_ctx *ctx, const char *path, ty_blob **out);
/* whether the file is still as long as it was: else reading would end the process */
bool ty_blob_whole(const ty_blob *b);

/* The array of m's shape at byte from: descr is NumPy's ("<f4", ">i2", "|u1", ...), or "bf16". Integers that Tycho has
 * no dtype for are widened; where nothing has to be changed the tensor lies in the blob. fortran: the first dim runs
 * fastest. */
ty_status ty_blob_array(ty_ctx *ctx, ty_blob *b, size_t from, const char *descr, const ty_meta *m, bool fortran, ty_tensor **out);
/* what a tensor is written as; NULL: bfloat16, which NumPy hasn't */
const char *ty_array_descr(ty_dtype d);

typedef struct ty_zip ty_zip;
ty_status ty_zip_open(ty_ctx *ctx, const char *path, ty_zip **out);
void ty_zip_close(ty_zip *z);
int ty_zip_count(const ty_zip *z);
const char *ty_zip_name(const ty_zip *z, int i);
/* Member i; its size is believed only as far as its compressed size can hold it. */
ty_status ty_zip_read(ty_ctx *ctx, ty_zip *z, int i, ty_blob **out);

typedef struct { const char *name; const void *head; size_t nhead; const void *data; size_t ndata; } ty_member;   /* head, then data */
ty_status ty_zip_write(ty_ctx *ctx, const char *path, const ty_member *list, int n);      /* stored; atomic as ty_file_commit is */
#endif
