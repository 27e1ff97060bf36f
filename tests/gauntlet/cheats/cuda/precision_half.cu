// gauntlet: rows | 31 | fail correctness mismatch | fp16 for fp32
// klineage: launch entry grid=(rows) block=(64)
#include <cuda_fp16.h>

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = __half2float(__float2half(alpha * x[blockIdx.x * columns + j])) + bias[j];
}
