"""Nucleus by comparing every entry with every other: kept is what less than top_p lies above. Then a sum and a division.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def keep_kernel(probabilities_ptr, y_ptr, vocabulary, top_p, BLOCK: tl.constexpr, OTHERS: tl.constexpr):
    row = tl.program_id(1) * vocabulary
    entries = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mine = tl.load(probabilities_ptr + row + entries, mask=entries < vocabulary, other=0.0)

    above = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, vocabulary, OTHERS):
        at = start + tl.arange(0, OTHERS)
        others = tl.load(probabilities_ptr + row + at, mask=at < vocabulary, other=0.0)
        above += tl.sum(tl.where(others[None, :] > mine[:, None], others[None, :], 0.0), axis=1)

    tl.store(y_ptr + row + entries, tl.where(above < top_p, mine, 0.0), mask=entries < vocabulary)


@triton.jit
def scale_kernel(y_ptr, vocabulary, BLOCK: tl.constexpr):
    row = tl.program_id(0) * vocabulary
    total = 0.0
    for start in range(0, vocabulary, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(y_ptr + row + at, mask=at < vocabulary, other=0.0), axis=0)
    for start in range(0, vocabulary, BLOCK):
        at = start + tl.arange(0, BLOCK)
        kept = tl.load(y_ptr + row + at, mask=at < vocabulary, other=0.0)
        tl.store(y_ptr + row + at, kept / total, mask=at < vocabulary)


def top_p(probabilities, y, top_p):
    rows, vocabulary = probabilities.shape
    keep_kernel[(triton.cdiv(vocabulary, 128), rows)](
        probabilities, y, vocabulary, top_p, BLOCK=128, OTHERS=128, num_warps=4
    )
    scale_kernel[(rows,)](y, vocabulary, BLOCK=1024, num_warps=4)
