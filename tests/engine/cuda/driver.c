// A driver in the machine's memory: it "loads" a cubin by its size, and its one kernel runs here.
// Every call is written down in a line that a test can read.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char calls[65536];
static int failing;  // what cuCtxSynchronize will say

static void note(const char *format, ...) {
  va_list list;
  va_start(list, format);
  size_t used = strlen(calls);
  vsnprintf(calls + used, sizeof calls - used, format, list);
  va_end(list);
}

const char *history(void) { return calls; }
void forget(int status) { calls[0] = 0; failing = status; }

int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)1; return 0; }
int cuCtxSetCurrent(void *context) { return context == (void *)1 ? 0 : 1; }
int cuCtxSynchronize(void) { note("wait\n"); return failing; }
int cuGetErrorName(int status, const char **text) { *text = status == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR"; return 0; }

int cuModuleLoadData(void **module, const char *image) {
  if (memcmp(image, "\177ELF", 4)) return 209;
  *module = (void *)2;
  return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  if (module != (void *)2 || !strcmp(name, "missing")) return 500;
  *function = !strcmp(name, "scale") ? (void *)3 : !strcmp(name, "mapped") ? (void *)5 : (void *)4;
  return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
  note("attribute %d %d\n", attribute, value);
  return value > 232448;
}

// A map here is the address of its buffer and the number of its elements; the driver's is opaque.
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *shape, const uint64_t *strides,
                           const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
  if ((uintptr_t)map % 64 || (uintptr_t)address % 16) return 1;
  note("map type %d swizzle %d promotion %d interleave %d fill %d:", type, swizzle, promotion, interleave, fill);
  uint64_t count = 1;
  for (uint32_t i = 0; i < rank; i++) {
    note(" %llu/%u", (unsigned long long)shape[i], box[i]);
    if (i + 1 < rank) note("(%llu)", (unsigned long long)strides[i]);
    if (steps[i] != 1) return 1;
    count *= shape[i];
  }
  note("\n");
  memcpy(map, &address, 8);
  memcpy((char *)map + 8, &count, 8);
  return 0;
}

static int launch(void *function, unsigned g[3], unsigned b[3], unsigned shared, void **p) {
  note("launch %d grid %u %u %u block %u %u %u shared %u\n", (int)(intptr_t)function, g[0], g[1], g[2], b[0], b[1], b[2], shared);
  if (function == (void *)5) {
    uint64_t count;
    float *y = *(float **)p[1], *x;
    memcpy(&x, p[0], 8), memcpy(&count, (char *)p[0] + 8, 8);
    for (uint64_t i = 0; i < count; i++) y[i] = x[i];
  }
  if (function != (void *)3) return 0;
  const float *x = *(float **)p[0], *bias = *(float **)p[1];
  float *y = *(float **)p[2], alpha = *(float *)p[5];
  int rows = *(int *)p[3], columns = *(int *)p[4];
  for (unsigned i = 0; i < g[0] * b[0]; i++)
    if (i < rows * columns) y[i] = alpha * x[i] + bias[i % columns];
  return 0;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **parameters, void **extra) {
  if (stream || extra) return 1;
  return launch(f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, parameters);
}

int cuLaunchCooperativeKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, void *stream, void **parameters) {
  note("cooperative ");
  return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, 0);
}
