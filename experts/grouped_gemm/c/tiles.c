/* y[rows of g] = x[rows of g] @ weight[g, K, N] in fp32: tiles of y stay in registers, and rows of a group's matrix are
 * read in vectors where they lie.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

/* MR x NR is the tile of y that stays in registers: MR vectors of NR floats. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define MR 24
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define MR 12
#else
#define VECTOR_BYTES 16
#define MR 12
#endif
#define NR (VECTOR_BYTES / 4)

/* Rows of any width are aligned to a float and no more. */
typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* One whole tile: MR rows of x against NR columns of weight. */
static inline void tile(const float *restrict x, const float *restrict weight, float *restrict y, int64_t n, int64_t k)
{
    vec acc[MR] = {0};

    for (int64_t p = 0; p < k; ++p) {
        vec w = *(const vec *)(weight + p * n);
#pragma GCC unroll 24
        for (int i = 0; i < MR; ++i)
            acc[i] += x[i * k + p] * w;
    }

#pragma GCC unroll 24
    for (int i = 0; i < MR; ++i)
        *(vec *)(y + i * n) = acc[i];
}

/* For less than one tile. */
static inline void small(const float *restrict x, const float *restrict weight, float *restrict y, int64_t rows,
                         int64_t n, int64_t k)
{
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; ++p)
                sum += x[i * k + p] * weight[p * n + j];
            y[i * n + j] = sum;
        }
}

/* The last tile of each direction is moved back until it is whole: some sums are found twice. */
static inline void rows_of_group(const float *restrict x, const float *restrict weight, float *restrict y, int64_t rows,
                                 int64_t n, int64_t k)
{
    if (rows < MR || n < NR) {
        small(x, weight, y, rows, n, k);
        return;
    }
    for (int64_t i = 0; i < rows; i += MR) {
        int64_t r = smaller(i, rows - MR);
        for (int64_t j = 0; j < n; j += NR) {
            int64_t c = smaller(j, n - NR);
            tile(x + r * k, weight + c, y + r * n + c, n, k);
        }
    }
}

void grouped_gemm(const float *restrict x, const float *restrict weight, const int32_t *restrict offsets,
                  float *restrict y, int64_t groups, int64_t n, int64_t k)
{
    for (int64_t g = 0; g < groups; ++g) {
        int64_t first = offsets[g];
        rows_of_group(x + first * k, weight + g * k * n, y + first * n, offsets[g + 1] - first, n, k);
    }
}
