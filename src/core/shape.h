/* What infer rules share. A check that fails gives a text with the op, the argument, what was expected and what came. */
#ifndef TY_SHAPE_H
#define TY_SHAPE_H
#include "tycho.h"

ty_status ty_norm_dim(ty_call *c, int64_t *dim, int ndim, const ty_tensor *x);
ty_status ty_distinct_dims(ty_call *c, ty_attr *dims, const ty_tensor *x);
int ty_position(const ty_call *c, int slot);                /* the operand's position among the arguments as users count them, for errors */
ty_status ty_need_float(ty_call *c, int slot);
ty_status ty_need_dims(ty_call *c, int slot, int ndim);
ty_status ty_need_dtype(ty_call *c, int slot, ty_dtype d);
ty_status ty_need_same_dtype(ty_call *c, int slot, int with);
ty_status ty_need_fitting(ty_call *c, int slot, ty_dtype d);   /* a number operand that d can hold */
ty_status ty_need_index(ty_call *c, int slot);
int64_t ty_count(const ty_meta *m);        /* elements; -1: over TY_MOST, sizes of 0 taken as 1, as kernels and strides need */
void ty_set_shape(ty_meta *m, ty_dtype d, int ndim, const int64_t *shape);
void ty_lay_channels_last(ty_meta *m);     /* channels-last, as an own_layout */
void ty_keep_layout(ty_meta *m, const ty_tensor *x);
void ty_keep_order(ty_meta *m, const ty_tensor *x);   /* dense, with its dims in x's order in memory */
ty_dtype ty_result_dtype(const ty_operand *in, int n);
int64_t ty_view_offset(const ty_call *c);  /* of a VIEW op's result, after its infer rule */
int ty_index_place(const ty_attr *dims);     /* the place of the index dims in index's result */
ty_status ty_infer_same(ty_call *c);          /* operand 1's shape and floating dtype, contiguous */
#endif
