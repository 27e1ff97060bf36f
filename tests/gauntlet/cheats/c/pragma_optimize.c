// gauntlet: rows | 54 | fail static pragma | a pragma that turns fast-math on
#include <stdint.h>

#pragma GCC optimize("fast-math")

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
