"""In place: total += x"""

ELEMENT = {"c": "fp32", "triton": "fp32", "cuda": "fp32"}
SIZES = {"small": {"n": 256}, "ragged": {"n": 77}, "bench": {"n": 65536}}
HIDDEN = {"n": 301}
OUTPUTS = ("total",)
MUTATES = ("total",)


def tensors(element, n):
    return {"x": (element, (n,)), "total": (element, (n,))}


def inputs(rng, n):
    return {"x": rng.normal(n), "total": rng.normal(n)}


def reference(xp, x, total):
    return {"total": x + total}


def cost(itemsize, n):
    return {"bytes": 3 * itemsize * n, "operations": n}
