/* Whether cuDNN has plans for Tycho's convolutions, asked without a device: `make test-plans`.
 *
 * Idea: cuDNN's heuristics and plans can be given a device's properties instead of a device. So the graphs that src/cuda/dnn_graph.c
 * builds, and the choice that it makes among engines, are tried for an H200 wherever cuDNN is installed. Nothing is executed: results stay
 * unproven. Ends with 1 if a convolution of the usual kinds has no plan. */
#include <stdio.h>
#include "../../src/cuda/dnn_graph.c"

/* An H200's, as published; names as cuDNN wants them. */
static const char h200[] = "{\"deviceVer\":900,\"driverVer\":13000,\"cudaDeviceId\":0,\"deviceName\":\"NVIDIA H200\",\"multiProcessorCount\":132,\"warpSize\":32,"
  "\"regsPerBlock\":65536,\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"maxSharedMemoryPerBlock\":49152,"
  "\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
  "\"maxThreadsPerSM\":2048,\"pciDeviceId\":9013,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":150000000000,\"smClockRateKHz\":1980000,"
  "\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560}";

/* What dnn_graph.c needs of the rest, which is never reached here. */
static ty_gpu_flags flags;
static ty_services services = {.flags = &flags};
const ty_services *ty_core = &services;
ty_backend ty_gpus[TY_MAXGPU];
ty_status ty_fail(ty_call *c, const char *fmt, ...) { (void)c; (void)fmt; return TY_ERR; }
ty_status ty_empty(ty_ctx *ctx, const ty_backend *b, const ty_meta *m, ty_tensor **out) { (void)ctx; (void)b; (void)m; (void)out; return TY_ERR; }
void ty_release(ty_tensor *t) { (void)t; }
void ty_count_sync(void) {}
ty_stream *ty_captures(int gpu) { (void)gpu; return NULL; }

static desc plan_for(desc device, desc config, int64_t *workspace) {
  desc plan = NULL;
  int64_t n = 0;
  if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) != CUDNN_STATUS_SUCCESS) return NULL;
  if (cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, workspace) == CUDNN_STATUS_SUCCESS) return plan;
  cudnnBackendDestroyDescriptor(plan);
  return NULL;
}

/* Says what there is for a; whether there is a plan. */
static bool try(desc device, const ty_k_convolution *a, const char *what) {
  static const cudnnBackendHeurMode_t modes[2] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
  graph g = {0};
  desc all = graph_of(&g, NULL, a), plan = NULL;
  char why[200] = "";
  if (g.e != CUDNN_STATUS_SUCCESS) cudnnGetLastErrorString(why, sizeof why);
  for (int m = 0; m < 2 && g.e == CUDNN_STATUS_SUCCESS && !plan; m++) {
    desc found[ENGINES] = {NULL}, heuristic = NULL;
    int64_t n = 0, workspace = 0;
    int usable = 0;
    for (int i = 0; i < ENGINES; i++) cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &found[i]);
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &all) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &modes[m]) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendFinalize(heuristic) == CUDNN_STATUS_SUCCESS)
      cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, ENGINES, &n, found);
    else cudnnGetLastErrorString(why, sizeof why);
    for (int64_t i = 0; i < TY_MIN(n, ENGINES); i++) {
      if (!allowed(found[i], a)) continue;
      usable++;
      if (!plan) plan = plan_for(device, found[i], &workspace);
    }
    if (plan) printf("%-60s %2d engines, %2d of them allowed, workspace %lld%s\n", what, (int)n, usable, (long long)workspace, m ? " (fallback)" : "");
    for (int i = 0; i < ENGINES; i++) cudnnBackendDestroyDescriptor(found[i]);
    if (heuristic) cudnnBackendDestroyDescriptor(heuristic);
  }
  if (!plan) printf("%-60s no plan: %s\n", what, why);
  else cudnnBackendDestroyDescriptor(plan);
  destroy(&g);
  return plan;
}

static void strides_of(int64_t s[4], bool last, int64_t c, int64_t h, int64_t w) {
  const int64_t rows[4] = {c * h * w, h * w, w, 1}, channels[4] = {c * h * w, 1, w * c, c};
  memcpy(s, last ? channels : rows, sizeof rows);
}

int main(void) {
  static const char *const ops[3] = {"conv2d", "its input's gradient", "its weight's gradient"};
  static const int ids[3] = {TY_OP_conv2d, TY_OP_conv2d_backward_input, TY_OP_conv2d_backward_weight};
  static const int64_t shapes[][9] = {   /* n, c, h, w, o, kernel, stride, padding, groups */
    {8, 64, 56, 56, 64, 3, 1, 1, 1}, {8, 3, 224, 224, 64, 7, 2, 3, 1}, {8, 256, 56, 56, 64, 1, 1, 0, 1}, {8, 128, 56, 56, 128, 3, 2, 1, 1}, {8, 64, 28, 28, 64, 3, 1, 1, 64}, {8, 64, 28, 28, 64, 3, 1, 1, 8}};
  desc device = NULL;
  int missing = 0;
  cudnnStatus_t e = cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device);
  if (e == CUDNN_STATUS_SUCCESS) e = cudnnBackendSetAttribute(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, sizeof h200 - 1, h200);
  if (e == CUDNN_STATUS_SUCCESS) e = cudnnBackendFinalize(device);
  if (e != CUDNN_STATUS_SUCCESS) { printf("this cuDNN takes no device's properties: %s\n", cudnnGetErrorString(e)); return 1; }
  for (int op = 0; op < 3; op++)
    for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++)
      for (int dtype = 0; dtype <= TY_F64; dtype++)
        for (int bias = 0; bias <= (op == 0); bias++) {
          const int64_t *s = shapes[i], oh = (s[2] + 2 * s[7] - s[5]) / s[6] + 1, ow = (s[3] + 2 * s[7] - s[5]) / s[6] + 1;
          const bool last = ty_is_half((ty_dtype)dtype);
          char what[120];
          ty_k_convolution a = {.op = ids[op], .dtype = dtype, .n = s[0], .c = s[1], .h = s[2], .w = s[3], .o = s[4], .oh = oh, .ow = ow, .kh = s[5], .kw = s[5], .groups = s[8],
            .stride = {s[6], s[6]}, .padding = {s[7], s[7]}, .dilation = {1, 1}, .bias = bias ? (void *)16 : NULL, .bias_step = 1};
          strides_of(a.xs, last, a.c, a.h, a.w);
          strides_of(a.ws, last, a.c / a.groups, a.kh, a.kw);
          strides_of(a.ys, last, a.o, oh, ow);
          snprintf(what, sizeof what, "%s%s, %s, %lldx%lldx%lldx%lld by %lldx%lldx%lld/%lld groups %lld", ops[op], bias ? " with bias" : "", ty_dtype_names[dtype], (long long)s[0], (long long)s[1],
                   (long long)s[2], (long long)s[3], (long long)s[4], (long long)s[5], (long long)s[5], (long long)s[6], (long long)s[8]);
          missing += !try(device, &a, what);
        }
  printf("%d without a plan\n", missing);
  return missing > 0;
}
