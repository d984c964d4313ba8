/* What infer rules share. Each check fails with a text that names op, argument, what was expected and what came. */
#ifndef TY_SHAPE_H
#define TY_SHAPE_H
#include "tycho.h"

ty_status ty_norm_dim(ty_call *c, int64_t *dim, int ndim, const ty_tensor *x);
ty_status ty_distinct_dims(ty_call *c, ty_attr *dims, const ty_tensor *x);
ty_status ty_need_float(ty_call *c, int slot);
ty_status ty_need_dims(ty_call *c, int slot, int ndim);
ty_status ty_need_dtype(ty_call *c, int slot, ty_dtype d);
ty_status ty_need_same_dtype(ty_call *c, int slot, int with);
ty_status ty_need_fitting(ty_call *c, int slot, ty_dtype d);   /* a number that is stored as it is */
ty_status ty_need_index(ty_call *c, int slot);
int64_t ty_count(const ty_meta *m);        /* its elements; -1: more than TY_MOST, or beside a size of 0: kernels and strides count on it */
void ty_set_shape(ty_meta *m, ty_dtype d, int ndim, const int64_t *shape);
void ty_lay_channels_last(ty_meta *m);     /* as a backend's own layout */
void ty_keep_layout(ty_meta *m, const ty_tensor *x);
void ty_keep_order(ty_meta *m, const ty_tensor *x);   /* the order of x's dims in memory, whatever the sizes */
ty_dtype ty_result_dtype(const ty_operand *in, int n);
int64_t ty_view_offset(const ty_call *c);  /* VIEW ops, after their infer rule */
int ty_index_place(const ty_attr *dims);     /* where the index dims stand in the result of index */
ty_status ty_infer_same(ty_call *c);          /* of a floating operand's shape and dtype, in order in memory */
#endif
