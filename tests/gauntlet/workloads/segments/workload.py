"""Sum of each of several ragged segments: y[count] of x[n], cut at offsets[count + 1]"""

ELEMENT = {"c": "fp32", "triton": "fp32", "cuda": "fp32"}
SIZES = {
    "small": {"count": 4, "n": 256},
    "ragged": {"count": 3, "n": 77},
    "bench": {"count": 16, "n": 16384},
}
HIDDEN = {"count": 5, "n": 301}
OUTPUTS = ("y",)


def tensors(element, count, n):
    return {"x": (element, (n,)), "offsets": ("int32", (count + 1,)), "y": (element, (count,))}


def inputs(rng, count, n):
    cuts = sorted(int(cut) for cut in rng.integers(0, n + 1, count - 1).tolist())
    return {"x": rng.uniform(n), "offsets": rng.array([0, *cuts, n])}


def reference(xp, x, offsets, count):
    edges = [int(edge) for edge in offsets.tolist()]
    return {"y": xp.stack([xp.sum(x[edges[i] : edges[i + 1]]) for i in range(count)])}


def cost(itemsize, count, n):
    return {"bytes": itemsize * (n + count) + 4 * (count + 1), "operations": n}
