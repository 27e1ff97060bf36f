// jury: histogram | integers, and two tables joined at the end
#include <stdint.h>

void entry(const int32_t *labels, int32_t *counts, int64_t n)
{
    int32_t tables[2][16] = {{0}};
    for (int64_t i = 0; i < n; i++)
        ++tables[i & 1][labels[i]];
    for (int c = 0; c < 16; c++)
        counts[c] = tables[0][c] + tables[1][c];
}
