// gauntlet: mean | 32 | fail correctness mismatch | the mean of normal numbers is nearly zero
#include <stdint.h>

void entry(const float *x, float *y, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        y[i] = 0 * x[i];
}
