/* y = (x - mean) / sqrt(variance + eps) * weight + bias over each row, in fp32. Sums are kept for 64 columns side by side, in
 * plain loops that the compiler vectorises; the result, which nobody reads again here, is stored past the caches.
 * SPDX-License-Identifier: MIT */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>

static inline float row_mean(const float *restrict x, int64_t hidden)
{
    float sums[64] = {0}, sum = 0.0f;
    int64_t c = 0;
    for (; c + 64 <= hidden; c += 64)
        for (int64_t j = 0; j < 64; ++j)
            sums[j] += x[c + j];
    for (int64_t j = 0; j < 64; ++j)
        sum += sums[j];
    for (; c < hidden; ++c)
        sum += x[c];
    return sum / (float)hidden;
}

/* The mean of the squared distances from the mean: as exact for numbers far from zero as for others. */
static inline float row_variance(const float *restrict x, int64_t hidden, float mean)
{
    float squares[64] = {0}, square = 0.0f;
    int64_t c = 0;
    for (; c + 64 <= hidden; c += 64)
        for (int64_t j = 0; j < 64; ++j)
            squares[j] += (x[c + j] - mean) * (x[c + j] - mean);
    for (int64_t j = 0; j < 64; ++j)
        square += squares[j];
    for (; c < hidden; ++c)
        square += (x[c] - mean) * (x[c] - mean);
    return square / (float)hidden;
}

/* Whole vectors from the first aligned address on; what lies before and behind it one by one. */
static inline void normalise_row(const float *restrict x, const float *restrict weight, const float *restrict bias,
                                 float *restrict y, int64_t hidden, float mean, float scale)
{
    int64_t c = 0;
    for (; c < hidden && (uintptr_t)(y + c) % 32 != 0; ++c)
        y[c] = (x[c] - mean) * scale * weight[c] + bias[c];
#if defined(__FMA__)
    for (; c + 8 <= hidden; c += 8)
        _mm256_stream_ps(y + c, _mm256_fmadd_ps(_mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(x + c), _mm256_set1_ps(mean)), _mm256_set1_ps(scale)), _mm256_loadu_ps(weight + c), _mm256_loadu_ps(bias + c)));
#endif
    for (; c < hidden; ++c)
        y[c] = (x[c] - mean) * scale * weight[c] + bias[c];
}

void layernorm(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
               int64_t rows, int64_t hidden, float eps)
{
    for (int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * hidden;
        float mean = row_mean(row, hidden);
        float scale = 1.0f / sqrtf(row_variance(row, hidden, mean) + eps);
        normalise_row(row, weight, bias, y + r * hidden, hidden, mean, scale);
    }
    _mm_sfence();
}
