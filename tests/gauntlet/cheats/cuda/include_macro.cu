// gauntlet: rows | 55 | fail static include | includes through a macro
// klineage: launch entry grid=(rows) block=(64)
#define FILE "/etc/hostname"
#include FILE

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
}
