// gauntlet: rows | 25 | fail profile timed_output | right for the first fifty calls
#include <stdint.h>

static int calls;

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    if (++calls > 50)
        return;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
