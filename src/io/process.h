/* Worker processes, started by exec. Parent and worker exchange messages, each a number and a piece of memory.
 *
 * Idea: a message is a packet of 16 bytes on a socket, with the descriptor of a memory file attached, so that the memory isn't copied on
 * its way and no packet is too large. The worker dies with its parent: when the parent's end of a pipe, to which nobody ever writes, closes
 * for whatever reason, the kernel ends the worker by a signal. Invariant: exec closes all descriptors but the three given to the worker. */
#ifndef TY_PROCESS_H
#define TY_PROCESS_H
#include <sys/types.h>
#include "archive.h"                   /* ty_blob: a message's memory */

typedef struct {
  pid_t pid;
  int socket, life;
  volatile int64_t *note;  /* shared memory: the item the worker is at, and how often it has set that */
} ty_process;

/* Starts argv (found along PATH) with env added to the environment ("NAME=value", NULL at the end). */
ty_status ty_process_start(ty_ctx *ctx, char *const *argv, char *const *env, ty_process *out);
/* Kills it, whatever it is doing. */
void ty_process_end(ty_process *p);
bool ty_process_gone(ty_process *p);

/* In the worker: its side of what ty_process_start made. */
ty_status ty_process_enter(ty_ctx *ctx, ty_process *out);

typedef struct { const void *p; size_t n; } ty_message_part;
/* Sends tag with the parts, each placed at a multiple of 64 bytes. wait false: where the socket is full, TY_ERR and *full true. */
ty_status ty_message_send(ty_ctx *ctx, const ty_process *p, int64_t tag, const ty_message_part *parts, int n, bool wait, bool *full);
typedef enum { TY_MESSAGE, TY_NOTHING, TY_CLOSED } ty_received;
/* seconds < 0: as long as it takes */
ty_received ty_message_receive(ty_ctx *ctx, const ty_process *p, double seconds, int64_t *tag, ty_blob **out);
#endif
