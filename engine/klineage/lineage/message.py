"""Commit messages that a person, klineage and ``git interpret-trailers`` all read.

``format_step`` and ``parse_step`` are exact inverses on cleaned records (``clean``). No free text can
forge a trailer: values are one line each, and a line of the reasoning that git or klineage could mistake
for structure is written with a leading backslash.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from klineage.kernel import Feature
from klineage.lineage.model import SCHEMA, Step, StepRecord, moment

UNTITLED = "Untitled step"

_PREFIX = "Lineage-"
_SCISSORS = "------------------------ >8 ------------------------"
_VISIBLE = (
    {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
    | dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)
)
_KEY = re.compile(r"Lineage-[A-Z][A-Za-z-]*")


_KNOWN = frozenset(
    _PREFIX + key
    for key in (
        "Id", "Copies", "Step", "Direction", "Forward", "Forward-Why", "Reverses", "Walk", "Action", "Locus", "Proposer", "Decision",
        "Gate", "Compile", "Correctness", "Profile", "Trust", "Platform", "Kernel", "Schema",
    )
)  # fmt: skip


class MessageError(ValueError):
    """A commit message is not that of a lineage step; the text says why."""


@dataclass(frozen=True)
class Stamp:
    """What klineage itself knows about a step, as opposed to what a caller says of it."""

    id: str
    number: int
    direction: str
    decision: str
    forward: str = ""
    reverses: str = ""
    walk: str = ""
    found: str = ""


def one_line(text: str) -> str:
    """``text`` on one line: white space runs become one space, control characters become visible."""
    return " ".join(text.split()).translate(_VISIBLE)


def paragraphs(text: str) -> str:
    """``text`` with LF line ends, visible control characters, and no blank lines around it."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").translate(_VISIBLE).split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    return "\n".join(lines)


def clean(record: StepRecord) -> StepRecord:
    """The record as it can be stored: what ``parse_step`` gives back after ``format_step``."""
    ratio = record.ratio
    if ratio is not None:
        ratio = float(f"{ratio:.6g}") if math.isfinite(ratio) else None
    effect = re.sub(r"[^a-z-]", "", record.effect.lower())
    plain = {name: one_line(getattr(record, name)) for name in _PLAIN}
    return replace(
        replace(record, **plain),  # type: ignore[arg-type]  # none of them is anything but text
        subject=one_line(record.subject) or UNTITLED,
        body=paragraphs(record.body),
        removes=tuple(_clean_feature(feature) for feature in record.removes),
        adds=tuple(_clean_feature(feature) for feature in record.adds),
        settings=_clean_settings(record.settings),
        who=one_line(record.who.replace(";", ",")),
        effect="" if effect == "none" else effect,
        ratio=ratio,
    )


_PLAIN = (
    "action", "locus", "proposer", "why", "gate", "compile", "correctness", "profile", "trust", "platform",
    "kernel",
)  # fmt: skip


def _clean_feature(feature: Feature) -> Feature:
    name = one_line(feature.name.replace(" / ", "/"))
    while " / " in name:
        name = name.replace(" / ", "/")
    return Feature(one_line(feature.locus) or "?", name.strip("/ ") or "?")


def _clean_settings(settings: Mapping[str, str]) -> dict[str, str]:
    return {re.sub(r"[\s=]+", "_", one_line(key)) or "_": one_line(value) for key, value in settings.items()}


def format_step(stamp: Stamp, record: StepRecord) -> str:
    """The commit message of a step. ``record`` is cleaned first, so it may come from anybody."""
    record = clean(record)
    body = "\n".join(_escape(line) for line in record.body.split("\n")) if record.body else ""
    lines = "\n".join(f"{_PREFIX}{key}: {value}" for key, value in _trailers(stamp, record) if value)
    return "\n\n".join(part for part in (_escape(record.subject), body, lines) if part) + "\n"


def _trailers(stamp: Stamp, record: StepRecord) -> list[tuple[str, str]]:
    decision = f"{stamp.decision}; {record.who}; {record.why}" if record.why else stamp.decision
    if record.who and not record.why:
        decision = f"{stamp.decision}; {record.who}"
    return [
        ("Id", stamp.id),
        ("Step", str(stamp.number)),
        ("Direction", stamp.direction),
        ("Forward", stamp.forward),
        ("Forward-Why", one_line(stamp.found)),
        ("Reverses", stamp.reverses),
        ("Walk", stamp.walk),
        ("Action", record.action),
        ("Locus", record.locus),
        *(("Removes", str(feature)) for feature in record.removes),
        *(("Adds", str(feature)) for feature in record.adds),
        *(("Settings", f"{key}={value}") for key, value in record.settings.items()),
        ("Proposer", record.proposer),
        ("Decision", decision),
        ("Gate", record.gate),
        ("Compile", record.compile),
        ("Correctness", record.correctness),
        ("Profile", _profile(record)),
        ("Trust", record.trust),
        ("Platform", record.platform),
        ("Kernel", record.kernel),
        ("Schema", str(SCHEMA)),
    ]


def _profile(record: StepRecord) -> str:
    if not record.effect and record.ratio is None and not record.profile:
        return ""
    ratio = "" if record.ratio is None else f" {record.ratio:.6g}x"
    return f"{record.effect or 'none'}{ratio}" + (f"; {record.profile}" if record.profile else "")


def _escape(line: str) -> str:
    """git takes "---" for the end of a message and the scissors line for the start of a comment."""
    return "\\" + line if line.startswith(("\\", _PREFIX, "---")) or _SCISSORS in line else line


def _unescape(line: str) -> str:
    return line[1:] if line.startswith("\\") else line


def parse_step(commit: str, parent: str, author: str, seconds: int, message: str) -> Step:
    """The step that a commit records. ``seconds``: the author date, in seconds since 1970 UTC.

    Raises MessageError when the trailers are missing, repeated, or malformed.
    """
    text, found, block = message.rstrip("\n").rpartition("\n\n")
    if not found or not block.startswith(_PREFIX):
        raise MessageError("it has no Lineage trailers")
    values: dict[str, str] = {}
    features: dict[str, list[Feature]] = {"Lineage-Removes": [], "Lineage-Adds": []}
    settings: dict[str, str] = {}
    for line in block.split("\n"):
        key, _, value = line.partition(": ")
        if key in features:
            features[key].append(_feature(key, value))
        elif key == "Lineage-Settings":
            name, _, setting = value.partition("=")
            settings[name] = setting
        elif key in values:
            raise MessageError(f"the trailer {key} is there twice")
        elif key in _KNOWN or _KEY.fullmatch(key):
            values[key] = value
        else:
            raise MessageError(f"this is not a Lineage trailer: {line[:80]!r}")
    subject, _, body = text.partition("\n\n")
    if "\\" in text:
        subject, body = _unescape(subject), "\n".join(_unescape(line) for line in body.split("\n"))
    removes, adds = (tuple(found) for found in features.values())
    return _step(commit, parent, author, seconds, subject, body, values, removes, adds, settings)


def _feature(key: str, value: str) -> Feature:
    try:
        return Feature.parse(value)
    except ValueError as error:
        raise MessageError(f"{key} is {error}") from error


def _step(
    commit: str,
    parent: str,
    author: str,
    seconds: int,
    subject: str,
    body: str,
    values: dict[str, str],
    removes: tuple[Feature, ...],
    adds: tuple[Feature, ...],
    settings: dict[str, str],
) -> Step:
    get = values.get
    if get("Lineage-Schema") != str(SCHEMA):
        raise MessageError(
            f"Lineage-Schema is {get('Lineage-Schema', 'missing')}, this klineage reads {SCHEMA}"
        )
    try:
        number = int(values["Lineage-Step"])
        lineage_id, direction = values["Lineage-Id"], values["Lineage-Direction"]
        decision, _, rest = values["Lineage-Decision"].partition("; ")
        head, _, profile = get("Lineage-Profile", "").partition("; ")
        effect, _, ratio = head.partition(" ")
        ratio_value = float(ratio.removesuffix("x")) if ratio else None
        when = moment(seconds)
    except KeyError as error:
        raise MessageError(f"the trailer {error.args[0]} is missing") from error
    except ValueError as error:
        raise MessageError(f"a number is wrong ({error})") from error
    who, _, why = rest.partition("; ")
    return Step(
        commit, parent, number, subject, body, direction, get("Lineage-Action", ""),
        get("Lineage-Locus", ""), removes, settings, get("Lineage-Proposer", ""), decision, who or author,
        why, get("Lineage-Gate", ""), get("Lineage-Compile", ""), get("Lineage-Correctness", ""), profile,
        get("Lineage-Trust", ""), get("Lineage-Platform", ""), get("Lineage-Kernel", ""),
        "" if effect == "none" else effect, ratio_value, when,
        get("Lineage-Forward", ""), lineage_id, get("Lineage-Reverses", ""), get("Lineage-Walk", ""), adds,
        get("Lineage-Forward-Why", ""), get("Lineage-Copies", ""),
    )  # fmt: skip
