/* Between the tape's Lua side (autograd.c) and what users hang onto the tape (hooks.c). */
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
  ty_tensor *leaf;           /* hooks that come after its gradient; packing: a leaf is packed */
  ty_tensor **saved;         /* packing: the tensor; unpacking: where it goes */
  ty_hooks *packed;
} ty_tape_call;

/* In a table in the registry: the functions that protected calls run, and, until its backward raises it, an error
 * that doesn't fit a context: a table, a long text. */
enum { TY_RUN_RULES = 1, TY_RUN_FUNCTION, TY_RUN_HOOKS, TY_RUN_WATCH, TY_RUN_PACK, TY_RUN_UNPACK, TY_RUN_THROWN };
/* Runs one of them with r, in a scope of its own, with the pass's modes. */
ty_status ty_protected(ty_tape_call *r, int which);

/* Gives the handle at index an environment of its own that holds the value on top (popped) and what it held before. */
void ty_anchor(lua_State *L, int index);
uint64_t ty_new_key(lua_State *L, ty_state *s, int value);   /* under which the value at that index is found as long as it lives */
void ty_open_hooks(lua_State *L, int run);     /* adds functions to the table on top, and to that at run what protected calls run */
#endif
