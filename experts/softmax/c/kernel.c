/* y = exp(x - max) / sum(exp(x - max)) over each row, in fp32.
 * Three sweeps over a row that stays in L1, so that memory is read once.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define LANES (VECTOR_BYTES / 4)

/* UNROLL independent maxima and sums hide the latency of a comparison and of an addition. */
#define UNROLL 4
#define STEP (UNROLL * LANES)

/* Rows of a ragged width are aligned to a float and no more. */
typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

/* As many integers as a vector has lanes: what a comparison of two vectors gives. */
typedef __typeof__((vec){0} < (vec){0}) ivec;

#define LOG2_E 1.44269504f
#define ROUND 12582912.0f /* 1.5 * 2^23: added and taken off again, it rounds to a whole number */
#define BIAS 1262485377   /* the pattern of ROUND less 127: what is left is an exponent field */
#define LEAST -126.0f     /* smaller exponents do not matter beside the largest, which is 0 */

static inline ivec bits(vec value)
{
    ivec pattern;
    memcpy(&pattern, &value, sizeof pattern);
    return pattern;
}

static inline vec number(ivec pattern)
{
    vec value;
    memcpy(&value, &pattern, sizeof value);
    return value;
}

/* The larger of two, lane by lane, without a comparison: the sign of a difference chooses. */
static inline vec larger(vec a, vec b)
{
    ivec less = bits(a - b) >> 31;
    return number((bits(a) & ~less) | (bits(b) & less));
}

/* 2^t for t from -126 to 0, to 8e-8: a polynomial of degree 5 for the fraction, an exponent for the whole part. */
static inline vec power_of_two(vec t)
{
    vec whole = t + ROUND;
    vec f = t - (whole - ROUND);
    vec p = 1.32764713e-3f * f + 9.67554096e-3f;
    p = p * f + 5.55071309e-2f;
    p = p * f + 0.240221202f;
    p = p * f + 0.693146944f;
    p = p * f + 1.00000012f;
    return p * number((bits(whole) - BIAS) << 23);
}

static inline float largest_lane(vec value)
{
    const float *lane = (const float *)&value;
    float most = lane[0];
    for (int i = 1; i < LANES; ++i)
        most = lane[i] > most ? lane[i] : most;
    return most;
}

static inline float sum_lanes(vec value)
{
    const float *lane = (const float *)&value;
    float sum = 0.0f;
    for (int i = 0; i < LANES; ++i)
        sum += lane[i];
    return sum;
}

static inline float row_maximum(const float *restrict x, int64_t columns)
{
    vec most[UNROLL];
    int64_t c = 0;

    for (int u = 0; u < UNROLL; ++u)
        most[u] = x[0] - (vec){0};
    for (; c + STEP <= columns; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u)
            most[u] = larger(*(const vec *)(x + c + u * LANES), most[u]);
    }
    vec largest = most[0];
    for (int u = 1; u < UNROLL; ++u)
        largest = larger(most[u], largest);
    for (; c + LANES <= columns; c += LANES)
        largest = larger(*(const vec *)(x + c), largest);
    float maximum = largest_lane(largest);
    for (; c < columns; ++c)
        maximum = x[c] > maximum ? x[c] : maximum;
    return maximum;
}

static inline vec exponential(vec value, float maximum)
{
    return power_of_two(larger((value - maximum) * LOG2_E, LEAST - (vec){0}));
}

static inline float row_exponentials(const float *restrict x, float *restrict y, int64_t columns, float maximum)
{
    vec sums[UNROLL] = {0};
    int64_t c = 0;

    for (; c + STEP <= columns; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u) {
            vec e = exponential(*(const vec *)(x + c + u * LANES), maximum);
            *(vec *)(y + c + u * LANES) = e;
            sums[u] += e;
        }
    }
    vec total = sums[0];
    for (int u = 1; u < UNROLL; ++u)
        total += sums[u];
    for (; c + LANES <= columns; c += LANES) {
        vec e = exponential(*(const vec *)(x + c), maximum);
        *(vec *)(y + c) = e;
        total += e;
    }
    float sum = sum_lanes(total);
    for (; c < columns; ++c) {
        vec e = exponential(x[c] - (vec){0}, maximum);
        y[c] = *(const float *)&e;
        sum += y[c];
    }
    return sum;
}

static inline void scale_row(float *restrict y, int64_t columns, float scale)
{
    int64_t c = 0;

    for (; c + STEP <= columns; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u)
            *(vec *)(y + c + u * LANES) *= scale;
    }
    for (; c < columns; ++c)
        y[c] *= scale;
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t columns)
{
    x = __builtin_assume_aligned(x, VECTOR_BYTES);
    y = __builtin_assume_aligned(y, VECTOR_BYTES);

    for (int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * columns;
        float sum = row_exponentials(row, y + r * columns, columns, row_maximum(row, columns));
        scale_row(y + r * columns, columns, 1.0f / sum);
    }
}
