/* cuDNN's graphs (its backend API): describing operations, choosing and keeping plans, running them.
 *
 * Idea: a caller has a key of everything that decides a plan, a function that describes the graph, and the tensors' ids and pointers; the
 * rest is common. Descriptors are made through a ty_dnn_graph, which holds them and the first error; after that nothing more is made. */
#ifndef TY_DNN_PLAN_H
#define TY_DNN_PLAN_H
#include <cudnn.h>
#include "dnn.h"

typedef cudnnBackendDescriptor_t ty_desc;
typedef struct { ty_desc part[160], op[32]; int n, nop; int64_t uid; cudnnStatus_t e; } ty_dnn_graph;   /* op: the operations so far */
typedef struct { cudnnBackendAttributeName_t name; ty_desc d; } ty_dnn_with;
typedef struct { int64_t v[48]; } ty_dnn_key;                              /* unused words 0 */
/* dtype: of the operands; decides which engines are allowed. zeroed: NULL, or memory of nzeroed bytes, set to 0 before each run, which adds
   to it. patience: calls of a key that get no plan before one is made, which may take half a second. ready: NULL, or adds what is made
   only if there is a plan; called once, before the first run. */
typedef struct ty_dnn_pack {
  int n, dtype, patience;
  int64_t uid[20];
  void *data[20], *zeroed;
  size_t nzeroed;
  ty_status (*ready)(ty_call *c, int gpu, struct ty_dnn_pack *p, void *more);
  void *more;
} ty_dnn_pack;
typedef void (*ty_dnn_describe)(ty_dnn_graph *g, const void *what);

/* kinds of tensors: in memory, aligned to 16 bytes; in memory, aligned to 4; between operations; one number in host memory */
enum { TY_DNN_REAL, TY_DNN_WORDS, TY_DNN_INNER, TY_DNN_VALUE };

ty_desc ty_dnn_make(ty_dnn_graph *g, cudnnBackendDescriptorType_t type);
void ty_dnn_set(ty_dnn_graph *g, ty_desc d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *v);
void ty_dnn_finish(ty_dnn_graph *g, ty_desc d);
ty_desc ty_dnn_tensor(ty_dnn_graph *g, int64_t uid, cudnnDataType_t type, const int64_t dims[4], const int64_t strides[4], int kind);
ty_desc ty_dnn_inner(ty_dnn_graph *g, cudnnDataType_t type, const int64_t dims[4]);      /* contiguous, with a new id */
void ty_dnn_add(ty_dnn_graph *g, ty_desc op);              /* finishes an operation and adds it to the graph */
/* Adds an operation with n descriptors as attributes; NULL ones are left out. */
ty_desc ty_dnn_operation(ty_dnn_graph *g, cudnnBackendDescriptorType_t type, int n, const ty_dnn_with *with);
/* y = mode of x, b and t (NULL: left out); axis -1: none. Gives y. */
ty_desc ty_dnn_point(ty_dnn_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis, ty_desc x,
  ty_desc b, ty_desc t, ty_desc y);
cudnnDataType_t ty_dnn_type(int dtype);
/* Finds or makes the plan and runs it in s; *taken false: there is none. */
ty_status ty_dnn_run(ty_call *c, int gpu, const ty_dnn_key *k, ty_dnn_describe describe, const void *what,
  ty_dnn_pack *pack, ty_stream *s, bool *taken);
#endif
