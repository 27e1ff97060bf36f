"""Nucleus by halving the range of the smallest kept entry: a sweep that sums, for every bit of its pattern.

Positive floats are in the order of their patterns, so 31 sweeps find the least threshold above which less than
top_p lies. A row stays in the second-level cache meanwhile; the last sweep scales what is kept.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def top_p_kernel(probabilities_ptr, y_ptr, vocabulary, top_p, BLOCK: tl.constexpr):
    row = tl.program_id(0) * vocabulary
    columns = tl.arange(0, BLOCK)

    # The sum above `low` reaches top_p, if anything's does; the sum above `high` does not: 2.0 exceeds every entry.
    low = tl.full((), -1, dtype=tl.int32)
    high = tl.full((), 0x40000000, dtype=tl.int32)
    while high - low > 1:
        middle = low + (high - low) // 2
        sums = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, vocabulary, BLOCK):
            at = start + columns
            entries = tl.load(probabilities_ptr + row + at, mask=at < vocabulary, other=0.0)
            sums += tl.where(entries.to(tl.int32, bitcast=True) > middle, entries, 0.0)
        reached = tl.sum(sums, axis=0) >= top_p
        low = tl.where(reached, middle, low)
        high = tl.where(reached, high, middle)

    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, vocabulary, BLOCK):
        at = start + columns
        entries = tl.load(probabilities_ptr + row + at, mask=at < vocabulary, other=0.0)
        sums += tl.where(entries.to(tl.int32, bitcast=True) >= high, entries, 0.0)
    total = tl.sum(sums, axis=0)
    for start in range(0, vocabulary, BLOCK):
        at = start + columns
        entries = tl.load(probabilities_ptr + row + at, mask=at < vocabulary, other=0.0)
        kept = tl.where(entries.to(tl.int32, bitcast=True) >= high, entries, 0.0)
        tl.store(y_ptr + row + at, kept / total, mask=at < vocabulary)


def top_p(probabilities, y, top_p):
    rows, vocabulary = probabilities.shape
    block = min(4096, triton.next_power_of_2(vocabulary))
    top_p_kernel[(rows,)](probabilities, y, vocabulary, top_p, BLOCK=block, num_warps=16)
