"""Matrix product with a transposed weight: y[M, N] = x[M, K] @ weight[N, K].T"""

ELEMENT = {"triton": "bf16", "c": "fp32", "cuda": "bf16"}

SIZES = {
    "small": {"m": 128, "n": 128, "k": 128},
    "ragged": {"m": 257, "n": 97, "k": 67},
    "bench": {"m": 512, "n": 512, "k": 512},
    "paper": {"m": 4096, "n": 4096, "k": 4096},
}
HIDDEN = {"m": 66, "n": 200, "k": 128}

OUTPUTS = ("y",)


def tensors(element, m, n, k):
    return {"x": (element, (m, k)), "weight": (element, (n, k)), "y": (element, (m, n))}


def inputs(rng, m, n, k):
    return {"x": rng.normal(m, k), "weight": rng.normal(n, k)}


def reference(xp, x, weight):
    return {"y": x @ weight.T}


def cost(itemsize, m, n, k):
    return {"bytes": itemsize * (m * k + n * k + m * n), "operations": 2 * m * n * k}


def tolerance(element, m, n, k):
    # The error of a running fp32 sum grows with the square root of its length,
    # the other types round once, at the end.
    base = {"fp64": 1e-9, "fp32": 1e-5, "fp16": 2e-3, "bf16": 1.6e-2}[element]
    return min(1e-3, base * max(1.0, (k / 256) ** 0.5)) if element == "fp32" else base


def unsupported(m, n, k):
    if max(m * k, n * k, m * n) >= 2**31:
        return "x, weight and y must each have fewer than 2**31 elements: kernels index with 32 bits."
    return None
