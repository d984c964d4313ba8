/* A pass of any odd factor: elements k and R - k together give sums j and R - j, as below, two j at a time. room: TY_FOURIER_ROOM(R). */
static void PASTE(any_, V)(int R, const T *xr, const T *xi, T *yr, T *yi, int64_t m, int64_t s, const T *w, int64_t step, void *room) {
  const int half = R / 2;
  V *const er = room, *const ei = er + half + 1, *const fr = ei + half + 1, *const fi = fr + half + 1;
  T *const c = (T *)(fi + half + 1), *const sn = c + R;
  for (int k = 0; k < R; k++) { c[k] = w[2 * k * m * step]; sn[k] = -w[2 * k * m * step + 1]; }
  for (int64_t p = 0; p < m; p++)
    for (int64_t q = 0; q < s; q += (int64_t)(sizeof(V) / sizeof(T))) {
      const V zr = *(const V *)(xr + q + s * p), zi = *(const V *)(xi + q + s * p);
      V tr = zr, ti = zi;
      for (int k = 1; k <= half; k++) {
        const int64_t a = q + s * (p + k * m), b = q + s * (p + (R - k) * m);
        const V ar = *(const V *)(xr + a), ai = *(const V *)(xi + a), br = *(const V *)(xr + b), bi = *(const V *)(xi + b);
        er[k] = ar + br; ei[k] = ai + bi;
        fr[k] = br - ar; fi[k] = ai - bi;
        tr += er[k]; ti += ei[k];
      }
      *(V *)(yr + q + s * R * p) = tr;
      *(V *)(yi + q + s * R * p) = ti;
      for (int j = 1; j <= half; j += 2) {
        V cr[2] = {zr, zr}, ci[2] = {zi, zi}, dr[2] = {0}, di[2] = {0};
        int at[2] = {0, 0};
        for (int k = 1; k <= half; k++)
          for (int i = 0; i < 2; i++) {
            at[i] += j + i;
            if (at[i] >= R) at[i] -= R;
            const T u = c[at[i]], v = sn[at[i]];
            cr[i] += u * er[k]; ci[i] += u * ei[k];
            dr[i] += v * fi[k]; di[i] += v * fr[k];
          }
        for (int i = 0; i < 2 && j + i <= half; i++)
          for (int side = 0; side < 2; side++) {
            const int64_t to = side ? R - j - i : j + i, turn = 2 * p * to * step;
            const V re = side ? cr[i] - dr[i] : cr[i] + dr[i], im = side ? ci[i] - di[i] : ci[i] + di[i];
            *(V *)(yr + q + s * (R * p + to)) = re * w[turn] - im * w[turn + 1];
            *(V *)(yi + q + s * (R * p + to)) = re * w[turn + 1] + im * w[turn];
          }
      }
    }
}

/* b = the four sums of a's elements from `at` on, `by` apart. */
TY_INLINE void PASTE(four_sums_, V)(V *br, V *bi, const V *ar, const V *ai, int at, int by) {
  const V er = ar[at] + ar[at + 2 * by], ei = ai[at] + ai[at + 2 * by], fr = ar[at] - ar[at + 2 * by], fi = ai[at] - ai[at + 2 * by];
  const V gr = ar[at + by] + ar[at + 3 * by], gi = ai[at + by] + ai[at + 3 * by];
  const V hr = ai[at + by] - ai[at + 3 * by], hi = ar[at + 3 * by] - ar[at + by];      /* times -i */
  br[0] = er + gr; bi[0] = ei + gi;
  br[1] = fr + hr; bi[1] = fi + hi;
  br[2] = er - gr; bi[2] = ei - gi;
  br[3] = fr - hr; bi[3] = fi - hi;
}

/* b = the eight sums of a's elements: those of even ones, and of odd ones times e^(-pi i k / 4). */
TY_INLINE void PASTE(eight_sums_, V)(V *br, V *bi, const V *ar, const V *ai) {
  const T c = (T)0.70710678118654752;
  V er[4], ei[4], ur[4], ui[4];
  PASTE(four_sums_, V)(er, ei, ar, ai, 0, 2);
  PASTE(four_sums_, V)(ur, ui, ar, ai, 1, 2);
  const V tr[4] = {ur[0], c * (ur[1] + ui[1]), ui[2], c * (ui[3] - ur[3])};
  const V ti[4] = {ui[0], c * (ui[1] - ur[1]), -ur[2], -c * (ur[3] + ui[3])};
  for (int k = 0; k < 4; k++) {
    br[k] = er[k] + tr[k]; bi[k] = ei[k] + ti[k];
    br[k + 4] = er[k] - tr[k]; bi[k + 4] = ei[k] - ti[k];
  }
}

/* A pass of factor R, a constant where it is inlined, over elements of type V: T or a vector of it (fourier_loops.h). */
TY_INLINE void PASTE(pass_, V)(const int R, const T *xr, const T *xi, T *yr, T *yi, int64_t m, int64_t s, const T *w, int64_t step) {
  for (int64_t p = 0; p < m; p++) {
    T wr[MOST], wi[MOST];
    for (int j = 1; j < R; j++) { wr[j] = w[2 * p * j * step]; wi[j] = w[2 * p * j * step + 1]; }
    for (int64_t q = 0; q < s; q += (int64_t)(sizeof(V) / sizeof(T))) {
      V ar[MOST], ai[MOST], br[MOST], bi[MOST];
      for (int k = 0; k < R; k++) {
        ar[k] = *(const V *)(xr + q + s * (p + k * m));
        ai[k] = *(const V *)(xi + q + s * (p + k * m));
      }
      if (R == 2) {
        br[0] = ar[0] + ar[1]; bi[0] = ai[0] + ai[1];
        br[1] = ar[0] - ar[1]; bi[1] = ai[0] - ai[1];
      } else if (R == 4) PASTE(four_sums_, V)(br, bi, ar, ai, 0, 1);
      else if (R == 8) PASTE(eight_sums_, V)(br, bi, ar, ai);
      else {                             /* odd: elements k and R - k together give sums j and R - j */
        br[0] = ar[0]; bi[0] = ai[0];
        for (int k = 1; k <= R / 2; k++) { br[0] += ar[k] + ar[R - k]; bi[0] += ai[k] + ai[R - k]; }
        for (int j = 1; j <= R / 2; j++) {
          V cr = ar[0], ci = ai[0], dr = {0}, di = {0};
          for (int k = 1; k <= R / 2; k++) {
            const T c = (T)circle[R][j * k % R][0], sn = (T)circle[R][j * k % R][1];
            cr += c * (ar[k] + ar[R - k]); ci += c * (ai[k] + ai[R - k]);
            dr += sn * (ai[k] - ai[R - k]); di += sn * (ar[R - k] - ar[k]);
          }
          br[j] = cr + dr; bi[j] = ci + di;
          br[R - j] = cr - dr; bi[R - j] = ci - di;
        }
      }
      *(V *)(yr + q + s * R * p) = br[0];
      *(V *)(yi + q + s * R * p) = bi[0];
      for (int j = 1; j < R; j++) {
        *(V *)(yr + q + s * (R * p + j)) = br[j] * wr[j] - bi[j] * wi[j];
        *(V *)(yi + q + s * (R * p + j)) = br[j] * wi[j] + bi[j] * wr[j];
      }
    }
  }
}
