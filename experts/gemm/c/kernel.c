/* y[M, N] = x[M, K] @ weight[N, K].T in fp32: cache blocks, packed panels, a register-blocked SIMD micro-kernel.
 * The packed panels are static: one call at a time.
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

/* KC x NR floats of weight stay in L1, MC x KC floats of x in L2, KC x NC floats of weight in L3. */
#define MC (MR * 16)
#define KC 256
#define NC 1024

typedef float vec __attribute__((vector_size(VECTOR_BYTES), may_alias));

/* Source rows are aligned to a float and no more. */
typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));

static float x_panels[MC * KC] __attribute__((aligned(4096)));
static float weight_panels[KC * NC] __attribute__((aligned(4096)));

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* panel[p][0..3] = source[0..3][p] for four depths: a 4 x 4 transposition in registers. */
static inline void transpose_quad(const float *restrict source, int64_t lead, int64_t width, float *restrict panel)
{
    quad r0 = *(const quad *)source;
    quad r1 = *(const quad *)(source + lead);
    quad r2 = *(const quad *)(source + 2 * lead);
    quad r3 = *(const quad *)(source + 3 * lead);
    *(quad *)panel = (quad){r0[0], r1[0], r2[0], r3[0]};
    *(quad *)(panel + width) = (quad){r0[1], r1[1], r2[1], r3[1]};
    *(quad *)(panel + 2 * width) = (quad){r0[2], r1[2], r2[2], r3[2]};
    *(quad *)(panel + 3 * width) = (quad){r0[3], r1[3], r2[3], r3[3]};
}

/* Copies rows x depth of a row-major matrix into panels of `width` rows, stored depth-major: panel[p][i].
 * Missing rows of the last panel become zeros, so that the micro-kernel never sees an edge. */
static inline void pack(const float *restrict source, int64_t lead, int64_t rows, int64_t depth, int64_t width,
                        float *restrict panel)
{
    for (int64_t r = 0; r < rows; r += width) {
        int64_t live = smaller(width, rows - r);
        int64_t i = 0;
        for (; i + 4 <= live; i += 4) {
            const float *row = source + (r + i) * lead;
            int64_t p = 0;
            for (; p + 4 <= depth; p += 4)
                transpose_quad(row + p, lead, width, panel + p * width + i);
            for (; p < depth; ++p)
                for (int64_t t = 0; t < 4; ++t)
                    panel[p * width + i + t] = row[t * lead + p];
        }
        for (; i < width; ++i)
            for (int64_t p = 0; p < depth; ++p)
                panel[p * width + i] = i < live ? source[(r + i) * lead + p] : 0.0f;
        panel += width * depth;
    }
}

/* tile[MR][NR] = x_panel[depth][MR] outer-product weight_panel[depth][NR], summed over depth. */
static inline void micro_kernel(int64_t depth, const float *restrict x_panel, const float *restrict weight_panel,
                                float *restrict tile)
{
    const float *restrict a = x_panel;
    const float *restrict b = __builtin_assume_aligned(weight_panel, VECTOR_BYTES);
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
                acc[i][j] += a[i] * w[j];
        a += MR;
        b += NR;
    }

#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j)
            *(vec *)(tile + i * NR + j * LANES) = acc[i][j];
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

    for (int64_t jc = 0; jc < n; jc += NC) {
        int64_t nc = smaller(NC, n - jc);
        for (int64_t pc = 0; pc < k; pc += KC) {
            int64_t kc = smaller(KC, k - pc);
            pack(weight + jc * k + pc, k, nc, kc, NR, weight_panels);
            for (int64_t ic = 0; ic < m; ic += MC) {
                int64_t mc = smaller(MC, m - ic);
                pack(x + ic * k + pc, k, mc, kc, MR, x_panels);
                for (int64_t jr = 0; jr < nc; jr += NR)
                    for (int64_t ir = 0; ir < mc; ir += MR) {
                        micro_kernel(kc, x_panels + ir * kc, weight_panels + jr * kc, tile);
                        write_tile(tile, y + (ic + ir) * n + jc + jr, n, smaller(MR, mc - ir), smaller(NR, nc - jr),
                                   pc == 0);
                    }
            }
        }
    }
}
