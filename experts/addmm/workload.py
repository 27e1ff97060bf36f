"""Matrix product and a bias for each column: y[M, N] = a[M, K] @ b[K, N] + bias[N]"""

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
    return {"a": (element, (m, k)), "b": (element, (k, n)), "bias": (element, (n,)), "y": (element, (m, n))}


def inputs(rng, m, n, k):
    # As large as the sums that it is added to, or a kernel that forgets it would pass.
    return {"a": rng.normal(m, k), "b": rng.normal(k, n), "bias": k**0.5 * rng.normal(n)}


def reference(xp, a, b, bias):
    return {"y": a @ b + bias}


def cost(itemsize, m, n, k):
    return {"bytes": itemsize * (m * k + k * n + n + m * n), "operations": 2 * m * n * k + m * n}


def tolerance(element, m, n, k):
    # The error of a running fp32 sum grows with the square root of its length,
    # the other types round once, at the end.
    base = {"fp64": 1e-9, "fp32": 1e-5, "fp16": 2e-3, "bf16": 1.6e-2}[element]
    return min(1e-3, base * max(1.0, (k / 256) ** 0.5)) if element == "fp32" else base


def unsupported(m, n, k):
    if max(m * k, n * k, m * n) >= 2**31:
        return "a, b and y must each have fewer than 2**31 elements: kernels index with 32 bits."
    return None
