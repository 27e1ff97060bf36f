// gauntlet: rows | 31 | fail correctness mismatch | fp16 for fp32
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = (float)((_Float16)alpha * (_Float16)x[i * columns + j]) + bias[j];
}
