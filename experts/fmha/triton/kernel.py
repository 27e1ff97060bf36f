"""Packed non-causal attention: online softmax in base two, pipelined K/V loop, tensor-core products.

SPDX-License-Identifier: MIT
"""

import math

import triton
import triton.language as tl


@triton.jit
def fmha_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    offsets_ptr,
    scale,
    stride_token,
    stride_head,
    DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    pid_m = tl.program_id(0)
    head = tl.program_id(1)
    sequence = tl.program_id(2)
    begin = tl.load(offsets_ptr + sequence)
    length = tl.load(offsets_ptr + sequence + 1) - begin
    if pid_m * BLOCK_M >= length:
        return

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, DIM)
    base = begin * stride_token + head * stride_head
    q_ptr += base
    k_ptr += base
    v_ptr += base
    o_ptr += base
    # Offsets inside a tile never change: the loop moves one scalar base, not a tensor of pointers.
    q_offsets = offs_m[:, None] * stride_token + offs_d[None, :]
    k_offsets = offs_n[None, :] * stride_token + offs_d[:, None]
    v_offsets = offs_n[:, None] * stride_token + offs_d[None, :]
    q = tl.load(q_ptr + q_offsets, mask=offs_m[:, None] < length, other=0.0)

    # Running maximum (already scaled), running sum of the weights, and the output before division.
    m_i = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    l_i = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), dtype=tl.float32)

    # Whole blocks need no mask; only the last, partial one pays for it.
    whole = length // BLOCK_N * BLOCK_N
    for start in range(0, whole, BLOCK_N):
        k = tl.load(k_ptr + start * stride_token + k_offsets)
        qk = tl.dot(q, k)
        m_new = tl.maximum(m_i, tl.max(qk, 1) * scale)
        p = tl.math.exp2(qk * scale - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + start * stride_token + v_offsets)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new

    for start in tl.range(whole, length, BLOCK_N, num_stages=1):
        live = offs_n < length - start
        k = tl.load(k_ptr + start * stride_token + k_offsets, mask=live[None, :], other=0.0)
        qk = tl.where(live[None, :], tl.dot(q, k), float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, 1) * scale)
        p = tl.math.exp2(qk * scale - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + start * stride_token + v_offsets, mask=live[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new

    acc = acc / l_i[:, None]
    tl.store(o_ptr + q_offsets, acc.to(o_ptr.dtype.element_ty), mask=offs_m[:, None] < length)


def fmha(q, k, v, offsets, o, sequences, length):
    heads, dim = q.shape[1], q.shape[2]
    # exp2 is the hardware's exponential: log2(e) is folded into the scale of the scores.
    scale = math.log2(math.e) / math.sqrt(dim)
    grid = lambda meta: (triton.cdiv(length, meta["BLOCK_M"]), heads, sequences)
    fmha_kernel[grid](
        q, k, v, o, offsets, scale, q.stride(0), q.stride(1),
        DIM=dim, BLOCK_M=128, BLOCK_N=128, num_warps=8, num_stages=3,
    )
