"""In what a kernel differs from everything that a card was lifted from: only such a trial can admit it.

Another size of the same operator is no difference, and neither is another name for it.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.lineage import Workspace
from klineage.skill.admission.target import Target
from klineage.skill.card import Card
from klineage.walk import Walk
from klineage.workload import Workload

_SIZES = ("SIZES", "HIDDEN", "DISTRIBUTIONS")

#: A workspace in which a cited lineage can be read, for a block: ``Library.lineage``.
Opened = Callable[[str], AbstractContextManager[Workspace]]


@dataclass(frozen=True)
class Source:
    """One state of a lineage that a card was lifted from.

    operator: what its workload computes, without its sizes (see ``operator_of``).
    actions:  the mechanisms that the state has.
    capabilities: what the compiler is told of the instruction set, ``-march=x86-64-v2``.
    """

    lineage: str
    workload: str
    operator: str
    surface: str
    platform: str
    actions: frozenset[str]
    capabilities: frozenset[str] = frozenset()


def operator_of(workload: Workload) -> str:
    """What a workload computes, whatever its sizes, name and words: equal for two sizes of one operator."""
    try:
        tree = ast.parse(workload.source)
    except SyntaxError:
        return workload.hash
    body = [node for node in tree.body if not _is_sizes(node) and not isinstance(node, ast.Expr)]
    text = "\n".join(ast.dump(node) for node in body)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _is_sizes(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else ()
    return any(isinstance(target, ast.Name) and target.id in _SIZES for target in targets)


def source_lineages(card: Card) -> tuple[str, ...]:
    """The lineages whose transitions a card cites."""
    cited = (item.lineage for item in card.evidence if item.kind == "transition" and item.lineage)
    return tuple(dict.fromkeys(cited))


def sources(card: Card, opened: Opened) -> tuple[Source, ...]:
    """Every state of every lineage that the card cites a transition of.

    Raises KlineageError where a cited lineage cannot be read: then nothing can be known to be held out from it.
    """
    found: list[Source] = []
    for lineage_id in source_lineages(card):
        with opened(lineage_id) as workspace:
            found += _states(workspace, lineage_id)
    return tuple(found)


def _states(workspace: Workspace, lineage_id: str) -> list[Source]:
    from klineage.proposer.rules import features

    walk = Walk(workspace, lineage_id)
    steps = walk.forward()
    if not steps:
        raise KlineageError(
            f"{lineage_id} in {workspace.path} is not sealed any more, so what the card was lifted from is not known; "
            f"klineage seal {lineage_id}"
        )
    workload, operator = walk.workload, operator_of(walk.workload)
    found = []
    for step in steps:
        meta, kernel = workspace.meta(step.commit), walk.kernel_at(step.commit)
        actions = frozenset(feature.name for feature in features(kernel))
        found.append(
            Source(
                lineage_id,
                workload.name,
                operator,
                meta.surface,
                meta.platform,
                actions,
                capabilities(kernel),
            )
        )
    return found


def capabilities(kernel: Kernel) -> frozenset[str]:
    """The declared flags that say which instructions there are: other ones are other hardware to a compiler."""
    return frozenset(flag for flag in kernel.flags if flag.startswith("-m") and not flag.startswith("-mtune"))


def held_out(target: Target, known: Sequence[Source]) -> tuple[str, ...]:
    """In what a target differs from every source state; empty when it is no held-out kernel, or no source is known.

    ``workload``: another operator. ``surface``, ``platform``: another language or hardware. ``prior_actions``: the
    mechanisms that are there already are those of no source state. ``capabilities``: another instruction set is declared.
    """
    if not known:
        return ()
    operator, own = operator_of(target.workload), frozenset(target.prior_actions)
    seen = {target.workload.name, operator} & {name for s in known for name in (s.workload, s.operator)}
    differs = {
        "workload": not seen,
        "surface": all(s.surface != target.kernel.surface for s in known),
        "platform": all(s.platform != target.platform for s in known),
        "prior_actions": all(s.actions != own for s in known),
        "capabilities": all(s.capabilities != capabilities(target.kernel) for s in known),
    }
    return tuple(name for name, differ in differs.items() if differ)


def why_held_out(target: Target, names: Iterable[str]) -> str:
    """One sentence for people, from what ``held_out`` found."""
    words = {
        "workload": f"its workload, {target.workload.name}, is none that the card was lifted from",
        "surface": f"the card was lifted from no {target.kernel.surface} kernel",
        "platform": f"the card was lifted on no {target.platform}",
        "capabilities": "the card was lifted from no kernel for that instruction set",
        "prior_actions": f"no state that it was lifted from has exactly {_listed(target.prior_actions)}",
    }
    return (
        "; ".join(words[name] for name in names)
        or "it is a state that the card was lifted from, or one like it"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "no mechanism yet"
