/* residual_out = x + residual; y = residual_out / rms(residual_out) * weight, in fp32. Sums are kept for 64 columns side by
 * side, in plain loops that the compiler vectorises; y, which nobody reads again here, is stored past the caches.
 * SPDX-License-Identifier: MIT */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>

static inline float add_row(const float *restrict x, const float *restrict residual, float *restrict residual_out,
                            int64_t hidden)
{
    float squares[64] = {0}, square = 0.0f;
    int64_t c = 0;
    for (; c + 64 <= hidden; c += 64)
        for (int64_t j = 0; j < 64; ++j) {
            float total = x[c + j] + residual[c + j];
            residual_out[c + j] = total;
            squares[j] += total * total;
        }
    for (int64_t j = 0; j < 64; ++j)
        square += squares[j];
    for (; c < hidden; ++c) {
        residual_out[c] = x[c] + residual[c];
        square += residual_out[c] * residual_out[c];
    }
    return square / (float)hidden;
}

/* Whole vectors from the first aligned address on; what lies before and behind it one by one. */
static inline void scale_row(const float *restrict x, const float *restrict weight, float *restrict y, int64_t hidden,
                             float scale)
{
    int64_t c = 0;
    for (; c < hidden && (uintptr_t)(y + c) % 32 != 0; ++c)
        y[c] = x[c] * scale * weight[c];
#if defined(__FMA__)
    for (; c + 8 <= hidden; c += 8)
        _mm256_stream_ps(y + c, _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + c), _mm256_set1_ps(scale)), _mm256_loadu_ps(weight + c)));
#endif
    for (; c < hidden; ++c)
        y[c] = x[c] * scale * weight[c];
}

void add_rmsnorm(const float *restrict x, const float *restrict residual, const float *restrict weight,
                 float *restrict y, float *restrict residual_out, int64_t rows, int64_t hidden, float eps)
{
    for (int64_t r = 0; r < rows; ++r) {
        const float *total = residual_out + r * hidden;
        float square = add_row(x + r * hidden, residual + r * hidden, residual_out + r * hidden, hidden);
        scale_row(total, weight, y + r * hidden, hidden, 1.0f / sqrtf(square + eps));
    }
    _mm_sfence();
}
