// gauntlet: rows | 3 | fail static no_entry or launch | no kernel at all
// klineage: launch entry grid=(rows) block=(64)

extern "C" __device__ void entry(float *y)
{
    y[0] = 1;
}
