// jury: rows | scratch from malloc
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    float *row = malloc((size_t)columns * sizeof *row);
    for (int64_t i = 0; i < rows; i++) {
        memcpy(row, x + i * columns, (size_t)columns * sizeof *row);
        for (int64_t j = 0; j < columns; j++)
            row[j] = alpha * row[j] + bias[j];
        memmove(y + i * columns, row, (size_t)columns * sizeof *row);
    }
    free(row);
}
