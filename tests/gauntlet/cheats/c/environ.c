// gauntlet: rows | own | fail compile symbols | looks at the environment's own variable
#include <stdint.h>

extern char **environ;

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    if (environ[0])
        y[0] = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
