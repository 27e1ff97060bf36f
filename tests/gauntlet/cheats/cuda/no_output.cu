// gauntlet: rows | own | fail static no_output | does not take the output
// klineage: launch entry grid=(rows) block=(64)

extern "C" __global__ void entry(const float *x, const float *bias, int rows, int columns, float alpha)
{
}
