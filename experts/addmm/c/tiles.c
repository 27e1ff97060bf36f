/* y[M, N] = a[M, K] @ b[K, N] + bias[N] in fp32: tiles of y stay in registers from the bias on, and rows of b are read in
 * vectors where they lie.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

/* MR x NR is the tile of y that stays in registers: MR * NV vectors of LANES floats. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define NV 4
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define NV 2
#else
#define VECTOR_BYTES 16
#define NV 2
#endif
#define MR 4
#define LANES (VECTOR_BYTES / 4)
#define NR (NV * LANES)

/* Rows of any width are aligned to a float and no more. */
typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* One whole tile: MR rows of a against NR columns of b. */
static inline void tile(const float *restrict a, const float *restrict b, const float *restrict bias,
                        float *restrict y, int64_t n, int64_t k)
{
    vec acc[MR][NV];

    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < NV; ++j)
            acc[i][j] = *(const vec *)(bias + j * LANES);
    for (int64_t p = 0; p < k; ++p)
        for (int i = 0; i < MR; ++i)
            for (int j = 0; j < NV; ++j)
                acc[i][j] += a[i * k + p] * *(const vec *)(b + p * n + j * LANES);
    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < NV; ++j)
            *(vec *)(y + i * n + j * LANES) = acc[i][j];
}

/* What is left beside and below the whole tiles. */
static inline void edge(const float *restrict a, const float *restrict b, const float *restrict bias,
                        float *restrict y, int64_t rows, int64_t columns, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            float sum = bias[j];
            for (int64_t p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            y[i * n + j] = sum;
        }
}

static inline void part(const float *restrict a, const float *restrict b, const float *restrict bias,
                        float *restrict y, int64_t rows, int64_t columns, int64_t n, int64_t k)
{
    if (rows == MR && columns == NR)
        tile(a, b, bias, y, n, k);
    else
        edge(a, b, bias, y, rows, columns, n, k);
}

void addmm(const float *restrict a, const float *restrict b, const float *restrict bias, float *restrict y, int64_t m,
           int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i += MR)
        for (int64_t j = 0; j < n; j += NR)
            part(a + i * k, b + j, bias + j, y + i * n + j, smaller(MR, m - i), smaller(NR, n - j), n, k);
}
