/* y[rows of g] = x[rows of g] @ weight[g, K, N] in fp32: a panel of NR columns of a group's matrix is copied together, so that
 * its rows lie one after the other in L1, and every row of the group passes by. The panel is static: one call at a time.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

/* MR x NR is the tile of y that stays in registers: MR vectors of NR floats. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define MR 12
#define NR (VECTOR_BYTES / 4)

/* KC x NR floats stay in L1. */
#define KC 256

/* Rows of any width are aligned to a float and no more. */
typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* MR rows of x, `k` floats apart, against NR columns of rows that are `lead` floats apart; y is stored by the first block
 * of K, and added to by the others. */
static inline void tile(const float *restrict x, int64_t k, const float *restrict weight, int64_t lead,
                        float *restrict y, int64_t n, int64_t depth, int first)
{
    vec acc[MR];

    for (int i = 0; i < MR; ++i)
        acc[i] = first ? (vec){0} : *(const vec *)(y + i * n);
    for (int64_t p = 0; p < depth; ++p) {
        vec w = *(const vec *)(weight + p * lead);
        for (int i = 0; i < MR; ++i)
            acc[i] += x[i * k + p] * w;
    }
    for (int i = 0; i < MR; ++i)
        *(vec *)(y + i * n) = acc[i];
}

/* The columns that are less than a tile. */
static inline void columns_left(const float *restrict x, const float *restrict weight, float *restrict y, int64_t rows,
                                int64_t columns, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; ++p)
                sum += x[i * k + p] * weight[p * n + j];
            y[i * n + j] = sum;
        }
}

/* The same as a tile for one row. */
static inline void line(const float *restrict x, const float *restrict weight, int64_t lead, float *restrict y,
                        int64_t depth, int first)
{
    vec acc = first ? (vec){0} : *(const vec *)y;
    for (int64_t p = 0; p < depth; ++p)
        acc += x[p] * *(const vec *)(weight + p * lead);
    *(vec *)y = acc;
}

static float panel[KC * NR];

/* panel[depth][width] = source[depth][width], whose rows are `lead` floats apart. */
static inline void copy_panel(const float *source, int64_t lead, int64_t depth, int64_t width, float *panel)
{
    for (int64_t p = 0; p < depth; ++p)
        for (int64_t j = 0; j < width; ++j)
            panel[p * width + j] = source[p * lead + j];
}

static inline void rows_of_group(const float *restrict x, const float *restrict weight, float *restrict y, int64_t rows,
                                 int64_t n, int64_t k)
{
    int64_t c = 0;

    for (; c + NR <= n; c += NR)
        for (int64_t p = 0; p < k; p += KC) {
            int64_t depth = smaller(KC, k - p), r = 0;
            copy_panel(weight + p * n + c, n, depth, NR, panel);
            for (; r + MR <= rows; r += MR)
                tile(x + r * k + p, k, panel, NR, y + r * n + c, n, depth, p == 0);
            for (; r < rows; ++r)
                line(x + r * k + p, panel, NR, y + r * n + c, depth, p == 0);
        }
    if (c < n)
        columns_left(x, weight + c, y + c, rows, n - c, n, k);
}

void grouped_gemm(const float *restrict x, const float *restrict weight, const int32_t *restrict offsets,
                  float *restrict y, int64_t groups, int64_t n, int64_t k)
{
    for (int64_t g = 0; g < groups; ++g) {
        int64_t first = offsets[g];
        rows_of_group(x + first * k, weight + g * k * n, y + first * n, offsets[g + 1] - first, n, k);
    }
}
