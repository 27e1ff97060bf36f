"""Convolution of NHWC images with stride 1 and zeros around: y[b, h, w, f] = sum of x[b, h+i-p, w+j-p, c] * weight[i, j, c, f]

p is (kernel - 1) / 2, so that y is as large as x. `weight` is the filter as a matrix: row (i * kernel + j) * channels + c, column f.
"""

ELEMENT = {"triton": "fp16", "c": "fp32", "cuda": "fp16"}

SIZES = {
    "small": {"batch": 2, "height": 8, "width": 8, "channels": 32, "filters": 64, "kernel": 3},
    "ragged": {"batch": 3, "height": 7, "width": 5, "channels": 19, "filters": 37, "kernel": 3},
    "bench": {"batch": 1, "height": 56, "width": 56, "channels": 64, "filters": 128, "kernel": 3},
    "paper": {"batch": 8, "height": 56, "width": 56, "channels": 64, "filters": 128, "kernel": 3},
}
HIDDEN = {"batch": 1, "height": 11, "width": 6, "channels": 24, "filters": 40, "kernel": 5}

OUTPUTS = ("y",)


def tensors(element, batch, height, width, channels, filters, kernel):
    return {
        "x": (element, (batch, height, width, channels)),
        "weight": (element, (kernel * kernel * channels, filters)),
        "y": (element, (batch, height, width, filters)),
    }


def inputs(rng, batch, height, width, channels, filters, kernel):
    return {
        "x": rng.normal(batch, height, width, channels),
        "weight": rng.normal(kernel * kernel * channels, filters),
    }


def reference(xp, x, weight, height, width, channels, filters, kernel):
    taps = weight.reshape(kernel, kernel, channels, filters)
    pad = kernel // 2
    y = x @ taps[pad, pad]
    for i in range(-pad, pad + 1):
        for j in range(-pad, pad + 1):
            if (i, j) == (0, 0) or abs(i) >= height or abs(j) >= width:
                continue
            # Where the shifted image and the output lie over each other; beyond it there are only zeros.
            seen = x[:, max(i, 0) : height + min(i, 0), max(j, 0) : width + min(j, 0)]
            y[:, max(-i, 0) : height - max(i, 0), max(-j, 0) : width - max(j, 0)] += (
                seen @ taps[pad + i, pad + j]
            )
    return {"y": y}


def cost(itemsize, batch, height, width, channels, filters, kernel):
    pad = kernel // 2
    # Pairs of an output row and an image row under some tap, and the same for columns: zeros cost nothing.
    rows = sum(max(0, height - abs(i)) for i in range(-pad, pad + 1))
    columns = sum(max(0, width - abs(j)) for j in range(-pad, pad + 1))
    pixels = batch * height * width
    return {
        "bytes": itemsize * (pixels * (channels + filters) + kernel * kernel * channels * filters),
        "operations": 2 * batch * rows * columns * channels * filters,
    }


def tolerance(element, batch, height, width, channels, filters, kernel):
    # The error of a running fp32 sum grows with the square root of its length,
    # the other types round once, at the end.
    base = {"fp64": 1e-9, "fp32": 1e-5, "fp16": 2e-3, "bf16": 1.6e-2}[element]
    length = kernel * kernel * channels
    return min(1e-3, base * max(1.0, (length / 256) ** 0.5)) if element == "fp32" else base


def unsupported(batch, height, width, channels, filters, kernel):
    if kernel % 2 == 0 or kernel > 7:
        return (
            f"kernel must be 1, 3, 5 or 7, not {kernel}: the filter has a middle tap and y is as large as x."
        )
    pixels = batch * height * width
    if max(pixels * channels, pixels * filters, kernel * kernel * channels * filters) >= 2**31:
        return "x, weight and y must each have fewer than 2**31 elements: kernels index with 32 bits."
    return None
