"""The Markdown half of a card as klineage writes it."""

from __future__ import annotations

from collections.abc import Mapping

from klineage.kernel import Surface
from klineage.skill.card import Card
from klineage.skill.format import body, writing

_LANGUAGE: Mapping[Surface, str] = {"c": "c", "cuda": "cuda", "triton": "python"}


def section(card: Card, title: str) -> str:
    """The section with its heading, without a line end behind it; empty where the card has nothing to say there."""
    parts = {"Anchor": _anchor, "Carrier": _carrier, "Notes": _notes}[title](card)
    return "\n\n".join([f"# {title}", *parts]) if parts else ""


def _anchor(card: Card) -> list[str]:
    anchor = card.anchor
    return [part for part in (body.write_prose(anchor.text, queries=True), query_fence(anchor.query)) if part]


def _carrier(card: Card) -> list[str]:
    carrier = card.carrier
    parts = {
        "Before": code_part(carrier.before, card.surface),
        "After": code_part(carrier.after, card.surface),
        "Settings": settings_part(carrier.settings),
    }
    return [f"## {title}\n\n{part}" for title, part in parts.items() if part]


def _notes(card: Card) -> list[str]:
    written = body.write_prose(card.notes)
    return [written] if written else []


def query_fence(query: str) -> str:
    """A query in its fence; empty for none."""
    kept = body.prose(query)
    return body.fenced(f"{kept}\n", "query") if kept else ""


def code_part(code: str, surface: Surface, info: str = "") -> str:
    """Code in its fence, named as a person named it in ``info``; empty for none."""
    words = [word for word in info.split() if word != body.NO_NEWLINE]
    return body.fenced(code, " ".join(words) or _LANGUAGE[surface]) if code else ""


def settings_part(settings: Mapping[str, str]) -> str:
    """The settings in their fence; empty for none."""
    lines = "\n".join(writing.block(settings, loose=True))
    return body.fenced(f"{lines}\n", "yaml") if lines else ""
