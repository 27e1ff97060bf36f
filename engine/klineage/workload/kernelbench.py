"""A KernelBench problem (``Model``, ``get_inputs``, ``get_init_inputs``) as a workload.py."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from klineage.workload.constants import Constants, Unknown, evaluate, used_names
from klineage.workload.drawing import largest, local_values, returned
from klineage.workload.kernelbench_code import CODE
from klineage.workload.sizes import Given, derived
from klineage.workload.variables import Variables
from klineage.workload.writing import Problem, constant, first_line, head, note_on_sizes, sizes

_FUNCTIONS = ("get_inputs", "get_init_inputs")
_OUTPUTS = ("y", "out", "output", "result")
_RANDOM = {"dropout", "rand", "randn", "rand_like", "randn_like", "randint", "bernoulli", "multinomial"}
_NOTES = (
    "Weights are inputs too, named by their place in the model with _ for dots (conv_weight is self.conv.weight), and",
    "always those that the evaluator's seed 42 gives. The model is in training mode, as it is there.",
)


def is_kernelbench(given: Problem) -> bool:
    """Whether a file means to be such a problem."""
    names = {getattr(node, "name", "") for node in given.tree.body}
    return "get_init_inputs" in names or ("Model" in names and not names & {"tensors", "reference"})


def convert(given: Problem) -> str:
    """The workload.py. Raises KlineageError naming the part of the problem that cannot be read."""
    model = next((n for n in given.tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"), None)
    if model is None:
        raise given.error("has no class Model, so it is no KernelBench problem")
    get_inputs, get_init_inputs = (_function(given, name) for name in _FUNCTIONS)
    constants = Constants(given.tree.body)
    _refuse_random(given, model, get_init_inputs, constants)
    taken, scalars = _inputs(given, model, get_inputs, constants)
    variables = _variables(constants, model, get_inputs, get_init_inputs)
    given.check_names(
        [*variables.dims, *scalars], taken if not scalars else [n for n in taken if n not in scalars]
    )
    named = derived(variables.given)
    output = next((name for name in _OUTPUTS if name not in (*taken, *variables.dims)), "klineage_output")
    return "".join(
        (
            head(first_line(ast.get_docstring(model)), (*_NOTES, *note_on_sizes(named)), given),
            "import functools\nimport math\n\nimport torch\n\n",
            constant("ELEMENT", {"triton": "fp32", "c": "fp32", "cuda": "fp32"}),
            sizes(named.named, named.hidden),
            constant("INPUTS", tuple(taken), "what get_inputs() returns"),
            constant("OUTPUTS", (output,)),
            constant("SCALARS", scalars),
            constant("DISTRIBUTIONS", ("normal",), "get_inputs() draws by itself"),
            "\n",
            given.fenced,
            variables.resize,
            CODE,
        )
    )


def _function(given: Problem, name: str) -> ast.FunctionDef:
    found = given.function(name)
    if found is None:
        raise given.error(f"has no function {name}(), which a KernelBench problem needs")
    return found


def _method(model: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def _inputs(
    given: Problem, model: ast.ClassDef, get_inputs: ast.FunctionDef, constants: Constants
) -> tuple[list[str], dict[str, float]]:
    """The names of what ``forward`` is given, in order, and which of them are plain numbers."""
    forward = _method(model, "forward")
    if forward is None:
        raise given.error("Model has no method forward()", model)
    if forward.args.vararg or forward.args.kwonlyargs:
        raise given.error("forward() takes its inputs by *args or by keyword; name them one by one", forward)
    names = [a.arg for a in (*forward.args.posonlyargs, *forward.args.args)][1:]
    values = returned(get_inputs)
    if values is None:
        raise given.error("get_inputs() must end with return [...], one entry for each input", get_inputs)
    needed = len(names) - len(forward.args.defaults)
    if not needed <= len(values) <= len(names):
        raise given.error(
            f"get_inputs() returns {len(values)} inputs; forward() takes {', '.join(names)}", get_inputs
        )
    scalars: dict[str, float] = {}
    known = local_values(get_inputs, constants.values)
    for name, value in zip(names, values):
        try:
            number = evaluate(value, known)
        except Unknown:
            continue
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise given.error(
                f"get_inputs() gives {name} the value {number!r}, which is no tensor and no number", value
            )
        scalars[name] = number
    return names[: len(values)], scalars


def _variables(
    constants: Constants,
    model: ast.ClassDef,
    get_inputs: ast.FunctionDef,
    get_init_inputs: ast.FunctionDef,
) -> Variables:
    weights = _weights(model)
    shaping = constants.plain(used_names(get_init_inputs) + used_names(model))
    tied = [name for name in shaping if name not in weights]
    drawn = [name for name in constants.plain(used_names(get_inputs)) if name not in shaping]
    variables = Variables(constants, drawn, tied)

    def elements(dims: Mapping[str, int]) -> int:
        try:
            return largest(get_inputs, constants.at(variables.values(dims)))
        except Unknown:
            return 0

    variables.given = Given(variables.dims, variables.free, variables.tied, elements)
    return variables


def _weights(model: ast.ClassDef) -> set[str]:
    """Names that the model gives to what it makes: a size of the same name is no dimension, only a number."""
    return {
        target.attr
        for node in ast.walk(model)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }


def _refuse_random(
    given: Problem, model: ast.ClassDef, get_init_inputs: ast.FunctionDef, constants: Constants
) -> None:
    """A reference that draws at random gives another answer each time."""
    forward = _method(model, "forward")
    for node in ast.walk(forward) if forward else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RANDOM:
            owner = ast.unparse(node.func.value)
            if owner != "self" and not any(k.arg == "training" for k in node.keywords):
                raise given.error(
                    f"forward() draws at random ({ast.unparse(node.func)}), so nothing can be compared", node
                )
    bound = {
        **constants.values,
        **_arguments(_method(model, "__init__"), get_init_inputs, constants.values),
    }
    for node in ast.walk(model):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).rpartition(".")[2].startswith(
            "Dropout"
        ):
            continue
        rate = next((k.value for k in node.keywords if k.arg == "p"), node.args[0] if node.args else None)
        try:
            dropped = 0.5 if rate is None else evaluate(rate, bound)
        except Unknown:
            continue
        if dropped:
            text = f"{ast.unparse(node)} drops values at random in training mode, so nothing can be compared"
            raise given.error(f"Model: {text}; set its rate to 0", node)


def _arguments(
    init: ast.FunctionDef | None, get_init_inputs: ast.FunctionDef, values: Mapping[str, Any]
) -> dict[str, Any]:
    """What is known of the arguments of ``Model.__init__``."""
    if init is None:
        return {}
    names = [a.arg for a in init.args.args][1:]
    defaults = dict(zip(reversed(names), reversed(init.args.defaults)))
    found: dict[str, Any] = {}
    for name, node in {**defaults, **dict(zip(names, returned(get_init_inputs) or ()))}.items():
        try:
            found[name] = evaluate(node, values)
        except Unknown:
            found.pop(name, None)
    return found
