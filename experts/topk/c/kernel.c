/* The k largest of each row, in the order of their columns, and where they are; fp32 values, int64 indices.
 * A row stays in L1 while a threshold is searched that exactly k elements reach: halve an interval, count in vectors.
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

/* UNROLL independent counts hide the latency of an addition. */
#define UNROLL 4
#define STEP (UNROLL * LANES)

/* So many times the interval is halved as numbers; after that as patterns of bits, which ends in at most 32 steps. */
#define HALVINGS 16

/* Rows of a ragged width are aligned to a float and no more. */
typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

/* As many integers as a vector has lanes: what a comparison of two vectors gives. */
typedef __typeof__((vec){0} < (vec){0}) ivec;

static inline ivec bits(vec value)
{
    ivec pattern;
    memcpy(&pattern, &value, sizeof pattern);
    return pattern;
}

/* Lane by lane: other where the mask is set, else value. */
static inline vec chosen(vec value, vec other, ivec mask)
{
    ivec pattern = (bits(value) & ~mask) | (bits(other) & mask);
    memcpy(&value, &pattern, sizeof value);
    return value;
}

static inline int32_t sum_lanes(ivec value)
{
    const int32_t *lane = (const int32_t *)&value;
    int32_t sum = 0;
    for (int i = 0; i < LANES; ++i)
        sum += lane[i];
    return sum;
}

/* How many elements are at least the threshold. A comparison is -1 where it holds, in a vector, and 1 without one: the
 * last bit is the same. */
static inline int64_t reach(const float *restrict x, int64_t columns, float threshold)
{
    ivec below[UNROLL] = {0};
    int64_t c = 0;

    for (; c + STEP <= columns; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u)
            below[u] += (*(const vec *)(x + c + u * LANES) < threshold) & 1;
    }
    ivec total = below[0];
    for (int u = 1; u < UNROLL; ++u)
        total += below[u];
    for (; c + LANES <= columns; c += LANES)
        total += (*(const vec *)(x + c) < threshold) & 1;
    int64_t count = columns - sum_lanes(total);
    for (; c < columns; ++c)
        count -= x[c] < threshold;
    return count;
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

/* The range that is searched: from the least element to the next number above the largest. */
static inline void row_range(const float *restrict x, int64_t columns, float *low, float *high)
{
    vec least[UNROLL], most[UNROLL];
    int64_t c = 0;

    for (int u = 0; u < UNROLL; ++u)
        least[u] = most[u] = x[0] - (vec){0};
    for (; c + STEP <= columns; c += STEP) {
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u) {
            vec value = *(const vec *)(x + c + u * LANES);
            least[u] = chosen(least[u], value, bits(value - least[u]) >> 31);
            most[u] = chosen(most[u], value, bits(most[u] - value) >> 31);
        }
    }
    vec small = least[0], large = most[0];
    for (int u = 1; u < UNROLL; ++u) {
        small = chosen(small, least[u], bits(least[u] - small) >> 31);
        large = chosen(large, most[u], bits(large - most[u]) >> 31);
    }
    *low = *high = x[0];
    for (int i = 0; i < LANES; ++i) {
        *low = ((const float *)&small)[i] < *low ? ((const float *)&small)[i] : *low;
        *high = ((const float *)&large)[i] > *high ? ((const float *)&large)[i] : *high;
    }
    for (; c < columns; ++c) {
        *low = x[c] < *low ? x[c] : *low;
        *high = x[c] > *high ? x[c] : *high;
    }
    *high = unordered(ordered(*high + 0.0f) + 1); /* the next after -0 would be 0, which is no larger */
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

    /* At least k elements reach low; `above` of them reach high, and they are fewer, until exactly k do. */
    int64_t above = 0;
    for (int step = 0; above != k && (int64_t)ordered(high) - ordered(low) > 1; ++step) {
        float middle = low * 0.5f + high * 0.5f;
        if (step >= HALVINGS || !(middle > low && middle < high))
            middle = unordered((int32_t)(((int64_t)ordered(low) + ordered(high)) >> 1));
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
    x = __builtin_assume_aligned(x, VECTOR_BYTES);

    for (int64_t r = 0; r < rows; ++r)
        topk_row(x + r * columns, values + r * k, indices + r * k, columns, k);
}
