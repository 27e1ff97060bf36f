/* y[M, N] = x[M, K] @ weight[N, K].T in fp32: both matrices are read along K, in which they lie, so nothing is packed.
 * A tile of y is MR x NR sums, each a vector over neighbouring k, whose lanes are added up once, at the end.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define NR 6
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define NR 3
#else
#define VECTOR_BYTES 16
#define NR 3
#endif
#define MR 4
#define LANES (VECTOR_BYTES / 4)

/* NC rows of weight, a multiple of NR, stay in L2 while all rows of x pass by. */
#define NC 192

/* Rows of any width are aligned to a float and no more. */
typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static inline float sum_lanes(vec value)
{
    const float *lane = (const float *)&value;
    float sum = 0.0f;
    for (int i = 0; i < LANES; ++i)
        sum += lane[i];
    return sum;
}

/* One whole tile: MR rows of x against NR rows of weight. */
static inline void tile(const float *restrict x, const float *restrict weight, float *restrict y, int64_t n, int64_t k)
{
    vec acc[MR][NR] = {0};
    int64_t p = 0;

    for (; p + LANES <= k; p += LANES)
        for (int i = 0; i < MR; ++i)
            for (int j = 0; j < NR; ++j)
                acc[i][j] += *(const vec *)(x + i * k + p) * *(const vec *)(weight + j * k + p);

    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < NR; ++j) {
            float sum = sum_lanes(acc[i][j]);
            for (int64_t q = p; q < k; ++q)
                sum += x[i * k + q] * weight[j * k + q];
            y[i * n + j] = sum;
        }
}

/* What is left beside and below the whole tiles. */
static inline void edge(const float *restrict x, const float *restrict weight, float *restrict y, int64_t rows,
                        int64_t columns, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; ++p)
                sum += x[i * k + p] * weight[j * k + p];
            y[i * n + j] = sum;
        }
}

static inline void part(const float *restrict x, const float *restrict weight, float *restrict y, int64_t rows,
                        int64_t columns, int64_t n, int64_t k)
{
    if (rows == MR && columns == NR)
        tile(x, weight, y, n, k);
    else
        edge(x, weight, y, rows, columns, n, k);
}

void gemm(const float *restrict x, const float *restrict weight, float *restrict y, int64_t m, int64_t n, int64_t k)
{
    for (int64_t jc = 0; jc < n; jc += NC) {
        int64_t nc = smaller(NC, n - jc);
        for (int64_t i = 0; i < m; i += MR)
            for (int64_t j = 0; j < nc; j += NR)
                part(x + i * k, weight + (jc + j) * k, y + i * n + jc + j, smaller(MR, m - i), smaller(NR, nc - j), n, k);
    }
}
