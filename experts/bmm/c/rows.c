/* y[b, M, N] = a[b, M, K] @ b[b, K, N] in fp32: a row of y is summed from one row of b after the other, each of which is
 * read in the order in which it lies.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

static inline void product(const float *restrict a, const float *restrict b, float *restrict y, int64_t m, int64_t n,
                           int64_t k)
{
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j)
            y[i * n + j] = 0.0f;
        for (int64_t p = 0; p < k; ++p)
            for (int64_t j = 0; j < n; ++j)
                y[i * n + j] += a[i * k + p] * b[p * n + j];
    }
}

void bmm(const float *restrict a, const float *restrict b, float *restrict y, int64_t batch, int64_t m, int64_t n,
         int64_t k)
{
    for (int64_t t = 0; t < batch; ++t)
        product(a + t * m * k, b + t * k * n, y + t * m * n, m, n, k);
}
