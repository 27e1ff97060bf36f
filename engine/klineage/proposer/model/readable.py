"""The text of a streamed JSON answer as a person reads it, while it is still being written."""

from __future__ import annotations

from dataclasses import dataclass, field

_HEADINGS = {
    "rationale": "",
    "title": "\n\n",
    "source": "\n\n",
    "search": "\n\nreplace:\n",
    "replace": "\nby:\n",
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "", "b": "", "f": ""}


@dataclass
class Readable:
    """Feed it the pieces of an answer; it gives what can be shown: reasons, title and code, without the JSON.

    It never fails: what is no JSON comes out as nothing, since the whole answer is judged at its end.
    """

    _key: str = ""
    _string: list[str] = field(default_factory=list)
    _inside: bool = False
    _escape: str = ""
    _high: int = 0
    _is_value: bool = False

    def feed(self, piece: str) -> str:
        """What the next piece adds to the text."""
        return "".join(self._character(c) for c in piece)

    def _character(self, c: str) -> str:
        if not self._inside:
            if c == '"':
                self._inside, self._string = True, []
                return _HEADINGS.get(self._key, "") if self._is_value else ""
            if c == ":":
                self._is_value = True
            elif c in ",{[":
                self._is_value = False
            return ""
        if self._escape:
            return self._escaped(c)
        if c == "\\":
            self._escape = c
            return ""
        if c == '"':
            self._inside = False
            if not self._is_value:
                self._key = "".join(self._string)
            return ""
        return self._said(c)

    def _escaped(self, c: str) -> str:
        self._escape += c
        if self._escape[1] != "u":
            self._escape = ""
            return self._said(_ESCAPES.get(c, c))
        if len(self._escape) < 6:
            return ""
        digits, self._escape = self._escape[2:], ""
        try:
            code = int(digits, 16)
        except ValueError:
            return ""
        high, self._high = self._high, code if 0xD800 <= code < 0xDC00 else 0
        if self._high:
            return ""  # the first half of a character
        if 0xDC00 <= code < 0xE000:
            return self._said(chr(0x10000 + ((high - 0xD800) << 10) + code - 0xDC00) if high else "\ufffd")
        return self._said(chr(code))

    def _said(self, text: str) -> str:
        if not self._is_value:
            self._string.append(text)
            return ""
        return text if self._key in _HEADINGS else ""
