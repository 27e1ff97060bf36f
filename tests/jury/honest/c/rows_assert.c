// jury: rows | asserts and warnings switched off
#include <assert.h>
#include <stdint.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-variable"

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    int unused = 0;
    assert(rows > 0 && columns > 0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
#pragma GCC diagnostic pop
