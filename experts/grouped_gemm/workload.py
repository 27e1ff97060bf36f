"""Products of groups of rows, each with a matrix of its own: y[rows of g] = x[rows of g] @ weight[g, K, N]

Group g has the rows from offsets[g] up to offsets[g + 1], at least one.
"""

ELEMENT = {"triton": "bf16", "c": "fp32", "cuda": "bf16"}

SIZES = {
    "small": {"groups": 3, "rows": 128, "n": 64, "k": 64},
    "ragged": {"groups": 4, "rows": 101, "n": 97, "k": 41},
    "bench": {"groups": 4, "rows": 512, "n": 256, "k": 256},
    "paper": {"groups": 8, "rows": 12288, "n": 4096, "k": 4096},
}
HIDDEN = {"groups": 7, "rows": 90, "n": 128, "k": 96}

OUTPUTS = ("y",)


def tensors(element, groups, rows, n, k):
    return {
        "x": (element, (rows, k)),
        "weight": (element, (groups, k, n)),
        "offsets": ("int32", (groups + 1,)),
        "y": (element, (rows, n)),
    }


def inputs(rng, groups, rows, n, k):
    """Every cut between two groups is drawn from the half of an equal share before where equal shares would put it."""
    back = rng.integers(0, rows // (2 * groups) + 1, groups - 1).tolist()
    cuts = [group * rows // groups - earlier for group, earlier in enumerate(back, start=1)]
    return {
        "x": rng.normal(rows, k),
        "weight": rng.normal(groups, k, n),
        "offsets": rng.array([0, *cuts, rows]),
    }


def reference(xp, x, weight, offsets):
    edges = [int(edge) for edge in offsets.tolist()]
    parts = [x[edges[g] : edges[g + 1]] @ weight[g] for g in range(len(edges) - 1)]
    return {"y": xp.concatenate(parts)}


def cost(itemsize, groups, rows, n, k):
    elements = rows * k + groups * k * n + rows * n
    return {"bytes": itemsize * elements + 4 * (groups + 1), "operations": 2 * rows * n * k}


def tolerance(element, groups, rows, n, k):
    # The error of a running fp32 sum grows with the square root of its length,
    # the other types round once, at the end.
    base = {"fp64": 1e-9, "fp32": 1e-5, "fp16": 2e-3, "bf16": 1.6e-2}[element]
    return min(1e-3, base * max(1.0, (k / 256) ** 0.5)) if element == "fp32" else base


def unsupported(groups, rows, n, k):
    if rows < 2 * groups:
        return f"rows must be at least two for each of the {groups} groups, not {rows} in all."
    if max(rows * k, groups * n * k, rows * n) >= 2**31:
        return "x, weight and y must each have fewer than 2**31 elements: kernels index with 32 bits."
    return None
