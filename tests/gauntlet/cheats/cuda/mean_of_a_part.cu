// gauntlet: mean | 32 | fail correctness mismatch | sums a quarter and scales
// klineage: launch entry grid=(rows) block=(32)

extern "C" __global__ void entry(const float *x, float *y, int rows, int columns)
{
    float sum = 0;
    for (int j = 0; j < columns / 4; j++)
        sum += x[blockIdx.x * columns + j];
    y[blockIdx.x] = sum / (columns / 4);
}
