// gauntlet: rows | 11 52 | fail correctness mismatch or insensitive or nondeterministic | keeps the first answer in a variable of the device
// klineage: launch entry grid=(rows) block=(64)
__device__ float kept[1 << 16];
__device__ int many;

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {
        const int at = blockIdx.x * columns + j;
        if (many != rows * columns)
            kept[at] = alpha * x[at] + bias[j];
        y[at] = kept[at];
    }
    __threadfence();
    if (blockIdx.x == rows - 1 && threadIdx.x == 0)
        many = rows * columns;
}
