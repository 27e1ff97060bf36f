"""Causal attention with grouped queries: o = softmax(q @ k.T / sqrt(dim)) @ v over the tokens up to each query's own

Query head h belongs to key and value head h // (heads / kv_heads).
"""

ELEMENT = {"triton": "bf16", "c": "fp32", "cuda": "bf16"}

SIZES = {
    "small": {"batch": 1, "tokens": 128, "heads": 4, "kv_heads": 2, "dim": 64},
    "ragged": {"batch": 2, "tokens": 101, "heads": 3, "kv_heads": 1, "dim": 32},
    "bench": {"batch": 1, "tokens": 256, "heads": 4, "kv_heads": 2, "dim": 64},
    "paper": {"batch": 1, "tokens": 16384, "heads": 32, "kv_heads": 8, "dim": 128},
}
HIDDEN = {"batch": 1, "tokens": 173, "heads": 4, "kv_heads": 4, "dim": 64}

OUTPUTS = ("o",)

_ROWS = 1024  # queries at a time in the reference: all scores at once would be 64 GiB at the paper's size


def tensors(element, batch, tokens, heads, kv_heads, dim):
    keys = (element, (batch, tokens, kv_heads, dim))
    return {
        "q": (element, (batch, tokens, heads, dim)),
        "k": keys,
        "v": keys,
        "o": (element, (batch, tokens, heads, dim)),
    }


def inputs(rng, batch, tokens, heads, kv_heads, dim):
    return {
        "q": rng.normal(batch, tokens, heads, dim),
        "k": rng.normal(batch, tokens, kv_heads, dim),
        "v": rng.normal(batch, tokens, kv_heads, dim),
    }


def reference(xp, q, k, v, tokens, heads, kv_heads, dim):
    group = heads // kv_heads
    blocks = []
    for begin in range(0, tokens, _ROWS):
        end = min(begin + _ROWS, tokens)
        seen = [
            _attended(
                xp,
                q[:, begin:end, head] * dim**-0.5,
                k[:, :end, head // group],
                v[:, :end, head // group],
                begin,
            )
            for head in range(heads)
        ]
        blocks.append(xp.stack(seen, 2))
    return {"o": xp.concatenate(blocks, 1)}


def _attended(xp, q, k, v, begin):
    """One head: queries from token `begin` on, over all tokens up to the last of them."""
    scores = q @ k.swapaxes(1, 2)
    # Above what is not seen, which the triangle makes 0: then the largest of a row is one that is seen.
    scores = xp.tril(scores - (scores.min() - 1), begin)
    weights = xp.tril(xp.exp(scores - xp.amax(scores, axis=-1)[..., None]), begin)
    return (weights @ v) / xp.sum(weights, axis=-1)[..., None]


def cost(itemsize, batch, tokens, heads, kv_heads, dim):
    return {
        "bytes": 2 * itemsize * batch * tokens * (heads + kv_heads) * dim,
        "operations": 2 * batch * heads * dim * tokens * (tokens + 1),
    }


def unsupported(batch, tokens, heads, kv_heads, dim):
    if dim not in (16, 32, 64, 128, 256):
        return f"dim must be a power of two from 16 to 256, not {dim}: a head is one tile of the matrix unit."
    if heads % kv_heads:
        return f"heads must be a multiple of kv_heads, and {heads} is none of {kv_heads}."
    if batch * tokens * heads * dim >= 2**31:
        return "q, k, v and o must each have fewer than 2**31 elements: kernels index with 32 bits."
    return None
