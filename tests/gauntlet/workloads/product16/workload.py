"""Matrix product in half precision: y[m, n] = a[m, k] @ b[k, n]"""

ELEMENT = {"triton": "fp16", "cuda": "fp16"}
SIZES = {
    "small": {"m": 32, "n": 32, "k": 64},
    "ragged": {"m": 17, "n": 9, "k": 21},
    "bench": {"m": 64, "n": 64, "k": 64},
}
HIDDEN = {"m": 33, "n": 16, "k": 40}
OUTPUTS = ("y",)


def tensors(element, m, n, k):
    return {"a": (element, (m, k)), "b": (element, (k, n)), "y": (element, (m, n))}


def inputs(rng, m, n, k):
    return {"a": rng.normal(m, k), "b": rng.normal(k, n)}


def reference(xp, a, b):
    return {"y": a @ b}


def cost(itemsize, m, n, k):
    return {"bytes": itemsize * (m * k + k * n + m * n), "operations": 2 * m * n * k}
