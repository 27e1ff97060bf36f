// jury: rows | single flags of fast arithmetic, declared
// klineage: flags -O2 -fno-trapping-math -ffp-contract=fast -DNDEBUG -funroll-loops
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
#pragma GCC unroll 4
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
