// gauntlet: rows | 46 | fail correctness unwritten | a grid without the last row
// klineage: launch entry grid=(rows - 1) block=(64)

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
}
