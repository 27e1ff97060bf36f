// NHWC convolution in fp16 with fp32 sums on Hopper's matrix unit (wgmma, so sm_90a and nothing else): 3 x 3, 64 channels.
// A warpgroup computes 8 x 8 pixels by 128 filters. The copy engine brings the 10 x 10 pixels that these need once, with zeros
// around the image, and each of the nine taps is a descriptor that begins some lines further on: nothing is unfolded, and
// nothing is loaded twice. Three warpgroups of a block share the filter, whose taps are all under way from the start. Each begins
// a tap later than the one before, so that it stores its results while the next multiplies.
//
// klineage: tensor_map x_map x box=(1, PATCH, PATCH, CHANNELS) swizzle=128
// klineage: tensor_map weight_map weight box=(CHANNELS, 64) swizzle=128
// klineage: launch conv2d_kernel grid=(cdiv(batch * cdiv(height, SIDE) * cdiv(width, SIDE), GROUPS), filters / FILTERS) block=(THREADS) shared=ROOM when=kernel == 3 and channels == CHANNELS and filters % FILTERS == 0
// klineage: launch conv2d_any_kernel grid=(cdiv(filters, 32), width, batch * height) block=(32) when=kernel != 3 or channels != CHANNELS or filters % FILTERS != 0

#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

constexpr int CHANNELS = 64;  // one line of 128 bytes a pixel, the width of the swizzle
constexpr int FILTERS = 128;
constexpr int TAPS = 9;
constexpr int SIDE = 8;
constexpr int PATCH = 10;  // SIDE and one pixel on each side
constexpr int GROUPS = 3;  // warpgroups
constexpr int THREADS = 384;
constexpr int LINE = 128;
constexpr int AHEAD = 9;  // so many lines of the filter does each block first ask L2 for

constexpr int PATCH_BYTES = PATCH * PATCH * LINE, PATCH_ROOM = 13312;  // patches begin on 1024 bytes, as the swizzle does
constexpr int HALF = CHANNELS * LINE, TAP = 2 * HALF;                  // filters 0 to 63, then 64 to 127
constexpr int WEIGHTS = GROUPS * PATCH_ROOM, BARRIERS = WEIGHTS + TAPS * TAP;
constexpr int FULL_PATCH = BARRIERS, FULL_TAP = BARRIERS + 8 * GROUPS;  // eight bytes each
constexpr int ROOM = BARRIERS + 128 + 1024;

__device__ __forceinline__ void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// What was initialized is there for the copy engine, too.
__device__ __forceinline__ void barriers_ready() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ void prefetch_map(const CUtensorMap *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// 128 bytes into L2.
__device__ __forceinline__ void prefetch_line(const half *from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

// Arrives, and lets the phase last until so many bytes have been copied.
__device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Waits until the phase of this parity is over.
__device__ __forceinline__ void barrier_wait(uint32_t barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(barrier), "r"(parity) : "memory");
}

// A patch of pixels that begins here, which may be outside of the image: there are zeros.
__device__ __forceinline__ void copy_patch(uint32_t to, const CUtensorMap *map, int column, int row, int image, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {0, %2, %3, %4}], [%5];" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(image), "r"(barrier)
      : "memory");
}

// 64 filters of one tap.
__device__ __forceinline__ void copy_weights(uint32_t to, const CUtensorMap *map, int filter, int row, uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                   to),
               "l"(map), "r"(filter), "r"(row), "r"(barrier)
               : "memory");
}

__device__ __forceinline__ void multiply_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void multiply_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most PENDING groups of products are on their way. The registers of d are not read before.
template <int PENDING, int COUNT>
__device__ __forceinline__ void multiply_wait(float (&d)[COUNT]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
#pragma unroll
  for (int i = 0; i < COUNT; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// Lines of 128 bytes, a pixel each: eight of a row of the tile, then eight of the next, which are PATCH lines on.
__device__ __forceinline__ uint64_t pixels_at(uint32_t address) {
  return 0x4000000000010000ull | static_cast<uint64_t>(PATCH * LINE >> 4) << 32 | (address & 0x3ffff) >> 4;
}

// Lines of 128 bytes, 64 filters of a channel each; the next 64 filters are HALF bytes on.
__device__ __forceinline__ uint64_t weights_at(uint32_t address) {
  return 0x4000004000000000ull | static_cast<uint64_t>(HALF >> 4) << 16 | (address & 0x3ffff) >> 4;
}

// d += pixels @ weights for 64 pixels, 128 filters and 16 channels.
__device__ __forceinline__ void multiply_tap(float (&d)[64], uint64_t pixels, uint64_t weights) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, 1, 1, 1, 0, 1;\n"
      :
      "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
      "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
      "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
      "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
      "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
      "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
      "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(pixels), "l"(weights));
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t *>(&both);
}

// Eight filters of a pixel, two in a word.
__device__ __forceinline__ void store_eight(uint32_t *to, uint4 values) {
  *reinterpret_cast<uint4 *>(to) = values;
}

// An approximate quotient, put right: sooner there than an exact one, and a block has to wait for it.
// It is right for numbers below 2^22: there the approximation, within two units of its last place, is off by less than one.
__device__ __forceinline__ int quotient(int number, int by) {
  const int found = static_cast<int>(__fdividef(static_cast<float>(number), static_cast<float>(by)));
  const int rest = number - found * by;
  return rest < 0 ? found - 1 : rest >= by ? found + 1 : found;
}

// Where the tile of this number is.
struct Place {
  int image, row, column;
};

__device__ __forceinline__ Place place_of(int tile, int height, int width) {
  const int across = (width + SIDE - 1) / SIDE, down = (height + SIDE - 1) / SIDE;
  const int row = quotient(tile, across), image = quotient(row, down);
  return {image, (row - image * down) * SIDE, (tile - row * across) * SIDE};
}

// Four lanes have two neighbours each of four groups of eight: afterwards each has one group. x[i] is of group i.
__device__ __forceinline__ uint4 gather(const uint32_t *x, int member) {
  const bool odd = member & 1, high = member & 2;
  const uint32_t a = __shfl_xor_sync(~0u, odd ? x[0] : x[1], 1);
  const uint32_t b = __shfl_xor_sync(~0u, odd ? x[2] : x[3], 1);
  const uint32_t y[4] = {odd ? a : x[0], odd ? x[1] : a, odd ? b : x[2], odd ? x[3] : b};
  const uint32_t c = __shfl_xor_sync(~0u, high ? y[0] : y[2], 2);
  const uint32_t d = __shfl_xor_sync(~0u, high ? y[1] : y[3], 2);
  return high ? make_uint4(c, d, y[2], y[3]) : make_uint4(y[0], y[1], c, d);
}

// Named barriers of two warpgroups: one goes on, the other waits for it.
__device__ __forceinline__ void turn_give(int of) { asm volatile("bar.arrive %0, 256;" ::"r"(1 + of) : "memory"); }

__device__ __forceinline__ void turn_wait(int of) { asm volatile("bar.sync %0, 256;" ::"r"(1 + of) : "memory"); }

// The products of the tap before are done, those of this one on their way.
__device__ __forceinline__ void let_next_begin(int warpgroup) {
  asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  if (warpgroup < GROUPS - 1) turn_give(warpgroup);
}

// The nine taps of a tile, each as soon as it has come.
__device__ __forceinline__ void multiply_taps(float (&sums)[64], uint32_t base, int warpgroup) {
  const uint32_t patch = base + warpgroup * PATCH_ROOM;
  if (warpgroup > 0) turn_wait(warpgroup - 1);
#pragma unroll
  for (int tap = 0; tap < TAPS; tap++) {
    barrier_wait(base + FULL_TAP + 8 * tap, 0);
    const uint32_t pixels = patch + (tap / 3 * PATCH + tap % 3) * LINE, weights = base + WEIGHTS + tap * TAP;
    multiply_begin();
#pragma unroll
    for (int k = 0; k < CHANNELS / 16; k++) multiply_tap(sums, pixels_at(pixels + 32 * k), weights_at(weights + 16 * LINE * k));
    multiply_commit();
    if (tap == 1) let_next_begin(warpgroup);
  }
  multiply_wait<0>(sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    conv2d_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap weight_map,
                  const half *__restrict__ weight, half *__restrict__ y, int batch, int height, int width, int filters) {
  extern __shared__ unsigned char room[];
  // The swizzle is a function of the address: patches and taps begin on 1024 bytes.
  const uint32_t base = (static_cast<uint32_t>(__cvta_generic_to_shared(room)) + 1023) / 1024 * 1024;
  const int tiles = batch * ((height + SIDE - 1) / SIDE) * ((width + SIDE - 1) / SIDE);
  const int warpgroup = threadIdx.x / 128, tile = blockIdx.x * GROUPS + warpgroup;
  if (threadIdx.x == 32) {
    prefetch_map(&weight_map);
    for (int tap = 0; tap < TAPS; tap++) barrier_init(base + FULL_TAP + 8 * tap, 1);
    barriers_ready();
    for (int tap = 0; tap < TAPS; tap++) {
      const uint32_t to = base + WEIGHTS + tap * TAP, full = base + FULL_TAP + 8 * tap;
      barrier_expect(full, TAP);
      copy_weights(to, &weight_map, blockIdx.y * FILTERS, tap * CHANNELS, full);
      copy_weights(to + HALF, &weight_map, blockIdx.y * FILTERS + 64, tap * CHANNELS, full);
    }
  }
  if (threadIdx.x % 128 == 0) {
    const uint32_t full = base + FULL_PATCH + 8 * warpgroup;
    prefetch_map(&x_map);
    barrier_init(full, 1);
    barriers_ready();
    if (tile < tiles) {
      const Place at = place_of(tile, height, width);
      barrier_expect(full, PATCH_BYTES);
      copy_patch(base + warpgroup * PATCH_ROOM, &x_map, at.column - 1, at.row - 1, at.image, full);
    }
  }
  const int share = threadIdx.x - 64, line = blockIdx.x * AHEAD + share;
  if (share >= 0 && share < AHEAD && line < TAPS * CHANNELS * 2)
    prefetch_line(weight + static_cast<size_t>(line / 2) * filters + blockIdx.y * FILTERS + line % 2 * 64);
  __syncthreads();
  if (tile >= tiles) return;
  Place at = place_of(tile, height, width);
  asm volatile("" : "+r"(at.image), "+r"(at.row), "+r"(at.column));  // now, while the first bytes are awaited
  float sums[64];
#pragma unroll
  for (int i = 0; i < 64; i++) sums[i] = 0.0f;
#pragma unroll 1
  for (int pass = 0; pass < 2; pass++) {  // the first stores nothing: it only brings the code of the end
    if (pass == 1) {
      barrier_wait(base + FULL_PATCH + 8 * warpgroup, 0);
      multiply_taps(sums, base, warpgroup);
    }
    const int lane = threadIdx.x % 32, member = lane % 4, rows = pass == 0 ? 0 : height;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int pixel = threadIdx.x / 32 % 4 * 16 + lane / 4 + 8 * i;
      const int row = at.row + pixel / SIDE, column = at.column + pixel % SIDE;
      half *to = y + (static_cast<size_t>(at.image * height + row) * width + column) * filters + blockIdx.y * FILTERS + member * 8;
#pragma unroll
      for (int j = 0; j < FILTERS / 8; j += 4) {
        uint32_t pairs[4];
#pragma unroll
        for (int p = 0; p < 4; p++) pairs[p] = pack(sums[4 * (j + p) + 2 * i], sums[4 * (j + p) + 2 * i + 1]);
        const uint4 eight = gather(pairs, member);
        if (row < rows && column < width) store_eight(reinterpret_cast<uint32_t *>(to + j * 8), eight);
      }
    }
  }
}

// For every other shape: one thread an element.
extern "C" __global__ void __launch_bounds__(32)
    conv2d_any_kernel(const half *__restrict__ x, const half *__restrict__ weight, half *__restrict__ y, int height, int width,
                      int channels, int filters, int kernel) {
  const int filter = blockIdx.x * 32 + threadIdx.x, column = blockIdx.y, row = blockIdx.z % height, image = blockIdx.z / height;
  if (filter >= filters) return;
  float sum = 0.0f;
  for (int i = 0; i < kernel; i++)
    for (int j = 0; j < kernel; j++) {
      const int r = row + i - kernel / 2, c = column + j - kernel / 2;
      if (r < 0 || r >= height || c < 0 || c >= width) continue;
      const half *pixel = x + (static_cast<size_t>(image * height + r) * width + c) * channels;
      const half *tap = weight + static_cast<size_t>(i * kernel + j) * channels * filters + filter;
      for (int k = 0; k < channels; k++) sum += __half2float(pixel[k]) * __half2float(tap[static_cast<size_t>(k) * filters]);
    }
  y[(static_cast<size_t>(image * height + row) * width + column) * filters + filter] = __float2half(sum);
}
