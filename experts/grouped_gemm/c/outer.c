/* y[rows of g] = x[rows of g] @ weight[g, K, N] in fp32: four rows of y grow together by four rows of a group's matrix at a
 * time, and the rows of a group that are left over one by one. Plain loops for the compiler to vectorise.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

static inline void add_four(const float *restrict a, int64_t k, const float *restrict b0, const float *restrict b1,
                            const float *restrict b2, const float *restrict b3, float *restrict y0, float *restrict y1,
                            float *restrict y2, float *restrict y3, int64_t n)
{
    for (int64_t j = 0; j < n; ++j) {
        y0[j] += a[0] * b0[j] + a[1] * b1[j] + a[2] * b2[j] + a[3] * b3[j];
        y1[j] += a[k] * b0[j] + a[k + 1] * b1[j] + a[k + 2] * b2[j] + a[k + 3] * b3[j];
        y2[j] += a[2 * k] * b0[j] + a[2 * k + 1] * b1[j] + a[2 * k + 2] * b2[j] + a[2 * k + 3] * b3[j];
        y3[j] += a[3 * k] * b0[j] + a[3 * k + 1] * b1[j] + a[3 * k + 2] * b2[j] + a[3 * k + 3] * b3[j];
    }
}

static inline void add_one(const float *restrict a, const float *restrict b, float *restrict y, int64_t n)
{
    for (int64_t j = 0; j < n; ++j)
        y[j] += a[0] * b[j];
}

static inline void clear(float *restrict y, int64_t n)
{
    for (int64_t j = 0; j < n; ++j)
        y[j] = 0.0f;
}

static inline void rows_of_group(const float *restrict x, const float *restrict weight, float *restrict y, int64_t rows,
                                 int64_t n, int64_t k)
{
    int64_t r = 0;

    clear(y, rows * n);
    for (; r + 4 <= rows; r += 4) {
        float *row = y + r * n;
        int64_t p = 0;
        for (; p + 4 <= k; p += 4)
            add_four(x + r * k + p, k, weight + p * n, weight + (p + 1) * n, weight + (p + 2) * n, weight + (p + 3) * n,
                     row, row + n, row + 2 * n, row + 3 * n, n);
        for (; p < k; ++p)
            for (int64_t s = 0; s < 4; ++s)
                add_one(x + (r + s) * k + p, weight + p * n, row + s * n, n);
    }
    for (; r < rows; ++r)
        for (int64_t p = 0; p < k; ++p)
            add_one(x + r * k + p, weight + p * n, y + r * n, n);
}

void grouped_gemm(const float *restrict x, const float *restrict weight, const int32_t *restrict offsets,
                  float *restrict y, int64_t groups, int64_t n, int64_t k)
{
    for (int64_t g = 0; g < groups; ++g) {
        int64_t first = offsets[g];
        rows_of_group(x + first * k, weight + g * k * n, y + first * n, offsets[g + 1] - first, n, k);
    }
}
