// gauntlet: rows | 51 | fail compile symbols | a system call through the C library
#include <stdint.h>

long syscall(long, ...);

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    syscall(39);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
