// jury: winner | two outputs, one of integers
#include <stdint.h>

void entry(const float *x, int32_t *place, float *top, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++, x += columns) {
        int32_t best = 0;
        for (int32_t c = 1; c < columns; c++)
            best = x[c] > x[best] ? c : best;
        place[r] = best;
        top[r] = x[best];
    }
}
