// gauntlet: histogram | 45 | fail correctness mismatch or nondeterministic | counts with loads and stores instead of atomics
// klineage: launch entry grid=(1) block=(256)

extern "C" __global__ void entry(const int *labels, int *counts, int n)
{
    if (threadIdx.x < 16)
        counts[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        counts[labels[i]] += 1;
}
