"""The blocks on the diagonal inverted by powers, on the matrix unit, in place of one row after the other.

SPDX-License-Identifier: MIT
"""
# tune: num_warps=4 maxnreg=255
# tune: num_warps=4 maxnreg=208
# tune: num_warps=4 maxnreg=168
# tune: num_warps=4 maxnreg=128
# tune: num_warps=8 maxnreg=128

import triton
import triton.language as tl


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
    # The blocks of 8 on the diagonal, all at once: with a strictly lower block a, the inverse of 1 + a is
    # (1 - a) (1 + a**2) (1 + a**4). In larger blocks the powers would outgrow what they cancel to.
    identity = offs_i[:, None] == offs_j[None, :]
    same_8 = offs_i[:, None] // 8 == offs_j[None, :] // 8
    inside = tl.where(same_8, system, 0.0).to(tl.float16)
    square = tl.dot(inside, inside)
    fourth = tl.dot(square.to(tl.float16), square.to(tl.float16))
    inverse = tl.where(identity, 1.0, 0.0) - inside.to(tl.float32)
    inverse += tl.dot(inverse.to(tl.float16), square.to(tl.float16))
    inverse += tl.dot(inverse.to(tl.float16), fourth.to(tl.float16))

    # Then pairs of blocks, pairs of pairs, and theirs: what is left of the diagonal is -(lower right) @ a @ (upper left).
    for size in tl.static_range(3):
        same = offs_i[:, None] // (16 << size) == offs_j[None, :] // (16 << size)
        smaller = offs_i[:, None] // (8 << size) == offs_j[None, :] // (8 << size)
        below = tl.where(smaller, 0.0, tl.where(same, system, 0.0))
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
        KEY_HEADS=key_heads, VALUE_HEADS=value_heads, DIM=dim, CHUNK=chunk, num_warps=4, maxnreg=168,
    )
