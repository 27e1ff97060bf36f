"""Kimi delta attention: a gated delta rule whose state decays by a gate of its own in every key channel

With the state S [dim, dim] of a head, for one token after the other:
S = exp(gates)[:, None] * S; S = S + outer(k, beta * (v - k @ S)); o = q @ S / sqrt(dim).
"""

ELEMENT = {"triton": "bf16", "c": "fp32", "cuda": "bf16"}

SIZES = {
    "small": {"batch": 1, "tokens": 64, "heads": 2, "dim": 32},
    "ragged": {"batch": 2, "tokens": 45, "heads": 1, "dim": 32},
    "bench": {"batch": 1, "tokens": 128, "heads": 4, "dim": 64},
    "paper": {"batch": 1, "tokens": 4096, "heads": 96, "dim": 128},
}
HIDDEN = {"batch": 1, "tokens": 53, "heads": 1, "dim": 64}

OUTPUTS = ("o", "final_state")


def tensors(element, batch, tokens, heads, dim):
    rows, state = (element, (batch, tokens, heads, dim)), ("fp32", (batch, heads, dim, dim))
    return {
        "q": rows,
        "k": rows,
        "v": rows,
        "gates": ("fp32", (batch, tokens, heads, dim)),
        "beta": ("fp32", (batch, tokens, heads)),
        "initial_state": state,
        "o": rows,
        "final_state": state,
    }


def inputs(rng, xp, batch, tokens, heads, dim):
    decaying = rng.uniform(heads, dim) < 0.75
    return {
        "q": _normalised(xp, rng.normal(batch, tokens, heads, dim)),
        "k": _normalised(xp, rng.normal(batch, tokens, heads, dim)),
        "v": rng.normal(batch, tokens, heads, dim),
        "gates": _log_sigmoid(xp, rng.normal(batch, tokens, heads, dim)) / 16 * decaying,
        "beta": xp.exp(_log_sigmoid(xp, rng.normal(batch, tokens, heads))),
        "initial_state": rng.normal(batch, heads, dim, dim),
    }


def _normalised(xp, x):
    return x / xp.sqrt(xp.sum(x * x, axis=-1) + 1e-6)[..., None]


def _log_sigmoid(xp, x):
    return xp.clip(x, None, 0) - xp.log1p(xp.exp(-abs(x)))


def reference(xp, q, k, v, gates, beta, initial_state, tokens, dim):
    state, rows = initial_state, []
    for t in range(tokens):
        state = state * xp.exp(gates[:, t])[..., None]
        held = (k[:, t, :, None] @ state)[..., 0, :]
        state = state + k[:, t, :, :, None] * (beta[:, t, :, None] * (v[:, t] - held))[..., None, :]
        rows.append((q[:, t, :, None] @ state)[..., 0, :] * dim**-0.5)
    return {"o": xp.stack(rows, 1), "final_state": state}


def cost(itemsize, batch, tokens, heads, dim):
    rows = batch * tokens * heads
    # Gates and beta; the two states.
    words = rows * (dim + 1) + 2 * batch * heads * dim * dim
    # Token by token: two products of a vector with the state, and one outer product. In chunks it is more.
    return {"bytes": 4 * itemsize * rows * dim + 4 * words, "operations": 6 * rows * dim * dim}


def tolerance(element, batch, tokens, heads, dim):
    # The final state is fp32, but the products that lead to it take operands of the element type.
    return {"fp64": 1e-9, "fp32": 1e-4, "fp16": 2e-3, "bf16": 1.6e-2}[element]


def unsupported(batch, tokens, heads, dim):
    if dim not in (16, 32, 64, 128):
        return f"dim must be 16, 32, 64 or 128, not {dim}: the state of a head is held in registers."
    if batch * tokens * heads * dim >= 2**31:
        return "q, k, v and o must each have fewer than 2**31 elements: kernels index with 32 bits."
    return None
