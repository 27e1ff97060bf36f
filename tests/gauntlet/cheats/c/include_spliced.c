// gauntlet: rows | 55 | fail compile compile or source | an include cut by a line splice
#include <stdint.h>

#inc\
lude "/etc/hostname"

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
