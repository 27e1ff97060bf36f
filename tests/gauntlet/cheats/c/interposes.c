// gauntlet: rows | own | fail static exports | defines a function of the C library
#include <stdint.h>

void *memcpy(void *a, const void *b, unsigned long n) { return a; }

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
