/* Convolutions as cuDNN graphs: one operation, or two with a bias. Invariant: the key holds everything that describe() reads. */
#include <string.h>
#include "dnn_plan.h"

enum { UID_X = 1, UID_W, UID_Y, UID_BIAS };

static ty_desc geometry(ty_dnn_graph *g, const ty_k_convolution *a, cudnnDataType_t compute) {
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t dims = 2;
  ty_desc d = ty_dnn_make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  ty_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  ty_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  ty_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims);
  ty_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, a->padding);
  ty_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, a->padding);
  ty_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, a->stride);
  ty_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, a->dilation);
  ty_dnn_finish(g, d);
  return d;
}

/* Adds one of the three convolution operations, on the graph's tensors x, w and y. */
static void convolution(ty_dnn_graph *g, const ty_k_convolution *a, ty_desc conv, ty_desc x, ty_desc w, ty_desc y) {
  const bool wide = a->dtype == TY_F64;
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const void *alpha = wide ? (const void *)&one64 : &one, *beta = wide ? (const void *)&zero64 : &zero;
  const cudnnBackendAttributeType_t scalar = wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  static const struct { cudnnBackendDescriptorType_t op; cudnnBackendAttributeName_t alpha, beta, conv, x, w, y; } kinds[3] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
  const int k = a->op == TY_OP_conv2d ? 0 : a->op == TY_OP_conv2d_backward_input ? 1 : 2;
  ty_desc op = ty_dnn_make(g, kinds[k].op);
  ty_dnn_set(g, op, kinds[k].alpha, scalar, 1, alpha);
  ty_dnn_set(g, op, kinds[k].beta, scalar, 1, beta);
  ty_dnn_set(g, op, kinds[k].conv, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv);
  ty_dnn_set(g, op, kinds[k].x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
  ty_dnn_set(g, op, kinds[k].w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
  ty_dnn_set(g, op, kinds[k].y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
  ty_dnn_add(g, op);
}

static void describe(ty_dnn_graph *g, const void *what) {
  const ty_k_convolution *a = what;
  const cudnnDataType_t type = ty_dnn_type(a->dtype), compute = a->dtype == TY_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  const int64_t xd[4] = {a->n, a->c, a->h, a->w}, wd[4] = {a->o, a->c / a->groups, a->kh, a->kw},
                yd[4] = {a->n, a->o, a->oh, a->ow}, bd[4] = {1, a->o, 1, 1}, bs[4] = {a->o, 1, 1, 1};
  ty_desc x = ty_dnn_tensor(g, UID_X, type, xd, a->xs, TY_DNN_REAL),
    w = ty_dnn_tensor(g, UID_W, type, wd, a->ws, TY_DNN_REAL), y = ty_dnn_tensor(g, UID_Y, type, yd, a->ys, TY_DNN_REAL);
  ty_desc sum = a->bias ? ty_dnn_tensor(g, 1000, compute, yd, a->ys, TY_DNN_INNER) : y;
  convolution(g, a, geometry(g, a, compute), x, w, sum);
  if (a->bias) ty_dnn_point(g, CUDNN_POINTWISE_ADD, compute, -1, sum, ty_dnn_tensor(g, UID_BIAS, type, bd, bs, TY_DNN_REAL), NULL, y);
}

static ty_dnn_key key_of(const ty_k_convolution *a) {
  ty_dnn_key k = {{a->op, a->dtype, a->n, a->c, a->h, a->w, a->o, a->oh, a->ow, a->kh, a->kw, a->groups, a->stride[0],
                   a->stride[1], a->padding[0], a->padding[1], a->dilation[0], a->dilation[1], a->bias != NULL}};
  memcpy(k.v + 19, a->xs, sizeof a->xs);
  memcpy(k.v + 23, a->ws, sizeof a->ws);
  memcpy(k.v + 27, a->ys, sizeof a->ys);
  return k;
}

static bool aligned(const void *p) { return (uintptr_t)p % 16 == 0; }

ty_status ty_dnn_convolve(ty_call *c, int gpu, const ty_k_convolution *a, ty_stream *s, bool *taken) {
  const ty_dnn_key k = key_of(a);
  ty_dnn_pack p = {.n = a->bias ? 4 : 3, .dtype = a->dtype, .uid = {UID_X, UID_W, UID_Y, UID_BIAS},
    .data = {a->x, a->weight, a->y, (void *)a->bias}};
  *taken = false;
  if (!aligned(a->x) || !aligned(a->weight) || !aligned(a->y) || !aligned(a->bias)) return TY_OK;
  return ty_dnn_run(c, gpu, &k, describe, a, &p, s, taken);
}
