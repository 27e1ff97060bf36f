"""Sentences that say nothing, that say what belongs elsewhere, or that nobody can check."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from klineage.errors import KlineageError
from klineage.skill.card import Card, Precondition
from klineage.skill.linting.likeness import alike
from klineage.skill.linting.problem import Problem

#: A stack of calls, an address, a line of a compiler's log: what a program prints, and nobody writes.
_TRACE = re.compile(
    r"Traceback \(most recent call last\)|^\s*File \".*\", line \d+|\bat 0x[0-9a-fA-F]{6,}|\bcore dumped\b"
    r"|^\s*(?:[A-Z]\w*(?:Error|Exception)|RuntimeError): |^==\d+==|^\S+\.(?:c|cu|py):\d+:\d+: error:",
    re.MULTILINE,
)

#: Faults of the machine on which it was tried: they say nothing of the optimization.
_ENVIRONMENT = re.compile(
    r"ModuleNotFoundError|ImportError|No module named|command not found|No such file or directory|[Pp]ermission denied"
    r"|[Nn]o space left|[Dd]isk quota|[Cc]onnection (?:refused|reset|timed out)|[Nn]ame or service not known"
    r"|driver version is insufficient|libcuda\.so|no CUDA-capable device|[Rr]ate limit|API key|HTTP (?:4|5)\d\d|[Oo]ut of memory: [Kk]illed"
    r"|not installed|cannot open shared object"
)

_EMPTY_WORDS = frozenset(re.findall(
    r"\w+",
    """a an and any applies apply applied appropriate are be been by can card code correct correctly exists for good has have
    holds if in input inputs is it its kernel kernels make makes must necessary needed of on one optimization optimisation or ok
    possible present proper properly required requirements right satisfied should so supported supports sufficient suitable that
    the their there these this to transformation used valid valued well where which with works work conditions condition
    preconditions precondition met hold target program""",
))  # fmt: skip

_VAGUE = re.compile(
    r"\b(?:appropriate(?:ly)?|suitable|suitably|properly|reasonabl[ey]|sufficient(?:ly)?|large enough|small enough|good enough"
    r"|as needed|when(?:ever)? beneficial|if possible)\b",
    re.IGNORECASE,
)


def sentences(card: Card) -> Iterator[tuple[str, str]]:
    """Every text that a person reads as a claim, with its field."""
    yield "intent", card.intent
    yield "anchor.text", card.anchor.text
    for precondition in card.preconditions:
        yield f"preconditions.{precondition.key}.text", precondition.text
    for number, risk in enumerate(card.risks):
        yield f"risks.{number}.text", risk.text


def programs_words(card: Card) -> Iterator[Problem]:
    """What a program printed, in place of what it means."""
    for field, text in sentences(card):
        if _TRACE.search(text):
            said = (
                "this is what a program printed; say in one sentence what went wrong, and cite the evidence"
            )
            yield Problem(field, "error", said, "traceback")
        elif (found := _ENVIRONMENT.search(text)) and not field.startswith("anchor"):
            said = f"{found.group()!r} is a fault of the machine it was tried on and none of the optimization; take it out"
            yield Problem(field, "error", said, "environment-error")


def tautologies(card: Card) -> Iterator[Problem]:
    """Sentences that hold for every kernel, and checks that every target passes."""
    for field, text in sentences(card):
        if field.startswith("anchor"):
            continue
        if not text.strip():
            yield Problem(field, "error", "it says nothing; write a sentence or take it out", "empty")
            continue
        said = set(_words(text)) - _EMPTY_WORDS - set(_words(card.action))
        if not said or (field.startswith("preconditions") and alike(text, card.intent)):
            told = "it says no more than that the optimization applies; name the operation or the rule of the hardware that breaks"
            yield Problem(field, "warning", told, "tautology")
    for precondition in card.preconditions:
        if _always(precondition.check):
            field = f"preconditions.{precondition.key}.check"
            yield Problem(
                field,
                "error",
                "both sides are the same, so every target passes; write what must hold",
                "tautology",
            )


def checks(card: Card) -> Iterator[Problem]:
    """Checks that are none, and preconditions that nobody can try on another kernel."""
    from klineage.skill.checks.checking import problem

    for precondition in card.preconditions:
        field = f"preconditions.{precondition.key}"
        if precondition.check and not precondition.check.strip():
            yield Problem(
                f"{field}.check",
                "error",
                "the check is empty; write an expression or take it out",
                "empty-check",
            )
        elif precondition.check and (wrong := problem(precondition.check)):
            yield Problem(f"{field}.check", "error", wrong, "empty-check")
        elif not precondition.check and precondition.probe is None:
            yield _uncheckable(field, precondition)
        if precondition.doubt:
            text = f"doubted: {precondition.doubt}"
            yield Problem(f"{field}.doubt", "warning", text, "doubt")
    for number, risk in enumerate(card.risks):
        if risk.doubt:
            yield Problem(f"risks.{number}.doubt", "warning", f"doubted: {risk.doubt}", "doubt")


def _uncheckable(field: str, precondition: Precondition) -> Problem:
    if found := _VAGUE.search(precondition.text):
        text = f"{found.group()!r} can be neither checked nor probed; give the number, the type or the rule that decides"
    else:
        text = f"{precondition.key} has neither a check nor a probe, so nobody can tell whether it holds on another kernel"
    return Problem(field, "warning", text, "uncheckable")


def instance_numbers(card: Card) -> Iterator[Problem]:
    """A number of the instance that the card was taken from, posing as what must hold everywhere."""
    numbers = _instance(card)
    for precondition in card.preconditions:
        probe = precondition.probe
        if probe is not None and probe.outcome == "confirmed":
            continue  # what was broken and failed is shown to matter, whatever the number
        for part in ("text", "check"):
            text = getattr(precondition, part)
            for name, value in numbers.items():
                if _names(text, name) and _holds_number(text, value):
                    field = f"preconditions.{precondition.key}.{part}"
                    said = (
                        f"{name} = {value} is a number of this instance; say what it must fulfil, or probe it"
                    )
                    yield Problem(field, "warning", said, "instance-number")


def _instance(card: Card) -> Mapping[str, str]:
    """Settings and sizes of the instance, by name."""
    found = {name: value for name, value in card.carrier.settings.items() if _NUMBER.fullmatch(value)}
    for effect in card.effects:
        found |= {name: value for name, value in re.findall(r"([A-Za-z_]\w*)\s*[=:]\s*(\d+)", effect.size)}
    return found


_NUMBER = re.compile(r"\d+")


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text, re.IGNORECASE) is not None


def _holds_number(text: str, value: str) -> bool:
    """Whether the text fixes a name at the value: a multiple of it, or a bound of the hardware, is another matter."""
    fixes = rf"(?:=|==|\bis|\bare|\bequals?|\bof|\bbe|\bto|:)\s*{re.escape(value)}(?![\w.])"
    modulo = rf"%\s*\w+\s*==\s*{re.escape(value)}(?![\w.])"
    return (
        bool(re.search(fixes, text))
        and not re.search(modulo, text)
        and not re.search(rf"multiples? of {value}", text)
    )


def _query(card: Card) -> Iterator[Problem]:
    from klineage.skill.anchors.finding import compiled_query  # loads the parsers

    try:
        compiled_query(card.surface, card.anchor.query)
    except KlineageError as error:
        yield Problem("anchor.query", "error", str(error), "anchor")


def names(card: Card) -> Iterator[Problem]:
    """Words of the vocabulary that are almost right, and parts of a card that contradict each other."""
    from klineage.proposer.vocabulary import checked

    try:
        checked(card.action)
    except KlineageError as error:
        yield Problem("action", "warning", str(error), "vocabulary")
    if card.anchor.query:
        yield from _query(card)
    if not card.anchor.text and not card.anchor.query:
        yield Problem("anchor", "warning", "it does not say where it acts", "anchor")
    if card.carrier.before and card.carrier.before == card.carrier.after:
        yield Problem("carrier", "error", "before and after are the same code", "carrier")
    contract = card.contract
    for feature in sorted({*contract.requires} & {*contract.conflicts}):
        text = f"{feature.name} at {feature.where} is both required and in conflict; keep one"
        yield Problem("contract", "error", text, "contract")
    if not contract.provides and card.status != "retired":
        text = "it provides no feature, so nothing can be built on it; klineage lift derives what it adds"
        yield Problem("contract.provides", "warning", text, "contract")


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _always(expression: str) -> bool:
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        return False
    same = ast.dump(tree.left) == ast.dump(tree.comparators[0])
    return same and isinstance(tree.ops[0], ast.Eq | ast.LtE | ast.GtE)
