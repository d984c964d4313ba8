/* A step of recurrent layers over n units, for one element type (typed.h), float or double. core/cells.h has the formulas of a unit.
 *
 * x: the input's part of each gate, gate after gate; y: the previous hidden state's part; b: y's bias; c: the cell, updated; s: gets what
 * backward needs. Backward: g, dh: the new hidden state's gradients by way of the output and of the next step; dh becomes the previous
 * state's gradient; dc: the same for cells; dx, dy: the gradients of x and y. */

static void FN(rnn)(T *restrict o, const T *restrict x, const T *restrict y, const T *restrict b, int64_t n, int relu) {
  if (relu) for (int64_t i = 0; i < n; i++) { const T v = x[i] + (y[i] + b[i]); o[i] = v < 0 ? 0 : v; }
  else for (int64_t i = 0; i < n; i++) o[i] = FN(tanh)(x[i] + (y[i] + b[i]));
}

static void FN(gru)(T *restrict o, T *restrict s, const T *restrict x, const T *restrict y, const T *restrict b, const T *restrict h,
  int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const T xs[3] = {x[i], x[n + i], x[2 * n + i]};
    const T ys[3] = {y[i] + b[i], y[n + i] + b[n + i], y[2 * n + i] + b[2 * n + i]};
    T v[4];
    o[i] = FN(ty_gru)(xs, ys, h[i], v);
    s[i] = v[0]; s[n + i] = v[1]; s[2 * n + i] = v[2]; s[3 * n + i] = v[3];
  }
}

static void FN(lstm)(T *restrict o, T *restrict c, T *restrict s, const T *restrict x, const T *restrict y, const T *restrict b,
  int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const T xs[4] = {x[i], x[n + i], x[2 * n + i], x[3 * n + i]};
    const T ys[4] = {y[i] + b[i], y[n + i] + b[n + i], y[2 * n + i] + b[2 * n + i], y[3 * n + i] + b[3 * n + i]};
    T v[5];
    o[i] = FN(ty_lstm)(xs, ys, c[i], v);
    s[i] = v[0]; s[n + i] = v[1]; s[2 * n + i] = v[2]; s[3 * n + i] = v[3]; s[4 * n + i] = c[i] = v[4];
  }
}

static void FN(recurrent)(int kind, const ty_cell *a, int64_t n) {
  if (kind == TY_LSTM) FN(lstm)(a->o, a->c, a->s, a->x, a->y, a->b, n);
  else if (kind == TY_GRU) FN(gru)(a->o, a->s, a->x, a->y, a->b, a->h, n);
  else FN(rnn)(a->o, a->x, a->y, a->b, n, kind == TY_RNN_RELU);
}

static void FN(rnn_back)(T *restrict dh, T *restrict dx, const T *restrict g, const T *restrict o, int64_t n, int relu) {
  if (relu) for (int64_t i = 0; i < n; i++) dx[i] = o[i] > 0 ? dh[i] + g[i] : 0;
  else for (int64_t i = 0; i < n; i++) dx[i] = (dh[i] + g[i]) * (1 - o[i] * o[i]);
  memset(dh, 0, (size_t)n * sizeof *dh);
}

static void FN(gru_back)(T *restrict dh, T *restrict dx, T *restrict dy, const T *restrict g, const T *restrict s, const T *restrict h,
  int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const T v[4] = {s[i], s[n + i], s[2 * n + i], s[3 * n + i]};
    T d = dh[i] + g[i], dxs[3], dys[3];
    FN(ty_gru_back)(v, h[i], &d, dxs, dys);
    dx[i] = dxs[0]; dx[n + i] = dxs[1]; dx[2 * n + i] = dxs[2];
    dy[i] = dys[0]; dy[n + i] = dys[1]; dy[2 * n + i] = dys[2];
    dh[i] = d;
  }
}

static void FN(lstm_back)(T *restrict dh, T *restrict dc, T *restrict dx, const T *restrict g, const T *restrict s, const T *restrict c,
  int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const T v[5] = {s[i], s[n + i], s[2 * n + i], s[3 * n + i], s[4 * n + i]};
    T d = dh[i] + g[i], e = dc[i], ds[4];
    FN(ty_lstm_back)(v, c[i], &d, &e, ds);
    dx[i] = ds[0]; dx[n + i] = ds[1]; dx[2 * n + i] = ds[2]; dx[3 * n + i] = ds[3];
    dh[i] = d;
    dc[i] = e;
  }
}

static void FN(recurrent_backward)(int kind, const ty_cell_back *a, int64_t n) {
  if (kind == TY_LSTM) FN(lstm_back)(a->dh, a->dc, a->dx, a->g, a->s, a->c, n);
  else if (kind == TY_GRU) FN(gru_back)(a->dh, a->dx, a->dy, a->g, a->s, a->h, n);
  else FN(rnn_back)(a->dh, a->dx, a->g, a->o, n, kind == TY_RNN_RELU);
}
