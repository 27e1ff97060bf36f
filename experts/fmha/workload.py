"""Packed multi-head attention, non-causal: o = softmax(q @ k.T / sqrt(dim)) @ v inside each sequence"""

ELEMENT = {"triton": "fp16", "c": "fp32", "cuda": "fp16"}

# `tokens` is the sum of the sequences' lengths and `length` the longest that may occur.
SIZES = {
    "small": {"sequences": 2, "length": 128, "tokens": 256, "heads": 2, "dim": 64},
    "ragged": {"sequences": 3, "length": 197, "tokens": 301, "heads": 1, "dim": 64},
    "bench": {"sequences": 2, "length": 256, "tokens": 512, "heads": 2, "dim": 64},
    "paper": {"sequences": 8, "length": 2048, "tokens": 16384, "heads": 64, "dim": 128},
}
HIDDEN = {"sequences": 2, "length": 139, "tokens": 200, "heads": 2, "dim": 128}

OUTPUTS = ("o",)


def tensors(element, sequences, length, tokens, heads, dim):
    packed = (element, (tokens, heads, dim))
    return {"q": packed, "k": packed, "v": packed, "offsets": ("int32", (sequences + 1,)), "o": packed}


def inputs(rng, sequences, length, tokens, heads, dim):
    """Lengths from 1 to `length` that sum to `tokens`, drawn; all equal when there is no choice."""
    draws = rng.integers(0, 2**30, sequences).tolist()
    offsets = [0]
    for index, draw in enumerate(draws):
        left, after = tokens - offsets[-1], sequences - index - 1
        low, high = max(1, left - after * length), min(length, left - after)
        offsets.append(offsets[-1] + low + draw % (high - low + 1))
    return {
        "q": rng.normal(tokens, heads, dim),
        "k": rng.normal(tokens, heads, dim),
        "v": rng.normal(tokens, heads, dim),
        "offsets": rng.array(offsets),
    }


def reference(xp, q, k, v, offsets, sequences, dim):
    edges = [int(edge) for edge in offsets.tolist()]
    parts = []
    for sequence in range(sequences):
        begin, end = edges[sequence], edges[sequence + 1]
        scores = xp.einsum("ihd,jhd->hij", q[begin:end], k[begin:end]) * dim**-0.5
        weights = xp.exp(scores - xp.amax(scores, axis=-1)[..., None])
        weights = weights / xp.sum(weights, axis=-1)[..., None]
        parts.append(xp.einsum("hij,jhd->ihd", weights, v[begin:end]))
    return {"o": xp.concatenate(parts)}


def cost(itemsize, sequences, length, tokens, heads, dim):
    # Sequences of equal length need the fewest operations: a lower bound for every split of the tokens.
    return {
        "bytes": 4 * itemsize * tokens * heads * dim + 4 * (sequences + 1),
        "operations": 4 * heads * dim * tokens * tokens // sequences,
    }


def unsupported(sequences, length, tokens, heads, dim):
    if dim not in (16, 32, 64, 128, 256):
        return f"dim must be a power of two from 16 to 256, not {dim}: a head is one tile of the matrix unit."
    if not sequences <= tokens <= sequences * length:
        return f"{tokens} tokens cannot be split into {sequences} sequences of 1 to {length} tokens."
    if tokens * heads * dim >= 2**31:
        return "q, k, v and o must each have fewer than 2**31 elements: kernels index with 32 bits."
    return None
