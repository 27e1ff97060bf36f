"""Products of many pairs of matrices: y[b, M, N] = a[b, M, K] @ b[b, K, N]"""

ELEMENT = {"triton": "bf16", "c": "fp32", "cuda": "bf16"}

SIZES = {
    "small": {"batch": 2, "m": 64, "n": 128, "k": 64},
    "ragged": {"batch": 3, "m": 67, "n": 97, "k": 41},
    "bench": {"batch": 4, "m": 256, "n": 256, "k": 256},
    "paper": {"batch": 16, "m": 2048, "n": 2048, "k": 2048},
}
HIDDEN = {"batch": 2, "m": 66, "n": 200, "k": 96}

OUTPUTS = ("y",)


def tensors(element, batch, m, n, k):
    return {
        "a": (element, (batch, m, k)),
        "b": (element, (batch, k, n)),
        "y": (element, (batch, m, n)),
    }


def inputs(rng, batch, m, n, k):
    return {"a": rng.normal(batch, m, k), "b": rng.normal(batch, k, n)}


def reference(xp, a, b):
    return {"y": a @ b}


def cost(itemsize, batch, m, n, k):
    return {"bytes": itemsize * batch * (m * k + k * n + m * n), "operations": 2 * batch * m * n * k}


def tolerance(element, batch, m, n, k):
    # The error of a running fp32 sum grows with the square root of its length,
    # the other types round once, at the end.
    base = {"fp64": 1e-9, "fp32": 1e-5, "fp16": 2e-3, "bf16": 1.6e-2}[element]
    return min(1e-3, base * max(1.0, (k / 256) ** 0.5)) if element == "fp32" else base


def unsupported(batch, m, n, k):
    if batch * max(m * k, n * k, m * n) >= 2**31:
        return "a, b and y must each have fewer than 2**31 elements: kernels index with 32 bits."
    return None
