"""Root mean square normalisation: y = x / sqrt(mean(x * x) + eps) * weight, over each row"""

ELEMENT = {"triton": "bf16", "c": "fp32", "cuda": "bf16"}

SIZES = {
    "small": {"rows": 16, "hidden": 512},
    "ragged": {"rows": 13, "hidden": 1021},
    "bench": {"rows": 256, "hidden": 4096},
    "paper": {"rows": 16384, "hidden": 4096},
}
HIDDEN = {"rows": 7, "hidden": 1536}

OUTPUTS = ("y",)
SCALARS = {"eps": 1e-6}


def tensors(element, rows, hidden):
    matrix = (element, (rows, hidden))
    return {"x": matrix, "weight": (element, (hidden,)), "y": matrix}


def inputs(rng, rows, hidden):
    return {"x": rng.normal(rows, hidden), "weight": rng.normal(hidden)}


def reference(xp, x, weight, eps):
    scale = 1.0 / xp.sqrt(xp.mean(x * x, axis=-1) + eps)
    return {"y": x * scale[..., None] * weight}


def cost(itemsize, rows, hidden):
    return {"bytes": itemsize * (2 * rows * hidden + hidden), "operations": 4 * rows * hidden}


def tolerance(element, rows, hidden):
    # The error of a running fp32 sum of positive numbers, of which many may be equal, grows somewhat faster than
    # the square root of its length; the other types round once, at the end.
    base = {"fp64": 1e-9, "fp32": 1e-5, "fp16": 2e-3, "bf16": 1.6e-2}[element]
    return min(1e-3, base * max(1.0, (hidden / 64) ** 0.5)) if element == "fp32" else base


def unsupported(rows, hidden):
    if hidden > 65536:
        return f"hidden must be at most 65536, not {hidden}: a row is held in the registers of one program."
    if rows * hidden >= 2**31:
        return "x must have fewer than 2**31 elements: kernels index with 32 bits."
    return None
