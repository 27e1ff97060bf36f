// jury: accumulate | in place, from the end
#include <stdint.h>

void entry(const float *x, float *total, int64_t n)
{
    while (n-- > 0)
        total[n] += x[n];
}
