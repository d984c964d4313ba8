/* Growing arrays, and hash maps from keys to indices in such an array; programs and backward passes use them.
 *
 * Idea: a map holds only indices (open addressing, at most half full). The keys stand in the array's entries, each of which has size
 * bytes and begins with its uint64_t key. Invariant: a map knows entries 0 .. n - 1, which were added in this order. */
#ifndef TY_TABLE_H
#define TY_TABLE_H
#include <string.h>
#include "tycho.h"

/* Makes room for n elements of size bytes in the array *v, which has room for *room. False: out of memory, nothing has changed. */
static inline bool ty_grow(void *v, int n, int *room, size_t size) {
  void **at = v;
  if (n <= *room) return true;
  const int more = TY_MAX(n, 2 * *room + 64);
  void *q = ty_malloc((size_t)more * size);
  if (!q) return false;
  if (*room) memcpy(q, *at, (size_t)*room * size);
  ty_free(*at);
  *at = q;
  *room = more;
  return true;
}

typedef struct { int *slot, room; } ty_map;

static inline unsigned ty_map_hash(uint64_t key) { return (unsigned)((key >> 4 ^ key << 60) * 0x9E3779B97F4A7C15ull >> 32); }

static inline int *ty_map_slot(const ty_map *m, uint64_t key, const void *entries, size_t size) {
  for (unsigned h = ty_map_hash(key);; h++) {
    int *s = &m->slot[h & (unsigned)(m->room - 1)];
    if (!*s || *(const uint64_t *)((const char *)entries + (size_t)(*s - 1) * size) == key) return s;
  }
}

/* The index of the entry with this key, or -1. */
static inline int ty_map_find(const ty_map *m, uint64_t key, const void *entries, size_t size) {
  return m->room ? *ty_map_slot(m, key, entries, size) - 1 : -1;
}

/* Adds the last entry, n - 1, to the map. False: out of memory. */
static inline bool ty_map_add(ty_map *m, const void *entries, int n, size_t size) {
  int from = n - 1;
  if (n * 2 > m->room) {
    const int room = m->room ? m->room * 2 : 256;
    int *slot = ty_malloc(sizeof(int) * (size_t)room);
    if (!slot) return false;
    memset(slot, 0, sizeof(int) * (size_t)room);
    ty_free(m->slot);
    *m = (ty_map){slot, room};
    from = 0;
  }
  for (int i = from; i < n; i++) *ty_map_slot(m, *(const uint64_t *)((const char *)entries + (size_t)i * size), entries, size) = i + 1;
  return true;
}
#endif
