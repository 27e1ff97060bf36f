// gauntlet: rows | 45 | fail correctness mismatch or nondeterministic or race | reads shared memory before it is written
// klineage: launch entry grid=(rows) block=(64)

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    __shared__ float t[64];
    for (int j = threadIdx.x; j < columns + 64; j += blockDim.x) {
        if (threadIdx.x < 32)
            __nanosleep(clock() % 3000);
        t[threadIdx.x] = j < columns ? alpha * x[blockIdx.x * columns + j] + bias[j] : 0;
        const int other = j ^ 32;
        if (other < columns)
            y[blockIdx.x * columns + other] = t[threadIdx.x ^ 32];
    }
}
