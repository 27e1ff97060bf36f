// gauntlet: rows | 41 | fail compile symbols | puts a link into the folder
#include <stdint.h>

int symlink(const char *, const char *);

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    symlink("/etc/passwd", "twin.so");
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
