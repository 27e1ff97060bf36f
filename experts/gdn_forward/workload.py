"""Gated delta rule over chunks whose triangular matrices are known: the state goes from chunk to chunk, every token reads it

With the state S before a chunk, G the running sums of the log gates in it, and ** T for transposed:
change = inverse @ (v - exp(G) * (k @ S)); o = exp(G) * (q @ S) / sqrt(dim) + scores @ change;
S = exp(G[last]) * S + (exp(G[last] - G) * k) ** T @ change.
"""

ELEMENT = {"triton": "bf16", "c": "fp32", "cuda": "bf16"}

SIZES = {
    "small": {"batch": 1, "tokens": 128, "key_heads": 1, "value_heads": 2, "dim": 64, "chunk": 64},
    "ragged": {"batch": 2, "tokens": 83, "key_heads": 1, "value_heads": 3, "dim": 32, "chunk": 64},
    "bench": {"batch": 1, "tokens": 256, "key_heads": 2, "value_heads": 4, "dim": 64, "chunk": 64},
    "paper": {"batch": 1, "tokens": 4096, "key_heads": 16, "value_heads": 48, "dim": 128, "chunk": 64},
}
HIDDEN = {"batch": 1, "tokens": 200, "key_heads": 2, "value_heads": 4, "dim": 64, "chunk": 64}

OUTPUTS = ("o", "final_state")


def tensors(element, batch, tokens, key_heads, value_heads, dim, chunk):
    keys, state = (element, (batch, tokens, key_heads, dim)), ("fp32", (batch, value_heads, dim, dim))
    matrix = ("fp16" if element == "bf16" else element, (batch, tokens, value_heads, chunk))
    return {
        "q": keys,
        "k": keys,
        "v": (element, (batch, tokens, value_heads, dim)),
        "cumulative": ("fp32", (batch, tokens, value_heads)),
        "inverse": matrix,
        "scores": matrix,
        "initial_state": state,
        "o": ("fp32", (batch, tokens, value_heads, dim)),
        "final_state": state,
    }


def inputs(rng, xp, batch, tokens, key_heads, value_heads, dim, chunk):
    """The matrices are those of the keys and gates: with others, the state would grow from chunk to chunk."""
    decaying = rng.uniform(value_heads) < 0.75
    gates = _log_sigmoid(xp, rng.normal(batch, tokens, value_heads)) / 16 * decaying
    beta = xp.exp(_log_sigmoid(xp, rng.normal(batch, tokens, value_heads)))
    q, k = (_normalised(xp, rng.normal(batch, tokens, key_heads, dim)) for _ in range(2))
    parts = [
        _matrices(xp, *(a[:, t : t + chunk] for a in (q, k, gates, beta)), value_heads // key_heads, chunk)
        for t in range(0, tokens, chunk)
    ]
    sums, inverse, scores = (xp.concatenate(part, 1) for part in zip(*parts, strict=True))
    return {
        "q": q,
        "k": k,
        "v": rng.normal(batch, tokens, value_heads, dim),
        "cumulative": sums,
        "inverse": inverse,
        "scores": scores,
        "initial_state": rng.normal(batch, value_heads, dim, dim),
    }


def _matrices(xp, q, k, gates, beta, group, chunk):
    """Running sums of the gates, inverse and scores of one chunk."""
    length, value_heads, dim = gates.shape[1], gates.shape[2], q.shape[3]
    key_head = xp.arange(value_heads) // group
    sums = xp.cumsum(gates, 1)
    q, k = (a[:, :, key_head].swapaxes(1, 2) for a in (q, k))
    across, betas = sums.swapaxes(1, 2), beta.swapaxes(1, 2)
    decay = xp.exp(xp.tril(across[..., :, None] - across[..., None, :]))
    system = xp.tril(betas[..., None] * decay * (k @ k.swapaxes(2, 3)), -1)
    system[..., range(length), range(length)] += 1
    inverse = xp.linalg.inv(system) * betas[..., None, :]
    scores = xp.tril(decay * (q @ k.swapaxes(2, 3))) * dim**-0.5
    padding = (decay[..., :1] * 0.0,) * (chunk - length)
    return (sums, *(xp.concatenate((m, *padding), -1).swapaxes(1, 2) for m in (inverse, scores)))


def _normalised(xp, x):
    return x / xp.sqrt(xp.sum(x * x, axis=-1) + 1e-6)[..., None]


def _log_sigmoid(xp, x):
    return xp.clip(x, None, 0) - xp.log1p(xp.exp(-abs(x)))


def reference(
    xp, q, k, v, cumulative, inverse, scores, initial_state, tokens, key_heads, value_heads, dim, chunk
):
    key_head = xp.arange(value_heads) // (value_heads // key_heads)
    state, rows = initial_state, []
    for t in range(0, tokens, chunk):
        keys, queries = (a[:, t : t + chunk][:, :, key_head].swapaxes(1, 2) for a in (k, q))
        values, corrections, seen = (
            a[:, t : t + chunk].swapaxes(1, 2)
            for a in (v, inverse[..., : tokens - t], scores[..., : tokens - t])
        )
        sums = cumulative[:, t : t + chunk].swapaxes(1, 2)[..., None]
        change = corrections @ (values - xp.exp(sums) * (keys @ state))
        rows.append((xp.exp(sums) * (queries @ state) * dim**-0.5 + seen @ change).swapaxes(1, 2))
        last = sums[..., -1:, :]
        state = xp.exp(last) * state + (xp.exp(last - sums) * keys).swapaxes(2, 3) @ change
    return {"o": xp.concatenate(rows, 1), "final_state": state}


def cost(itemsize, batch, tokens, key_heads, value_heads, dim, chunk):
    rows, half = batch * tokens * value_heads, 2 if itemsize == 2 else itemsize
    elements = batch * tokens * dim * (2 * key_heads + value_heads)
    words = rows * (1 + dim) + 2 * batch * value_heads * dim * dim
    # Three products with the state's size, and two triangular ones with the chunk's, which are half as much.
    return {
        "bytes": itemsize * elements + 2 * half * rows * chunk + 4 * words,
        "operations": 6 * rows * dim * dim + 2 * rows * chunk * dim,
    }


def tolerance(element, batch, tokens, key_heads, value_heads, dim, chunk):
    # Outputs are fp32, but state, corrections and changes pass through the element type one after the other.
    # With all of them in bf16, the worst element of 4096 tokens is off by 3e-2, and the root mean square by 4e-3.
    return {"fp64": 1e-9, "fp32": 1e-4, "fp16": 5e-3, "bf16": 4e-2}[element]


def unsupported(batch, tokens, key_heads, value_heads, dim, chunk):
    if dim not in (16, 32, 64, 128):
        return f"dim must be 16, 32, 64 or 128, not {dim}: the state of a head is held in registers."
    if chunk not in (16, 32, 64):
        return f"chunk must be 16, 32 or 64, not {chunk}: a chunk is one tile of the matrix unit."
    if value_heads % key_heads:
        return f"value_heads must be a multiple of key_heads, and {value_heads} is none of {key_heads}."
    if batch * tokens * value_heads * max(dim, chunk) >= 2**31:
        return (
            "v, o, inverse and scores must each have fewer than 2**31 elements: kernels index with 32 bits."
        )
    return None
