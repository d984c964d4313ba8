/* What the binding's files share. A binding function converts its arguments, calls the core and pushes the results.
 *
 * Ownership: a tensor in Lua is a full userdata (ty_handle) that holds one reference to a ty_tensor. Intermediate tensors
 * are pushed as handles at once, so that an error, which longjmps, leaks nothing. A userdata's size and magic are checked,
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
  uint32_t number;           /* order of arrival in the scope, from 1 */
  uint64_t seq;              /* grows with creation */
  ty_tensor *t;
  ty_scope *scope;
  struct ty_handle *prev, *next;   /* in the scope's list */
} ty_handle;

/* Lists the handles that were made while the scope was the innermost one of its coroutine. internal: the library's own scope; what users'
   functions make while it is open goes to the nearest scope outside that isn't internal. */
/* function: it lasts as long as one function of the library's runs. */
struct ty_scope { ty_handle *first; ty_scope *outer; lua_State *L; uint32_t count; bool internal, function; };

/* The modes of a coroutine. Coroutines whose modes are the defaults share ty_state.modes. */
struct ty_state;
typedef struct {
  ty_ctx ctx;
  ty_scope *scope;
  struct ty_state *owner;    /* NULL: nobody uses them now */
  struct ty_state *spare_of; /* the state that keeps them for the main coroutine, or NULL */
  bool watchful;             /* detect_anomaly: backward looks for NaN, and calls note the user's line */
  int pinned;                /* calls in progress that use these modes (backward passes): until 0 they are kept */
} ty_modes;

/* What the module keeps for a Lua state. refs: its box (state.c) and coroutines' modes; without any it is closed, since finalizers run in
   any order when the Lua state closes. */
typedef struct ty_state {
  int refs;
  bool closed;               /* nothing can be called any more: the account is gone */
  lua_State *L;              /* the coroutine of the running call */
  ty_modes modes;            /* default modes */
  int special;               /* how many coroutines have modes of their own, and draws */
  int draws;                 /* how many generators are drawn from in place of the process's */
  lua_State *main;           /* the main coroutine, once it has had modes of its own; NULL: not known */
  ty_modes *main_modes, *main_spare;   /* the main coroutine's own modes, or NULL; its former ones, kept for reuse */
  ty_account *account;
  long long gc_limit;        /* when the state's tensors hold more bytes than this, the collector is run */
  long long gc_unrecorded;   /* the limit while the tape has recorded nothing since the last collection */
  long long unrecorded;      /* bytes that gc_unrecorded allows above those in use when it was set */
  long long garbage;         /* the least that gc_limit allows above the bytes in use when it was set */
  bool collecting;           /* the collector runs */
  bool rules;                /* gradient rules have been read */
  int operand_lists;         /* how many are open, see handle.c */
  uint64_t older_handle, older_node;   /* only leaves and nodes below these can be operands of an open list */
  uint64_t next_handle;
  uint64_t next_key;
} ty_state;

/* Registry-like slots in the state's private table, which every closure carries as its second upvalue. */
enum { TY_R_METHODS = 1, TY_R_HANDLES, TY_R_MODES, TY_R_ANCHORS, TY_R_RULES, TY_R_SHAPE_META,
       TY_R_FORMAT, TY_R_FUNCTION, TY_R_MODES_META, TY_R_SCOPES, TY_R_OWNERS, TY_R_WATCHER, TY_R_OPERANDS, TY_R_SCOPE_META,
       TY_R_READ_RULES, TY_R_PASS, TY_R_DRAWS, TY_R_EXTENTS };

/* Every C closure has: upvalue 1 the state, 2 the private table, 3 the metatable of handles. */
#define TY_UPVALUES 3
int ty_state_closed(lua_State *L);           /* raises */
static inline ty_state *ty_state_of(lua_State *L) {
  ty_state *s = lua_touserdata(L, lua_upvalueindex(1));
  if (s->closed) ty_state_closed(L);
  s->L = L;
  return s;
}
ty_modes *ty_modes_of(lua_State *L, ty_state *s);
ty_modes *ty_own_modes(lua_State *L, ty_state *s);        /* the coroutine's own, to be changed; made if it has none */
void ty_modes_share_again(lua_State *L, ty_state *s);          /* drops its own modes if they equal the defaults again */
/* The same after a call in its context ctx; gives a context that lasts, with ctx's error text. */
ty_ctx *ty_modes_end(lua_State *L, ty_state *s, const ty_ctx *ctx);
static inline ty_ctx *ty_ctx_of(lua_State *L, ty_state *s) { return s->special ? &ty_modes_of(L, s)->ctx : &s->modes.ctx; }
static inline ty_ctx *ty_context(lua_State *L) { return ty_ctx_of(L, ty_state_of(L)); }
void ty_closure(lua_State *L, lua_CFunction f, int extra); /* pushes f with the common upvalues and extra from the stack */
void ty_private(lua_State *L, int slot);                  /* pushes a slot of the private table */
void ty_state_release(ty_state *s);

/* ---- handles ---- */
ty_handle *ty_new_handle(lua_State *L, ty_state *s);      /* pushes an empty handle; set h->t */
void ty_push_shared(lua_State *L, ty_state *s, ty_tensor *t); /* takes no reference; pushes the same handle of t each time */
void ty_register(lua_State *L, int index);                /* makes this handle the one that ty_push_shared pushes */
ty_handle *ty_is_handle(lua_State *L, int index);         /* NULL: no tensor handle */
ty_tensor *ty_test(lua_State *L, int index);              /* NULL: no live tensor */
/* Both raise unless a live tensor is at index. ty_check raises also for a tensor that vmap maps, which has no values and no history;
   ty_check_any, for operands and shapes, accepts it. */
ty_tensor *ty_check(lua_State *L, int index, const char *who, const char *what);
ty_tensor *ty_check_any(lua_State *L, int index, const char *who, const char *what);
void ty_scope_enter(ty_scope *sc, ty_handle *h);          /* scope.c */
void ty_scope_detach(ty_handle *h);
void ty_scope_end(ty_scope *sc);                          /* drops its handles' references */
void ty_push_scoped(lua_State *L);                        /* pushes what ty_scope_call needs below the function */
void ty_scope_call(lua_State *L, ty_state *s, int n);     /* as lua_call(L, n, LUA_MULTRET), in a scope of its own */
/* Keeps the value on top alive for an owner in C, until *drop is called with the returned pointer. NULL: out of memory. */
void *ty_own(lua_State *L, ty_account *a, uint64_t key, void (**drop)(void *));
void ty_get_keyed(lua_State *L, uint64_t key);            /* pushes what the table on top has under key */
void ty_set_keyed(lua_State *L, uint64_t key);            /* pops a value into the table below it, under key */
void ty_let_go(lua_State *L, ty_state *s);                /* releases the Lua values whose owners in C have ended */
void ty_note_place(lua_State *L, const ty_tensor *result);      /* for detect_anomaly */
void ty_keep_hooks(lua_State *L, const ty_tensor *t);     /* t's handle is being collected */
#define TY_LEAST_GARBAGE ((long long)96 << 20)            /* bytes below which the collector is left alone */
#define TY_LEAST_UNRECORDED ((long long)8 << 20)          /* the same where nothing has been recorded */
void ty_pace(lua_State *L, ty_state *s);                  /* drives the collector when tensors hold much */
const ty_op *ty_defined_at(lua_State *L, int index);      /* the signature of a function made by define(), or NULL */
/* Raises the message with the user's line (the nearest one that isn't the library's) in front. Where that line called a
   function made of ops, its name replaces that of the op within. */
int ty_throw(lua_State *L, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *ty_path_at(lua_State *L, int index);             /* a file name; raises for anything else */
/* Pushes "file:line: " of the nearest line that isn't the library's, or "". Returns the name of the function made by define()
   that was called there, or NULL. */
const char *ty_push_location(lua_State *L);
/* The same. *called becomes the name by which that line calls the library; it is left alone where that is a plain C function. */
const char *ty_push_call(lua_State *L, const char **called);
int ty_raise(lua_State *L, ty_ctx *c);                    /* c->err as a Lua error */
static inline int ty_answer(lua_State *L, ty_ctx *ctx, ty_status s, int n) { return s == TY_OK ? n : ty_raise(L, ctx); }
/* A call's results keep what its operands' environments hold. ty_note_anchor adds the environment of the operand at index, if any, to the
   list at anchors; ty_set_anchor gives that list to the result at index. Indices must be absolute. */
void ty_note_anchor(lua_State *L, int index, int anchors);
void ty_set_anchor(lua_State *L, int index, int anchors);
/* While lists are open: whether h's tensor may be an operand. ty_list_operand puts the tensor at index into the coroutine's list if so. */
bool ty_may_be_operand(const ty_state *s, const ty_handle *h);
void ty_list_operand(lua_State *L, int index);

/* Options of creators beside their op's parameters. */
typedef struct { bool requires_grad, pinned; } ty_made;

/* ---- arguments (args.c) ---- */
/* The tensors in in[] belong to handles, which finalizers may free: between ty_parse and ty_call_op nothing may allocate in Lua. So the
 * results' handles are made before. */
typedef struct {
  ty_operand small[16], *in;
  int nin, room;             /* operands in in[]; how many have room there */
  bool anchored;             /* some operand's handle is anchored */
  const ty_state *lists;     /* NULL: no operand list is open (ty_list_operand) */
  bool listed;               /* some operand may have to be listed */
  int anchors;               /* stack index of the list of ty_note_anchor; 0: the results keep nothing */
  ty_span span[TY_MAXPARAM];
  ty_attr at[TY_MAXATTR];
  ty_made made;
  int out;                   /* stack index of the tensor that is changed in place; 0: none */
  int result;                /* where out is 0: stack index of the first result's handle */
} ty_args;
/* Converts the arguments at first .. top by op's signature. Errors name the op and the argument. */
void ty_parse(lua_State *L, const ty_op *op, int first, int top, ty_args *a);
/* For a function written in Lua: checks the arguments from first to the stack's top and pushes sig->nparam in order. */
void ty_parse_to_stack(lua_State *L, const ty_op *sig, int first);
const char *ty_type_text(lua_State *L, int index);        /* "tensor", "module", "number", ... for error texts */
bool ty_is_module(lua_State *L, int index);
bool ty_called_by_user(lua_State *L);                     /* whether the running C function's caller isn't the library's Lua */
int64_t ty_list_length(lua_State *L, int index);          /* -1: the table has holes or fields that are no positions */
bool ty_is_whole(double v, int64_t *out);                    /* a whole number within 2^53 */
void ty_push_list(lua_State *L, const int64_t *v, int n, int add, bool shape);
ty_operand ty_number_at(lua_State *L, int index);            /* of a Lua number or boolean */
void ty_push_attr(lua_State *L, const ty_param *p, const ty_attr *a);
void ty_push_element(lua_State *L, const ty_tensor *t, int64_t offset);
void ty_from_table(lua_State *L, ty_state *s, int index, int dtype, const char *who);  /* pushes a tensor */

/* ---- calls (call.c) ---- */
int ty_push_results(lua_State *L, ty_state *s, const ty_op *op);    /* empty handles for op's results; returns the first's index */
/* Runs op and pushes its results. */
int ty_call_op(lua_State *L, ty_state *s, ty_op *op, ty_args *a);
/* ty_push_results, ty_parse and ty_call_op for the arguments on the stack; into: the stack index of the tensor that is changed in place, or
 * 0. */
int ty_run_op(lua_State *L, ty_op *op, int into);
/* Runs an op of up to two operands, in place on `into`, or for the empty handle on top of the stack: that was made before the operands were
 * looked up, since making it may run finalizers. Allocates nothing in Lua. */
ty_tensor *ty_simple(lua_State *L, ty_state *s, ty_op_id id, ty_operand a, ty_operand b, ty_attr *at, ty_tensor *into);

/* Computes what is still due, before the host reads elements or does anything else that a compiled function's record can't hold; what: the
   reason. Lua code may run within (gradient rules, finalizers): get tensors afterwards, as after any allocation in Lua. */
void ty_settle(lua_State *L, const char *what);
void ty_settle_call(lua_State *L, const char *name);    /* the same; the reason is a call of this method */
/* The same, for the host that reads the tensor at index; not where that needs no pending step (ty_program_may_read). */
void ty_settle_read(lua_State *L, int index, const char *what, const char *call);

long long ty_gpu_garbage(void);            /* bytes of garbage that a GPU has room for; 0 while no GPU is open */
/* Position in ty_devices; -1: not a device's name. Raises where there is no such device. */
int ty_device_at(lua_State *L, const char *name, const char *who);

/* Copies bytes to a GPU through two pinned blocks by turns: one is filled while the other is being copied. */
typedef struct { int gpu, turn; ty_tensor *block[2]; void *event[2]; } ty_stage;
#define TY_STAGE ((size_t)16 << 20)                                       /* bytes of a block */
/* most: bytes of the largest piece; ty_stage_end follows a failure too */
ty_status ty_stage_begin(lua_State *L, ty_ctx *ctx, int gpu, size_t most, ty_stage *s);
ty_status ty_stage_room(ty_ctx *ctx, ty_stage *s, void **block);
/* Copies n bytes of the block to byte `at` of the contiguous tensor `to`. */
ty_status ty_stage_send(ty_ctx *ctx, ty_stage *s, ty_tensor *to, size_t at, size_t n);
void ty_stage_end(ty_stage *s);
/* ty_gpu_mark records a timing event in the GPU's current stream; NULL: a graph is being captured, or there is no event.
   ty_gpu_between waits for `to` and gives the time since `from`. */
void *ty_gpu_mark(ty_ctx *ctx, int gpu);
bool ty_gpu_between(ty_ctx *ctx, void *from, void *to, double *us);
void ty_gpu_unmark(void *event);
/* Replaces *t by a copy in pinned memory, if *t is on the CPU and there is a GPU. */
ty_status ty_to_pinned(lua_State *L, ty_ctx *ctx, ty_tensor **t);
ty_status ty_empty_pinned(lua_State *L, ty_ctx *ctx, const ty_meta *m, ty_tensor **out);   /* an uninitialised tensor in pinned memory */

/* ---- values that hold while a function runs (extents.c); slot: of the private table ---- */
/* Pushes this coroutine's newest value; else the newest of a coroutine that isn't suspended, so may have resumed this one; or nil. */
void ty_extent_push(lua_State *L, int slot);
int ty_extent_begin(lua_State *L, int slot);              /* pops the value; gives how many there are */
/* Ends this coroutine's newest value that is the one at index (0: none), and those of dropped coroutines; gives how many are left. */
int ty_extent_end(lua_State *L, int slot, int index);

/* ---- things of C that Lua holds (box.c) ---- */
void **ty_new_box(lua_State *L, void (*end)(void *p));    /* pushes an empty box; the collector calls end with its pointer */
/* raises where there is no box of this kind (with this end), or it has been ended */
void *ty_box_at(lua_State *L, int index, void (*end)(void *p), const char *what);
void *ty_box_take(lua_State *L, int index, void (*end)(void *p), const char *what);     /* the box is empty then */
void ty_box_end(lua_State *L, int index, void (*end)(void *p), const char *what);       /* ends it now, if it hasn't ended */
struct ty_blob *ty_blob_at(lua_State *L, int index);
void ty_blob_end(void *b);
const char *ty_string_at(lua_State *L, int index);        /* a string; raises for a number too, whose text no table would keep */
void ty_sizes_at(lua_State *L, int index, ty_meta *m);    /* a list of up to 8 sizes; raises */

/* Pushes the path that package.cpath gives for a module, a library that is opened at run time; or nil, and returns NULL. library.c */
const char *ty_push_library(lua_State *L, const char *module);

/* ---- programs and skeletons (program.c, skeleton.c) ---- */
ty_program *ty_program_at(lua_State *L, int index);
struct ty_skeleton *ty_skeleton_at(lua_State *L, int index);
/* The list of tensors at index i as an array (false becomes NULL) with room for `more` others. It lives as long as the C call. */
ty_tensor **ty_tensors_at(lua_State *L, int index, int more, int *n);

/* ---- parts of the module: each adds functions to the table on top ---- */
void ty_open_errors(lua_State *L);
void ty_open_handles(lua_State *L);
void ty_open_modes(lua_State *L);
void ty_open_extents(lua_State *L);
void ty_open_ops(lua_State *L);
void ty_open_tensor(lua_State *L);
void ty_open_create(lua_State *L);
void ty_open_autograd(lua_State *L);
void ty_need_rules(lua_State *L, ty_state *s);
ty_status ty_lua_rule(ty_ctx *ctx, ty_node *node, ty_tensor **gout, const bool *needs, ty_tensor **gin);   /* these five: ty_host's */
ty_status ty_lua_hook(ty_ctx *ctx, uint64_t key, ty_tensor **grad, ty_tensor *leaf);
ty_status ty_lua_history(ty_ctx *ctx, ty_tensor *grad);
ty_status ty_lua_pack(ty_ctx *ctx, ty_tensor *t, bool leaf, ty_hooks **out);
ty_status ty_lua_unpack(ty_ctx *ctx, const ty_hooks *packed, ty_tensor **out);
void ty_open_io(lua_State *L);
void ty_open_gpu(lua_State *L);
void ty_open_data(lua_State *L);
void ty_open_process(lua_State *L);
void ty_open_group(lua_State *L);
void ty_open_scope(lua_State *L);
void ty_open_profile(lua_State *L);
void ty_open_recall(lua_State *L);
void ty_open_archive(lua_State *L);
void ty_open_program(lua_State *L);
void ty_open_skeleton(lua_State *L);
void ty_add(lua_State *L, const char *name, lua_CFunction f);
void ty_set_number(lua_State *L, const char *name, double v);
bool ty_is_index(lua_State *L, int at);        /* whether k in x[k] is an index; other strings name fields and methods */
int ty_index_get(lua_State *L);
int ty_index_set(lua_State *L);
void ty_lua_reclaim(ty_ctx *c);
const char *ty_lua_location(ty_ctx *c, char *text, size_t size);
extern const ty_host ty_lua_host;
#endif
