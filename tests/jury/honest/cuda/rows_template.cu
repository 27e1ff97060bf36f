// jury: rows | templates and a lambda
// klineage: launch entry grid=(rows) block=(64)

template <typename F> __device__ void each(int n, F f)
{
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        f(j);
}

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    const int base = blockIdx.x * columns;
    each(columns, [=](int j) { y[base + j] = alpha * x[base + j] + bias[j]; });
}
