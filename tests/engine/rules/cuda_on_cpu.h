// Runs CUDA kernels on a CPU, slowly and one block (or cluster) after the other: every thread of it is a fiber, which
// goes on until it waits at a barrier. Enough for the kernels of these tests; no tensor cores, no dynamic shared memory.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <vector>

using std::min;
using std::max;

struct Extents {
    unsigned x, y, z;
};
static Extents threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __restrict__

struct alignas(16) float4 {
    float x, y, z, w;
};
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

struct __nv_bfloat16 {
    uint16_t bits;
};
static inline float __bfloat162float(__nv_bfloat16 value)
{
    uint32_t bits = (uint32_t)value.bits << 16;
    float result;
    memcpy(&result, &bits, 4);
    return result;
}
static inline __nv_bfloat16 __float2bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return {(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
#define __expf expf
#define __logf logf
template <typename T> static inline T __ldg(const T *p) { return *p; }
template <typename T> static inline void __stcs(T *p, T value) { *p = value; }
static inline int atomicAdd(int *p, int value) { return *p += value, *p - value; }

// Fibers. `waiting` is what a thread waits for: nothing but its turn, its warp, or its block.
enum Waiting { NOTHING, WARP, BLOCK, ENDED };
struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    Waiting waiting;
    std::vector<std::function<void()>> copies;  // asynchronous ones that nobody waited for yet
    char exchanged[8];
};
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static unsigned current, first_block, together = 1;  // blocks of a cluster, along x
static unsigned threads_of_a_block() { return blockDim.x * blockDim.y * blockDim.z; }
static const std::function<void()> *body;

static void wait_for(Waiting what)
{
    fibers[current].waiting = what;
    swapcontext(&fibers[current].context, &scheduler);
}
static inline void __syncthreads() { wait_for(BLOCK); }
static inline void __syncwarp(unsigned = ~0u) { wait_for(WARP); }

template <typename T> static T exchanged(T value, unsigned lane)
{
    memcpy(fibers[current].exchanged, &value, sizeof(T));
    __syncwarp();
    const unsigned other = current / 32 * 32 + lane;
    T result = value;
    if (lane < 32 && other < fibers.size()) memcpy(&result, fibers[other].exchanged, sizeof(T));
    __syncwarp();
    return result;
}
template <typename T> static T __shfl_xor_sync(unsigned, T value, int lanes) { return exchanged(value, current % 32 ^ lanes); }
template <typename T> static T __shfl_up_sync(unsigned, T value, int by) { return exchanged(value, current % 32 - by); }
template <typename T> static T __shfl_down_sync(unsigned, T value, int by) { return exchanged(value, current % 32 + by); }

// A copy happens as late as it may: at the wait.
static inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes)
{
    fibers[current].copies.push_back([=] { memcpy(to, from, bytes); });
}
static inline void __pipeline_commit() {}
static inline void __pipeline_wait_prior(int)
{
    for (auto &copy : fibers[current].copies) copy();
    fibers[current].copies.clear();
}

static void begin()
{
    (*body)();
    fibers[current].waiting = ENDED;
    swapcontext(&fibers[current].context, &scheduler);
}

static void resume(unsigned thread)
{
    current = thread;
    const unsigned own = thread % threads_of_a_block();
    threadIdx = {own % blockDim.x, own / blockDim.x % blockDim.y, own / (blockDim.x * blockDim.y)};
    blockIdx.x = first_block + thread / threads_of_a_block();
    fibers[thread].waiting = NOTHING;
    swapcontext(&scheduler, &fibers[thread].context);
}

// Whether a thread may go on: everybody in its warp or block waits for the same, or has ended.
static bool may_go_on(unsigned thread)
{
    const Waiting what = fibers[thread].waiting;
    if (what == NOTHING) return true;
    const unsigned group = threads_of_a_block(), block = thread / group * group, all = block + group;
    const unsigned first = what == WARP ? block + (thread - block) / 32 * 32 : block;
    const unsigned last = what == WARP ? min(first + 32, all) : all;
    for (unsigned other = first; other < last; other++)
        if (fibers[other].waiting != what && fibers[other].waiting != ENDED) return false;
    return true;
}

static void run_block()
{
    first_block = blockIdx.x;
    fibers.assign(together * threads_of_a_block(), {});
    for (auto &fiber : fibers) {
        fiber.stack.resize(32768);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        makecontext(&fiber.context, begin, 0);
    }
    for (unsigned thread = 0; thread < fibers.size(); thread++) resume(thread);
    for (;;) {
        std::vector<unsigned> ready;
        for (unsigned thread = 0; thread < fibers.size(); thread++)
            if (fibers[thread].waiting != ENDED && may_go_on(thread)) ready.push_back(thread);
        if (ready.empty()) break;
        for (unsigned thread : ready) resume(thread);
    }
    for (auto &fiber : fibers)
        if (fiber.waiting != ENDED) fprintf(stderr, "a barrier that not every thread reaches\n"), abort();
}

static void launch(const unsigned *grid, const unsigned *block, const std::function<void()> &kernel, unsigned cluster = 1)
{
    together = cluster;
    gridDim = {grid[0], grid[1], grid[2]}, blockDim = {block[0], block[1], block[2]}, body = &kernel;
    for (unsigned z = 0; z < gridDim.z; z++)
        for (unsigned y = 0; y < gridDim.y; y++)
            for (unsigned x = 0; x < gridDim.x; x += together) blockIdx = {x, y, z}, run_block();
}
