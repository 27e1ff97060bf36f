/* y = (x - mean) / sqrt(variance + eps) * weight + bias over each row, in fp32.
 * Memory is read once: the second and third sweep find the row still in L1.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define LANES (VECTOR_BYTES / 4)

/* UNROLL independent sums hide the latency of the multiply-add. */
#define UNROLL 4
#define STEP (UNROLL * LANES)

/* Rows of a ragged width are aligned to a float and no more. */
typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

static inline float sum_lanes(vec value)
{
    const float *lane = (const float *)&value;
    float sum = 0.0f;
    for (int i = 0; i < LANES; ++i)
        sum += lane[i];
    return sum;
}

static inline float row_mean(const float *restrict x, int64_t hidden)
{
    vec sums[UNROLL] = {0};
    int64_t c = 0;

    for (; c + STEP <= hidden; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u)
            sums[u] += *(const vec *)(x + c + u * LANES);
    }
    vec total = sums[0];
    for (int u = 1; u < UNROLL; ++u)
        total += sums[u];
    float sum = sum_lanes(total);
    for (; c < hidden; ++c)
        sum += x[c];
    return sum / (float)hidden;
}

/* The mean of the squared distances from the mean: as exact for numbers far from zero as for others. Meanwhile the
 * lines of y are fetched, which the next sweep writes. */
static inline float row_variance(const float *restrict x, const float *restrict y, int64_t hidden, float mean)
{
    vec squares[UNROLL] = {0};
    int64_t c = 0;

    for (; c + STEP <= hidden; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u) {
            __builtin_prefetch(y + c + u * LANES, 1);
            vec distance = *(const vec *)(x + c + u * LANES) - mean;
            squares[u] += distance * distance;
        }
    }
    vec total = squares[0];
    for (int u = 1; u < UNROLL; ++u)
        total += squares[u];
    float square = sum_lanes(total);
    for (; c < hidden; ++c)
        square += (x[c] - mean) * (x[c] - mean);
    return square / (float)hidden;
}

static inline void normalise_row(const float *restrict x, const float *restrict weight, const float *restrict bias,
                                 float *restrict y, int64_t hidden, float mean, float scale)
{
    int64_t c = 0;

    for (; c + STEP <= hidden; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u)
            *(vec *)(y + c + u * LANES) =
                (*(const vec *)(x + c + u * LANES) - mean) * scale * *(const vec *)(weight + c + u * LANES) +
                *(const vec *)(bias + c + u * LANES);
    }
    for (; c < hidden; ++c)
        y[c] = (x[c] - mean) * scale * weight[c] + bias[c];
}

void layernorm(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
               int64_t rows, int64_t hidden, float eps)
{
    x = __builtin_assume_aligned(x, VECTOR_BYTES);
    weight = __builtin_assume_aligned(weight, VECTOR_BYTES);
    bias = __builtin_assume_aligned(bias, VECTOR_BYTES);
    y = __builtin_assume_aligned(y, VECTOR_BYTES);

    for (int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * hidden;
        float *out = y + r * hidden;
        float mean = row_mean(row, hidden);
        float scale = 1.0f / sqrtf(row_variance(row, out, hidden, mean) + eps);
        normalise_row(row, weight, bias, out, hidden, mean, scale);
    }
}
