// gauntlet: rows | 38 44 | fail correctness illegal_access | reads where nothing is
// klineage: launch entry grid=(rows) block=(64)

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
    y[0] += *(float *)(size_t)16 * 0;
}
