// jury: rows | restrict, const and assumed alignment
#include <stdint.h>

void entry(const float *restrict x, const float *__restrict bias, float *restrict y, const int64_t rows,
           const int64_t columns, const float alpha)
{
    x = __builtin_assume_aligned(x, 64);
    y = __builtin_assume_aligned(y, 64);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
