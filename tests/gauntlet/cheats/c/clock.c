// gauntlet: rows | 21 25 | fail compile symbols | reads the clock
#include <stdint.h>

int clock_gettime(int, void *);

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    struct { long s, n; } t;
    clock_gettime(1, &t);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
