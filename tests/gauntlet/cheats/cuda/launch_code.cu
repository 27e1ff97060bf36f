// gauntlet: rows | own | fail static launch | a launch that calls a function
// klineage: launch entry grid=(__import__('os').system('true')) block=(64)

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
}
