/* matrix_loops.c's loops for one element type (typed.h), for the matrices of one vector. */
typedef T FN(vector) __attribute__((vector_size(TY_VECTOR), aligned(sizeof(T)), may_alias));
typedef PASTE(WHOLE_, S) FN(mask) __attribute__((vector_size(TY_VECTOR), aligned(sizeof(T)), may_alias));
#define V FN(vector)
#define AT(x, e) (*(V *)((x) + (e) * TY_MATRICES))       /* element e of these matrices */
#define LANES (TY_VECTOR / (int)sizeof(T))

INLINE V FN(select)(FN(mask) which, V a, V b) { return (V)((which & (FN(mask))a) | (~which & (FN(mask))b)); }
INLINE V FN(all)(T x) { return x - (V){0}; }
INLINE V FN(magnitude)(V x) { return FN(select)(x < 0, -x, x); }

/* Exchanges rows k and with > k, or neither where with = k, of one column: x's elements, `step` apart. */
INLINE void FN(exchange)(T *x, int64_t step, V with, int k, int n) {
  const V first = AT(x, k * step);
  V chosen = first;
  for (int r = k + 1; r < n; r++) {
    const V v = AT(x, r * step);
    const FN(mask) here = with == FN(all)((T)r);
    chosen = FN(select)(here, v, chosen);
    AT(x, r * step) = FN(select)(here, first, v);
  }
  AT(x, k * step) = chosen;
}

/* n elements from `to` on -= factor times those from `from` on */
INLINE void FN(subtract)(T *x, int64_t to, int64_t from, V factor, int n) {
  for (int c = 0; c < n; c++) AT(x, to + c) -= factor * AT(x, from + c);
}

INLINE void FN(eliminate_vector)(T *a, T *b, T *exchanged, T *failed, int n, int more) {
  V zero = {0}, bad = zero;
  for (int k = 0; k < n; k++) {
    V pivot, most = FN(magnitude)(AT(a, k * n + k)), with = FN(all)((T)k);
    for (int r = k + 1; r < n; r++) {
      const V size = FN(magnitude)(AT(a, r * n + k));
      const FN(mask) larger = size > most;
      most = FN(select)(larger, size, most);
      with = FN(select)(larger, FN(all)((T)r), with);
    }
    AT(exchanged, k) = with;
    bad = FN(select)((most == zero) & (bad == zero), FN(all)((T)(k + 1)), bad);
    for (int c = 0; c < n; c++) FN(exchange)(a + c * TY_MATRICES, n, with, k, n);
    for (int c = 0; c < more; c++) FN(exchange)(b + c * TY_MATRICES, more, with, k, n);
    pivot = AT(a, k * n + k);
    for (int r = k + 1; r < n; r++) {
      const V v = AT(a, r * n + k), factor = FN(select)(pivot == zero, v, v / pivot);
      AT(a, r * n + k) = factor;
      FN(subtract)(a, r * n + k + 1, k * n + k + 1, factor, n - k - 1);
      FN(subtract)(b, r * more, k * more, factor, more);
    }
  }
  AT(failed, 0) = bad;
}

INLINE void FN(substitute_vector)(const T *a, T *b, int n, int more) {
  for (int k = n - 1; k >= 0; k--) {
    const V pivot = AT(a, k * n + k);
    for (int c = 0; c < more; c++) AT(b, k * more + c) /= pivot;
    for (int r = 0; r < k; r++) FN(subtract)(b, r * more, k * more, AT(a, r * n + k), more);
  }
}

INLINE void FN(cholesky_vector)(T *a, T *failed, int n) {
  V zero = {0}, bad = zero;
  for (int c = 0; c < n; c++) {
    V v = AT(a, c * n + c);
    for (int k = 0; k < c; k++) v -= AT(a, c * n + k) * AT(a, c * n + k);
    bad = FN(select)(~(v > zero) & (bad == zero), FN(all)((T)(c + 1)), bad);
    for (int l = 0; l < LANES; l++) v[l] = FN(root)(v[l]);
    AT(a, c * n + c) = v;
    for (int r = c + 1; r < n; r++) {
      V w = AT(a, r * n + c);
      for (int k = 0; k < c; k++) w -= AT(a, r * n + k) * AT(a, c * n + k);
      AT(a, r * n + c) = w / v;
      AT(a, c * n + r) = zero;
    }
  }
  AT(failed, 0) = bad;
}

static void FN(eliminate)(void *a, void *b, void *exchanged, void *failed, int n, int more) {
  for (int i = 0; i < TY_MATRICES; i += LANES) FN(eliminate_vector)((T *)a + i, (T *)b + i, (T *)exchanged + i, (T *)failed + i, n, more);
}
static void FN(substitute)(const void *a, void *b, int n, int more) {
  for (int i = 0; i < TY_MATRICES; i += LANES) FN(substitute_vector)((const T *)a + i, (T *)b + i, n, more);
}
static void FN(cholesky)(void *a, void *failed, int n) {
  for (int i = 0; i < TY_MATRICES; i += LANES) FN(cholesky_vector)((T *)a + i, (T *)failed + i, n);
}

#undef V
#undef AT
#undef LANES
