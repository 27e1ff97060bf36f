"""Sparse attention over one latent key head: every query sees only the tokens that its indices name

scores = q @ kv[indices].T / sqrt(width); o = softmax(scores) @ kv[indices, :value_width]; also, in fp32, max_logits = max(scores)
and lse = log(sum(exp(scores))). All heads of a query share its indices; an index of -1 names no token.
"""

ELEMENT = {"triton": "bf16", "c": "fp32", "cuda": "bf16"}

SIZES = {
    "small": {"queries": 4, "heads": 16, "tokens": 128, "selected": 64, "width": 96, "value_width": 64},
    "ragged": {"queries": 3, "heads": 5, "tokens": 61, "selected": 37, "width": 48, "value_width": 32},
    "bench": {"queries": 16, "heads": 16, "tokens": 256, "selected": 128, "width": 96, "value_width": 64},
    "paper": {
        "queries": 8192,
        "heads": 128,
        "tokens": 8192,
        "selected": 2048,
        "width": 576,
        "value_width": 512,
    },
}
HIDDEN = {"queries": 2, "heads": 20, "tokens": 100, "selected": 150, "width": 80, "value_width": 64}

OUTPUTS = ("o", "max_logits", "lse")

_QUERIES = 32  # at a time in the reference: what all of them gather would be 72 GiB at the paper's size


def tensors(element, queries, heads, tokens, selected, width, value_width):
    return {
        "q": (element, (queries, heads, width)),
        "kv": (element, (tokens, width)),
        "indices": ("int32", (queries, selected)),
        "o": (element, (queries, heads, value_width)),
        "max_logits": ("fp32", (queries, heads)),
        "lse": ("fp32", (queries, heads)),
    }


def inputs(rng, queries, heads, tokens, selected, width, value_width):
    return {
        "q": rng.normal(queries, heads, width),
        "kv": rng.normal(tokens, width),
        "indices": rng.integers(-1, tokens, queries, selected),
    }


def reference(xp, q, kv, indices, queries, width, value_width):
    parts = [
        _attended(xp, q[t : t + _QUERIES] * width**-0.5, kv, indices[t : t + _QUERIES], value_width)
        for t in range(0, queries, _QUERIES)
    ]
    return {name: xp.concatenate([part[name] for part in parts]) for name in OUTPUTS}


def _attended(xp, q, kv, indices, value_width):
    gathered = kv[xp.clip(indices, 0, None)]
    scores = q @ gathered.swapaxes(1, 2)
    scores = xp.where((indices < 0)[:, None, :], float("-inf"), scores)
    most = xp.amax(scores, axis=-1)
    weights = xp.exp(scores - most[..., None])
    total = xp.sum(weights, axis=-1)
    o = (weights @ gathered[..., :value_width]) / total[..., None]
    return {"o": o, "max_logits": most, "lse": most + xp.log(total)}


def cost(itemsize, queries, heads, tokens, selected, width, value_width):
    elements = queries * heads * (width + value_width) + tokens * width
    return {
        "bytes": itemsize * elements + 4 * queries * selected + 8 * queries * heads,
        "operations": 2 * queries * heads * selected * (width + value_width),
    }


def unsupported(queries, heads, tokens, selected, width, value_width):
    rest = width - value_width
    if any(part < 16 or part & (part - 1) for part in (value_width, rest)):
        return (
            f"value_width and width - value_width must be powers of two of at least 16, not {value_width} and {rest}: "
            "each is one tile of the matrix unit."
        )
    if max(queries * heads * width, tokens * width, queries * selected) >= 2**31:
        return "q, kv and indices must each have fewer than 2**31 elements: kernels index with 32 bits."
    return None
