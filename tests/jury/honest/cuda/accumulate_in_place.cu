// jury: accumulate | changes its output in place
// klineage: launch entry grid=(cdiv(n, 64)) block=(64)

extern "C" __global__ void entry(const float *__restrict__ x, float *__restrict__ total, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        total[i] += x[i];
}
