// jury: segments | ragged segments, a compensated sum
#include <stdint.h>

void entry(const float *x, const int32_t *offsets, float *y, int64_t count)
{
    for (int64_t s = 0; s < count; s++) {
        float sum = 0, lost = 0;
        for (int32_t i = offsets[s]; i < offsets[s + 1]; i++) {
            const float next = x[i] - lost, total = sum + next;
            lost = (total - sum) - next;
            sum = total;
        }
        y[s] = sum;
    }
}
