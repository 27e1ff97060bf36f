"""The anchor of transitions: the kind of place that all of them act at, in words and as a query that finds it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from klineage.proposer.rules import RULES
from klineage.skill.anchors.finding import Place, place_of
from klineage.skill.anchors.marks import Mark, chosen, marks_of, missing, query_of, said_of
from klineage.skill.anchors.touched import LOOPS, Change, changes_between, touched
from klineage.skill.card import Anchor
from klineage.skill.transitions import Transition
from klineage.surface.tree import Unit, ancestors, parse_kernel

_SHOWN = 3  # sources that are named in words


@dataclass(frozen=True)
class Acted:
    """Where one transition acts in the state before it: the place where most happens first."""

    transition: Transition
    unit: Unit
    nodes: tuple[Node, ...]
    changes: tuple[Change, ...]

    @property
    def place(self) -> Place | None:
        return place_of(self.unit, self.nodes[0]) if self.nodes else None


@lru_cache(maxsize=256)
def acted(transition: Transition) -> Acted:
    """Where a transition acts. ``nodes`` is empty only for a file without functions."""
    unit = parse_kernel(transition.before)
    changes = changes_between(transition.before.source, transition.after.source)
    return Acted(transition, unit, touched(unit, changes, transition.step.locus), changes)


def common_anchor(transitions: Sequence[Transition], *, by_rule: bool = True) -> Anchor:
    """The anchor that all of the transitions share: what their places have in common, in words and as a query.

    by_rule: the words begin with what the rule that made all of them calls the place; False: with what their code has in
    common, as they did in cards of earlier versions.

    Where some act at loops and others at whole functions, the functions are meant. The query finds the place of each
    of the transitions in its own state before.
    """
    found = [t for t in transitions if acted(t).nodes]
    if not found:
        return Anchor()
    whole = len({acted(t).nodes[0].type for t in found}) > 1
    marks = frozenset.intersection(*(_marks(t, whole) for t in found))
    type_ = _node(found[0], whole).type
    named = chosen(found[0].surface, type_, marks)
    kind, at = said_of(type_, named), _place_by_rule(found) if by_rule else ""
    return Anchor(_sentence(f"{at}: {kind}" if at else kind, transitions), query_of(type_, named))


def _place_by_rule(transitions: Sequence[Transition]) -> str:
    """What the one rule that made all of the transitions calls the place that it acts at; empty where there is none."""
    made_by = {(t.surface, t.rule) for t in transitions}
    rules = [rule for surface, name in made_by for rule in RULES[surface] if rule.name == name]
    return rules[0].at if len(made_by) == len(rules) == 1 else ""


def _node(transition: Transition, whole: bool) -> Node:
    """The place of a transition, or the whole function that it lies in."""
    node = acted(transition).nodes[0]
    return _function(node) if whole else node


@lru_cache(maxsize=256)
def _marks(transition: Transition, whole: bool) -> frozenset[Mark]:
    act, node = acted(transition), _node(transition, whole)
    return marks_of(act.unit, node) | missing(act.unit, node, _lines_at(node, act.changes))


def _lines_at(node: Node, changes: Sequence[Change]) -> list[tuple[str, str]]:
    """(old, new) of the changes at a place, decorators included."""
    outer = node.parent if node.parent is not None and node.parent.type == "decorated_definition" else node
    return [(c.old, c.new) for c in changes if outer.start_byte <= c.start <= outer.end_byte]


def _function(node: Node) -> Node:
    return next((n for n in (node, *ancestors(node)) if n.type not in LOOPS and "function" in n.type), node)


def _sentence(kind: str, transitions: Sequence[Transition]) -> str:
    """What kind of place it is, and where it is in the first few sources."""
    where = []
    for transition in transitions:
        place = acted(transition).place
        if place is not None:
            where.append(f"{place.locus.partition('::')[2] or place.locus} in {transition.lineage}")
    where = list(dict.fromkeys(where))
    more = f" and {len(where) - _SHOWN} more" if len(where) > _SHOWN else ""
    return f"{kind[0].upper()}{kind[1:]}; {', '.join(where[:_SHOWN])}{more}."
