/* Results that a checkpoint keeps for backward rather than compute again (lua/tycho/recompute.lua).
 *
 * Idea: the function's first run puts the results of chosen ops into a list. When it runs again in backward, these ops take their results
 * from the list, in the same order, and are recorded as if they had run. Invariant: an entry is an alias without history of a result that
 * hasn't been changed since. */
#ifndef TY_RECALL_H
#define TY_RECALL_H
#include "tycho.h"

/* A result of op. When it is taken, op is NULL, and t is NULL if it has been freed. */
typedef struct { ty_tensor *t; const ty_op *op; uint32_t version; } ty_recalled;
typedef struct ty_recall {
  struct ty_recall *outer;             /* the one that is in force when this one ends */
  bool open, again, of[TY_NOP];
  ty_recalled *entry;
  int n, room, next;                   /* next: the first entry that hasn't been taken */
} ty_recall;

ty_recall *ty_recall_new(void);        /* NULL: out of memory */
void ty_recall_free(void *r);
/* Why an op's results can't be kept; NULL: they can. */
const char *ty_recall_refuses(const ty_op *op);
/* From begin to end the list is in force in the context. ty_recall_end empties it; it gives an error where an entry was changed in place,
   or not taken. */
ty_status ty_recall_begin(ty_ctx *ctx, ty_recall *r, bool again);
ty_status ty_recall_end(ty_ctx *ctx, ty_recall *r, bool failed);
ty_status ty_recall_add(ty_ctx *ctx, ty_recall *r, ty_tensor *t, const ty_op *op);     /* retains t, which may be NULL */

static inline bool ty_recalls(const ty_call *c) { return c->ctx->recall && c->ctx->recall->of[c->op->id]; }
ty_status ty_recall_keep(ty_call *c, ty_tensor *const *out);   /* the first run: aliases of the results join the list */
ty_status ty_recall_take(ty_call *c);                          /* again: they become the call's results */
#endif
