/* Sites: where the program called an op whose kernel may find a bad index, which is reported when the call is long over.
 *
 * Idea: a kernel gets its site as a number; here stands what the number means: the function that was called, as "embedding", and the
 * program's line. The same function called on the same line has one number. Invariant: what a number means never changes. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "cuda.h"

#define SITES 4096               /* a program has a few; a REPL may make more and more */
#define NEAR 16                  /* places that a site may take */

typedef struct { char name[48], line[112]; } site;
static site *sites[SITES];       /* a hash table */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash_of(uint64_t h, const char *s) {
  for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 32;
}

/* s's number, or -1 where there is no room for it. */
static int number_of(const site *s) {
  const uint64_t h = hash_of(hash_of(0, s->name), s->line);
  int found = -1;
  pthread_mutex_lock(&lock);
  for (uint64_t i = 0; i < NEAR && found < 0; i++) {
    site **at = &sites[(h + i) % SITES];
    if (!*at && (*at = ty_malloc(sizeof *s))) **at = *s;
    if (*at && !strcmp((*at)->name, s->name) && !strcmp((*at)->line, s->line)) found = (int)(at - sites);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static const char *op_names[TY_NOP];       /* of ops that were called when there was no room; an op's site is then -1 - its number */

int ty_cuda_site(const ty_call *c) {
  site s = {0};
  const char *name = c->ctx->host ? c->ctx->host->where(c->ctx, s.line, sizeof s.line) : NULL;
  ty_cuda_use(ty_cuda_gpu_of(c));                        /* a finalizer that where ran may have selected another */
  const size_t n = strlen(s.line);
  snprintf(s.name, sizeof s.name, "%s", name ? name : c->op->shown);
  if (n > 2) s.line[n - 2] = 0;                          /* "train.lua:12: " */
  const int number = number_of(&s);
  if (number >= 0) return number;
  op_names[c->op->id] = c->op->shown;
  return -1 - c->op->id;
}

void ty_cuda_site_text(int number, int gpu, bool earlier, char *text, size_t size) {
  pthread_mutex_lock(&lock);
  const site *s = number >= 0 && number < SITES ? sites[number] : NULL;
  pthread_mutex_unlock(&lock);
  const char *op = number < 0 && number >= -TY_NOP ? op_names[-1 - number] : NULL;
  const char *name = s ? s->name : op ? op : "an op", *line = s ? s->line : "";
  if (!earlier) snprintf(text, size, "%s", name);
  else snprintf(text, size, "%s " TY_EARLIER "cuda:%d%s%s)", name, gpu, *line ? ", " : "", line);
}
