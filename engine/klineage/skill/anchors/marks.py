"""What can be said of a place in code without its names and numbers: the marks that an anchor's query is made of.

What several places have in common is the set of the marks that all of them bear: the least general generalization
(Plotkin, 1970) of places that are described by sets of properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Surface
from klineage.skill.anchors.finding import CAPTURE, is_match
from klineage.surface.tree import Unit

_MOST = 4  # marks of a query: more describe the instance, and no longer the kind of place
_MOST_OF_FUNCTIONS = 3
_MOST_MISSING = 2


@dataclass(frozen=True)
class Mark:
    """One property of places of some types.

    phrase: as the rest of a sentence about the place: ``lies in another loop``.
    header: what stands inside the pattern of the place; tests: predicates after it.
    missing: whether it says what is not there yet.
    """

    phrase: str
    types: tuple[str, ...]
    header: str = ""
    tests: str = ""
    missing: bool = False


def _has(phrase: str, types: Sequence[str], type_: str, pattern: str = "") -> Mark:
    return Mark(phrase, tuple(types), tests=_asks("has-descendant", type_, pattern))


def _asks(predicate: str, type_: str, pattern: str = "") -> str:
    escaped = pattern.replace("\\", "\\\\").replace('"', '\\"')
    return f'(#{predicate}? @{CAPTURE} "{type_}"' + (f' "{escaped}")' if pattern else ")")


_FOR = ("for_statement",)
_WHOLE = ("function_definition",)
_ANY = (*_FOR, *_WHOLE)
_INNERMOST = Mark("is innermost", _FOR, tests=_asks("not-has-descendant", "for_statement"))
_NESTED = Mark("lies in another loop", _FOR, tests=_asks("has-ancestor", "for_statement"))
_AROUND = Mark("has a loop in it", _ANY, tests=_asks("has-descendant", "for_statement"))
_MATH = r"^(exp|exp2|log|log2|sqrt|rsqrt|pow|tanh|erf|sin|cos|fabs|fmax|fmin)f?\b"

_C: tuple[Mark, ...] = (
    Mark(
        "has pointers among its parameters", _WHOLE,
        "declarator: (_ parameters: (parameter_list (parameter_declaration declarator: (pointer_declarator))))",
    ),
    _INNERMOST,
    _NESTED,
    _has("adds up", _FOR, "expression_statement", r"^[^=]*\+="),
    Mark(
        "runs a number of times that is known when compiling", _FOR,
        "condition: (binary_expression right: (_) @bound)", '(#match? @bound "^([A-Z_][A-Z0-9_]*|[0-9]+)$")',
    ),
    _AROUND,
    _has("calls a mathematical function", _ANY, "call_expression", _MATH),
    _has("writes array elements", _ANY, "assignment_expression", r"^\w+\[[^\n=]*\]\s*="),
    _has("reads array elements", _ANY, "subscript_expression"),
    _has("chooses between two values", _ANY, "conditional_expression"),
    _has("divides", _ANY, "binary_expression", r"^[^/]*[^/*]/[^/*]"),
    _has("calls a function", _ANY, "call_expression"),
)  # fmt: skip
_CUDA: tuple[Mark, ...] = (
    _has("is launched as a kernel", _WHOLE, "__global__"),
    _has("waits for the other threads of its block", _ANY, "call_expression", r"^__syncthreads\b"),
    _has("keeps data in shared memory", _WHOLE, "declaration", r"__shared__"),
    *_C,
)
_TRITON: tuple[Mark, ...] = (
    _has("launches a kernel", _WHOLE, "call", r"^\w+\[[^\n]*\]\("),
    _has("multiplies tiles", _ANY, "call", r"^tl\.dot\("),
    _has("multiplies and sums by hand", _ANY, "call", r"^tl\.sum\([^\n]*\*"),
    _INNERMOST,
    _NESTED,
    _has("adds up", _ANY, "augmented_assignment", r"^\w+\s*\+="),
    _has("loads with a mask", _ANY, "call", r"^tl\.load\([^\n]*\bmask="),
    _has("loads", _ANY, "call", r"^tl\.load\("),
    _has("stores", _ANY, "call", r"^tl\.store\("),
    _has("reduces", _ANY, "call", r"^tl\.(sum|max|min|reduce)\("),
    _has("takes a root", _ANY, "call", r"^(tl\.|tl\.math\.)?(sqrt|sqrt_rn|rsqrt)\("),
    _has("takes an exponential", _ANY, "call", r"^(tl\.|tl\.math\.)?exp2?\("),
    _has("numbers the elements of a block", _WHOLE, "call", r"^tl\.arange\("),
    _AROUND,
)
_MARKS: dict[Surface, tuple[Mark, ...]] = {"c": _C, "cuda": _CUDA, "triton": _TRITON}

#: Names that mean the same in every kernel; only these may be said to be missing.
_LIBRARY = re.compile(
    r"(?:__builtin_\w+|_mm\d*_\w+|__\w+_sync|__ld\w+|__st\w+|__syncthreads|tl\.[\w.]+|triton\.[\w.]+)"
)
_OPTIONS = (
    "num_stages",
    "num_warps",
    "eviction_policy",
    "cache_modifier",
    "input_precision",
    "warp_specialize",
)


def marks_of(unit: Unit, node: Node) -> frozenset[Mark]:
    """Every mark that a place bears."""
    known = (mark for mark in _MARKS[unit.surface] if node.type in mark.types)
    return frozenset(mark for mark in known if bears(unit, node, mark))


def bears(unit: Unit, node: Node, mark: Mark) -> bool:
    """Whether a place is found by the query of one mark alone."""
    return is_match(unit, query_of(node.type, (mark,)), node)


def missing(unit: Unit, node: Node, changed: Iterable[tuple[str, str]]) -> frozenset[Mark]:
    """What the changed lines (old, new) bring in and the place has not yet: library calls, options, promises."""
    words: dict[tuple[str, str, str], None] = {}
    for old, new in changed:
        had = set(_words(old))
        words.update(dict.fromkeys(word for word in _words(new) if word not in had))
    named = (
        Mark(f"has no {shown} yet", _ANY, tests=_asks("not-has-descendant", type_, pattern), missing=True)
        for type_, pattern, shown in words
    )
    return frozenset([mark for mark in named if bears(unit, node, mark)][:_MOST_MISSING])


def _words(text: str) -> Iterator[tuple[str, str, str]]:
    """(type of node, pattern, as it is shown) of everything in a changed line that a library or language names."""
    for name in re.findall(rf"({_LIBRARY.pattern})\s*\(", text):
        python = name.startswith(("tl.", "triton."))
        yield ("call" if python else "call_expression", rf"^{re.escape(name)}\(", name)
    for name in _OPTIONS:
        if re.search(rf"\b{name}\s*=", text):
            yield "keyword_argument", rf"^{name}=", name
    if re.search(r"\brestrict\b|\b__restrict(__)?\b", text):
        yield "type_qualifier", "restrict", "restrict"


def chosen(surface: Surface, type_: str, marks: frozenset[Mark]) -> tuple[Mark, ...]:
    """The marks that an anchor names: the most telling ones, and what is missing."""
    telling = [mark for mark in _MARKS[surface] if mark in marks and not _implied(mark, marks)]
    telling = telling[: _MOST_OF_FUNCTIONS if type_ in _WHOLE else _MOST]
    absent = sorted((mark for mark in marks if mark.missing), key=lambda mark: mark.phrase)
    return (*telling, *absent[:_MOST_MISSING])


def _implied(mark: Mark, marks: frozenset[Mark]) -> bool:
    """Whether another mark says it already, and more."""
    return mark.phrase == "loads" and any(m.phrase == "loads with a mask" for m in marks)


def query_of(type_: str, marks: Sequence[Mark]) -> str:
    """The query of a kind of place: one pattern, one predicate a line."""
    headers = "".join(f"\n   {mark.header}" for mark in marks if mark.header)
    tests = "".join(f"\n {mark.tests}" for mark in marks if mark.tests)
    return f"(({type_}{headers}) @{CAPTURE}{tests})"


def said_of(type_: str, marks: Sequence[Mark]) -> str:
    """The same in words: ``a loop that is innermost, lies in another loop and adds up``."""
    noun = {"for_statement": "a loop", "function_definition": "a function", "while_statement": "a loop"}
    phrases = [mark.phrase for mark in marks]
    if not phrases:
        return noun.get(type_, type_)
    listed = ", ".join(phrases[:-1]) + (" and " if len(phrases) > 1 else "") + phrases[-1]
    return f"{noun.get(type_, type_)} that {listed}"
