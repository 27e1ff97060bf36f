"""The language of checks: what may be written. ``klineage.skill.checks.evaluation`` says what it comes to."""

from __future__ import annotations

import ast
import math
from functools import lru_cache

from klineage.skill.checks.arithmetic import MOST_BITS

_LONGEST = 500  # characters
_SHOWN = 16  # characters of what cannot be read
_DEEPEST = 40  # levels of nesting

#: Functions of the language: name -> (fewest arguments, most arguments, what it gives).
FUNCTIONS: dict[str, tuple[int, int, str]] = {
    "dtype": (1, 1, "element type of a buffer"),
    "shape": (2, 2, "extent of a buffer along an axis"),
    "stride": (2, 2, "elements from one index of an axis to the next"),
    "alignment": (0, 1, "bytes that the first address of a buffer, or of all of them, is a multiple of"),
    "row_alignment": (0, 1, "bytes that every row of a buffer, or of all of them, begins at a multiple of"),
    "row_bytes": (0, 1, "bytes of an innermost row of a buffer, or of the longest of all"),
    "bytes": (0, 1, "bytes of a buffer, or of all of them together"),
    "least_extent": (0, 0, "the smallest dimension of the workload"),
    "divisibility": (1, 1, "the largest power of two that divides a number"),
    "is_power_of_two": (1, 1, "whether a number is one"),
    "cdiv": (2, 2, "a / b, rounded up"),
    "min": (2, 8, "the least"),
    "max": (2, 8, "the most"),
    "abs": (1, 1, "without its sign"),
    "constant": (1, 1, "an integer constant of the kernel's text, or of its pinned configuration"),
    "setting": (1, 1, "a number of the card's own instance"),
    "has": (1, 1, "whether a mechanism is in the kernel"),
    "satisfies": (1, 1, "whether code for a platform runs on the target"),
    "every_size": (1, 1, "whether something holds at every size of the workload"),
}

#: Facts that are known by a name alone, with what they are; dimensions come with the workload.
NAMES: dict[str, str] = {
    "element": "element type of the workload on this surface",
    "itemsize": "bytes of an element",
    "surface": "language of the kernel",
    "platform": "name of the platform",
    "vendor": "nvidia, amd or cpu",
    "workload": "name of the workload",
    "capability": "90 for nvidia-sm90",
    "shared_limit": "bytes of shared memory that a block may have",
    "registers_limit": "registers that a thread may have",
    "threads_limit": "threads that a block may have",
    "vector_bytes": "bytes of a vector register",
    "vector_registers": "how many vector registers there are",
    "cores": "processors of the machine",
    "cache_1": "bytes of the first data cache",
    "cache_2": "bytes of the second cache",
    "cache_3": "bytes of the last cache",
    "registers": "registers of a thread, as compiled",
    "shared_bytes": "bytes of shared memory of a block, as compiled",
    "spill_bytes": "bytes that registers are spilled to, as compiled",
    "instructions": "instructions in the code, as compiled",
    "num_warps": "warps of a program, as compiled",
    "num_stages": "stages of the software pipeline, as compiled",
}

_ALLOWED: tuple[type[ast.AST], ...] = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Tuple, ast.Call, ast.IfExp,
    ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift,
    ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
)  # fmt: skip
_WHAT: dict[type[ast.AST], str] = {
    ast.Attribute: "an attribute", ast.Subscript: "a subscript", ast.Lambda: "a function of its own",
    ast.ListComp: "a loop", ast.SetComp: "a loop", ast.DictComp: "a loop", ast.GeneratorExp: "a loop",
    ast.NamedExpr: "an assignment", ast.JoinedStr: "a text with values in it", ast.Starred: "a star",
    ast.Await: "await", ast.Yield: "yield", ast.YieldFrom: "yield", ast.keyword: "a named argument",
    ast.List: "a list", ast.Dict: "a dictionary", ast.Set: "a set", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip


class Refused(ValueError):
    """The text is no check. The message says what is wrong with it, in one sentence."""


@lru_cache(maxsize=4096)
def parsed(expression: str) -> ast.expr:
    """The tree of a check. Raises Refused for what the language has not."""
    if not expression.strip():
        raise Refused("the check is empty")
    if len(expression) > _LONGEST:
        raise Refused(f"the check has {len(expression):,} characters; write at most {_LONGEST}")
    written = " ".join(expression.split())
    if not expression.isascii() or not written.isprintable():
        raise Refused(
            "the check has characters beyond plain ASCII; write names and operators with those alone"
        )
    if "#" in written:
        raise Refused(
            "the check holds a remark, which would say more than it checks; put it into the sentence"
        )
    try:
        tree = ast.parse(written, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"the check cannot be read as an expression{_where(written, error)}") from error
    _refuse(tree)
    return tree.body


def _where(written: str, error: Exception) -> str:
    """What is wrong where, of a text that is no expression, and what one looks like."""
    if not isinstance(error, SyntaxError):
        return "; write it shorter"
    at = error.offset or len(written) + 1  # Python says 0 of what stops too early
    rest = written[at - 1 :]
    place = f"at {rest[:_SHOWN]!r}" if rest else "at its end"
    return f": {error.msg}, character {at}, {place}; write one such as k % 16 == 0"


def _refuse(tree: ast.Expression) -> None:
    """Everything that is not in the language, level by level: deep nesting must not reach a recursive reader."""
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        for node in level:
            _refuse_node(node)
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise Refused(f"the check is nested more than {_DEEPEST} levels deep; write it flatter")


def _children(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Call):  # its function is a name, and no fact
        return list(node.args)
    if isinstance(node, ast.Compare):
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(right, ast.Tuple) and isinstance(operator, (ast.In, ast.NotIn)):
                continue
            if isinstance(right, ast.Tuple) or isinstance(operator, (ast.In, ast.NotIn)):
                raise Refused("in and not in want a list in parentheses: element in ('fp16', 'bf16')")
        inside = [
            x for right in node.comparators for x in (right.elts if isinstance(right, ast.Tuple) else [right])
        ]
        return [node.left, *node.ops, *inside]
    return list(ast.iter_child_nodes(node))


def _refuse_node(node: ast.AST) -> None:
    if isinstance(node, ast.Tuple):
        raise Refused("a list in parentheses stands after in or not in only")
    if not isinstance(node, _ALLOWED):
        raise Refused(
            f"the check holds {_WHAT.get(type(node), type(node).__name__)}, which its language has not"
        )
    if isinstance(node, ast.Constant):
        value = node.value
        if not isinstance(value, (bool, int, float, str)):
            raise Refused(f"the check holds {str(value)[:20]!r}, which is neither a number nor a text")
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise Refused("the check holds a number of more than 256 bits")
        if isinstance(value, float) and not math.isfinite(value):
            raise Refused("the check holds a number that is too large")
    if isinstance(node, ast.Call):
        _refuse_call(node)


def _refuse_call(node: ast.Call) -> None:
    if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
        called = node.func.id if isinstance(node.func, ast.Name) else "what is no name"
        raise Refused(f"the check calls {called}; there are {', '.join(FUNCTIONS)}")
    if node.func.id == "every_size" and any(_is_every(inner) for arg in node.args for inner in ast.walk(arg)):
        raise Refused(
            "every_size() stands inside of every_size(), which would ask each size for all sizes again"
        )
    if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        raise Refused(f"{node.func.id}() takes its arguments by place alone")
    least, most, _ = FUNCTIONS[node.func.id]
    if not least <= len(node.args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise Refused(f"{node.func.id}() takes {wanted} argument{'s' * (most != 1)}, not {len(node.args)}")


def _is_every(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "every_size"


def used_names(expression: str) -> tuple[str, ...]:
    """The facts that a check asks for: names, and functions of the target; in order, each once. Raises Refused."""
    found: dict[str, None] = {}
    for node in ast.walk(parsed(expression)):
        if isinstance(node, ast.Name):
            found[node.id] = None
    plain = ("divisibility", "is_power_of_two", "cdiv", "min", "max", "abs", "every_size")
    return tuple(name for name in found if name not in plain)
