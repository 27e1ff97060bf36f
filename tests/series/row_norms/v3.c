/* The length of each row, eight products at a time. */
#include <math.h>
#include <stdint.h>

#define LANES 8
typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));

void row_norms(const float *restrict x, float *restrict y, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * columns;
        vec sums = {0};
        float total = 0.0f;
        int64_t c = 0;
        for (; c + LANES <= columns; c += LANES) {
            vec part = *(const vec *)(row + c);
            sums += part * part;
        }
        for (int lane = 0; lane < LANES; ++lane)
            total += sums[lane];
        for (; c < columns; ++c)
            total += row[c] * row[c];
        y[r] = sqrtf(total);
    }
}
