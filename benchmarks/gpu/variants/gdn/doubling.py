"""The blocks on the diagonal inverted by powers, on the matrix unit, in place of one row after the other.

SPDX-License-Identifier: MIT
"""
# tune: gdn_kkt_kernel.maxnreg=168
# tune: gdn_kkt_kernel.maxnreg=128
# tune: gdn_kkt_kernel.maxnreg=255

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


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
    gdn_cumsum_kernel[(triton.cdiv(heads, 16), triton.cdiv(tokens, chunk), batch)](
        gates, cumulative, tokens, heads, EVEN=tokens % chunk == 0 and heads % 16 == 0, CHUNK=chunk,
        BLOCK_H=16, num_warps=2,
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


@triton.jit
def gdn_forward_kernel(
    q_desc,
    k_desc,
    v_desc,
    inverse_desc,
    scores_desc,
    o_desc,
    cumulative_ptr,
    initial_state_ptr,
    final_state_ptr,
    tokens,
    scale,
    KEY_HEADS: tl.constexpr,
    VALUE_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_V: tl.constexpr,
):
    # The blocks of value channels of one head run side by side, and share all but v and o in L2.
    pid_v = tl.program_id(0)
    pid_head = tl.program_id(1)
    sequence = pid_head // VALUE_HEADS
    head = pid_head % VALUE_HEADS
    key_head = head // (VALUE_HEADS // KEY_HEADS)
    offs_t = tl.arange(0, CHUNK)
    offs_d = tl.arange(0, DIM)
    offs_v = pid_v * BLOCK_V + tl.arange(0, BLOCK_V)
    cumulative_ptr += sequence * tokens * VALUE_HEADS + head

    # The state is kept transposed, value channels first: then it, the errors and the changes are left operands,
    # which the matrix unit takes from registers, and only what is loaded passes through shared memory.
    state_offsets = pid_head * DIM * DIM + offs_d[None, :] * DIM + offs_v[:, None]
    state = tl.load(initial_state_ptr + state_offsets, eviction_policy="evict_first")
    for start in range(0, tokens, CHUNK):
        # Beyond the last token the descriptors give zeros, which change nothing, and store nothing.
        k = k_desc.load([sequence, start, key_head * DIM]).reshape(CHUNK, DIM)
        q = q_desc.load([sequence, start, key_head * DIM]).reshape(CHUNK, DIM)
        v = v_desc.load([sequence, start, head * DIM + pid_v * BLOCK_V]).reshape(CHUNK, BLOCK_V)
        inverse = inverse_desc.load([sequence, start, head * CHUNK]).reshape(CHUNK, CHUNK)
        scores = scores_desc.load([sequence, start, head * CHUNK]).reshape(CHUNK, CHUNK)
        last = tl.minimum(start + CHUNK, tokens) - 1
        sums = tl.load(cumulative_ptr + tl.minimum(start + offs_t, last) * VALUE_HEADS) * 1.4426950408889634
        total = tl.load(cumulative_ptr + last * VALUE_HEADS) * 1.4426950408889634
        decay = tl.math.exp2(sums)

        held = tl.dot(state.to(k.dtype), tl.trans(k))
        o = tl.dot(state.to(q.dtype), tl.trans(q)) * (decay * scale)[None, :]
        error = tl.trans(v).to(tl.float32) - held * decay[None, :]
        change = tl.dot(error.to(inverse.dtype), tl.trans(inverse))
        o = tl.dot(change.to(scores.dtype), tl.trans(scores), o)
        left = change * tl.math.exp2(total - sums)[None, :]
        state = tl.dot(left.to(k.dtype), k, state * tl.math.exp2(total))
        o_desc.store([sequence, start, head * DIM + pid_v * BLOCK_V], tl.trans(o).reshape(1, CHUNK, BLOCK_V))

    tl.store(final_state_ptr + state_offsets, state, eviction_policy="evict_first")


def rows_of(x, chunk, width):
    """A descriptor of x [batch, tokens, heads, columns] that copies `chunk` tokens of `width` columns."""
    batch, tokens, heads, columns = x.shape
    extent = heads * columns
    return TensorDescriptor(x, [batch, tokens, extent], [tokens * extent, extent, 1], [1, chunk, width])


def gdn_forward(q, k, v, cumulative, inverse, scores, initial_state, o, final_state):
    batch, tokens, value_heads, dim = v.shape
    key_heads, chunk, block = k.shape[2], inverse.shape[3], min(dim, 64)
    gdn_forward_kernel[(dim // block, batch * value_heads)](
        rows_of(q, chunk, dim), rows_of(k, chunk, dim), rows_of(v, chunk, block),
        rows_of(inverse, chunk, chunk), rows_of(scores, chunk, chunk), rows_of(o, chunk, block),
        cumulative, initial_state, final_state, tokens, dim**-0.5,
        KEY_HEADS=key_heads, VALUE_HEADS=value_heads, DIM=dim, CHUNK=chunk, BLOCK_V=block,
        num_warps=4, num_stages=3,
    )


def gdn(q, k, v, gates, beta, initial_state, o, final_state):
    batch, tokens, value_heads, dim = v.shape
    chunk = 64
    cumulative = torch.empty_like(gates)
    # fp16 holds entries of at most the size of one three bits finer than bf16.
    half = torch.float16 if v.dtype == torch.bfloat16 else v.dtype
    inverse = torch.empty((batch, tokens, value_heads, chunk), dtype=half, device=v.device)
    scores = torch.empty((batch, tokens, value_heads, chunk), dtype=half, device=v.device)
    gdn_cumsum(gates, cumulative, chunk)
    gdn_kkt(q, k, cumulative, beta, inverse, scores)
    gdn_forward(q, k, v, cumulative, inverse, scores, initial_state, o, final_state)
