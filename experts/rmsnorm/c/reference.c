/* y = x / sqrt(mean(x * x) + eps) * weight over each row, in fp32.
 * A row is squared in one loop and scaled in a second, which finds it still in L1, and the lines that it writes too.
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

static inline void rmsnorm_row(const float *restrict x, const float *restrict weight, float *restrict y,
                               int64_t hidden, float eps)
{
    vec squares[UNROLL] = {0};
    int64_t c = 0;

    for (; c + STEP <= hidden; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u) {
            __builtin_prefetch(y + c + u * LANES, 1);
            vec value = *(const vec *)(x + c + u * LANES);
            squares[u] += value * value;
        }
    }
    vec total = squares[0];
    for (int u = 1; u < UNROLL; ++u)
        total += squares[u];
    float square = sum_lanes(total);
    for (; c < hidden; ++c)
        square += x[c] * x[c];

    float scale = 1.0f / sqrtf(square / (float)hidden + eps);
    for (c = 0; c + STEP <= hidden; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u)
            *(vec *)(y + c + u * LANES) =
                *(const vec *)(x + c + u * LANES) * scale * *(const vec *)(weight + c + u * LANES);
    }
    for (; c < hidden; ++c)
        y[c] = x[c] * scale * weight[c];
}

void rmsnorm(const float *restrict x, const float *restrict weight, float *restrict y, int64_t rows, int64_t hidden,
             float eps)
{
    x = __builtin_assume_aligned(x, VECTOR_BYTES);
    weight = __builtin_assume_aligned(weight, VECTOR_BYTES);
    y = __builtin_assume_aligned(y, VECTOR_BYTES);

    for (int64_t r = 0; r < rows; ++r)
        rmsnorm_row(x + r * hidden, weight, y + r * hidden, hidden, eps);
}
