/* What kernels and the host code that launches them share, in C and in CUDA C++.
 *
 * Idea: a launcher takes a struct of geometry and pointers and a stream, launches, and gives the runtime's status; it neither waits nor
 * allocates. Strides count elements. k: the type computed in: 0 float32, 1 float64, 2 int64. */
#ifndef TY_KERNELS_H
#define TY_KERNELS_H
#include <cuda_runtime_api.h>
#include <stdint.h>
#include "names.h"

#define TY_K_DIMS 8
#ifdef __cplusplus
#define TY_K extern "C"
#else
#define TY_K
#endif

/* ---- pointwise (pointwise.cu) ---- */
enum { TY_K_STRIDED, TY_K_DENSE, TY_K_NUMBER };         /* how an operand is read: by strides, as the result lies, one value for all */
typedef struct { void *p; int dtype, how, rounded; int64_t stride[TY_K_DIMS]; double f; int64_t i; } ty_k_operand;   /* number: p NULL and f, or i (k 2); or one
 * element at p, rounded to a 16-bit dtype first where rounded says so (1 + the dtype) */
typedef struct {
  int op, k, nin, ndim;                                  /* op: a ty_op_id, or -1: conversion of the operand to the result's dtype */
  int64_t n, shape[TY_K_DIMS];
  double p, q;
  ty_k_operand o[4];                                     /* the result, then the operands */
} ty_k_point;
TY_K cudaError_t ty_k_pointwise(const ty_k_point *a, cudaStream_t s);

/* ---- creation, random numbers (fill.cu) ---- */
TY_K cudaError_t ty_k_sequence(void *o, int dtype, int64_t n, double first, double step, cudaStream_t s);   /* first, first + step, ... */
TY_K cudaError_t ty_k_eye(void *o, int dtype, int64_t rows, int64_t cols, cudaStream_t s);
typedef struct { uint64_t seed, offset; } ty_k_generator;   /* in device memory */
typedef struct {
  int op, dtype;
  int64_t n, low, high;                                  /* randint */
  double a, b;                                           /* the op's first two attributes */
  const void *x;                                         /* bernoulli's probabilities, dropout's operand */
  void *o;                                               /* contiguous */
  uint8_t *mask;                                         /* dropout's */
  ty_k_generator *g;
} ty_k_draw;
TY_K cudaError_t ty_k_random(const ty_k_draw *a, cudaStream_t s);      /* also moves the generator on */
TY_K cudaError_t ty_k_seed(ty_k_generator *g, uint64_t seed, uint64_t offset, cudaStream_t s);

/* ---- reductions (reduce.cu) ---- */
typedef struct {
  int op, k, dtype, out_dtype;
  int nkeep, nreduce;
  int64_t outputs, length;                               /* products of the sizes below */
  int64_t keep[TY_K_DIMS], keep_stride[TY_K_DIMS], reduce[TY_K_DIMS], reduce_stride[TY_K_DIMS];
  const void *x;
  void *o;                                               /* contiguous over the kept dims */
  void *partial;                                         /* 8 bytes times splits times outputs */
  int splits;
} ty_k_reduction;
TY_K int ty_k_reduce_splits(int64_t outputs, int64_t length);
TY_K cudaError_t ty_k_reduce(const ty_k_reduction *a, cudaStream_t s);
#endif
