/* ctc_loss: the forward variables of Graves et al. 2006, and their gradient. Time steps are computed one after another; threads share
 * the sequences.
 *
 * Idea: a step is a few loops over the states of all of a thread's sequences. Results are the last variables and `reached`: each step's
 * variables without the step's own probability (the first step's: with it). Backward weighs by those where a state has come from. */
#include <string.h>
#include "cpu.h"
#include "typed.h"

typedef struct {
  int64_t steps, n, s, from, m;              /* n sequences of s states; this thread has m / s, m states in all, from `from` on */
  const bool *skips;                         /* of this thread's sequences, as are the lengths */
  const int64_t *lengths;
  const char *logs, *grad;
  char *last, *reached, *slopes, *scratch;   /* scratch: 7 m elements */
} paths;

#define LOOPS "align_steps.h"
#include "floats.h"

ty_status ty_cpu_align(ty_call *c) {
  const bool back = c->op->id == TY_OP_ctc_backward;
  ty_tensor *in[5] = {NULL};                 /* logs, skips, lengths; backward: grad before them, reached after */
  ty_status st = ty_contiguous_operands(c, in);
  if (st == TY_OK) {
    const ty_tensor *x = in[back];
    const int64_t n = x->shape[1], s = x->shape[2];
    const int threads = (int)TY_MAX(TY_MIN(ty_threads_for(ty_numel(x) * 4), n), 1);
    char *scratch = ty_scratch((size_t)(7 * n * s + 1) * (size_t)ty_itemsize(x));
    if (!scratch) st = ty_no_memory(c->ctx, c->op->shown);
    #pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int i = 0; i < (st == TY_OK ? threads : 0); i++) {
      const int64_t from = n * i / threads, to = n * (i + 1) / threads;
      const paths w = {.steps = x->shape[0], .n = n, .s = s, .from = from, .m = (to - from) * s,
        .skips = (const bool *)ty_data(in[back + 1]) + from * s, .lengths = (const int64_t *)ty_data(in[back + 2]) + from,
        .logs = ty_data(x), .grad = back ? ty_data(in[0]) : NULL, .last = back ? NULL : ty_data(c->out[0]),
        .reached = back ? ty_data(in[4]) : ty_data(c->out[1]), .slopes = back ? ty_data(c->out[0]) : NULL,
        .scratch = scratch + 7 * from * s * ty_itemsize(x)};
      if (x->dtype == TY_F32) (back ? backward_f32 : forward_f32)(&w);
      else (back ? backward_f64 : forward_f64)(&w);
    }
    ty_scratch_free(scratch);
  }
  for (int i = 0; i < 5; i++) ty_release(in[i]);
  return st;
}
