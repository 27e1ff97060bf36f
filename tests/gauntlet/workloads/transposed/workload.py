"""Transposition: y[n, m] = x[m, n].T"""

ELEMENT = {"c": "fp32", "triton": "fp32", "cuda": "fp32"}
SIZES = {"small": {"m": 32, "n": 48}, "ragged": {"m": 17, "n": 9}, "bench": {"m": 512, "n": 512}}
HIDDEN = {"m": 7, "n": 33}
OUTPUTS = ("y",)


def tensors(element, m, n):
    return {"x": (element, (m, n)), "y": (element, (n, m))}


def inputs(rng, m, n):
    return {"x": rng.normal(m, n)}


def reference(xp, x):
    return {"y": x.T}


def cost(itemsize, m, n):
    return {"bytes": 2 * itemsize * m * n, "operations": m * n}
