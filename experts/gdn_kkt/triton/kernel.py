"""Decayed products of the keys and queries of a chunk, and the inverse of a triangular matrix by block forward substitution.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({}, num_warps=4, maxnreg=168),
        triton.Config({}, num_warps=8),
    ],
    key=["tokens", "VALUE_HEADS", "DIM"],
)
@triton.jit
def gdn_kkt_kernel(
    q_ptr,
    k_ptr,
    cumulative_ptr,
    beta_ptr,
    inverse_ptr,
    scores_ptr,
    tokens,
    scale,
    EVEN: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    VALUE_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    CHUNK: tl.constexpr,
):
    # Heads come first: those that share keys run side by side, and their rows lie side by side in memory.
    head = tl.program_id(0)
    start = tl.program_id(1) * CHUNK
    sequence = tl.program_id(2)
    key_head = head // (VALUE_HEADS // KEY_HEADS)
    first_row = sequence * tokens + start
    offs_i = tl.arange(0, CHUNK)
    offs_j = tl.arange(0, CHUNK)
    offs_d = tl.arange(0, DIM)
    live = offs_i < tokens - start
    key_offsets = ((first_row + offs_i[:, None]) * KEY_HEADS + key_head) * DIM + offs_d[None, :]
    # Keys and queries are read again by the other value heads of their key head.
    if EVEN:
        k = tl.load(k_ptr + key_offsets, eviction_policy="evict_last")
        q = tl.load(q_ptr + key_offsets, eviction_policy="evict_last")
    else:
        k = tl.load(k_ptr + key_offsets, mask=live[:, None], other=0.0, eviction_policy="evict_last")
        q = tl.load(q_ptr + key_offsets, mask=live[:, None], other=0.0, eviction_policy="evict_last")

    # Rows beyond the last token are zero in keys and queries; with its gates they stay zero whatever decays.
    row_offsets = (first_row + tl.minimum(offs_i, tokens - start - 1)) * VALUE_HEADS + head
    sums = tl.load(cumulative_ptr + row_offsets) * 1.4426950408889634
    beta = tl.load(beta_ptr + row_offsets)
    lower = offs_i[:, None] >= offs_j[None, :]
    decay = tl.math.exp2(tl.where(lower, sums[:, None] - sums[None, :], float("-inf")))
    scores = tl.dot(q, tl.trans(k)) * decay * scale
    matrix_offsets = ((first_row + offs_i[:, None]) * VALUE_HEADS + head) * CHUNK + offs_j[None, :]
    tl.store(scores_ptr + matrix_offsets, scores.to(scores_ptr.dtype.element_ty), mask=live[:, None])

    strictly = offs_i[:, None] > offs_j[None, :]
    system = tl.where(strictly, tl.dot(k, tl.trans(k)) * decay * beta[:, None], 0.0)
    # The blocks of 16 on the diagonal, all at once and row by row: x = -a - a @ x, one row of x from those above it.
    block = tl.arange(0, CHUNK // 16)
    row = tl.arange(0, 16)
    diagonal = block[:, None, None, None] == block[None, None, :, None]
    parts = tl.reshape(system, (CHUNK // 16, 16, CHUNK // 16, 16))
    x = -tl.sum(tl.where(diagonal, parts, 0.0), axis=2)
    for i in range(1, 16):
        line = tl.sum(tl.where(row[None, :, None] == i, x, 0.0), axis=1)
        line += tl.sum(line[:, :, None] * x, axis=1)
        x = tl.where(row[None, :, None] == i, line[:, None, :], x)
    whole = tl.reshape(tl.where(diagonal, x[:, :, None, :], 0.0), (CHUNK, CHUNK))
    identity = offs_i[:, None] == offs_j[None, :]
    inverse = tl.where(identity, 1.0, whole)

    # Then pairs of blocks, and pairs of pairs: what is left of the diagonal is -(lower right) @ a @ (upper left).
    same_16 = offs_i[:, None] // 16 == offs_j[None, :] // 16
    same_32 = offs_i[:, None] // 32 == offs_j[None, :] // 32
    below = tl.where(same_16, 0.0, tl.where(same_32, system, 0.0))
    half = tl.dot(inverse.to(tl.float16), below.to(tl.float16))
    inverse -= tl.dot(half.to(tl.float16), inverse.to(tl.float16))
    below = tl.where(same_32, 0.0, system)
    half = tl.dot(inverse.to(tl.float16), below.to(tl.float16))
    inverse -= tl.dot(half.to(tl.float16), inverse.to(tl.float16))

    # One step of Newton's method makes good what these products lost: the rest is exact, with the system in two parts.
    rounded = inverse.to(tl.float16)
    high = system.to(tl.float16)
    low = (system - high.to(tl.float32)).to(tl.float16)
    rest = tl.where(identity, 1.0, 0.0) - rounded.to(tl.float32) - tl.dot(high, rounded) - tl.dot(low, rounded)
    inverse = rounded.to(tl.float32) + tl.dot(rounded, rest.to(tl.float16))
    inverse = inverse * beta[None, :]
    tl.store(inverse_ptr + matrix_offsets, inverse.to(inverse_ptr.dtype.element_ty), mask=live[:, None])


def gdn_kkt(q, k, cumulative, beta, inverse, scores):
    batch, tokens, value_heads, chunk = inverse.shape
    key_heads, dim = k.shape[2], k.shape[3]
    gdn_kkt_kernel[(value_heads, triton.cdiv(tokens, chunk), batch)](
        q, k, cumulative, beta, inverse, scores, tokens, dim**-0.5, EVEN=tokens % chunk == 0,
        KEY_HEADS=key_heads, VALUE_HEADS=value_heads, DIM=dim, CHUNK=chunk,
    )
