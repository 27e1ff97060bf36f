// jury: rows | vector types of the compiler, and a tail
#include <stdint.h>

typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *in = x + i * columns;
        float *out = y + i * columns;
        int64_t j = 0;
        for (; j + 8 <= columns; j += 8)
            *(vec *)(out + j) = *(const vec *)(in + j) * alpha + *(const vec *)(bias + j);
        for (; j < columns; j++)
            out[j] = in[j] * alpha + bias[j];
    }
}
