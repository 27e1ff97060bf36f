"""The part of a converted KernelBench problem that is the same for every one. It runs in workers only."""

CODE = '''

_KINDS = {torch.int64: "int64", torch.int32: "int32", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "uint8"}
_UNREAD = ("num_batches_tracked", "running_mean", "running_var")  # in training mode


def _model():
    """The model as the evaluator makes it, and its weights: the kernels' name to (the model's name, tensor)."""
    torch.manual_seed(42)
    arguments = get_init_inputs()
    torch.manual_seed(42)
    model = Model(*arguments)
    for name, part in model.named_modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0:
            raise ValueError(f"self.{name} drops values at random, so there is nothing to compare with")
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    read = {name: value.detach() for name, value in state.items() if name.rsplit(".", 1)[-1] not in _UNREAD}
    return model, {name.replace(".", "_"): (name, value) for name, value in read.items()}


@functools.lru_cache(maxsize=None)
def _outline(**dims):
    """Inputs, weights and result of one size, as tensors without values."""
    _resize(**dims)
    with torch.no_grad(), torch.device("meta"):
        model, weights = _model()
        given = dict(zip(INPUTS, get_inputs()))
        y = model(*given.values())
    if not isinstance(y, torch.Tensor):
        raise TypeError(f"forward() returned {type(y).__name__}, not one tensor")
    for name in weights:
        if name in (*INPUTS, *OUTPUTS, *dims):
            raise ValueError(f"the weight {name} has the name of an input, an output or a size")
    return {n: v for n, v in given.items() if n not in SCALARS}, {n: v for n, (_, v) in weights.items()}, y


def _type(element, value):
    if not value.is_floating_point() and value.dtype not in _KINDS:
        raise TypeError(f"a tensor of {value.dtype} cannot be a buffer")
    return element if value.is_floating_point() else _KINDS[value.dtype]


def tensors(element, **dims):
    given, weights, y = _outline(**dims)
    buffers = {**given, **weights, OUTPUTS[0]: y}
    return {name: (_type(element, value), tuple(value.shape)) for name, value in buffers.items()}


@functools.lru_cache(maxsize=1)
def _weights(**dims):
    _resize(**dims)
    return {name: value for name, (_, value) in _model()[1].items()}


def inputs(rng, **dims):
    seed = rng.integers(0, 2**31 - 1, 1)
    weights = _weights(**dims)
    _resize(**dims)
    with torch.no_grad(), torch.device(getattr(seed, "device", "cpu")):
        torch.manual_seed(int(seed[0]))
        given = dict(zip(INPUTS, get_inputs()))
    return {**{name: value for name, value in given.items() if name not in SCALARS}, **weights}


def reference(**values):
    dims = {name: values[name] for name in SIZES["small"]}
    given, weights, _ = _outline(**dims)

    def wide(name, like):
        return values[name].to(torch.float64 if like.is_floating_point() else like.dtype)

    place = next(iter({**given, **weights}), "")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        _resize(**dims)
        with torch.no_grad(), torch.device(values[place].device if place else "cpu"):
            model, names = _model()
            state = {names[name][0]: wide(name, like) for name, like in weights.items()}
            arguments = [values[n] if n in SCALARS else wide(n, given[n]) for n in INPUTS]
            y = torch.func.functional_call(model.double(), state, tuple(arguments))
    finally:
        torch.set_default_dtype(before)
    return {OUTPUTS[0]: y.to(torch.uint8) if y.dtype is torch.bool else y}


def cost(itemsize, **dims):
    # Every buffer is moved once. How little arithmetic would do cannot be read from a reference.
    sizes = {"int64": 8, "int32": 4, "int8": 1, "uint8": 1}
    buffers = tensors("", **dims)
    traffic = sum(sizes.get(type_, itemsize) * math.prod(shape) for type_, shape in buffers.values())
    return {"bytes": traffic, "operations": math.prod(buffers[OUTPUTS[0]][1])}


def tolerance(element, **dims):
    # The evaluator's own numbers, here relative to the output's size.
    return {"fp64": 1e-9, "fp32": 1e-4, "fp16": 1e-2, "bf16": 1e-2}[element]
'''
