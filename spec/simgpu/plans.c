/* `make test-plans`: whether cuDNN has plans for Tycho's convolutions and attention, without a device.
 *
 * Idea: cuDNN's heuristics and plans can take a device's properties instead of a device. So, wherever cuDNN is installed, this tries for an
 * H200 the graphs that src/cuda/dnn_conv.c and dnn_attention.c describe, and dnn_plan.c's choice among engines; ty_dnn_run here replaces
 * the one that executes. Attention's engines compile kernels, which can't be loaded without a driver: there an engine that takes the graph
 * is enough. Each plan is also made again from the words that are saved of it (timed_plans.h). Nothing is executed: results stay unproven.
 * Ends with 1 if something has no plan. */
#define _GNU_SOURCE                    /* as in dnn_plan.c, which is included */
#include <stdio.h>
#define ty_dnn_run run_on_device
#include "../../src/cuda/dnn_plan.c"
#undef ty_dnn_run

/* An H200's properties, as published, under cuDNN's names. */
static const char h200[] =
  "{\"deviceVer\":900,\"driverVer\":13000,\"cudaDeviceId\":0,\"deviceName\":\"NVIDIA H200\","
  "\"multiProcessorCount\":132,\"warpSize\":32,\"regsPerBlock\":65536,\"maxGridSize\":[2147483647,65535,65535],"
  "\"maxBlockSize\":[1024,1024,64],\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
  "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
  "\"maxThreadsPerSM\":2048,\"pciDeviceId\":9013,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
  "\"totalGlobalMem\":150000000000,\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560}";

/* What the included files need to link; never reached here. */
static ty_gpu_flags flags;
static ty_services services = {.flags = &flags};
const ty_services *ty_core = &services;
ty_backend ty_gpus[TY_MAXGPU];
ty_status ty_error(ty_ctx *ctx, const char *fmt, ...) { (void)ctx; (void)fmt; return TY_ERR; }
ty_status ty_no_memory(ty_ctx *ctx, const char *who) { (void)ctx; (void)who; return TY_OOM; }
ty_status ty_fail(ty_call *c, const char *fmt, ...) { (void)c; (void)fmt; return TY_ERR; }
static ty_storage memory = {.data = (void *)256};
static ty_tensor room = {.storage = &memory};
ty_status ty_empty(ty_ctx *ctx, const ty_backend *b, const ty_meta *m, ty_tensor **out) {
  (void)ctx;
  (void)b;
  (void)m;
  *out = &room;
  return TY_OK;
}
ty_status ty_cuda_new(ty_call *c, int gpu, ty_dtype d, int ndim, const int64_t *shape, ty_tensor **out) {
  (void)c; (void)gpu; (void)d; (void)ndim; (void)shape;
  *out = &room;
  return TY_OK;
}
ty_status ty_give(ty_call *c, int gpu, const ty_k_attention *a, cudaStream_t s, ty_given *x) {
  (void)c; (void)gpu; (void)a; (void)s; (void)x;
  return TY_OK;
}
void ty_given_end(ty_given *x) { (void)x; }
ty_status ty_cuda_launched(ty_call *c, int gpu, cudaError_t e) { (void)c; (void)gpu; (void)e; return TY_OK; }
int64_t ty_numel(const ty_tensor *t) { (void)t; return 0; }
void ty_release(ty_tensor *t) { (void)t; }
cudaError_t ty_cuda_use(int gpu) { (void)gpu; return cudaSuccess; }
ty_stream *ty_captures(int gpu) { (void)gpu; return NULL; }
bool ty_ever_captured(void) { return false; }
void ty_cuda_count_sync(void) {}
cudaError_t ty_cuda_wait(bool insist) { return (void)insist, cudaDeviceSynchronize(); }
enum cudaStreamCaptureMode ty_capture_mode(enum cudaStreamCaptureMode mode) { return mode; }

static target device;
static char what_for[140];
static bool again(ty_desc all, ty_desc config, int64_t workspace) {
  int64_t saved[TY_PLAN_WORDS], room = -1;
  const int n = saved_of(config, saved);
  ty_desc plan = n ? plan_again(&device, all, saved, n, &room) : NULL;
  if (plan) cudnnBackendDestroyDescriptor(plan);
  return plan && room == workspace;
}
static bool compiles;            /* making a plan compiles its kernels */
static int missing;

/* Prints which engines and plans there are for the graph. */
ty_status ty_dnn_run(ty_call *c, int gpu, const ty_dnn_key *k, ty_dnn_describe describe, const void *what,
  ty_dnn_pack *p, ty_stream *s, bool *taken) {
  ty_dnn_graph g = {0};
  char why[200] = "";
  bool good = false;
  (void)c; (void)gpu; (void)k; (void)s;
  describe(&g, what);
  ty_desc all = whole(&g, NULL);
  *taken = true;
  if (g.e != CUDNN_STATUS_SUCCESS) cudnnGetLastErrorString(why, sizeof why);
  for (int m = 0; m < 2 && g.e == CUDNN_STATUS_SUCCESS && !good; m++) {
    ty_desc found[ENGINES], plan = NULL;
    int64_t workspace = 0;
    int usable = 0;
    const int n = engines_of(&device, all, modes[m], found);
    if (n == 0) cudnnGetLastErrorString(why, sizeof why);
    for (int i = 0; i < n; i++) {
      if (!allowed(found[i], p->dtype)) continue;
      usable++;
      if (plan || compiles || !(plan = plan_of(&device, found[i], &workspace)) || again(all, found[i], workspace)) continue;
      printf("%-75s isn't the same plan from what is saved of it\n", what_for);
      missing++;
    }
    good = plan || (compiles && usable);
    if (good && compiles) printf("%-75s %2d engines take it, %2d of them allowed\n", what_for, n, usable);
    else if (good)
      printf("%-75s %2d engines, %2d of them allowed, workspace %lld%s\n", what_for, n, usable, (long long)workspace,
        m ? " (fallback)" : "");
    if (plan) cudnnBackendDestroyDescriptor(plan);
    for (int i = 0; i < n; i++) cudnnBackendDestroyDescriptor(found[i]);
  }
  if (!good) printf("%-75s no plan: %s\n", what_for, why);
  missing += !good;
  destroy(&g);
  return TY_OK;
}

static void strides_of(int64_t s[4], bool last, int64_t c, int64_t h, int64_t w) {
  const int64_t rows[4] = {c * h * w, h * w, w, 1}, channels[4] = {c * h * w, 1, w * c, c};
  memcpy(s, last ? channels : rows, sizeof rows);
}

static void convolutions(void) {
  static const char *const ops[3] = {"conv2d", "its input's gradient", "its weight's gradient"};
  static const int ids[3] = {TY_OP_conv2d, TY_OP_conv2d_backward_input, TY_OP_conv2d_backward_weight};
  static const int64_t shapes[][9] = {   /* n, c, h, w, o, kernel, stride, padding, groups */
    {8, 64, 56, 56, 64, 3, 1, 1, 1}, {8, 3, 224, 224, 64, 7, 2, 3, 1}, {8, 256, 56, 56, 64, 1, 1, 0, 1},
    {8, 128, 56, 56, 128, 3, 2, 1, 1}, {8, 64, 28, 28, 64, 3, 1, 1, 64}, {8, 64, 28, 28, 64, 3, 1, 1, 8}};
  bool taken;
  for (int op = 0; op < 3; op++)
    for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++)
      for (int dtype = 0; dtype <= TY_F64; dtype++)
        for (int bias = 0; bias <= (op == 0); bias++) {
          const int64_t *s = shapes[i], oh = (s[2] + 2 * s[7] - s[5]) / s[6] + 1, ow = (s[3] + 2 * s[7] - s[5]) / s[6] + 1;
          const bool last = ty_is_16bit((ty_dtype)dtype);
          ty_k_convolution a = {.op = ids[op], .dtype = dtype, .n = s[0], .c = s[1], .h = s[2], .w = s[3], .o = s[4],
            .oh = oh, .ow = ow, .kh = s[5], .kw = s[5], .groups = s[8], .stride = {s[6], s[6]}, .padding = {s[7], s[7]},
            .dilation = {1, 1}, .bias = bias ? (void *)16 : NULL};
          strides_of(a.xs, last, a.c, a.h, a.w);
          strides_of(a.ws, last, a.c / a.groups, a.kh, a.kw);
          strides_of(a.ys, last, a.o, oh, ow);
          snprintf(what_for, sizeof what_for, "%s%s, %s, %lldx%lldx%lldx%lld by %lldx%lldx%lld/%lld groups %lld",
                   ops[op], bias ? " with bias" : "", ty_dtype_names[dtype], (long long)s[0], (long long)s[1],
                   (long long)s[2], (long long)s[3], (long long)s[4], (long long)s[5], (long long)s[5], (long long)s[6],
                   (long long)s[8]);
          ty_dnn_convolve(NULL, 0, &a, NULL, &taken);
        }
}

static void attention(void) {
  ty_ctx ctx = {.grad_enabled = true};
  ty_call call = {.ctx = &ctx};
  ty_stream stream = {0};
  for (int back = 0; back < 2; back++)
    for (int dtype = TY_F16; dtype <= TY_BF16; dtype++)
      for (int64_t d = 64; d <= 256; d *= 2)
        for (int kind = 0; kind < 5; kind++)
          for (int64_t length = 1001; length <= 1024; length += 23) {
            /* kinds: not causal, causal; then masks: of padding, of each score, one for all batches and heads */
            const int causal = kind == 1, masked = kind < 2 ? 0 : kind - 1;
            const ty_k_heads padding = {(void *)16, {length, 0, 0, 1}};
            const ty_k_heads whole = {(void *)16, {16 * length * length, length * length, length, 1}};
            const ty_k_heads shared = {(void *)16, {0, 0, length, 1}};
            const ty_k_heads rows = {(void *)16, {length * 16 * d, d, 16 * d, 1}};   /* (N,L,H,D), as from a projection */
            ty_k_attention a = {.dtype = dtype, .causal = causal, .heads = 4 * 16, .h = 16, .lq = length, .lk = length,
              .d = d, .dv = d, .scale = 0.125, .q = rows, .k = rows, .v = rows, .o = rows, .lse = (void *)16};
            bool taken = false;
            if (masked) a.mask = masked == 1 ? padding : masked == 2 ? whole : shared;
            if (back) { a.g = a.dq = a.dk = a.dvalue = rows; }
            snprintf(what_for, sizeof what_for, "attention%s, %s, 4x16x%lldx%lld%s%s", back ? "'s gradients" : "",
              ty_dtype_names[dtype], (long long)length, (long long)d, causal ? ", causal" : "",
              masked == 1 ? ", mask of padding" : masked == 2 ? ", mask" : masked ? ", one mask" : "");
            ty_dnn_attend(&call, 0, &a, &stream, &taken);
            if (!taken) { printf("%s isn't asked for\n", what_for); missing++; }
          }
}

int main(void) {
  cudnnStatus_t e = cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device.properties);
  if (e == CUDNN_STATUS_SUCCESS)
    e = cudnnBackendSetAttribute(device.properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
      sizeof h200 - 1, h200);
  if (e == CUDNN_STATUS_SUCCESS) e = cudnnBackendFinalize(device.properties);
  if (e != CUDNN_STATUS_SUCCESS) { printf("this cuDNN takes no device's properties: %s\n", cudnnGetErrorString(e)); return 1; }
  convolutions();
  compiles = true;
  attention();
  printf("%d without a plan\n", missing);
  return missing > 0;
}
