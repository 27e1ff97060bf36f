/* y[M, N] = a[M, K] @ b[K, N] + bias[N] in fp32: four rows of y, which begin as the bias, grow together by four rows of b at a
 * time. Plain loops for the compiler to vectorise.
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

static inline void begin(float *restrict y, const float *restrict bias, int64_t n)
{
    for (int64_t j = 0; j < n; ++j)
        y[j] = bias[j];
}

void addmm(const float *restrict a, const float *restrict b, const float *restrict bias, float *restrict y, int64_t m,
           int64_t n, int64_t k)
{
    int64_t i = 0;

    for (int64_t r = 0; r < m; ++r)
        begin(y + r * n, bias, n);
    for (; i + 4 <= m; i += 4) {
        float *row = y + i * n;
        int64_t p = 0;
        for (; p + 4 <= k; p += 4)
            add_four(a + i * k + p, k, b + p * n, b + (p + 1) * n, b + (p + 2) * n, b + (p + 3) * n, row, row + n,
                     row + 2 * n, row + 3 * n, n);
        for (; p < k; ++p)
            for (int64_t r = 0; r < 4; ++r)
                add_one(a + (i + r) * k + p, b + p * n, row + r * n, n);
    }
    for (; i < m; ++i)
        for (int64_t p = 0; p < k; ++p)
            add_one(a + i * k + p, b + p * n, y + i * n, n);
}
