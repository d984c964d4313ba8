/* The list of devices, and copies between them.
 *
 * Idea: a device is a backend. Only memory without holes, of one dtype and one layout, crosses between devices, so the device that has
 * the data converts strides and dtypes, before or after. Invariant: nothing else in the core touches the memory of two devices at once. */
#include <string.h>
#include "shape.h"

const ty_backend *ty_devices[2 + TY_MAXGPU] = {&ty_cpu};

ty_status ty_infer_to_device(ty_call *c) {
  ty_meta_of(c->in[0].t, &c->meta[0]);
  ty_keep_layout(&c->meta[0], c->in[0].t);
  return TY_OK;
}

/* Whether two tensors of one shape and dtype have their elements in the same order, without holes. */
static bool laid_out_alike(const ty_tensor *a, const ty_tensor *b) { return ty_same_places(a, b) && ty_is_dense(a); }

static ty_status transfer(ty_ctx *ctx, ty_tensor *dst, ty_tensor *src, bool non_blocking) {
  const ty_backend *from = ty_device_of(src), *to = ty_device_of(dst);
  const size_t size = (size_t)ty_itemsize(dst);
  return (from->gpu < 0 ? to : from)->transfer(ctx, from->gpu < 0 ? to : from, dst->storage, (size_t)dst->offset * size,
                                               src->storage, (size_t)src->offset * size, (size_t)ty_numel(dst) * size,
                                               !non_blocking);
}

ty_status ty_move_into(ty_ctx *ctx, ty_tensor *dst, ty_tensor *src, bool non_blocking) {
  if (ty_device_of(dst) == ty_device_of(src)) return ty_copy_into(ctx, dst, src);
  ty_tensor *s = NULL, *t = NULL;
  ty_meta m;
  ty_meta_of(dst, &m);
  if (ty_numel(dst) == 0) return TY_OK;
  /* s: src's elements in dst's shape and dtype, which cross */
  const bool same = src->dtype == dst->dtype && TY_SAME_SHAPE(src, dst);
  ty_status st = TY_OK;
  if (same && laid_out_alike(src, dst)) return transfer(ctx, dst, src, non_blocking);
  if (same && ty_is_contiguous(src)) s = ty_retain(src);
  else {
    st = ty_empty(ctx, ty_device_of(src), &m, &s);
    if (st == TY_OK) st = ty_copy_into(ctx, s, src);
  }
  if (st == TY_OK && ty_is_contiguous(dst)) st = transfer(ctx, dst, s, non_blocking);
  else if (st == TY_OK) {
    st = ty_empty(ctx, ty_device_of(dst), &m, &t);
    if (st == TY_OK) st = transfer(ctx, t, s, non_blocking);
    if (st == TY_OK) st = ty_copy_into(ctx, dst, t);
  }
  ty_release(s);
  ty_release(t);
  return st;
}

ty_status ty_move(ty_ctx *ctx, ty_tensor *t, const ty_backend *b, ty_tensor **out) {
  ty_meta m;
  if (ty_device_of(t) == b) return ty_contiguous(ctx, t, out);
  ty_meta_of(t, &m);
  TY_TRY(ty_empty(ctx, b, &m, out));
  ty_status s = ty_move_into(ctx, *out, t, false);
  if (s != TY_OK) { ty_release(*out); *out = NULL; }
  return s;
}
