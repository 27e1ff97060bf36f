"""The two triangular matrices of each chunk of the gated delta rule: how keys correct each other, and how queries see keys

With G the running sums of the log gates in the chunk, and rows i and columns j in it:
inverse = (identity + tril(beta[i] * exp(G[i] - G[j]) * k[i] @ k[j], -1)) ** -1 * beta[j];
scores = tril(exp(G[i] - G[j]) * q[i] @ k[j] / sqrt(dim)).
Row i of a chunk stands where its token is; what lies beyond a partial last chunk is zero.
"""

ELEMENT = {"triton": "bf16", "c": "fp32", "cuda": "bf16"}

SIZES = {
    "small": {"batch": 1, "tokens": 128, "key_heads": 1, "value_heads": 2, "dim": 64, "chunk": 64},
    "ragged": {"batch": 2, "tokens": 83, "key_heads": 1, "value_heads": 3, "dim": 32, "chunk": 64},
    "bench": {"batch": 1, "tokens": 256, "key_heads": 2, "value_heads": 4, "dim": 64, "chunk": 64},
    "paper": {"batch": 1, "tokens": 4096, "key_heads": 16, "value_heads": 48, "dim": 128, "chunk": 64},
}
HIDDEN = {"batch": 1, "tokens": 200, "key_heads": 2, "value_heads": 4, "dim": 64, "chunk": 64}

OUTPUTS = ("inverse", "scores")


def tensors(element, batch, tokens, key_heads, value_heads, dim, chunk):
    keys, rows = (element, (batch, tokens, key_heads, dim)), ("fp32", (batch, tokens, value_heads))
    # Entries are at most of the size of one: fp16 holds them three bits finer than bf16.
    matrix = ("fp16" if element == "bf16" else element, (batch, tokens, value_heads, chunk))
    return {"q": keys, "k": keys, "cumulative": rows, "beta": rows, "inverse": matrix, "scores": matrix}


def inputs(rng, xp, batch, tokens, key_heads, value_heads, dim, chunk):
    decaying = rng.uniform(value_heads) < 0.75
    gates = _log_sigmoid(xp, rng.normal(batch, tokens, value_heads)) / 16 * decaying
    return {
        "q": _normalised(xp, rng.normal(batch, tokens, key_heads, dim)),
        "k": _normalised(xp, rng.normal(batch, tokens, key_heads, dim)),
        "cumulative": xp.concatenate(
            [xp.cumsum(gates[:, t : t + chunk], 1) for t in range(0, tokens, chunk)], 1
        ),
        "beta": xp.exp(_log_sigmoid(xp, rng.normal(batch, tokens, value_heads))),
    }


def _normalised(xp, x):
    return x / xp.sqrt(xp.sum(x * x, axis=-1) + 1e-6)[..., None]


def _log_sigmoid(xp, x):
    return xp.clip(x, None, 0) - xp.log1p(xp.exp(-abs(x)))


def reference(xp, q, k, cumulative, beta, batch, tokens, key_heads, value_heads, dim, chunk):
    key_head = xp.arange(value_heads) // (value_heads // key_heads)
    inverses, scores = [], []
    for t in range(0, tokens, chunk):
        # Heads before tokens: matrices are [batch, head, i, j].
        keys, queries = (a[:, t : t + chunk][:, :, key_head].swapaxes(1, 2) for a in (k, q))
        sums, betas = (a[:, t : t + chunk].swapaxes(1, 2) for a in (cumulative, beta))
        length = keys.shape[2]
        decay = xp.exp(xp.tril(sums[..., :, None] - sums[..., None, :]))
        system = xp.tril(betas[..., None] * decay * (keys @ keys.swapaxes(2, 3)), -1)
        system[..., range(length), range(length)] += 1
        inverse = xp.linalg.inv(system) * betas[..., None, :]
        seen = xp.tril(decay * (queries @ keys.swapaxes(2, 3))) * dim**-0.5
        padding = (decay[..., :1] * 0.0,) * (chunk - length)
        inverses.append(xp.concatenate((inverse, *padding), -1).swapaxes(1, 2))
        scores.append(xp.concatenate((seen, *padding), -1).swapaxes(1, 2))
    return {"inverse": xp.concatenate(inverses, 1), "scores": xp.concatenate(scores, 1)}


def cost(itemsize, batch, tokens, key_heads, value_heads, dim, chunk):
    rows, half = batch * tokens * value_heads, 2 if itemsize == 2 else itemsize
    # One product of keys and one of queries for each key head, half of each; a triangular inverse for each value head.
    operations = 2 * batch * tokens * key_heads * chunk * dim + rows * chunk * chunk // 3
    return {
        "bytes": itemsize * 2 * batch * tokens * key_heads * dim + 8 * rows + 2 * half * rows * chunk,
        "operations": operations,
    }


def unsupported(batch, tokens, key_heads, value_heads, dim, chunk):
    if dim not in (16, 32, 64, 128):
        return (
            f"dim must be 16, 32, 64 or 128, not {dim}: the keys of a chunk are one tile of the matrix unit."
        )
    if chunk != 64:
        return f"chunk must be 64, not {chunk}: the inverse is built from blocks of 16, 32 and 64."
    if value_heads % key_heads:
        return f"value_heads must be a multiple of key_heads, and {value_heads} is none of {key_heads}."
    if batch * tokens * value_heads * max(dim, chunk) >= 2**31:
        return "inverse and scores must each have fewer than 2**31 elements: kernels index with 32 bits."
    return None
