/* y[M, N] = x[M, K] @ weight[N, K].T in fp32: a tall tile of y, one vector wide, over packed panels.
 * One vector of weight serves MR rows of x, whose elements the multiply-add takes from memory itself.
 * The packed panels are static: one call at a time.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

/* MR x NR is the tile of y that the micro-kernel keeps in registers: MR vectors of NR floats. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define MR 24
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define MR 12
#else
#define VECTOR_BYTES 16
#define MR 12
#endif
#define NR (VECTOR_BYTES / 4)

/* KC x NR floats of weight stay in L1, MC x KC floats of x in L2. */
#define MC (MR * 8)
#define KC 256

typedef float vec __attribute__((vector_size(VECTOR_BYTES), may_alias));

static float x_panels[MC * KC] __attribute__((aligned(64)));
static float weight_panel[KC * NR] __attribute__((aligned(64)));

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Copies rows x depth of a row-major matrix into panels of `width` rows, stored depth-major: panel[p][i].
 * Missing rows of the last panel become zeros, so that the micro-kernel never sees an edge. */
static inline void pack(const float *restrict source, int64_t lead, int64_t rows, int64_t depth, int64_t width,
                        float *restrict panel)
{
    for (int64_t r = 0; r < rows; r += width) {
        for (int64_t p = 0; p < depth; ++p)
            for (int64_t i = 0; i < width; ++i)
                panel[p * width + i] = r + i < rows ? source[(r + i) * lead + p] : 0.0f;
        panel += width * depth;
    }
}

/* tile[MR][NR] = x_panel[depth][MR] outer-product weight_panel[depth][NR], summed over depth. */
static inline void micro_kernel(int64_t depth, const float *restrict x_panel, const float *restrict w_panel,
                                float *restrict tile)
{
    const float *restrict a = x_panel;
    const float *restrict b = w_panel;
    vec acc[MR] = {0};

    for (int64_t p = 0; p < depth; ++p) {
        vec w = *(const vec *)b;
#pragma GCC unroll 24
        for (int i = 0; i < MR; ++i)
            acc[i] += a[i] * w;
        a += MR;
        b += NR;
    }

#pragma GCC unroll 24
    for (int i = 0; i < MR; ++i)
        *(vec *)(tile + i * NR) = acc[i];
}

/* Adds the live part of a tile to y, or stores it when it is the first block of K. */
static inline void write_tile(const float *restrict tile, float *restrict y, int64_t lead, int64_t rows, int64_t cols,
                              int first)
{
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j)
            y[i * lead + j] = (first ? 0.0f : y[i * lead + j]) + tile[i * NR + j];
}

void gemm(const float *restrict x, const float *restrict weight, float *restrict y, int64_t m, int64_t n, int64_t k)
{
    float tile[MR * NR] __attribute__((aligned(64)));

    for (int64_t ic = 0; ic < m; ic += MC) {
        int64_t mc = smaller(MC, m - ic);
        for (int64_t pc = 0; pc < k; pc += KC) {
            int64_t kc = smaller(KC, k - pc);
            pack(x + ic * k + pc, k, mc, kc, MR, x_panels);
            for (int64_t jr = 0; jr < n; jr += NR) {
                pack(weight + jr * k + pc, k, smaller(NR, n - jr), kc, NR, weight_panel);
                for (int64_t ir = 0; ir < mc; ir += MR) {
                    micro_kernel(kc, x_panels + ir * kc, weight_panel, tile);
                    write_tile(tile, y + (ic + ir) * n + jr, n, smaller(MR, mc - ir), smaller(NR, n - jr), pc == 0);
                }
            }
        }
    }
}
