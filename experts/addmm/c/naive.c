/* y[M, N] = a[M, K] @ b[K, N] + bias[N] in fp32: one sum for each element.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

void addmm(const float *a, const float *b, const float *bias, float *y, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = bias[j];
            for (int64_t p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            y[i * n + j] = sum;
        }
}
