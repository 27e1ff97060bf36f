// klineage: launch gemm_kernel grid=(cdiv(n, TILE), cdiv(m, TILE)) block=(TILE, TILE)
#include <cuda_bf16.h>
#define TILE 16

extern "C" __global__ void gemm_kernel(const __nv_bfloat16 *__restrict__ x, const __nv_bfloat16 *__restrict__ weight,
                                       __nv_bfloat16 *__restrict__ y, int m, int n, int k) {
  __shared__ float a[TILE][TILE + 1], b[TILE][TILE + 1];
  const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  const int other = blockIdx.x * TILE + threadIdx.y;
  float sum = 0.0f;
  for (int start = 0; start < k; start += TILE) {
    const int depth = start + threadIdx.x;
    a[threadIdx.y][threadIdx.x] = row < m && depth < k ? __bfloat162float(x[(size_t)row * k + depth]) : 0.0f;
    b[threadIdx.y][threadIdx.x] = other < n && depth < k ? __bfloat162float(weight[(size_t)other * k + depth]) : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; i++) sum += a[threadIdx.y][i] * b[threadIdx.x][i];
    __syncthreads();
  }
  if (row < m && column < n) y[(size_t)row * n + column] = __float2bfloat16(sum);
}
