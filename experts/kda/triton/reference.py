"""Kimi delta attention in chunks: inside a chunk the corrections are the solution of a triangular system.

With G the running sums of the log gates in a chunk, the corrections c of its tokens satisfy
c[i] = beta[i] * (v[i] - (exp(G[i]) * k[i]) @ S - sum over j < i of (k[i] * exp(G[i] - G[j])) @ k[j] * c[j]).
Differences of G are formed before the exponential, so that no factor exceeds one however strong the gates are.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def kda_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    gates_ptr,
    beta_ptr,
    initial_state_ptr,
    o_ptr,
    final_state_ptr,
    tokens,
    heads,
    scale,
    DIM: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_V: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    block = tl.program_id(0)
    head = tl.program_id(1)
    batch = tl.program_id(2)
    values = block * BLOCK_V + tl.arange(0, BLOCK_V)
    channels = tl.arange(0, DIM)
    places = tl.arange(0, CHUNK)
    below = places[:, None] > places[None, :]
    upto = places[:, None] >= places[None, :]
    one = (places[:, None] == places[None, :]).to(tl.float32)

    # Columns of the state do not meet: every block of them is a program of its own.
    square = (batch * heads + head) * DIM * DIM + channels[:, None] * DIM + values[None, :]
    state = tl.load(initial_state_ptr + square)

    for start in range(0, tokens, CHUNK):
        rows = (batch * tokens + start + places) * heads + head
        live = start + places < tokens
        at = rows[:, None] * DIM + channels[None, :]
        beta = tl.load(beta_ptr + rows, mask=live, other=0.0)

        # Products of a key with what an earlier one left, block by block of channels: each pair decays by its own gate.
        system = tl.zeros((CHUNK, CHUNK), dtype=tl.float32)
        scores = tl.zeros((CHUNK, CHUNK), dtype=tl.float32)
        for c in tl.static_range(0, DIM, BLOCK_K):
            part = rows[:, None] * DIM + c + tl.arange(0, BLOCK_K)[None, :]
            q_part = tl.load(q_ptr + part, mask=live[:, None], other=0.0).to(tl.float32)
            k_part = tl.load(k_ptr + part, mask=live[:, None], other=0.0).to(tl.float32)
            sums = tl.cumsum(tl.load(gates_ptr + part, mask=live[:, None], other=0.0), axis=0)
            between = tl.where(upto[:, :, None], sums[:, None, :] - sums[None, :, :], float("-inf"))
            decayed = tl.exp(between) * k_part[None, :, :]
            system += tl.sum(decayed * k_part[:, None, :], axis=2)
            scores += tl.sum(decayed * q_part[:, None, :], axis=2)
        scores = tl.where(upto, scores, 0.0) * scale
        system = tl.where(below, system * beta[:, None], 0.0)

        # The inverse of (1 + system) row by row, which stays exact where its powers would cancel out.
        inverse = -system
        for i in tl.static_range(2, CHUNK):
            row = tl.sum(tl.where(places[:, None] == i, inverse, 0.0), axis=0)
            row += tl.sum(row[:, None] * inverse, axis=0)
            inverse = tl.where(places[:, None] == i, row[None, :], inverse)
        inverse += one

        sums = tl.cumsum(tl.load(gates_ptr + at, mask=live[:, None], other=0.0), axis=0)
        decay = tl.exp(sums)
        q = tl.load(q_ptr + at, mask=live[:, None], other=0.0).to(tl.float32)
        k = tl.load(k_ptr + at, mask=live[:, None], other=0.0).to(tl.float32)
        here = rows[:, None] * DIM + values[None, :]
        v = tl.load(v_ptr + here, mask=live[:, None], other=0.0).to(tl.float32)

        held = tl.dot(k * decay, state, input_precision="tf32x3")
        change = tl.dot(inverse, beta[:, None] * (v - held), input_precision="tf32x3")
        o = tl.dot(q * decay, state, input_precision="tf32x3") * scale + tl.dot(
            scores, change, input_precision="tf32"
        )
        tl.store(o_ptr + here, o.to(o_ptr.dtype.element_ty), mask=live[:, None])

        # What is past the end adds nothing: its gates, keys and beta are zero.
        total = tl.sum(tl.load(gates_ptr + at, mask=live[:, None], other=0.0), axis=0)
        left = tl.exp(total[None, :] - sums) * k
        state = state * tl.exp(total)[:, None] + tl.dot(tl.trans(left), change, input_precision="tf32x3")

    tl.store(final_state_ptr + square, state)


def kda(q, k, v, gates, beta, initial_state, o, final_state):
    batch, tokens, heads, dim = q.shape
    block_v = min(dim, 32)
    kda_kernel[(dim // block_v, heads, batch)](
        q,
        k,
        v,
        gates,
        beta,
        initial_state,
        o,
        final_state,
        tokens,
        heads,
        dim**-0.5,
        DIM=dim,
        CHUNK=16,
        BLOCK_V=block_v,
        BLOCK_K=16,
        num_warps=8,
    )
