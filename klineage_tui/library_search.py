"""What the Library place asks of a library: a query as a person states it, and the jobs that answer it."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.files import write_whole
from klineage.kernel import SUFFIXES, SURFACES

if TYPE_CHECKING:
    from klineage.lineage import Workspace
    from klineage.skill.library import Library
    from klineage.skill.retrieval import Hit
    from klineage.skill.retrieval.index import Row
    from klineage.skill.retrieval.paths import Path as Way
    from klineage.skill.retrieval.target import Target

    from klineage_tui.card_checks import Choice
    from klineage_tui.card_edits import Asked

#: What completes a platform; any other that ``parse`` knows may be typed.
PLATFORMS = (
    "nvidia-sm80",
    "nvidia-sm90",
    "nvidia-sm100",
    "cpu-x86-64-v3",
    "cpu-x86-64-v4",
    "cpu-aarch64",
    "amd-gfx942",
)
_EVERY = 100_000  # without a target every card is listed


@dataclass(frozen=True)
class Query:
    """What is looked for. What is empty is not asked about.

    words:  each must be in a card's id, intent, action or preconditions.
    kernel: a kernel that is here, by its name, or the path of a file or folder. It stands for workload and surface, and
            answers the checks; ``workload`` may still say what a file computes.
    platform: in place of the kernel's own.
    prior:  mechanisms that are there already, with commas, beside those that are seen; ``none`` for a kernel without any.
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
    failed: why there is no answer.
    """

    target: str
    hits: tuple[Hit, ...] = ()
    near: tuple[Hit, ...] = ()
    ways: tuple[Way, ...] = ()
    hidden: int = 0
    total: int = 0
    problems: tuple[str, ...] = ()
    names_target: bool = True
    failed: str = ""


def checked_query(query: Query, here: Collection[str] = ()) -> Query:
    """The query. ``here``: the names of the kernels that are here.

    Raises KlineageError, in a sentence, for a language, a platform or a kernel that is none, and for what a kernel says
    by itself.
    """
    if query.kernel:
        _check_kernel(query, here)
    if query.surface and query.surface not in SURFACES:
        raise KlineageError(f"there is no language {query.surface!r}; there are {', '.join(SURFACES)}")
    if query.platform:
        from klineage.platform import parse

        parse(query.platform)
    return query


def _check_kernel(query: Query, here: Collection[str]) -> None:
    if query.surface:
        raise KlineageError(f"{query.kernel} is written in its own language; leave surface empty, or kernel")
    if query.kernel in here:
        if query.workload:
            raise KlineageError(
                f"{query.kernel} has its own workload; leave workload empty, or name a file as kernel"
            )
    elif not _is_there(query.kernel):
        raise KlineageError(
            f"there is no kernel {query.kernel!r}: neither a lineage here, nor its :K0, nor a file or folder of yours"
        )
    elif not query.workload:
        _check_near(_path(query.kernel))
    elif "/" in query.workload and not _is_there(query.workload):
        raise KlineageError(f"there is no workload {query.workload!r}")


def _check_near(kernel: Path) -> None:
    from klineage.skill.admission.target import workload_near

    if workload_near(kernel / "kernel" if kernel.is_dir() else kernel) is None:
        raise KlineageError(
            f"no workload.py lies beside {kernel} or one folder up; say as workload what it computes"
        )


def _path(text: str) -> Path:
    """A path as typed; unlike ``Path.expanduser``, an unknown user's stays as it is."""
    return Path(os.path.expanduser(text))  # noqa: PTH111


def _is_there(text: str) -> bool:
    """Whether there is a file or folder of that name; also for names that none can have."""
    return os.path.exists(_path(text))  # noqa: PTH110


def asked_of(query: Query, here: Sequence[str]) -> tuple[Asked, ...]:
    """What is asked for a query, with what it is now; ``here`` are the names of the kernels that are here."""
    from klineage.proposer.vocabulary import ACTIONS

    from klineage_tui.card_edits import Asked

    kernels = tuple(SUFFIXES)
    return (
        Asked("words", query.words, "words of the card"),
        Asked("kernel", query.kernel, "a lineage here, or a file of yours", tuple(here), kernels),
        Asked("workload", query.workload, "of a file: gemm, or workload.py", shipped_workloads(), (".py",)),
        Asked("surface", query.surface, "c, triton or cuda, without a kernel", SURFACES),
        Asked("platform", query.platform, "nvidia-sm90, cpu-x86-64-v4", PLATFORMS),
        Asked("prior", query.prior, "what is there already: simd, unroll; or none"),
        Asked("action", query.action, "what the card does, such as pipeline", tuple(ACTIONS)),
    )


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
        _named(query, target), kept, near, ways, got.hidden, len(opened.index), problems, query.names_target
    )


def _named(query: Query, target: Target) -> str:
    """For what cards are looked for, with the kernel that it is, if there is one."""
    return f"{query.kernel}: {target.stands_at}" if query.kernel else target.stands_at


def _target(query: Query, choice: Choice | None) -> Target:
    from klineage.skill.retrieval.target import Target, target_of

    prior = tuple(part.strip() for part in query.prior.split(",") if part.strip() and part.strip() != "none")
    if choice is not None:
        read = choice.read()
        platform = query.platform or read.platform
        return target_of(read.kernel, read.workload, platform, prior=prior, action=query.action)
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


def file_choice(query: Query) -> Choice:
    """The kernel file that a query names, with the workload that it names, or the one beside the file."""
    from klineage.skill.admission.target import of_file

    from klineage_tui.card_checks import Choice

    workload = _path(query.workload) if "/" in query.workload else query.workload
    read = partial(of_file, _path(query.kernel), workload or None, query.platform or None)
    return Choice(query.kernel, "a file of yours", read)


def shipped_workloads() -> tuple[str, ...]:
    """The names of the workloads that come with klineage."""
    from klineage.resources import shipped

    return tuple(sorted(file.parent.name for file in shipped("experts").glob("*/workload.py")))


def export(library: Library, ids: Sequence[str], form: str, folder: str) -> str:
    """Write cards as Agent Skills (``one``, ``family``, ``each``) or as ``jsonl`` training records; returns what was written, in words.

    Raises KlineageError where something of another origin is in the way.
    """
    where = Path(folder).expanduser()
    if form == "jsonl":
        return _training(library, ids, where)
    from klineage.interop.agent_skills import LAYOUTS, skills
    from klineage.interop.skill_folders import clear, write

    if form not in LAYOUTS:
        raise KlineageError(f"there is no form {form!r}; there are {', '.join((*LAYOUTS, 'jsonl'))}")
    made = skills((library.get(card_id) for card_id in ids), form)
    written, gone = write(made, where), clear(made, where)
    told = f"{len(written)} Agent Skill{'s' * (len(written) != 1)} of {len(ids)} cards: {where}"
    return f"{told}; {len(gone)} of an earlier export removed" if gone else told


def _training(library: Library, ids: Sequence[str], where: Path) -> str:
    from klineage.interop.training import Shelved, lines, records

    if where.exists():
        raise KlineageError(f"{where} is there already; name another file")
    entries = [library.entry(card_id) for card_id in ids]
    shelved = [Shelved(e.card, library.path.name, e.revision) for e in entries if e.card is not None]
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
