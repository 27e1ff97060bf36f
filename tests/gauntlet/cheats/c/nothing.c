// gauntlet: rows | 3 42 | fail correctness unwritten | nothing at all
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    (void)x;
}
