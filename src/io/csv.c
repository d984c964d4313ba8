/* Tables of numbers as text: rows are lines, fields stand between separators and may be quoted; an empty field is NaN.
 * The first line may hold names. Numbers are read in the "C" locale, whatever the process's is. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "archive.h"
#include "data.h"

typedef struct { double *v; int64_t n, room; } numbers;

static bool push(numbers *x, double v) {
  if (x->n == x->room) {
    int64_t room = x->room ? 2 * x->room : 256;
    double *more = realloc(x->v, sizeof *more * (size_t)room);
    if (!more) return false;
    x->v = more;
    x->room = room;
  }
  x->v[x->n++] = v;
  return true;
}

/* Copies the field that begins at *at to out (NUL-terminated, at most most - 1 bytes) and moves *at to its end. False:
   the field is longer, or has a zero byte. */
static bool field(const char **at, const char *end, char sep, char *out, size_t most) {
  const char *p = *at;
  size_t n = 0;
  bool quoted = p < end && *p == '"', whole = true;
  if (quoted) p++;
  while (p < end) {
    if (quoted && *p == '"') {
      if (p + 1 < end && p[1] == '"') p++;               /* "" stands for a quote */
      else { quoted = false; p++; continue; }
    } else if (!quoted && (*p == sep || *p == '\n' || *p == '\r')) break;
    whole = whole && *p && n + 1 < most;
    if (whole) out[n++] = *p;
    p++;
  }
  out[n] = 0;
  *at = p;
  return whole;
}

typedef struct { char *p; size_t n, room; } text;

static bool add_line(text *t, const char *word) {
  const size_t len = strlen(word);
  if (t->n + len + 2 > t->room) {
    const size_t room = 2 * t->room + len + 64;
    char *more = realloc(t->p, room);
    if (!more) return false;
    t->p = more;
    t->room = room;
  }
  for (size_t i = 0; i < len; i++) t->p[t->n++] = word[i] == '\n' ? ' ' : word[i];
  t->p[t->n++] = '\n';
  t->p[t->n] = 0;
  return true;
}

static bool number(char *s, locale_t c, double *v) {
  while (*s == ' ' || *s == '\t') s++;
  size_t n = strlen(s);
  while (n && (s[n - 1] == ' ' || s[n - 1] == '\t')) s[--n] = 0;
  if (!n) return *v = NAN, true;
  char *end;
  *v = strtod_l(s, &end, c);
  return end == s + n;
}

/* Parses the file. Errors count lines and fields from 1. */
static ty_status parse(ty_ctx *ctx, const char *path, const char *all, size_t size, char sep, bool header, locale_t c,
  numbers *x, int64_t *columns, text *names) {
  const char *at = all, *end = all + size;
  char word[256];
  int64_t line = 0, width = -1;
  if (size >= 3 && !memcmp(at, "\xEF\xBB\xBF", 3)) at += 3;
  while (at < end) {
    const char *const row = at;
    int64_t k = 0;
    line++;
    if (*at == '\n' || *at == '\r') { at += *at == '\r' && at + 1 < end && at[1] == '\n' ? 2 : 1; continue; }
    for (;;) {
      double v = 0;
      const bool whole = field(&at, end, sep, word, sizeof word);
      k++;
      if (width < 0 && header) {
        if (!whole)
          return ty_error(ctx, "%s: line %lld, field %lld: a name has at most %d bytes, got '%.60s...'", path, (long long)line,
            (long long)k, (int)sizeof word - 1, word);
        if (names && !add_line(names, word)) return ty_no_memory(ctx, path);
      } else {
        if (!whole || !number(word, c, &v))
          return ty_error(ctx, "%s: line %lld, field %lld: '%.60s' is not a number", path, (long long)line, (long long)k, word);
        if (!push(x, v)) return ty_no_memory(ctx, path);
      }
      if (at >= end || *at != sep) break;
      at++;
    }
    const char *const stop = at;
    if (at < end && *at == '\r') at++;
    if (at < end && *at == '\n') at++;
    if (width >= 0 && k != width)
      return ty_error(ctx, "%s: line %lld has %lld fields, but the lines before it have %lld", path, (long long)line, (long long)k,
        (long long)width);
    width = k;
    for (const char *p = row; p < stop; p++) line += *p == '\n';          /* newlines within quotes */
  }
  if (width < 0) return ty_error(ctx, "%s: the file has no lines", path);
  *columns = width;
  return TY_OK;
}

ty_status ty_csv_read(ty_ctx *ctx, const char *path, char sep, bool header, ty_tensor **out, char **names) {
  ty_blob *b;
  numbers x = {0};
  int64_t columns = 0;
  text head = {0};
  if (names) *names = NULL;
  TY_TRY(ty_blob_read(ctx, path, &b));
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  ty_status st = c ? parse(ctx, path, b->p, b->n, sep, header, c, &x, &columns, names ? &head : NULL)
    : ty_error(ctx, "%s: out of memory", path);
  if (c) freelocale(c);
  ty_blob_release(b);
  if (st == TY_OK) {
    ty_meta m = {.dtype = TY_F64, .ndim = 2, .shape = {x.n / columns, columns}};
    st = ty_empty(ctx, &ty_cpu, &m, out);
    if (st == TY_OK && x.n) memcpy(ty_data(*out), x.v, sizeof *x.v * (size_t)x.n);
  }
  free(x.v);
  if (st == TY_OK && names) *names = head.p;
  else free(head.p);
  return st;
}
