"""Kimi delta attention, token by token: one program holds the whole state of a head and walks the sequence.

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
):
    head = tl.program_id(0)
    batch = tl.program_id(1)
    channels = tl.arange(0, DIM)
    square = (batch * heads + head) * DIM * DIM + channels[:, None] * DIM + channels[None, :]
    state = tl.load(initial_state_ptr + square)

    for t in range(tokens):
        row = (batch * tokens + t) * heads + head
        at = row * DIM + channels
        q = tl.load(q_ptr + at).to(tl.float32)
        k = tl.load(k_ptr + at).to(tl.float32)
        v = tl.load(v_ptr + at).to(tl.float32)
        gate = tl.load(gates_ptr + at)
        beta = tl.load(beta_ptr + row)

        state = state * tl.exp(gate)[:, None]
        held = tl.sum(k[:, None] * state, axis=0)
        state = state + k[:, None] * (beta * (v - held))[None, :]
        o = tl.sum(q[:, None] * state, axis=0) * scale
        tl.store(o_ptr + at, o.to(o_ptr.dtype.element_ty))

    tl.store(final_state_ptr + square, state)


def kda(q, k, v, gates, beta, initial_state, o, final_state):
    batch, tokens, heads, dim = q.shape
    kda_kernel[(heads, batch)](
        q, k, v, gates, beta, initial_state, o, final_state, tokens, heads, dim**-0.5, DIM=dim, num_warps=8
    )
