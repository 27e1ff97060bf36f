/* y[M, N] = a[M, K] @ b[K, N] + bias[N] in fp32: tiles of y stay in registers, and rows of b are read where they lie, a strip
 * of NR columns and KC rows after the other.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

/* MR x NR is the tile of y that stays in registers: MR vectors of NR floats. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define MR 12
#define NR (VECTOR_BYTES / 4)

/* KC x NR floats stay in L1. */
#define KC 256

/* Rows of any width are aligned to a float and no more. */
typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* MR rows of a, `k` floats apart, against NR columns of rows that are `lead` floats apart; y is stored by the first block
 * of K, and added to by the others. */
static inline void tile(const float *restrict a, int64_t k, const float *restrict b, int64_t lead,
                        float *restrict y, int64_t n, int64_t depth, int first)
{
    vec acc[MR];

    for (int i = 0; i < MR; ++i)
        acc[i] = first ? (vec){0} : *(const vec *)(y + i * n);
    for (int64_t p = 0; p < depth; ++p) {
        vec w = *(const vec *)(b + p * lead);
        for (int i = 0; i < MR; ++i)
            acc[i] += a[i * k + p] * w;
    }
    for (int i = 0; i < MR; ++i)
        *(vec *)(y + i * n) = acc[i];
}

/* The columns that are less than a tile. */
static inline void columns_left(const float *restrict a, const float *restrict b, float *restrict y, int64_t rows,
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

/* The same as a tile for one row. */
static inline void line(const float *restrict a, const float *restrict b, int64_t lead, float *restrict y,
                        int64_t depth, int first)
{
    vec acc = first ? (vec){0} : *(const vec *)y;
    for (int64_t p = 0; p < depth; ++p)
        acc += a[p] * *(const vec *)(b + p * lead);
    *(vec *)y = acc;
}

static inline void product(const float *restrict a, const float *restrict b, float *restrict y, int64_t rows, int64_t n,
                           int64_t k)
{
    int64_t c = 0;

    for (; c + NR <= n; c += NR)
        for (int64_t p = 0; p < k; p += KC) {
            int64_t depth = smaller(KC, k - p), r = 0;
            for (; r + MR <= rows; r += MR)
                tile(a + r * k + p, k, b + p * n + c, n, y + r * n + c, n, depth, p == 0);
            for (; r < rows; ++r)
                line(a + r * k + p, b + p * n + c, n, y + r * n + c, depth, p == 0);
        }
    if (c < n)
        columns_left(a, b + c, y + c, rows, n - c, n, k);
}

void addmm(const float *restrict a, const float *restrict b, const float *restrict bias, float *restrict y, int64_t m,
           int64_t n, int64_t k)
{
    product(a, b, y, m, n, k);
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
            y[i * n + j] += bias[j];
}
