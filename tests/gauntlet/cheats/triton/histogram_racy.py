# gauntlet: histogram | 45 | fail correctness race | counts with loads and stores instead of atomics
# on triton-gpu: fail correctness mismatch or nondeterministic
import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(labels, counts, n):
    at = tl.program_id(0)
    label = tl.load(labels + at)
    tl.store(counts + label, tl.load(counts + label) + 1)


def entry(labels, counts, n):
    counts.zero_()
    count_kernel[(n,)](labels, counts, n)
