"""Sparse attention, a program for a query and a block of its heads: they share the gathered tokens, in one sweep.

The width is split into the part that also serves as value, which is gathered once for both, and the rest.

SPDX-License-Identifier: MIT
"""

import math

import triton
import triton.language as tl

LOG2_E = tl.constexpr(math.log2(math.e))


@triton.jit
def sparse_attention_kernel(
    q_ptr,
    kv_ptr,
    indices_ptr,
    o_ptr,
    max_logits_ptr,
    lse_ptr,
    heads,
    selected,
    scale,
    VALUE: tl.constexpr,
    REST: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    query = tl.program_id(0)
    rows = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    live = rows[:, None] < heads
    width: tl.constexpr = VALUE + REST
    values = tl.arange(0, VALUE)
    rest = VALUE + tl.arange(0, REST)
    q_at = (query * heads + rows[:, None]) * width
    q = tl.load(q_ptr + q_at + values[None, :], mask=live, other=0.0)
    q_rest = tl.load(q_ptr + q_at + rest[None, :], mask=live, other=0.0)

    # Running maximum in base two, running sum of the weights, and the output before division.
    m_i = tl.full((BLOCK_H,), float("-inf"), dtype=tl.float32)
    l_i = tl.zeros((BLOCK_H,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_H, VALUE), dtype=tl.float32)
    for start in range(0, selected, BLOCK_N):
        at = start + tl.arange(0, BLOCK_N)
        tokens = tl.load(indices_ptr + query * selected + at, mask=at < selected, other=-1)
        seen = tokens >= 0
        kv = tl.load(kv_ptr + tokens[:, None] * width + values[None, :], mask=seen[:, None], other=0.0)
        k_rest = tl.load(kv_ptr + tokens[None, :] * width + rest[:, None], mask=seen[None, :], other=0.0)
        qk = tl.dot(q, tl.trans(kv))
        qk = tl.dot(q_rest, k_rest, qk) * (scale * LOG2_E)
        qk = tl.where(seen[None, :], qk, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        # A block that names no token leaves the maximum where it is, which may be nowhere.
        base = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.math.exp2(qk - base[:, None])
        alpha = tl.math.exp2(m_i - base)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(kv.dtype), kv, acc * alpha[:, None])
        m_i = m_new

    out = query * heads + rows
    acc = acc / l_i[:, None]
    tl.store(o_ptr + out[:, None] * VALUE + values[None, :], acc.to(o_ptr.dtype.element_ty), mask=live)
    tl.store(max_logits_ptr + out, m_i / LOG2_E, mask=rows < heads)
    tl.store(lse_ptr + out, (m_i + tl.math.log2(l_i)) / LOG2_E, mask=rows < heads)


def sparse_attention(q, kv, indices, o, max_logits, lse):
    queries, heads, width = q.shape
    value = o.shape[2]
    block = min(64, max(16, triton.next_power_of_2(heads)))
    sparse_attention_kernel[(queries, triton.cdiv(heads, block))](
        q,
        kv,
        indices,
        o,
        max_logits,
        lse,
        heads,
        indices.shape[1],
        width**-0.5,
        VALUE=value,
        REST=width - value,
        BLOCK_H=block,
        BLOCK_N=32,
        num_warps=8,
        num_stages=2,
    )
