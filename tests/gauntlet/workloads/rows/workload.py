"""Scaled rows: y[rows, columns] = alpha * x + bias"""

ELEMENT = {"c": "fp32", "triton": "fp32", "cuda": "fp32"}
SIZES = {
    "small": {"rows": 8, "columns": 64},
    "ragged": {"rows": 5, "columns": 13},
    "bench": {"rows": 512, "columns": 1024},
}
HIDDEN = {"rows": 3, "columns": 37}
OUTPUTS = ("y",)
SCALARS = {"alpha": 1.5}


def tensors(element, rows, columns):
    return {"x": (element, (rows, columns)), "bias": (element, (columns,)), "y": (element, (rows, columns))}


def inputs(rng, rows, columns):
    return {"x": rng.normal(rows, columns), "bias": rng.normal(columns)}


def reference(xp, x, bias, alpha):
    return {"y": alpha * x + bias}


def cost(itemsize, rows, columns):
    return {"bytes": itemsize * (2 * rows * columns + columns), "operations": 2 * rows * columns}
