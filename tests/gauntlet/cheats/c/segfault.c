// gauntlet: rows | 44 | fail correctness crashed | a wild pointer
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    *(volatile int *)8 = 1;
}
