/* y[b, M, N] = a[b, M, K] @ b[b, K, N] in fp32: one sum for each element.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

static void product(const float *a, const float *b, float *y, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            y[i * n + j] = sum;
        }
}

void bmm(const float *a, const float *b, float *y, int64_t batch, int64_t m, int64_t n, int64_t k)
{
    for (int64_t t = 0; t < batch; ++t)
        product(a + t * m * k, b + t * k * n, y + t * m * n, m, n, k);
}
