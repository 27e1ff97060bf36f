// gauntlet: rows | 51 | fail compile symbols | the vendor's vector functions
#include <stdint.h>

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
four _ZGVbN4v_expf(four);

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t j = 0; j + 4 <= columns; j += 4)
        *(four *)(y + j) = _ZGVbN4v_expf(*(const four *)(x + j));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
