/* y[b, M, N] = a[b, M, K] @ b[b, K, N] in fp32: tiles of y stay in registers, rows of the second matrix are read in
 * vectors where they lie.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

/* MR x NR is the tile of y that stays in registers: MR * NV vectors of LANES floats. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define LANES (VECTOR_BYTES / 4)
#define MR 6
#define NV 2
#define NR (NV * LANES)

/* Rows of any width are aligned to a float and no more. */
typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

/* One whole tile: MR rows of a against NR columns of b. */
static inline void tile(const float *restrict a, const float *restrict b, float *restrict y, int64_t n, int64_t k)
{
    vec acc[MR][NV] = {0};

    for (int64_t p = 0; p < k; ++p) {
        vec w[NV];
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j)
            w[j] = *(const vec *)(b + p * n + j * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
            for (int j = 0; j < NV; ++j)
                acc[i][j] += a[i * k + p] * w[j];
    }

#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j)
            *(vec *)(y + i * n + j * LANES) = acc[i][j];
}

/* What is left beside and below the whole tiles. */
static inline void edge(const float *restrict a, const float *restrict b, float *restrict y, int64_t rows,
                        int64_t columns, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            y[i * n + j] = sum;
        }
}

static inline void product(const float *restrict a, const float *restrict b, float *restrict y, int64_t m, int64_t n,
                           int64_t k)
{
    int64_t i = 0;

    for (; i + MR <= m; i += MR) {
        int64_t j = 0;
        for (; j + NR <= n; j += NR)
            tile(a + i * k, b + j, y + i * n + j, n, k);
        edge(a + i * k, b + j, y + i * n + j, MR, n - j, n, k);
    }
    edge(a + i * k, b, y + i * n, m - i, n, n, k);
}

void bmm(const float *restrict a, const float *restrict b, float *restrict y, int64_t batch, int64_t m, int64_t n,
         int64_t k)
{
    for (int64_t t = 0; t < batch; ++t)
        product(a + t * m * k, b + t * k * n, y + t * m * n, m, n, k);
}
