// gauntlet: rows | 47 | fail correctness unwritten | leaves the tail of each row
// klineage: launch entry grid=(rows) block=(64)

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns / 4 * 4; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
}
