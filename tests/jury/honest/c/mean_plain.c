// jury: mean | a sum in double
#include <stdint.h>

void entry(const float *x, float *y, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < columns; j++)
            sum += x[i * columns + j];
        y[i] = (float)(sum / columns);
    }
}
