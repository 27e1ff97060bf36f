"""A problem file of KLineage's authors (``make_inputs()``, ``torch_ref()``) as a workload.py."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from klineage.workload.constants import Constants, Unknown, assigned, evaluate, used_names
from klineage.workload.drawing import largest
from klineage.workload.problem_file_code import CODE
from klineage.workload.sizes import Dims, Given, derived
from klineage.workload.writing import Problem, constant, first_line, head, note_on_sizes, sizes

_NOT_SIZES = ("seed", "dtype", "device")
_TYPES = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "half": "fp16",
    "float": "fp32",
}
_NOTES = ("Inputs are what make_inputs() draws from a seed of the gate.",)


def is_problem_file(given: Problem) -> bool:
    """Whether a file means to be such a problem."""
    return given.function("make_inputs") is not None or given.function("torch_ref") is not None


def convert(given: Problem) -> str:
    """The workload.py. Raises KlineageError naming the part of the problem that cannot be read."""
    make_inputs, torch_ref = (_function(given, name) for name in ("make_inputs", "torch_ref"))
    constants = Constants(given.tree.body)
    dims = _sizes(given, make_inputs, constants)
    fixed = {n: e for n, e in _integers(torch_ref, constants).items() if n not in dims}
    _refuse_fixed_seed(given, make_inputs)
    taken = [a.arg for a in (*torch_ref.args.posonlyargs, *torch_ref.args.args)]
    outputs = _outputs(given, torch_ref, taken)
    given.check_names({**dims, **fixed}, [*taken, *outputs])
    type_ = _element(given, make_inputs)
    named = derived(_given(dims, fixed, make_inputs, torch_ref, constants))
    kind = _TYPES[type_]
    return "".join(
        (
            head(first_line(ast.get_docstring(given.tree)), (*_NOTES, *note_on_sizes(named)), given),
            "import functools\nimport inspect\nimport math\n\nimport torch\n\n",
            constant("ELEMENT", {"triton": kind, "c": "fp32", "cuda": kind}),
            f"TYPE = torch.{type_}  # the element type; other types stay as they are\n",
            sizes(named.named, named.hidden),
            constant("OUTPUTS", outputs),
            constant("DISTRIBUTIONS", ("normal",), "make_inputs() draws by itself"),
            "\n",
            given.fenced,
            CODE,
        )
    )


def _function(given: Problem, name: str) -> ast.FunctionDef:
    found = given.function(name)
    if found is None:
        raise given.error(f"has no function {name}(), which a problem file needs beside the other")
    return found


def _defaults(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Parameters with a default."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    found = {a.arg: d for a, d in zip(reversed(plain), reversed(arguments.defaults))}
    found.update({a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults) if d is not None})
    return {a.arg: found[a.arg] for a in (*plain, *arguments.kwonlyargs) if a.arg in found}


def _integers(function: ast.FunctionDef, constants: Constants) -> Dims:
    """Parameters whose default is a positive integer."""
    found: Dims = {}
    for name, node in _defaults(function).items():
        try:
            value = evaluate(node, constants.values)
        except Unknown:
            continue
        if isinstance(value, int) and not isinstance(value, bool) and value > 0 and name not in _NOT_SIZES:
            found[name] = value
    return found


def _sizes(given: Problem, make_inputs: ast.FunctionDef, constants: Constants) -> Dims:
    defaults = _defaults(make_inputs)
    arguments = (*make_inputs.args.posonlyargs, *make_inputs.args.args, *make_inputs.args.kwonlyargs)
    for argument in arguments:
        if argument.arg not in defaults and argument.arg not in _NOT_SIZES:
            raise given.error(
                f"make_inputs() has no default for {argument.arg}, so its size is not known", argument
            )
    dims = _integers(make_inputs, constants)
    if not dims:
        raise given.error("make_inputs() has no size: give it parameters such as n: int = 4096", make_inputs)
    return dims


def _refuse_fixed_seed(given: Problem, make_inputs: ast.FunctionDef) -> None:
    if any(a.arg == "seed" for a in (*make_inputs.args.args, *make_inputs.args.kwonlyargs)):
        return
    for node in ast.walk(make_inputs):
        if isinstance(node, ast.Attribute) and node.attr == "manual_seed":
            raise given.error(
                "make_inputs() draws the same values every time; give it a parameter seed", node
            )


def _outputs(given: Problem, torch_ref: ast.FunctionDef, taken: list[str]) -> tuple[str, ...]:
    """Names for what ``torch_ref`` returns; its annotation says how many there are."""
    node: ast.expr | None = torch_ref.returns
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    text = ast.unparse(node) if node is not None else ""
    if text.rpartition(".")[2] == "Tensor":
        count = 1
    elif "return_types." in text:
        count = 2
    elif isinstance(node, ast.Subscript) and ast.unparse(node.value).lower().endswith("tuple"):
        count = len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
    else:
        raise given.error(
            "torch_ref() does not say how many outputs it returns; annotate it with -> torch.Tensor, or with"
            " -> tuple[torch.Tensor, torch.Tensor]",
            torch_ref,
        )
    names = ("output",) if count == 1 else tuple(f"output_{i}" for i in range(count))
    return tuple(f"{name}_" if name in taken else name for name in names)


def _element(given: Problem, make_inputs: ast.FunctionDef) -> str:
    """The torch type that is the problem's element type: the default of ``dtype``, or the first one in its code."""
    nodes: list[ast.AST] = [n for name, n in _defaults(make_inputs).items() if name == "dtype"]
    known = dict(assigned(given.tree.body))
    nodes += [known[n.id] for n in nodes if isinstance(n, ast.Name) and n.id in known]
    for node in [*reversed(nodes), make_inputs]:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and part.attr in _TYPES and ast.unparse(part.value) == "torch":
                return {"half": "float16", "float": "float32"}.get(part.attr, part.attr)
    return "float32"


def _given(
    dims: Dims, fixed: Dims, make_inputs: ast.FunctionDef, torch_ref: ast.FunctionDef, constants: Constants
) -> Given:
    def elements(at: Mapping[str, int]) -> int:
        return largest(make_inputs, {**constants.values, **at})

    def allowed(at: Mapping[str, int]) -> bool:
        """No ``if ...: raise`` of the two functions strikes, as far as that can be known."""
        return not any(
            _strikes(function, {**constants.values, **at}) for function in (make_inputs, torch_ref)
        )

    free = tuple(name for name in dims if name in _read_in_calls(make_inputs))
    return Given({**dims, **fixed}, free, (), elements, allowed, max(16, *fixed.values(), 1))


def _read_in_calls(function: ast.FunctionDef) -> list[str]:
    return [name for statement in function.body for name in used_names(statement)]


def _strikes(function: ast.FunctionDef, names: Mapping[str, Any]) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.If) and any(isinstance(s, ast.Raise) for s in node.body):
            try:
                if evaluate(node.test, names):
                    return True
            except Unknown:
                continue
    return False
