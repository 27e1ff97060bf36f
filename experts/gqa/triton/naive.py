"""Causal grouped-query attention in three sweeps over all keys: the largest score, the sum of the weights, the output.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def gqa_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    tokens,
    heads,
    kv_heads,
    scale,
    DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    head = tl.program_id(1)
    batch = tl.program_id(2)
    kv_head = head // (heads // kv_heads)
    queries = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    channels = tl.arange(0, DIM)
    q_at = ((batch * tokens + queries[:, None]) * heads + head) * DIM + channels[None, :]
    q = tl.load(q_ptr + q_at, mask=queries[:, None] < tokens, other=0.0)

    most = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    for start in range(0, tokens, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k_at = ((batch * tokens + keys[None, :]) * kv_heads + kv_head) * DIM + channels[:, None]
        k = tl.load(k_ptr + k_at, mask=keys[None, :] < tokens, other=0.0)
        scores = tl.where(keys[None, :] <= queries[:, None], tl.dot(q, k) * scale, float("-inf"))
        most = tl.maximum(most, tl.max(scores, axis=1))

    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for start in range(0, tokens, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k_at = ((batch * tokens + keys[None, :]) * kv_heads + kv_head) * DIM + channels[:, None]
        k = tl.load(k_ptr + k_at, mask=keys[None, :] < tokens, other=0.0)
        scores = tl.where(keys[None, :] <= queries[:, None], tl.dot(q, k) * scale, float("-inf"))
        total += tl.sum(tl.exp(scores - most[:, None]), axis=1)

    o = tl.zeros((BLOCK_M, DIM), dtype=tl.float32)
    for start in range(0, tokens, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k_at = ((batch * tokens + keys[None, :]) * kv_heads + kv_head) * DIM + channels[:, None]
        v_at = ((batch * tokens + keys[:, None]) * kv_heads + kv_head) * DIM + channels[None, :]
        k = tl.load(k_ptr + k_at, mask=keys[None, :] < tokens, other=0.0)
        v = tl.load(v_ptr + v_at, mask=keys[:, None] < tokens, other=0.0)
        scores = tl.where(keys[None, :] <= queries[:, None], tl.dot(q, k) * scale, float("-inf"))
        weights = tl.exp(scores - most[:, None]) / total[:, None]
        o += tl.dot(weights.to(v.dtype), v)

    tl.store(o_ptr + q_at, o.to(o_ptr.dtype.element_ty), mask=queries[:, None] < tokens)


def gqa(q, k, v, o):
    batch, tokens, heads, dim = q.shape
    gqa_kernel[(triton.cdiv(tokens, 32), heads, batch)](
        q,
        k,
        v,
        o,
        tokens,
        heads,
        k.shape[2],
        dim**-0.5,
        DIM=dim,
        BLOCK_M=32,
        BLOCK_N=32,
        num_warps=4,
        num_stages=1,
    )
