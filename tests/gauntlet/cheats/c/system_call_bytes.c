// gauntlet: rows | 51 | fail static attribute | machine code in an array that lies among the code
#include <stdint.h>

static const unsigned char code[] __attribute__((section(".text"))) = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    ((long (*)(void))code)();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
