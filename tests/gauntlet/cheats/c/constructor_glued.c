// gauntlet: rows | 50 | fail compile source or symbols | the same, with the attribute glued by a macro
#include <stdint.h>

static volatile float seen;
#define GLUE(a, b) __attribute__((a##b))
GLUE(con, structor) static void early(void) { seen = 1; }

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
