"""Nucleus of each row: the likeliest entries whose probabilities reach top_p are kept and scaled to sum to one, the others are 0

An entry is kept when the entries that are likelier than it sum to less than top_p; so equal entries share their fate.
"""

ELEMENT = {"triton": "fp32", "c": "fp32", "cuda": "fp32"}

SIZES = {
    "small": {"rows": 4, "vocabulary": 512},
    "ragged": {"rows": 3, "vocabulary": 1021},
    "bench": {"rows": 16, "vocabulary": 8192},
    "paper": {"rows": 32, "vocabulary": 128256},
}
HIDDEN = {"rows": 5, "vocabulary": 1600}

OUTPUTS = ("y",)
SCALARS = {"top_p": 0.9}

_SLACK = 1e-5  # of the sum of a row: where rounding may decide whether top_p is reached
_EXACT = 1e-5  # relative, of what is kept


def tensors(element, rows, vocabulary):
    return {"probabilities": (element, (rows, vocabulary)), "y": (element, (rows, vocabulary))}


def inputs(rng, xp, rows, vocabulary):
    scores = 2 * rng.normal(rows, vocabulary)
    weights = xp.exp(scores - xp.amax(scores, axis=-1)[..., None])
    return {"probabilities": weights / xp.sum(weights, axis=-1)[..., None]}


def reference(xp, probabilities, top_p):
    kept = probabilities * (_likelier(xp, probabilities) < top_p)
    return {"y": kept / xp.sum(kept, axis=-1)[..., None]}


def _likelier(xp, probabilities):
    """For every entry the sum of those of its row that are larger."""
    row = xp.arange(probabilities.shape[0])[:, None]
    order = (-probabilities).argsort(-1)
    falling = probabilities[row, order]
    before = xp.cumsum(falling, -1) - falling
    # What is before the first of equals is before all of them: sums grow, so the largest start so far is the last's.
    first = xp.ones_like(falling)
    first[:, 1:] = falling[:, 1:] != falling[:, :-1]
    starts = before * first
    return _running_maximum(xp, starts)[row, order.argsort(-1)]


def _running_maximum(xp, rising):
    """Of each row, the largest so far: in powers of two, for numpy and torch name it differently."""
    reach = 1
    while reach < rising.shape[1]:
        further = xp.maximum(rising[:, reach:], rising[:, :-reach])
        rising = xp.concatenate((rising[:, :reach], further), 1)
        reach *= 2
    return rising


def compare(xp, got, expected, probabilities, top_p):
    """Entries at which the sum is within rounding of top_p may be kept or not, if no likelier one is dropped."""
    y, wanted, likelier = got["y"], expected["y"], _likelier(xp, probabilities)
    decided = abs(likelier - top_p) > _SLACK * xp.sum(probabilities, axis=-1)[..., None]
    kept = y != 0
    for wrong, what in (
        (~kept & (wanted != 0) & decided, "is 0, but what is likelier sums to only"),
        (kept & (wanted == 0) & decided, "is kept, but what is likelier sums to"),
    ):
        if wrong.any():
            at = _place(wrong)
            return f"y[{at[0]}, {at[1]}] {what} {float(likelier[at]):.6g}"
    dropped = xp.amax(probabilities * ~kept, axis=-1)[..., None]
    wrong = kept & (probabilities < dropped)
    if wrong.any():
        return f"row {_place(wrong)[0]} of y keeps an entry and drops a likelier one"
    chosen = probabilities * kept
    scaled = chosen / xp.sum(chosen, axis=-1)[..., None]
    wrong = ~(abs(y - scaled) <= _EXACT * scaled)
    if wrong.any():
        at = _place(wrong)
        return f"y[{at[0]}, {at[1]}] is {float(y[at]):.9g}, not {float(scaled[at]):.9g}"
    return None


def _place(mask):
    """(row, column) of an element of the mask that is true."""
    flat = int((mask.reshape(-1) * 1).argmax())
    return flat // mask.shape[1], flat % mask.shape[1]


def cost(itemsize, rows, vocabulary):
    # Read, compared and written once; a sum over what is kept.
    return {"bytes": itemsize * 2 * rows * vocabulary, "operations": 3 * rows * vocabulary}


def unsupported(rows, vocabulary):
    if rows * vocabulary >= 2**31:
        return "probabilities must have fewer than 2**31 elements: kernels index with 32 bits."
    return None
