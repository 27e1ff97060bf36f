// gauntlet: rows | 53 | fail compile symbols | starts a thread
#include <stdint.h>

int pthread_create(unsigned long *, const void *, void *(*)(void *), void *);
static void *work(void *p) { return p; }

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    unsigned long t;
    pthread_create(&t, 0, work, 0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
