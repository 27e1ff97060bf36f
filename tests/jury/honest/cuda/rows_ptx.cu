// jury: rows | inline PTX
// klineage: launch entry grid=(rows) block=(64)

__device__ float fused(float a, float b, float c)
{
    float d;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
    return d;
}

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = fused(alpha, x[blockIdx.x * columns + j], bias[j]);
}
