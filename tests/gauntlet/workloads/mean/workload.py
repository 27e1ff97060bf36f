"""Mean of every row: y[rows] = mean(x[rows, columns])"""

ELEMENT = {"c": "fp32", "triton": "fp32", "cuda": "fp32"}
SIZES = {
    "small": {"rows": 4, "columns": 256},
    "ragged": {"rows": 3, "columns": 77},
    "bench": {"rows": 16, "columns": 4096},
}
HIDDEN = {"rows": 2, "columns": 129}
OUTPUTS = ("y",)


def tensors(element, rows, columns):
    return {"x": (element, (rows, columns)), "y": (element, (rows,))}


def inputs(rng, rows, columns):
    return {"x": rng.normal(rows, columns)}


def reference(xp, x):
    return {"y": xp.mean(x, axis=-1)}


def cost(itemsize, rows, columns):
    return {"bytes": itemsize * (rows * columns + rows), "operations": rows * columns}


def tolerance(element, rows, columns):
    # What a running sum in fp32 may lose, beside a mean that is near zero.
    return 2e-4
