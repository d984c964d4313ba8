/* A skeleton: the tape of a recorded function without the tensors that it saved for backward.
 *
 * Idea: a compiled function's replay leaves no tape. If backward starts outside the function, the recorded call's tape serves for all
 * calls: its saved tensors are taken out and become results of the function, and for a backward pass those of a replay are put in their
 * places. Invariant: outside of ty_skeleton_run an emptied skeleton holds no memory but that of leaves. */
#ifndef TY_SKELETON_H
#define TY_SKELETON_H
#include "tycho.h"

typedef struct ty_skeleton ty_skeleton;

/* Makes the skeleton of nroot results' tape. *why: the reason why there can be none (a replay can't give what the tape needs), or NULL. */
ty_status ty_skeleton_new(ty_ctx *ctx, ty_tensor **root, int nroot, ty_skeleton **out, const char **why);
void ty_skeleton_free(ty_skeleton *k);
ty_tensor **ty_skeleton_leaves(const ty_skeleton *k, int *n);      /* whose gradients ty_skeleton_run gives, in this order */
/* The saved tensors, one for each storage; until ty_skeleton_empty, which drops them. */
ty_tensor **ty_skeleton_saved(const ty_skeleton *k, int *n);
void ty_skeleton_empty(ty_skeleton *k);
/* Runs a backward pass. saved: a call's tensors in the order of ty_skeleton_saved; grad: one for each root, or NULL. result: new
 * references, NULL where no gradient came. */
ty_status ty_skeleton_run(ty_ctx *ctx, ty_skeleton *k, ty_tensor **saved, ty_tensor **grad, ty_tensor **result);
#endif
