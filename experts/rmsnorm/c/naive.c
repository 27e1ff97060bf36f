/* y = x / sqrt(mean(x * x) + eps) * weight over each row, in fp32, one element after the other.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>

static float mean_square(const float *x, int64_t hidden)
{
    float square = 0.0f;
    for (int64_t c = 0; c < hidden; ++c)
        square += x[c] * x[c];
    return square / (float)hidden;
}

void rmsnorm(const float *x, const float *weight, float *y, int64_t rows, int64_t hidden, float eps)
{
    for (int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * hidden;
        float scale = 1.0f / sqrtf(mean_square(row, hidden) + eps);
        for (int64_t c = 0; c < hidden; ++c)
            y[r * hidden + c] = row[c] * scale * weight[c];
    }
}
