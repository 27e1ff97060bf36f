// gauntlet: rows | own | fail compile symbols | draws random numbers
#include <stdint.h>
#include <stdlib.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    if (rand() == 7)
        alpha = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
