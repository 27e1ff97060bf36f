// jury: normalize | bf16 and warp shuffles
// klineage: launch entry grid=(rows) block=(32)
#include <cuda_bf16.h>

extern "C" __global__ void entry(const __nv_bfloat16 *x, __nv_bfloat16 *y, int rows, int columns, float eps)
{
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    float squares = 0;
    for (int j = threadIdx.x; j < columns; j += 32) {
        const float value = __bfloat162float(x[j]);
        squares += value * value;
    }
    for (int lane = 16; lane; lane /= 2)
        squares += __shfl_xor_sync(0xffffffff, squares, lane);
    const float scale = rsqrtf(squares / columns + eps);
    for (int j = threadIdx.x; j < columns; j += 32)
        y[j] = __float2bfloat16(__bfloat162float(x[j]) * scale);
}
