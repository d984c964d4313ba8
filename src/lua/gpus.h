/* The GPU library, once it is open, as gpu.c, gpu_memory.c and stream.c use it. */
#ifndef TY_GPUS_H
#define TY_GPUS_H
#include "binding.h"
#include "gpu.h"

extern ty_gpu ty_gpu_library;                     /* its functions; count is 0 while it isn't open */
/* The GPU of argument i: a number, a name, or nil for the current one. Opens the library; raises where there is no such GPU. */
int ty_gpu_at(lua_State *L, int i, const char *who);
bool ty_gpu_available(lua_State *L);       /* whether there is a GPU; opens the library */
const char *ty_gpu_reason(void);           /* why there is none */
/* add functions to the table on top */
void ty_open_gpu_memory(lua_State *L);
void ty_open_streams(lua_State *L);
#endif
