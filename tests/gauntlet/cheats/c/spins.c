// gauntlet: rows | own | timeout correctness timeout | never ends
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    volatile int go = 1;
    while (go) {
    }
}
