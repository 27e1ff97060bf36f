/* y[rows of g] = x[rows of g] @ weight[g, K, N] in fp32: one sum for each element.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

static void rows_of_group(const float *x, const float *weight, float *y, int64_t rows, int64_t n, int64_t k)
{
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < n; ++c) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; ++p)
                sum += x[r * k + p] * weight[p * n + c];
            y[r * n + c] = sum;
        }
}

void grouped_gemm(const float *x, const float *weight, const int32_t *offsets, float *y, int64_t groups, int64_t n,
                  int64_t k)
{
    for (int64_t g = 0; g < groups; ++g) {
        int64_t first = offsets[g];
        rows_of_group(x + first * k, weight + g * k * n, y + first * n, offsets[g + 1] - first, n, k);
    }
}
