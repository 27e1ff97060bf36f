// jury: rows | constants and macros of the library before the headers
#define _GNU_SOURCE 1
#define NDEBUG
#define LIMIT (1 << 20)
#define RESTRICT restrict
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <tgmath.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    assert(columns < LIMIT);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = fma(alpha, x[i * columns + j], bias[j]);
}
