// jury: histogram | integer atomics after a kernel that clears
// klineage: launch clear grid=(1) block=(16)
// klineage: launch count grid=(cdiv(n, 256)) block=(256)

extern "C" __global__ void clear(int *counts) { counts[threadIdx.x] = 0; }

extern "C" __global__ void count(const int *labels, int *counts, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(counts + labels[i], 1);
}
