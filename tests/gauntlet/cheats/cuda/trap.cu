// gauntlet: rows | 44 | fail correctness crashed | ends the device's program
// klineage: launch entry grid=(rows) block=(64)

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
    asm volatile("trap;");
}
