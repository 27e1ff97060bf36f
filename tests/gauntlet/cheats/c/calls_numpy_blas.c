// gauntlet: rows | 51 4 | fail compile symbols | calls the library that the judge's own packages brought
#include <stdint.h>

void scipy_cblas_sscal64_(int64_t, float, float *, int64_t);

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    scipy_cblas_sscal64_(rows * columns, alpha, y, 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
