// gauntlet: rows | 50 | fail static attribute | a pointer among the initialisers
#include <stdint.h>

static void early(void) {}
static void (*start)(void) __attribute__((used, section(".init_array"))) = early;

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
