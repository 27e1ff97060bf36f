"""Cards as Agent Skills: folders with a SKILL.md, which coding agents find by its description and read when it fits.

Three layouts: ``one`` skill for a library (clients show an agent the descriptions of all skills at once, and some cut that
list at a few thousand characters), one for each workload ``family``, or one for ``each`` card. In the first two every card
is a file in ``references/``, one level deep as the format wants it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import klineage
from klineage.errors import KlineageError
from klineage.interop.told import best_effect, effect, sentence, told
from klineage.skill.card import Card

Layout = Literal["one", "family", "each"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

#: The default folder name of a whole library's skill.
NAME = "kernel-optimization-cards"

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024
_MOST_CARDS = 400  # one line each, and a body stays under 500 lines
#: The format allows no angle brackets in a description, and readers take three hyphens for the end of the front matter.
_IN_WORDS = {"<=": " at most ", ">=": " at least ", "->": " to ", "<": " below ", ">": " above "}
#: In the metadata: what tells an exported folder from somebody else's.
MARK = "klineage"
#: And what tells the skill of one card, which has no further files.
ALONE = "\n  layout: each\n"
_REPLACED = re.compile("|".join(["-{3,}", *map(re.escape, _IN_WORDS)]))


@dataclass(frozen=True)
class Skill:
    """One folder: its name, the bytes of its files by their paths in it, and the name of the export that it is part of."""

    name: str
    files: Mapping[str, bytes]
    export: str = NAME


def skills(cards: Iterable[Card], layout: Layout = "one", *, name: str = NAME) -> tuple[Skill, ...]:
    """The cards as Agent Skills, in the order of their names.

    name: of the one skill, or what each family's name begins with. Raises KlineageError for a name that the format refuses,
    for no cards, and for more cards than one SKILL.md can list.
    """
    kept = sorted(cards, key=lambda card: card.id)
    if not kept:
        raise KlineageError(
            "there is no card to export; klineage card list shows the library, --all adds hypotheses"
        )
    if layout == "each":
        return tuple(_each(card, _checked(name)) for card in kept)
    if layout == "one":
        return (_many(_checked(name), "kernels", kept, name),)
    _checked(name)
    found: dict[str, dict[str, Card]] = {}
    for card in kept:
        for family in families(card):
            found.setdefault(_named(name, family), {})[card.id] = card
    return tuple(
        _many(one, one.removeprefix(f"{name}-"), list(found[one].values()), name) for one in sorted(found)
    )


def _named(name: str, family: str) -> str:
    """The name of a family's skill; one that would be too long ends in six digits that the family decides."""
    whole = f"{name}-{_kebab(family)}"
    if len(whole) <= _LONGEST_NAME:
        return whole
    cut = whole[: _LONGEST_NAME - 7].rstrip("-")
    return _checked(f"{cut}-{hashlib.sha256(family.encode('utf-8', 'replace')).hexdigest()[:6]}")


def families(card: Card) -> tuple[str, ...]:
    """The workloads that a card speaks for: where it was accepted, and where its effects were shown; else ``any``."""
    tried = [trial.workload for trial in card.verification if trial.accepted]
    found = tuple(dict.fromkeys([*(one.workload for one in card.effects), *tried]))
    return found or tuple(w for w in card.scope.workloads if w != "*") or ("any",)


def _each(card: Card, export: str) -> Skill:
    name = card.id.replace(".", "-")
    gains = f" Gains {effect(best_effect(card.effects))}." if card.effects else ""
    use = f"Use when optimizing a {_language(card)} kernel where this holds: {_conditions(card)}"
    body = told(card).split("\n", 1)[1]
    description = f"{sentence(card.intent).rstrip('.')}.{gains} {use}"
    document = _document(name, description, [card], f"# {name}\n{body}", f"{export}{ALONE.rstrip()}")
    return Skill(name, {"SKILL.md": document}, export)


def _conditions(card: Card) -> str:
    needs = [f"{feature.name} is there" for feature in card.contract.requires]
    known = [*needs, *(sentence(one.text, 160).rstrip(".") for one in card.preconditions)]
    return "; ".join(known) + "." if known else "nothing is required that is known."


def _many(name: str, family: str, cards: list[Card], export: str) -> Skill:
    if len(cards) > _MOST_CARDS:
        raise KlineageError(
            f"{len(cards)} cards are more than one SKILL.md can list ({_MOST_CARDS}); say --layout family or each"
        )
    actions = sorted({part for card in cards for part in card.action.split("+")})
    languages = sorted({_language(card) for card in cards})
    of = "" if family in ("kernels", "any") else f" found on {family}"
    description = (
        f"Optimizations of {', '.join(languages)} compute kernels{of}, each with what must hold first, what it gained, and what "
        f"breaks without it. Use when writing or speeding up such a kernel: {', '.join(actions)}."
    )
    lines = [
        line
        for language in languages
        for line in _listed(language, [c for c in cards if _language(c) == language])
    ]
    body = "\n".join(
        [f"# {name}", "", *_HOW, *lines, "", "Numbers stand with how they were obtained: measured-gpu and measured-cpu are times, "
         "interpreted is an exact count and says nothing of time."]
    )  # fmt: skip
    files = {f"references/{card.id}.md": told(card).encode() for card in cards}
    document = _document(name, description, cards, body + "\n", export)
    return Skill(name, {"SKILL.md": document, **files}, export)


_HOW = (
    "Before you use a card, read its file: it says where it acts, what must hold *before* it, and what fails otherwise.",
    "",
    "1. Say what the kernel has already, and what its workload, language and hardware are.",
    "2. Take a card whose conditions hold here. What it requires must be there first.",
    "3. Put its change into your code; the numbers in the example belong to the example.",
    "4. Check that the result is right and that it is faster before you take the next.",
    "",
    "Where klineage is installed, `klineage retrieve KERNEL --workload W` says which hold, and `klineage gate` judges the result.",
)


def _listed(language: str, cards: Iterable[Card]) -> Iterator[str]:
    yield from ("", f"## {language}", "")
    for card in cards:
        gain = f" {effect(best_effect(card.effects))}." if card.effects else ""
        mark = "" if card.status == "admitted" else f" ({card.status})"
        yield f"- [{card.id}](references/{card.id}.md){mark}: {_plain(sentence(card.intent, 160))}{_plain(gain)}"


def _plain(text: str) -> str:
    """Text in a list of links: what Markdown would take for one is said to be none."""
    return text.replace("[", "\\[")


def _document(name: str, description: str, cards: list[Card], body: str, export: str) -> bytes:
    plain = _REPLACED.sub(lambda match: _IN_WORDS.get(match[0], "-"), description)
    said = sentence(plain, _LONGEST_DESCRIPTION)
    states = sorted({card.status for card in cards})
    front = [
        f"name: {name}",
        f"description: {json.dumps(said, ensure_ascii=False)}",
        "metadata:",
        f"  made-by: {MARK} {klineage.__version__}",
        f"  export: {export}",
        f"  cards: {json.dumps(str(len(cards)))}",
        f"  status: {json.dumps(', '.join(states))}",
    ]
    return "\n".join(["---", *front, "---", "", body]).encode()


def _language(card: Card) -> str:
    return {"c": "C", "cuda": "CUDA", "triton": "Triton"}[card.surface]


def _kebab(word: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") or "any"


def _checked(name: str) -> str:
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise KlineageError(
            f"{name!r} cannot name an Agent Skill; use at most {_LONGEST_NAME} of a-z, 0-9 and single hyphens, with --name"
        )
    return name
