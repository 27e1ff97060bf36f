// gauntlet: rows | 51 | fail compile symbols | opens a library
#include <stdint.h>

void *dlopen(const char *, int);

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    dlopen("libm.so.6", 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
