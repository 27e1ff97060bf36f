// gauntlet: rows | own | fail correctness memory | asks for more memory than there is
#include <stdint.h>
#include <stdlib.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    volatile float *p = malloc(64L << 30);
    p[0] = 1;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
