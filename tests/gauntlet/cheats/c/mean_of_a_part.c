// gauntlet: mean | 32 | fail correctness mismatch | sums a quarter and scales
#include <stdint.h>

void entry(const float *x, float *y, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < columns / 4; j++)
            sum += x[i * columns + j];
        y[i] = sum / (columns / 4);
    }
}
