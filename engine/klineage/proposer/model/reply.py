"""From the text of a reply to a candidate. Everything in it is untrusted; what is wrong with it is one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from klineage.kernel import Kernel
from klineage.proposer.answer import LARGEST, Unusable, answer_from, candidate_of
from klineage.proposer.base import Task
from klineage.proposer.candidate import Candidate
from klineage.proposer.model.prompt import SCHEMA
from klineage.proposer.model.request import text_of
from klineage.proposer.question import Outcome
from klineage.surface.tree import parse_kernel

_KINDS = ("Data types:", "Layout:", "Storage:", "Pipeline:", "Hardware:")
_SENTENCE = 400


@dataclass(frozen=True)
class Nothing:
    """The model sees nothing left to take out; ``why`` is its reason, on one line."""

    why: str


def read_reply(task: Task, outcome: Outcome, proposer: str) -> Candidate | Nothing:
    """What a finished call has answered. Raises Unusable, with a sentence, for what is no candidate."""
    _refuse_unfinished(outcome)
    record = _object(outcome.text)
    if record["decision"] == "nothing" and task.goal is None:
        return Nothing(" ".join(record["rationale"].split())[:_SENTENCE] or "it gives no reason")
    settings = {str(item["name"]): str(item["value"]) for item in record["settings"]}
    answer = answer_from(record | {"settings": settings})
    source = _source(task.kernel, record)
    _refuse_two_kernels(task.kernel, source)
    candidate = candidate_of(task, answer, source, proposer)
    return replace(candidate, preconditions=_preconditions(record["preconditions"]))


def _refuse_unfinished(outcome: Outcome) -> None:
    if outcome.stop == "refusal":
        why = f": {outcome.problem}" if outcome.problem else ""
        raise Unusable(f"the model refused to answer{why}")
    if outcome.stop == "max_tokens":
        raise Unusable(
            "its answer was cut off at max_tokens; raise max_tokens in [proposer], or lower the effort"
        )
    if outcome.stop == "model_context_window_exceeded":
        raise Unusable("its answer was cut off: kernel and answer are more than the model can hold")
    if not outcome.text.strip():
        raise Unusable("its answer is empty")


def _object(text: str) -> dict[str, Any]:
    """The one JSON object of an answer, in the form of the schema."""
    start = text.lstrip("\ufeff \t\r\n")
    try:
        value, end = json.JSONDecoder().raw_decode(start)
    except (ValueError, RecursionError) as error:
        where = f" at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        raise Unusable(f"its answer is not valid JSON{where}") from error
    rest = start[end:].strip()
    if isinstance(value, list) or rest.startswith("{"):
        raise Unusable("it answered with several proposals; one is asked for")
    if rest:
        raise Unusable("its answer goes on after the JSON object that was asked for")
    _check(value, SCHEMA, "its answer")
    return dict(value)


def _check(value: Any, schema: Mapping[str, Any], what: str) -> None:
    """Raises Unusable unless ``value`` has the form of ``schema`` (the few kinds of schema that ours uses)."""
    kind = {"object": dict, "array": list, "string": str}[schema["type"]]
    if not isinstance(value, kind):
        raise Unusable(f"{what} is not {'an' if schema['type'][0] in 'ao' else 'a'} {schema['type']}")
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        raise Unusable(f"{what} holds half of a character")
    if "enum" in schema and value not in schema["enum"]:
        raise Unusable(f"{what} is not one of {', '.join(schema['enum'])}")
    if isinstance(value, list):
        for item in value:
            _check(item, schema["items"], f"an item of {what}")
    if isinstance(value, dict):
        for name, inner in schema["properties"].items():
            if name not in value:
                raise Unusable(f"{what} has no {name}")
            _check(value[name], inner, f"{name} of {what}")


def _source(kernel: Kernel, record: Mapping[str, Any]) -> bytes:
    whole, edits = record["source"], record["edits"]
    if whole.strip() and edits:
        raise Unusable("it answered with a whole file and with edits; one of them is asked for")
    if not whole.strip() and not edits:
        raise Unusable("its answer has no code")
    if whole.lstrip().startswith("```"):
        raise Unusable("its code is wrapped in a Markdown fence")
    text = edited(text_of(kernel), edits) if edits else whole
    if len(text) > LARGEST:
        raise Unusable(f"its kernel has {len(text):,} characters, more than any kernel")
    return with_old_bytes(kernel.source, text)


def edited(text: str, edits: list[Mapping[str, str]]) -> str:
    """``text`` after search and replace edits, each of which must apply at exactly one place.

    Raises Unusable, with the number of the edit, for one that does not.
    """
    spans: list[tuple[int, int, str]] = []
    for number, edit in enumerate(edits, start=1):
        search = edit["search"].replace("\r\n", "\n")
        count = text.count(search) if search else 0
        if count != 1:
            where = f"at {count} places of the kernel" if count else "nowhere in the kernel"
            reason = f"its text is {where}" if search else "it searches for nothing"
            raise Unusable(f"edit {number} of {len(edits)} does not apply: {reason}")
        at = text.index(search)
        spans.append((at, at + len(search), edit["replace"].replace("\r\n", "\n")))
    spans.sort()
    if any(later[0] < earlier[1] for earlier, later in pairwise(spans)):
        raise Unusable("two of its edits overlap")
    for start, end, new in reversed(spans):
        text = text[:start] + new + text[end:]
    return text


def with_old_bytes(old: bytes, text: str) -> bytes:
    """The bytes of a new file: lines that were there before keep theirs, to the last byte of their endings.

    A model sees text with line feeds only, and U+FFFD for what is no UTF-8; what it leaves alone must not change.
    """
    from klineage.lineage import line_ops

    plain = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "surrogatepass")
    lines = plain.split(b"\n")
    ends_open = lines[-1] != b""
    if _is_plain(old):
        return plain + b"\n" if ends_open else plain
    before = old.splitlines(keepends=True)
    shown = [line.rstrip(b"\r\n").decode("utf-8", "replace").encode() + b"\n" for line in before]
    lines = lines if ends_open else lines[:-1]
    ending = b"\r\n" if sum(line.endswith(b"\r\n") for line in before) * 2 > len(before) else b"\n"
    new = [line + ending for line in lines]
    for op in line_ops(b"".join(shown), b"".join(line + b"\n" for line in lines)):
        if op.tag == "equal":
            new[op.b0 : op.b1] = before[op.a0 : op.a1]
    for number, line in enumerate(new[:-1]):
        if not line.endswith((b"\n", b"\r")):
            new[number] = line + ending  # it was the last line, and is not any more
    if new and old[-1:] not in (b"\n", b"\r") and ends_open:
        new[-1] = new[-1].rstrip(b"\r\n")
    return b"".join(new)


def _is_plain(source: bytes) -> bool:
    """Whether a model sees every byte as it is, so that every line of its answer has its bytes already."""
    return (
        source.endswith(b"\n")
        and b"\r" not in source
        and source.decode("utf-8", "replace").encode() == source
    )


def _refuse_two_kernels(kernel: Kernel, source: bytes) -> None:
    """One file with every entry, once."""
    names = [f.name for f in parse_kernel(replace(kernel, source=source)).functions]
    for entry in kernel.entry.split("+"):
        if names.count(entry) > 1:
            raise Unusable(f"its code holds {names.count(entry)} kernels: {entry} is defined more than once")
        if names.count(entry) == 0 and entry in [f.name for f in parse_kernel(kernel).functions]:
            raise Unusable(f"its code has no {entry}, which is the function to enter")


def _preconditions(sentences: list[str]) -> tuple[str, ...]:
    lines = (" ".join(sentence.split())[:_SENTENCE] for sentence in sentences)
    return tuple(line for line in lines if line.startswith(_KINDS))[:12]
