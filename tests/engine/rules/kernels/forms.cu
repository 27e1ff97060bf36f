// One kernel a mechanism, each small enough to be run on a CPU by cuda_on_cpu.h.
// klineage: launch scaled grid=(4) block=(64)
// klineage: launch halved grid=(rows) block=(32)
// klineage: launch summed grid=(rows) block=(64)
// klineage: launch transposed grid=(cdiv(columns, TILE), cdiv(rows, TILE)) block=(TILE, TILE)
// klineage: launch permuted grid=(cdiv(columns, 32), cdiv(rows, 32)) block=(32, 32)
// klineage: launch staged grid=(rows) block=(32)
// klineage: launch running grid=(cdiv(n, 64)) block=(16, 4)
// klineage: launch multiplied grid=(cdiv(columns, TILE), cdiv(rows, TILE)) block=(TILE, TILE)
// klineage: launch tiled grid=(cdiv(n, 32)) block=(32)

#define TILE 16
constexpr int ITEMS = 4;  // that a thread keeps
constexpr int STAGE = 128;

extern "C" {

// y = alpha * x, four at a time: a fixed grid strides over them.
__global__ __launch_bounds__(64) void scaled(const float *__restrict__ x, float *__restrict__ y, int quads, float alpha) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += gridDim.x * blockDim.x) {
    float4 v = reinterpret_cast<const float4 *>(x)[i];
    v.x *= alpha;
    v.y *= alpha;
    v.z *= alpha;
    v.w *= alpha;
    *reinterpret_cast<float4 *>(&y[4 * i]) = v;
  }
}

// y = x / 2, a row a block, through pointers to vectors that have a name.
__global__ void halved(const float *x, float *y, int columns) {
  const float4 *in = reinterpret_cast<const float4 *>(x + blockIdx.x * columns);
  float4 *out = (float4 *)(y + blockIdx.x * columns);
  for (int i = threadIdx.x; i < columns / 4; i += blockDim.x) {
    float4 v = in[i];
    v.x /= 2, v.y /= 2, v.z /= 2, v.w /= 2;
    out[i] = v;
  }
}

// y[row] = log(sum(exp(x[row])))
__global__ void summed(const float *x, float *y, int columns) {
  __shared__ float partial[2];
  float sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += __expf(__ldg(&x[blockIdx.x * columns + c]));
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) __stcs(y + blockIdx.x, __logf(partial[0] + partial[1]));
}

__global__ void transposed(const float *x, float *y, int rows, int columns) {
  __shared__ float tile[TILE][TILE + 1];
  const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x] = x[row * columns + column];
  __syncthreads();
  const int down = blockIdx.x * TILE + threadIdx.y, across = blockIdx.y * TILE + threadIdx.x;
  if (down < columns && across < rows) y[down * rows + across] = tile[threadIdx.x][threadIdx.y];
}

__global__ void permuted(const float *x, float *y, int rows, int columns) {
  __shared__ float tile[32][32];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * 32 + ty, column = blockIdx.x * 32 + tx;
  if (row < rows && column < columns) tile[ty][tx ^ ty] = x[row * columns + column];
  __syncthreads();
  const int down = blockIdx.x * 32 + ty, across = blockIdx.y * 32 + tx;
  if (down < columns && across < rows) y[down * rows + across] = tile[tx][ty ^ tx];
}

// y[row] = reversed x[row], through shared memory; a row has STAGE elements.
__global__ void staged(const float *x, float *y) {
  __shared__ float buffer[STAGE];
  __pipeline_memcpy_async(&buffer[4 * threadIdx.x], &x[blockIdx.x * STAGE + 4 * threadIdx.x], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int c = threadIdx.x; c < STAGE; c += 32) y[blockIdx.x * STAGE + c] = buffer[STAGE - 1 - c];
}

// y = x / sqrt(1 + x * x); a thread keeps ITEMS of them.
__global__ void tiled(const float *x, float *y, int n) {
  float kept[ITEMS];
  const int step = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
  for (int base = first; base < n; base += step * ITEMS) {
#pragma unroll
    for (int i = 0; i < ITEMS; i++) kept[i] = base + i * step < n ? x[base + i * step] : 0.0f;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
      if (base + i * step < n) y[base + i * step] = kept[i] * rsqrtf(1.0f + kept[i] * kept[i]);
  }
}
// y = running sums of x inside groups of 32, each with its neighbour's.
__global__ void running(const float *x, float *y, int n) {
  const int thread = threadIdx.y * 16 + threadIdx.x, at = blockIdx.x * 64 + thread;
  float sum = at < n ? x[at] : 0.0f;
  for (int apart = 1; apart < 32; apart *= 2) {
    const float before = __shfl_up_sync(0xffffffffu, sum, apart);
    if (thread % 32 >= apart) sum += before;
  }
  const float neighbour = __shfl_xor_sync(0xffffffffu, sum, 1);
  if (at < n) y[at] = sum + neighbour;
}

// y[rows][columns] = x[rows][depth] @ x[columns][depth].T, whose depth is a multiple of TILE.
__global__ void multiplied(const float *x, float *y, int rows, int columns, int depth) {
  __shared__ float left[2][TILE][TILE], right[2][TILE][TILE];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx, other = blockIdx.x * TILE + ty;
  const int tiles = depth / TILE;
  auto fill = [&](int buffer, int tile) {
    left[buffer][ty][tx] = row < rows ? x[row * depth + tile * TILE + tx] : 0.0f;
    right[buffer][ty][tx] = other < columns ? x[other * depth + tile * TILE + tx] : 0.0f;
  };
  float sum = 0.0f;
  fill(0, 0);
  __syncthreads();
  for (int t = 0; t < tiles; t++) {
    const int now = t & 1;
    if (t + 1 < tiles) fill(now ^ 1, t + 1);
    for (int i = 0; i < TILE; i++) sum += left[now][ty][i] * right[now][tx][i];
    __syncthreads();
  }
  if (row < rows && column < columns) y[row * columns + column] = sum;
}
}
