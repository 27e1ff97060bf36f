"""What the Library place asks of a library: a query as a person states it, and the jobs that answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.files import write_whole
from klineage.kernel import SURFACES

if TYPE_CHECKING:
    from klineage.lineage import Workspace
    from klineage.skill.library import Library
    from klineage.skill.retrieval import Hit
    from klineage.skill.retrieval.index import Row
    from klineage.skill.retrieval.paths import Path as Way
    from klineage.skill.retrieval.target import Target

    from klineage_tui.card_checks import Choice

_EVERY = 100_000  # without a target every card is listed


@dataclass(frozen=True)
class Query:
    """What is looked for. What is empty is not asked about.

    words:  each must be in a card's id, intent, action or preconditions.
    kernel: the name of a kernel that stands for workload, surface, platform and prior, and answers the checks.
    prior:  mechanisms that are there already, with commas; ``none`` for a kernel that has none.
    """

    words: str = ""
    action: str = ""
    workload: str = ""
    surface: str = ""
    platform: str = ""
    prior: str = ""
    kernel: str = ""
    hypotheses: bool = False

    @property
    def names_target(self) -> bool:
        """Whether there is anything that a card can hold for."""
        return bool(self.kernel or self.workload or self.surface or self.platform or self.prior)


@dataclass(frozen=True)
class Found:
    """The answer: what holds, best first; what does not yet; the ways on; what was left out, and what is broken.

    names_target: whether there was anything that a card could hold for; otherwise all cards with the words are there.
    """

    target: str
    hits: tuple[Hit, ...] = ()
    near: tuple[Hit, ...] = ()
    ways: tuple[Way, ...] = ()
    hidden: int = 0
    total: int = 0
    problems: tuple[str, ...] = ()
    names_target: bool = True


def checked_query(query: Query) -> Query:
    """The query. Raises KlineageError, in a sentence, for a language or a platform that is none."""
    if query.surface and query.surface not in SURFACES:
        raise KlineageError(f"there is no language {query.surface!r}; there are {', '.join(SURFACES)}")
    if query.platform:
        from klineage.platform import parse

        parse(query.platform)
    return query


def search(library: Library, query: Query, choice: Choice | None) -> Found:
    """Answer a query. ``choice`` is the kernel that it names. Raises KlineageError when that cannot be read."""
    from klineage.skill.retrieval import retrieve
    from klineage.skill.retrieval.index_file import open_index, source_of
    from klineage.skill.retrieval.paths import order_of, paths

    opened = open_index(source_of(library))
    target = _target(query, choice)
    many = 5 if query.names_target else _EVERY
    got = retrieve(opened.index, target, k=many, near=many, hypotheses=query.hypotheses)
    ways = paths(opened.index, target, order_of(library), hypotheses=query.hypotheses)
    kept = tuple(hit for hit in got.hits if has_words(hit.row, query.words))
    near = tuple(hit for hit in got.near if has_words(hit.row, query.words))
    problems = tuple(opened.problems.values())
    return Found(
        target.stands_at, kept, near, ways, got.hidden, len(opened.index), problems, query.names_target
    )


def _target(query: Query, choice: Choice | None) -> Target:
    from klineage.skill.retrieval.target import Target, target_of

    prior = tuple(part.strip() for part in query.prior.split(",") if part.strip() and part.strip() != "none")
    if choice is not None:
        read = choice.read()
        return target_of(read.kernel, read.workload, read.platform, prior=prior, action=query.action)
    had = prior if query.prior.strip() else None
    return Target(query.workload, query.surface, query.platform, had, query.action)


def has_words(row: Row, words: str) -> bool:
    """Whether a card speaks of every word: in its id, intent, action or preconditions."""
    text = " ".join((row.id, row.intent, row.action, *(c.text for c in row.conditions))).lower()
    return all(word in text for word in words.lower().split())


def kernels(workspace: Workspace, open_lineage: str = "") -> tuple[Choice, ...]:
    """The kernels that cards can be looked for: the states that walks are at, the open one first, then the experts."""
    from klineage_tui.card_checks import choices_of

    found: list[Choice] = []
    for surface in SURFACES:
        found += choices_of(workspace, surface, open_lineage)
    return tuple(sorted(found, key=lambda choice: choice.name != open_lineage))


def export(library: Library, ids: Sequence[str], form: str, folder: str) -> str:
    """Write cards as Agent Skills (``one``, ``family``, ``each``) or as ``jsonl`` training records; returns what was written, in words.

    Raises KlineageError where something of another origin is in the way.
    """
    where = Path(folder).expanduser()
    if form == "jsonl":
        return _training(library, ids, where)
    from klineage.interop.agent_skills import LAYOUTS, skills, write

    if form not in LAYOUTS:
        raise KlineageError(f"there is no form {form!r}; there are {', '.join((*LAYOUTS, 'jsonl'))}")
    written = write(skills((library.get(card_id) for card_id in ids), form), where)
    return f"{len(written)} Agent Skill{'s' * (len(written) != 1)} of {len(ids)} cards: {where}"


def _training(library: Library, ids: Sequence[str], where: Path) -> str:
    from klineage.interop.training import Shelved, lines, records

    if where.exists():
        raise KlineageError(f"{where} is there already; name another file")
    entries = [library.entry(card_id) for card_id in ids]
    shelved = [Shelved(e.card, e.revision, str(library.path)) for e in entries if e.card is not None]
    missing: list[str] = []
    data = list(lines(records(shelved, [library], missing)))
    try:
        write_whole(where, b"".join(data), 0o644)
    except OSError as problem:
        raise KlineageError(f"cannot write {where}: {problem.strerror}") from problem
    left_out = [f"left out: {why}" for why in missing[:2]]
    return ". ".join((f"{len(data)} training records are in {where}", *left_out))


def with_kernel(query: Query, name: str) -> Query:
    """The query for a kernel, which says everything else by itself."""
    return replace(query, kernel=name, workload="", surface="", platform="", prior="")
