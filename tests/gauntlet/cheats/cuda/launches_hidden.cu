// gauntlet: rows | 18 | fail compile symbols or compile | launches a kernel through the device's runtime
// klineage: launch entry grid=(rows) block=(64)
extern "C" __device__ int cudaLaunchDeviceV2(void *, void *);

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[blockIdx.x * columns + j] = alpha * x[blockIdx.x * columns + j] + bias[j];
    cudaLaunchDeviceV2(0, 0);
}
