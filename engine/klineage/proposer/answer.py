"""What an answer in text must be before it is a candidate: the same for a model and for a command.

Everything in it is untrusted. Whatever is wrong with one is a sentence, and costs one attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from klineage.errors import KlineageError
from klineage.kernel import Feature, Kernel
from klineage.proposer import rules, vocabulary
from klineage.proposer.base import Task
from klineage.proposer.candidate import Candidate
from klineage.proposer.rules.rule import Config
from klineage.surface.dispatch import autotune_configs
from klineage.surface.tree import Unit, function_locus, parse_kernel, walk

LARGEST = 1 << 20  # bytes of a kernel; more is no kernel that a person wrote
_TITLE = 60
_RATIONALE = 4_000
_SETTINGS = 40
_SETTING = 500


class Unusable(Exception):
    """This answer is no candidate; the message is one sentence that says why.

    evidence: what it would have been, where its bytes are worth keeping as a rejected attempt.
    """

    def __init__(self, why: str, evidence: Candidate | None = None) -> None:
        super().__init__(why)
        self.evidence = evidence


@dataclass(frozen=True)
class Answer:
    """What was said about the kernel that came with it."""

    action: str
    locus: str
    title: str
    rationale: str
    settings: Mapping[str, str] = field(default_factory=dict)
    removes: tuple[str, ...] = ()  # features, ``locus / name`` or a name; empty: the action at the locus


def answer_from(record: object) -> Answer:
    """The answer in a JSON value. Raises Unusable for a missing field or one of another kind."""
    if not isinstance(record, dict):
        raise Unusable("its answer is not a JSON object with action, locus, title and rationale")
    texts = {name: _text(record, name) for name in ("action", "locus", "title", "rationale")}
    settings = record.get("settings", {})
    if not isinstance(settings, dict) or not all(
        isinstance(value, str | int | float | bool) for value in settings.values()
    ):
        raise Unusable("the settings of its answer are not a flat JSON object of names and values")
    if len(settings) > _SETTINGS:
        raise Unusable(f"its answer has {len(settings)} settings, more than any mechanism is configured with")
    removes = record.get("removes", [])
    if not isinstance(removes, list) or not all(isinstance(name, str) for name in removes):
        raise Unusable("what its answer says that it removes is not a list of features")
    try:
        action = vocabulary.normal(texts["action"])
    except KlineageError as error:
        raise Unusable(f"its answer names no action: {error}") from error
    title, rationale = _line(texts["title"], _TITLE), texts["rationale"].strip()[:_RATIONALE]
    spelled = {
        _line(str(name), _SETTING): _line(_spelled(value), _SETTING) for name, value in settings.items()
    }
    claimed = tuple(_line(name, 2 * _SETTING) for name in removes if name.strip())
    return Answer(action, texts["locus"].strip(), title, rationale, spelled, claimed)


def candidate_of(task: Task, answer: Answer, source: bytes, proposer: str) -> Candidate:
    """The candidate that an answer makes on the kernel of ``task``.

    Raises Unusable for a kernel that is unchanged, does not parse, was tried before, or changes another
    function than the one that its locus names. (With a goal the place is the goal's, which the kernel may not have yet.)
    """
    before = task.kernel
    _refuse_unreadable(source)
    config = _pinned(before, source)
    proposed = Candidate(answer.action, answer.locus, answer.title, answer.rationale, source, config=config)
    after = proposed.kernel(before)
    if source == before.source:
        raise Unusable("it answered with the kernel that it was given, unchanged")
    if any(tried.kernel == after.hash for tried in task.tried):
        raise Unusable("it proposed a kernel that was rejected on this state already")
    unit, new = parse_kernel(before), parse_kernel(after)
    if answer.locus not in unit.loci and task.goal is None:
        some = ", ".join(list(unit.loci)[:4])
        raise Unusable(
            f"its answer names a place that the kernel does not have: {answer.locus!r}; it has {some}"
        )
    candidate = replace(
        proposed,
        removes=() if task.goal is not None else _claimed(answer, before, after),
        settings=dict(answer.settings),
        proposer=proposer,
    )
    if (lines := new.broken_lines()) and len(lines) > len(unit.broken_lines()):
        raise Unusable(
            f"its kernel does not parse: line {lines[0]} is no {_LANGUAGE[after.surface]}", candidate
        )
    if task.goal is None and (strange := _changed_elsewhere(unit, new, answer.locus)):
        raise Unusable(f"it says that it changes {answer.locus}, but it changes {strange} too", candidate)
    return candidate


def _pinned(before: Kernel, source: bytes) -> Config | None:
    """The pinned configuration of the new kernel where it has to be another one; None where it stays.

    It stays while the new kernel offers it; one without autotuning has none.
    """
    offered = autotune_configs(replace(before, source=source))
    if before.config in offered or (not before.config and not offered):
        return None
    return offered[0] if offered else ()


def _claimed(answer: Answer, before: Kernel, after: Kernel) -> tuple[Feature, ...]:
    """What the answer claims to remove, at the places where the detectors see such a thing gone."""
    now = set(rules.features(after))
    gone = [feature for feature in rules.features(before) if feature not in now]
    found: list[Feature] = []
    for text in answer.removes or answer.action.split("+"):
        locus, separator, name = text.rpartition(" / ")
        place = locus.strip() if separator else answer.locus
        seen = [
            f for f in gone if f.name == name.strip() and function_locus(f.locus) == function_locus(place)
        ]
        found += seen or [Feature(place, name.strip())]
    return tuple(dict.fromkeys(found))


_LANGUAGE = {"triton": "Python", "c": "C", "cuda": "CUDA C++"}


def _refuse_unreadable(source: bytes) -> None:
    if not source.strip():
        raise Unusable("its kernel is empty")
    if len(source) > LARGEST:
        raise Unusable(f"its kernel has {len(source):,} bytes, more than the {LARGEST:,} of any kernel")
    if b"\0" in source:
        raise Unusable("its kernel is a binary file")


def _changed_elsewhere(before: Unit, after: Unit, locus: str) -> str:
    """A function that was changed though it has nothing to do with the one at ``locus``; empty for none.

    Who calls a function may have to change with it, in Triton the host; and what it calls is a part of it, so the
    entry of a C kernel stands for all of it.
    """
    calls = _calls(before, after)
    callers: dict[str, set[str]] = {}
    for caller, called in calls.items():
        for place in called:
            callers.setdefault(place, set()).add(caller)
    start = function_locus(locus)
    may = _reached(start, calls) | _reached(start, callers)
    now = {function.locus: after.text(function.node) for function in after.functions}
    for function in before.functions:
        text = now.get(function.locus)
        if function.locus not in may and text is not None and text != before.text(function.node):
            return function.locus
    return ""


def _calls(*units: Unit) -> dict[str, set[str]]:
    """The functions that each function mentions, by their places."""
    places: dict[str, set[str]] = {}
    for unit in units:
        for function in unit.functions:
            places.setdefault(function.name, set()).add(function.locus)
    calls: dict[str, set[str]] = {}
    for unit in units:
        for function in unit.functions:
            words = {unit.text(node) for node in walk(function.node) if node.type == "identifier"}
            mentioned = (places[word] for word in words & places.keys())
            calls.setdefault(function.locus, set()).update(*mentioned)
    return calls


def _reached(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    reached, new = {start}, {start}
    while new := {there for place in new for there in edges.get(place, ())} - reached:
        reached |= new
    return reached


def _text(record: Mapping[object, object], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        raise Unusable(f"its answer has no {name}")
    return value


def _line(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _spelled(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
