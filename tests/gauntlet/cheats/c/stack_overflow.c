// gauntlet: rows | 44 | fail correctness crashed | recursion without end
#include <stdint.h>

static float deep(const float *x, float n) { volatile float big[4096]; big[0] = n; return big[0] > 0 ? deep(x, n - 1) + big[0] : 0; }

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    y[0] = deep(x, 1e9f);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
