// jury: rows | two kernels with scratch between them
// klineage: scratch middle fp32 (rows, columns)
// klineage: launch scale grid=(cdiv(rows * columns, 128)) block=(128)
// klineage: launch shift grid=(rows) block=(32)

extern "C" __global__ void scale(const float *x, float *middle, int rows, int columns, float alpha)
{
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < rows * columns)
        middle[at] = alpha * x[at];
}

extern "C" __global__ void shift(const float *middle, const float *bias, float *y, int columns)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = middle[blockIdx.x * columns + j] + bias[j];
}
