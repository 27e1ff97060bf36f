/* y = exp(x - max) / sum(exp(x - max)) over each row, in fp32, one element after the other.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>

static float row_maximum(const float *x, int64_t columns)
{
    float most = x[0];
    for (int64_t c = 1; c < columns; ++c)
        most = x[c] > most ? x[c] : most;
    return most;
}

void softmax(const float *x, float *y, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * columns;
        float *out = y + r * columns;
        float most = row_maximum(row, columns);
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) {
            out[c] = expf(row[c] - most);
            sum += out[c];
        }
        for (int64_t c = 0; c < columns; ++c)
            out[c] /= sum;
    }
}
