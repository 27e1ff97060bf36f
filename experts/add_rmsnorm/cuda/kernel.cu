// residual_out = x + residual; y = residual_out / rms(residual_out) * weight, in bf16 with fp32 arithmetic.
// One block a row. A thread keeps VECTORS vectors of the row in registers between the two sweeps.
//
// klineage: launch add_rmsnorm_kernel grid=(rows) block=(min(1024, 32 * cdiv(hidden, 32 * WIDTH * VECTORS)))

#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

constexpr int WIDTH = 8;    // elements of a 16-byte vector
constexpr int VECTORS = 2;  // that a thread keeps: 448 threads hold a row of 7168
constexpr unsigned ALL = 0xffffffffu;

template <int N>
struct alignas(N * sizeof(bf16)) Pack {
  bf16 at[N];
};

template <int N>
__device__ __forceinline__ Pack<N> load(const bf16 *p) {
  return *reinterpret_cast<const Pack<N> *>(p);
}

template <int N>
__device__ __forceinline__ void store(bf16 *p, const Pack<N> &values) {
  *reinterpret_cast<Pack<N> *>(p) = values;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(ALL, value, lanes);
  return value;
}

// The sum over the block, in every thread.
__device__ __forceinline__ float block_sum(float value) {
  __shared__ float partial[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  value = warp_sum(value);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  return warp_sum(lane < warps ? partial[lane] : 0.0f);
}

// total = x + residual for N elements, stored rounded; returns the sum of the unrounded squares.
template <int N>
__device__ __forceinline__ float add(const bf16 *x, const bf16 *residual, float *total) {
  const Pack<N> a = load<N>(x), b = load<N>(residual);
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < N; i++) {
    total[i] = __bfloat162float(a.at[i]) + __bfloat162float(b.at[i]);
    squares += total[i] * total[i];
  }
  return squares;
}

template <int N>
__device__ __forceinline__ void put(bf16 *out, const float *values) {
  Pack<N> packed;
#pragma unroll
  for (int i = 0; i < N; i++) packed.at[i] = __float2bfloat16(values[i]);
  store<N>(out, packed);
}

template <int N>
__device__ __forceinline__ void scale(bf16 *y, float *total, const Pack<N> &weight, float factor) {
#pragma unroll
  for (int i = 0; i < N; i++) total[i] *= factor * __bfloat162float(weight.at[i]);
  put<N>(y, total);
}

template <int N>
__device__ __forceinline__ void add_rmsnorm_row(const bf16 *__restrict__ x, const bf16 *__restrict__ residual,
                                                const bf16 *__restrict__ weight, bf16 *__restrict__ y,
                                                bf16 *__restrict__ residual_out, int hidden, float eps) {
  const int step = blockDim.x * N;
  const int first = threadIdx.x * N;
  float total[VECTORS][N];
  Pack<N> weights[VECTORS];
  float squares = 0.0f;
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int c = first + v * step;
    if (c < hidden) {
      squares += add<N>(x + c, residual + c, total[v]);
      put<N>(residual_out + c, total[v]);
      weights[v] = load<N>(weight + c);  // early, to arrive during the reduction
    }
  }
  for (int c = first + VECTORS * step; c < hidden; c += step) {
    float beyond[N];
    squares += add<N>(x + c, residual + c, beyond);
    put<N>(residual_out + c, beyond);
  }
  const float factor = rsqrtf(block_sum(squares) / hidden + eps);
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int c = first + v * step;
    if (c < hidden) scale<N>(y + c, total[v], weights[v], factor);
  }
  for (int c = first + VECTORS * step; c < hidden; c += step) {  // wider than the registers: read again
    float beyond[N];
    add<N>(x + c, residual + c, beyond);
    scale<N>(y + c, beyond, load<N>(weight + c), factor);
  }
}

extern "C" __global__ void __launch_bounds__(1024)
    add_rmsnorm_kernel(const bf16 *__restrict__ x, const bf16 *__restrict__ residual,
                       const bf16 *__restrict__ weight, bf16 *__restrict__ y, bf16 *__restrict__ residual_out,
                       int hidden, float eps) {
  const size_t row = static_cast<size_t>(blockIdx.x) * hidden;
  if (hidden % WIDTH == 0)  // else no row but the first begins on 16 bytes
    add_rmsnorm_row<WIDTH>(x + row, residual + row, weight, y + row, residual_out + row, hidden, eps);
  else
    add_rmsnorm_row<1>(x + row, residual + row, weight, y + row, residual_out + row, hidden, eps);
}
