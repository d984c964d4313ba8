/* A tape without what it saved: the backward pass of a recorded function, of tensors that each call gives anew.
 *
 * Idea: a compiled function's replay leaves no tape. Where its results' gradients come from outside, the tape of the recorded call serves
 * for all calls: what it saved is taken out, each replay gives the same tensors anew, and for a pass they are put in their places.
 * Invariant: outside of ty_skeleton_run an emptied skeleton holds no memory but that of leaves. */
#ifndef TY_SKELETON_H
#define TY_SKELETON_H
#include "tycho.h"

typedef struct ty_skeleton ty_skeleton;

/* Of the tape of nroot results. *why: there can be none, since the tape holds what a replay can't give anew; else NULL. */
ty_status ty_skeleton_new(ty_ctx *ctx, ty_tensor **root, int nroot, ty_skeleton **out, const char **why);
void ty_skeleton_free(ty_skeleton *k);
ty_tensor **ty_skeleton_leaves(const ty_skeleton *k, int *n);      /* those whose gradients ty_skeleton_run gives, in its order */
/* What the tape saved, a tensor for each storage; until it is emptied. */
ty_tensor **ty_skeleton_saved(const ty_skeleton *k, int *n);
void ty_skeleton_empty(ty_skeleton *k);
/* saved: as ty_skeleton_saved gave them, in a call like that one; grad: of each root, NULL: none. result: new references, NULL where
 * nothing came. */
ty_status ty_skeleton_run(ty_ctx *ctx, ty_skeleton *k, ty_tensor **saved, ty_tensor **grad, ty_tensor **result);
#endif
