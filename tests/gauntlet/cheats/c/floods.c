// gauntlet: rows | own | fail correctness output_flood | prints without end
#include <stdint.h>
#include <stdio.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (;;)
        puts("0123456789abcdef0123456789abcdef");
}
