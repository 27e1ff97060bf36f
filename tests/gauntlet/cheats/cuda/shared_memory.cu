// gauntlet: rows | own | fail compile shared_memory | more shared memory than the device has
// klineage: launch entry grid=(rows) block=(64) shared=1048576

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    extern __shared__ float t[];
    t[threadIdx.x] = alpha;
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
}
