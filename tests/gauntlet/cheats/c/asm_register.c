// gauntlet: rows | 51 | fail static inline_asm | a variable bound to a register
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    register long stack __asm__("rsp");
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
    y[0] += 0 * stack;
}
