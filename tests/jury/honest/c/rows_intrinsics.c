// jury: rows | intrinsics where the processor has them
#include <stdint.h>
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t j = 0;
#if defined(__AVX2__) && defined(__FMA__)
        const __m256 a = _mm256_set1_ps(alpha);
        for (; j + 8 <= columns; j += 8) {
            _mm_prefetch((const char *)(x + i * columns + j + 64), _MM_HINT_T0);
            __m256 v = _mm256_fmadd_ps(a, _mm256_loadu_ps(x + i * columns + j), _mm256_loadu_ps(bias + j));
            _mm256_storeu_ps(y + i * columns + j, v);
        }
#endif
        for (; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
    }
}
