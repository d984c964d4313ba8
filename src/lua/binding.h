/* What the binding's files share. A binding function converts its arguments, calls the core, pushes the results.
 *
 * Ownership: a tensor in Lua is a full userdata (ty_handle) with one reference to a ty_tensor. Intermediate tensors are
 * pushed as handles at once, so that an error, which longjmps, leaks nothing. Size and magic of a userdata are checked,
 * since metatables can be forged. */
#ifndef TY_BINDING_H
#define TY_BINDING_H
#include <lauxlib.h>
#include <lua.h>
#include "tycho.h"

#define TY_MAGIC 0x54794368u

typedef struct ty_scope ty_scope;

typedef struct ty_handle {
  uint32_t magic;
  bool anchored;             /* its environment table holds hooks or Function contexts, its own or its operands' */
  enum { TY_LIVE, TY_FREED, TY_SCOPED } state;
  uint32_t number;           /* in the scope: the first that was made, or handed to it, is 1 */
  uint64_t seq;              /* grows with creation */
  ty_tensor *t;
  ty_scope *scope;
  struct ty_handle *prev, *next;   /* in the scope's list */
} ty_handle;

/* Handles made while the scope was the innermost one of its coroutine. internal: of the library's own; what users' functions make while
   it is open goes to the one outside. */
struct ty_scope { ty_handle *first; ty_scope *outer; lua_State *L; uint32_t count; bool internal; };

/* The modes of a coroutine. Coroutines in the default mode share the state's. */
struct ty_state;
typedef struct {
  ty_ctx ctx;
  ty_scope *scope;
  struct ty_state *owner;
  int pinned;                /* backward passes that run under these modes */
} ty_modes;

/* Not in Lua's memory, and counted: when a Lua state closes, finalizers run in any order. */
typedef struct ty_state {
  int refs;
  lua_State *L;              /* the coroutine of the running call */
  ty_modes modes;            /* default modes */
  int special;               /* coroutines with modes of their own */
  lua_State *main;           /* the main one, once it has had such; NULL: not known */
  ty_modes *main_modes, *main_spare;   /* its, or NULL; those that it had and may have again */
  ty_account *account;
  long long gc_limit;        /* the collector is driven when the state's tensors hold more bytes */
  long long gc_unrecorded;   /* the same, while nothing has been recorded since the last collection */
  long long unrecorded;      /* gc_unrecorded less the bytes in use when it was set */
  long long garbage;         /* the least of what either limit allows above what was in use */
  bool collecting;
  bool rules;                /* gradient rules have been read */
  bool watchful;             /* backward looks for NaN; calls' places are noted */
  int collects;              /* lists that operands are collected in, see handle.c; what is older than the newest of them may be one */
  uint64_t older_handle, older_node;
  uint64_t next_handle;
  uint64_t next_key;
} ty_state;

/* Registry-like slots in the state's private table, which every closure carries as its second upvalue. */
enum { TY_R_META = 1, TY_R_METHODS, TY_R_HANDLES, TY_R_MODES, TY_R_ANCHORS, TY_R_RULES, TY_R_SHAPE_META,
       TY_R_FORMAT, TY_R_FUNCTION, TY_R_MODES_META, TY_R_KEPT, TY_R_OWNERS, TY_R_WATCHER, TY_R_OPERANDS, TY_R_SCOPE_META,
       TY_R_READ_RULES };

/* Every C closure has: upvalue 1 the state, 2 the private table, 3 the metatable of handles. */
#define TY_UPVALUES 3
static inline ty_state *ty_state_of(lua_State *L) {
  ty_state *s = lua_touserdata(L, lua_upvalueindex(1));
  s->L = L;
  return s;
}
ty_modes *ty_modes_of(lua_State *L, ty_state *s);
ty_modes *ty_own_modes(lua_State *L, ty_state *s);        /* to change them */
void ty_modes_share_again(lua_State *L, ty_state *s);          /* back to shared, if they are the defaults again */
static inline ty_ctx *ty_ctx_of(lua_State *L, ty_state *s) { return s->special ? &ty_modes_of(L, s)->ctx : &s->modes.ctx; }
void ty_closure(lua_State *L, lua_CFunction f, int extra); /* pushes f with the common upvalues and extra from the stack */
void ty_private(lua_State *L, int slot);                  /* pushes a slot of the private table */
void ty_state_release(ty_state *s);

/* ---- handles ---- */
ty_handle *ty_new_handle(lua_State *L, ty_state *s);      /* pushes one that is empty: fill h->t, or let it go */
void ty_push_shared(lua_State *L, ty_state *s, ty_tensor *t); /* takes no reference; the same handle each time */
void ty_register(lua_State *L, int index);                /* this handle stands for its tensor from now on */
ty_handle *ty_is_handle(lua_State *L, int index);         /* NULL: no tensor handle */
ty_tensor *ty_test(lua_State *L, int index);              /* NULL: no live tensor */
/* These raise; the first also where vmap maps the tensor, which has no values and no history then; any is for operands, and for shapes. */
ty_tensor *ty_check(lua_State *L, int index, const char *who, const char *what);
ty_tensor *ty_check_any(lua_State *L, int index, const char *who, const char *what);
void ty_scope_enter(ty_scope *sc, ty_handle *h);          /* scope.c */
void ty_scope_detach(ty_handle *h);
void ty_scope_end(ty_scope *sc);                          /* drops its handles' references */
void ty_push_scoped(lua_State *L);                        /* what ty_scope_call needs below the function on the stack */
void ty_scope_call(lua_State *L, ty_state *s, int n);     /* as lua_call(L, n, LUA_MULTRET), in a scope that ends with it */
/* Keeps the value on top for something in C, until *drop is called with what this returns. NULL: out of memory. */
void *ty_own(lua_State *L, ty_account *a, uint64_t key, void (**drop)(void *));
void ty_get_keyed(lua_State *L, uint64_t key);            /* pushes what the table on top has under key */
void ty_set_keyed(lua_State *L, uint64_t key);            /* pops a value into the table below it, under key */
void ty_let_go(lua_State *L, ty_state *s);                /* releases the Lua values whose owners in C have ended */
void ty_note_place(lua_State *L, const ty_tensor *result);      /* for detect_anomaly */
void ty_keep_hooks(lua_State *L, const ty_tensor *t);     /* t's handle is being collected */
#define TY_LEAST_GARBAGE ((long long)96 << 20)            /* bytes below which the collector is left alone */
#define TY_LEAST_UNRECORDED ((long long)4 << 20)          /* the same where nothing has been recorded */
void ty_pace(lua_State *L, ty_state *s);                  /* drives the collector when tensors hold much */
const ty_op *ty_defined_at(lua_State *L, int index);      /* the signature of a function made by define(), or NULL */
/* Raises, with the user's line: the nearest one that isn't the library's own; and, before what an op within says, the
   function that was called there. */
int ty_throw(lua_State *L, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *ty_path_at(lua_State *L, int index);             /* a file's name; raises where it is none */
/* Pushes "file:line: " of the nearest line that isn't the library's own, or "". Gives the name of the function made of
   ops that was called there, or NULL. */
const char *ty_push_location(lua_State *L);
/* The same; *called: what that line calls the function of the library's that has been called there, where it is more than one of C's. */
const char *ty_push_call(lua_State *L, const char **called);
int ty_raise(lua_State *L, ty_ctx *c);                    /* c->err as a Lua error */
/* What the results of a call must keep: adds the environment of the operand at index, where it has one, to the list at anchors; gives
   the result at index what was noted. No relative indices. */
void ty_note_anchor(lua_State *L, int index, int anchors);
void ty_set_anchor(lua_State *L, int index, int anchors);
/* While operands are collected (s->collects): whether h's tensor may be one; and collects the tensor at index, if it is. */
bool ty_may_be_operand(const ty_state *s, const ty_handle *h);
void ty_collect(lua_State *L, int index);

/* What creators take besides. */
typedef struct { bool requires_grad, pinned; } ty_made;

/* ---- arguments (args.c) ---- */
/* What in[] refers to belongs to handles, which finalizers may free: from ty_parse to ty_call_op nothing may allocate in Lua. So results'
 * handles come first. */
typedef struct {
  ty_operand small[16], *in;
  int nin, room;             /* room: of in[] */
  bool anchored;             /* an operand is */
  const ty_state *collects;  /* NULL: operands aren't collected */
  bool collected;            /* an operand may have to be */
  int anchors;               /* stack index of what the results must keep (ty_note_anchor), 0: nothing */
  ty_span span[TY_MAXPARAM];
  ty_attr at[TY_MAXATTR];
  ty_made made;
  int out;                   /* stack index of the tensor that gets the result (in-place), 0: none */
  int result;                /* else that of the first result's handle */
} ty_args;
/* Arguments at first .. top by op's signature. Raises with a text that names the op and the argument. */
void ty_parse(lua_State *L, const ty_op *op, int first, int top, ty_args *a);
/* The same for a function in Lua, up to the stack's top: pushes its nparam arguments in order. */
void ty_parse_to_stack(lua_State *L, const ty_op *sig, int first);
const char *ty_type_text(lua_State *L, int index);        /* "tensor", "module", "number", ... for error texts */
bool ty_is_module(lua_State *L, int index);
bool ty_called_by_user(lua_State *L);                     /* the running C function, not by the library's own Lua */
int ty_push_results(lua_State *L, ty_state *s, const ty_op *op);    /* empty handles for op's results; where the first one stands */
/* Runs op and pushes its results. */
int ty_call_op(lua_State *L, ty_state *s, ty_op *op, ty_args *a);
/* All of it, for the arguments on the stack; into: the stack index of the tensor that is changed in place, or 0. */
int ty_run_op(lua_State *L, ty_op *op, int into);
/* One op of up to two operands from C, result pushed; into: in place (nothing is pushed). */
ty_tensor *ty_simple(lua_State *L, ty_state *s, ty_op_id id, ty_operand a, ty_operand b, ty_attr *at, ty_tensor *into);
int64_t ty_list_length(lua_State *L, int index);          /* -1: the table has holes or fields that are no positions */
bool ty_is_whole(double v, int64_t *out);                    /* a whole number within 2^53 */
void ty_push_list(lua_State *L, const int64_t *v, int n, int add, bool shape);
void ty_push_attr(lua_State *L, const ty_param *p, const ty_attr *a);
void ty_push_element(lua_State *L, const ty_tensor *t, int64_t offset);
void ty_from_table(lua_State *L, ty_state *s, int index, int dtype, const char *who);  /* pushes a tensor */

/* Before the host reads a tensor's elements, or does what else a compiled function's record can't hold: what has been asked for is done.
   Lua code may run here (gradient rules, finalizers), so tensors are looked at afterwards, as after any allocation of Lua's. */
void ty_settle(lua_State *L, const char *what);
void ty_settle_call(lua_State *L, const char *name);    /* the same: what is called */

long long ty_gpu_garbage(void);            /* bytes of results nobody needs that a GPU has room for; 0 while there is none */
/* position in ty_devices; -1: no device's name. Raises where it isn't there */
int ty_device_at(lua_State *L, const char *name, const char *who);

/* Bytes on their way to a GPU: through two pinned blocks by turns, one of which is filled while the other is copied. */
typedef struct { int gpu, turn; ty_tensor *block[2]; void *event[2]; } ty_stage;
#define TY_STAGE ((size_t)16 << 20)                                       /* bytes of a block */
/* for pieces of up to most bytes; ty_stage_end comes after a failure too */
ty_status ty_stage_begin(lua_State *L, ty_ctx *ctx, int gpu, size_t most, ty_stage *s);
ty_status ty_stage_room(ty_ctx *ctx, ty_stage *s, void **block);
/* n bytes of the block to place `at` of to, which is contiguous */
ty_status ty_stage_send(ty_ctx *ctx, ty_stage *s, ty_tensor *to, size_t at, size_t n);
void ty_stage_end(ty_stage *s);
/* A timing event, recorded in a GPU's current stream (NULL: a graph is being captured, or none is to be had); the time
   from one to another, for which it waits. */
void *ty_gpu_mark(ty_ctx *ctx, int gpu);
bool ty_gpu_between(ty_ctx *ctx, void *from, void *to, double *us);
void ty_gpu_unmark(void *event);
/* *t becomes a copy in pinned memory, where it is on the CPU and there is a GPU */
ty_status ty_to_pinned(lua_State *L, ty_ctx *ctx, ty_tensor **t);
ty_status ty_empty_pinned(lua_State *L, ty_ctx *ctx, const ty_meta *m, ty_tensor **out);   /* an uninitialised tensor in pinned memory */

/* ---- things of C that Lua holds (box.c) ---- */
void **ty_new_box(lua_State *L, void (*end)(void *p));    /* pushes an empty one; what is put there the collector ends */
/* raises, where there is none of this kind, or it has ended */
void *ty_box_at(lua_State *L, int index, void (*end)(void *p), const char *what);
void ty_box_end(lua_State *L, int index, void (*end)(void *p), const char *what);       /* now; nothing if that has been done */
struct ty_blob *ty_blob_at(lua_State *L, int index);
void ty_blob_end(void *b);
const char *ty_string_at(lua_State *L, int index);        /* a string, not a number: what Lua keeps as it is; raises */
void ty_sizes_at(lua_State *L, int index, ty_meta *m);    /* a list of up to 8 sizes; raises */

/* Pushes the file of a library that is opened at run time, by its module's name, as package.cpath has it; or nil (NULL). library.c */
const char *ty_push_library(lua_State *L, const char *module);

/* ---- programs and skeletons (program.c, skeleton.c) ---- */
ty_program *ty_program_at(lua_State *L, int index);
struct ty_skeleton *ty_skeleton_at(lua_State *L, int index);
/* The list at the index, as an array with room for more, that lives as long as the call. false in it: NULL. */
ty_tensor **ty_tensors_at(lua_State *L, int index, int more, int *n);

/* ---- parts of the module: each adds functions to the table on top ---- */
void ty_open_errors(lua_State *L);
void ty_open_handles(lua_State *L);
void ty_open_modes(lua_State *L);
void ty_open_ops(lua_State *L);
void ty_open_tensor(lua_State *L);
void ty_open_create(lua_State *L);
void ty_open_autograd(lua_State *L);
void ty_need_rules(lua_State *L, ty_state *s);
ty_status ty_lua_rule(ty_ctx *ctx, ty_node *node, ty_tensor **gout, const bool *needs, ty_tensor **gin);   /* ty_host's, as the next */
ty_status ty_lua_hook(ty_ctx *ctx, uint64_t key, ty_tensor **grad, ty_tensor *leaf);
ty_status ty_lua_pack(ty_ctx *ctx, ty_tensor *t, bool leaf, ty_hooks **out);
ty_status ty_lua_unpack(ty_ctx *ctx, const ty_hooks *packed, ty_tensor **out);
void ty_open_io(lua_State *L);
void ty_open_gpu(lua_State *L);
void ty_open_data(lua_State *L);
void ty_open_process(lua_State *L);
void ty_open_group(lua_State *L);
void ty_open_scope(lua_State *L);
void ty_open_profile(lua_State *L);
double ty_now(void);                       /* seconds of a clock that only goes forward */
void ty_open_archive(lua_State *L);
void ty_open_program(lua_State *L);
void ty_open_skeleton(lua_State *L);
void ty_add(lua_State *L, const char *name, lua_CFunction f);
bool ty_is_index(lua_State *L, int at);        /* whether x[k] is for these; other strings name fields and methods */
int ty_index_get(lua_State *L);
int ty_index_set(lua_State *L);
void ty_lua_reclaim(ty_ctx *c);
void ty_lua_location(ty_ctx *c, char *text, size_t size);
extern const ty_host ty_lua_host;
#endif
