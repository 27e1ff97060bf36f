// gauntlet: rows | 25 | fail compile symbols | reads the clock of OpenMP
// klineage: flags -fopenmp
#include <omp.h>
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    if (omp_get_wtime() < 0)
        alpha = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
