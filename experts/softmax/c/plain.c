/* y = exp(x - max) / sum(exp(x - max)) over each row, in fp32, in plain loops that the compiler vectorises: maxima and sums
 * are kept for WIDTH columns side by side, so that none waits for another. fmaxf is a call to it, so that loop is written
 * with vectors.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif

/* A row is folded to so many columns before its maximum and its sum are known. */
#define WIDTH 256

#define LOG2_E 1.44269504f
#define ROUND 12582912.0f /* 1.5 * 2^23: added and taken off again, it rounds to a whole number */
#define BIAS 1262485377   /* the pattern of ROUND less 127: what is left is an exponent field */
#define LEAST -126.0f     /* smaller exponents do not matter beside the largest, which is 0 */

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* e^d for d up to 0, to 1e-7: a polynomial of degree 5 for the fraction of a power of two, an exponent for the rest. */
static inline float exponential(float d)
{
    float t = d * LOG2_E > LEAST ? d * LOG2_E : LEAST;
    float whole = t + ROUND;
    float f = t - (whole - ROUND);
    float p = 1.32764713e-3f * f + 9.67554096e-3f;
    p = p * f + 5.55071309e-2f;
    p = p * f + 0.240221202f;
    p = p * f + 0.693146944f;
    p = p * f + 1.00000012f;
    int32_t pattern;
    memcpy(&pattern, &whole, sizeof pattern);
    pattern = (pattern - BIAS) * (1 << 23);
    float power;
    memcpy(&power, &pattern, sizeof power);
    return p * power;
}

/* most[j] becomes the larger of itself and x[j]. */
static inline void keep_larger(const float *restrict x, float *restrict most, int64_t count)
{
    int64_t j = 0;
#if defined(__AVX__)
    for (; j + 8 <= count; j += 8)
        _mm256_storeu_ps(most + j, _mm256_max_ps(_mm256_loadu_ps(most + j), _mm256_loadu_ps(x + j)));
#endif
    for (; j < count; ++j)
        most[j] = fmaxf(most[j], x[j]);
}

static inline float row_maximum(const float *restrict x, int64_t columns)
{
    float most[WIDTH];
    for (int64_t j = 0; j < WIDTH; ++j)
        most[j] = x[0];
    for (int64_t c = 0; c < columns; c += WIDTH)
        keep_larger(x + c, most, smaller(WIDTH, columns - c));
    float maximum = most[0];
    for (int64_t j = 1; j < WIDTH; ++j)
        maximum = most[j] > maximum ? most[j] : maximum;
    return maximum;
}

static inline void add_exponentials(const float *restrict x, float *restrict y, float *restrict sums, int64_t count,
                                    float maximum)
{
    for (int64_t j = 0; j < count; ++j) {
        y[j] = exponential(x[j] - maximum);
        sums[j] += y[j];
    }
}

static inline float row_exponentials(const float *restrict x, float *restrict y, int64_t columns, float maximum)
{
    float sums[WIDTH] = {0};
    for (int64_t c = 0; c < columns; c += WIDTH)
        add_exponentials(x + c, y + c, sums, smaller(WIDTH, columns - c), maximum);
    float sum = 0.0f;
    for (int64_t j = 0; j < WIDTH; ++j)
        sum += sums[j];
    return sum;
}

static inline void scale_row(float *restrict y, int64_t columns, float scale)
{
    for (int64_t c = 0; c < columns; ++c)
        y[c] *= scale;
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * columns;
        float *out = y + r * columns;
        float sum = row_exponentials(row, out, columns, row_maximum(row, columns));
        scale_row(out, columns, 1.0f / sum);
    }
}
