/* The core's functions under their own names: each calls through the struct that the core passed in. */
#include "cuda.h"

const ty_services *ty_core;

#define SERVICE(type, name, params, args) type name params { return ty_core->name args; }
#define SERVICE_VOID(name, params, args) void name params { ty_core->name args; }
#include "services.def"

ty_status ty_verror(ty_ctx *ctx, const char *who, const char *fmt, va_list ap) { return ty_core->ty_verror(ctx, who, fmt, ap); }
