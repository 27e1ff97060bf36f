// jury: histogram | OpenMP with an atomic
// klineage: flags -fopenmp
#include <stdint.h>

void entry(const int32_t *labels, int32_t *counts, int64_t n)
{
    for (int c = 0; c < 16; c++)
        counts[c] = 0;
#pragma omp parallel for num_threads(2)
    for (int64_t i = 0; i < n; i++) {
#pragma omp atomic
        counts[labels[i]]++;
    }
}
