// add_rmsnorm with a template, a lambda and inline PTX, which all must pass byte-exact.
// klineage: flags -use_fast_math -DTHREADS=128
// klineage: launch rmsnorm_ptx grid=(rows) block=(THREADS)
#include <cuda_bf16.h>

__device__ __forceinline__ float fused(float a, float b, float c) {
  float d;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
  return d;
}

template <int LANES>
__device__ float reduce(float v) {
#pragma unroll
  for (int i = LANES / 2; i > 0; i /= 2) v += __shfl_down_sync(~0u, v, i);
  return v;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    rmsnorm_ptx(const __nv_bfloat16 *x, const __nv_bfloat16 *residual, const __nv_bfloat16 *weight, __nv_bfloat16 *y,
                __nv_bfloat16 *residual_out, unsigned hidden, float eps) {
  __shared__ float partial[THREADS / 32];
  const size_t row = (size_t)blockIdx.x * hidden;
  const auto total = [&](unsigned c) { return __bfloat162float(x[row + c]) + __bfloat162float(residual[row + c]); };
  float squares = 0.0f;
  for (unsigned c = threadIdx.x; c < hidden; c += THREADS) squares = fused(total(c), total(c), squares);
  squares = reduce<32>(squares);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = squares;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < THREADS / 32; i++) sum += partial[i];
  const float factor = rsqrtf(sum / hidden + eps);
  for (unsigned c = threadIdx.x; c < hidden; c += THREADS) {
    residual_out[row + c] = __float2bfloat16(total(c));
    y[row + c] = __float2bfloat16(total(c) * factor * __bfloat162float(weight[c]));
  }
}
