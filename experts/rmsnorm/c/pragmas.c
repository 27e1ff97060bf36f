/* y = x / sqrt(mean(x * x) + eps) * weight over each row, in fp32, in loops that the compiler is told to vectorise: a sum of
 * floats is not, by itself, for the order of its additions would change.
 * SPDX-License-Identifier: MIT */
// klineage: flags -fopenmp-simd
#include <math.h>
#include <stdint.h>

static inline float mean_square(const float *restrict x, int64_t hidden)
{
    float square = 0.0f;
#pragma omp simd reduction(+ : square)
    for (int64_t c = 0; c < hidden; ++c)
        square += x[c] * x[c];
    return square / (float)hidden;
}

static inline void scale_row(const float *restrict x, const float *restrict weight, float *restrict y, int64_t hidden,
                             float scale)
{
    for (int64_t c = 0; c < hidden; ++c)
        y[c] = x[c] * scale * weight[c];
}

void rmsnorm(const float *restrict x, const float *restrict weight, float *restrict y, int64_t rows, int64_t hidden,
             float eps)
{
    for (int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * hidden;
        scale_row(row, weight, y + r * hidden, hidden, 1.0f / sqrtf(mean_square(row, hidden) + eps));
    }
}
