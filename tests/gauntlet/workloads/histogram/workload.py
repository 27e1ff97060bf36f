"""How often each of 16 classes occurs: counts[16] of labels[n]"""

ELEMENT = {"c": "fp32", "triton": "fp32", "cuda": "fp32"}
SIZES = {"small": {"n": 256}, "ragged": {"n": 77}, "bench": {"n": 16384}}
HIDDEN = {"n": 301}
OUTPUTS = ("counts",)


def tensors(element, n):
    return {"labels": ("int32", (n,)), "counts": ("int32", (16,))}


def inputs(rng, n):
    return {"labels": rng.integers(0, 16, n)}


def reference(xp, labels):
    return {"counts": xp.bincount(labels, minlength=16)}


def cost(itemsize, n):
    return {"bytes": 4 * n + 64, "operations": n}
