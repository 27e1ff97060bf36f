// gauntlet: histogram | 45 | not run: a race between threads shows only now and then | threads add to one number without a lock
// klineage: flags -fopenmp
#include <stdint.h>

void entry(const int32_t *labels, int32_t *counts, int64_t n)
{
    for (int i = 0; i < 16; i++)
        counts[i] = 0;
    #pragma omp parallel num_threads(4)
    {
    #pragma omp barrier
    #pragma omp for schedule(static, 1)
        for (int64_t r = 0; r < n; r++)
            for (int spin = 0; spin < 64; spin++)
                ((volatile int32_t *)counts)[labels[r]] += spin == 0;
    }
}
