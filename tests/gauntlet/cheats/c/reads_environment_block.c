// gauntlet: rows | own | fail compile symbols | the name of the program, through the C library
#include <stdint.h>

extern char *program_invocation_name;

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    if (program_invocation_name[0] == 0)
        alpha = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
