// The k largest of each row and their columns, unsorted. One block a row, whose keys stay in shared memory.
// The k-th largest key is found 11, 11 and 10 bits at a time, each time by a histogram of the keys that are still in
// question; then every warp writes what it has of the row, in the order of the columns.
//
// klineage: launch topk_kernel grid=(rows) block=(THREADS) shared=columns * 4

#include <stdint.h>

constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int BINS = 2048;
constexpr int OWN = BINS / THREADS;  // neighbouring bins of a thread
constexpr unsigned ALL = 0xffffffffu;

// Unsigned integers in the order of the floats: all bits of negative ones turn, of the others only the sign.
__device__ __forceinline__ uint32_t key_of(float value) {
  const uint32_t bits = __float_as_uint(value);
  return bits ^ (bits >> 31 ? ALL : 0x80000000u);
}

__device__ __forceinline__ float value_of(uint32_t key) {
  return __uint_as_float(key ^ (key >> 31 ? 0x80000000u : ALL));
}

__device__ __forceinline__ void load_row(const float *__restrict__ x, uint32_t *keys, int columns) {
  if (columns % 4 == 0) {  // else no row but the first begins on 16 bytes
    for (int c = threadIdx.x * 4; c < columns; c += THREADS * 4) {
      const float4 v = *reinterpret_cast<const float4 *>(x + c);
      const uint4 four = make_uint4(key_of(v.x), key_of(v.y), key_of(v.z), key_of(v.w));
      *reinterpret_cast<uint4 *>(keys + c) = four;
    }
  } else {
    for (int c = threadIdx.x; c < columns; c += THREADS) keys[c] = key_of(x[c]);
  }
}

// The sum of `value` over the threads before this one.
__device__ __forceinline__ int before_me(int value) {
  __shared__ int totals[WARPS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int sum = value;
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    const int below = __shfl_up_sync(ALL, sum, lanes);
    if (lane >= lanes) sum += below;
  }
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; w++) sum += totals[w];
  return sum - value;
}

// One digit of the k-th largest key: `prefix` has the digits above it, `rank` is the key's among those that share them.
template <int SHIFT, int BITS>
__device__ __forceinline__ void find_digit(const uint32_t *keys, int columns, uint32_t &prefix, int &rank) {
  __shared__ int bins[BINS];
  __shared__ uint32_t chosen;
  __shared__ int left;
  for (int b = threadIdx.x; b < BINS; b += THREADS) bins[b] = 0;
  __syncthreads();
  for (int c = threadIdx.x; c < columns; c += THREADS) {
    const uint32_t key = keys[c];
    const bool asked = SHIFT + BITS == 32 || key >> ((SHIFT + BITS) % 32) == prefix;
    if (asked) atomicAdd(&bins[(key >> SHIFT) & ((1 << BITS) - 1)], 1);
  }
  __syncthreads();
  const int top = BINS - 1 - OWN * threadIdx.x;  // the highest of this thread's bins
  int counts[OWN], sum = 0;
#pragma unroll
  for (int i = 0; i < OWN; i++) sum += counts[i] = bins[top - i];
  int higher = before_me(sum);
#pragma unroll
  for (int i = 0; i < OWN; i++) {
    if (higher < rank && rank <= higher + counts[i]) {  // true in one bin of one thread
      chosen = prefix << BITS | static_cast<uint32_t>(top - i);
      left = rank - higher;
    }
    higher += counts[i];
  }
  __syncthreads();
  prefix = chosen;
  rank = left;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    topk_kernel(const float *__restrict__ x, float *__restrict__ values, int64_t *__restrict__ indices, int columns,
                int k) {
  extern __shared__ uint4 room[];
  uint32_t *keys = reinterpret_cast<uint32_t *>(room);
  load_row(x + static_cast<size_t>(blockIdx.x) * columns, keys, columns);
  uint32_t least = 0;  // the k-th largest key; `ties` of those that equal it belong to the k largest
  int ties = k;
  find_digit<21, 11>(keys, columns, least, ties);
  find_digit<10, 11>(keys, columns, least, ties);
  find_digit<0, 10>(keys, columns, least, ties);

  // A warp owns a stretch of the row, and counts it before it writes it.
  __shared__ int above[WARPS], equal[WARPS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int stretch = (columns + THREADS - 1) / THREADS * 32;
  const int first = warp * stretch, last = min(columns, first + stretch);
  int count_above = 0, count_equal = 0;
  for (int c = first + lane; c - lane < last; c += 32) {
    count_above += __popc(__ballot_sync(ALL, c < last && keys[c] > least));
    count_equal += __popc(__ballot_sync(ALL, c < last && keys[c] == least));
  }
  if (lane == 0) above[warp] = count_above, equal[warp] = count_equal;
  __syncthreads();
  count_above = count_equal = 0;  // from here on: of all the columns before
  for (int w = 0; w < warp; w++) count_above += above[w], count_equal += equal[w];

  values += static_cast<size_t>(blockIdx.x) * k;
  indices += static_cast<size_t>(blockIdx.x) * k;
  const unsigned below = (1u << lane) - 1;
  for (int c = first + lane; c - lane < last; c += 32) {
    const uint32_t key = c < last ? keys[c] : 0;
    const unsigned is_above = __ballot_sync(ALL, c < last && key > least);
    const unsigned is_equal = __ballot_sync(ALL, c < last && key == least);
    const int tie = count_equal + __popc(is_equal & below);
    int place = -1;
    if (is_above >> lane & 1) place = count_above + __popc(is_above & below);
    if ((is_equal >> lane & 1) && tie < ties) place = k - ties + tie;
    if (place >= 0) {
      values[place] = value_of(key);
      indices[place] = c;
    }
    count_above += __popc(is_above);
    count_equal += __popc(is_equal);
  }
}
