// jury: normalize | functions of the mathematics library
#include <math.h>
#include <stdint.h>

void entry(const float *x, float *y, int64_t rows, int64_t columns, float eps)
{
    for (int64_t i = 0; i < rows; i++) {
        double squares = 0;
        for (int64_t j = 0; j < columns; j++)
            squares = fma(x[i * columns + j], x[i * columns + j], squares);
        const float scale = expf(-0.5f * logf((float)(squares / (double)columns) + eps));
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = x[i * columns + j] * scale;
    }
}
