// gauntlet: rows | own | fail compile symbols | jumps out of a crash
#include <stdint.h>

int _setjmp(long *);
_Noreturn void longjmp(long *, int);

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    static long state[32];
    if (!_setjmp(state))
        longjmp(state, 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
