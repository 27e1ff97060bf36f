// gauntlet: rows | 53 | fail compile symbols | calls the OpenMP library without declaring it
#include <stdint.h>

void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned);
static void work(void *p) { (void)p; }

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    GOMP_parallel(work, y, 2, 0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
