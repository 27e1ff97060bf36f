/* The k largest of each row, in the order of their columns, and where they are; fp32 values, int64 indices.
 * A threshold is searched that exactly k elements reach, by halving an interval of patterns of bits. Plain loops, which the
 * compiler vectorises, but for the range of a row: fminf and fmaxf are calls to it, so that loop is written with vectors.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif

/* A row is folded to so many columns before its range is known. */
#define WIDTH 256

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* least[j] and most[j] take in x[j]. */
static inline void take_in(const float *restrict x, float *restrict least, float *restrict most, int64_t count)
{
    int64_t j = 0;
#if defined(__AVX__)
    for (; j + 8 <= count; j += 8) {
        _mm256_storeu_ps(least + j, _mm256_min_ps(_mm256_loadu_ps(least + j), _mm256_loadu_ps(x + j)));
        _mm256_storeu_ps(most + j, _mm256_max_ps(_mm256_loadu_ps(most + j), _mm256_loadu_ps(x + j)));
    }
#endif
    for (; j < count; ++j) {
        least[j] = fminf(least[j], x[j]);
        most[j] = fmaxf(most[j], x[j]);
    }
}

static inline void row_range(const float *restrict x, int64_t columns, float *restrict low, float *restrict high)
{
    float least[WIDTH], most[WIDTH];
    for (int64_t j = 0; j < WIDTH; ++j)
        least[j] = most[j] = x[0];
    for (int64_t c = 0; c < columns; c += WIDTH)
        take_in(x + c, least, most, smaller(WIDTH, columns - c));
    *low = *high = x[0];
    for (int64_t j = 0; j < WIDTH; ++j) {
        *low = least[j] < *low ? least[j] : *low;
        *high = most[j] > *high ? most[j] : *high;
    }
}

/* Floats in the order of integers, and back: the pattern itself, or the complement of what is below the sign. */
static inline int32_t ordered(float value)
{
    int32_t pattern;
    memcpy(&pattern, &value, sizeof pattern);
    return pattern ^ ((pattern >> 31) & INT32_MAX);
}

static inline float unordered(int32_t pattern)
{
    float value;
    pattern ^= (pattern >> 31) & INT32_MAX;
    memcpy(&value, &pattern, sizeof value);
    return value;
}

/* How many elements are at least the threshold. */
static inline int64_t reach(const float *restrict x, int64_t columns, float threshold)
{
    int32_t count = 0;
    for (int64_t c = 0; c < columns; ++c)
        count += x[c] >= threshold;
    return count;
}

/* Stores the `above` elements that reach `high`, then the first of those that only reach `low`: k in all.
 * Every element is stored where the next wanted one belongs, and stays there if it is wanted: no branch to predict. */
static inline void collect(const float *restrict x, float *restrict values, int64_t *restrict indices, int64_t k,
                           int64_t columns, float low, float high, int64_t above)
{
    int64_t count = 0;
    for (int64_t c = 0; count < above && c < columns; ++c) {
        values[count] = x[c];
        indices[count] = c;
        count += x[c] >= high;
    }
    for (int64_t c = 0; count < k && c < columns; ++c) {
        values[count] = x[c];
        indices[count] = c;
        count += (x[c] >= low) & !(x[c] >= high);
    }
}

static inline void topk_row(const float *restrict x, float *restrict values, int64_t *restrict indices,
                            int64_t columns, int64_t k)
{
    float low, high;
    row_range(x, columns, &low, &high);
    high = unordered(ordered(high + 0.0f) + 1); /* the next after -0 would be 0, which is no larger */

    /* At least k elements reach low; `above` of them reach high, and they are fewer, until exactly k do. */
    int64_t above = 0;
    while (above != k && (int64_t)ordered(high) - ordered(low) > 1) {
        float middle = unordered((int32_t)(((int64_t)ordered(low) + ordered(high)) >> 1));
        int64_t count = reach(x, columns, middle);
        if (count > k) {
            low = middle;
        } else {
            high = middle;
            above = count;
        }
    }
    collect(x, values, indices, k, columns, low, high, above);
}

void topk(const float *restrict x, float *restrict values, int64_t *restrict indices, int64_t rows, int64_t columns,
          int64_t k)
{
    for (int64_t r = 0; r < rows; ++r)
        topk_row(x + r * columns, values + r * k, indices + r * k, columns, k);
}
