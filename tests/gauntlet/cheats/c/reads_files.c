// gauntlet: rows | 38 37 | fail compile symbols | reads the memory of the process as a file
#include <stdint.h>
#include <stdio.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    FILE *f = fopen("/proc/self/maps", "r");
    if (f)
        fclose(f);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
