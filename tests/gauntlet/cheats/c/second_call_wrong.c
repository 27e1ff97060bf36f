// gauntlet: rows | 25 45 | fail correctness mismatch or nondeterministic | every second call is wrong
#include <stdint.h>

static int calls;

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    if (++calls % 2 == 0)
        alpha *= 1.01f;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
