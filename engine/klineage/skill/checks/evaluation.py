"""The value of a check on one target: simpleeval, with facts for names and a third value for logic."""

from __future__ import annotations

import ast
from typing import Any

from simpleeval import InvalidExpression, SimpleEval

from klineage.errors import KlineageError
from klineage.platform import satisfies
from klineage.proposer.features.mechanisms import names as mechanisms
from klineage.skill.checks.arithmetic import OPERATORS, Doubt, Value, arithmetic, bounded, number, whole
from klineage.skill.checks.expressions import FUNCTIONS, NAMES
from klineage.skill.checks.facts import ITEMSIZE, Facts, Tensor

_HAS = "has "


class Evaluator(SimpleEval):  # type: ignore[misc]
    """The value of one tree on one target at one size, and the facts that it asked for on the way."""

    def __init__(self, facts: Facts, size: str) -> None:
        functions = {name: getattr(self, f"_{name}") for name in FUNCTIONS if name != "every_size"}
        super().__init__(operators=dict(OPERATORS), functions=functions, names={})
        self._facts, self._size = facts, size
        self._asked: dict[str, Value] = {}
        self._sized = ""
        self.nodes.update({ast.Tuple: self._eval_tuple, ast.UnaryOp: self._eval_unaryop})

    def truth(self, tree: ast.expr) -> bool:
        """Raises Doubt where the target does not decide it."""
        try:
            value = self._eval(tree)
        except InvalidExpression as error:
            raise Doubt(str(error)) from error
        if not isinstance(value, bool):
            raise Doubt(f"it comes to {value!r}, which is neither yes nor no; compare it with something")
        return value

    def told(self) -> str:
        """The facts that were asked for, as one sentence."""
        parts = [_told(name, value) for name, value in self._asked.items()]
        said = ", ".join(parts)
        return f"at {self._sized}, {said}" if self._sized and said else said

    def _tell(self, name: str, value: Value, *, sized: bool = False) -> Value:
        self._asked[name] = value
        if sized:
            self._sized = self._size
        return value

    # The language where it differs from simpleeval's.

    def _eval_tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self._eval(element) for element in node.elts)

    def _eval_boolop(self, node: ast.BoolOp) -> bool:
        deciding = isinstance(node.op, ast.Or)
        doubts: list[Doubt] = []
        for value in node.values:
            try:
                if self.truth(value) is deciding:
                    return deciding
            except Doubt as doubt:
                doubts.append(doubt)
        if doubts:
            raise doubts[0]
        return not deciding

    def _eval_unaryop(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return not self.truth(node.operand)
        return super()._eval_unaryop(node)

    def _eval_ifexp(self, node: ast.IfExp) -> Any:
        return self._eval(node.body if self.truth(node.test) else node.orelse)

    def _eval_call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "every_size":
            return self._every_size(node.args[0])
        return bounded(super()._eval_call(node))

    def _eval_name(self, node: ast.Name) -> Value:
        dims = self._facts.sizes[self._size]
        if node.id in dims:
            return self._tell(node.id, dims[node.id], sized=True)
        return self._tell(node.id, self._named(node.id))

    def _named(self, name: str) -> Value:
        facts = self._facts
        known: dict[str, Value] = {
            "element": facts.element, "itemsize": ITEMSIZE[facts.element], "surface": facts.surface,
            "platform": str(facts.platform), "vendor": facts.platform.vendor, "workload": facts.workload,
        }  # fmt: skip
        if name in known:
            return known[name]
        if name in facts.numbers:
            return facts.numbers[name]
        if name in NAMES:
            raise Doubt(f"{name} ({NAMES[name]}) is not known of {facts.platform}{_when_compiled(name)}")
        raise Doubt(f"{facts.workload} has no dimension {name}; it has {', '.join(facts.dims)}")

    def _every_size(self, argument: ast.expr) -> bool:
        doubts: list[Doubt] = []
        for size in self._facts.sizes:
            inner = Evaluator(self._facts, size)
            try:
                if not inner.truth(argument):
                    self._asked, self._sized = inner._asked, inner._sized
                    return False
            except Doubt as doubt:
                doubts.append(doubt)
        if doubts:
            raise doubts[0]
        self._tell("every size checked", ", ".join(self._facts.sizes))
        return True

    # Functions of the language.

    def _tensor(self, name: Any) -> Tensor:
        if not self._facts.tensors:
            raise Doubt(self._facts.shapeless)
        found = self._facts.tensors[self._size]
        if name not in found:
            raise Doubt(f"{self._facts.workload} has no buffer {name!r}; it has {', '.join(found)}")
        return found[name]

    def _axis(self, name: Any, axis: Any, values: tuple[int, ...]) -> int:
        if not -len(values) <= whole(axis) < len(values):
            raise Doubt(f"{name} has {len(values)} axes, and none is {axis}")
        return values[whole(axis)]

    def _dtype(self, name: Any) -> Value:
        return self._tell(f"the type of {name}", self._tensor(name).type)

    def _shape(self, name: Any, axis: Any) -> Value:
        extent = self._axis(name, axis, self._tensor(name).shape)
        return self._tell(f"extent {axis} of {name}", extent, sized=True)

    def _stride(self, name: Any, axis: Any) -> Value:
        stride = self._axis(name, axis, self._tensor(name).strides)
        return self._tell(f"stride {axis} of {name}", stride, sized=True)

    def _every(self) -> tuple[Tensor, ...]:
        """All buffers at this size."""
        if not self._facts.tensors:
            raise Doubt(self._facts.shapeless)
        return tuple(self._facts.tensors[self._size].values())

    def _alignment(self, name: Any = None) -> Value:
        if name is not None:
            return self._tell(f"the alignment of {name}", self._tensor(name).alignment)
        least = min(self._every(), key=lambda tensor: tensor.alignment)
        return self._tell(f"the alignment of {least.name}", least.alignment)

    def _row_alignment(self, name: Any = None) -> Value:
        one = self._tensor(name) if name is not None else min(self._every(), key=lambda t: t.row_alignment)
        return self._tell(f"the alignment of rows of {one.name}", one.row_alignment, sized=True)

    def _row_bytes(self, name: Any = None) -> Value:
        one = self._tensor(name) if name is not None else max(self._every(), key=lambda t: t.row_bytes)
        return self._tell(f"a row of {one.name}", one.row_bytes, sized=True)

    def _bytes(self, name: Any = None) -> Value:
        if name is not None:
            return self._tell(f"bytes of {name}", self._tensor(name).bytes, sized=True)
        return self._tell("bytes of all buffers", sum(tensor.bytes for tensor in self._every()), sized=True)

    def _least_extent(self) -> Value:
        dims = self._facts.sizes[self._size]
        least = min(dims, key=lambda dim: dims[dim])
        return self._tell(least, dims[least], sized=True)

    def _divisibility(self, value: Any) -> int:
        number = whole(value)
        if number == 0:
            raise Doubt("every power of two divides zero")
        return number & -number

    def _is_power_of_two(self, value: Any) -> bool:
        count = whole(value)
        return count > 0 and count & (count - 1) == 0

    def _cdiv(self, left: Any, right: Any) -> Value:
        return arithmetic(lambda a, b: -(-a // b))(whole(left), whole(right))

    def _min(self, *values: Any) -> Value:
        return min(number(value) for value in values)

    def _max(self, *values: Any) -> Value:
        return max(number(value) for value in values)

    def _abs(self, value: Any) -> Value:
        return abs(number(value))

    def _constant(self, name: Any) -> Value:
        if name not in self._facts.constants:
            raise Doubt(f"the kernel's text gives {name!r} no certain value")
        return self._tell(str(name), self._facts.constants[name])

    def _setting(self, name: Any) -> Value:
        text = self._facts.settings.get(name) if isinstance(name, str) else None
        if text is None:
            raise Doubt(f"the card's instance has no setting {name!r}")
        try:
            return self._tell(f"the card's {name}", bounded(int(text, 0)))
        except ValueError:
            raise Doubt(f"the card's {name} is {text[:40]!r}, which is no whole number") from None

    def _has(self, name: Any) -> Value:
        states = {finding.state for finding in self._facts.findings if finding.name == name}
        if not states and name not in mechanisms(self._facts.surface):
            raise Doubt(f"no detector of {self._facts.surface} kernels knows {name!r}")
        if "present" in states or states == {"absent"}:
            return self._tell(f"{_HAS}{name}", "present" in states)
        raise Doubt(f"whether the kernel has {name} cannot be told from its text")

    def _satisfies(self, name: Any) -> Value:
        try:
            runs = satisfies(str(self._facts.platform), str(name))
        except KlineageError as error:
            raise Doubt(str(error)) from error
        self._tell("platform", str(self._facts.platform))
        return runs


def _when_compiled(name: str) -> str:
    compiled = ("registers", "shared_bytes", "spill_bytes", "instructions", "num_warps", "num_stages")
    return "; gate the kernel first" if name in compiled else ""


def _told(name: str, value: Value) -> str:
    if name.startswith(_HAS):
        return f"the kernel has {'' if value else 'no '}{name.removeprefix(_HAS)}"
    return f"{name} is {value}"
