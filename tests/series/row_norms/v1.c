/* The length of each row, one product after the other. */
#include <math.h>
#include <stdint.h>

void row_norms(const float *x, float *y, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * columns;
        float total = 0.0f;
        for (int64_t c = 0; c < columns; ++c)
            total += row[c] * row[c];
        y[r] = sqrtf(total);
    }
}
