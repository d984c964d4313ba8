/* The calls of the CUDA runtime that src/cuda makes, answered by a simulation that is stricter than hardware. (Over 600 lines: its calls
 * share the devices' memory and streams, which nothing else may see.)
 *
 * Idea: a device is a list of mappings with guard pages, a stream is a queue. Lockstep (TYCHO_SIM=lockstep, the default): work runs at once
 * when it is put into a stream, and device memory is accessible only meanwhile, so that every access by the host faults. Asynchronous
 * (TYCHO_SIM=async): each stream is a thread with random delays, so that a missing wait shows as a wrong answer. Settings: TYCHO_SIM_SEED,
 * of delays and of the order of blocks and threads; TYCHO_SIM_DEVICES, their number; TYCHO_SIM_MEMORY, MB of each; TYCHO_SIM_OPEN, how long
 * device memory stays open without protection keys. Fresh device memory holds NaNs. sim_fail(n, error): the n-th call from now returns that
 * error; 0: none does; -1: all do. Invariants: work in one stream runs in order; only events order two streams; all threads of a block
 * reach every barrier, else the launch fails, and the error stays. */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>
#include "sim.h"
#undef threadIdx
#undef blockIdx
#define EXPORT extern "C" __attribute__((visibility("default")))
typedef std::chrono::steady_clock timer;

namespace {

long setting(const char *name, long otherwise) { const char *v = getenv(name); return v && *v ? atol(v) : otherwise; }
bool asynchronous() { static const bool is = getenv("TYCHO_SIM") && !strcmp(getenv("TYCHO_SIM"), "async"); return is; }
int devices() { static const int n = (int)std::min(16L, std::max(0L, setting("TYCHO_SIM_DEVICES", 2))); return n; }
size_t capacity() { static const size_t n = (size_t)setting("TYCHO_SIM_MEMORY", 512) << 20; return n; }

}  // namespace

uint64_t sim_random() {                    /* splitmix64; one sequence for the process */
  static std::atomic<uint64_t> state{(uint64_t)setting("TYCHO_SIM_SEED", 1) * 0x9E3779B97F4A7C15u};
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

namespace {

template <class T> void shuffle(std::vector<T> &v) {
  for (size_t i = v.size(); i > 1; i--) std::swap(v[i - 1], v[sim_random() % i]);
}

/* ---- errors ---- */

std::atomic<long> fail_in{0}, calls{0};
std::atomic<int> fail_with{0}, sticky{0};
thread_local cudaError_t last = cudaSuccess;
thread_local int current = 0;

cudaError_t give(cudaError_t e) {
  if (e != cudaSuccess && e != cudaErrorNotReady) last = e;
  return e;
}

/* Begins a call: returns an error that sim_fail asked for, or one that stays. */
cudaError_t enter() {
  calls++;
  if (fail_in < 0) return give((cudaError_t)fail_with.load());
  if (fail_in > 0 && --fail_in == 0) return give((cudaError_t)fail_with.load());
  if (sticky) return give((cudaError_t)sticky.load());
  return cudaSuccess;
}
#define ENTER do { cudaError_t e_ = enter(); if (e_ != cudaSuccess) return e_; } while (0)

void device_error(cudaError_t e, const char *what) {
  fprintf(stderr, "simulated GPU: %s\n", what);
  sticky = e;
}

/* ---- memory ---- */

struct region { size_t size; char *mapping; size_t mapped; int device; };   /* memory ends at the guard page */
std::map<char *, region> regions, pinned;
size_t used[16];
std::mutex memory_lock;
std::recursive_mutex device_lock;          /* lockstep: one piece of device work at a time */
int unlocked = 0;

const size_t PAGE = 4096;

/* A protection key closes and opens all device memory at once. Without keys, the fault of device work's first access opens a mapping; all
 * are closed, by chance, after one piece of work in TYCHO_SIM_OPEN, since each closing flushes the TLB of every core. */
int key() { static const int k = asynchronous() ? -1 : pkey_alloc(0, 0); return k; }

char *opened[1 << 14];                     /* the open mappings, and their sizes */
size_t opened_size[1 << 14];
int nopened = 0;
thread_local bool working = false;         /* as a key's rights, each thread's own */
struct sigaction faults_before;

void note_open(char *mapping, size_t size) {
  if (nopened == 1 << 14) { nopened--; mprotect(opened[nopened], opened_size[nopened], PROT_NONE); }
  opened[nopened] = mapping;
  opened_size[nopened++] = size;
}
void forget_open(char *mapping) {
  for (int i = 0; i < nopened; i++)
    if (opened[i] == mapping) { nopened--; opened[i] = opened[nopened]; opened_size[i] = opened_size[nopened]; break; }
}

void on_fault(int, siginfo_t *info, void *) {
  char *const at = (char *)info->si_addr;
  if (working) {                           /* device_lock is held: regions don't change */
    auto it = regions.upper_bound(at + PAGE);
    for (int back = 0; back < 2 && it != regions.begin(); back++) {
      const region &r = (--it)->second;
      if (at < r.mapping || at >= r.mapping + r.mapped - PAGE) continue;
      if (mprotect(r.mapping, r.mapped - PAGE, PROT_READ | PROT_WRITE) == 0) { note_open(r.mapping, r.mapped - PAGE); return; }
    }
  }
  sigaction(SIGSEGV, &faults_before, nullptr);      /* a bug: it faults again, without this handler */
}

void protect_all(bool closed) {
  if (key() >= 0) { pkey_set(key(), closed ? PKEY_DISABLE_ACCESS : 0); return; }
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = on_fault;
    a.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &a, &faults_before);
  });
  static const long open_for = std::max(1L, setting("TYCHO_SIM_OPEN", 32));
  working = !closed;
  if (closed && sim_random() % open_for) return;
  for (int i = 0; closed && i < nopened; i++) mprotect(opened[i], opened_size[i], PROT_NONE);
  if (closed) nopened = 0;
}

/* Device memory is accessible while one of these lives. */
struct device_work {
  device_work() {
    if (asynchronous()) return;
    device_lock.lock();
    if (unlocked++ == 0) protect_all(false);
  }
  ~device_work() {
    if (asynchronous()) return;
    if (--unlocked == 0) protect_all(true);
    device_lock.unlock();
  }
};

bool within(const std::map<char *, region> &m, const void *p, size_t n) {
  auto it = m.upper_bound((char *)p);
  if (it == m.begin()) return false;
  --it;
  return (char *)p + n <= it->first + it->second.size;
}
bool on_device(const void *p, size_t n) { std::lock_guard<std::mutex> hold(memory_lock); return within(regions, p, n); }
bool touches_device(const void *p) { std::lock_guard<std::mutex> hold(memory_lock); return within(regions, p, 1); }
bool is_pinned(const void *p, size_t n) { std::lock_guard<std::mutex> hold(memory_lock); return within(pinned, p, n); }

/* ---- streams and events ---- */

struct moment {                            /* a point in a stream */
  std::mutex lock;
  std::condition_variable changed;
  bool done = false;
  timer::time_point at;
  void happen() {
    std::lock_guard<std::mutex> hold(lock);
    done = true;
    at = timer::now();
    changed.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> hold(lock);
    changed.wait(hold, [this] { return done; });
  }
};
typedef std::shared_ptr<moment> point;

/* Captured work: each piece with the pieces that come before it. */
struct recording {
  struct piece { std::function<void()> work; std::vector<size_t> after; };
  std::vector<piece> pieces;
  std::vector<cudaStream_t> joined;        /* the first one began the capture */
  std::thread::id thread;
  bool spoilt = false;
};
typedef std::shared_ptr<recording> record;

record capturing;                          /* one capture at a time; other threads read this */
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeThreadLocal;

/* Whether the calling thread captures, and so may not make the call; spoils the capture. */
bool refused() {
  const record now = std::atomic_load(&capturing);
  if (!now || now->thread != std::this_thread::get_id() || capture_mode == cudaStreamCaptureModeRelaxed) return false;
  return now->spoilt = true;
}
#define REFUSE_CAPTURE do { if (refused()) return give(cudaErrorStreamCaptureUnsupported); } while (0)

}  // namespace

struct CUgraph_st { std::vector<recording::piece> pieces; };
struct CUgraphExec_st { std::vector<recording::piece> pieces; };

struct CUstream_st {
  int device;
  record into;                             /* a capture that gets what is added */
  std::vector<size_t> tail;                /* pieces that the next one comes after */
  std::deque<std::function<void()>> work;
  std::mutex lock;
  std::condition_variable changed;
  bool busy = false, ending = false;
  std::atomic<bool> destroyed{false};
  std::thread worker;

  void run() {
    std::unique_lock<std::mutex> hold(lock);
    for (;;) {
      changed.wait(hold, [this] { return ending || !work.empty(); });
      if (work.empty()) return;
      auto f = std::move(work.front());
      work.pop_front();
      busy = true;
      hold.unlock();
      if (sim_random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(sim_random() % 300));
      f();
      f = nullptr;
      hold.lock();
      busy = false;
      changed.notify_all();
    }
  }
  void add(std::function<void()> f) {
    if (into) {
      into->pieces.push_back({std::move(f), tail});
      tail = {into->pieces.size() - 1};
      return;
    }
    if (!asynchronous()) { device_work here; f(); return; }
    std::lock_guard<std::mutex> hold(lock);
    if (!worker.joinable()) worker = std::thread([this] { run(); });
    work.push_back(std::move(f));
    changed.notify_all();
  }
  bool idle() { std::lock_guard<std::mutex> hold(lock); return work.empty() && !busy; }
  void drain() {
    std::unique_lock<std::mutex> hold(lock);
    changed.wait(hold, [this] { return work.empty() && !busy; });
  }
};

struct CUevent_st { int device; bool timing; point p; record in; std::vector<size_t> tail; };   /* in: the capture it was recorded in */
namespace {

std::mutex streams_lock; std::atomic<int> made_on[64];
std::vector<cudaStream_t> streams;

std::vector<cudaStream_t> all_streams() { std::lock_guard<std::mutex> hold(streams_lock); return streams; }

/* At the process's end, finishes the work that is left in streams and joins their threads. */
struct at_exit {
  ~at_exit() {
    for (auto s : streams) {
      s->drain();
      { std::lock_guard<std::mutex> h(s->lock); s->ending = true; s->changed.notify_all(); }
      if (s->worker.joinable()) s->worker.join();
    }
  }
} ending;

}  // namespace

cudaError_t sim_launch(dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> thread) {
  ENTER;
  const size_t n = (size_t)block.x * block.y * block.z;
  if (!stream || n == 0 || n > 1024 || block.z > 64 || !grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu ||
      grid.y > 65535 || grid.z > 65535)
    return give(cudaErrorInvalidConfiguration);
  if (stream->device != current || stream->destroyed) return give(cudaErrorInvalidResourceHandle);
  stream->add([=] {
    std::vector<uint3> at;
    for (unsigned z = 0; z < grid.z; z++)
      for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) at.push_back({x, y, z});
    shuffle(at);
    for (uint3 b : at)
      if (!sticky && !sim_block(grid, block, b, thread))
        device_error(cudaErrorLaunchFailure, "a barrier that threads of the block had returned before");
  });
  return cudaSuccess;
}

/* Puts a library's work into a stream; reports its fault. */
extern "C" cudaError_t sim_task(cudaStream_t stream, void (*f)(void *arg), void *arg) {
  ENTER;
  if (!stream) return give(cudaErrorInvalidResourceHandle);
  stream->add([=] { if (!sticky) f(arg); });
  return cudaSuccess;
}
extern "C" void sim_fault(const char *what) { device_error(cudaErrorLaunchFailure, what); }
/* ---- the runtime's calls ---- */
EXPORT void sim_fail(long n, int error) { fail_with = error; fail_in = n; }
EXPORT long sim_calls() { return calls; }
EXPORT int sim_streams(int device) { return made_on[device]; }   /* so far */
EXPORT bool sim_failing() { return fail_in > 0; }    /* the error hasn't come yet */

extern "C" {

cudaError_t cudaGetLastError() { cudaError_t e = last; last = cudaSuccess; return e; }
cudaError_t cudaPeekAtLastError() { return last; }
const char *cudaGetErrorName(cudaError_t e) {
  switch (e) {
#define NAME(n) case cudaError##n: return "cudaError" #n;
    NAME(MemoryAllocation) NAME(InvalidValue) NAME(LaunchFailure) NAME(IllegalAddress) NAME(InvalidConfiguration)
    NAME(InvalidResourceHandle) NAME(InvalidDevice) NAME(StreamCaptureUnsupported) NAME(StreamCaptureInvalidated)
    NAME(StreamCaptureUnjoined) NAME(StreamCaptureIsolation) NAME(CapturedEvent)
#undef NAME
    default: return "an error of the simulation";
  }
}
const char *cudaGetErrorString(cudaError_t e) { return cudaGetErrorName(e); }

cudaError_t cudaGetDeviceCount(int *n) { ENTER; *n = devices(); return cudaSuccess; }
cudaError_t cudaSetDevice(int d) {
  ENTER;
  if (d < 0 || d >= devices()) return give(cudaErrorInvalidDevice);
  current = d;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *d) { *d = current; return cudaSuccess; }       /* reads the thread's own state: never made to fail */
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int d) {
  ENTER;
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "simulated GPU %d", d);
  p->totalGlobalMem = capacity();
  p->major = 9;
  p->multiProcessorCount = 4;
  p->warpSize = 32;
  p->sharedMemPerBlock = 48 << 10;
  return cudaSuccess;
}

/* With odd seeds the device reads pageable memory itself, perhaps after the copy's call returned; and a library attends (libraries.c). */
extern "C" bool sim_odd_seed() { static const bool odd = setting("TYCHO_SIM_SEED", 1) % 2; return odd; }
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr what, int) {
  ENTER; *v = what == cudaDevAttrPageableMemoryAccess && sim_odd_seed(); return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  ENTER;
  std::lock_guard<std::mutex> hold(memory_lock);
  *total = capacity();
  *free = capacity() - used[current];
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t n) {
  ENTER;
  REFUSE_CAPTURE;
  device_work here;
  std::lock_guard<std::mutex> hold(memory_lock);
  const size_t mapped = (n + PAGE - 1) / PAGE * PAGE + PAGE;
  if (used[current] + n > capacity()) return give(cudaErrorMemoryAllocation);
  char *base = (char *)mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return give(cudaErrorMemoryAllocation);
  memset(base, 0xff, mapped - PAGE);       /* NaN in every floating dtype */
  mprotect(base + mapped - PAGE, PAGE, PROT_NONE);
  if (key() >= 0) pkey_mprotect(base, mapped - PAGE, PROT_READ | PROT_WRITE, key());
  else if (!asynchronous()) note_open(base, mapped - PAGE);
  char *const start = base + mapped - PAGE - (n + 15) / 16 * 16;
  regions[start] = {n, base, mapped, current};
  used[current] += n;
  *p = start;
  return cudaSuccess;
}

cudaError_t cudaFree(void *p) {            /* waits for the device, as CUDA does */
  ENTER;
  REFUSE_CAPTURE;
  for (auto s : all_streams()) s->drain();
  device_work here;
  std::lock_guard<std::mutex> hold(memory_lock);
  auto it = regions.find((char *)p);
  if (it == regions.end()) return give(cudaErrorInvalidValue);
  used[it->second.device] -= it->second.size;
  forget_open(it->second.mapping);
  munmap(it->second.mapping, it->second.mapped);
  regions.erase(it);
  return cudaSuccess;
}

/* ---- src/cuda/vmm.c: a piece is part of a region, which grows and is cut ---- */
char *ty_vmm_reserve(int, size_t n, size_t piece) {
  if (enter() != cudaSuccess || n % piece || piece % PAGE) return nullptr;
  char *p = (char *)mmap(nullptr, n + piece + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  char *const start = (char *)(((uintptr_t)p + piece - 1) / piece * piece);
  if (start > p) munmap(p, (size_t)(start - p));
  munmap(start + n + PAGE, (size_t)(p + piece - start));       /* what is left behind the guard page */
  return start;
}
void ty_vmm_release(char *p, size_t n) { munmap(p, n + PAGE); }
bool ty_vmm_map(int gpu, char *p, size_t n) {
  if (enter() != cudaSuccess || refused()) return false;
  device_work here;
  std::lock_guard<std::mutex> hold(memory_lock);
  if (used[gpu] + n > capacity()) return false;
  used[gpu] += n;
  char *first = p, *end = p + n;
  auto after = regions.find(end);
  if (after != regions.end() && after->second.mapping == end) end += after->second.size, regions.erase(after);
  auto before = regions.lower_bound(p);
  if (before != regions.begin() && (--before)->first + before->second.size == p && before->second.mapping == before->first)
    first = before->first;
  regions[first] = {(size_t)(end - first), first, (size_t)(end - first) + PAGE, gpu};
  return true;
}
bool ty_vmm_open_to(int gpu, char *p, size_t n) {
  if (enter() != cudaSuccess || refused()) return false;
  device_work here;
  std::lock_guard<std::mutex> hold(memory_lock);
  auto it = regions.upper_bound(p);
  if ((uintptr_t)p % (2 << 20) || n % (2 << 20) || it == regions.begin() || (--it)->first + it->second.size < p + n)
    return device_error(cudaErrorInvalidValue, "access to addresses that aren't whole pieces of memory"), false;
  if (it->second.device != gpu) return true;                   /* a peer: one address space has them all */
  if (mprotect(p, n, PROT_READ | PROT_WRITE)) return false;
  memset(p, 0xff, n);
  if (key() >= 0) pkey_mprotect(p, n, PROT_READ | PROT_WRITE, key());
  else if (!asynchronous()) note_open(p, n);
  return true;
}
void ty_vmm_unmap(char *p, size_t n) {
  device_work here;
  std::lock_guard<std::mutex> hold(memory_lock);
  auto it = --regions.upper_bound(p);
  const region whole = it->second;
  char *const first = it->first, *const end = first + whole.size;
  regions.erase(it);
  if (first < p) regions[first] = {(size_t)(p - first), first, (size_t)(p - first) + PAGE, whole.device};
  if (p + n < end) regions[p + n] = {(size_t)(end - p - n), p + n, (size_t)(end - p - n) + PAGE, whole.device};
  used[whole.device] -= n;
  for (int i = 0; i < nopened; i++) mprotect(opened[i], opened_size[i], PROT_NONE);      /* they open again at the next access */
  nopened = 0;
  mmap(p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* A program's own allocator (CUDAPluggableAllocator), which counts what it gave and has not got back. */
static std::atomic<long> own_segments{0};
EXPORT void *sim_alloc(ssize_t n, int device, void *stream) {
  void *p = nullptr;
  if (!stream || device != current || cudaMalloc(&p, (size_t)n) != cudaSuccess) return nullptr;
  own_segments++;
  return p;
}
EXPORT void sim_take_back(void *p, ssize_t, int, void *) { if (cudaFree(p) == cudaSuccess) own_segments--; }
EXPORT long sim_own_segments() { return own_segments; }

cudaError_t cudaHostAlloc(void **p, size_t n, unsigned) {
  ENTER;
  REFUSE_CAPTURE;
  *p = malloc(n ? n : 1);
  if (!*p) return give(cudaErrorMemoryAllocation);
  std::lock_guard<std::mutex> hold(memory_lock);
  pinned[(char *)*p] = {n, nullptr, 0, -1};
  return cudaSuccess;
}
EXPORT void *sim_pin(size_t n) { void *p = nullptr; cudaHostAlloc(&p, n, 0); return p; }   /* memory that somebody else page-locked */
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p) {
  ENTER; *a = {};
  a->type = is_pinned(p, 1) ? cudaMemoryTypeHost : touches_device(p) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void *p) {
  ENTER;
  std::lock_guard<std::mutex> hold(memory_lock);
  if (!pinned.erase((char *)p)) return give(cudaErrorInvalidValue);
  free(p);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned, int) {
  ENTER;
  std::lock_guard<std::mutex> hold(streams_lock);
  *s = new CUstream_st;
  (*s)->device = current;
  streams.push_back(*s);
  made_on[current]++;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) { ENTER; s->destroyed = true; return cudaSuccess; }      /* kept until the process ends */
/* A stream, and a choice of the device, that somebody else made. */
EXPORT void *sim_stream() { cudaStream_t s = nullptr; cudaStreamCreateWithPriority(&s, 0, 0); return s; }
EXPORT void sim_capture(void *s) { cudaStreamBeginCapture((cudaStream_t)s, cudaStreamCaptureModeThreadLocal); }
EXPORT void sim_capture_end(void *s) { cudaGraph_t g; if (cudaStreamEndCapture((cudaStream_t)s, &g) == cudaSuccess) cudaGraphDestroy(g); }
EXPORT void sim_destroy(void *s) { cudaStreamDestroy((cudaStream_t)s); }
EXPORT void sim_choose(int device) { cudaSetDevice(device); }
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  ENTER;
  REFUSE_CAPTURE;
  s->drain();
  return sticky ? give((cudaError_t)sticky.load()) : cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) { ENTER; REFUSE_CAPTURE; return s->idle() ? cudaSuccess : cudaErrorNotReady; }
cudaError_t cudaDeviceSynchronize() {
  ENTER;
  REFUSE_CAPTURE;
  if (const record now = std::atomic_load(&capturing); now && now->joined[0]->device == current)   /* of another thread */
    return now->spoilt = true, give(cudaErrorStreamCaptureUnsupported);
  for (auto s : all_streams()) if (s->device == current) s->drain();
  return sticky ? give((cudaError_t)sticky.load()) : cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags) {
  ENTER;
  return *e = new CUevent_st{current, !(flags & cudaEventDisableTiming), nullptr, nullptr, {}}, cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) { ENTER; delete e; return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  ENTER;
  if (e->device != s->device || s->destroyed) return give(cudaErrorInvalidResourceHandle);
  e->in = s->into;
  e->tail = s->tail;
  if (s->into) { e->p = nullptr; return cudaSuccess; }
  point p = e->p = std::make_shared<moment>();
  s->add([p] { p->happen(); });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  ENTER;
  if (e->in && e->in == std::atomic_load(&capturing)) {       /* the stream joins the capture */
    if (!s->into) { s->into = e->in; s->tail.clear(); e->in->joined.push_back(s); }
    s->tail.insert(s->tail.end(), e->tail.begin(), e->tail.end());
    return cudaSuccess;
  }
  if (e->in) return give(cudaErrorCapturedEvent);
  if (s->into) { s->into->spoilt = true; return give(cudaErrorStreamCaptureIsolation); }
  point p = e->p;
  if (p) s->add([p] { p->wait(); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  ENTER;
  REFUSE_CAPTURE;
  if (e->in) return give(cudaErrorCapturedEvent);
  if (!e->p) return cudaSuccess;
  std::lock_guard<std::mutex> hold(e->p->lock);
  return e->p->done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  ENTER;
  REFUSE_CAPTURE;
  if (e->in) return give(cudaErrorCapturedEvent);
  if (e->p) e->p->wait();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
  ENTER;
  if (!a->timing || !b->timing || !a->p || !b->p) return give(cudaErrorInvalidResourceHandle);
  if (!a->p->done || !b->p->done) return cudaErrorNotReady;
  *ms = std::chrono::duration<float, std::milli>(b->p->at - a->p->at).count();
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n, cudaMemcpyKind kind, cudaStream_t s) {
  ENTER;
  const bool to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
    from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (n == 0) return cudaSuccess;
  if (!s || (to ? !on_device(dst, n) : touches_device(dst)) || (from ? !on_device(src, n) : touches_device(src)))
    return give(cudaErrorInvalidValue);
  if ((kind == cudaMemcpyHostToDevice && !is_pinned(src, n)) || (kind == cudaMemcpyDeviceToHost && !is_pinned(dst, n))) REFUSE_CAPTURE;
  if (kind == cudaMemcpyHostToDevice && !is_pinned(src, n) && !sim_odd_seed()) {   /* staged: the source may change after the call */
    auto stage = std::make_shared<std::vector<char>>((const char *)src, (const char *)src + n);
    s->add([=] { memcpy(dst, stage->data(), n); });
    return cudaSuccess;
  }
  s->add([=] { memcpy(dst, src, n); });
  if (kind == cudaMemcpyDeviceToHost && !is_pinned(dst, n)) s->drain();
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int from, int to) { ENTER; *can = from != to; return cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { ENTER; return cudaSuccess; }
cudaError_t cudaMemcpyPeerAsync(void *dst, int, const void *src, int, size_t n, cudaStream_t s) {
  ENTER;
  if (!on_device(dst, n) || !on_device(src, n)) return give(cudaErrorInvalidValue);
  return s->add([=] { memcpy(dst, src, n); }), cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t s) {
  ENTER;
  if (!on_device(p, n)) return give(cudaErrorInvalidValue);
  return s->add([=] { memset(p, v, n); }), cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) { ENTER; std::swap(*mode, capture_mode); return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *is) {
  return *is = s->into ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  ENTER;
  if (std::atomic_load(&capturing) || mode != cudaStreamCaptureModeThreadLocal) return give(cudaErrorIllegalState);
  s->into = std::make_shared<recording>();
  s->into->thread = std::this_thread::get_id();
  s->into->joined = {s};
  s->tail.clear();
  std::atomic_store(&capturing, s->into);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
  ENTER;
  *out = nullptr;
  record r = s->into;
  if (!r || r->joined[0] != s) return give(cudaErrorIllegalState);
  std::vector<char> before(r->pieces.size(), 0);           /* the pieces before the stream's end */
  for (std::vector<size_t> open = s->tail; !open.empty();) {
    const size_t k = open.back();
    open.pop_back();
    if (before[k]) continue; else before[k] = 1;
    open.insert(open.end(), r->pieces[k].after.begin(), r->pieces[k].after.end());
  }
  bool whole = true;
  for (auto j : r->joined) {
    for (size_t k : j->tail) whole = whole && before[k];
    j->into = nullptr;
    j->tail.clear();
  }
  std::atomic_store(&capturing, record());
  if (r->spoilt) return give(cudaErrorStreamCaptureInvalidated);
  if (!whole) return give(cudaErrorStreamCaptureUnjoined);
  *out = new CUgraph_st{r->pieces};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long) {
  ENTER; *out = new CUgraphExec_st{g->pieces}; return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *, size_t *n) { ENTER; *n = g->pieces.size(); return cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t g) { ENTER; delete g; return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) { ENTER; REFUSE_CAPTURE; delete g; return cudaSuccess; }

/* Runs the pieces in a random order that their dependencies allow. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s) {
  ENTER;
  if (s->into) { s->into->spoilt = true; return give(cudaErrorStreamCaptureUnsupported); }
  auto pieces = std::make_shared<std::vector<recording::piece>>(g->pieces);
  s->add([pieces] {
    std::vector<size_t> waits(pieces->size()), ready;
    std::vector<std::vector<size_t>> then(pieces->size());
    for (size_t i = 0; i < pieces->size(); i++) {
      waits[i] = (*pieces)[i].after.size();
      for (size_t k : (*pieces)[i].after) then[k].push_back(i);
      if (!waits[i]) ready.push_back(i);
    }
    while (!ready.empty()) {
      std::swap(ready[sim_random() % ready.size()], ready.back());
      const size_t i = ready.back();
      ready.pop_back();
      (*pieces)[i].work();
      for (size_t k : then[i]) if (--waits[k] == 0) ready.push_back(k);
    }
  });
  return cudaSuccess;
}

}  // extern "C"
