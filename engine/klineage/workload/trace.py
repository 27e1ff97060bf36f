"""A FlashInfer-Trace definition with its workloads as a workload.py."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from klineage.workload.constants import Unknown, evaluate
from klineage.workload.sizes import Dims, Given, Sizes, derived
from klineage.workload.trace_definition import Definition, Tensor
from klineage.workload.trace_records import Record, find
from klineage.workload.writing import constant, head, note_on_sizes, shown, sizes

_FLOATS = ("fp64", "fp32", "fp16", "bf16")
_MOST_RECORDS = 5  # whose values are taken into the workload


def convert(source: bytes, path: Path) -> tuple[str, str]:
    """The name of the definition, and the workload.py.

    path: a definition, or the workloads of one; the other file is found beside it. Raises KlineageError
    naming the file and the field that cannot be read.
    """
    definition, records = find(source, path)
    _check_constraints(definition, records)
    paper = max(records, key=lambda record: _volume(definition, record.axes))
    with_data = [record for record in records if record.data]
    if with_data:
        named, used = _given_sizes(definition, with_data)
    else:
        named, used = derived(_given(definition, paper)), [paper]
    return definition.name, _text(definition, paper.scalars, named, used)


def _text(definition: Definition, scalars: Mapping[str, float], named: Sizes, used: list[Record]) -> str:
    main = _main_type(definition)
    axes = ", ".join(definition.axes)
    data = {tuple(record.axes.values()): record.data for record in used if record.data}
    notes = [*([definition.description] if definition.description else ()), *_size_notes(named, data)]
    parts = [
        head(f"{definition.name}, a FlashInfer-Trace definition", notes, definition.code),
        "import math\n\nimport torch\n\n",
        constant(
            "ELEMENT", {"triton": main, "c": "fp32" if main in ("fp16", "bf16") else main, "cuda": main}
        ),
        sizes(named.named, named.hidden),
        constant("OUTPUTS", tuple(definition.outputs)),
        constant("SCALARS", dict(scalars)),
        f"DATA = {_indented(data)}  # values that the problem comes with, by size\n" if data else "",
        "\n",
        definition.code.fenced,
        f"\n\ndef tensors(element, {axes}):\n    return {{\n{_entries(definition, main)}    }}\n",
        f"\n\ndef inputs(rng, {axes}):\n",
        f"    data = DATA[({axes},)]\n" if data else "",
        f"    return {{\n{_draws(definition, data)}    }}\n",
        _reference(definition),
        _cost(axes),
        _TOLERANCE.format(axes=axes),
        _unsupported(definition, axes),
    ]
    return "".join(parts)


_TOLERANCE = """

def tolerance(element, {axes}):
    # The reference may compute in fp32 itself.
    return {{"fp64": 1e-9, "fp32": 1e-4, "fp16": 2e-3, "bf16": 1.6e-2}}.get(element, 1e-4)
"""


def _size_notes(named: Sizes, data: Mapping[Any, Any]) -> tuple[str, ...]:
    if data:
        return ("Every size is one that the problem comes with, because it brings values of its own.",)
    return note_on_sizes(named)


def _main_type(definition: Definition) -> str:
    """The element type: that of the first floating input or output, else of the first input."""
    types = [
        tensor.type for tensor in (*definition.inputs.values(), *definition.outputs.values()) if tensor.buffer
    ]
    return next((t for t in types if t in _FLOATS), types[0])


def _shape(tensor: Tensor) -> str:
    return f"({', '.join(tensor.shape)}{',' if len(tensor.shape) == 1 else ''})"


def _entries(definition: Definition, main: str) -> str:
    buffers = {**definition.buffers, **definition.outputs}
    return "".join(
        f"        {shown(name)}: ({'element' if tensor.type == main else shown(tensor.type)}, {_shape(tensor)}),\n"
        for name, tensor in buffers.items()
    )


def _draws(definition: Definition, data: Mapping[Any, Mapping[str, Any]]) -> str:
    given = {name for values in data.values() for name in values}
    lines = []
    for name, tensor in definition.buffers.items():
        shape = ", ".join(tensor.shape)
        if name in given:
            drawn = f"rng.array(data[{shown(name)}])"
        elif tensor.type in _FLOATS:
            drawn = f"rng.normal({shape})"
        else:
            low, high = (0, 2) if tensor.boolean else (-128, 128) if tensor.type == "int8" else (-1024, 1024)
            drawn = f"rng.integers({', '.join([str(low), str(high), *tensor.shape])})"
        lines.append(f"        {shown(name)}: {drawn},\n")
    return "".join(lines)


def _reference(definition: Definition) -> str:
    names = list(definition.inputs)
    given = [f"{n}.bool()" if t.boolean and t.buffer else n for n, t in definition.inputs.items()]
    return f"""

def reference({", ".join(names)}):
    answer = run({", ".join(given)})
    if not isinstance(answer, dict):
        answer = dict(zip(OUTPUTS, answer if isinstance(answer, (tuple, list)) else (answer,)))
    answer = {{name: torch.as_tensor(value) for name, value in answer.items()}}
    return {{name: v.to(torch.uint8) if v.dtype is torch.bool else v for name, v in answer.items()}}
"""


def _cost(axes: str) -> str:
    return f"""

def cost(itemsize, {axes}):
    # Every buffer is moved once. How little arithmetic would do cannot be read from a reference.
    sizes = {{"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "int64": 8, "int32": 4, "int8": 1, "uint8": 1}}
    buffers = tensors("", {axes})
    traffic = sum(sizes.get(type_, itemsize) * math.prod(shape) for type_, shape in buffers.values())
    return {{"bytes": traffic, "operations": sum(math.prod(buffers[name][1]) for name in OUTPUTS)}}
"""


def _unsupported(definition: Definition, axes: str) -> str:
    known = [
        text for text in definition.constraints if _holds(text, dict.fromkeys(definition.axes, 1)) is not None
    ]
    others = [text for text in definition.constraints if text not in known]
    lines = [f"    # {text!r} is about values, and left to the reference.\n" for text in others]
    for text in known:
        lines.append(f"    if not ({text}):\n        return {shown(f'{text} does not hold')}\n")
    return f"\n\ndef unsupported({axes}):\n{''.join(lines)}    return None\n" if lines else ""


def _holds(text: str, axes: Mapping[str, int]) -> bool | None:
    """Whether a constraint holds; None when it is about more than axes."""
    try:
        return bool(evaluate(ast.parse(text, mode="eval").body, axes))
    except Unknown:
        return None


def _check_constraints(definition: Definition, records: list[Record]) -> None:
    for record in records:
        for number, text in enumerate(definition.constraints):
            if _holds(text, record.axes) is False:
                raise record.error(f"axes {record.axes} break the definition's constraints[{number}]: {text}")


def _volume(definition: Definition, axes: Mapping[str, int]) -> int:
    """Elements of the largest input that any axis can change."""
    changing = [
        math.prod(axes[a] for a in t.shape)
        for t in definition.buffers.values()
        if set(t.shape) & set(definition.variable)
    ]
    return max(changing, default=0)


def _given(definition: Definition, record: Record) -> Given:
    def allowed(dims: Dims) -> bool:
        return not any(_holds(text, dims) is False for text in definition.constraints)

    return Given(record.axes, definition.variable, (), lambda dims: _volume(definition, dims), allowed)


def _given_sizes(definition: Definition, records: list[Record]) -> tuple[Sizes, list[Record]]:
    """The sizes of the records themselves, from the least work to the most."""
    ordered = sorted(records, key=lambda record: _volume(definition, record.axes))
    distinct = list({tuple(record.axes.values()): record for record in reversed(ordered)}.values())[::-1]
    chosen = distinct if len(distinct) <= _MOST_RECORDS else [*distinct[: _MOST_RECORDS - 1], distinct[-1]]
    named = {"small": chosen[0].axes, "ragged": chosen[min(1, len(chosen) - 1)].axes}
    if len(chosen) > 3:
        named["bench"] = chosen[-2].axes
    named["paper"] = chosen[-1].axes
    hidden = chosen[2].axes if len(chosen) > 4 else None
    return Sizes(named, hidden, False), chosen


def _indented(data: Mapping[tuple[int, ...], Mapping[str, Any]]) -> str:
    return (
        "{\n" + "".join(f"    {shown(axes)}: {shown(dict(values))},\n" for axes, values in data.items()) + "}"
    )
