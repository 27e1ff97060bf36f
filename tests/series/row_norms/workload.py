"""The length of each row: y = sqrt(sum of x * x over the row)"""

ELEMENT = {"c": "fp32", "triton": "fp32"}

SIZES = {
    "small": {"rows": 8, "columns": 256},
    "ragged": {"rows": 5, "columns": 251},
    "bench": {"rows": 64, "columns": 4096},
    "paper": {"rows": 64, "columns": 4096},
}
HIDDEN = {"rows": 3, "columns": 384}

OUTPUTS = ("y",)


def tensors(element, rows, columns):
    return {"x": (element, (rows, columns)), "y": (element, (rows,))}


def inputs(rng, rows, columns):
    return {"x": rng.normal(rows, columns)}


def reference(xp, x):
    return {"y": xp.sqrt(xp.sum(x * x, axis=-1))}


def cost(itemsize, rows, columns):
    return {"bytes": itemsize * (rows * columns + rows), "operations": 2 * rows * columns}


def tolerance(element, rows, columns):
    return 1e-5 * max(1.0, (columns / 256) ** 0.5)
