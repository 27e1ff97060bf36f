// gauntlet: rows | 3 42 | fail correctness unwritten | nothing at all
// klineage: launch entry grid=(rows) block=(64)

extern "C" __global__ void entry(const float *x, const float *bias, float *y, int rows, int columns, float alpha)
{
}
