// y = alpha * x + bias, with x copied by the copy engine where its rows allow it.
// klineage: tensor_map x_map x box=(1, BLOCK)
// klineage: launch scale_kernel grid=(cdiv(columns, BLOCK), rows) block=(BLOCK) when=columns % 4 == 0
// klineage: launch plain_kernel grid=(cdiv(columns, BLOCK), rows) block=(BLOCK) when=columns % 4 != 0
#include <cuda.h>
#include <stdint.h>

constexpr int BLOCK = 64;

extern "C" __global__ void scale_kernel(const __grid_constant__ CUtensorMap x_map, const float *bias, float *y, int columns,
                                        float alpha) {
  __shared__ alignas(128) float tile[BLOCK];
  __shared__ uint64_t barrier;
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(BLOCK * 4) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(tile))),
                 "l"(&x_map), "r"(blockIdx.x * BLOCK), "r"(blockIdx.y), "r"(at)
                 : "memory");
  }
  __syncthreads();
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n@!done bra again;\n}\n" ::"r"(at)
      : "memory");
  const int column = blockIdx.x * BLOCK + threadIdx.x;
  if (column < columns) y[blockIdx.y * columns + column] = alpha * tile[threadIdx.x] + bias[column];
}

extern "C" __global__ void plain_kernel(const float *x, const float *bias, float *y, int columns, float alpha) {
  const int column = blockIdx.x * BLOCK + threadIdx.x;
  if (column < columns) y[blockIdx.y * columns + column] = alpha * x[blockIdx.y * columns + column] + bias[column];
}
