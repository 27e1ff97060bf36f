"""Residual add, then RMSNorm: residual_out = x + residual; y = residual_out / rms(residual_out) * weight"""

ELEMENT = {"triton": "bf16", "c": "fp32", "cuda": "bf16"}

SIZES = {
    "small": {"rows": 16, "hidden": 512},
    "ragged": {"rows": 13, "hidden": 1021},
    "bench": {"rows": 256, "hidden": 4096},
    "paper": {"rows": 8192, "hidden": 7168},
}
HIDDEN = {"rows": 7, "hidden": 1536}

OUTPUTS = ("y", "residual_out")
SCALARS = {"eps": 1e-6}


def tensors(element, rows, hidden):
    matrix = (element, (rows, hidden))
    return {
        "x": matrix,
        "residual": matrix,
        "weight": (element, (hidden,)),
        "y": matrix,
        "residual_out": matrix,
    }


def inputs(rng, rows, hidden):
    return {
        "x": rng.normal(rows, hidden),
        "residual": rng.normal(rows, hidden),
        "weight": rng.normal(hidden),
    }


def reference(xp, x, residual, weight, eps):
    total = x + residual
    scale = 1.0 / xp.sqrt(xp.mean(total * total, axis=-1) + eps)
    return {"y": total * scale[..., None] * weight, "residual_out": total}


def cost(itemsize, rows, hidden):
    return {"bytes": itemsize * (4 * rows * hidden + hidden), "operations": 6 * rows * hidden}


def unsupported(rows, hidden):
    if hidden > 65536:
        return f"hidden must be at most 65536, not {hidden}: a row is held in the registers of one program."
    return None
