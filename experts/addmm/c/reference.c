/* y[M, N] = a[M, K] @ b[K, N] + bias[N] in fp32: panels of b are packed once and then run over by a micro-kernel that
 * keeps its tile in registers; the bias is where the sums begin.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

/* MR x NR is the tile of y that the micro-kernel keeps in registers: MR * NV vectors of LANES floats. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define MR 12
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define MR 6
#else
#define VECTOR_BYTES 16
#define MR 6
#endif
#define LANES (VECTOR_BYTES / 4)
#define NV 2
#define NR (NV * LANES)

/* KC x NR floats of b stay in L1. */
#define KC 256

typedef float vec __attribute__((vector_size(VECTOR_BYTES), may_alias));

static float panel[KC * NR] __attribute__((aligned(4096)));

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Copies depth rows of NR columns of b; columns that are not there become zeros. */
static inline void pack(const float *restrict b, int64_t lead, int64_t columns, int64_t depth)
{
    for (int64_t p = 0; p < depth; ++p)
        for (int64_t j = 0; j < NR; ++j)
            panel[p * NR + j] = j < columns ? b[p * lead + j] : 0.0f;
}

/* tile[MR][NR] = MR rows of a times the panel, summed over depth. Rows past the last are those of the last. */
static inline void micro_kernel(int64_t depth, const float *restrict a, int64_t lead, int64_t last,
                                float *restrict tile)
{
    const float *restrict b = __builtin_assume_aligned(panel, VECTOR_BYTES);
    vec acc[MR][NV] = {0};

    for (int64_t p = 0; p < depth; ++p) {
        __builtin_prefetch(b + 16 * NR);
        vec w[NV];
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j)
            w[j] = *(const vec *)(b + j * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
            for (int j = 0; j < NV; ++j)
                acc[i][j] += a[smaller(i, last) * lead + p] * w[j];
        b += NR;
    }

#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j)
            *(vec *)(tile + i * NR + j * LANES) = acc[i][j];
}

/* Adds the live part of a tile to y, or to the bias when it is the first block of K. */
static inline void write_tile(const float *restrict tile, const float *restrict bias, float *restrict y, int64_t lead,
                              int64_t rows, int64_t columns, int first)
{
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            y[i * lead + j] = (first ? bias[j] : y[i * lead + j]) + tile[i * NR + j];
}

void addmm(const float *restrict a, const float *restrict b, const float *restrict bias, float *restrict y, int64_t m,
           int64_t n, int64_t k)
{
    float tile[MR * NR] __attribute__((aligned(64)));

    for (int64_t j = 0; j < n; j += NR) {
        int64_t columns = smaller(NR, n - j);
        for (int64_t p = 0; p < k; p += KC) {
            int64_t depth = smaller(KC, k - p);
            pack(b + p * n + j, n, columns, depth);
            for (int64_t i = 0; i < m; i += MR) {
                micro_kernel(depth, a + i * k + p, k, smaller(MR, m - i) - 1, tile);
                write_tile(tile, bias + j, y + i * n + j, n, smaller(MR, m - i), columns, p == 0);
            }
        }
    }
}
