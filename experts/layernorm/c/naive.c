/* y = (x - mean) / sqrt(variance + eps) * weight + bias over each row, in fp32, one element after the other.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>

static float row_mean(const float *x, int64_t hidden)
{
    float sum = 0.0f;
    for (int64_t c = 0; c < hidden; ++c)
        sum += x[c];
    return sum / (float)hidden;
}

static float row_variance(const float *x, int64_t hidden, float mean)
{
    float square = 0.0f;
    for (int64_t c = 0; c < hidden; ++c)
        square += (x[c] - mean) * (x[c] - mean);
    return square / (float)hidden;
}

void layernorm(const float *x, const float *weight, const float *bias, float *y, int64_t rows, int64_t hidden, float eps)
{
    for (int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * hidden;
        float mean = row_mean(row, hidden);
        float scale = 1.0f / sqrtf(row_variance(row, hidden, mean) + eps);
        for (int64_t c = 0; c < hidden; ++c)
            y[r * hidden + c] = (row[c] - mean) * scale * weight[c] + bias[c];
    }
}
