/* Kernels that the user's program brings (lua/tycho/cuda/kernel.lua): compiled like fused ones, launched in the current stream. */
#include "rtc.h"

ty_status ty_user_kernel(ty_ctx *ctx, int gpu, const char *source, void **out) {
  ty_rtc made;
  if (ty_capturing()) return ty_error(ctx, "kernel: can't be compiled during graph capture: call it once before");    /* as in fused.c */
  TY_TRY(ty_rtc_get(ctx, gpu, source, &made));
  *out = made.fused;
  return TY_OK;
}

ty_status ty_user_launch(ty_ctx *ctx, int gpu, void *kernel, const ty_gpu_launch *l) {
  ty_stream *s;
  TY_TRY(ty_cuda_enter(ctx, gpu, &s));
  for (int i = 0; i < l->nt; i++) ty_cuda_uses(s, l->t[i]->storage);
  return ty_cuda_sent(ctx, l->name, gpu, ty_rtc_launch(kernel, l->grid, l->block, l->args, l->size, s->s));
}
