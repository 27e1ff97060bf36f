"""Where each row is largest, and that value: place[rows], top[rows] of x[rows, columns]"""

ELEMENT = {"c": "fp32", "triton": "fp32", "cuda": "fp32"}
SIZES = {
    "small": {"rows": 4, "columns": 64},
    "ragged": {"rows": 3, "columns": 13},
    "bench": {"rows": 64, "columns": 512},
}
HIDDEN = {"rows": 2, "columns": 37}
OUTPUTS = ("place", "top")


def tensors(element, rows, columns):
    return {"x": (element, (rows, columns)), "place": ("int32", (rows,)), "top": (element, (rows,))}


def inputs(rng, rows, columns):
    return {"x": rng.normal(rows, columns)}


def reference(xp, x):
    # Of equal ones the first, as everybody's argmax has it.
    return {"place": xp.argmax(x, axis=-1), "top": xp.amax(x, axis=-1)}


def cost(itemsize, rows, columns):
    return {"bytes": itemsize * rows * (columns + 2), "operations": rows * columns}
