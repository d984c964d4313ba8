/* What autograd.c (gradient rules, backward) and hooks.c (what users attach to the tape) share. */
#ifndef TY_TAPE_H
#define TY_TAPE_H
#include "binding.h"

/* What crosses from the core into a protected call and back. */
typedef struct {
  ty_ctx *ctx;
  ty_state *s;
  ty_node *node;
  ty_tensor **gout, **gin;
  const bool *needs;
  uint64_t key;
  ty_tensor *leaf;           /* hooks: the leaf, after it got its gradient; packing: the tensor, if a leaf */
  ty_tensor **saved;         /* packing: the tensor; unpacking: where it goes */
  ty_hooks *packed;
} ty_tape_call;

/* Keys of a table in the registry: the functions that ty_protected runs, and an error that doesn't fit ctx->err (a table,
 * a long text), kept until the backward pass raises it. */
enum { TY_RUN_RULES = 1, TY_RUN_FUNCTION, TY_RUN_HOOKS, TY_RUN_HOLD, TY_RUN_WATCH, TY_RUN_PACK, TY_RUN_UNPACK, TY_RUN_THROWN };
/* Runs one of them with r under the pass's modes; the library's own in a scope of its own. */
ty_status ty_protected(ty_tape_call *r, int which);

/* Gives the handle at index a new environment that holds the value on top (popped) and the former environment. */
void ty_anchor(lua_State *L, int index);
/* A handle of a gradient that comes from the program: the results of the running pass, if it has create_graph, hold what it holds. */
void ty_note_contexts(lua_State *L, int index);
uint64_t ty_new_key(lua_State *L, ty_state *s, int value);   /* a key for the value at that index in the weak table TY_R_ANCHORS */
void ty_open_hooks(lua_State *L, int run);     /* adds functions to the table on top, and those for ty_protected to that at run */
#endif
