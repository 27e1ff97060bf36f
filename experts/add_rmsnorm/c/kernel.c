/* residual_out = x + residual; y = residual_out / rms(residual_out) * weight, in fp32.
 * One sweep over memory: the second loop finds the row still in L1, and the lines that it writes too.
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

static inline void add_rmsnorm_row(const float *restrict x, const float *restrict residual,
                                   const float *restrict weight, float *restrict y, float *restrict residual_out,
                                   int64_t hidden, float eps)
{
    vec squares[UNROLL] = {0};
    float square = 0.0f;
    int64_t c = 0;

    for (; c + STEP <= hidden; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u) {
            __builtin_prefetch(y + c + u * LANES, 1);
            vec total = *(const vec *)(x + c + u * LANES) + *(const vec *)(residual + c + u * LANES);
            *(vec *)(residual_out + c + u * LANES) = total;
            squares[u] += total * total;
        }
    }
    for (; c < hidden; ++c) {
        float total = x[c] + residual[c];
        residual_out[c] = total;
        square += total * total;
    }
#pragma GCC unroll 4
    for (int u = 0; u < UNROLL; ++u)
        square += sum_lanes(squares[u]);

    float scale = 1.0f / sqrtf(square / (float)hidden + eps);
    for (c = 0; c + STEP <= hidden; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u)
            *(vec *)(y + c + u * LANES) =
                *(const vec *)(residual_out + c + u * LANES) * scale * *(const vec *)(weight + c + u * LANES);
    }
    for (; c < hidden; ++c)
        y[c] = residual_out[c] * scale * weight[c];
}

void add_rmsnorm(const float *restrict x, const float *restrict residual, const float *restrict weight,
                 float *restrict y, float *restrict residual_out, int64_t rows, int64_t hidden, float eps)
{
    x = __builtin_assume_aligned(x, VECTOR_BYTES);
    residual = __builtin_assume_aligned(residual, VECTOR_BYTES);
    weight = __builtin_assume_aligned(weight, VECTOR_BYTES);
    y = __builtin_assume_aligned(y, VECTOR_BYTES);
    residual_out = __builtin_assume_aligned(residual_out, VECTOR_BYTES);

    for (int64_t r = 0; r < rows; ++r)
        add_rmsnorm_row(x + r * hidden, residual + r * hidden, weight, y + r * hidden, residual_out + r * hidden,
                        hidden, eps);
}
