/* Whether the simulation catches the bugs that it is for: programs with one planted bug each, and the same programs without it.
 *
 * Idea: each runs in a process of its own. With the bug it must die by a signal, give a wrong result in some round, or report an error;
 * without it, none of these. */
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "device.cuh"
#undef threadIdx
#define threadIdx (sim_here->thread)

enum { N = 256 };
enum verdict { RIGHT = 0, WRONG = 3 };     /* exit codes; a process may also end by others */

static __global__ void fill(float *p, int n, float v) {
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] = v;
}

/* out[i] = in[the next thread] through shared memory */
static __global__ void rotate(const float *in, float *out, bool meet) {
  __shared__ float room[N];
  const int t = (int)threadIdx.x;
  room[t] = in[t];
  if (meet) __syncthreads();
  out[t] = room[(t + 1) % N];
}

static __global__ void leave_early(float *p) {
  if (threadIdx.x == 3) return;
  __syncthreads();
  p[threadIdx.x] = 1;
}

static float *device(int n) {
  float *p = nullptr;
  return cudaMalloc((void **)&p, sizeof(float) * (size_t)n) == cudaSuccess ? p : nullptr;
}

static cudaStream_t stream() {
  cudaStream_t s = nullptr;
  cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, 0);
  return s;
}

static bool all(const float *host, float v) {
  for (int i = 0; i < N; i++) if (host[i] != v) return false;
  return true;
}

static verdict missing_wait(bool bug) {
  cudaStream_t a = stream(), b = stream();
  cudaEvent_t e;
  float *p = device(N), host[N];
  cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
  for (int round = 1; round < 100; round++) {
    for (int k = 0; k < 4; k++) TY_LAUNCH(fill, 1, N, a, p, N, (float)(k == 3 ? round : -1));
    cudaEventRecord(e, a);
    if (!bug) cudaStreamWaitEvent(b, e, 0);
    cudaMemcpyAsync(host, p, sizeof host, cudaMemcpyDeviceToHost, b);
    cudaStreamSynchronize(b);
    if (!all(host, (float)round)) return WRONG;
    cudaStreamSynchronize(a);
  }
  return RIGHT;
}

static verdict host_read(bool bug) {
  float *p = device(N), host[N];
  cudaStream_t s = stream();
  TY_LAUNCH(fill, 1, N, s, p, N, 1.0f);
  if (bug) memcpy(host, p, sizeof host);
  else cudaMemcpyAsync(host, p, sizeof host, cudaMemcpyDeviceToHost, s);
  cudaStreamSynchronize(s);
  return all(host, 1) ? RIGHT : WRONG;
}

static verdict out_of_bounds(bool bug) {
  float *p = device(N);
  cudaStream_t s = stream();
  TY_LAUNCH(fill, 2, N, s, p, bug ? N + 1 : N, 1.0f);
  return cudaStreamSynchronize(s) == cudaSuccess ? RIGHT : WRONG;
}

static __global__ void copy_pack(const float *p, float *q) { put_pack(q, take_pack<float, 4>(p)); }

static verdict misaligned(bool bug) {
  float *p = device(N), *q = device(N);
  cudaStream_t s = stream();
  TY_LAUNCH(copy_pack, 1, 1, s, p + bug, q);
  return cudaStreamSynchronize(s) == cudaSuccess ? RIGHT : WRONG;
}

static verdict missing_barrier(bool bug) {
  float *p = device(N), *q = device(N), in[N], out[N];
  cudaStream_t s = stream();
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < N; i++) in[i] = (float)(i + round);
    cudaMemcpyAsync(p, in, sizeof in, cudaMemcpyHostToDevice, s);
    TY_LAUNCH(rotate, 1, N, s, p, q, !bug);
    cudaMemcpyAsync(out, q, sizeof out, cudaMemcpyDeviceToHost, s);
    cudaStreamSynchronize(s);
    for (int i = 0; i < N; i++) if (out[i] != in[(i + 1) % N]) return WRONG;
  }
  return RIGHT;
}

static verdict barrier_not_met(bool bug) {
  float *p = device(N);
  cudaStream_t s = stream();
  if (bug) TY_LAUNCH(leave_early, 1, N, s, p);
  else TY_LAUNCH(fill, 1, N, s, p, N, 1.0f);
  return cudaStreamSynchronize(s) == cudaSuccess ? RIGHT : WRONG;
}

static verdict use_after_free(bool bug) {
  float *p = device(N);
  cudaStream_t side = stream();
  if (bug) cudaFree(p);
  TY_LAUNCH(fill, 1, N, side, p, N, 1.0f);
  return cudaStreamSynchronize(side) == cudaSuccess ? RIGHT : WRONG;
}

/* Captures a fill and, meanwhile, calls `forbidden` if there is one. */
static verdict capture(void (*forbidden)(cudaStream_t s)) {
  cudaStream_t s = stream();
  cudaGraph_t g;
  float *p = device(N);
  cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
  TY_LAUNCH(fill, 1, N, s, p, N, 1.0f);
  if (forbidden) forbidden(s);
  return cudaStreamEndCapture(s, &g) == cudaSuccess ? RIGHT : WRONG;
}

static void allocate(cudaStream_t) { device(N); }
static void synchronize(cudaStream_t s) { cudaStreamSynchronize(s); }
static verdict malloc_in_capture(bool bug) { return capture(bug ? allocate : nullptr); }
static verdict wait_in_capture(bool bug) { return capture(bug ? synchronize : nullptr); }

static verdict missing_wait_in_capture(bool bug) {
  cudaStream_t s = stream(), side = stream();
  cudaGraph_t g;
  cudaGraphExec_t x;
  cudaEvent_t fork, join;
  float *p = device(N), host[N];
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
  if (bug) cudaEventRecord(fork, s);                       /* too early: side doesn't wait for the first fill */
  TY_LAUNCH(fill, 1, N, s, p, N, 1.0f);
  if (!bug) cudaEventRecord(fork, s);
  cudaStreamWaitEvent(side, fork, 0);
  TY_LAUNCH(fill, 1, N, side, p, N, 2.0f);
  cudaEventRecord(join, side);
  cudaStreamWaitEvent(s, join, 0);
  if (cudaStreamEndCapture(s, &g) != cudaSuccess || cudaGraphInstantiate(&x, g, 0) != cudaSuccess) return WRONG;
  for (int round = 0; round < 50; round++) {
    cudaGraphLaunch(x, s);
    cudaMemcpyAsync(host, p, sizeof host, cudaMemcpyDeviceToHost, s);
    cudaStreamSynchronize(s);
    if (!all(host, 2)) return WRONG;
  }
  return RIGHT;
}

struct planted { const char *name; verdict (*run)(bool bug); bool async; };
static const planted bugs[] = {
  {"a missing wait between streams", missing_wait, true}, {"a read of device memory by the host", host_read, false},
  {"a store out of bounds", out_of_bounds, false},
  {"a pack read at no multiple of its size", misaligned, false},
  {"a missing __syncthreads", missing_barrier, false}, {"a barrier that a thread returns before", barrier_not_met, false},
  {"use of freed memory on a side stream", use_after_free, false}, {"cudaMalloc during capture", malloc_in_capture, false},
  {"a wait during capture", wait_in_capture, false},
  {"a missing wait between captured streams", missing_wait_in_capture, false}};

/* Whether the program ended as a right one does. */
static bool right(const planted &b, bool bug) {
  const pid_t child = fork();
  int status = 0;
  if (child == 0) {
    setenv("TYCHO_SIM", b.async ? "async" : "lockstep", 1);
    if (!freopen("/dev/null", "w", stderr)) _exit(4);
    _exit(b.run(bug));
  }
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == RIGHT;
}

int main() {
  int failed = 0;
  setenv("TYCHO_SIM_OPEN", "1", 1);        /* without protection keys: closes device memory after each piece of work */
  for (const planted &b : bugs) {
    const bool caught = !right(b, true), quiet = right(b, false);
    if (!caught) printf("simulated GPU: not caught: %s\n", b.name);
    if (!quiet) printf("simulated GPU: a right program was taken for %s\n", b.name);
    failed += !caught + !quiet;
  }
  printf("simulated GPU: %d of %d planted bugs caught, with no false alarm\n", (int)(sizeof bugs / sizeof *bugs) - failed,
    (int)(sizeof bugs / sizeof *bugs));
  return failed > 0;
}
