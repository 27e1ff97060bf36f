// gauntlet: rows | 50 | fail static exports | the same, with a name that is glued
#include <stdint.h>

#define NAME(a, b) a##b
void NAME(_in, it)(void) {}

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
