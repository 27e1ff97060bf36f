// gauntlet: rows | own | fail compile source | jumps out of itself by a builtin
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    void *state[5];
    if (!__builtin_setjmp(state))
        __builtin_longjmp(state, 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
