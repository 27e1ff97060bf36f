"""Gated delta rule over chunks: a head's state stays in registers, everything that meets it is copied to shared memory by TMA.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.autotune(
    configs=[
        triton.Config({}, num_warps=4, num_stages=3),
        triton.Config({}, num_warps=4, num_stages=2),
    ],
    key=["tokens", "VALUE_HEADS", "DIM"],
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
    )
