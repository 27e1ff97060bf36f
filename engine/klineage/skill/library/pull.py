"""Bringing another library's cards into ours: both histories go on in one commit, or nothing is changed.

What only one side changed is taken as it is. What both changed is merged field by field; where that leaves something
to decide, every conflict is named by card, field and line, and nothing happens until a person has taken a side. A card
that is missing there is not removed here: cards are retired, not deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from klineage.errors import KlineageError
from klineage.skill.card import check_id
from klineage.skill.file import parse
from klineage.skill.library.bringing import Names, bring_lineages, cited_by, names_here, renamed
from klineage.skill.library.folder import blob_hash
from klineage.skill.library.git import Change, GitShelf, Side, listing
from klineage.skill.library.hands import by_hand
from klineage.skill.library.history import Word, undone
from klineage.skill.library.joining import Hands
from klineage.skill.library.settling import CardConflict, Choice, settled
from klineage.skill.library.source import Source, source_at
from klineage.skill.library.writing import report_name

__all__ = ["CardConflict", "Choice", "Conflicts", "Pulled", "pull"]


class Conflicts(KlineageError):
    """Both sides changed the same fields. ``conflicts`` has each; nothing was changed."""

    def __init__(self, name: str, conflicts: tuple[CardConflict, ...]) -> None:
        named = ", ".join(f"{item.card}: {item.conflict.field}" for item in conflicts[:4])
        more = f" and {len(conflicts) - 4} more" if len(conflicts) > 4 else ""
        super().__init__(
            f"{name} and this library have changed the same fields: {named}{more}; nothing was changed, "
            "take a side of each with --take CARD:FIELD=ours or =theirs, of a whole card with --take CARD=theirs, "
            "of all with --take '*=theirs'"
        )
        self.conflicts = conflicts


@dataclass(frozen=True)
class Pulled:
    """What came of a pull.

    lineages: those that came, by what they are called here; renamed: of these, what the source calls those whose name
    was taken. problems: what was left out, a sentence each, by file and line.
    """

    commit: str
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    lineages: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@dataclass
class _Merge:
    """What a merge will write, as it is found."""

    files: dict[str, bytes] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    conflicts: list[CardConflict] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def pull(shelf: GitShelf, where: str, who: str = "", taken: Choice | None = None) -> Pulled:
    """Bring the cards of another library (see ``source_at``) here, with the reports and lineages that they cite.

    Raises Conflicts, with nothing changed, where both sides changed a field and ``taken`` does not say whose to take.
    """
    source = source_at(shelf, where)
    cited = cited_by(source)
    names = names_here(shelf, cited)
    merges: list[_Merge] = []

    def plan(tip: str) -> Change | None:
        merges.append(_merged(shelf, source, tip, taken or {}, names))
        merge = merges[-1]
        if merge.conflicts:
            raise Conflicts(source.name, tuple(merge.conflicts))
        return _change(shelf, source, merge, who)

    try:
        plan(shelf.tip())
        lineages, missing = bring_lineages(shelf, source, cited)
        names = names_here(shelf, cited)
        commit = shelf.commit(plan)
    finally:
        if source.workspace is not None:
            source.workspace.close()
    merge = merges[-1]
    problems = (*source.odd, *merge.problems, *missing)
    called = {name: theirs for name, theirs in lineages.items() if name != theirs}
    return Pulled(commit, tuple(merge.added), tuple(merge.changed), tuple(lineages), called, problems)


def _change(shelf: GitShelf, source: Source, merge: _Merge, who: str) -> Change | None:
    title = f"Pull {source.name}: {len(merge.added)} new, {len(merge.changed)} changed"
    word = Word(title, kind="pull")
    if _is_known(shelf, source):
        return Change(word, merge.files, who=who) if merge.files else None
    if source.commit:
        return Change(word, merge.files, parents=(source.commit,), who=who)
    said = Word(f"Keep what {source.name} holds", kind="snapshot", source=source.mark)
    side = Side(said, source.files, (source.base,) if source.base else ())
    return Change(word, merge.files, side=side, who=who)


def _is_known(shelf: GitShelf, source: Source) -> bool:
    """Whether all that the source holds is what both come from: however often it was merged since, there is nothing new."""
    kept = {
        path: at
        for path, at in listing(shelf.git, source.base).items()
        if at and path.startswith(("cards/", "reports/"))
    }
    return bool(source.base) and shelf.contents(kept) == source.files


def _merged(shelf: GitShelf, source: Source, tip: str, taken: Choice, names: Names) -> _Merge:
    """What the branch at ``tip`` becomes with the source's files in it, their lineages called as they are here."""
    merge = _Merge()
    ours_at, base_at = shelf.listing(tip), listing(shelf.git, source.base)
    wanted = {path: at for path, at in ours_at.items() if at and path in source.files}
    ours = shelf.contents(wanted)
    base = shelf.contents({path: at for path, at in base_at.items() if at and path in source.files})
    for path, theirs in sorted(source.files.items()):
        if path.startswith("reports/"):
            if theirs not in (ours.get(path), base.get(path)):
                _report(merge, source, path, theirs, taken=path in ours_at)
            continue
        sides = [data and renamed(data, names) for data in (base.get(path), ours.get(path), theirs)]
        before, mine, now = sides[0], sides[1], sides[2] or theirs
        if now in (before, mine):
            _keep(merge, path, ours.get(path), mine)
        elif before is not None or mine is None:
            _card(merge, source, path, (before, mine, now), Hands(), taken)
        elif not _was_ours(shelf, tip, path, theirs):
            hands = Hands(by_hand(shelf, tip, path), by_hand(shelf, source.commit, path))
            _card(merge, source, path, (before, mine, now), hands, taken)
    return merge


def _keep(merge: _Merge, path: str, ours: bytes | None, now: bytes | None) -> None:
    """Nothing is to be taken; our card may yet call a lineage what only they call it."""
    if now and now != ours:
        merge.files[path] = now
        merge.changed.append(_card_id(path))


def _was_ours(shelf: GitShelf, tip: str, path: str, theirs: bytes) -> bool:
    """Whether they have an earlier version of our own card, so that there is nothing to take; what an undone decision had
    brought was never ours."""
    back = {entry.commit for entry in undone(reversed(shelf.log(tip, first_parent=True)))}
    commits = [e.commit for e in shelf.log(tip, path, first_parent=True) if e.commit not in back]
    return blob_hash(theirs) in shelf.hashes(commits, path)


def _report(merge: _Merge, source: Source, path: str, theirs: bytes, *, taken: bool) -> None:
    if taken or path != f"reports/{report_name(theirs)}":
        merge.problems.append(f"{path} of {source.name} is not what its name says; it was left out")
    else:
        merge.files[path] = theirs


def _card(
    merge: _Merge,
    source: Source,
    path: str,
    sides: tuple[bytes | None, bytes | None, bytes],
    hands: Hands,
    taken: Choice,
) -> None:
    base, ours, theirs = sides
    card_id = _card_id(path)
    try:
        check_id(card_id)
        card = parse(theirs, f"{source.name}: {path}")
        if ours is None or ours == base:
            merge.files[path] = theirs
            (merge.added if ours is None else merge.changed).append(card_id)
            return
        data, conflicts = settled(path, base, ours, card, hands, taken)
    except KlineageError as error:
        merge.problems.append(str(error) if ours is None else f"{error} ({card_id} was left as it is)")
        return
    merge.conflicts += conflicts
    if data != ours and not conflicts:
        merge.files[path] = data
        merge.changed.append(card_id)


def _card_id(path: str) -> str:
    return path.removeprefix("cards/").removesuffix(".md")
