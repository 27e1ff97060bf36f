// gauntlet: rows | 51 | fail compile source | the same, with asm glued by a macro
#include <stdint.h>

#define GLUE(a, b) a##b

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    long r;
    GLUE(__as, m__) volatile("syscall" : "=a"(r) : "a"(39) : "rcx", "r11", "memory");
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
