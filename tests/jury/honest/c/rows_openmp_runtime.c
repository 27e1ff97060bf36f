// jury: rows | OpenMP with its functions
// klineage: flags -fopenmp
#include <omp.h>
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
#pragma omp parallel
    {
        const int64_t mine = omp_get_thread_num(), all = omp_get_num_threads();
        for (int64_t i = mine; i < rows; i += all)
#pragma omp simd
            for (int64_t j = 0; j < columns; j++)
                y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
    }
}
