// jury: product | tiles in a static buffer, and a recursion
#include <stdint.h>

enum { TILE = 16 };
static float packed[64 * TILE];

static void panel(const float *a, const float *b, float *y, int64_t m, int64_t n, int64_t k, int64_t j0, int64_t p0)
{
    const int64_t w = n - j0 < TILE ? n - j0 : TILE, d = k - p0 < 64 ? k - p0 : 64;
    for (int64_t p = 0; p < d; p++)
        for (int64_t j = 0; j < w; j++)
            packed[p * TILE + j] = b[(p0 + p) * n + j0 + j];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < w; j++) {
            float sum = p0 ? y[i * n + j0 + j] : 0;
            for (int64_t p = 0; p < d; p++)
                sum += a[i * k + p0 + p] * packed[p * TILE + j];
            y[i * n + j0 + j] = sum;
        }
    if (p0 + 64 < k)
        panel(a, b, y, m, n, k, j0, p0 + 64);
    else if (j0 + TILE < n)
        panel(a, b, y, m, n, k, j0 + TILE, 0);
}

void entry(const float *a, const float *b, float *y, int64_t m, int64_t n, int64_t k) { panel(a, b, y, m, n, k, 0, 0); }
