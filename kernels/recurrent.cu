/* A recurrent layer's step: a thread for each unit of each row.
 *
 * Idea: the formulas are core/cells.h's, which the CPU uses too. Invariant: cells, and what of a gradient goes past the products, stay in
 * the type computed in, so that 16 bits round only the products' factors. */
#include "cells.h"
#include "device.cuh"

#define THREADS 256

template <class T> struct cell;
#define CELL(T, S) template <> struct cell<T> { \
  static __device__ __forceinline__ T tanh(T x) { return tanh_##S(x); } \
  static __device__ __forceinline__ T lstm(const T *x, const T *y, T c, T *s) { return ty_lstm_##S(x, y, c, s); } \
  static __device__ __forceinline__ void lstm_back(const T *s, T c, T *dh, T *dc, T *d) { ty_lstm_back_##S(s, c, dh, dc, d); } \
  static __device__ __forceinline__ T gru(const T *x, const T *y, T h, T *s) { return ty_gru_##S(x, y, h, s); } \
  static __device__ __forceinline__ void gru_back(const T *s, T h, T *dh, T *dx, T *dy) { ty_gru_back_##S(s, h, dh, dx, dy); } };
CELL(float, f32)
CELL(double, f64)

/* v = `count` values of unit u of a row, h apart */
template <class T> static __device__ __forceinline__ void take(T *v, const void *p, const ty_k_recurrence &a,
  int64_t row, int64_t u, int count) {
  for (int i = 0; i < count; i++) v[i] = load<T>(p, a.dtype, (row * count + i) * a.h + u);
}
template <class T> static __device__ __forceinline__ void give(const T *v, void *p, const ty_k_recurrence &a,
  int64_t row, int64_t u, int count) {
  for (int i = 0; i < count; i++) store(p, a.dtype, (row * count + i) * a.h + u, v[i]);
}

template <class T> __global__ void __launch_bounds__(THREADS) step(const ty_k_recurrence a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = i / a.h, u = i % a.h;
  T x[4], y[4], s[5];
  if (i >= a.n * a.h) return;
  if (a.kind == TY_LSTM) {
    T *const c = (T *)a.cell + i;
    take(x, a.x, a, row, u, 4);
    take(y, a.y, a, row, u, 4);
    store(a.o, a.dtype, i, cell<T>::lstm(x, y, *c, s));
    *c = s[4];
    if (a.saved) give(s, a.saved, a, row, u, 5);
    if (a.last) store(a.last, a.dtype, i, s[4]);
  } else if (a.kind == TY_GRU) {
    take(x, a.x, a, row, u, 3);
    take(y, a.y, a, row, u, 3);
    store(a.o, a.dtype, i, cell<T>::gru(x, y, load<T>(a.before, a.dtype, i), s));
    if (a.saved) give(s, a.saved, a, row, u, 4);
  } else {
    const T v = load<T>(a.x, a.dtype, i) + load<T>(a.y, a.dtype, i);
    store(a.o, a.dtype, i, a.kind == TY_RNN_TANH ? cell<T>::tanh(v) : v < 0 ? (T)0 : v);
  }
}

template <class T> __global__ void __launch_bounds__(THREADS) back(const ty_k_recurrence a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = i / a.h, u = i % a.h;
  T x[4], y[4], s[5];
  if (i >= a.n * a.h) return;
  T *const carry = (T *)a.carry + i;
  T d = *carry;
  if (a.more) d += load<T>(a.more, a.dtype, i);
  if (!a.g) {                              /* after the first step (see kernels.h) */
    store(a.more, a.dtype, i, d);
    if (a.last) store(a.last, a.dtype, i, ((T *)a.dcell)[i]);
    return;
  }
  d += load<T>(a.g, a.dtype, i);
  if (a.kind == TY_LSTM) {
    take(s, a.saved, a, row, u, 5);
    cell<T>::lstm_back(s, load<T>(a.cell_before, a.dtype, row * a.cell_step + u), &d, (T *)a.dcell + i, x);
    give(x, a.dx, a, row, u, 4);
  } else if (a.kind == TY_GRU) {
    take(s, a.saved, a, row, u, 4);
    cell<T>::gru_back(s, load<T>(a.before, a.dtype, i), &d, x, y);
    give(x, a.dx, a, row, u, 3);
    give(y, a.dy, a, row, u, 3);
  } else {
    const T o = load<T>(a.o, a.dtype, i);
    store(a.dx, a.dtype, i, a.kind == TY_RNN_TANH ? d * (1 - o * o) : o > 0 ? d : (T)0);
    d = 0;
  }
  *carry = d;
}

/* ---- launchers ---- */

cudaError_t ty_k_recurrent(const ty_k_recurrence *p, cudaStream_t s) {
  const ty_k_recurrence a = *p;
  const unsigned blocks = blocks_for(a.n * a.h, THREADS);
  return a.dtype == TY_F64 ? TY_LAUNCH(step<double>, blocks, THREADS, s, a) : TY_LAUNCH(step<float>, blocks, THREADS, s, a);
}

cudaError_t ty_k_recurrent_back(const ty_k_recurrence *p, cudaStream_t s) {
  const ty_k_recurrence a = *p;
  const unsigned blocks = blocks_for(a.n * a.h, THREADS);
  return a.dtype == TY_F64 ? TY_LAUNCH(back<double>, blocks, THREADS, s, a) : TY_LAUNCH(back<float>, blocks, THREADS, s, a);
}
