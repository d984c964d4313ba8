/* One unit of a recurrent layer at one step, forward and backward: the formulas that CPU loops and CUDA kernels share.
 *
 * x: the input's part of each gate. y: the previous hidden state's part, with its bias. s: what backward needs (LSTM: i f g o and
 * the cell; GRU: r z n and y's part of n). dh: in, the gradient of the new hidden state; out, of the previous one, without what
 * goes through y. dc: the same for cells. */
#ifndef TY_CELLS_H
#define TY_CELLS_H
#include "math.h"

#define TY_CELLS(T, S) \
  TY_INLINE T ty_gate_##S(T x) { return 1 / (1 + exp_##S(-x)); } \
  TY_INLINE T ty_lstm_##S(const T *x, const T *y, T c, T *s) { \
    s[0] = ty_gate_##S(x[0] + y[0]); \
    s[1] = ty_gate_##S(x[1] + y[1]); \
    s[2] = tanh_##S(x[2] + y[2]); \
    s[3] = ty_gate_##S(x[3] + y[3]); \
    s[4] = s[1] * c + s[0] * s[2]; \
    return s[3] * tanh_##S(s[4]); } \
  TY_INLINE void ty_lstm_back_##S(const T *s, T c, T *dh, T *dc, T *d) { \
    const T t = tanh_##S(s[4]), g = *dc + *dh * s[3] * (1 - t * t); \
    d[0] = g * s[2] * s[0] * (1 - s[0]); \
    d[1] = g * c * s[1] * (1 - s[1]); \
    d[2] = g * s[0] * (1 - s[2] * s[2]); \
    d[3] = *dh * t * s[3] * (1 - s[3]); \
    *dc = g * s[1]; \
    *dh = 0; } \
  TY_INLINE T ty_gru_##S(const T *x, const T *y, T h, T *s) { \
    s[0] = ty_gate_##S(x[0] + y[0]); \
    s[1] = ty_gate_##S(x[1] + y[1]); \
    s[2] = tanh_##S(x[2] + s[0] * y[2]); \
    s[3] = y[2]; \
    return s[2] + s[1] * (h - s[2]); } \
  TY_INLINE void ty_gru_back_##S(const T *s, T h, T *dh, T *dx, T *dy) { \
    dx[2] = *dh * (1 - s[1]) * (1 - s[2] * s[2]); \
    dx[1] = dy[1] = *dh * (h - s[2]) * s[1] * (1 - s[1]); \
    dx[0] = dy[0] = dx[2] * s[3] * s[0] * (1 - s[0]); \
    dy[2] = dx[2] * s[0]; \
    *dh *= s[1]; }
TY_CELLS(float, f32)
TY_CELLS(double, f64)
#endif
