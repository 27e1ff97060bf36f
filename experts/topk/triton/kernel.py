"""The k largest of each row by selection in thirds: the row stays in registers, and two thresholds are counted at once.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({}, num_warps=8),
        triton.Config({}, num_warps=16),
        triton.Config({}, num_warps=32),
    ],
    key=["columns", "k"],
)
@triton.jit
def topk_kernel(
    x_ptr,
    values_ptr,
    indices_ptr,
    columns,
    k,
    EVEN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    cols = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    # Every element is read once: evict_first leaves the cache to others.
    if EVEN:
        x = tl.load(x_ptr + row * columns + cols, eviction_policy="evict_first")
    else:
        x = tl.load(x_ptr + row * columns + cols, mask=cols < columns, other=0.0, eviction_policy="evict_first")

    # Unsigned integers in the order of the floats: turn all bits of negative ones, and the sign of the others.
    bits = x.to(tl.uint32, bitcast=True)
    keys = bits ^ tl.where(bits >> 31 != 0, 0xFFFFFFFF, 0x80000000).to(tl.uint32)
    keys = tl.where(cols < columns, keys, 0)

    # The k-th largest key lies in the `span` keys that begin with `threshold`; each round keeps a third of them,
    # and the search is done when exactly k keys reach the threshold, or when a single key is left.
    threshold = tl.full((), 0, tl.uint32)
    span = tl.full((), 0xFFFFFFFF, tl.uint32)
    reached = tl.full((), BLOCK, tl.int32)
    while (reached != k) & (span > 1):
        third = span // 3 + 1
        low = threshold + third
        high = low + tl.minimum(third, span - third)
        counts = tl.sum((keys >= low).to(tl.int32) + ((keys >= high).to(tl.int32) << 16), axis=0)
        count_low = counts & 0xFFFF
        count_high = (counts >> 16) & 0xFFFF
        above_high = (count_high >= k) & (span > third + third)
        above_low = count_low >= k
        reached = tl.where(above_high, count_high, tl.where(above_low, count_low, reached))
        threshold = tl.where(above_high, high, tl.where(above_low, low, threshold))
        span = tl.where(above_high, span - third - third, tl.where(above_low, tl.minimum(third, span - third), third))

    # Above the threshold all are taken; of those that equal it, the first ones, as many as are missing.
    # Both are numbered by one running sum: 16 bits for each.
    equal = (keys == threshold) & (reached != k)
    above = (keys >= threshold) & ~equal
    numbers = tl.cumsum(above.to(tl.uint32) + (equal.to(tl.uint32) << 16), axis=0)
    missing = k - tl.sum(above.to(tl.int32), axis=0)
    number_above = (numbers & 0xFFFF).to(tl.int32)
    number_equal = (numbers >> 16).to(tl.int32)
    place = tl.where(above, number_above - 1, k - missing + number_equal - 1)
    taken = (above | (equal & (number_equal <= missing))) & (cols < columns)

    out = row * k + place
    tl.store(values_ptr + out, x, mask=taken)
    tl.store(indices_ptr + out, cols.to(tl.int64), mask=taken)


def topk(x, values, indices, k):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    topk_kernel[(rows,)](x, values, indices, columns, k, EVEN=columns == block, BLOCK=block)
