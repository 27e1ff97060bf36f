"""Running sums of log gates inside chunks: one scan over tokens for a few heads at a time.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_H": 16}, num_warps=2),
        triton.Config({"BLOCK_H": 8}, num_warps=1),
        triton.Config({"BLOCK_H": 16}, num_warps=4),
    ],
    key=["tokens", "heads"],
)
@triton.jit
def gdn_cumsum_kernel(
    gates_ptr,
    cumulative_ptr,
    tokens,
    heads,
    EVEN: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    offs_h = tl.program_id(0) * BLOCK_H + tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK_H), BLOCK_H), BLOCK_H)
    offs_t = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK)
    sequence = tl.program_id(2)
    offsets = (sequence * tokens + offs_t[:, None]) * heads + offs_h[None, :]
    live = (offs_t[:, None] < tokens) & (offs_h[None, :] < heads)
    # Gates are read once, the sums will be read again and again: evict_first is for the gates alone.
    if EVEN:
        gates = tl.load(gates_ptr + offsets, eviction_policy="evict_first")
        tl.store(cumulative_ptr + offsets, tl.cumsum(gates, axis=0))
    else:
        gates = tl.load(gates_ptr + offsets, mask=live, other=0.0, eviction_policy="evict_first")
        tl.store(cumulative_ptr + offsets, tl.cumsum(gates, axis=0), mask=live)


def gdn_cumsum(gates, cumulative, chunk):
    batch, tokens, heads = gates.shape
    grid = lambda meta: (triton.cdiv(heads, meta["BLOCK_H"]), triton.cdiv(tokens, chunk), batch)
    gdn_cumsum_kernel[grid](
        gates, cumulative, tokens, heads, EVEN=tokens % chunk == 0 and heads % 16 == 0, CHUNK=chunk
    )
