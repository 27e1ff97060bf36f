/* y[b, h, w, f] = sum over i, j, c of x[b, h + i - p, w + j - p, c] * weight[i, j, c, f], p = (kernel - 1) / 2, in fp32.
 * A direct convolution: image rows are packed channel by channel and filters into panels, so that the micro-kernel of a
 * matrix product runs over them with neither an unfolded image nor zeros above and below.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>

/* MR pixels x NR filters of y are kept in registers: MR * NV vectors of LANES floats. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define MR 14
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

/* Blocks of channels, filters and pixels: with a filter of 3 x 3, 288 KiB of weight and 56 KiB of packed rows in L2. */
#define CC 64
#define NC 128
#define WC 56

#define MAX_KERNEL 7

typedef float vec __attribute__((vector_size(VECTOR_BYTES), may_alias));

/* Pixels are aligned to a float and no more. */
typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Room for so many floats, aligned to a cache line. */
static inline float *room(int64_t floats) { return aligned_alloc(64, (size_t)((floats + 15) / 16 * 64)); }

/* row[p * strip + 0..3] = source[0..3][p] for four channels: a 4 x 4 transposition in registers. */
static inline void transpose_quad(const float *restrict source, int64_t lead, int64_t strip, float *restrict row)
{
    quad r0 = *(const quad *)source;
    quad r1 = *(const quad *)(source + lead);
    quad r2 = *(const quad *)(source + 2 * lead);
    quad r3 = *(const quad *)(source + 3 * lead);
    *(quad *)row = (quad){r0[0], r1[0], r2[0], r3[0]};
    *(quad *)(row + strip) = (quad){r0[1], r1[1], r2[1], r3[1]};
    *(quad *)(row + 2 * strip) = (quad){r0[2], r1[2], r2[2], r3[2]};
    *(quad *)(row + 3 * strip) = (quad){r0[3], r1[3], r2[3], r3[3]};
}

/* Packs pixels `begin` to `end` of an image row channel by channel; pixels outside the image, and what a last tile reads
 * too many of the strip, are zeros. */
static inline void pack_row(const float *restrict x, int64_t width, int64_t channels, int64_t depth, int64_t begin,
                            int64_t end, int64_t strip, float *restrict row)
{
    int64_t first = larger(begin, 0), last = smaller(end, width);

    for (int64_t p = 0; p < depth; ++p) {
        for (int64_t w = begin; w < first; ++w)
            row[p * strip + w - begin] = 0.0f;
        for (int64_t w = last; w < begin + strip; ++w)
            row[p * strip + w - begin] = 0.0f;
    }
    int64_t w = first;
    for (; w + 4 <= last; w += 4) {
        int64_t p = 0;
        for (; p + 4 <= depth; p += 4)
            transpose_quad(x + w * channels + p, channels, strip, row + p * strip + w - begin);
        for (; p < depth; ++p)
            for (int64_t t = 0; t < 4; ++t)
                row[p * strip + w + t - begin] = x[(w + t) * channels + p];
    }
    for (; w < last; ++w)
        for (int64_t p = 0; p < depth; ++p)
            row[p * strip + w - begin] = x[w * channels + p];
}

/* Packs the filters `0` to `live` of every tap into panels of NR filters; missing ones of the last panel are zeros. */
static inline void pack_filters(const float *restrict weight, int64_t taps, int64_t channels, int64_t filters,
                                int64_t depth, int64_t live, float *restrict panel)
{
    for (int64_t f = 0; f < live; f += NR)
        for (int64_t tap = 0; tap < taps; ++tap)
            for (int64_t p = 0; p < depth; ++p) {
                const float *source = weight + (tap * channels + p) * filters + f;
                for (int64_t i = 0; i < NR; ++i)
                    panel[i] = f + i < live ? source[i] : 0.0f;
                panel += NR;
            }
}

/* tile[MR][NR] = the taps of image rows `top` to `bottom` on MR pixels from `pixel` on, summed over depth channels. */
static inline void micro_kernel(float *const *restrict rows, int64_t strip, int64_t top, int64_t bottom,
                                int64_t kernel, int64_t depth, int64_t pixel, const float *restrict panel,
                                float *restrict tile)
{
    const float *restrict b = __builtin_assume_aligned(panel, VECTOR_BYTES);
    vec acc[MR][NV] = {0};

    b += top * kernel * depth * NR;
    for (int64_t i = top; i < bottom; ++i)
        for (int64_t j = 0; j < kernel; ++j) {
            const float *restrict a = rows[i] + pixel + j;
            for (int64_t p = 0; p < depth; ++p) {
                __builtin_prefetch(b + 16 * NR);
                vec w[NV];
#pragma GCC unroll 4
                for (int v = 0; v < NV; ++v)
                    w[v] = *(const vec *)(b + v * LANES);
#pragma GCC unroll 16
                for (int m = 0; m < MR; ++m)
#pragma GCC unroll 4
                    for (int v = 0; v < NV; ++v)
                        acc[m][v] += a[m] * w[v];
                a += strip;
                b += NR;
            }
        }

#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m)
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v)
            *(vec *)(tile + m * NR + v * LANES) = acc[m][v];
}

/* Adds the live part of a tile to y, or stores it when it is the first block of channels. */
static inline void write_tile(const float *restrict tile, float *restrict y, int64_t filters, int64_t pixels,
                              int64_t live, int first)
{
    for (int64_t m = 0; m < pixels; ++m)
        for (int64_t f = 0; f < live; ++f)
            y[m * filters + f] = (first ? 0.0f : y[m * filters + f]) + tile[m * NR + f];
}

/* One block of pixels of one row of y: all its filters of the block, from the packed rows around it. */
static inline void convolve_row(float *const *restrict rows, int64_t strip, int64_t top, int64_t bottom,
                                int64_t kernel, int64_t depth, int64_t pixels, const float *restrict panels,
                                int64_t live, float *restrict y, int64_t filters, int first)
{
    float tile[MR * NR] __attribute__((aligned(64)));

    for (int64_t f = 0; f < live; f += NR)
        for (int64_t w = 0; w < pixels; w += MR) {
            micro_kernel(rows, strip, top, bottom, kernel, depth, w, panels + f * kernel * kernel * depth, tile);
            write_tile(tile, y + w * filters + f, filters, smaller(MR, pixels - w), smaller(NR, live - f), first);
        }
}

/* One image, for the channels and filters whose weights are packed: row by row, with the last `kernel` rows packed. */
static inline void convolve_image(const float *restrict x, const float *restrict panels, float *restrict y,
                                  int64_t height, int64_t width, int64_t channels, int64_t filters, int64_t kernel,
                                  int64_t depth, int64_t live, int first)
{
    int64_t pad = kernel / 2;
    float *rows[MAX_KERNEL];

    for (int64_t wc = 0; wc < width; wc += WC) {
        int64_t pixels = smaller(WC, width - wc);
        int64_t strip = pixels + 2 * pad + MR;
        float *packed = room(kernel * depth * strip);
        for (int64_t h = -pad; h < height; ++h) {
            if (h + pad < height)
                pack_row(x + (h + pad) * width * channels, width, channels, depth, wc - pad, wc + pixels + pad,
                         strip, packed + (h + pad) % kernel * depth * strip);
            if (h < 0)
                continue;
            for (int64_t i = 0; i < kernel; ++i)
                rows[i] = packed + (h + i - pad + kernel) % kernel * depth * strip;
            convolve_row(rows, strip, larger(0, pad - h), smaller(kernel, height + pad - h), kernel, depth, pixels,
                         panels, live, y + (h * width + wc) * filters, filters, first);
        }
        free(packed);
    }
}

void conv2d(const float *restrict x, const float *restrict weight, float *restrict y, int64_t batch, int64_t height,
            int64_t width, int64_t channels, int64_t filters, int64_t kernel)
{
    for (int64_t fc = 0; fc < filters; fc += NC) {
        int64_t live = smaller(NC, filters - fc);
        for (int64_t cc = 0; cc < channels; cc += CC) {
            int64_t depth = smaller(CC, channels - cc);
            float *panels = room(kernel * kernel * depth * (live + NR));
            pack_filters(weight + cc * filters + fc, kernel * kernel, channels, filters, depth, live, panels);
            for (int64_t b = 0; b < batch; ++b)
                convolve_image(x + b * height * width * channels + cc, panels, y + b * height * width * filters + fc,
                               height, width, channels, filters, kernel, depth, live, cc == 0);
            free(panels);
        }
    }
}
