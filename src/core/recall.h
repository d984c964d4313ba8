/* Results that a checkpoint keeps for backward rather than compute again (lua/tycho/recompute.lua).
 *
 * Idea: the function's first run puts the results of chosen ops into a list. When it runs again in backward, these ops take their results
 * from the list, in the same order, and are recorded as if they had run, as long as all ops so far were those of the first run: from a
 * difference on (without gradients, some of the library's functions go another way) they run. Invariant: an entry is an alias without
 * history of a result that hasn't been changed since. */
#ifndef TY_RECALL_H
#define TY_RECALL_H
#include "tycho.h"

/* A result of op; t: NULL between the runs; trace: of the ops up to this one. */
typedef struct { ty_tensor *t; const ty_op *op; uint32_t version; uint64_t trace; } ty_recalled;
typedef struct ty_recall {
  int refs;                            /* its owner's, and one while it is in force */
  struct ty_recall *outer;             /* the one that is in force when this one ends */
  bool open, again, of[TY_NOP];
  bool busy;                           /* an op is being applied */
  ty_recalled *entry;
  int n, room, next;                   /* next: the first entry that hasn't been taken */
  uint64_t trace;                      /* a hash of the ops called so far, in order */
} ty_recall;

ty_recall *ty_recall_new(void);        /* NULL: out of memory */
void ty_recall_release(void *r);
/* Why an op's results can't be kept; NULL: they can. */
const char *ty_recall_refuses(const ty_op *op);
/* From begin to end the list is in force in the context. again: with the first run's tensors, of which there must be n; they may be NULL
   (freed). ty_recall_end gives an error where an entry was changed in place. */
ty_status ty_recall_begin(ty_ctx *ctx, ty_recall *r);
ty_status ty_recall_again(ty_ctx *ctx, ty_recall *r, ty_tensor *const *t, int n);
ty_status ty_recall_end(ty_ctx *ctx, ty_recall *r, bool failed);
void ty_recall_drop(ty_recall *r);     /* releases the entries' tensors */
/* t's memory is another one, whose version isn't the one before: that is no change in place. r and those outside of it. */
void ty_recall_moved(ty_recall *r, const ty_tensor *t, uint32_t before);

/* Notes a call. Casts and copies don't count: autocast keeps some of its own. */
static inline void ty_recall_note(ty_recall *r, const ty_op *op) {
  if (op->id != TY_OP_cast && op->id != TY_OP_clone) r->trace = (r->trace + (uint64_t)op->id + 1) * 0x9E3779B97F4A7C15u;
}
/* These four are for calls with a list. */
bool ty_recall_keeps(const ty_call *c);                        /* whether it is a first run that keeps the op's results */
ty_status ty_recall_keep(ty_call *c, ty_tensor *const *out);   /* aliases of the results join the list */
bool ty_recall_gives(const ty_call *c);                        /* whether the op, run again, takes its results from the list */
ty_status ty_recall_take(ty_call *c);                          /* they become the call's results */
#endif
