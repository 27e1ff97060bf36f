"""Running sums of log gates inside chunks of tokens: cumulative[b, t, h] = sum of gates[b, s, h] from the chunk's first token to t"""

ELEMENT = {"triton": "fp32", "c": "fp32", "cuda": "fp32"}

SIZES = {
    "small": {"batch": 1, "tokens": 256, "heads": 8, "chunk": 64},
    "ragged": {"batch": 2, "tokens": 83, "heads": 3, "chunk": 64},
    "bench": {"batch": 1, "tokens": 4096, "heads": 48, "chunk": 64},
    "paper": {"batch": 1, "tokens": 4096, "heads": 48, "chunk": 64},
}
HIDDEN = {"batch": 1, "tokens": 200, "heads": 20, "chunk": 64}

OUTPUTS = ("cumulative",)


def tensors(element, batch, tokens, heads, chunk):
    rows = (element, (batch, tokens, heads))
    return {"gates": rows, "cumulative": rows}


def inputs(rng, xp, batch, tokens, heads, chunk):
    drawn = rng.normal(batch, tokens, heads)
    log_sigmoid = xp.clip(drawn, None, 0) - xp.log1p(xp.exp(-abs(drawn)))
    return {"gates": log_sigmoid / 16 * (rng.uniform(heads) < 0.75)}


def reference(xp, gates, tokens, chunk):
    chunks = range(0, tokens, chunk)
    return {"cumulative": xp.concatenate([xp.cumsum(gates[:, t : t + chunk], 1) for t in chunks], 1)}


def cost(itemsize, batch, tokens, heads, chunk):
    rows = batch * tokens * heads
    return {"bytes": 2 * itemsize * rows, "operations": rows}


def unsupported(batch, tokens, heads, chunk):
    if chunk not in (16, 32, 64, 128):
        return f"chunk must be 16, 32, 64 or 128, not {chunk}: a chunk is one tile of the matrix unit in what follows."
    if batch * tokens * heads >= 2**31:
        return "gates must have fewer than 2**31 elements: kernels index with 32 bits."
    return None
