// jury: rows | goto instead of loops
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    int64_t at = 0;
again:
    if (at == rows * columns)
        goto done;
    y[at] = alpha * x[at] + bias[at % columns];
    at++;
    goto again;
done:;
}
