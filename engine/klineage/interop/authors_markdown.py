"""The authors' SKILL.md: four keys in the front matter, then a recipe in Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.interop import authors_fields as fields
from klineage.interop.authors_fields import Foreign

KEYS = frozenset({"skill_id", "intent", "preconditions", "scope"})
#: Keys by which other files of the same name are told: an Agent Skill, and one of this project's cards.
_AGENT_SKILL = {"name", "description"}

_HEADING = re.compile(r"(#{1,2}) +(.+?)\s*")
_FENCE = re.compile(r"(`{3,})[^`]*")


def read(text: str, file: Path) -> Foreign:
    """One SKILL.md. Raises KlineageError, with file and line, for one that is not of their form, and names the form it is of."""
    first, _, rest = text.replace("\r\n", "\n").partition("\n")
    end = re.search(r"^---[ \t]*$", rest, re.MULTILINE)
    if first.strip() != "---" or end is None:
        raise KlineageError(f"{file}:1: a SKILL.md begins with front matter between two lines of ---")
    front = _yaml(rest[: end.start()], file)
    keys = set(map(str, front))
    if keys >= _AGENT_SKILL:
        raise KlineageError(
            f"{file}: this is an Agent Skill, and no card of the paper's authors (those have skill_id and scope)"
        )
    if keys != KEYS:
        from klineage.interop.authors_json import FORMS

        for form, known in FORMS.items():
            if keys == known:
                raise KlineageError(f"{file}: this is their {form} as a SKILL.md; save it as a .json file")
        raise fields.unlike(keys, str(file), {"SKILL.md": KEYS})
    return foreign(front, rest[end.end() :], str(file), "SKILL.md")


def foreign(front: dict[str, Any], body: str, where: str, generation: fields.Generation) -> Foreign:
    """The four keys and the recipe, which is split where the authors' headings are; the rest of it becomes notes."""
    scope = fields.scope(front["scope"], where)
    parts = _sections(body)
    before, after = _code(parts.pop("Before", "")), _code(parts.pop("After", ""))
    overview = parts.pop("Overview", "")
    parts.pop("Scope", None)  # what the front matter says, once more
    notes = [f"{title}\n\n{text}" if title else text for title, text in parts.items() if text]
    return Foreign(
        generation,
        fields.text(front["skill_id"], "skill_id", where),
        fields.text(front["intent"], "intent", where),
        fields.texts(front["preconditions"], "preconditions", where),
        scope.get("cases", ()),
        scope.get("languages", ()),
        scope.get("platforms", ()),
        anchor=overview,
        before=before,
        after=after,
        notes="\n\n".join(notes),
    )


def _yaml(text: str, file: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        found = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 2
        raise KlineageError(f"{file}:{line}: not valid YAML: {error.problem}") from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise KlineageError(f"{file}:2: not valid YAML ({type(error).__name__})") from error
    if not isinstance(found, dict):
        raise KlineageError(f"{file}:2: the front matter must have keys: {', '.join(sorted(KEYS))}")
    return found


def _sections(body: str) -> dict[str, str]:
    """The text under each heading of the first two levels, in order; headings inside fences are code."""
    found: dict[str, list[str]] = {"": []}
    lines, fence = found[""], ""
    for line in body.split("\n"):
        mark = _FENCE.fullmatch(line.strip())
        if mark and not fence:
            fence = mark[1]
        elif fence and line.strip() == fence:
            fence = ""
        heading = None if fence else _HEADING.fullmatch(line)
        if heading:
            lines = found.setdefault(heading[2], [])
        else:
            lines.append(line)
    return {title: "\n".join(text).strip() for title, text in found.items()}


def _code(section: str) -> str:
    """What is between the fences of a section, several of them with a blank line between; else the section itself."""
    pieces = re.findall(r"^(`{3,})[^\n`]*\n(.*?)^\1[ \t]*$", section, re.MULTILINE | re.DOTALL)
    return "\n".join(code for _, code in pieces) if pieces else section
