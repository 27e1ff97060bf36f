// jury: mean | a tree in dynamic shared memory
// klineage: launch entry grid=(rows) block=(THREADS) shared=THREADS * sizeof(float)
#define THREADS 128

extern "C" __global__ void entry(const float *x, float *y, int rows, int columns)
{
    extern __shared__ float parts[];
    float sum = 0;
    for (int j = threadIdx.x; j < columns; j += THREADS)
        sum += x[blockIdx.x * columns + j];
    parts[threadIdx.x] = sum;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = parts[0] / columns;
}
