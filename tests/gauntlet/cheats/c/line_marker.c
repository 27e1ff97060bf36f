// gauntlet: rows | 55 41 | fail compile source | the same in the preprocessor's own form
#include <stdint.h>

#define GLUE(a, b) a##b
# 1 "/usr/include/stdint.h" 1 3
static __inline void quiet(void) { GLUE(__as, m__)("nop"); }

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
