"""Softmax over the columns of each row: y = exp(x - max(x)) / sum(exp(x - max(x)))"""

ELEMENT = {"triton": "bf16", "c": "fp32", "cuda": "bf16"}

SIZES = {
    "small": {"rows": 16, "columns": 512},
    "ragged": {"rows": 13, "columns": 1021},
    "bench": {"rows": 256, "columns": 4096},
    "paper": {"rows": 16384, "columns": 4096},
}
HIDDEN = {"rows": 7, "columns": 1536}

OUTPUTS = ("y",)


def tensors(element, rows, columns):
    return {"x": (element, (rows, columns)), "y": (element, (rows, columns))}


def inputs(rng, rows, columns):
    return {"x": rng.normal(rows, columns)}


def reference(xp, x):
    weights = xp.exp(x - xp.amax(x, axis=-1)[..., None])
    return {"y": weights / xp.sum(weights, axis=-1)[..., None]}


def cost(itemsize, rows, columns):
    # A comparison, a subtraction, an exponential, an addition and a product for each element.
    return {"bytes": itemsize * 2 * rows * columns, "operations": 5 * rows * columns}


def tolerance(element, rows, columns):
    # The error of a running fp32 sum of positive numbers, of which many may be equal, grows somewhat faster than
    # the square root of its length; the other types round once, at the end.
    base = {"fp64": 1e-9, "fp32": 1e-5, "fp16": 2e-3, "bf16": 1.6e-2}[element]
    return min(1e-3, base * max(1.0, (columns / 64) ** 0.5)) if element == "fp32" else base


def unsupported(rows, columns):
    if columns > 65536:
        return f"columns must be at most 65536, not {columns}: a row is held in the registers of one program."
    if rows * columns >= 2**31:
        return "x must have fewer than 2**31 elements: kernels index with 32 bits."
    return None
