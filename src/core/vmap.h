/* vmap (vmap.c): what apply and the binding ask; and what its rules (vmap_rules.c) share: a call with mapped operands, and the ways to lay
 * these for the op of all examples. */
#ifndef TY_VMAP_H
#define TY_VMAP_H
#include "shape.h"

/* A vmap that is running. draws: what random numbers within it are: an error, each example's own, the same for all. */
typedef enum { TY_VMAP_ERROR, TY_VMAP_DIFFERENT, TY_VMAP_SAME } ty_vmap_draws;
/* id: an inner one's is larger. begun: the storages made since have this id, or a larger one. */
typedef struct ty_vmap { uint32_t id; ty_vmap_draws draws; int64_t size; uint64_t begun; const struct ty_vmap *outer; } ty_vmap;

/* A tensor that stands for one example of whole, whose first dim is that of the examples of the vmap with id map. And back: a new reference
 * to the whole; of a tensor that isn't mapped by map, itself for each example. */
ty_status ty_map_in(ty_ctx *ctx, uint32_t map, ty_tensor *whole, ty_tensor **out);
ty_status ty_map_out(ty_ctx *ctx, const ty_vmap *map, ty_tensor *t, ty_tensor **out);
bool ty_is_mapped(const ty_call *c, const ty_tensor *into);      /* an operand is, or the op draws random numbers within a vmap */
ty_status ty_apply_mapped(ty_call *c, ty_tensor *into, ty_tensor **out);

/* ---- a call, for the rules ---- */

typedef struct {
  ty_call one;             /* as an example's: checked, with the dims and sizes that its infer rule made plain */
  const ty_vmap *map;
  const ty_span *span;
  ty_attr *asked;          /* the attributes as they came */
  ty_attr at[TY_MAXATTR];  /* those of the op of all */
  ty_attr plain[TY_MAXATTR];
  ty_operand *w;           /* operands of the op of all; each tensor a reference */
} ty_vmap_call;

static inline bool ty_vmap_maps(const ty_vmap_call *m, const ty_tensor *t) { return t && t->whole && t->map == m->map->id; }
static inline ty_tensor *ty_vmap_example(const ty_vmap_call *m, int i) { return m->one.in[i].t; }        /* operand i as an example's */

ty_status ty_vmap_view(ty_ctx *ctx, ty_tensor *t, int n, const int64_t *size, ty_tensor **out);
ty_status ty_vmap_repeated(ty_ctx *ctx, ty_tensor *t, int64_t n, ty_tensor **out);       /* t for each of n examples, without a copy */

/* Operand i of the op of all, at first by one of these three: a mapped one's whole, or as it is; with a dim of the examples, whether it is
 * mapped or not; with that and its first dim as one batch, (B, N, ...) as (B N, ...). Then, where it has a dim of the examples: with dims
 * of 1 after it, so that examples of rank dims broadcast; or another tensor in its place, which is taken over. */
void ty_vmap_plainly(ty_vmap_call *m, int i);
ty_status ty_vmap_spread(ty_vmap_call *m, int i);
ty_status ty_vmap_merged(ty_vmap_call *m, int i);
ty_status ty_vmap_laid_for(ty_vmap_call *m, int i, int rank);
void ty_vmap_take(ty_vmap_call *m, int i, ty_tensor *t);

/* The op of all, with its results as they are; these, which have the examples along their first dim, mapped (takes them over). */
ty_status ty_vmap_apply(ty_vmap_call *m, ty_tensor **all);
ty_status ty_vmap_results(ty_vmap_call *m, ty_tensor **all, ty_tensor **out);
/* Both; into: the tensor of all that takes the result. Of merged operands: (B N, ...) becomes (B, N, ...), and what is of an example's
 * shape belongs to all. */
ty_status ty_vmap_run(ty_vmap_call *m, ty_tensor *into, ty_tensor **out);
ty_status ty_vmap_run_merged(ty_vmap_call *m, ty_tensor **out);
ty_status ty_vmap_each(ty_vmap_call *m, ty_tensor **out);       /* example by example, and stacked */

/* Whatever m's op is: its mapped results, or, where that is the simpler way, the result in into. */
ty_status ty_vmap_rule(ty_vmap_call *m, ty_tensor *into, ty_tensor **out);
#endif
