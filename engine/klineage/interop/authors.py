"""Cards of the paper's authors, in both of their forms, as hypotheses: nothing is added to what they say.

Two generations of their program wrote two forms. The present one writes a ``SKILL.md`` with four keys (``skill_id, intent,
preconditions, scope``), or a JSON list of the same with a ``body``. The earlier one wrote JSON with the nine fields of the
paper: ``skill_id, intent, anchor, carrier, precondition, effect, evidence, risk, scope, verification_log``, later also
``requires, provides, conflicts``. What such a card says of effects, trials and evidence was found by another gate on machines
that are not known here: it is kept in words, in the notes, and counts for nothing until a trial here repeats it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.interop import authors_json, authors_markdown
from klineage.interop.authors_fields import Foreign, Generation
from klineage.kernel import SURFACES, Surface
from klineage.platform import parse as parse_platform
from klineage.proposer.vocabulary import normal
from klineage.skill.card import (
    Anchor,
    Card,
    Carrier,
    Contract,
    ContractFeature,
    Evidence,
    Kind,
    Precondition,
    Risk,
    Scope,
)
from klineage.skill.file import kept

_SKILL_FILE = "SKILL.md"
_LONGEST_ID = 64
_LONGEST_WORD = 40
_LARGEST = 4 << 20  # bytes of a file
_STAMP = re.compile(r"(?P<id>.+)-\d{8}T\d{6}(\.\d+)?Z-(?P<six>[0-9a-f]{6})")
_KINDS: Mapping[str, Kind] = {
    "data types": "data-types", "layout": "layout", "storage": "storage", "pipeline": "pipeline", "hardware": "hardware",
}  # fmt: skip


@dataclass(frozen=True)
class Imported:
    """One card and where it came from. said: what was changed on the way, or could not be taken over, a sentence each."""

    card: Card
    file: Path
    generation: Generation
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """What a folder or file gave. problems: of the files, and the cards in them, that were refused, a sentence each."""

    cards: tuple[Imported, ...]
    problems: tuple[str, ...]


def read(paths: Sequence[Path]) -> Reading:
    """The authors' cards in files and folders, each folder with everything under it.

    One broken card never hides the others. Raises KlineageError for a path that is not there, or where nothing is found.
    """
    found: list[Imported] = []
    problems: list[str] = []
    for file in [file for path in paths for file in _files(path)]:
        try:
            foreign, broken = _foreign(file)
        except KlineageError as error:
            problems.append(str(error))
            continue
        problems += broken
        for one in foreign:
            try:
                found.append(_card(one, file))
            except KlineageError as error:
                problems.append(f"{file}{f' ({one.name})' if one.name else ''}: {error}")
    if not found and not problems:
        names = ", ".join(map(str, paths))
        raise KlineageError(
            f"there is no {_SKILL_FILE} and no JSON file in {names}; name a folder of the authors' cards"
        )
    return Reading(tuple(_apart(found)), tuple(problems))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(
            file
            for file in path.rglob("*")
            if file.is_file() and (file.name == _SKILL_FILE or file.suffix == ".json")
        )
    if not path.is_file():
        raise KlineageError(f"there is no file or folder {path}")
    return [path]


def _foreign(file: Path) -> tuple[list[Foreign], list[str]]:
    try:
        if file.stat().st_size > _LARGEST:
            raise KlineageError(f"{file} has more than {_LARGEST:,} bytes; a card is a short text")
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise KlineageError(f"{file} is not UTF-8; save it in that encoding") from error
    except OSError as error:
        raise KlineageError(f"cannot read {file}: {error.strerror}") from error
    if file.suffix == ".json":
        return authors_json.read(text, file)
    return [authors_markdown.read(text, file)], []


def _card(one: Foreign, file: Path) -> Imported:
    said: list[str] = []
    surface = _surface(one)
    platforms = tuple(dict.fromkeys(_platform(name, said) for name in one.platforms))
    evidence = Evidence(
        "e1",
        "import",
        note=f"{one.generation} of the paper's authors, {file.name} of {file.parent.name or file}",
    )
    card = Card(
        id=_id(one.name, surface),
        intent=one.intent,
        action=_action(one),
        surface=surface,
        scope=Scope(one.cases or ("*",), (surface,), platforms or ("*",), one.prior or ("*",)),
        contract=Contract(
            *(
                tuple(dict.fromkeys(map(_feature, side)))
                for side in (one.requires, one.provides, one.conflicts)
            )
        ),
        preconditions=tuple(_precondition(n, text) for n, text in enumerate(one.preconditions, start=1)),
        risks=tuple(Risk(text, origin="import", evidence=("e1",)) for text in one.risks),
        evidence=(evidence,),
        anchor=Anchor(one.anchor),
        carrier=Carrier(one.before, one.after, evidence=("e1",) if one.before or one.after else ()),
        notes=one.notes,
    )
    others = [language for language in one.languages if language not in (surface, "*")]
    if others:
        said.append(
            f"it also names {', '.join(others)}; a card has one language, and its code is in {surface}"
        )
    return Imported(card, file, one.generation, tuple(said))


def _surface(one: Foreign) -> Surface:
    for language in one.languages:
        for known in SURFACES:
            if language.lower() == known:
                return known
    raise KlineageError(
        f"its languages are {', '.join(one.languages) or 'none'}; cards here are of {', '.join(SURFACES)}, so it is left out"
    )


def _platform(name: str, said: list[str]) -> str:
    """Their ``nvidia-sm90a-cuda13`` is hardware with a toolkit; the hardware is what a scope compares."""
    if name == "*":
        return name
    hardware = re.sub(r"-(cuda|cann|rocm)[\w.]*$", "", name.lower())
    try:
        found = str(parse_platform(hardware))
    except KlineageError:
        said.append(f"the platform {name} is not known here; it is kept as it is and matches nothing")
        return name
    if found != name:
        said.append(f"the platform {name} is written {found}")
    return found


def _id(name: str, surface: Surface) -> str:
    """``fmha.online-softmax`` in CUDA is ``cuda.fmha-online-softmax``; ``cuda.kv-vector-copy`` stays what it is."""
    family, _, rest = name.partition(".")
    words = rest if family == surface and rest else name
    kebab = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    if not kebab:
        raise KlineageError(f"its skill_id {name!r} has no letter or digit, so it cannot name a card")
    return _fitting(f"{surface}.{kebab}", name)


def _fitting(card_id: str, seed: str) -> str:
    """An id of at most 64 characters: a long one ends in six digits that its full name decides."""
    if len(card_id) <= _LONGEST_ID:
        return card_id
    return f"{card_id[: _LONGEST_ID - 7].rstrip('-')}-{hashlib.sha256(seed.encode()).hexdigest()[:6]}"


def _apart(found: Sequence[Imported]) -> Iterator[Imported]:
    """Their stores hold several cards of one name, told apart by the end of the folder's; the later ones keep that end."""
    taken: set[str] = set()
    for one in found:
        name = one.card.id
        if name in taken:
            one = renamed(one)
            name = one.card.id
        if name in taken:
            continue  # the same card once more
        taken.add(name)
        yield one


def renamed(one: Imported) -> Imported:
    """The card under a name of its own: its id with the end of its folder's name, else six digits of what it says."""
    match = _STAMP.fullmatch(one.file.parent.name)
    end = match["six"] if match else _digits(one.card)
    name = f"{one.card.id[: _LONGEST_ID - 7].rstrip('-')}-{end}"
    said = f"another card has the name {one.card.id}, so it is {name}"
    return replace(one, card=replace(one.card, id=name), said=(*one.said, said))


def says_the_same(one: Card, other: Card) -> bool:
    """Whether two cards are one, wherever they were found and whatever they are called."""
    return replace(kept(one), id="", evidence=()) == replace(kept(other), id="", evidence=())


def _digits(card: Card) -> str:
    """Six digits that what a card says decides, and not where it was found."""
    said = repr(replace(card, evidence=()))
    return hashlib.sha256(said.encode()).hexdigest()[:6]


def _action(one: Foreign) -> str:
    """Their own word: the action that the earlier form records, else the skill's own name, which claims nothing."""
    word = one.action or one.name.rpartition(".")[2]
    word = re.sub(r"[^a-z0-9]+", "_", word.lower()).strip("_") or "imported"
    word = word if word[0].isalpha() else f"x_{word}"
    if len(word) > _LONGEST_WORD:
        word = word[:_LONGEST_WORD].rpartition("_")[0] or word[:_LONGEST_WORD]
    return normal(word)


def _feature(feature: Mapping[str, Any]) -> ContractFeature:
    """Their places are names of their own kernels: only that the mechanism is somewhere can be asked of another."""
    name = re.sub(r"[^a-z0-9]+", "_", str(feature.get("name", "")).lower()).strip("_")
    if not name:
        raise KlineageError("a feature of its contract has no name")
    return ContractFeature(name, "hardware" if feature.get("locus") == "hardware" else "kernel")


def _precondition(number: int, text: str) -> Precondition:
    """``Layout: ...`` says its kind; where a sentence does not, that is marked beside the one that it is filed under."""
    word, colon, rest = text.partition(":")
    kind = _KINDS.get(" ".join(word.lower().split())) if colon else None
    if kind is None:
        return Precondition(
            f"p{number}", "layout", text, origin="import", evidence=("e1",), doubt="its kind is not stated"
        )
    return Precondition(f"p{number}", kind, rest.strip(), origin="import", evidence=("e1",))
