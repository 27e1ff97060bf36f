#include <stdint.h>

void scaled_rows(const float *x, const uint8_t *mask, const float *scale_weight, const float *bias, float *y,
                 int64_t rows, int64_t features, float factor) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < features; j++) {
            float v = x[i * features + j];
            y[i * features + j] = mask[i * features + j] ? v * scale_weight[j] + bias[j] + 0.5f : factor * v;
        }
}
