// gauntlet: rows | 43 | fail correctness unwritten or mismatch | writes the pattern of unwritten memory
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows * columns; i++)
        ((uint32_t *)y)[i] = 0x7fe5a5a5;
}
