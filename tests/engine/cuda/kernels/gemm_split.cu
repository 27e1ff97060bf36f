// Two launches: partial sums over parts of k go to scratch, then they are joined.
// klineage: scratch partial fp32 (PARTS, m, n)
// klineage: launch split_kernel grid=(cdiv(n, 16), cdiv(m, 16), PARTS) block=(16, 16) shared=2 * 16 * 16 * sizeof(float)
// klineage: launch join_kernel grid=(cdiv(m * n, 256)) block=(256) args=(partial, y, count=m * n)
#include <cuda_bf16.h>
#include <stdint.h>
constexpr int PARTS = 4;

extern "C" {

__global__ void split_kernel(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, float *partial, int64_t m, int64_t n,
                             int64_t k) {
  extern __shared__ float tiles[];
  float *a = tiles, *b = tiles + 256;
  const int64_t row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  const int64_t other = blockIdx.x * 16 + threadIdx.y, part = (k + PARTS - 1) / PARTS;
  const int64_t begin = blockIdx.z * part, end = min(begin + part, k);
  float sum = 0.0f;
  for (int64_t start = begin; start < end; start += 16) {
    const int64_t depth = start + threadIdx.x;
    a[threadIdx.y * 16 + threadIdx.x] = row < m && depth < end ? __bfloat162float(x[row * k + depth]) : 0.0f;
    b[threadIdx.y * 16 + threadIdx.x] = other < n && depth < end ? __bfloat162float(weight[other * k + depth]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += a[threadIdx.y * 16 + i] * b[threadIdx.x * 16 + i];
    __syncthreads();
  }
  if (row < m && column < n) partial[(blockIdx.z * m + row) * n + column] = sum;
}

__global__ void join_kernel(const float *partial, __nv_bfloat16 *y, int64_t count) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0.0f;
  for (int part = 0; part < PARTS; part++) sum += partial[part * count + i];
  y[i] = __float2bfloat16(sum);
}
}
