/* vmap: what apply and the binding call (vmap.c); and what its rules (vmap_rules.c) share: a call with mapped operands, and the ways
 * to lay them out for one call on all examples, "the op of all". */
#ifndef TY_VMAP_H
#define TY_VMAP_H
#include "shape.h"

/* What drawing random numbers within a vmap does: an error; each example's own numbers; the same for all. */
typedef enum { TY_VMAP_ERROR, TY_VMAP_DIFFERENT, TY_VMAP_SAME } ty_vmap_draws;
/* A vmap that is running, of size examples. An inner one has a larger id. begun: the id of the first storage made within it. */
typedef struct ty_vmap { uint32_t id; ty_vmap_draws draws; int64_t size; uint64_t begun; const struct ty_vmap *outer; } ty_vmap;

/* ty_vmap_in: a tensor that stands for one example of whole, whose first dim is the examples of the vmap with id map. ty_vmap_out: a new
 * reference to t's whole; where map hasn't mapped t, t repeated for each example. */
ty_status ty_vmap_in(ty_ctx *ctx, uint32_t map, ty_tensor *whole, ty_tensor **out);
ty_status ty_vmap_out(ty_ctx *ctx, const ty_vmap *map, ty_tensor *t, ty_tensor **out);
bool ty_draws(const ty_call *c);       /* whether the op draws random numbers */
bool ty_is_mapped(const ty_call *c, const ty_tensor *into);      /* an operand or into is, or the op draws within a vmap */
ty_status ty_apply_mapped(ty_call *c, ty_tensor *into, ty_tensor **out);

/* ---- a call, for the rules ---- */

typedef struct {
  ty_call one;             /* the call on one example, checked by its infer rule */
  const ty_vmap *map;
  const ty_span *span;
  ty_attr *asked;          /* the attributes as they came */
  ty_attr at[TY_MAXATTR];  /* attributes for the op of all */
  ty_attr plain[TY_MAXATTR];   /* one.at: dims and sizes as normalised by the infer rule */
  ty_operand *w;           /* operands for the op of all, each tensor a reference */
} ty_vmap_call;

static inline bool ty_vmap_maps(const ty_vmap_call *m, const ty_tensor *t) { return t && t->whole && t->vmap == m->map->id; }
static inline ty_tensor *ty_vmap_example(const ty_vmap_call *m, int i) { return m->one.in[i].t; }        /* one example's operand i */

ty_status ty_vmap_repeated(ty_ctx *ctx, ty_tensor *t, int64_t n, ty_tensor **out);       /* t for each of n examples, expanded */

/* Set w[i]. First one of three. plainly: a mapped operand's whole, another operand as it is. spread: always with the examples' dim.
 * merged: as spread, with that dim and the next as one batch, (B, N, ...) as (B N, ...). Then, where there is an examples' dim, laid_for
 * puts dims of 1 after it, so that examples of rank dims broadcast; or take puts t in its place, taking it over. */
void ty_vmap_plainly(ty_vmap_call *m, int i);
ty_status ty_vmap_spread(ty_vmap_call *m, int i);
ty_status ty_vmap_merged(ty_vmap_call *m, int i);
ty_status ty_vmap_laid_for(ty_vmap_call *m, int i, int rank);
void ty_vmap_take(ty_vmap_call *m, int i, ty_tensor *t);

/* apply: runs the op of all, with results in all. results: takes these over and maps them, the examples along their first dim. */
ty_status ty_vmap_apply(ty_vmap_call *m, ty_tensor **all);
ty_status ty_vmap_results(ty_vmap_call *m, ty_tensor **all, ty_tensor **out);
/* run: both; into: the whole to write to. run_merged: both, for merged operands: results (B N, ...) become (B, N, ...), and one of a
 * single example's shape is repeated for all. each: example by example, and stacked. */
ty_status ty_vmap_run(ty_vmap_call *m, ty_tensor *into, ty_tensor **out);
ty_status ty_vmap_run_merged(ty_vmap_call *m, ty_tensor **out);
ty_status ty_vmap_each(ty_vmap_call *m, ty_tensor **out);

/* Runs m by its op's rule: gives mapped results, or, where that is simpler, writes the result to into. */
ty_status ty_vmap_rule(ty_vmap_call *m, ty_tensor *into, ty_tensor **out);
#endif
