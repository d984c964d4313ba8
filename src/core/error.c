/* Error texts. This file is linked into core.so and into each device library, as variadic functions don't fit services.def.
 *
 * Invariant: a text is written into the context, and a status is returned with it; nothing raises or allocates. */
#include <stdarg.h>
#include "gpu.h"

ty_status ty_error(ty_ctx *ctx, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  ty_verror(ctx, NULL, fmt, ap);
  va_end(ap);
  return TY_ERR;
}

ty_status ty_fail(ty_call *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  ty_verror(c->ctx, c->op->shown, fmt, ap);
  va_end(ap);
  return TY_ERR;
}

ty_status ty_no_memory(ty_ctx *ctx, const char *who) {
  ty_error(ctx, "%s%sout of memory", who ? who : "", who ? ": " : "");
  return TY_OOM;
}
