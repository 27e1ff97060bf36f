"""The k largest values of each row and where they are, in any order: values[r, i] = x[r, indices[r, i]]"""

ELEMENT = {"triton": "fp32", "c": "fp32", "cuda": "fp32"}

SIZES = {
    "small": {"rows": 4, "columns": 256, "k": 32},
    "ragged": {"rows": 3, "columns": 509, "k": 67},
    "bench": {"rows": 64, "columns": 4096, "k": 512},
    "paper": {"rows": 64, "columns": 4096, "k": 512},
}
HIDDEN = {"rows": 5, "columns": 1031, "k": 1000}

OUTPUTS = ("values", "indices")


def tensors(element, rows, columns, k):
    return {"x": (element, (rows, columns)), "values": (element, (rows, k)), "indices": ("int64", (rows, k))}


def inputs(rng, rows, columns, k):
    return {"x": rng.normal(rows, columns)}


def reference(xp, x, rows, columns, k):
    row = xp.arange(rows)[:, None]
    indices = x.argsort(-1)[:, columns - k :]
    return {"values": x[row, indices], "indices": indices}


def compare(xp, got, expected, x, rows, columns, k):
    """Order is free, and so is the choice among equal values; everything else is exact."""
    values, indices, row = got["values"], got["indices"], xp.arange(rows)[:, None]
    outside = (indices < 0) | (indices >= columns)
    if outside.any():
        at = _place(outside, k)
        return (
            f"indices[{at[0]}, {at[1]}] is {int(indices[at])}, which is no column of x (0 to {columns - 1})"
        )
    ordered = indices[row, indices.argsort(-1)]
    twice = ordered[:, 1:] == ordered[:, :-1]
    if twice.any():
        at = _place(twice, k - 1)
        return f"row {at[0]} of indices names column {int(ordered[at])} more than once"
    wrong = x[row, indices] != values
    if wrong.any():
        at = _place(wrong, k)
        there = f"x[{at[0]}, {int(indices[at])}] is {float(x[at[0], indices[at]]):.9g}"
        return f"values[{at[0]}, {at[1]}] is {float(values[at]):.9g}, but {there}"
    wanted = expected["values"]
    wrong = values[row, values.argsort(-1)] != wanted[row, wanted.argsort(-1)]
    if wrong.any():
        return f"row {_place(wrong, k)[0]} of values are not the {k} largest of that row of x"
    return None


def _place(mask, columns):
    """(row, column) of an element of the mask that is true."""
    flat = int((mask.reshape(-1) * 1).argmax())
    return flat // columns, flat % columns


def cost(itemsize, rows, columns, k):
    return {"bytes": itemsize * rows * (columns + k) + 8 * rows * k, "operations": rows * columns}


def unsupported(rows, columns, k):
    if k > columns:
        return f"k must be at most columns, and {k} is more than {columns}."
    if columns > 32768:
        return f"columns must be at most 32768, not {columns}: a row is held in the registers of one program."
    if rows * columns >= 2**31:
        return "x must have fewer than 2**31 elements: kernels index with 32 bits."
    return None
