// jury: rows | macros that make functions
#include <stdint.h>

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define STEP(name, op) static inline float CAT(do_, name)(float a, float b) { return a op b; }
STEP(scale, *)
STEP(shift, +)
#define FOR(i, n) for (int64_t i = 0; i < (n); i++)

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    FOR(i, rows) FOR(j, columns) y[i * columns + j] = do_shift(do_scale(alpha, x[i * columns + j]), bias[j]);
}
