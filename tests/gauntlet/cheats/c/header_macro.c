// gauntlet: rows | 55 54 | fail compile source | a macro that puts an attribute into a system header
#define signed __attribute__((optimize("fast-math"))) signed
#include <stdint.h>
#undef signed

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
