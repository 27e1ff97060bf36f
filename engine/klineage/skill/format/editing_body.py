"""An edit of the Markdown half as splices: the prose or the code that changed, and nothing around it."""

from __future__ import annotations

from klineage.skill.card import Card
from klineage.skill.format import body
from klineage.skill.format.body import Fence, Section
from klineage.skill.format.splicing import Splice
from klineage.skill.format.writing_body import code_part, query_fence, section, settings_part


def body_splices(
    text: str, sections: dict[str, Section], query: Fence | None, old: Card, new: Card
) -> list[Splice]:
    """What turns the anchor, the carrier's code and the notes of ``old`` into those of ``new``.

    The carrier's settings are edited where they stand already; here they come and go as a whole.
    """
    writer = _Writer(text, sections, old, new)
    writer.anchor(query)
    writer.carrier()
    writer.notes()
    return writer.splices


class _Writer:
    def __init__(self, text: str, sections: dict[str, Section], old: Card, new: Card) -> None:
        self.text = text
        self.sections = sections
        self.old = old
        self.new = new
        self.splices: list[Splice] = []

    def anchor(self, query: Fence | None) -> None:
        there = self.sections.get("Anchor")
        if self.old.anchor == self.new.anchor:
            return
        if there is None:
            self._new_section("Anchor")
            return
        new = self.new.anchor
        if self.old.anchor.text != new.text:
            ends = [there.heading.end, *((query.start, query.end) if query else ()), there.end]
            pieces = [self._trimmed(*ends[n : n + 2]) for n in range(0, len(ends), 2)]
            self._prose(there, [piece for piece in pieces if piece], body.write_prose(new.text, queries=True))
        if self.old.anchor.query != new.query:
            written = query_fence(new.query)
            if query is None:
                self._append(there, written)
            else:
                self._replace(query.start, query.end, written)

    def notes(self) -> None:
        there = self.sections.get("Notes")
        if self.old.notes == self.new.notes:
            return
        if there is None:
            self._new_section("Notes")
            return
        piece = self._trimmed(there.heading.end, there.end)
        written = body.write_prose(self.new.notes)
        if written:
            self._prose(there, [piece] if piece else [], written)
        else:
            self._replace(there.heading.start, piece[1] if piece else there.heading.end, "")

    def carrier(self) -> None:
        there = self.sections.get("Carrier")
        old, new = self.old.carrier, self.new.carrier
        changed = {
            "Before": old.before != new.before,
            "After": old.after != new.after,
            "Settings": bool(old.settings) != bool(new.settings),
        }
        if not any(changed.values()):
            return
        if there is None:
            self._new_section("Carrier")
            return
        for title, differs in changed.items():
            if differs:
                self._part(there, title)

    def _part(self, carrier: Section, title: str) -> None:
        part = carrier.parts.get(title)
        fence = part.fences[0] if part and part.fences else None
        written = self._written(title, fence)
        if part is None:
            after = body.CARRIER[body.CARRIER.index(title) :]
            behind = [carrier.parts[name].heading.start for name in after if name in carrier.parts]
            if behind:
                self._before(min(behind), f"## {title}\n\n{written}")
            else:
                self._append(carrier, f"## {title}\n\n{written}")
        elif fence is None:
            self._after(part.heading.end, written)
        elif written:
            self.splices.append(Splice(fence.start, fence.end, written))
        else:
            self._replace(part.heading.start, fence.end, "")

    def _written(self, title: str, fence: Fence | None) -> str:
        carrier = self.new.carrier
        if title == "Settings":
            return settings_part(carrier.settings)
        code = carrier.before if title == "Before" else carrier.after
        return code_part(code, self.new.surface, fence.info if fence else "")

    def _prose(self, section: Section, pieces: list[tuple[int, int]], written: str) -> None:
        if not pieces:
            self._after(section.heading.end, written)
            return
        (start, end), *others = pieces
        self._replace(start, end, written)
        for start, end in others:
            self._replace(start, end, "")

    def _new_section(self, title: str) -> None:
        written = section(self.new, title)
        behind = body.SECTIONS[body.SECTIONS.index(title) :]
        places = [self.sections[name].heading.start for name in behind if name in self.sections]
        if places:
            self._before(min(places), written)
        elif written:
            self._at_end(len(self.text), f"{written}\n")

    def _append(self, section: Section, written: str) -> None:
        """Behind all that the section holds."""
        content = self.text[section.heading.start : section.end].rstrip(" \t\r\n")
        self._after(section.heading.start + len(content), written)

    def _before(self, at: int, written: str) -> None:
        self._after(len(self.text[:at].rstrip(" \t\r\n")), written)

    def _after(self, at: int, written: str) -> None:
        if written:
            self.splices.append(Splice(at, at, f"\n\n{written}"))

    def _at_end(self, at: int, written: str) -> None:
        ending = len(self.text) - len(self.text.rstrip("\n"))
        self.splices.append(Splice(at, at, "\n" * max(0, 2 - ending) + written))

    def _replace(self, start: int, end: int, written: str) -> None:
        """Where nothing is written, the blank lines above go, too."""
        if not written:
            start = len(self.text[:start].rstrip(" \t\r\n"))
        self.splices.append(Splice(start, end, written))

    def _trimmed(self, start: int, end: int) -> tuple[int, int] | None:
        """Where the prose between is, without the blank lines around it."""
        raw = self.text[start:end]
        kept = body.prose(raw)
        if not kept:
            return None
        stop = start + len(raw.rstrip(" \t\r\n"))
        return stop - len(kept), stop
