"""Rows of unit root mean square: y = x / sqrt(mean(x * x) + eps)"""

ELEMENT = {"c": "fp32", "triton": "bf16", "cuda": "bf16"}
SIZES = {
    "small": {"rows": 4, "columns": 4096},
    "ragged": {"rows": 3, "columns": 4095},
    "bench": {"rows": 16, "columns": 4096},
}
HIDDEN = {"rows": 2, "columns": 4111}
OUTPUTS = ("y",)
SCALARS = {"eps": 1e-6}


def tensors(element, rows, columns):
    return {"x": (element, (rows, columns)), "y": (element, (rows, columns))}


def inputs(rng, rows, columns):
    return {"x": rng.normal(rows, columns)}


def reference(xp, x, eps):
    return {"y": x / xp.sqrt(xp.mean(x * x, axis=-1) + eps)[..., None]}


def cost(itemsize, rows, columns):
    return {"bytes": 2 * itemsize * rows * columns, "operations": 4 * rows * columns}


def tolerance(element, rows, columns):
    return 1.6e-2 if element == "bf16" else 1e-5
