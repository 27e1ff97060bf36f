// gauntlet: rows | 34 | fail correctness mismatch | wrong for any size that is not shown
// klineage: launch entry grid=(rows) block=(64)

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    if (columns != 64 && columns != 13 && columns != 1024)
        alpha = 1.25f;
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
}
