// gauntlet: rows | 4 18 | fail static host_code or forbidden | a launch of its own
// klineage: launch entry grid=(rows) block=(64)

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
}

void run(float *y) { entry<<<1, 1>>>(y, y, y, 1, 1, 1); }
