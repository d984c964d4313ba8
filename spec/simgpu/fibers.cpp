/* Runs the blocks of kernels: a block's threads are fibers of one host thread.
 *
 * Idea: each fiber in turn runs to its next barrier or its thread's end, where it takes up a thread that hasn't begun: threads without
 * barriers share one stack. The order of the threads changes with the seed. Invariants: a fiber is left only at a barrier or at its end;
 * either all threads of a block reach a barrier, or the block is wrong. */
#include <sys/mman.h>
#include <cstdlib>
#include "sim.h"
#undef threadIdx
#undef blockIdx

#ifndef __x86_64__
#error "fibers are switched by code for x86-64"
#endif

namespace {

struct fiber { void *sp; char *stack; sim_place place; bool done; };
const size_t STACK = 64 << 10, APART = STACK + 320;      /* tops of stacks lie in different lines of the processor's caches */

#if defined __SANITIZE_ADDRESS__
}
extern "C" void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
extern "C" void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size);
extern "C" void __asan_unpoison_memory_region(const volatile void *at, size_t size);
namespace {
#endif

struct block_run {
  fiber *fibers, *now;
  unsigned *order;                         /* of threads */
  unsigned threads, begun;
  void *scheduler;
  const std::function<void()> *thread;
};
thread_local block_run run;                /* plain data, so that no access checks whether it is constructed */

}  // namespace

thread_local sim_place *sim_here;
alignas(16) thread_local unsigned char sim_shared[1024 * 32];

/* *save = this stack pointer; continues on stack `to`. Saves the registers that a call must preserve. */
extern "C" void sim_switch(void **save, void *to);
asm(R"(
.text
.type sim_switch, @function
sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size sim_switch, .-sim_switch
)");

namespace {

#if defined __SANITIZE_ADDRESS__
thread_local const void *host_bottom;
thread_local size_t host_size;
#endif

void to_scheduler() {
  fiber *f = run.now;
#if defined __SANITIZE_ADDRESS__
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(f->done ? nullptr : &fake, host_bottom, host_size);
  sim_switch(&f->sp, run.scheduler);
  __sanitizer_finish_switch_fiber(fake, &host_bottom, &host_size);
#else
  sim_switch(&f->sp, run.scheduler);
#endif
}

void fiber_main() {
#if defined __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &host_bottom, &host_size);
#endif
  sim_place &place = run.now->place;
  const dim3 block = place.block_dim;
  while (run.begun < run.threads) {
    const unsigned i = run.order[run.begun++];
    place.thread = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    (*run.thread)();
  }
  run.now->done = true;
  to_scheduler();
}

void resume(fiber *f) {
  run.now = f;
  sim_here = &f->place;
#if defined __SANITIZE_ADDRESS__
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, f->stack, STACK);
  sim_switch(&run.scheduler, f->sp);
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
  sim_switch(&run.scheduler, f->sp);
#endif
}

/* Makes fibers for up to 1024 threads, once for each host thread. */
void make_fibers() {
  run.fibers = (fiber *)calloc(1024, sizeof(fiber));
  run.order = (unsigned *)calloc(1024, sizeof(unsigned));
  char *stacks = (char *)mmap(nullptr, 1024 * APART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (size_t i = 0; i < 1024; i++) run.fibers[i].stack = stacks + i * APART;
}

void begin(fiber *f, uint3 block, dim3 block_dim, dim3 grid_dim) {
  f->place = {{}, block, block_dim, grid_dim};
  f->done = false;
#if defined __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(f->stack + STACK - 4096, 4096);        /* frames of an earlier thread never returned */
#endif
  void **top = (void **)(f->stack + STACK) - 1;          /* fiber_main expects the stack aligned as after a call */
  *--top = (void *)fiber_main;
  for (int k = 0; k < 6; k++) *--top = nullptr;
  f->sp = top;
  resume(f);
}

}  // namespace

bool sim_block(dim3 grid, dim3 block, uint3 at, const std::function<void()> &thread) {
  if (!run.fibers) make_fibers();
  run.thread = &thread;
  run.threads = block.x * block.y * block.z;
  run.begun = 0;
  uint64_t random = sim_random();
  for (unsigned i = 0; i < run.threads; i++) {           /* shuffles the threads */
    random = random * 6364136223846793005u + 1442695040888963407u;
    const unsigned j = (random >> 32) * (i + 1) >> 32;
    run.order[i] = run.order[j];
    run.order[j] = i;
  }
  unsigned n = 0;                                        /* fibers at a barrier: one for each thread, or the block is wrong */
  while (run.begun < run.threads) {
    begin(&run.fibers[n], at, block, grid);
    n += !run.fibers[n].done;
  }
  while (n) {
    if (n != run.threads) return false;
    const unsigned first = sim_random() % n;
    for (unsigned i = 0; i < run.threads; i++) {
      fiber *f = &run.fibers[first + i < run.threads ? first + i : first + i - run.threads];
      resume(f);
      n -= f->done;
    }
  }
  return true;
}

void sim_barrier() { to_scheduler(); }
