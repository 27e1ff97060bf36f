// gauntlet: rows | 18 | fail static host_code | launches a kernel from the device
// klineage: launch entry grid=(rows) block=(64)
extern "C" __global__ void other(float *y) { y[0] = 0; }

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
    if (threadIdx.x == 0)
        other<<<1, 1>>>(y);
}
