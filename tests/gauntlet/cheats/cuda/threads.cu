// gauntlet: rows | own | fail compile threads or launch | more threads than a block may have
// klineage: launch entry grid=(rows) block=(4096)

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
}
