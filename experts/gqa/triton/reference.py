"""Causal grouped-query attention: online softmax in base two, blocks above the diagonal left out, heavy programs first.

SPDX-License-Identifier: MIT
"""

import math

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
    # The last queries see the most keys: they begin first, so that the short programs fill the end.
    block = tl.num_programs(1) - 1 - tl.program_id(1)
    head = tl.program_id(0)
    batch = tl.program_id(2)
    kv_head = head // (heads // kv_heads)
    first = block * BLOCK_M
    queries = first + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    channels = tl.arange(0, DIM)
    q_at = ((batch * tokens + queries[:, None]) * heads + head) * DIM + channels[None, :]
    q = tl.load(q_ptr + q_at, mask=queries[:, None] < tokens, other=0.0)
    stride = kv_heads * DIM
    k_ptr += (batch * tokens * kv_heads + kv_head) * DIM
    v_ptr += (batch * tokens * kv_heads + kv_head) * DIM
    k_at = keys[None, :] * stride + channels[:, None]
    v_at = keys[:, None] * stride + channels[None, :]

    # Running maximum (already scaled), running sum of the weights, and the output before division.
    m_i = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    l_i = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), dtype=tl.float32)

    # Blocks that every query of the tile sees need no mask.
    whole = first // BLOCK_N * BLOCK_N
    for start in range(0, whole, BLOCK_N):
        k = tl.load(k_ptr + start * stride + k_at)
        qk = tl.dot(q, k)
        m_new = tl.maximum(m_i, tl.max(qk, 1) * scale)
        p = tl.math.exp2(qk * scale - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + start * stride + v_at)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new

    for start in tl.range(whole, tl.minimum(first + BLOCK_M, tokens), BLOCK_N, num_stages=1):
        live = start + keys < tokens
        k = tl.load(k_ptr + start * stride + k_at, mask=live[None, :], other=0.0)
        seen = start + keys[None, :] <= queries[:, None]
        qk = tl.where(seen, tl.dot(q, k), float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, 1) * scale)
        p = tl.math.exp2(qk * scale - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + start * stride + v_at, mask=live[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new

    acc = acc / l_i[:, None]
    tl.store(o_ptr + q_at, acc.to(o_ptr.dtype.element_ty), mask=queries[:, None] < tokens)


def gqa(q, k, v, o):
    batch, tokens, heads, dim = q.shape
    # exp2 is the hardware's exponential: log2(e) is folded into the scale of the scores.
    scale = math.log2(math.e) / math.sqrt(dim)
    gqa_kernel[(heads, triton.cdiv(tokens, 128), batch)](
        q,
        k,
        v,
        o,
        tokens,
        heads,
        k.shape[2],
        scale,
        DIM=dim,
        BLOCK_M=128,
        BLOCK_N=128,
        num_warps=8,
        num_stages=3,
    )
