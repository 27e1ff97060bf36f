// Packed non-causal attention in fp16 on Hopper's matrix unit (wgmma, so sm_90a and nothing else), for heads of 128.
// A block is three warpgroups. The first copies: one thread asks the copy engine for keys and values, into two buffers each,
// swizzled as the matrix unit reads them, and mbarriers say when one is full or free. The other two have 64 queries each and
// take turns: while one multiplies, the other computes exponentials. A block stays and takes the next 128 queries; their
// first scores are computed while the last values of those before are weighted.
//
// klineage: tensor_map q_map q box=(BLOCK_M, 1, 64) swizzle=128
// klineage: tensor_map k_map k box=(BLOCK_N, 1, 64) swizzle=128
// klineage: tensor_map v_map v box=(BLOCK_N, 1, 64) swizzle=128
// klineage: launch fmha_kernel grid=(min(132, sequences * heads * cdiv(length, BLOCK_M))) block=(THREADS) shared=ROOM when=dim == 128
// klineage: launch fmha_any_kernel grid=(length, heads, sequences) block=(128) shared=4 * length when=dim != 128

#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

constexpr int BLOCK_M = 128;
constexpr int BLOCK_N = 128;
constexpr int DIM = 128;
constexpr int STAGES = 2;
constexpr int THREADS = 384;
constexpr int LINE = 128;             // bytes: the width of the swizzle, 64 elements
constexpr int HALF = BLOCK_N * LINE;  // of a tile of keys or values: columns 0 to 63, then 64 to 127
constexpr int QUERIES = 2 * BLOCK_M * LINE, TILE = 2 * HALF;
constexpr int KEYS = QUERIES, VALUES = KEYS + STAGES * TILE, BARRIERS = VALUES + STAGES * TILE;
constexpr int ROOM = BARRIERS + 128 + 1024;
constexpr int SCORES = BLOCK_N / 2;  // of a thread: 64 x BLOCK_N by 128 threads
constexpr int OUT = DIM / 2;
constexpr float SLACK = 8.0f;  // of the largest score, as a power of two

// Barriers, eight bytes each. Those of a stage are STAGES in a row.
constexpr int FULL_Q = BARRIERS, FREE_Q = BARRIERS + 8, FULL_K = BARRIERS + 16, FREE_K = FULL_K + 8 * STAGES, FULL_V = FREE_K + 8 * STAGES,
              FREE_V = FULL_V + 8 * STAGES;

__device__ __forceinline__ void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Arrives, and lets the phase last until so many bytes have been copied.
__device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Waits until the phase of this parity is over; that before the first phase counts as over.
__device__ __forceinline__ void barrier_wait(uint32_t barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(barrier), "r"(parity) : "memory");
}

// One half of a tile: 64 columns of a head, from this token on. Beyond the last token of all there are zeros.
__device__ __forceinline__ void copy_box(uint32_t to, const CUtensorMap *map, int column, int head, int token, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(map), "r"(column), "r"(head), "r"(token), "r"(barrier)
      : "memory");
}

// Four 8 x 8 matrices, 16 bytes of a line from each lane: 16 queries of one step, as the matrix unit has them in registers.
__device__ __forceinline__ void load_matrices(uint32_t *d, uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(from)
               : "memory");
}

// Writes 16 zero bytes.
__device__ __forceinline__ void store_zeros(uint32_t to) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(0) : "memory");
}

// A warpgroup waits for what all its threads have stored; the matrix unit will see it.
__device__ __forceinline__ void stores_meet(int warpgroup) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 3) : "memory");
}

__device__ __forceinline__ void turn_wait(int warpgroup) {
  asm volatile("bar.sync %0, 256;" ::"r"(warpgroup + 1) : "memory");
}

__device__ __forceinline__ void turn_give(int warpgroup) {
  asm volatile("bar.arrive %0, 256;" ::"r"(warpgroup + 1) : "memory");
}

__device__ __forceinline__ void multiply_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void multiply_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// What is computed of d before is computed here, not later.
template <int COUNT>
__device__ __forceinline__ void settled(float (&d)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// Waits until at most PENDING groups of products are on their way. The registers of d are not read before.
template <int PENDING, int COUNT>
__device__ __forceinline__ void multiply_wait(float (&d)[COUNT]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
  settled(d);
}

// ptxas would wait for products before it computes what does not need them. It moves nothing over a barrier, and this one
// depends on the sum of all weights, which is never negative: nobody meets there.
__device__ __forceinline__ void multiply_later(float sum) {
  if (__builtin_expect(sum < 0.0f, 0)) asm volatile("bar.sync 6, 128;" ::: "memory");
}

// Lines of 128 bytes, swizzled in groups of eight, 1024 bytes apart. Queries and keys are contiguous along what is summed;
// values along their columns, and the second half of those is HALF bytes on.
__device__ __forceinline__ uint64_t along_sum(uint32_t address) { return 0x4000004000010000ull | (address & 0x3ffff) >> 4; }

__device__ __forceinline__ uint64_t across_sum(uint32_t address) {
  return 0x4000004000000000ull | static_cast<uint64_t>(HALF >> 4) << 16 | (address & 0x3ffff) >> 4;
}

// d = queries @ keys.T, or d += that, for 64 x 128 x 16.
__device__ __forceinline__ void multiply_scores(float (&d)[SCORES], const uint32_t *queries, uint64_t keys, int add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, add, 1, 1, 0;\n}\n"
      :
      "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
      "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
      "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
      "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
      "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
      "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
      "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "r"(queries[0]), "r"(queries[1]), "r"(queries[2]), "r"(queries[3]), "l"(keys), "r"(add));
}

// d += weights @ values for 64 x 128 x 16, the weights from registers.
__device__ __forceinline__ void multiply_values(float (&d)[OUT], const uint32_t *weights, uint64_t values) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;\n"
      :
      "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
      "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
      "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
      "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
      "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
      "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
      "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "l"(values));
}

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t *>(&both);
}

// Where the tile of queries with this number is. Tiles of one head follow each other, so that its keys stay in L2.
struct Place {
  int begin, length, head, first;
};

__device__ __forceinline__ Place place_of(int tile, const int *__restrict__ offsets, int length, int heads) {
  const int tiles = (length + BLOCK_M - 1) / BLOCK_M, pair = tile / tiles, sequence = pair / heads;
  const int begin = offsets[sequence];
  return {begin, offsets[sequence + 1] - begin, pair % heads, tile % tiles * BLOCK_M};
}

// The first tile of this block from `tile` on that has queries, and where it is; `tiles` or more when there is none.
__device__ __forceinline__ int next_tile(int tile, Place &at, const int *__restrict__ offsets, int length, int heads, int tiles) {
  for (; tile < tiles; tile += gridDim.x) {
    at = place_of(tile, offsets, length, heads);
    if (at.first < at.length) break;
  }
  return tile;
}

// A tile of ROWS rows of one head by the copy engine.
template <int ROWS>
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap *map, int head, int token, uint32_t barrier) {
  barrier_expect(barrier, ROWS * DIM * sizeof(half));
  copy_box(to, map, 0, head, token, barrier);
  copy_box(to + ROWS * LINE, map, 64, head, token, barrier);
}

// Copies what the other two warpgroups multiply, in the order in which they do: the last block of keys first.
__device__ __forceinline__ void copy_tiles(uint32_t base, const CUtensorMap *q_map, const CUtensorMap *k_map,
                                           const CUtensorMap *v_map, const int *__restrict__ offsets, int length,
                                           int heads, int tiles) {
  int step = 0, turn = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const Place at = place_of(tile, offsets, length, heads);
    if (at.first >= at.length) continue;
    barrier_wait(base + FREE_Q, turn++ & 1 ^ 1);
    load_tile<BLOCK_M>(base, q_map, at.head, at.begin + at.first, base + FULL_Q);
    for (int block = (at.length - 1) / BLOCK_N; block >= 0; block--, step++) {
      const int stage = step % STAGES, parity = step / STAGES & 1 ^ 1, token = at.begin + block * BLOCK_N;
      barrier_wait(base + FREE_K + 8 * stage, parity);
      load_tile<BLOCK_N>(base + KEYS + stage * TILE, k_map, at.head, token, base + FULL_K + 8 * stage);
      barrier_wait(base + FREE_V + 8 * stage, parity);
      load_tile<BLOCK_N>(base + VALUES + stage * TILE, v_map, at.head, token, base + FULL_V + 8 * stage);
    }
  }
}

// Of the four lanes that have a row.
__device__ __forceinline__ float most_of_four(float most) {
#pragma unroll
  for (int apart = 1; apart < 4; apart *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, apart));
  return most;
}

__device__ __forceinline__ float sum_of_four(float sum) {
#pragma unroll
  for (int apart = 1; apart < 4; apart *= 2) sum += __shfl_xor_sync(~0u, sum, apart);
  return sum;
}

// One step of the online softmax for the two rows of a thread: scores become weights, and `sum` and `top` go on. `top` stays
// while no score is above it by more than SLACK: weights of up to 2^8 are as exact as those of up to one. Where it grows in one
// of the two rows, what was summed before has to be multiplied by `keep`; returns whether it has.
__device__ __forceinline__ bool soften(float (&s)[SCORES], float (&top)[2], float (&sum)[2], float (&keep)[2], float scale) {
  float now[2];
#pragma unroll
  for (int row = 0; row < 2; row++) {
    float most[2] = {s[2 * row], s[2 * row + 1]};  // two chains
#pragma unroll
    for (int i = 4; i < SCORES; i += 4) {
      most[0] = fmaxf(most[0], s[i + 2 * row]);
      most[1] = fmaxf(most[1], s[i + 2 * row + 1]);
    }
    now[row] = most_of_four(fmaxf(most[0], most[1])) * scale;
  }
  const bool grows = now[0] > top[0] + SLACK || now[1] > top[1] + SLACK;
  if (grows) {
#pragma unroll
    for (int row = 0; row < 2; row++) {
      now[row] = fmaxf(top[row], now[row]);
      keep[row] = exp2_fast(top[row] - now[row]);
      top[row] = now[row];
      sum[row] *= keep[row];
    }
  }
#pragma unroll
  for (int i = 0; i < SCORES; i++) {
    s[i] = exp2_fast(fmaf(s[i], scale, -top[i / 2 % 2]));
    sum[i / 2 % 2] += s[i];
  }
  return grows;
}

// 64 queries of each tile, by the four warps of one warpgroup.
__device__ __forceinline__ void attend(uint32_t base, int warpgroup, const int *__restrict__ offsets, half *__restrict__ o,
                                       int length, int heads, int tiles) {
  const int lane = threadIdx.x % 32, member = lane % 4, row = warpgroup * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
  const float scale = 1.4426950408889634f * rsqrtf(static_cast<float>(DIM));  // exp2 is the hardware's exponential
  uint32_t queries[DIM / 4];
  float s[SCORES], out[OUT], top[2], sum[2], keep[2];
  uint32_t weights[SCORES / 2];

  auto scores = [&](int stage) {
    const uint64_t right = along_sum(base + KEYS + stage * TILE);
    multiply_begin();
#pragma unroll
    for (int i = 0; i < DIM / 16; i++) {
      const int half = i / 4, on = i % 4 * 2;  // 16 columns are 32 bytes
      multiply_scores(s, queries + 4 * i, right + half * (HALF >> 4) + on, i > 0);
    }
    multiply_commit();
  };
  auto weighted = [&](int stage) {
    const uint64_t right = across_sum(base + VALUES + stage * TILE);
    multiply_begin();
#pragma unroll
    for (int i = 0; i < BLOCK_N / 16; i++) multiply_values(out, weights + 4 * i, right + i * (16 * LINE >> 4));
    multiply_commit();
  };
  auto release = [&](int barrier) {
    if (lane == 0) barrier_arrive(base + barrier);
  };
  auto keep_weights = [&] {
#pragma unroll
    for (int i = 0; i < SCORES / 2; i++) weights[i] = pack(s[2 * i], s[2 * i + 1]);
  };

  // Values from `rest` on are another sequence's and must be zero, not infinite. Both warpgroups write all of them.
  auto clear = [&](int stage, int rest, int parity) {
    barrier_wait(base + FULL_V + 8 * stage, parity);
    for (int line = rest + threadIdx.x / 16 % 8; line < BLOCK_N; line += 8) {
      const int piece = threadIdx.x % 16;
      store_zeros(base + VALUES + stage * TILE + piece / 8 * HALF + line * LINE + piece % 8 * 16);
    }
    stores_meet(warpgroup);
  };

  int step = 0, turn = 0;
  auto take_queries = [&] {
    barrier_wait(base + FULL_Q, turn++ & 1);
    const int mine = warpgroup * 64 + threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < DIM / 16; i++)
      load_matrices(queries + 4 * i, base + i / 4 * (QUERIES / 2) + mine * LINE + ((i % 4 * 2 + lane / 16 ^ mine % 8) << 4));
    __syncwarp();
    release(FREE_Q);
  };
  // Scores of the first block become weights; that is the last block of keys, the only one that may be cut.
  auto start = [&](const Place &at) {
    const int rest = (at.length - 1) % BLOCK_N + 1;
    if (rest < BLOCK_N) {
#pragma unroll
      for (int i = 0; i < SCORES; i++)
        if (i / 4 * 8 + member * 2 + i % 2 >= rest) s[i] = -INFINITY;
    }
    top[0] = top[1] = -INFINITY;
    sum[0] = sum[1] = 0.0f;
    soften(s, top, sum, keep, scale);
  };
  auto started = [&](const Place &at) {
    keep_weights();
    const int rest = (at.length - 1) % BLOCK_N + 1;
    if (rest < BLOCK_N) clear(step % STAGES, rest, step / STAGES & 1);
#pragma unroll
    for (int i = 0; i < OUT; i++) out[i] = 0.0f;
  };
  auto store = [&](const Place &at, const float (&sums)[2]) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const float share = 1.0f / sum_of_four(sums[i]);
      const int line = at.first + row + 8 * i;
      half *to = o + (static_cast<size_t>(at.begin + line) * heads + at.head) * DIM + member * 2;
      if (line < at.length) {
#pragma unroll
        for (int j = 0; j < DIM / 8; j++)
          *reinterpret_cast<uint32_t *>(to + 8 * j) = pack(out[4 * j + 2 * i] * share, out[4 * j + 2 * i + 1] * share);
      }
    }
  };
  // Scores of this step and products with the values of the one before, in one turn; the scores are there afterwards.
  auto both = [&] {
    const int before = step++;
    barrier_wait(base + FULL_K + 8 * (step % STAGES), step / STAGES & 1);
    turn_wait(warpgroup);
    scores(step % STAGES);
    barrier_wait(base + FULL_V + 8 * (before % STAGES), before / STAGES & 1);
    weighted(before % STAGES);
    turn_give(1 - warpgroup);
    multiply_wait<1>(s);
    release(FREE_K + 8 * (step % STAGES));
  };
  auto values_done = [&] {
    multiply_later(sum[0] + sum[1]);
    multiply_wait<0>(out);
    release(FREE_V + 8 * ((step - 1) % STAGES));
  };

  Place at;
  int tile = next_tile(blockIdx.x, at, offsets, length, heads, tiles);
  if (tile >= tiles) return;
  take_queries();
  barrier_wait(base + FULL_K, 0);
  scores(0);
  multiply_wait<0>(s);
  release(FREE_K);
  start(at);
  started(at);
  for (;;) {
    const int blocks = (at.length + BLOCK_N - 1) / BLOCK_N;
    for (int block = 1; block < blocks; block++) {
      both();
      const bool grown = soften(s, top, sum, keep, scale);
      values_done();
      if (grown) {
#pragma unroll
        for (int i = 0; i < OUT; i++) out[i] *= keep[i / 2 % 2];
      }
      keep_weights();
    }
    Place next;
    tile = next_tile(tile + gridDim.x, next, offsets, length, heads, tiles);
    if (tile >= tiles) break;
    const float whole[2] = {sum[0], sum[1]};
    take_queries();
    both();
    start(next);
    values_done();
    store(at, whole);
    started(next);
    at = next;
  }
  barrier_wait(base + FULL_V + 8 * (step % STAGES), step / STAGES & 1);
  weighted(step % STAGES);
  multiply_wait<0>(out);
  store(at, sum);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    fmha_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                const __grid_constant__ CUtensorMap v_map, const int *__restrict__ offsets, half *__restrict__ o, int sequences,
                int length, int heads) {
  extern __shared__ unsigned char room[];
  // The swizzle is a function of the address: tiles begin on 1024 bytes.
  const uint32_t base = (static_cast<uint32_t>(__cvta_generic_to_shared(room)) + 1023) / 1024 * 1024;
  const int tiles = sequences * heads * ((length + BLOCK_M - 1) / BLOCK_M);
  if (threadIdx.x == 0) {
    barrier_init(base + FULL_Q, 1);
    barrier_init(base + FREE_Q, 8);  // warps
    for (int stage = 0; stage < STAGES; stage++) {
      barrier_init(base + FULL_K + 8 * stage, 1);
      barrier_init(base + FREE_K + 8 * stage, 8);
      barrier_init(base + FULL_V + 8 * stage, 1);
      barrier_init(base + FREE_V + 8 * stage, 8);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == 0) copy_tiles(base, &q_map, &k_map, &v_map, offsets, length, heads, tiles);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    const int warpgroup = threadIdx.x / 128 - 1;
    if (warpgroup == 1) turn_give(0);
    attend(base, warpgroup, offsets, o, length, heads, tiles);
  }
}

// For heads of any other length: one query a block, the scores of all keys in shared memory.
extern "C" __global__ void __launch_bounds__(128)
    fmha_any_kernel(const half *__restrict__ q, const half *__restrict__ k, const half *__restrict__ v,
                    const int *__restrict__ offsets, half *__restrict__ o, int heads, int dim) {
  extern __shared__ float weights[];
  __shared__ float parts[128];
  const int begin = offsets[blockIdx.z], length = offsets[blockIdx.z + 1] - begin;
  if (blockIdx.x >= length) return;
  const size_t stride = static_cast<size_t>(heads) * dim, start = begin * stride + blockIdx.y * dim;
  const half *query = q + start + blockIdx.x * stride;
  const float scale = rsqrtf(static_cast<float>(dim));
  auto together = [&](float mine, bool sum) {
    parts[threadIdx.x] = mine;
    __syncthreads();
    for (int other = 64; other > 0; other /= 2) {
      if (threadIdx.x < other) {
        const float theirs = parts[threadIdx.x + other];
        parts[threadIdx.x] = sum ? parts[threadIdx.x] + theirs : fmaxf(parts[threadIdx.x], theirs);
      }
      __syncthreads();
    }
    const float all = parts[0];
    __syncthreads();
    return all;
  };

  float top = -INFINITY;
  for (int key = threadIdx.x; key < length; key += 128) {
    const half *other = k + start + key * stride;
    float score = 0.0f;
    for (int i = 0; i < dim; i++) score += __half2float(query[i]) * __half2float(other[i]);
    weights[key] = score * scale;
    top = fmaxf(top, weights[key]);
  }
  top = together(top, false);
  float sum = 0.0f;
  for (int key = threadIdx.x; key < length; key += 128) sum += weights[key] = __expf(weights[key] - top);
  sum = together(sum, true);
  for (int i = threadIdx.x; i < dim; i += 128) {
    float total = 0.0f;
    for (int key = 0; key < length; key++) total += weights[key] * __half2float(v[start + key * stride + i]);
    o[start + blockIdx.x * stride + i] = __float2half(total / sum);
  }
}
