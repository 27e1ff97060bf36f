#include <stdint.h>

void row_sums(const float *x, const int32_t *offsets, float *output_0, float *output_1, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++) {
        float total = 0;
        for (int64_t j = 0; j < columns; j++)
            total += x[i * columns + j];
        output_1[i] = total * total;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            output_0[i * columns + j] = x[offsets[i] * columns + j] / output_1[i];
}
