"""The part of a converted problem file that is the same for every one. It runs in workers only."""

CODE = '''

_KINDS = {
    torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16",
    torch.int64: "int64", torch.int32: "int32", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "uint8",
}


def _taken(function, dims):
    """The dimensions that a function takes by name."""
    wanted = inspect.signature(function).parameters
    return {name: extent for name, extent in dims.items() if name in wanted}


def _made(seed, device, dims):
    """The inputs, by name."""
    wanted = inspect.signature(make_inputs).parameters
    options = {n: v for n, v in {"seed": seed, "device": device}.items() if n in wanted}
    with torch.no_grad(), torch.device(device):
        torch.manual_seed(seed)
        made = make_inputs(**_taken(make_inputs, dims), **options)
    if not isinstance(made, dict) or not all(isinstance(v, torch.Tensor) for v in made.values()):
        raise TypeError("make_inputs() must return {name: tensor}")
    return made


def _answer(values, dims):
    """The outputs, by name."""
    with torch.no_grad():
        answer = torch_ref(**values, **_taken(torch_ref, dims))
    answers = (answer,) if isinstance(answer, torch.Tensor) else tuple(answer)
    if len(answers) != len(OUTPUTS):
        raise TypeError(f"torch_ref() returned {len(answers)} outputs, its annotation says {len(OUTPUTS)}")
    return dict(zip(OUTPUTS, answers))


@functools.lru_cache(maxsize=None)
def _outline(**dims):
    """Inputs and outputs of one size: floating tensors without values, the others as they are."""
    device = "cuda" if torch.cuda.is_initialized() else "cpu"  # a child that is to use the GPU has opened it
    made = {n: v.to("meta" if v.is_floating_point() else "cpu") for n, v in _made(0, device, dims).items()}
    return made, {n: v.to("meta") for n, v in _answer(made, dims).items()}


def _type(element, value):
    if value.dtype not in _KINDS:
        raise TypeError(f"a tensor of {value.dtype} cannot be a buffer")
    return element if value.dtype is TYPE else _KINDS[value.dtype]


def tensors(element, **dims):
    made, answers = _outline(**dims)
    for name in answers:
        if name in made:
            raise ValueError(f"{name} is an input and cannot be an output too")
    return {name: (_type(element, value), tuple(value.shape)) for name, value in {**made, **answers}.items()}


def inputs(rng, **dims):
    seed = rng.integers(0, 2**31 - 1, 1)
    made = _made(int(seed[0]), getattr(seed, "device", "cpu"), dims)
    return {n: v.float() if v.dtype is torch.bfloat16 else v for n, v in made.items()}


def reference(**values):
    dims = {name: values[name] for name in SIZES["small"]}
    made, _ = _outline(**dims)
    wide = {n: values[n].to(torch.float64 if like.is_floating_point() else like.dtype) for n, like in made.items()}
    answers = _answer(wide, dims)
    return {n: v.to(torch.uint8) if v.dtype is torch.bool else v for n, v in answers.items()}


def cost(itemsize, **dims):
    # Every buffer is moved once. How little arithmetic would do cannot be read from a reference.
    sizes = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "int64": 8, "int32": 4, "int8": 1, "uint8": 1}
    buffers = tensors("", **dims)
    traffic = sum(sizes.get(type_, itemsize) * math.prod(shape) for type_, shape in buffers.values())
    return {"bytes": traffic, "operations": sum(math.prod(buffers[name][1]) for name in OUTPUTS)}


def tolerance(element, **dims):
    return {"fp64": 1e-9, "fp32": 1e-4, "fp16": 2e-3, "bf16": 1.6e-2}[element]
'''
