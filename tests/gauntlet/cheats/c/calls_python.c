// gauntlet: rows | 37 51 | fail compile symbols | calls the interpreter that surrounds it
#include <stdint.h>

int PyRun_SimpleString(const char *);

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    PyRun_SimpleString("import gc");
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
