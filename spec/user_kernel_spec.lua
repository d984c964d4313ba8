-- Kernels of the program's own: what the declaration says is what they take. On a real or a simulated GPU.
local tycho = require "tycho"
local helper = require "spec.helper"
local fails = helper.fails

local AXPY = [[
// y += a * x, n elements
extern "C" __global__ void __launch_bounds__(256) axpy(float *__restrict__ y, const float *x, float a, const long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}]]
local SUMS = [[
__device__ double twice(double x) { return 2 * x; }
__global__ void sums(const double *x, double *out, int rows, int cols, bool doubled) {   /* a block for each row */
  __shared__ double part[64];
  double s = 0;
  for (int j = threadIdx.x; j < cols; j += blockDim.x) s += x[blockIdx.x * cols + j];
  part[threadIdx.x] = doubled ? twice(s) : s;
  __syncthreads();
  for (int k = 32; k; k >>= 1) {
    if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}]]

local MASKED = [[
#include <cuda_fp16.h>
__global__ void __launch_bounds__(BLOCK) masked(__half *x, const uint8_t *mask, const int64_t n, uint32_t k);
__launch_bounds__(64) __global__ void masked(__half *x, const uint8_t *mask, const int64_t n, uint32_t k) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
    x[i] = mask[i] ? __float2half(__half2float(x[i]) * k) : __float2half(-INFINITY);
}]]
local BITS = "__global__ void bits(%s__nv_bfloat16 *x, uint64_t n) { if (threadIdx.x < n) x[threadIdx.x] = __float2bfloat16(NAN); }"

describe("kernels of the program's own", function()
  if helper.device == "cpu" then
    it("need a GPU only when they are called", function()
      local k = tycho.cuda.kernel(AXPY, "axpy")
      assert.equal("kernel axpy of 4 parameters", tostring(k))
      fails("argument 1 is on cpu; it must be on a GPU", k, 1, 1, tycho.ones(1), tycho.ones(1), 1, 1)
    end)
    return
  end

  it("work on tensors, in streams, in graphs, in compiled functions", function()
    local n, axpy = 1000, tycho.cuda.kernel(AXPY, "axpy")
    local x, y = tycho.randn(n), tycho.ones(n)
    local version = y:_version()
    axpy(math.ceil(n / 256), 256, y, x, 2, n)
    helper.close(y, x * 2 + 1, nil, 1e-6)
    assert.is_true(y:_version() > version)
    local side = tycho.cuda.Stream()
    side:wait_stream(tycho.cuda.current_stream())
    tycho.cuda.stream(side, function() axpy({4}, {256, 1, 1}, y, x, -2, n) end)
    tycho.cuda.current_stream():wait_stream(side)
    helper.close(y, tycho.ones(n), nil, 1e-6)
    local sums = tycho.cuda.kernel(SUMS, "sums")
    local m, out = tycho.randn(5, 100, {dtype = "float64"}), tycho.empty(5, {dtype = "float64"})
    for _, doubled in ipairs {true, false} do
      sums(5, 64, m, out, 5, 100, doubled)
      helper.close(out, m:sum(2) * (doubled and 2 or 1), nil, 1e-12)
    end
    if os.getenv "TYCHO_CUDA_CACHE" ~= "0" then
      local before = y:clone()
      local g = tycho.cuda.graph(function() axpy(4, 256, y, x, 1, n) end)
      g:replay()
      g:replay()
      helper.close(y, before + x * 2, nil, 1e-5)
    end
    local f = tycho.compile(function(a)
      local r = a * 2
      axpy(4, 256, r, x, 1, n)
      return r
    end)
    for _ = 1, 4 do helper.close(f(y), y * 2 + x, nil, 1e-6) end
    local Axpy = tycho.autograd.Function {
      forward = function(_, a, b)
        local r = a:clone()
        axpy(4, 256, r, b:detach(), 3, n)
        return r
      end,
      backward = function(_, grad) return grad, grad * 3 end}
    local p = x:clone():requires_grad_()
    Axpy(y, p):sum():backward()
    helper.close(p.grad, tycho.full({n}, 3), nil, 0)
    local prof = tycho.profiler.profile(function() axpy(4, 256, y, x, 1, n) end)
    assert.equal("axpy", prof.events[1].name)
  end)

  it("know the types that they may declare, and say on which line they don't compile", function()
    local x, mask = tycho.ones(100):half(), tycho.ones(100, {dtype = "uint8"})
    mask[7] = 0
    tycho.cuda.kernel("#define BLOCK 64\n" .. MASKED, "masked")(1, 64, x, mask, 100, 3)
    local want = tycho.full({100}, 3)
    want[7] = -math.huge
    assert.is_true(x:float():equal(want))
    local b = tycho.ones(4):bfloat16()
    tycho.cuda.kernel(BITS:format "", "bits")(1, 32, b, 3)
    assert.same({true, true, true, false}, b:isnan():totable())
    fails("'const int16_t *unused', must be a number or a pointer", tycho.cuda.kernel, BITS:format "const int16_t *unused, ", "bits")
    local wrong = tycho.cuda.kernel("\n__global__ void wrong(float *x) {\n x[0] = nonsense;\n}", "wrong")
    local ok, e = pcall(wrong, 1, 1, x:float())
    assert.is_false(ok)
    assert.truthy(e:find "wrong[:(]3", e)
  end)

  it("take what they declare, and nothing else", function()
    local k = tycho.cuda.kernel(AXPY, "axpy")
    local x, y = tycho.ones(8), tycho.ones(8)
    fails("axpy: argument 2 is float64; the kernel's parameter is float *", k, 1, 8, y, x:double(), 2, 8)
    fails("axpy: argument 1 must be a tensor (float *), got 3", k, 1, 8, 3, x, 2, 8)
    fails("axpy: argument 2 is on cpu", k, 1, 8, y, x:cpu(), 2, 8)
    fails("axpy: argument 2 of shape 4 isn't contiguous", k, 1, 8, y, x[{ {1, 8, 2} }], 2, 4)
    fails("axpy: argument 3 must be a number (float), got a tensor", k, 1, 8, y, x, x, 8)
    fails("axpy: argument 4 must be a whole number that fits long long, got 0.5", k, 1, 8, y, x, 2, 0.5)
    fails("axpy: 4 arguments are needed after grid and block, got 3", k, 1, 8, y, x, 2)
    fails("axpy: the grid must be a whole number from 1 to 2147483647", k, 0, 8, y, x, 2, 8)
    fails("axpy: a block has at most 1024 threads, got 2048", k, 1, {64, 32}, y, x, 2, 8)
    fails("requires grad, but what a kernel writes has no gradient", k, 1, 8, y:requires_grad_(), x, 2, 8)
    local make = tycho.cuda.kernel
    fails("the source has no __global__ void missing(...)", make, AXPY, "missing")
    fails("f: parameter 1, 'float **x', must be a number or a pointer", make, "__global__ void f(float **x) {}", "f")
    fails("f: parameter 2, 'my_struct s', must be a number or a pointer", make, "__global__ void f(int n, my_struct s) {}", "f")
    fails("give shared memory a fixed size", make, "extern __shared__ float s[]; __global__ void f() {}", "f")
    fails("argument 1 (source) must be a string", make, 3, "f")
    fails("nonsense", make("__global__ void f(float *x) { x[0] = nonsense; }", "f"), 1, 1, x)
    make("__global__ void f(void) {}", "f")(1, 1)
    local first = tycho.zeros(1)
    make("__global__ void a(float *const x) { *x = 7; }", "a")(1, 1, first)      -- the pointer is constant, not what it points to
    assert.equal(7, first:item())
    if tycho.cuda.device_count() > 1 then
      fails("argument 2 is on cuda:1; it must be on cuda:0", k, 1, 8, y:detach(), x:to "cuda:1", 2, 8)
      local there, two = x:to "cuda:1", tycho.ones(8, {device = "cuda:1"})
      k(1, 8, two, there, 2, 8)
      helper.close(two:cpu(), tycho.full({8}, 3):cpu(), nil, 0)
    end
  end)
end)
