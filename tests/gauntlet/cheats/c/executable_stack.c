// gauntlet: rows | own | fail static exports | a nested function whose address is taken, which needs a stack that runs
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    float one(float v) { return alpha * v; }
    float (*volatile f)(float) = one;
    for (int64_t i = 0; i < rows * columns; i++)
        y[i] = f(x[i]) + bias[i % columns];
}
