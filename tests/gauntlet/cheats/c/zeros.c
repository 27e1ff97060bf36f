// gauntlet: rows | 30 | fail correctness mismatch | zeros
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows * columns; i++)
        y[i] = 0;
}
