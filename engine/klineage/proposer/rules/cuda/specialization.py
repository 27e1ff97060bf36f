"""One code for the usual shape and one for every other: the general one alone remains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import place_of
from klineage.proposer.rules.cuda.code import has_kernel
from klineage.proposer.rules.rewritten import function_of
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site, setting
from klineage.surface.tree import Edit, Unit, parse_kernel, walk

_GENERAL = ("1", "false")


@dataclass(frozen=True)
class _Choice:
    """``if (condition) f<N>(...); else f<1>(...);`` whose two calls differ in template arguments alone."""

    statement: Node
    condition: Node
    special: Node  # the template arguments of the first call
    rest: Node  # the statement of the general call
    call: str


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites: dict[str, Site] = {}
    for choice in _choices(unit) if has_kernel(unit) else ():
        function = function_of(unit, choice.statement)
        if function is not None and function.locus not in sites:
            settings = {
                "condition": _flat(unit.text(choice.condition)),
                "special": unit.text(choice.special)[1:-1],
                "call": choice.call,
            }
            note = choice.condition.next_sibling
            if note is not None and note.type == "comment" and "\n" not in unit.text(note):
                settings["note"] = unit.text(note)
            feature = Feature(function.locus, "mask_specialize")
            sites[function.locus] = Site(function.locus, (feature,), settings)
    return tuple(sites.values())


def _choices(unit: Unit) -> list[_Choice]:
    found: list[_Choice] = []
    if b"template" not in unit.source:
        return found
    for node in walk(unit.root):
        condition = node.child_by_field_name("condition") if node.type == "if_statement" else None
        first, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        second = other.named_children[-1] if other is not None and other.named_children else None
        if condition is None or first is None or second is None:
            continue
        special, general = _template(first), _template(second)
        if special is None or general is None or unit.text(general)[1:-1] not in _GENERAL:
            continue
        texts = [
            _flat(_without(unit, statement, arguments))
            for statement, arguments in ((first, special), (second, general))
        ]
        if texts[0] == texts[1] and unit.text(special) != unit.text(general):
            found.append(_Choice(node, condition, special, second, texts[0].partition("(")[0]))
    return found


def _template(statement: Node) -> Node | None:
    """The template arguments of the call that a statement consists of."""
    call = statement.named_children[0] if statement.type == "expression_statement" else None
    function = (
        call.child_by_field_name("function") if call is not None and call.type == "call_expression" else None
    )
    return (
        function.child_by_field_name("arguments")
        if function is not None and function.type == "template_function"
        else None
    )


def _without(unit: Unit, statement: Node, arguments: Node) -> str:
    text = (
        unit.source[statement.start_byte : arguments.start_byte]
        + unit.source[arguments.end_byte : statement.end_byte]
    )
    return text.decode("utf-8", "surrogateescape")


def _flat(text: str) -> str:
    return " ".join(text.split())


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    choices = [c for c in _choices(unit) if (f := function_of(unit, c.statement)) and f.locus == site.locus]
    if len(choices) != 1:
        raise NotApplicable(f"{place_of(unit, site.locus)} chooses {len(choices)} times, not once")
    choice = choices[0]
    text = unit.source[choice.rest.start_byte : choice.rest.end_byte]
    return Rewrite((Edit(choice.statement.start_byte, choice.statement.end_byte, text),))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    condition, special, called = (setting(settings, n) for n in ("condition", "special", "call"))
    for node in walk(unit.root):
        arguments = _template(node)
        function = function_of(unit, node) if arguments is not None else None
        if arguments is None or function is None or function.locus != locus:
            continue
        if (
            unit.text(arguments)[1:-1] not in _GENERAL
            or _flat(_without(unit, node, arguments)).partition("(")[0] != called
        ):
            continue
        indent, newline = unit.indent(node.start_byte), unit.newline(node.start_byte)
        step = b"    " if indent.startswith(b"    ") else b"  "
        general = unit.source[node.start_byte : node.end_byte]
        at, end = arguments.start_byte - node.start_byte, arguments.end_byte - node.start_byte
        fast = general[:at] + f"<{special}>".encode("utf-8", "surrogateescape") + general[end:]
        note = f"  {settings['note']}" if "note" in settings else ""
        head = f"if {condition}{note}".encode("utf-8", "surrogateescape")
        lead = newline + indent
        text = head + lead + step + fast + lead + b"else" + lead + step + general
        return (Edit(node.start_byte, node.end_byte, text),)
    raise NotApplicable(f"{place_of(unit, locus)} calls no {called}<1>")


SPECIALIZATION = Rule(
    name="specialization",
    action="mask_specialize",
    surface="cuda",
    title="Take the general code for every shape",
    adds="Take a code of its own for the usual shape",
    at="Where the kernel is entered, or launched, for every shape alike",
    rationale="The usual shape takes code that relies on it (whole vectors, no masks); without the choice, "
    "every shape takes the code that relies on nothing.",
    preconditions=(
        "Layout: the condition is exactly what the special code relies on.",
        "Pipeline: the condition is the same for all threads of a block, so that they stay together.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("unroll", "vectorize"),
    known={
        "Layout": Known(change="size", settings={"dim": "*", "value": "+1"}),
    },
)
