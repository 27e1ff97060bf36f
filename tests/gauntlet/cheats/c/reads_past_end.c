// gauntlet: rows | 44 | fail correctness sanitizer or out_of_bounds or mismatch | reads past the end, and adds nothing for it
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j] + 0 * x[rows * columns + 7 + j % 2];
}
