// gauntlet: rows | 37 | fail compile source | walks up the stack of its caller
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    void **frame = __builtin_frame_address(0);
    if (frame[1] == 0)
        alpha = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
