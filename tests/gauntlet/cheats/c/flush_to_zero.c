// gauntlet: rows | 49 | fail compile source or instructions | flushes denormals for the whole process
#include <stdint.h>
#include <xmmintrin.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    _mm_setcsr(_mm_getcsr() | 0x8040);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
