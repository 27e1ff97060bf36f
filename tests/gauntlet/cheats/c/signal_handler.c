// gauntlet: rows | own | fail compile symbols | hides its crashes in a signal handler
#include <stdint.h>

void (*signal(int, void (*)(int)))(int);
static void hide(int n) { (void)n; }

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    signal(11, hide);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
