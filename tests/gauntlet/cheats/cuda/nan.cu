// gauntlet: rows | 43 | fail correctness mismatch | NaN everywhere
// klineage: launch entry grid=(rows) block=(64)

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = __int_as_float(0x7fc00000);
}
