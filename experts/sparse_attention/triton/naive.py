"""Sparse attention, a program for every query and head: two sweeps over its tokens, products as sums of the channels.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


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
    width,
    scale,
    VALUE: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    query = tl.program_id(0)
    head = tl.program_id(1)
    place = query * heads + head
    channels = tl.arange(0, WIDTH)
    values = tl.arange(0, VALUE)
    q = tl.load(q_ptr + place * width + channels, mask=channels < width, other=0.0).to(tl.float32)

    most = float("-inf")
    total = 0.0
    for start in range(0, selected, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tokens = tl.load(indices_ptr + query * selected + at, mask=at < selected, other=-1)
        seen = tokens >= 0
        k_at = tokens[:, None] * width + channels[None, :]
        k = tl.load(kv_ptr + k_at, mask=seen[:, None] & (channels[None, :] < width), other=0.0).to(tl.float32)
        scores = tl.where(seen, tl.sum(q[None, :] * k, axis=1) * scale, float("-inf"))
        larger = tl.maximum(most, tl.max(scores, axis=0))
        safe = tl.where(larger == float("-inf"), 0.0, larger)
        total = total * tl.exp(most - safe) + tl.sum(tl.exp(scores - safe), axis=0)
        most = larger

    o = tl.zeros((VALUE,), dtype=tl.float32)
    for start in range(0, selected, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tokens = tl.load(indices_ptr + query * selected + at, mask=at < selected, other=-1)
        seen = tokens >= 0
        k_at = tokens[:, None] * width + channels[None, :]
        k = tl.load(kv_ptr + k_at, mask=seen[:, None] & (channels[None, :] < width), other=0.0).to(tl.float32)
        scores = tl.where(seen, tl.sum(q[None, :] * k, axis=1) * scale, float("-inf"))
        v_at = tokens[:, None] * width + values[None, :]
        v = tl.load(kv_ptr + v_at, mask=seen[:, None], other=0.0).to(tl.float32)
        o += tl.sum(tl.exp(scores - most)[:, None] * v, axis=0)

    tl.store(o_ptr + place * VALUE + values, (o / total).to(o_ptr.dtype.element_ty))
    tl.store(max_logits_ptr + place, most)
    tl.store(lse_ptr + place, most + tl.log(total))


def sparse_attention(q, kv, indices, o, max_logits, lse):
    queries, heads, width = q.shape
    sparse_attention_kernel[(queries, heads)](
        q,
        kv,
        indices,
        o,
        max_logits,
        lse,
        heads,
        indices.shape[1],
        width,
        width**-0.5,
        VALUE=o.shape[2],
        WIDTH=triton.next_power_of_2(width),
        BLOCK=32,
        num_warps=4,
    )
