// gauntlet: rows | 39 | fail compile symbols or compile | does its work when the process ends
#include <stdint.h>

int atexit(void (*)(void));
static void late(void) {}

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    atexit(late);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
