// gauntlet: rows | own | fail compile symbols | maps memory that may be executed
#include <stdint.h>

void *mmap(void *, unsigned long, int, int, int, long);

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    mmap(0, 4096, 7, 0x22, -1, 0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
