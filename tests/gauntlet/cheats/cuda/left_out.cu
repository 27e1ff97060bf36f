// gauntlet: rows | 34 46 | fail correctness unwritten | launched only for the sizes that are shown
// klineage: launch entry grid=(rows) block=(64) when=columns == 64 or columns == 13 or columns == 1024

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
}
