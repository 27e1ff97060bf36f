"""Keys and values copied by TMA: no pointers in registers, one thread issues a copy. Blocks may reach into the next sequence.

SPDX-License-Identifier: MIT
"""
# tune: BLOCK_M=128 BLOCK_N=128 num_warps=8 num_stages=2
# tune: BLOCK_M=128 BLOCK_N=128 num_warps=8 num_stages=3
# tune: BLOCK_M=128 BLOCK_N=64 num_warps=8 num_stages=3
# tune: BLOCK_M=128 BLOCK_N=64 num_warps=8 num_stages=4
# tune: BLOCK_M=64 BLOCK_N=128 num_warps=4 num_stages=2
# tune: BLOCK_M=64 BLOCK_N=64 num_warps=4 num_stages=3
# tune: BLOCK_M=256 BLOCK_N=32 num_warps=8 num_stages=3
# tune: BLOCK_M=256 BLOCK_N=64 num_warps=16 num_stages=2

import math

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def fmha_kernel(
    q_ptr,
    k_desc,
    v_desc,
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
    q_offsets = base + offs_m[:, None] * stride_token + offs_d[None, :]
    q = tl.load(q_ptr + q_offsets, mask=offs_m[:, None] < length, other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    l_i = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), dtype=tl.float32)

    whole = length // BLOCK_N * BLOCK_N
    for start in range(0, whole, BLOCK_N):
        k = k_desc.load([begin + start, head * DIM])
        qk = tl.dot(q, k.T)
        m_new = tl.maximum(m_i, tl.max(qk, 1) * scale)
        p = tl.math.exp2(qk * scale - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = v_desc.load([begin + start, head * DIM])
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new

    for start in tl.range(whole, length, BLOCK_N, num_stages=1):
        live = offs_n < length - start
        k = k_desc.load([begin + start, head * DIM])
        qk = tl.where(live[None, :], tl.dot(q, k.T), float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, 1) * scale)
        p = tl.math.exp2(qk * scale - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = v_desc.load([begin + start, head * DIM])
        acc = tl.dot(p.to(v.dtype), tl.where(live[:, None], v, 0.0), acc)
        m_i = m_new

    acc = acc / l_i[:, None]
    tl.store(o_ptr + q_offsets, acc.to(o_ptr.dtype.element_ty), mask=offs_m[:, None] < length)


def launched(q, k, v, offsets, o, sequences, length, BLOCK_M, BLOCK_N, num_warps, num_stages):
    tokens, heads, dim = q.shape
    scale = math.log2(math.e) / math.sqrt(dim)
    rows = lambda x: TensorDescriptor(x, [tokens, heads * dim], [heads * dim, 1], [BLOCK_N, dim])
    fmha_kernel[(triton.cdiv(length, BLOCK_M), heads, sequences)](
        q, rows(k), rows(v), o, offsets, scale, q.stride(0), q.stride(1),
        DIM=dim, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps, num_stages=num_stages,
    )


def fmha(q, k, v, offsets, o, sequences, length):
    launched(q, k, v, offsets, o, sequences, length, BLOCK_M=128, BLOCK_N=128, num_warps=8, num_stages=2)
