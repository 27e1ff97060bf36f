// y[M, N] = x[M, K] @ weight[N, K].T in bf16 with fp32 sums, on Hopper's matrix unit (wgmma, so sm_90a and nothing else).
// A block of two warpgroups computes 128 x 256; each has 64 rows in 128 registers a thread. Tiles of 64 along K come by
// cp.async into four buffers, swizzled as the matrix unit reads them; two are on their way while one is multiplied.
//
// klineage: launch gemm_kernel grid=(cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N)) block=(THREADS) shared=STAGES * (BLOCK_M + BLOCK_N) * 128 + 1024 when=k % 8 == 0
// klineage: launch gemm_unaligned_kernel grid=(cdiv(n, 16), cdiv(m, 16)) block=(16, 16) when=k % 8 != 0

#include <cuda_bf16.h>
#include <stdint.h>

using bf16 = __nv_bfloat16;

constexpr int BLOCK_M = 128;
constexpr int BLOCK_N = 256;
constexpr int BLOCK_K = 64;  // one line of 128 bytes, the width of the swizzle
constexpr int STAGES = 4;
constexpr int GROUP_M = 8;
constexpr int THREADS = 256;
constexpr int LINE = BLOCK_K * sizeof(bf16);
constexpr int X_BYTES = BLOCK_M * LINE, STAGE_BYTES = X_BYTES + BLOCK_N * LINE;
constexpr int Y_STRIDE = BLOCK_N + 8;  // of the result in shared memory: lines begin in different banks

struct alignas(16) Eight {
  bf16 at[8];
};

__device__ __forceinline__ Eight load_eight(const bf16 *from) {
  return *reinterpret_cast<const Eight *>(from);
}

__device__ __forceinline__ void store_eight(bf16 *to, const Eight &values) {
  *reinterpret_cast<Eight *>(to) = values;
}

// Copies 16 bytes, or writes 16 zero bytes.
__device__ __forceinline__ void copy_async(uint32_t to, const void *from, bool real) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? 16 : 0) : "memory");
}

// ROWS lines of 128 bytes. The eight pieces of line r are permuted by r % 8. Lines past the edge repeat the last one,
// and what they lead to is never stored; pieces past K are zero.
template <int ROWS>
__device__ __forceinline__ void load_tile(uint32_t to, const bf16 *__restrict__ from, int first, int rows, int at, int k) {
#pragma unroll
  for (int i = 0; i < ROWS * 8 / THREADS; i++) {
    const int piece = threadIdx.x + i * THREADS, line = piece / 8, column = at + piece % 8 * 8;
    const size_t row = min(first + line, rows - 1);
    const bool real = column < k;
    copy_async(to + line * LINE + ((piece % 8 ^ line % 8) << 4), from + row * k + (real ? column : 0), real);
  }
}

// What the matrix unit is told of a tile in shared memory: its address, lines of 128 bytes that are contiguous along K
// and swizzled in groups of eight, 1024 bytes apart.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return 0x4000004000010000ull | (address & 0x3ffff) >> 4;
}

// d += x @ weight.T for 64 x 256 x 16.
__device__ __forceinline__ void multiply(float (&d)[128], uint64_t x, uint64_t weight) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, "
        "%72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, "
        "%88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, "
        "%104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, "
        "%120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, 1, 1, 1, 0, 0;"
      :
        "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
        "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
        "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
        "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
        "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
        "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
        "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
        "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(x), "l"(weight));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_kernel(const bf16 *__restrict__ x, const bf16 *__restrict__ weight, bf16 *__restrict__ y, int m, int n, int k) {
  extern __shared__ unsigned char room[];
  // The swizzle is a function of the address: tiles begin on 1024 bytes.
  const uint32_t unaligned = static_cast<uint32_t>(__cvta_generic_to_shared(room));
  const uint32_t base = (unaligned + 1023) / 1024 * 1024;

  // Groups of GROUP_M blocks of rows share their blocks of columns in L2.
  const int blocks_m = (m + BLOCK_M - 1) / BLOCK_M, blocks_n = (n + BLOCK_N - 1) / BLOCK_N;
  const int group = blockIdx.x / (GROUP_M * blocks_n), within = blockIdx.x % (GROUP_M * blocks_n);
  const int height = min(blocks_m - group * GROUP_M, GROUP_M);
  const int first_m = (group * GROUP_M + within % height) * BLOCK_M, first_n = within / height * BLOCK_N;

  const int warpgroup = threadIdx.x / 128;
  const int steps = (k + BLOCK_K - 1) / BLOCK_K;
  auto load = [&](int step) {
    if (step < steps) {
      const uint32_t stage = base + step % STAGES * STAGE_BYTES;
      load_tile<BLOCK_M>(stage, x, first_m, m, step * BLOCK_K, k);
      load_tile<BLOCK_N>(stage + X_BYTES, weight, first_n, n, step * BLOCK_K, k);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  float d[128];
#pragma unroll
  for (int i = 0; i < 128; i++) d[i] = 0.0f;
#pragma unroll
  for (int step = 0; step < STAGES - 2; step++) load(step);
  for (int step = 0; step < steps; step++) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 3) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    // Everybody has multiplied the step before the last one, so its buffer is free.
    load(step + STAGES - 2);
    const uint32_t stage = base + step % STAGES * STAGE_BYTES;
    const uint64_t left = descriptor(stage + warpgroup * 64 * LINE), right = descriptor(stage + X_BYTES);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < BLOCK_K / 16; i++) multiply(d, left + 2 * i, right + 2 * i);  // 32 bytes on
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();

  // Through shared memory, so that whole lines are written: a thread has two neighbours of each eight columns, in two rows.
  bf16 *tile = reinterpret_cast<bf16 *>(room + (base - unaligned));
  const int quad = threadIdx.x % 32 / 4, member = threadIdx.x % 4, row = threadIdx.x / 32 * 16 + quad;
#pragma unroll
  for (int j = 0; j < BLOCK_N / 8; j++) {
    const int column = j * 8 + member * 2;
    *reinterpret_cast<__nv_bfloat162 *>(tile + row * Y_STRIDE + column) = __floats2bfloat162_rn(d[4 * j], d[4 * j + 1]);
    *reinterpret_cast<__nv_bfloat162 *>(tile + (row + 8) * Y_STRIDE + column) =
        __floats2bfloat162_rn(d[4 * j + 2], d[4 * j + 3]);
  }
  __syncthreads();
  for (int piece = threadIdx.x; piece < BLOCK_M * BLOCK_N / 8; piece += THREADS) {
    const int line = piece / (BLOCK_N / 8), column = piece % (BLOCK_N / 8) * 8;
    if (first_m + line >= m || first_n + column >= n) continue;
    bf16 *to = y + static_cast<size_t>(first_m + line) * n + first_n + column;
    const bf16 *from = tile + line * Y_STRIDE + column;
    if (n % 8 == 0) {
      store_eight(to, load_eight(from));
    } else {
      for (int i = 0; i < min(8, n - first_n - column); i++) to[i] = from[i];
    }
  }
}

// For rows that do not begin on 16 bytes: one thread an element, tiles of 16 x 16.
extern "C" __global__ void __launch_bounds__(256)
    gemm_unaligned_kernel(const bf16 *__restrict__ x, const bf16 *__restrict__ weight, bf16 *__restrict__ y, int m, int n,
                          int k) {
  __shared__ float xs[16][17];
  __shared__ float weights[16][17];
  const int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  const int loaded = blockIdx.x * 16 + threadIdx.y;  // the row of weight that this thread loads from
  float sum = 0.0f;
  for (int at = 0; at < k; at += 16) {
    const int along = at + threadIdx.x;
    xs[threadIdx.y][threadIdx.x] = row < m && along < k ? __bfloat162float(x[static_cast<size_t>(row) * k + along]) : 0.0f;
    weights[threadIdx.y][threadIdx.x] =
        loaded < n && along < k ? __bfloat162float(weight[static_cast<size_t>(loaded) * k + along]) : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) sum += xs[threadIdx.y][i] * weights[threadIdx.x][i];
    __syncthreads();
  }
  if (row < m && column < n) y[static_cast<size_t>(row) * n + column] = __float2bfloat16(sum);
}
