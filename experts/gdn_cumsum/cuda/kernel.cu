// Running sums of log gates inside chunks. One thread a token and WIDTH heads: every gate is on its way at once.
// A warp has 8 tokens of 4 threads each, and sums them by shuffles; what the warps before it sum to comes through
// shared memory.
//
// klineage: launch gdn_cumsum_vector_kernel grid=(cdiv(heads, 16), cdiv(tokens, chunk), batch) block=(ACROSS, chunk) when=heads % 4 == 0
// klineage: launch gdn_cumsum_kernel grid=(cdiv(heads, 4), cdiv(tokens, chunk), batch) block=(ACROSS, chunk) when=heads % 4 != 0

constexpr int ACROSS = 4;            // threads over the heads
constexpr int TOKENS = 32 / ACROSS;  // of a warp
constexpr int WARPS = 16;            // of a chunk of 128, the longest
constexpr unsigned ALL = 0xffffffffu;

template <int WIDTH>
struct alignas(WIDTH * sizeof(float)) Pack {
  float at[WIDTH];
};

template <int WIDTH>
__device__ __forceinline__ Pack<WIDTH> load(const float *from) {
  return *reinterpret_cast<const Pack<WIDTH> *>(from);
}

template <int WIDTH>
__device__ __forceinline__ void store(float *to, const Pack<WIDTH> &values) {
  *reinterpret_cast<Pack<WIDTH> *>(to) = values;
}

template <int WIDTH>
__device__ __forceinline__ void sum_chunk(const float *__restrict__ gates, float *__restrict__ cumulative, int tokens,
                                          int heads, int chunk) {
  __shared__ float totals[WARPS][ACROSS * WIDTH];
  const int head = (blockIdx.x * ACROSS + threadIdx.x) * WIDTH;
  const int token = blockIdx.y * chunk + threadIdx.y;
  const int place = (threadIdx.y * ACROSS + threadIdx.x) % 32, warp = threadIdx.y / TOKENS;
  const bool live = token < tokens && head < heads;
  const size_t at = (static_cast<size_t>(blockIdx.z) * tokens + token) * heads + head;
  Pack<WIDTH> sum = {};
  if (live) sum = load<WIDTH>(gates + at);
#pragma unroll
  for (int apart = ACROSS; apart < 32; apart *= 2) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
      const float before = __shfl_up_sync(ALL, sum.at[i], apart);
      if (place >= apart) sum.at[i] += before;
    }
  }
  if (place >= 32 - ACROSS) {  // the warp's last token
#pragma unroll
    for (int i = 0; i < WIDTH; i++) totals[warp][threadIdx.x * WIDTH + i] = sum.at[i];
  }
  __syncthreads();
  for (int w = 0; w < warp; w++) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sum.at[i] += totals[w][threadIdx.x * WIDTH + i];
  }
  if (live) store<WIDTH>(cumulative + at, sum);
}

extern "C" __global__ void __launch_bounds__(512)
    gdn_cumsum_vector_kernel(const float *__restrict__ gates, float *__restrict__ cumulative, int tokens, int heads,
                             int chunk) {
  sum_chunk<4>(gates, cumulative, tokens, heads, chunk);
}

extern "C" __global__ void __launch_bounds__(512)
    gdn_cumsum_kernel(const float *__restrict__ gates, float *__restrict__ cumulative, int tokens, int heads,
                      int chunk) {
  sum_chunk<1>(gates, cumulative, tokens, heads, chunk);
}
